"""Real processes for the tests of sharded optimizers, and what they run."""
