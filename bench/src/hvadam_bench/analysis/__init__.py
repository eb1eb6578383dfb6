"""Records grouped, and the statistics of groups."""
