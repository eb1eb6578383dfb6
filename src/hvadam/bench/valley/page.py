"""The page that shows the study: every number in it is read from the results."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from hvadam.bench.valley.functions import FUNCTIONS
from hvadam.bench.valley.paths import triangle_steps
from hvadam.bench.valley.race import PAPER_FOUR
from hvadam.bench.valley.style import style_of

Results = dict[str, Any]
REGIMES = {"common": "common rate", "tuned": "own best rate"}

VERDICTS = ("**holds**", "mostly", "in part", "**does not hold**")

_INTRO = """\
# The valley

Made by `make valley`; the numbers are read from `valley.json` (committed under `results/`).

The paper introduces HVAdam with four functions of two variables and one path on each, but does not
say where the paths start. So this asks the question behind the figures: from {starts} starts per
function, who has the lowest loss after {steps} steps, and who first has a loss of {target:g}? Once
with the paper's learning rate for all ({lr:g}), and once with each optimizer's own.

{formulas}

- **Settings** are the paper's (appendix F.2): betas 0.9 and 0.999, eps 1e-12 for Adam, AdaBelief
  and HVAdam, gamma 0.5 and b = 10·δ/0.9 for HVAdam, β = 0.9 for SGDM. The paper does not say which
  SGDM; only averaged momentum fits what it says of f2, so SGDM here is `sgd_ema`.
- **Budget**: {steps} steps, which the paper states for f1 and f2 and not for the others. Runs go on
  to {horizon} steps to see who arrives.
- **Starts**: one drawn in each cell of a grid of {across} by {along} in the function's own
  coordinates, across and along the valley; f2 is f1 turned by 45 degrees and is raced from the same
  places of the same valley.
- **Own best rate**: 1e-4, 3e-4, ..., 1e-1 for everyone, further where the best is at an end;
  chosen by the median loss after {steps} steps from {tuning} other starts, which are not reported
  on. It is not chosen for arriving early, so who is first with it is a by-product.
- **The loss after so many steps** is the mean over the last {last}. With a constant rate a run ends
  in a cycle around a kink, and a single loss would tell in which phase it was caught.
- A tie is split. Losses below 1e-12 tie: those runs have arrived.
- A run whose loss passes 1e9, or is no number, has *diverged*: it stops, counts as infinite, and is
  counted below.
"""

_CAVEATS = """\
## Read with care

- These are noiseless problems of few variables with a constant learning rate. They show a
  mechanism; they do not rank optimizers for training.
- Weight decay is 0 for all: it pulls to the origin, where f1, f2 and Fig. 3's function have their
  minimum. AdamW is then Adam but for its eps. **Fromage** cannot be freed of this: its steps are
  proportional to the distance from the origin, so on those three functions it is told the answer,
  and it is left out of the win rates among all.
- A point is a vector, for which **Muon** is an AdamW by its own rule, and **Lookaround** without a
  model has one head, so it is SGD. **SWA** averages from three quarters of the budget on.
- With a constant rate nobody converges at a kink: on f1, f2 and Fig. 3's function the loss at the
  end is how far a run came, or how wide it swings. A first loss below the target there may be a
  swing that happens to pass the minimum.
- The own best rate is chosen on other starts than it is judged on. Where runs split into those that
  arrive and those that do not, the median jumps between the two, and the choice may turn out worse
  than the common rate.
