"""Which step along the hidden vector to take: candidates, scored in stages."""
