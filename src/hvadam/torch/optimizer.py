"""HVAdam as a ``torch.optim.Optimizer``: groups, state and checkpoints; no arithmetic."""

from __future__ import annotations

from collections.abc import Callable
from itertools import compress
from typing import TYPE_CHECKING, Any, Never

import torch
from torch import Tensor
from torch.optim import Optimizer
from torch.optim.optimizer import ParamsT

from hvadam.core.hyperparams import (
    HiddenGain,
    Preconditioner,
    RestartRule,
    Scope,
    StateDtype,
    WeightDecayMode,
)
from hvadam.torch import (
    checkpoint,
    completeness,
    devices,
    gradients,
    groups,
    sharding,
    states,
    step,
    tracing,
)
from hvadam.torch.diagnostics import LastStep, diagnose
from hvadam.torch.kernels import Columns, KernelName
from hvadam.torch.rows import Table
from hvadam.torch.sharding import ProcessGroupReference, Sharding

if TYPE_CHECKING:
    from torch.distributed import ProcessGroup


class HVAdam(Optimizer):
    r"""HVAdam: Adam with a hidden vector, the trend that all parameters share.

    With $\theta$ all parameters as one vector, and everything element-wise but
    $\|\cdot\|$ and $\langle\cdot,\cdot\rangle$:

    $$
    \begin{aligned}
        m &\leftarrow \beta_1 m + (1-\beta_1) g \\
        s &\leftarrow \beta_2 s + (1-\beta_2)
            \frac{(g-v)^4}{(g-m)^2 + \gamma (g-v)^2 + \epsilon} + \epsilon \\
        v &\leftarrow v - \frac{\langle v-\hat m, v\rangle}{\|v-\hat m\|^2} (v-\hat m) \\
        \delta &\leftarrow \beta_2 \delta + (1-\beta_2) \cos\langle v, \hat m\rangle \\
        \theta &\leftarrow \theta - \alpha \frac{\hat m}{\sqrt{\hat s} + \epsilon}
            - \alpha\, c\, b(\delta)\, v
    \end{aligned}
    $$

    $v$ starts as $\hat m$; it restarts, and $b$ is 0 for that step and the next,
    when the unbiased $\delta$ falls under a threshold. The gain
    $b = 10^{6\delta-3}$ grows from 0.001 and reaches 1 after about 700 well-aligned steps.

    Symbols: $\alpha$ is ``lr``, $\beta$ ``betas``, $\epsilon$ ``eps``,
    $\gamma$ ``gamma``, $c$ ``hidden_scale``, $b$ ``hidden_gain``. In the state
    m is ``exp_avg``, v ``hidden``, s ``exp_avg_var``.

    Args:
        params: Parameters, named parameters or groups, as for any torch optimizer.
        lr: Learning rate of both steps, a float or a one-element tensor.
        betas: Decay of m, and of s and the alignment average. What follows is given by name.
        eps: Added to s at *every* step, so it accumulates to ``eps/(1 - betas[1])``: 1e-12 acts
            like 3e-5, the root of that, in the place of Adam's eps. Lower it for very small
            gradients; the authors' code uses 1e-16. 1e-8 or more warns.
        gamma: Bounds the ratio of (g - v)² to (g - m)² by 1/gamma. The paper says "usually 0" and
            uses 0.5 or 1 in most of its experiments.
        weight_decay: Decay coefficient.
        weight_decay_mode: "decoupled" multiplies parameters by ``1 - lr*weight_decay``, as AdamW;
            "coupled" adds ``weight_decay*parameter`` to the gradient, as Adam.
        hidden_scale: Multiplies lr in the step along v; 0 switches that step off.
        hidden_gain: "exponential" (``10**(6δ - 3)``) or "linear" (``δ/0.9*10``).
        restart_threshold: In [0, 1). 0 never restarts.
        preconditioner: "hidden", or "adam" for the second moment of g (ablation).
        scope: What one hidden vector spans: "global" all parameters, "group" a param group (the
            authors' code), "tensor" one tensor.
        restart_rule: On the step that triggers a restart "paper" moves v once more, "authors"
            keeps it.
        bounds: (low, high), a box that parameters are clamped to after each step.
        maximize: Maximize the objective.
        max_grad_norm: Clip the gradients of all parameters to this norm, as
            ``torch.nn.utils.clip_grad_norm_`` but inside the step, gradients left as they are.
        state_dtype: "float32" keeps m, v and s in full (float64 for float64 parameters);
            "bfloat16" and "int8" keep them in 6 and 3.05 bytes a parameter instead of 12, rounded
            at random. Fit for training, not for bit parity: restarts fall elsewhere.
        rounding_seed: Of those random bits. They depend on it, the parameter's position, the step
            and the element alone, so replicas agree and a resumed run repeats itself.
        kernel: "auto", "native" (compiled, for CPUs), "loop" (one tensor at a time), "foreach"
            (lists of tensors; the one that ``torch.compile`` traces) or "triton" (for GPUs). On a
            GPU "auto" takes "triton" once that has agreed with the others on a few small tensors,
            seconds at the first step, and "foreach" with a warning if it has not.
        shard_group: The ranks that hold disjoint pieces of what this optimizer trains, for layouts
            that tensors do not show: ZeroRedundancyOptimizer, FSDP1, pipeline stages. DTensors
            (FSDP2, tensor parallel) and DDP need none.

    Per group may be set: lr, betas[0], eps, gamma, weight_decay, weight_decay_mode, hidden_scale,
    preconditioner, bounds, maximize. betas[1], restart_threshold and hidden_gain must agree among
    the groups that share a hidden vector; scope, restart_rule, max_grad_norm, state_dtype,
    rounding_seed, kernel and shard_group are set once.

    Raises:
        TypeError: An argument of the wrong kind.
        ValueError: An argument out of its range.
        RuntimeError: In ``step``, for sparse gradients.

    Example:
        >>> import torch
        >>> from hvadam import HVAdam
        >>> _ = torch.manual_seed(0)
        >>> x = torch.randn(64, 8)
        >>> y = x @ torch.randn(8, 1)
        >>> model = torch.nn.Linear(8, 1)
        >>> optimizer = HVAdam(model.parameters(), lr=0.01)
        >>> losses = []
        >>> for _ in range(200):
        ...     optimizer.zero_grad()
        ...     loss = torch.nn.functional.mse_loss(model(x), y)
        ...     loss.backward()
        ...     optimizer.step()
        ...     losses.append(loss.item())
        >>> losses[-1] < losses[0] / 10
        True

    References:
        HVAdam: A Full-Dimension Adaptive Optimizer, AAAI 2025; Eqs. 1-2 (v), 3-5 (δ, b), 6-8 (s).

    Differs from:
        The paper's listing: its slips are resolved as ``docs/decisions`` records; eps defaults to
        1e-12 and gamma to 0.5; weight decay is added.
        The authors' code: v spans all param groups (theirs is ``scope="group"``), a restart still
        moves v (theirs is ``restart_rule="authors"``), gradients are never written, and zero or
        missing gradients are harmless.
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        *,
        eps: float = 1e-12,
        gamma: float = 0.5,
        weight_decay: float = 0.0,
        weight_decay_mode: WeightDecayMode = "decoupled",
        hidden_scale: float = 1.0,
        hidden_gain: HiddenGain = "exponential",
        restart_threshold: float = 0.1,
        preconditioner: Preconditioner = "hidden",
        scope: Scope = "global",
        restart_rule: RestartRule = "paper",
        bounds: tuple[float, float] | None = None,
        maximize: bool = False,
        max_grad_norm: float | None = None,
        state_dtype: StateDtype = "float32",
        rounding_seed: int = 0,
        kernel: KernelName = "auto",
        shard_group: ProcessGroup | None = None,
        **unexpected: Never,
    ) -> None:
        groups.refuse_unexpected(unexpected)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "gamma": gamma,
            "weight_decay": weight_decay,
            "weight_decay_mode": weight_decay_mode,
            "hidden_scale": hidden_scale,
            "hidden_gain": hidden_gain,
            "restart_threshold": restart_threshold,
            "preconditioner": preconditioner,
            "scope": scope,
            "restart_rule": restart_rule,
            "bounds": bounds,
            "maximize": maximize,
            "max_grad_norm": max_grad_norm,
            "state_dtype": state_dtype,
            "rounding_seed": rounding_seed,
            "kernel": kernel,
        }
        groups.check_options(defaults)
        sharding.check_shard_group(shard_group)
        self._shard_group = ProcessGroupReference(shard_group)
        super().__init__(params, defaults)
        groups.warn_of_large_eps(self.param_groups)

    @property
    def _step_supports_amp_scaling(self) -> bool:
        """Return whether a GradScaler leaves unscaling and skipping to ``step``.

        Only where it cannot do that itself: it passes over all gradients in either case, and who
        clips or logs them before the step, as trainers do, needs them unscaled.
        """
        return gradients.are_float16(self.param_groups) or not sharding.scalers_agree(
            self.param_groups, self._shard_group.group
        )

    # For diagnostics; not part of the state, so copies start without.
    _last_step: LastStep | None = None

    _shard_group = ProcessGroupReference(None)

    # How the parameters lie on the ranks, found at a step; a copy finds it anew.
    _sharding: Sharding | None = None

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Take one step.

        Args:
            closure: Re-evaluates the model and returns the loss.
        """
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        self._check_step()
        self._sharding = sharding.find(self.param_groups, self._shard_group.group, self._sharding)
        skip, squared_norm = self._agree_on_gradients()
        if skip:
            return loss

        fresh = not torch.compiler.is_compiling() and not self.state
        table = self._collect_rows()
        if table.vectors.scalars:
            grad_scale = getattr(self, "grad_scale", None)
            max_grad_norm = self.param_groups[0]["max_grad_norm"]
            if grad_scale is not None or max_grad_norm is not None:
                step.scale_gradients(table, grad_scale, max_grad_norm, squared_norm)
            narrow = table.can_measure()
            dots = step.first_pass(table, narrow)
            mix, gain = step.advance_scalars(table, dots, narrow)
            step.second_pass(table, mix, gain)
            self._share_scalars(table.vectors.scalars[0])
        if not torch.compiler.is_compiling():
            self._last_step = LastStep.of(table)
        if fresh and table.vectors.scalars:
            states.forget_empty_step(self.state, self.param_groups)
        return loss

    def diagnostics(self) -> dict[str, dict[str, float]]:
        """Return what the hidden vectors did at the last step, as plain floats for any logger.

        Returns:
            ``{scope: {name: value}}``, the scope being "global", "group 0", ... or a parameter's
            name (without names "group 0, tensor 3"). The values: step, steps_since_restart,
            alignment (the cosine of v and m̂), alignment_ema (δ), mix, hidden_gain, restarts,
            holds, exp_avg_norm (‖m̂‖), hidden_norm (‖v‖), adaptive_step_norm and hidden_step_norm
            (the two parts of the update), and hidden_share, the second one's share of their sum:
            near 0 the step along v plays no part in the training. And trend, zigzag and rest, what
            the gradient of the step was made of, as a ``GradientMeter`` would read it.

        Nothing is computed before it is called, and it never communicates: what would need other
        ranks, all but the scalars where parameters are sharded, is left out. The last three need
        the gradients of the step, so call it before ``zero_grad``; they are left out without them,
        where a parameter had no gradient at some step, and with coupled weight decay.

        Example:
            >>> w = torch.nn.Parameter(torch.ones(3))
            >>> optimizer = HVAdam([w])
            >>> w.sum().backward()
            >>> optimizer.step()
            >>> optimizer.diagnostics()["global"]["steps_since_restart"]
            0.0
        """
        return diagnose(self, self._last_step)

    @property
    def shard_group(self) -> ProcessGroup | None:
        """Return the ranks that hold disjoint pieces of what this optimizer trains.

        Copies share it. Pickles lose it, and an unpickled optimizer does not step before it is set.
        """
        return self._shard_group.group

    @shard_group.setter
    def shard_group(self, group: ProcessGroup | None) -> None:
        """Set the ranks that hold disjoint pieces of what this optimizer trains."""
        sharding.check_shard_group(group)
        self._shard_group = ProcessGroupReference(group)
        self._sharding = None

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_shard_group": self._shard_group}

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group; under ``scope="global"`` it joins the hidden vector as it stands."""
        if isinstance(param_group, dict):  # else torch says what is wrong
            param_group = groups.checked(param_group, self.defaults, self.param_groups)
        super().add_param_group(param_group)
        group = self.param_groups[-1]
        if group["scope"] != "tensor":
            shared = group["scope"] == "global" and len(self.param_groups) > 1
            group["scalars"] = (
                self.param_groups[0]["scalars"].clone() if shared else groups.initial_scalars()
            )

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load what ``state_dict`` gave: hyper-parameters and state, in the state's own dtypes.

        ``kernel`` and ``state_dtype`` stay as they are here; of other options that the checkpoint
        changes, lr apart, one warning tells. Another optimizer's state, other sizes or shapes,
        another scope or restart rule are refused before anything changes.
        """
        checkpoint.load(self, state_dict, super().load_state_dict)
        self._last_step = None

    def _agree_on_gradients(self) -> tuple[bool, Tensor | None]:
        """Return whether to skip the step, and the gradients' squared norm if ranks shared it."""
        found_inf = getattr(self, "found_inf", None)
        clips = self.param_groups[0]["max_grad_norm"] is not None
        if self._sharding is None or not (clips or found_inf is not None):
            return found_inf is not None and bool(found_inf.item()), None
        squared_norm, skip = self._sharding.agree_on_gradients(found_inf)
        return skip, squared_norm

    def _collect_rows(self) -> Table:
        """Return the table of what has a gradient, its state made on first sight."""
        table = Table(self.param_groups, self.state, self._sharding)
        place = 0  # of a group's first parameter among those of all groups
        for group in self.param_groups:
            columns = Columns([], [], [], [], [], [])
            scalars: list[Tensor] = []
            self._init_group(group, *columns[:6], scalars, place, table.order)
            table.add(group, place, columns, scalars)
            place += len(group["params"])
        return table

    def _init_group(
        self,
        group: dict[str, Any],
        params: list[Tensor],
        grads: list[Tensor],
        exp_avgs: list[Tensor],
        hiddens: list[Tensor],
        exp_avg_vars: list[Tensor],
        steps: list[Tensor],
        scalars: list[Tensor],
        place: int,
        order: states.Order | None,
    ) -> None:
        """Fill the lists with what has a gradient, its state made on first sight.

        Name and shape are torch's own: ``torch.compile`` runs a method called so outside its graph,
        if it is given lists and constants.
        """
        found = [p.grad for p in group["params"]]
        here = [g is not None for g in found]
        params += compress(group["params"], here)
        grads += compress(found, here)
        if not params:
            return
        own = order.find(params, place) if order else [self.state[p] for p in params]
        if not all(own):
            if order:
                completeness.refuse_swapped(self, order)
            for p, state in zip(params, own, strict=True):
                if not state:
                    state.update(states.initial(p, group))
        exp_avgs += [state["exp_avg"] for state in own]
        hiddens += [state["hidden"] for state in own]
        exp_avg_vars += [state["exp_avg_var"] for state in own]
        steps += [state["step"] for state in own]
        if group["scope"] == "tensor":
            scalars += [state["scalars"] for state in own]
        else:
            group["scalars"] = group["scalars"].to(devices.home(params[0].device))
            scalars.append(group["scalars"])

    def _share_scalars(self, scalars: Tensor) -> None:
        """Copy the scalars to every group, for under ``scope="global"`` all carry them."""
        for group in self.param_groups:
            if group["scope"] == "global" and group["scalars"] is not scalars:
                group["scalars"].copy_(scalars)

    def _check_step(self) -> None:
        """Refuse a step before any of it is taken."""
        count = len(self.param_groups[0]["params"])
        for group in self.param_groups[1:]:
            count += len(group["params"])
            if group["scope"] == "global":
                groups.require_agreement(self.param_groups[0], group)
        if torch.compiler.is_compiling():  # tracing may not depend on how much state there is
            if self.param_groups[0]["state_dtype"] != "float32":
                tracing.refuse(
                    'torch.compile is for state_dtype="float32"; leave step() uncompiled, the '
                    "kernels are compiled already."
                )
            return
        completeness.refuse_parts(self, self._shard_group.lost)
        if len(self.state) < count:
            # Before any state is made. Later the kernels are assigned first, and they look too.
            for group in self.param_groups:
                gradients.refuse_sparse([p.grad for p in group["params"] if p.grad is not None])