- The three levels `hvadam0` to `hvadam2` are the paper's ablation; `hvadam0` is Adam.
"""


def render(results: Results) -> str:
    """The page, as Markdown beside a folder ``figures``."""
    functions = results["functions"]
    parts = [_intro(results)]
    if any("hvadam" in f["racers"] for f in functions.values()):
        parts.append(_verdicts(results))
    parts += [_wins(results), _losses(results), _maps(results)]
    parts += [_angle(results, dimension) for dimension in results["angle"]]
    if any(f["wins_of_all"] for f in functions.values()):
        parts.append(_everyone(results))
    parts += [_paths(results), _triangle(), _CAVEATS]
    return "\n".join(part for part in parts if part)


def _intro(results: Results) -> str:
    labels = {label.split("-")[0]: label for label in results["functions"]}
    formulas = _table(
        ("function", "", "angle", "dimension"),
        [
            (label, FUNCTIONS[name].formula, f"{f['angle']:g}°", f["dimension"])
            for name, label in labels.items()
            for f in [results["functions"][label]]
        ],
    )
    return _INTRO.format(
        starts=next(iter(results["functions"].values()))["starts"],
        steps=results["steps"],
        horizon=results["horizon"],
        target=results["target"],
        lr=results["common_lr"],
        across=results["grid"][0],
        along=results["grid"][1],
        tuning=results["tuning_starts"],
        last=results["last"],
        formulas=formulas,
    )


def _verdicts(results: Results) -> str:
    """Where the paper's claim holds: HVAdam lowest, HVAdam first."""
    rows = []
    told = []
    for criterion, claim in (("lowest", "lowest at the end"), ("first", "first to arrive")):
        for regime, rate in REGIMES.items():
            told.append(f"- **{claim}, {rate}**: " + _sorted_out(results, f"{regime} {criterion}"))
        for label, function in results["functions"].items():
            cells = [verdict(function["wins"][f"{regime} {criterion}"]) for regime in REGIMES]
            rows.append((label, claim, *cells))
    text = (
        "## Does the claim hold?\n\n"
        'The paper: "HVAdam reaches the optimal point [...] the fastest in all cases" and "gets '
        'the lowest loss in the end". *Holds* means on at least 95% of the starts, *mostly* on '
        "more than half, *in part* on more than anyone else.\n\n" + "\n".join(told) + "\n\n"
        "The share of starts that HVAdam wins, and that of the best of the others:\n\n"
    )
    return text + _table(("", "HVAdam is", *REGIMES.values()), rows) + _side_claims(results)


def _sorted_out(results: Results, key: str) -> str:
    """The functions by verdict."""
    found: dict[str, list[str]] = {word: [] for word in VERDICTS}
    for label, function in results["functions"].items():
        found[verdict(function["wins"][key]).split(":")[0]].append(label)
    return (
        "; ".join(f"{word} on {', '.join(labels)}" for word, labels in found.items() if labels)
        + "."
    )


def verdict(wins: dict[str, float]) -> str:
    """What a table of win shares says of HVAdam.

    Example:
        >>> verdict({"adam": 0.25, "hvadam": 0.75})
        'mostly: 75%, Adam 25%'
    """
    own = wins["hvadam"]
    rival = max((name for name in wins if name != "hvadam"), key=lambda name: wins[name])
    holds, mostly, partly, fails = VERDICTS
    word = partly if own > wins[rival] else fails
    if own > 0.5:
        word = holds if own >= 0.95 else mostly
    return f"{word}: {_percent(own)}, {style_of(rival).label} {_percent(wins[rival])}"


def _side_claims(results: Results) -> str:
    """What else the paper says of f1 and f2."""
    lines = []
    f1, f2 = (results["functions"].get(name) for name in ("f1", "f2"))
    if f1 and "sgd_ema" in f1["racers"]:
        beats = f1["duels"]["common lowest"]
        shares = [_percent(beats[name]["sgd_ema"]) for name in ("adam", "adabelief")]
        lines.append(
            "On f1 the paper has Adam and AdaBelief below SGDM: with the common rate they are on "
            f"{shares[0]} and {shares[1]} of the starts."
        )
    if f2 and "sgd_ema" in f2["racers"]:
        medians = {n: f2["contenders"][n]["common"]["loss"][1] for n in f2["racers"]}
        told = ", ".join(f"{style_of(n).label} {_loss(x)}" for n, x in medians.items())
        lines.append(
            'On f2 it has them "very close to the loss of SGDM" and HVAdam "much lower": the '
            f"medians are {told}."
        )
    return "".join(f"\n{line}\n" for line in lines)


