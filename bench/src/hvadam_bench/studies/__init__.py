"""Questions to the method and to the runs, each answered by a typed result."""
