"""Tasks made concrete: networks, batches, losses and measures, ready to train."""