def _wins(results: Results) -> str:
    """Win rates of the racers, by function and criterion."""
    names = {
        "lowest": f"lowest after {results['steps']}",
        "late": f"lowest after {results['horizon']}",
        "first": f"first to {results['target']:g}",
    }
    functions = results["functions"]
    racers = next(iter(functions.values()))["racers"]
    rows = [
        (label, names[criterion], rate, *(_percent(wins[name]) for name in racers))
        for label, function in functions.items()
        for criterion in names
        for regime, rate in REGIMES.items()
        for wins in [function["wins"][f"{regime} {criterion}"]]
    ]
    headings = ("", "", "rate", *(style_of(name).label for name in racers))
    note = "Shares that do not add up to 100%: on the rest nobody arrived.\n\n"
    return "## Win rates\n\n" + note + _table(headings, rows)


def _losses(results: Results) -> str:
    """Medians, quartiles, arrivals and divergences of the racers."""
    rows = []
    for label, function in results["functions"].items():
        for name in function["racers"]:
            for regime, rate in REGIMES.items():
                own = function["contenders"][name][regime]
                low, median, high = map(_loss, own["loss"])
                rows.append(
                    (
                        *(label, style_of(name).label, rate, f"{own['lr']:g}"),
                        f"{median} [{low}, {high}]",
                        *(own["reached"], _number(own["steps"]), own["diverged"]),
                    )
                )
    headings = (
        *("", "", "rate", "lr", f"loss after {results['steps']}: median [quartiles]"),
        *("arrived", "median steps", "diverged"),
    )
    note = (
        f"*Arrived*: starts from which a loss of {results['target']:g} was seen within "
        f"{results['horizon']} steps; *median steps* to it over all starts, none if fewer than "
        "half arrived.\n\n"
    )
    return "## Losses\n\n" + note + _table(headings, rows)


def _maps(results: Results) -> str:
    if not any(function["map"] for function in results["functions"].values()):
        return ""
    return (
        "## Who wins where\n\n"
        "A cell is a start, coloured by the winner; the cross is the minimum.\n\n"
        f"![Winners after {results['steps']} steps](figures/valley-map-lowest.png)\n\n"
        f"![Who first gets to {results['target']:g}](figures/valley-map-first.png)\n"
    )


def _angle(results: Results, dimension: str) -> str:
    study = results["angle"][dimension]
    plane = dimension == "2"
    where = "" if plane else f" in {dimension} dimensions"
    figure = "valley-angle.png" if plane else f"valley-angle-{dimension}d.png"
    angles = [row["angle"] for row in next(iter(study.values()))["common"]]
    headings = ("", "rate", *(f"{x:g}°" for x in angles), "last/first")
    rows = []
    for name in study:
        for regime, rate in REGIMES.items():
            medians = [row["loss"][1] for row in study[name][regime]]
            rows.append((style_of(name).label, rate, *map(_loss, medians), _ratio(medians)))
    explained = (
        "The starts turn with the valley, so a level line is what a method gets that treats all "
        "directions alike; what rises looks at one coordinate at a time. Median loss after "
        f"{results['steps']} steps from {results['sample']} starts, and how many times higher it "
        "is at the last angle than at the first. The own best rate is chosen at each angle.\n\n"
    )
    picture = f"![Loss against the angle{where}](figures/{figure})\n\n"
    told = _angle_findings(study)
    return f"## The angle of f2{where}\n\n" + explained + told + picture + _table(headings, rows)


