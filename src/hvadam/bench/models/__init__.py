"""Networks that tasks share."""
