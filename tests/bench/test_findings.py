"""What the pages say follows from the records, and from nothing else."""

from __future__ import annotations

import html
import io
import json
import math
import re
import runpy
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from made_records import made_record
from rich.console import Console

from hvadam.bench.cli import main
from hvadam.bench.config import RunConfig
from hvadam.bench.evidence import store_of
from hvadam.bench.findings import howto, maps, measures, page, publish, readme, summary
from hvadam.bench.findings.reading import Recorded, Studies, planned, read
from hvadam.bench.findings.words import difference
from hvadam.bench.recipes.gan import NO_HIDDEN_STEP
from hvadam.bench.records import Point, Record
from hvadam.bench.report.numbers import Units
from hvadam.bench.search import Entry, Study
from hvadam.bench.stats import TUNING_SEED, Metric

ROOT = Path(__file__).parents[2]
README = "# hvadam\n\n<!-- findings:start -->\nlast year's\n<!-- findings:end -->\n\nThe rest.\n"
HVADAM = Entry("hvadam")
STILL = Entry("hvadam", {"hidden_scale": 0.0}, variant=NO_HIDDEN_STEP)
USUAL = Entry("hvadam", {"gamma": 0.0, "eps": 1e-16}, variant="usual")
FEW = [Entry("sgd"), Entry("adam"), Entry("adamw"), HVADAM, USUAL, STILL]
# Points of accuracy above the others.
GOOD = {"hvadam": 2.0, "hvadam (usual)": 1.0, "sgd": -3.0}

Fate = Callable[[RunConfig, Record], Record]


def study(task: str = "digits_mlp", entries: list[Entry] | None = None, **more: Any) -> Study:
    return Study(task, entries or FEW, trials=3, **more)


def ended(config: RunConfig, skill: Mapping[str, float]) -> Record:
    """A run whose end depends on who runs, a little on the seed, and on the rate: best is 3e-3,
    of AdamW 1e-3."""
    best = 1e-3 if config.contender == "adamw" else 3e-3
    off = abs(math.log10(config.options["lr"] / best))
    own = skill.get(config.entrant, 0.0) + 0.01 * len(config.entrant)
    value = (
        90 + own - off - 0.1 * (config.seed % 5) + 0.05 * (config.seed * len(config.entrant) % 3)
    )
    record = made_record(value, config=config, curve=[value - 20, value - 1.5, value])
    awake = {"model": {"hidden_gain": 2.0, "alignment": 0.5, "restarts": 1.0}}
    points = tuple(
        replace(p, step=p.step, diagnostics=awake if config.contender.startswith("hv") else {})
        for p in record.curve
    )
    return replace(record, curve=(Point(0, 0, 0.0, None, {"accuracy": 10.0}), *points))


def fill(
    folder: Path, studies: Studies, skill: Mapping[str, float] = GOOD, fate: Fate | None = None
) -> None:
    """Records of everything that the studies ask for."""
    for part, own in studies.items():
        store = store_of(folder, part)
        for arm in (arm for one in own for arm in one.arms()):
            while needed := arm.needed(Recorded(store)):
                for config in needed:
                    record = ended(config, skill)
                    store.put(fate(config, record) if fate else record)


def told(folder: Path, studies: Studies) -> dict[str, Any]:
    return summary.summarize(read(folder, studies), folder / "nowhere")


def flat(text: str) -> str:
    """Without line breaks, which may fall anywhere in a sentence."""
    return " ".join(text.split())


def published(tmp_path: Path, studies: Studies) -> dict[str, Any]:
    (tmp_path / "README.md").write_text(README)
    publish(tmp_path, tmp_path, Console(file=io.StringIO()), studies)
    return json.loads((tmp_path / "results" / "evidence.json").read_text(encoding="utf-8"))


