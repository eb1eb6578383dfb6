"""What a kernel is handed: tensors of one param group that one call can take together.

Legend, as everywhere in the kernels: theta parameters, g gradients, m their average, v the hidden
vector, s the preconditioner; bias1 = 1 - beta1**t and bias2 = 1 - beta2**t of each tensor.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

import torch
from torch import Tensor

from hvadam.torch import devices, storage, tracing

Tensors: TypeAlias = list[Tensor] | tuple[Tensor, ...]
Box: TypeAlias = tuple[Any, Any]  # low and high, floats or tensors
Own = TypeVar("Own")

# What (g - m)² may count for. Where (g - v)² overflows, so may it, and ∞/∞ would be no number; so
# s becomes ∞ instead, as Adam's second moment would, and the element stays where it is.
LARGEST = {dtype: torch.finfo(dtype).max for dtype in (torch.float32, torch.float64)}


class Options(NamedTuple):
    """A param group's hyper-parameters as a kernel reads them, once a step."""

    lr: Any  # a float or a 0-dim tensor, as are all numbers of a traced step
    beta1: Any
    beta2: Any
    eps: Any
    gamma: Any
    decay: Any  # decoupled
    coupled_decay: Any
    hidden_scale: Any
    adam: bool  # preconditioner="adam"
    bounds: Box | None
    maximize: bool
    seed: int  # of the random bits that round low-bit state
    factor: Any = 1.0  # on gradients: clipping and unscaling

    @classmethod
    def of(cls, group: dict[str, Any]) -> Options:
        """Return the options of a param group."""
        coupled = group["weight_decay_mode"] == "coupled"
        return cls(
            lr=as_scalar(group["lr"]),
            beta1=group["betas"][0],
            beta2=group["betas"][1],
            eps=group["eps"],
            gamma=group["gamma"],
            decay=0.0 if coupled else group["weight_decay"],
            coupled_decay=group["weight_decay"] if coupled else 0.0,
            hidden_scale=group["hidden_scale"],
            adam=group["preconditioner"] == "adam",
            bounds=group["bounds"],
            maximize=group["maximize"],
            seed=group["rounding_seed"],
        )

    def traced(self, device: torch.device) -> Options:
        """Return the options as ``torch.compile`` takes them in, for parameters on a device."""
        names = ("lr", "beta1", "beta2", "eps", "gamma", "hidden_scale")
        made = {name: tracing.operand(getattr(self, name), device) for name in names}
        for name in ("decay", "coupled_decay"):
            decay = getattr(self, name)
            if isinstance(decay, Tensor) or decay:  # 0 stays: where there is none, none is computed
                made[name] = tracing.operand(decay, device)
        if self.bounds is not None:
            made["bounds"] = tuple(tracing.operand(x, device) for x in self.bounds)
        return self._replace(**made)

    def box(self, rate: float | Tensor) -> Box | None:
        """Return the box to project onto after a step at some rate, None for no projection.

        A step at rate 0 moves nothing, so it does not project either.
        """
        if self.bounds is None:
            return None
        if not isinstance(rate, Tensor):
            return self.bounds if rate != 0 else None
        still = rate == 0
        low, high = (x if isinstance(x, Tensor) else torch.full_like(rate, x) for x in self.bounds)
        return torch.where(still, -math.inf, low), torch.where(still, math.inf, high)


class Columns(NamedTuple):
    """Parameters, gradients and state in parallel lists; a list that has no use is empty."""

    theta: list[Tensor]
    g: list[Tensor]
    m: list[Tensor]
    v: list[Tensor]
    s: list[Tensor]
    step: list[Tensor]
    m_scales: Tensors = ()  # state_dtype="int8"
    v_scales: Tensors = ()
    s_scales: Tensors = ()
    index: Sequence[int] = ()  # of the parameter, in the order of the groups
    begin: Sequence[int] = ()  # of pieces: at which of their tensor's elements; 0 if not given

    def take(self, indices: Sequence[int]) -> Columns:
        """Return some of the rows."""
        rows = ([column[i] for i in indices] if column else column for column in self)
        return Columns._make(rows)

    def signed(self) -> Columns:
        """Return the columns with the sign of lazily negated gradients done.

        Without it torch 2.13 copies a float16 tensor to a float32 one as if it had no sign.
        """
        if torch.compiler.is_compiling():  # which does not know of such tensors
            return self
        return self._replace(g=[g.resolve_neg() for g in self.g])

    def as_real(self) -> Columns:
        """Return the columns with complex tensors as their real and imaginary parts."""
        if not any(theta.is_complex() for theta in self.theta):
            return self
        real = ([_as_real(x) for x in column] for column in self[:6])
        return Columns._make((*real, *self[6:]))


