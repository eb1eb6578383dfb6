"""``docs/howto/coming-from-adamw.md``: where to start, read from the records."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from hvadam import optimizers
from hvadam.bench.findings.sections import on_option
from hvadam.bench.findings.words import listed, rate, short, table, title, wrapped
from hvadam.bench.report.looks import OURS
from hvadam.bench.search import ladder

Content = Mapping[str, Any]
# Ratios up to this are told as "the same": the rates tried lie a factor of about 3 apart.
SAME = 1.8

_OPENING = """\
<!-- Written by `hvadam findings` from the records; edit src/hvadam/bench/findings/howto.py. -->

# Coming from AdamW

{short}

```python
import torch
from hvadam import HVAdam

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1))
x = torch.randn(256, 8)
y = x.sum(1, keepdim=True)

lr, weight_decay = 1e-3, 0.01  # what AdamW had
factor = {factor:g}
optimizer = HVAdam(model.parameters(), lr=factor * lr, weight_decay=weight_decay / factor)
for step in range(300):
    optimizer.zero_grad()
    loss = torch.nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
print(f"loss {{loss.item():.4f}}", optimizer.diagnostics()["global"])
```

`weight_decay` is decoupled as in AdamW, where each step takes `lr * weight_decay` of a weight away;
divided by the factor by which the rate changes, it stays what it was. AdamW's default is 0.01,
HVAdam's 0. Betas, schedules, warm-up and clipping can stay. To go on from a checkpoint of AdamW
there is `hvadam.warm_start`.
"""

_RATES = """\
## The learning rate

The best learning rates of both, each tuned alike on small tasks
([what we found](../findings.md)); rates a factor of about 3 apart were tried, with one seed.
*At AdamW's rate*: how far HVAdam with AdamW's best rate ended from HVAdam with its own, on the
validation split.
"""

_FIRST = """\
## What to do first

1. Train with the rate above, then with a third of it and three times it. {spread}
2. {options}
3. Watch `optimizer.diagnostics()`: `hidden_gain` starts at 0.001 and passes 1 after some 700 steps
   if `alignment` is near 1, and never if it stays below 0.5. While the gain is small the hidden
   step does next to nothing, and HVAdam is an Adam with another preconditioner. {awake}
4. Compare over several seeds, beside an AdamW that is tuned as long. `hvadam sweep` does that.
"""


def render(content: Content) -> str:
    """The whole page."""
    found = content["rates"]
    parts = [_OPENING.format(short=_short(found), factor=factor(found["median_ratio"]))]
    if found["tasks"]:
        parts += [_RATES, _table(found)]
    words = {"spread": _spread(found), "options": _options(content), "awake": _awake(content)}
    parts.append(_FIRST.format(**words).replace(" \n", "\n"))
    return wrapped("\n\n".join(part.strip() for part in parts)) + "\n"


def factor(ratio: float | None) -> float:
    """What to multiply AdamW's rate by: 1, or the nearest of 3, 10 and their inverses.

    Example:
        >>> factor(1.5), factor(3.3), factor(0.1), factor(None)
        (1.0, 3.0, 0.1, 1.0)
    """
    if ratio is None or max(ratio, 1 / ratio) <= SAME:
        return 1.0
    rungs = [ladder(1.0, rung) for rung in range(-6, 7)]
    return min(rungs, key=lambda rung: abs(math.log(rung / ratio)))


def _short(found: Content) -> str:
    ratio = found["median_ratio"]
    defaults = optimizers.get(OURS).defaults
    rest = f"Leave `gamma` ({defaults['gamma']:g}) and `eps` ({defaults['eps']:g}) as they are"
    if ratio is None:
        return f"No task is finished yet, so start with AdamW's learning rate. {rest}."
    times = factor(ratio)
    start = "AdamW's learning rate" if times == 1 else f"{times:g} times AdamW's learning rate"
    total = len(found["tasks"])
    return (
        f"Start with **{start}**: on {total} small task{'s' * (total != 1)} the ratio of the best "
        f"rates was {ratio:.2g} in the (geometric) median, from {found['lowest_ratio']:.2g} to "
        f"{found['highest_ratio']:.2g}. {rest} at first."
    )


def _table(found: Content) -> str:
    rows = [
        [
            title(row),
            rate(row["adamw"]),
            rate(row["hvadam"]),
            f"{row['ratio']:.2g}" + (" (edge)" if row["at_edge"] else ""),
            "not tried" if row["short_at_adamws"] is None else short(row["short_at_adamws"]),
        ]
        for row in found["tasks"]
    ]
    return table(["", "AdamW", "HVAdam", "ratio", "at AdamW's rate"], rows)


def _spread(found: Content) -> str:
    if not found["tasks"]:
        return "The rate matters more than any other option."
    same = sum(max(row["ratio"], 1 / row["ratio"]) <= SAME for row in found["tasks"])
    return f"The two had the same best rate on {same} of {len(found['tasks'])} tasks."


def _awake(content: Content) -> str:
    seen = [board["hidden"] for board in content["tasks"] if board["hidden"]]
    runs, woke = (sum(one[key] for one in seen) for key in ("runs", "woke"))
    return f"On the small tasks it passed 1 in {woke} of {runs} runs." if runs else ""


def _options(content: Content) -> str:
    found = content["options"]
    told = [on_option(name, found[name]) for name in ("gamma", "eps") if name in found]
    if not told:
        return "Try `gamma` 0, 0.1 and 1 if there is time; the records do not tell yet."
    tasks = listed([f"`{task}`" for task in next(iter(found.values()))["tasks"]])
    again = (
        "These are single runs: what stood out was run again on fresh seeds for [decision 31]"
        "(../decisions/0031-defaults-after-the-comparison.md), which keeps the defaults."
    )
    said = " ".join([*told, again])
    return f"Then, if there is time, `gamma` and `eps`. By maps over {tasks}: {said}"
