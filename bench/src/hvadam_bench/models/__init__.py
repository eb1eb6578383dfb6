"""Networks that tasks train, and the maths that belongs to them."""