def test_flip_the_records_and_the_words_flip(tmp_path: Path) -> None:
    studies = {"tasks": [study("cifar10_vgg11"), study("cifar10_vit_b16")]}
    fill(tmp_path / "good", studies)
    fill(tmp_path / "bad", studies, {"hvadam": -2.0})
    good, bad = (told(tmp_path / name, studies) for name in ("good", "bad"))

    assert good["headline"]["adam"] == {"ahead": 2, "tie": 0, "behind": 0, "unsettled": 0}
    assert bad["headline"]["adam"] == {"ahead": 0, "tie": 0, "behind": 2, "unsettled": 0}
    assert "against Adam, HVAdam is ahead on 2 of 2 tasks." in flat(page.render(good))
    assert "against Adam, HVAdam is behind on 2 of 2 tasks." in flat(page.render(bad))
    assert "**Where it is behind**: nowhere." in flat(page.render(good))
    assert "**Where HVAdam is ahead of Adam**: nowhere." in flat(page.render(bad))

    verdicts = [{c["claim"]: c["verdict"] for c in one["claims"]} for one in (good, bad)]
    for claim, expected in {
        "Outperforms all other optimizers with a vision transformer": ("holds", "does not hold"),
        # One of two networks is not there: that bears nothing out, but refutes.
        "The highest test accuracy with convolutional networks": ("holds in part", "does not hold"),
        "Following the hidden vector matters": ("holds", "does not hold"),
        "Outperforms almost all other optimizers": ("holds", "does not hold"),
        "Faster convergence": ("holds", "does not hold"),
        "The lowest perplexity with LSTMs": ("not finished", "not finished"),
        "Outperforms other adaptive methods on ImageNet": ("not testable here",) * 2,
    }.items():
        assert tuple(one[claim] for one in verdicts) == expected, claim


def test_noise_is_a_tie_and_three_seeds_settle_nothing(tmp_path: Path) -> None:
    studies = {"tasks": [study()], "generative": [study("wgan", seeds=3)]}

    def noisy(config: RunConfig, record: Record) -> Record:
        if config.seed >= TUNING_SEED or config.task == "wgan":
            return record
        swing = (-1) ** config.seed * (0.5 if config.contender == "hvadam" else 0)
        return replace(record, test={"accuracy": 90 + swing})

    fill(tmp_path, studies, fate=noisy)
    content = told(tmp_path, studies)
    text = flat(page.render(content))
    assert content["tasks"][0]["duels"]["adam"]["standing"] == "tie"
    assert "HVAdam ties on 1 of 1 task." in text
    assert content["generative"][0]["duels"]["adam"]["standing"] == "unsettled"
    gans = next(c for c in content["claims"] if "GANs" in c["claim"])
    assert gans["verdict"] == "undecided"
    assert "ahead of SGD, Adam and AdamW, unsettled" in gans["why"]
    assert "3 seeds settle nothing" in text


def test_numbers_are_those_of_the_records(tmp_path: Path) -> None:
    studies = {"tasks": [study()]}
    fill(tmp_path, studies)
    [board] = told(tmp_path, studies)["tasks"]
    entry, duel = board["entries"]["hvadam"], board["duels"]["adam"]
    store = store_of(tmp_path, "tasks")
    judged = [r for r in store if r.config.entrant == "hvadam" and r.config.seed < TUNING_SEED]
    values = sorted(r.test["accuracy"] for r in judged)
    assert entry["median"] == pytest.approx(values[2], rel=1e-5)
    assert entry["n"] == 5
    assert entry["options"] == {"lr": 3e-3}
    assert duel["percent"][0] == pytest.approx(100 * duel["difference"] / 90, rel=0.05)
    assert board["best_other"] == "adam"
    assert board["sooner"]["never"] == 0
    # A step of the made runs is as long for everyone.
    assert entry["pace"]["median"] == 1
    assert board["hidden"] == {"runs": 5, "woke": 5, "step": 10, "gain": 2, "restarts": 1}


def test_what_is_not_finished_is_named_and_not_counted(tmp_path: Path) -> None:
    studies = {"tasks": [study("digits_mlp"), study("digits_cnn"), study("cifar10_vgg11")]}
    fill(tmp_path, {"tasks": studies["tasks"][:2]})
    store = store_of(tmp_path, "tasks")
    lost = next(r for r in store if r.config.task == "digits_cnn" and r.config.contender == "sgd")
    store.path(lost.config).unlink()
    content = told(tmp_path, studies)
    assert [board["task"] for board in content["tasks"]] == ["digits_mlp"]
    assert sum(content["headline"]["adam"].values()) == 1
    cut = {one["task"]: (one["entries"], one["of"]) for one in content["unfinished"]}
    assert cut == {"digits_cnn": (5, 6), "cifar10_vgg11": (0, 6)}
    text = flat(page.render(content))
    assert "in no count: 2 studies" in text
    assert "| tasks | `digits_cnn` | 5 of 6 |" in text
    assert "Not finished: cifar10_vgg11 and digits_cnn." in flat(readme.render(content))
    # One of three tasks bears no claim out; nor is one in general judged.
    general = [c["verdict"] for c in content["claims"] if c["claim"].startswith("Following")]
    assert general == ["not finished"]
    # A run that failed is not over; its entry waits for another try.
    store.put(replace(lost, status="failed", reason="made so", test={}))
    assert told(tmp_path, studies)["unfinished"] == [
        {**one, "runs": one["runs"]} for one in content["unfinished"]
    ]


