"""How long runs take: as recorded, or a guess by scale, task and how much they train."""

from __future__ import annotations

import math
from collections.abc import Iterable

from hvadam_bench import tasks
from hvadam_bench.analysis.statistics import median, options_key
from hvadam_bench.running.config import RunConfig
from hvadam_bench.running.records import MEASURED, Record

# The guess for a run like which nothing is recorded, on one core.
SECONDS = {"smoke": 2.0, "laptop": 40.0}
# At laptop scale, of tasks that take far less or more than others.
LAPTOP_SECONDS = {
    **dict.fromkeys(("heat_pinn", "two_spirals", "multiscale_regression"), 1.5),
    **dict.fromkeys(("matrix_factorization", "digits_autoencoder", "digits_normed_cnn"), 1.5),
    **dict.fromkeys(("digits_vae", "online_regression", "pydoc_gru", "pydoc_transformer"), 1.5),
    **dict.fromkeys(("pinn_convection", "pinn_reaction", "pinn_wave", "pinn_burgers"), 10.0),
    **dict.fromkeys(("siren_image", "autoencoder_full_batch", "shakespeare_windows"), 10.0),
    **dict.fromkeys(("matrix_completion", "ode_fit"), 10.0),
    **dict.fromkeys(("fashion_mnist_60k", "cifar10_resnet8"), 180.0),
    **dict.fromkeys(("shakespeare_gpt", "ptb_lstm128"), 180.0),
}
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
# The settings that a run's time is in proportion to.
AMOUNTS = ("epochs", "iterations", "steps", "train_images", "train_pairs", "tokens")


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
            *alike, of_task = _keys(record.config)
            for key in alike:
                self._seconds.setdefault(key, []).append(seconds)
            self._seconds.setdefault(of_task, []).append(seconds / amount(record.config))

    def of(self, config: RunConfig) -> float:
        """Return the seconds that a run should take.

        That is the median of the runs that are most alike: of the same contender with the same
        settings, of anyone with them, or of any on the task for as much training. Without any it is
        a guess.
        """
        *alike, of_task = _keys(config)
        for key in alike:
            if key in self._seconds:
                return median(self._seconds[key])
        if of_task in self._seconds:
            return amount(config) * median(self._seconds[of_task])
        guess = SECONDS.get(config.scale, 3600 * GPU_HOURS.get(config.task, 1.0))
        if config.scale == "laptop":
            guess = LAPTOP_SECONDS.get(config.task, guess)
        return amount(config) * guess


def amount(config: RunConfig) -> float:
    """Return how much a run trains, relative to the task as it is at its scale.

    Example:
        >>> amount(RunConfig("digits_mlp", "adam", settings={"epochs": 60}))
        0.1
    """
    changed = [name for name in AMOUNTS if name in config.settings]
    if not changed or config.task not in tasks.names():  # the records may be somebody else's
        return 1.0
    usual = tasks.get(config.task).scales.get(config.scale, {})
    pairs = [(config.settings[name], usual.get(name)) for name in changed]
    return math.prod(given / own for given, own in pairs if given and own)  # None is all there is


def _keys(config: RunConfig) -> list[tuple[str, ...]]:
    task = (config.task, config.scale)
    same = (*task, config.protocol, options_key(config.settings))
    return [(*same, config.contender), same, task]
