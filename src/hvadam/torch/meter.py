"""A meter of what gradients are made of, for any torch optimizer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer
from torch.utils.hooks import RemovableHandle

from hvadam.core import meter
from hvadam.core.scalars import Floats
from hvadam.torch import sharding
from hvadam.torch.sharding import ProcessGroupReference

PIECE = 1 << 18  # elements in hand at once: few enough for a CPU's cache


class GradientMeter:
    r"""Measure how much of each gradient is trend, zigzag and the rest, beside any optimizer.

    The meter keeps a momentum m and a hidden vector v of its own, over all parameters at once. They
    meet at a right angle, $\hat m = v + z$: v is the trend, z the zigzag. Each gradient is held
    against both before it enters m:

    - ``trend``: $\cos^2\langle g, v\rangle$, negative where the gradient points against the trend;
    - ``zigzag``: $\cos^2\langle g, z\rangle$ where it points against z, as it does each time a
      step overshoots the floor of a valley;
    - ``rest``: what neither explains. With mini-batches it is mostly noise, but a zigzag in many
      directions at once is in it too.

    It reads gradients and writes nothing but its own state: training is the same bit for bit with
    it and without. It sees ``p.grad`` as it is when `update` is called: call it after the last
    ``backward`` of an accumulation, after ``scaler.unscale_``, and before clipping or after it,
    which is the same unless the clipping factor changes much from step to step.

    Args:
        params: The parameters whose gradients are read together, plain tensors or DTensors.
        beta1: Decay of the momentum that gradients are held against; that of the optimizer.
        every: Read every so many gradients; the others only enter m, which costs less.
        state_dtype: The dtype of the two vectors kept, ``torch.float32`` or ``torch.bfloat16``.
        strict: Raise where a gradient cannot be read, instead of a reading of NaN.
        shard_group: The ranks that hold disjoint pieces, as for ``HVAdam``; DTensors need none.

    Raises:
        TypeError: A parameter is no tensor.
        ValueError: There are no parameters, one comes twice, or an option is out of its range.
        RuntimeError: In ``update``, only if ``strict``.

    Example:
        >>> import torch
        >>> from hvadam import GradientMeter
        >>> _ = torch.manual_seed(0)
        >>> w = torch.nn.Parameter(torch.zeros(1000))
        >>> meter = GradientMeter([w])
        >>> slope, across = torch.randn(2, 1000)
        >>> for i in range(100):  # as down a valley: the slope, and from one wall to the other
        ...     w.grad = slope + across * (-1) ** i
        ...     meter.update()
        >>> round(meter.read()["zigzag_average"], 1)
        0.5
    """

    def __init__(
        self,
        params: Iterable[Tensor],
        *,
        beta1: float = 0.9,
        every: int = 1,
        state_dtype: torch.dtype = torch.float32,
        strict: bool = False,
        shard_group: Any = None,
    ) -> None:
        self._params = list(params)
        _check(self._params, beta1, every, state_dtype)
        sharding.check_shard_group(shard_group)
        self._shard_group = ProcessGroupReference(shard_group)
        self._layout: sharding.Layout | None = None
        self._beta1, self._every, self._dtype, self._strict = beta1, every, state_dtype, strict
        # m and z = m_hat - v, flat: z is small, so that few digits of it are enough for v.
        self._state: dict[Tensor, tuple[Tensor, Tensor]] = {}
        self._steps: dict[Tensor, int] = {}  # gradients that entered a parameter's m
        self._scalars: list[float] = list(meter.INITIAL)
        self._updates = 0
        self.problem: str | None = None

    @torch.no_grad()
    def update(self) -> None:
        """Read the gradients as they are now, then let them enter the momentum.

        Where that cannot be, the next reading is NaN and ``problem`` says why.
        """
        self._updates += 1
        self.problem = None
        try:
            if (self._updates - 1) % self._every:
                self._skip()
            else:
                self._measure()
        except RuntimeError as error:
            self.problem = str(error)
        if self.problem is not None:
            for name in meter.SHARES:
                self._scalars[meter.FIELDS.index(name)] = float("nan")
            if self._strict:
                raise RuntimeError(f"GradientMeter: {self.problem}")

    def read(self) -> dict[str, float]:
        """Return the last reading and the averages, as plain floats for any logger.

        Returns:
            ``trend``, ``zigzag`` and ``rest`` of the last gradient that was to be read, NaN if it
            could not be; ``trend_average``, ``zigzag_average`` and ``rest_average``, over about 20
            readings; ``alignment`` and ``alignment_ema``, the cosine of v and m and its average;
            ``readings`` and ``restarts``, counts.
        """
        return meter.reading(self._scalars)

    def attach(self, optimizer: Optimizer) -> RemovableHandle:
        """Have `update` called before each step of an optimizer.

        Args:
            optimizer: The one that trains these parameters.

        Returns:
            A handle whose ``remove()`` ends it.

        Raises:
            ValueError: The optimizer trains other parameters.
        """
        others = {p for group in optimizer.param_groups for p in group["params"]}
        foreign = sum(p not in others for p in self._params)
        if foreign:
            raise ValueError(
                f"GradientMeter: {foreign} of its {len(self._params)} parameters are not among "
                "those of the optimizer; make the meter from the optimizer's own parameters."
            )
        return optimizer.register_step_pre_hook(lambda *_: self.update())

    def state_dict(self) -> dict[str, Any]:
        """Return what the meter keeps, with tensors by the parameter's place."""
        return {
            "scalars": list(self._scalars),
            "updates": self._updates,
            "tensors": {
                i: (*(x.clone() for x in self._state[p]), self._steps[p])
                for i, p in enumerate(self._params)
                if p in self._state
            },
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from what another meter of the same parameters kept."""
        for i, (m, _, _) in state["tensors"].items():
            if i >= len(self._params) or m.numel() != _flat(self._params[i]).numel():
                raise ValueError(
                    f"GradientMeter: the state is of other parameters: number {i} has {m.numel()} "
                    "elements there; load the state of a meter of the same model."
                )
        self._scalars, self._updates = list(state["scalars"]), state["updates"]
        for i, (m, z, steps) in state["tensors"].items():
            p = self._params[i]
            self._state[p] = (m.to(p.device, self._dtype), z.to(p.device, self._dtype))
            self._steps[p] = steps

    def _measure(self) -> None:
        """Move v, read the gradients, and let them enter m."""
        rows, failure = self._rows()
        dots = torch.zeros(7, dtype=torch.float64)
        for p, g in rows:
            if self._counts(p):
                dots += self._dots(p, g)
        self._agree(dots, failure)
        if not rows and dots[4] == 0:
            raise RuntimeError(
                "no parameter has a gradient; call update() after backward() and before zero_grad()"
            )
        # A narrower state is rounded at random, which moves no direction.
        rounding = torch.finfo(torch.promote_types(self._dtype, torch.float32)).eps
        mix, self._scalars = meter.advance(Floats, self._scalars, dots.tolist(), rounding=rounding)
        self._enter(rows, mix)

    def _skip(self) -> None:
        """Let gradients enter m unread."""
        rows, failure = self._rows()
        norms = torch._foreach_norm([g for _, g in rows]) if rows else []
        self._agree(sum((x.double().cpu() for x in norms), torch.zeros(())), failure)
        self._enter(rows)

    def _agree(self, sums: Tensor, failure: str | None) -> None:
        """Add numbers up over the ranks, in place; raise on all of them what one has met."""
        if failure is not None:
            sums.fill_(float("nan"))
        if layout := self._find_layout():
            layout.sum(sums)
        if failure is not None or not torch.isfinite(sums).all():
            raise RuntimeError(
                failure or "the gradient is not finite; it did not enter the momentum"
            )

    def _rows(self) -> tuple[list[tuple[Tensor, Tensor]], str | None]:
        """Return the parameters that have a gradient, with this rank's part of it, flat.

        Also return why they cannot be read, if so.
        """
        rows: list[tuple[Tensor, Tensor]] = []
        for p in self._params:
            if p.grad is None:
                continue
            if p.grad.layout != torch.strided:
                return [], f"gradients must be dense, got layout {p.grad.layout}"
            g = _flat(sharding.local_gradient(p))
            if p not in self._state:
                m, z = (torch.zeros_like(g, dtype=self._dtype) for _ in range(2))
                self._state[p], self._steps[p] = (m, z), 0
            if g.numel() != self._state[p][0].numel():
                return [], "a parameter has changed its shape; make a new meter"
            rows.append((p, g))
        return rows, None

    def _dots(self, p: Tensor, g: Tensor) -> Tensor:
        """Return a parameter's part of the dots that `meter.advance` takes, on the CPU."""
        bias = self._bias(p)
        total = torch.zeros(7, dtype=torch.float64, device=g.device)
        for _, m, z, g_part in self._pieces(p, g):
            m_hat = m / bias
            v, d = m_hat - z, -z
            pairs = ((d, d), (d, v), (m_hat, m_hat), (v, v))
            pairs += ((g_part, g_part), (g_part, v), (g_part, d))
            total += torch.stack([torch.dot(a, b) for a, b in pairs])
        return total.cpu()

    def _enter(self, rows: list[tuple[Tensor, Tensor]], mix: float = 1.0) -> None:
        """Move v by `mix`, then let gradients enter m."""
        random: dict[torch.device, torch.Generator] = {}
        for p, g in rows:
            before = self._bias(p)
            self._steps[p] += 1
            after = self._bias(p)
            for places, m, z, g_part in self._pieces(p, g):
                v = m / before - mix * z
                m = self._kept(places[0], torch.lerp(m, g_part, 1.0 - self._beta1), random)
                self._kept(places[1], m / after - v, random)

    def _kept(
        self, place: Tensor, x: Tensor, random: dict[torch.device, torch.Generator]
    ) -> Tensor:
        """Write a piece of the state, and return what is kept of it.

        A state in bfloat16 is rounded at random, as small moves would be lost otherwise. The random
        numbers come from a generator of the meter's own, so those of the training stay as they are.
        """
        if place.dtype == torch.bfloat16:
            if x.device not in random:
                random[x.device] = torch.Generator(x.device).manual_seed(self._updates)
            bits = torch.randint(
                1 << 16, x.shape, dtype=torch.int32, device=x.device, generator=random[x.device]
            )
            x = ((x.view(torch.int32) + bits) & -(1 << 16)).view(torch.float32)
        return place.copy_(x).to(x.dtype)

    def _pieces(
        self, p: Tensor, g: Tensor
    ) -> Iterator[tuple[tuple[Tensor, Tensor], Tensor, Tensor, Tensor]]:
        """Yield the places of m and z, and m, z and g to compute with, in pieces for a cache."""
        wide = torch.promote_types(self._dtype, torch.float32)
        for m, z, g_part in zip(*(x.split(PIECE) for x in (*self._state[p], g)), strict=True):
            yield (m, z), m.to(wide), z.to(wide), g_part.to(wide)

    def _bias(self, p: Tensor) -> float:
        return 1.0 - self._beta1 ** max(self._steps[p], 1)

    def _counts(self, p: Tensor) -> bool:
        """Return whether this rank's part of a parameter goes into the sums."""
        layout = self._find_layout()
        return layout is None or layout.counts(p)

    def _find_layout(self) -> sharding.Layout | None:
        """Return how the parameters lie on the ranks; None where nothing is sharded."""
        group = self._shard_group.group
        if self._layout is None and sharding.is_sharded([{"params": self._params}], group):
            self._layout = sharding.Layout(self._params, group)
        return self._layout


def _flat(x: Tensor) -> Tensor:
    """Return the elements of this rank's part of a tensor as a vector of real numbers."""
    x = sharding.local_part(x.detach())
    return (torch.view_as_real(x) if x.is_complex() else x).reshape(-1)


def _check(params: list[Tensor], beta1: float, every: int, dtype: torch.dtype) -> None:
    """Refuse parameters and options that cannot be meant."""
    if not params:
        raise ValueError("GradientMeter: params must hold at least one tensor, got none.")
    for p in params:
        if not isinstance(p, Tensor):
            raise TypeError(
                f"GradientMeter: params must be tensors, got {type(p).__name__}; of an optimizer "
                "take those of its param_groups."
            )
    if len({*params}) < len(params):
        raise ValueError("GradientMeter: params must hold each tensor once.")
    if not 0 <= beta1 < 1:
        raise ValueError(f"GradientMeter: beta1 must be in [0, 1), got {beta1}.")
    if isinstance(every, bool) or not isinstance(every, int) or every < 1:
        raise ValueError(f"GradientMeter: every must be a whole number from 1 on, got {every!r}.")
    if dtype not in (torch.float32, torch.bfloat16, torch.float64):
        raise ValueError(
            f"GradientMeter: state_dtype must be torch.float32 or torch.bfloat16, got {dtype}."
        )