def test_without_evidence_one_line_and_nothing_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "README.md").write_text(README)
    assert main(["findings", "--evidence", str(tmp_path / "no"), "--out", str(tmp_path)]) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert "is finished (0 runs recorded)" in line
    assert "`hvadam evidence` makes them" in line
    assert [path.name for path in tmp_path.iterdir()] == ["README.md"]
    assert (tmp_path / "README.md").read_text() == README


def test_no_number_for_what_has_none(tmp_path: Path) -> None:
    studies = {"tasks": [study()], "generative": [study("wgan", seeds=3)]}

    def unlucky(config: RunConfig, record: Record) -> Record:
        if config.entrant == "hvadam (usual)" and config.seed != TUNING_SEED:
            return replace(record, status="diverged", test={}, curve=record.curve[:2])
        if config.entrant == "hvadam" and config.seed == 1:
            return replace(record, status="diverged", test={}, curve=record.curve[:2])
        if config.contender == "sgd" and config.task == "wgan":
            return replace(record, status="collapsed", test={"accuracy": 7654.321})
        return record

    fill(tmp_path, studies, fate=unlucky)
    content = published(tmp_path, studies)
    text = (tmp_path / "docs" / "findings.md").read_text(encoding="utf-8")
    for page_text in (text, (tmp_path / "README.md").read_text(encoding="utf-8")):
        assert not re.search(r"\b(nan|NaN|inf|None)\b(?! is bold)", page_text)
        assert "7654" not in page_text
    assert "| HVAdam (usual) | diverged | no number, behind |" in text
    assert re.search(r"\| SGD \| collapsed \| no number, \w+, unsettled \|", text)
    assert "1 of 5 diverged" in text
    assert content["tasks"][0]["duels"]["adam"]["standing"] in ("tie", "unsettled")


def test_a_settled_difference_shows_however_small() -> None:
    units = Units(Metric("perplexity", "min"), [[45.0, 46.0], [45.5, 46.5]])
    found = {"difference": 0.00027, "low": 0.00016, "high": 0.00076, "standing": "behind"}
    assert difference(found, units) == "+0.0003 [+0.0002, +0.0008]"
    assert difference({**found, "standing": "tie"}, units) == "0.0 [0.0, 0.0]"
    assert difference({**found, "difference": 0.3}, units) == "+0.3 [0.0, 0.0]"


def test_the_readme_changes_between_its_markers_only(tmp_path: Path) -> None:
    studies = {"tasks": [study()]}
    fill(tmp_path, studies)
    content = published(tmp_path, studies)
    text = (tmp_path / "README.md").read_text(encoding="utf-8")
    before, _, rest = text.partition(readme.START)
    block, _, after = rest.partition(readme.END)
    assert (before, after) == (README.partition(readme.START)[0], README.partition(readme.END)[2])
    assert "last year" not in block
    assert "| n |" in block
    assert readme.replace_block(text, content) == text
    for broken in ("no markers", README.replace(readme.END, ""), README + README):
        with pytest.raises(ValueError, match="needs the lines"):
            readme.replace_block(broken, content)


