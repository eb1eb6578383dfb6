"""A spy on what the native kernel takes, for its tests."""

from __future__ import annotations

from typing import Any

import pytest

from hvadam.torch.kernels import native


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[list[bool]]:
    """Record, for every table described, which tensors the native kernel takes."""
    seen: list[list[bool]] = []
    describe = native.describe

    def spy(tensors: Any, scopes: Any) -> native.Table:
        table = describe(tensors, scopes)
        seen.append([i in table.taken for i in range(len(scopes))])
        return table

    monkeypatch.setattr(native, "describe", spy)
    return seen