def _angle_findings(study: dict[str, Any]) -> str:
    """HVAdam beside the best of the paper's other three, at both ends."""
    others = [name for name in PAPER_FOUR if name in study and name != "hvadam"]
    if "hvadam" not in study or not others:
        return ""
    lines = []
    for regime, rate in REGIMES.items():
        parts = []
        for end in (0, -1):
            at = {name: study[name][regime][end]["loss"][1] for name in (*others, "hvadam")}
            rival = min(others, key=lambda name: math.inf if at[name] is None else at[name])
            parts.append(
                f"at {study['hvadam'][regime][end]['angle']:g}° HVAdam's median is "
                f"{_loss(at['hvadam'])}, the best of the paper's others {_loss(at[rival])} "
                f"({style_of(rival).label})"
            )
        lines.append(f"- **{rate}**: {'; '.join(parts)}.\n")
    return "".join(lines) + "\n"


def _everyone(results: Results) -> str:
    """All contenders at once, and whom HVAdam does not beat."""
    count = len(next(iter(results["functions"].values()))["contenders"])
    text = (
        f"## All {count} contenders\n\n![Win rates](figures/valley-wins.png)\n\n"
        "![HVAdam against each](figures/valley-duels.png)\n\n"
        "HVAdam is higher than these from more than half of the starts, in order of how often:\n\n"
    )
    rows = []
    for label, function in results["functions"].items():
        for regime, rate in REGIMES.items():
            duels = function["duels"][f"{regime} lowest"]["hvadam"]
            ahead = sorted((share, name) for name, share in duels.items() if share < 0.5)
            told = ", ".join(f"{style_of(n).label} ({_percent(1 - s)})" for s, n in ahead)
            rows.append((label, rate, told or "none"))
    diverged = [
        f"{style_of(name).label} on {label} ({own['diverged']} of {function['starts']} starts)"
        for label, function in results["functions"].items()
        for name, contender in function["contenders"].items()
        for own in [contender["common"]]
        if own["diverged"]
    ]
    told = ", ".join(diverged) or "nobody"
    return (
        text
        + _table(("", "rate", "lower than HVAdam"), rows)
        + f"\nDiverged at the common rate: {told}.\n"
    )


def _paths(results: Results) -> str:
    flat = [label for label, f in results["functions"].items() if f["dimension"] == 2]
    if not flat:
        return ""
    pictures = "\n\n".join(f"![Paths on {label}](figures/valley-{label}.png)" for label in flat)
    return (
        "## Figs. 1 and 2 again\n\nOne start each, ours, for the paper names none; "
        "`hvadam valley --start X,Y` draws them from another. Squares mark where paths end.\n\n"
        f"{pictures}\n"
    )


def _triangle() -> str:
    rows = [
        (t, *(f"({_plain(x)}, {_plain(y)})" for x, y in (row["g"], row["m_hat"], row["v"])))
        for t, row in enumerate(triangle_steps(), 1)
    ]
    return (
        "## Fig. 3 again\n\n![The triangle](figures/valley-triangle.png)\n\n"
        "The paper prints −1.2105 for the second coordinate of m̂ at step 2. It is +1.2105: with "
        "the other sign v would not become (1, 1).\n\n"
        + _table(("step", "gradient", "m̂", "v"), rows)
    )


def _table(headings: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    lines = [headings, ["---"] * len(headings), *rows]
    escaped = ([str(cell).replace("|", "\\|") for cell in line] for line in lines)
    return "".join(f"| {' | '.join(line)} |\n" for line in escaped)


def _percent(share: float) -> str:
    if 0.995 <= share < 1:
        return ">99%"
    return "<1%" if 0 < share < 0.005 else f"{100 * share:.0f}%"


def _number(x: float | None) -> str:
    return "none" if x is None else f"{x:.2g}" if abs(x) < 100 else f"{x:.0f}"


def _loss(x: float | None) -> str:
    return "diverged" if x is None else _number(x)


def _ratio(medians: Sequence[float | None]) -> str:
    first, last = medians[0], medians[-1]
    return "none" if not first or last is None else _number(last / first)


def _plain(x: float) -> str:
    return f"{round(x, 4):g}".replace("-", "−")
