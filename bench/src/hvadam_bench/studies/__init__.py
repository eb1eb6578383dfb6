"""Questions, each answered in its folder: what is measured, and the page on what was found."""

from hvadam_bench.registry import Registry
from hvadam_bench.studies._study import Place, Study

__all__ = ["Place", "Study", "get", "names"]

_REGISTRY = Registry("study", __name__, "STUDY", Study, order=("demo", "evidence", "valley"))
names, get = _REGISTRY.names, _REGISTRY.get
