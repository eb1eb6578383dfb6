"""One training run: its configuration, the loop, its checkpoints and its record."""
