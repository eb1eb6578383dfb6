"""Pages, tables and figures made of records and results."""
