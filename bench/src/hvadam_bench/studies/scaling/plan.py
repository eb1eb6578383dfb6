"""On how many ranks a step is simulated."""


def plan(*, smoke: bool = False) -> tuple[int, ...]:
    """Return the numbers of ranks.

    Args:
        smoke: Simulate the smaller number of ranks only.
    """
    return (8,) if smoke else (8, 64)