def test_everything_is_drawn_and_pages_are_made_of_the_json(tmp_path: Path) -> None:
    levels = [Entry(f"hvadam{i}") for i in range(3)] + [HVADAM]
    rates = (1e-3, 3e-3, 1e-2)
    mapped = Entry("hvadam", {}, {"gamma": [0.0, 0.5, 1.0]}, rates, "lr and gamma")
    more: dict[str, Any] = {"budget": "published", "seeds": 1}
    studies = {
        "tasks": [study()],
        "ablation": [study("digits_cnn", levels, settings={"epochs": epochs}) for epochs in (2, 8)],
        "sensitivity": [study("digits_mlp", [mapped], **more)],
        "generative": [study("wgan", seeds=3)],
    }

    def by_gamma(config: RunConfig, record: Record) -> Record:
        """Far from 0.5 is worse, by more than the noise; long runs are longer."""
        worse = 5 * abs(config.options.get("gamma", 0.5) - 0.5) * ("lr and" in config.variant)
        stretch = 2 * config.settings.get("epochs", 1)
        curve = tuple(
            replace(p, step=stretch * p.step, valid={"accuracy": p.valid["accuracy"] - worse})
            for p in record.curve
        )
        return replace(record, curve=curve)

    fill(tmp_path, studies, {**GOOD, "hvadam1": 0.5, "hvadam2": 1.0}, by_gamma)
    stale = tmp_path / "docs" / "figures" / "evidence-old.png"
    stale.parent.mkdir(parents=True)
    stale.write_bytes(b"")
    content = published(tmp_path, studies)
    assert {path.stem for path in stale.parent.iterdir()} == {
        f"evidence-{name}"
        for name in ("against-adam", "curves", "rates", "ablation", "maps", "generators")
    }
    text = (tmp_path / "docs" / "findings.md").read_text(encoding="utf-8")
    assert text == page.render(content)
    for name in re.findall(r"\]\(figures/(.*?)\)", text):
        assert (stale.parent / name).exists()
    for anchor in re.findall(r"\]\(#(.*?)\)", text):
        headings = [line.strip("# ").lower().replace(" ", "-") for line in text.splitlines()]
        assert anchor in headings
    assert content["options"]["gamma"]["everywhere"] == ["0.5"]
    assert "tied on all of 1 task: 0.5. The default, 0.5, is among them." in flat(text)
    ablation = next(c for c in content["claims"] if c["claim"].startswith("Every part"))
    assert ablation["verdict"] == "holds"
    guide = (tmp_path / "docs" / "howto" / "coming-from-adamw.md").read_text(encoding="utf-8")
    assert guide == howto.render(content)

    report = (tmp_path / "results" / "evidence.html").read_text(encoding="utf-8")
    assert flat(report).count("What we found") == 1
    assert page.headline(content) in html.unescape(flat(report))
    for claim in content["claims"]:
        assert claim["claim"] in html.unescape(report)
    assert report.count('<span class="badge">not testable here</span>') == 2
    anchors, figures = (set(re.findall(rf'{x}figure-([\w-]+)"', report)) for x in ("#", 'id="'))
    assert anchors == {"against-Adam", "ablation", "curves", "generators"}
    assert figures == {*anchors, "rates", "maps"}


def test_the_guide_reads_the_ratio_of_rates_and_its_program_runs(tmp_path: Path) -> None:
    studies = {"tasks": [study("digits_mlp"), study("digits_cnn")]}
    fill(tmp_path, studies)
    content = told(tmp_path, studies)
    assert content["rates"]["median_ratio"] == pytest.approx(3)
    guide = howto.render(content)
    assert "Start with **3 times AdamW's learning rate**" in guide
    run_program(guide, tmp_path)
    # Of a rate that AdamW liked, HVAdam's own tuning tells what it costs.
    cost = content["rates"]["tasks"][0]["short_at_adamws"]
    assert cost == pytest.approx(100 * math.log10(3) / 92, rel=0.05)


def run_program(guide: str, folder: Path) -> None:
    found = re.search(r"```python\n(.*?)```", guide, re.DOTALL)
    assert found
    program = folder / "program.py"
    program.write_text(found[1])
    runpy.run_path(str(program), run_name="__main__")


def test_maps_tell_apart_only_what_noise_does_not_explain(tmp_path: Path) -> None:
    rates = (1e-3, 3e-3)
    entry = Entry("hvadam", {}, {"gamma": [0.0, 0.5]}, rates, "lr and gamma")
    studies = {"sensitivity": [study("digits_mlp", [entry], budget="published", seeds=1)]}

    def by_gamma(config: RunConfig, record: Record) -> Record:
        value = 90.0 if config.options["gamma"] else 89.5
        return replace(record, curve=(replace(record.curve[-1], valid={"accuracy": value}),))

    fill(tmp_path, studies, fate=by_gamma)
    [reading] = read(tmp_path, studies)
    for noise, tied in ((0.5, [True, True]), (0.1, [False, True]), (None, [True, True])):
        found = maps.describe_map(reading, noise)
        assert [column["tied"] for column in found["columns"]] == tied
    assert found["columns"][0]["short"] == pytest.approx(100 * 0.5 / 90, rel=1e-4)


def test_the_plan_is_what_the_comparison_runs() -> None:
    studies = planned()
    assert list(studies) == ["tasks", "ablation", "sensitivity", "generative"]
    entrants = {entry.entrant for one in studies["tasks"] for entry in one.entries}
    assert {measures.USUAL, measures.STILL, "hvadam", "adam", "adamw"} <= entrants


def test_committed_pages_are_made_of_the_committed_numbers(tmp_path: Path) -> None:
    content = json.loads((ROOT / "results" / "evidence.json").read_text(encoding="utf-8"))
    text, guide, front = (
        (ROOT / name).read_text(encoding="utf-8")
        for name in ("docs/findings.md", "docs/howto/coming-from-adamw.md", "README.md")
    )
    assert text == page.render(content)
    assert guide == howto.render(content)
    assert front == readme.replace_block(front, content)
    for name in re.findall(r"\]\(figures/(.*?)\)", text):
        assert (ROOT / "docs" / "figures" / name).stat().st_size < 150_000
    run_program(guide, tmp_path)
