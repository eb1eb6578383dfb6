"""Every optimizer that the benchmarks compare, one file each, HVAdam included.

``import hvadam_bench.contenders`` loads no framework; a contender's file is read when it is asked
for.

Example:
    >>> import torch
    >>> from hvadam_bench import contenders
    >>> contenders.names()[:3]
    ['sgd', 'sgd_ema', 'adam']
    >>> model = torch.nn.Linear(3, 1)
    >>> optimizer = contenders.create("adamw", model, lr=3e-4)
    >>> model(torch.ones(3)).sum().backward()
    >>> optimizer.step()
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from hvadam_bench.contenders._spec import OptimizerSpec
from hvadam_bench.registry import Registry, Source, instead

if TYPE_CHECKING:
    from torch import Tensor, nn
    from torch.optim import Optimizer

__all__ = ["ABLATION", "ADAM_FAMILY", "OURS", "REFERENCE", "TRIAL", "OptimizerSpec", "create"]
__all__ += ["decay_groups", "get", "label", "names", "rank", "source"]

OURS, REFERENCE = "hvadam", "adam"
# HVAdam as it grows from Adam: the paper's ablation, whose last step is HVAdam itself.
ABLATION = ("hvadam0", "hvadam1", "hvadam2")
# Adam and those that change its averages or its decay, not its kind of step.
ADAM_FAMILY = ("adam", "adamw", "nadam", "radam", "yogi", "adabound", "adabelief")

# Candidates of an experiment: many contenders under one name.
TRIAL = "zigzag"

# The order of tables and legends. A file that is not named here is listed after these.
ORDER = (
    *("sgd", "sgd_ema", "adam", "adamw", "nadam", "rmsprop", "radam", "msvag", "yogi", "adabound"),
    *("fromage", "adabelief", "adai", "padam", "swa", "lookahead", "lookaround", "lion", "muon"),
    *("schedule_free_adamw", "ademamix", "qhadam", "hvadam", "hvadam0", "hvadam1", "hvadam2"),
    "zigzag",
    *("lbfgs", "adam_lbfgs", "hvadam_lbfgs"),
)
_REGISTRY = Registry("contender", __name__, "SPEC", OptimizerSpec, ORDER)
# What a param group may say beside the contender's options.
GROUP_KEYS = ("params", "name")


def names() -> list[str]:
    """Return the contenders' names, in the order of tables and legends."""
    return _REGISTRY.names()


def get(name: str) -> OptimizerSpec:
    """Return what is known of one contender.

    Raises:
        ValueError: there is none of that name, or it cannot be loaded.

    Example:
        >>> get("adam").paper
        'arXiv:1412.6980'
    """
    return _REGISTRY.get(name)


def source(name: str) -> Source | None:
    """Return the file of a user's contender and a hash of its code; None of ours, or of none."""
    return _REGISTRY.source(name)


def label(entrant: str) -> str:
    """Return the name for people of a contender, or of a variant of one.

    Example:
        >>> label("adamw"), label("padam (p 1/8)"), label("a stranger")
        ('AdamW', 'Padam (p 1/8)', 'a stranger')
    """
    name, bracket, variant = entrant.partition(" (")
    return (get(name).label if name in names() else name) + bracket + variant


def rank(entrant: str) -> tuple[int, str]:
    """Return a key to sort entrants by: HVAdam, then Adam, then the others in registry order."""
    name = entrant.partition(" (")[0]
    first = [OURS, REFERENCE, *names()]
    return (first.index(name) if name in first else len(first), entrant)


def create(
    name: str,
    params: nn.Module | Iterable[Tensor] | Iterable[tuple[str, Tensor]] | Iterable[dict[str, Any]],
    *,
    model: nn.Module | None = None,
    **options: Any,
) -> Optimizer:
    """Build a contender, ready to step.

    Args:
        name: One of `names()`.
        params: A model, of which all that requires gradients is optimized; or parameters or param
            groups, as for any optimizer of torch.
        model: The model that the parameters belong to, if `params` is not the model itself. Only
            contenders that need more than parameters look at it: Muon for its embeddings and
            its head, Lookaround for its buffers.
        options: What to change of the contender's defaults.

    Raises:
        ValueError: an unknown name, a value out of its range, or no parameters.
        TypeError: an option that the contender does not have.

    Example:
        >>> import torch
        >>> create("adam", [torch.nn.Parameter(torch.ones(2))], beta=0.9)
        Traceback (most recent call last):
        TypeError: adam has no option 'beta'; did you mean 'betas'?
    """
    from torch import nn

    spec = get(name)
    if isinstance(params, nn.Module):
        model = params
        params = [p for p in model.parameters() if p.requires_grad]
    groups = _as_groups(name, params)
    for given, allowed in (
        (options, spec.defaults),
        *((group, (*spec.defaults, *GROUP_KEYS)) for group in groups),
    ):
        _refuse_unknown(name, given, allowed)
    return spec.build(model, groups, {**spec.defaults, **options})


def decay_groups(model: nn.Module, weight_decay: float) -> list[dict[str, Any]]:
    """Split a model into two param groups: tensors of two axes or more decay, others do not.

    Example:
        >>> import torch
        >>> model = torch.nn.Linear(3, 2)
        >>> [(g["weight_decay"], len(g["params"])) for g in decay_groups(model, 0.1)]
        [(0.1, 1), (0.0, 1)]
        >>> optimizer = create("muon", decay_groups(model, 0.1), model=model)
    """
    trained = [p for p in model.parameters() if p.requires_grad]
    groups = [
        {"params": [p for p in trained if p.ndim >= 2], "weight_decay": weight_decay},
        {"params": [p for p in trained if p.ndim < 2], "weight_decay": 0.0},
    ]
    return [group for group in groups if group["params"]]


def _as_groups(name: str, params: Iterable[Any]) -> list[dict[str, Any]]:
    """Return the caller's parameters as groups of lists, which a builder may split."""
    from torch import Tensor

    if isinstance(params, Tensor):
        raise TypeError(
            f"{name}: params must be a model, parameters or param groups, "
            "got one tensor; put it in a list."
        )
    groups = list(params)
    if not all(isinstance(group, dict) for group in groups):
        groups = [{"params": groups}]
    groups = [{**group, "params": _members(group["params"])} for group in groups]
    if not any(group["params"] for group in groups):
        raise ValueError(f"{name} was given no parameters.")
    return groups


def _members(params: Any) -> list[Any]:
    """Return one parameter, several, or named ones as a list."""
    from torch import Tensor

    listed = [params] if isinstance(params, Tensor) else list(params)
    return [p[1] if isinstance(p, tuple) else p for p in listed]


def _refuse_unknown(name: str, given: Mapping[str, Any], allowed: Iterable[str]) -> None:
    allowed = list(allowed)
    for option in given:
        if option not in allowed:
            raise TypeError(f"{name} has no option {option!r}; {instead(option, allowed)}")
