"""The comparison: what it runs, what its records say, and which of the paper's claims hold."""
