"""Questions, each answered in its folder: what is measured, and the page that says what was found.

Example:
    >>> from hvadam_bench import studies
    >>> studies.get("scaling").name
    'scaling'
"""

from hvadam_bench.registry import Registry
from hvadam_bench.studies._study import Place, Study

__all__ = ["Place", "Study", "get", "names"]

_REGISTRY = Registry("study", __name__, "STUDY", Study, order=("demo", "evidence", "valley"))
names, get = _REGISTRY.names, _REGISTRY.get
