"""How long runs take: what was recorded, else a guess by scale and task."""

from __future__ import annotations

from collections.abc import Iterable

from hvadam.bench.config import RunConfig
from hvadam.bench.records import MEASURED, Record
from hvadam.bench.stats import median, options_key

# Of a run nothing like which is recorded, on one core.
SECONDS = {"smoke": 2.0, "laptop": 40.0}
# At paper scale, hours on one large GPU. The first three lines are what Buvanesh and Panwar (2021)
# give for their runs; the rest is worked out from the number of operations at 20 TFLOP/s. Where the
# inherited protocol makes three passes an epoch, three times that.
GPU_HOURS = {
    **{f"cifar{n}_{net}": 2.5 for n in (10, 100) for net in ("vgg11", "resnet34", "densenet121")},
    **{"ptb_lstm1": 1.3, "ptb_lstm2": 2.5, "ptb_lstm3": 3.75},
    **{"wgan": 0.9, "wgan_gp": 1.0, "sngan": 15.0},
    **{"imagenet_resnet50": 40.0, "cifar10_vit_b16": 15.0, "cifar100_vit_b16": 15.0},
    **{"iwslt14_transformer": 1.0, "diffusion": 82.0},
}


class Costs:
    """Seconds that a run takes, better known the more records there are."""

    def __init__(self, records: Iterable[Record] = ()) -> None:
        self._seconds: dict[tuple[str, ...], list[float]] = {}
        for record in records:
            self.learn(record)

    def learn(self, record: Record) -> None:
        """Take a run that ended into account."""
        if record.status in MEASURED:
            seconds = record.train_seconds + record.evaluation_seconds
            for key in _keys(record.config):
                self._seconds.setdefault(key, []).append(seconds)

    def of(self, config: RunConfig) -> float:
        """The median of the same contender's runs on the task as it is set, else of all on it so
        set, else of all on it, else a guess."""
        for key in _keys(config):
            if key in self._seconds:
                return median(self._seconds[key])
        return SECONDS.get(config.scale, 3600 * GPU_HOURS.get(config.task, 1.0))


def _keys(config: RunConfig) -> list[tuple[str, ...]]:
    task = (config.task, config.scale)
    same = (*task, config.protocol, options_key(config.settings))
    return [(*same, config.contender), same, task]
