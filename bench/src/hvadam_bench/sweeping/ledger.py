"""The runs of a store that need not run again, each file read once."""

from __future__ import annotations

from collections.abc import Callable

from hvadam_bench.running.config import RunConfig
from hvadam_bench.running.records import FINAL, Record, Store


def ended(config: RunConfig, store: Store) -> Record | None:
    """Return the record of a run that came to an end, whichever."""
    record = store.get(config)
    return record if record is not None and record.status in FINAL else None


class Ledger:
    """The runs that are over, by configuration.

    Args:
        store: Where the records are.
        find: How the record that counts is found. A reader takes any that ended; a sweep also asks
            whether the same run would be another today.
    """

    def __init__(
        self, store: Store, find: Callable[[RunConfig, Store], Record | None] = ended
    ) -> None:
        self._store = store
        self._find = find
        self._over: dict[str, Record] = {}

    def get(self, config: RunConfig) -> Record | None:
        """Return the record of a run that is over, None if it is not."""
        known = self._over.get(config.key) or self._find(config, self._store)
        if known is not None:
            self._over[config.key] = known
        return known
