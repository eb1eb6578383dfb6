"""The words for what became of a claim of the paper."""

from __future__ import annotations

from collections.abc import Sequence

HOLDS, PARTLY, FAILS, UNTESTED = "holds", "holds in part", "does not hold", "not testable here"
# Of a bound: true, and no lower than one that needs no theorem, so that it says nothing.
VACUOUS, PARTLY_VACUOUS = "vacuous", "vacuous in part"


def on_bound(bound: float, trivial: float, *, within: bool) -> str:
    """Return the word for a bound in one case.

    Args:
        bound: Its value.
        trivial: The lowest that is known without a theorem.
        within: Whether what was measured is within the bound.

    Example:
        >>> on_bound(1e10, 2e6, within=True), on_bound(9e5, 2e6, within=True)
        ('vacuous', 'holds')
        >>> on_bound(1.0, 2.0, within=False)
        'does not hold'
    """
    if not within:
        return FAILS
    return HOLDS if bound < trivial else VACUOUS


def all_of(held: Sequence[str]) -> str:
    """Return the verdict on a claim about several cases, from what is said of each.

    Example:
        >>> all_of(["holds", "holds"]), all_of(["holds", "in part"])
        ('holds', 'holds in part')
        >>> all_of(["vacuous", "vacuous"]), all_of(["vacuous", "holds"])
        ('vacuous', 'vacuous in part')
        >>> all_of(["does not hold", "does not hold"]), all_of([])
        ('does not hold', 'not testable here')
    """
    said = set(held)
    if len(said) <= 1 and said <= {HOLDS, VACUOUS, FAILS}:
        return said.pop() if said else UNTESTED
    return PARTLY_VACUOUS if said == {HOLDS, VACUOUS} else PARTLY
