"""All that a store of records says, as one page that needs no network and no framework."""

from hvadam_bench.pages.report.page import write

__all__ = ["write"]