class Batch(NamedTuple, Generic[Own]):
    """Tensors of one param group that one kernel call updates.

    The portable kernels are handed batches of one hidden vector, dtype and device.
    """

    tensors: Columns
    scopes: Sequence[int]  # the hidden vector of each tensor
    options: Options
    own: Own  # what its kernel knows of the tensors besides; None for the portable ones
    bias: tuple[list[Any], list[Any]] | None = None  # bias1 and bias2 where they are known

    def open(self) -> Columns:
        """Return the columns with m, v and s in full: decoded copies where they are low-bit."""
        if not self.is_low_bit():
            return self.tensors
        rows = range(len(self.tensors.m))
        full = ([storage.decode(*self._stored(i, name)) for i in rows] for name in "mvs")
        return self.tensors._replace(**dict(zip("mvs", full, strict=True)))

    def keep_average(self, i: int, work: Columns) -> None:
        """Store m and s of a tensor, and read m back: the dots are taken of what is kept."""
        if self.is_low_bit():
            bits = self._bits(i, stream=0)
            storage.encode(work.m[i], *self._stored(i, "m"), storage.bits_for("m", bits))
            storage.encode(work.s[i], *self._stored(i, "s"), storage.bits_for("s", bits))
            work.m[i].copy_(storage.decode(*self._stored(i, "m")))

    def keep_hidden(self, i: int, work: Columns) -> None:
        """Store v of a tensor, and read it back."""
        if self.is_low_bit():
            bits = self._bits(i, stream=1)
            storage.encode(work.v[i], *self._stored(i, "v"), storage.bits_for("v", bits))
            work.v[i].copy_(storage.decode(*self._stored(i, "v")))

    def is_low_bit(self) -> bool:
        """Return whether m, v and s are kept in fewer bits than they are computed with."""
        return self.tensors.m[0].dtype in (torch.bfloat16, torch.int8)

    def _stored(self, i: int, name: str) -> tuple[Tensor, Tensor | None]:
        """Return m, v or s of a tensor as it is kept: numbers, and scales if it has any."""
        scales = getattr(self.tensors, f"{name}_scales")
        return getattr(self.tensors, name)[i], scales[i] if scales else None

    def _bits(self, i: int, stream: int) -> Tensor:
        """Return the random bits that round a tensor's state in one of the two streams."""
        tensors = self.tensors
        begin = tensors.begin[i] if tensors.begin else 0
        key = (self.options.seed, tensors.index[i], int(tensors.step[i]), stream)
        return storage.random_bits(*key, begin=begin, like=tensors.m[i])

    def count_step(self) -> None:
        """Advance the tensors' step counters."""
        torch._foreach_add_(self.tensors.step, 1)

    def bias_corrections(self) -> tuple[list[Any], list[Any]]:
        """Return 1 - beta**t of each tensor to its last digits: 1 - 0.999f is off by 1e-5."""
        if self.bias is not None:
            return self.bias
        steps, o = self.tensors.step, self.options
        if isinstance(as_scalar(steps[0]), Tensor):
            t = torch.stack(steps)
            dtype = torch.promote_types(self.tensors.m[0].dtype, torch.float32)
            bias1, bias2 = (_bias(beta, t, dtype) for beta in (o.beta1, o.beta2))
            return list(bias1.unbind()), list(bias2.unbind())
        counts = [t.item() for t in steps]
        bias = {t: (1.0 - o.beta1**t, 1.0 - o.beta2**t) for t in set(counts)}
        return [bias[t][0] for t in counts], [bias[t][1] for t in counts]


def scaled(batches: Sequence[Batch[Any]], factor: Tensor) -> list[Batch[Any]]:
    """Return batches with a factor on their gradients."""
    on: dict[torch.device, float | Tensor] = {}  # each device, read once for all batches there
    made: list[Batch[Any]] = []
    for batch in batches:
        device = batch.tensors.theta[0].device
        if device not in on:
            on[device] = as_scalar(factor.to(devices.home(device)))
        made.append(batch._replace(options=batch.options._replace(factor=on[device])))
    return made


def as_scalar(x: float | Tensor) -> float | Tensor:
    """Return a Python float where reading one is free, else the 0-dim tensor itself.

    On a CPU a float is the fastest operand. On a device reading it would wait for the queue, and
    under ``torch.compile`` it would be baked into the graph.
    """
    if not isinstance(x, Tensor):
        return float(x)
    if torch.compiler.is_compiling() or x.device.type != "cpu":
        return x.reshape(())
    return x.item()


def _bias(beta: Any, t: Tensor, dtype: torch.dtype) -> Tensor:
    """Return 1 - beta**t.

    Written with ``exp``, as inductor computes that once, and a power again for every element.
    """
    log = beta.log() if isinstance(beta, Tensor) else math.log(beta) if beta > 0 else -math.inf
    if not devices.has_float64(t.device):
        return -torch.expm1(t * log).to(dtype)
    return (1.0 - torch.exp(t.double() * log)).to(dtype)


def _as_real(x: Tensor) -> Tensor:
    """Return a complex tensor's real and imaginary parts, or a real one itself."""
    return torch.view_as_real(x.resolve_conj()) if x.is_complex() else x
