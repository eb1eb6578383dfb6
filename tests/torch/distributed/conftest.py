"""The ranks that the tests of this folder share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from ranks.pool import Pool


@pytest.fixture(scope="session")
def pool() -> Iterator[Pool]:
    """Start four ranks."""
    pool = Pool(4)
    yield pool
    pool.close()
