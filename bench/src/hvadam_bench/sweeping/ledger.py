"""The runs of a store that need not run again, each file read once."""

from __future__ import annotations

from collections.abc import Callable

from hvadam_bench.running.config import RunConfig
from hvadam_bench.running.records import FINAL, Record, Store


def has_ended(record: Record) -> bool:
    """Tell whether a run came to an end, whichever."""
    return record.status in FINAL


class Ledger:
    """The runs that are over, by configuration.

    Args:
        store: Where the records are.
        is_over: Which records count. A reader takes all that ended; who runs them also asks
            whether the same run would be another today.
    """

    def __init__(self, store: Store, is_over: Callable[[Record], bool] = has_ended) -> None:
        self._store = store
        self._is_over = is_over
        self._over: dict[str, Record] = {}

    def get(self, config: RunConfig) -> Record | None:
        """Return the record of a run that is over, None if it is not."""
        if config.key not in self._over:
            record = self._store.get(config)
            if record is None or not self._is_over(record):
                return None
            self._over[config.key] = record
        return self._over[config.key]
