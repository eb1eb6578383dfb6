"""What the pages say follows from the records, and from nothing else."""

from __future__ import annotations

import html
import math
import re
import runpy
import shutil
from base64 import b64decode
from collections.abc import Callable, Mapping
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

import look
import numpy as np
import pytest
from made_records import made_record
from PIL import Image

from hvadam_bench.analysis.statistics import Metric
from hvadam_bench.cli import main
from hvadam_bench.publishing.figures import encode, on_ground
from hvadam_bench.publishing.findings import figures, page, part_figures, publish, tables
from hvadam_bench.publishing.findings.wording import difference
from hvadam_bench.publishing.formatting import Units
from hvadam_bench.publishing.markdown import wrap
from hvadam_bench.publishing.palette import DARK, LIGHT, Ground
from hvadam_bench.running.config import RunConfig
from hvadam_bench.running.records import Point, Record
from hvadam_bench.studies.evidence import describe, maps, summary
from hvadam_bench.studies.evidence.parts import Studies, planned, read, store_of
from hvadam_bench.studies.evidence.result import Claim, Duel, Evidence, Hidden
from hvadam_bench.sweeping.ledger import Ledger
from hvadam_bench.sweeping.recipes.gan import NO_HIDDEN_STEP
from hvadam_bench.sweeping.search import TUNING_SEED, Entry, Study

ROOT = Path(__file__).parents[3]
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
    start = Point(0, 0, 0.0, None, {"accuracy": 10.0})
    return replace(record, curve=(start, *points), alone=True)


def fill(
    folder: Path, studies: Studies, skill: Mapping[str, float] = GOOD, fate: Fate | None = None
) -> None:
    """Records of everything that the studies ask for."""
    for part, own in studies.items():
        store = store_of(folder, part)
        for arm in (arm for one in own for arm in one.arms()):
            while needed := arm.needed(Ledger(store)):
                for config, role in needed:
                    record = replace(ended(config, skill), role=role)
                    store.put(fate(config, record) if fate else record)


def told(folder: Path, studies: Studies) -> Evidence:
    return summary.summarize(read(folder, studies), folder / "nowhere")


def flat(text: str) -> str:
    """Without line breaks, which may fall anywhere in a sentence."""
    return " ".join(text.split())


def published(tmp_path: Path, studies: Studies) -> Evidence:
    (tmp_path / "README.md").write_text(README)
    evidence = summary.compute(tmp_path, tmp_path / "results", studies)
    publish(evidence, tmp_path)
    return Evidence.load(tmp_path / "results" / "evidence.json")


def claim_on(evidence: Evidence, start: str) -> Claim:
    return next(claim for claim in evidence.claims if claim.claim.startswith(start))


def test_flip_the_records_and_the_words_flip(tmp_path: Path) -> None:
    studies = {"tasks": [study("cifar10_vgg11"), study("cifar10_vit_b16")]}
    fill(tmp_path / "good", studies)
    fill(tmp_path / "bad", studies, {"hvadam": -2.0})
    good, bad = (told(tmp_path / name, studies) for name in ("good", "bad"))

    assert good.headline["adam"] == {"ahead": 2, "tie": 0, "behind": 0, "unsettled": 0}
    assert bad.headline["adam"] == {"ahead": 0, "tie": 0, "behind": 2, "unsettled": 0}
    assert "against Adam, HVAdam is ahead on 2 of 2 tasks." in flat(page.render_findings(good))
    assert "against Adam, HVAdam is behind on 2 of 2 tasks." in flat(page.render_findings(bad))
    assert "**Where it is behind**: nowhere." in flat(page.render_findings(good))
    assert "**Where HVAdam is ahead of Adam**: nowhere." in flat(page.render_findings(bad))

    verdicts = [{c.claim: c.verdict for c in one.claims} for one in (good, bad)]
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
    text = flat(page.render_findings(content))
    assert content.tasks[0].duels["adam"].standing == "tie"
    assert "HVAdam ties on 1 of 1 task." in text
    assert content.generative[0].duels["adam"].standing == "unsettled"
    gans = claim_on(content, "The lowest FID with all GANs")
    assert gans.verdict == "undecided"
    said = page.why(gans, content)
    assert "Small WGAN: 3 seeds settle nothing, but lean ahead of SGD, Adam and AdamW." in said
    assert "`sngan` is not finished." in said
    assert "3 seeds settle nothing" in text


def test_numbers_are_those_of_the_records(tmp_path: Path) -> None:
    studies = {"tasks": [study()]}
    fill(tmp_path, studies)
    [task] = told(tmp_path, studies).tasks
    entrant, duel = task.contenders["hvadam"], task.duels["adam"]
    store = store_of(tmp_path, "tasks")
    judged = [r for r in store if r.config.entrant == "hvadam" and r.role == "judged"]
    values = sorted(r.test["accuracy"] for r in judged)
    assert entrant.median == pytest.approx(values[2], rel=1e-5)
    assert entrant.n == 5
    assert entrant.options == {"lr": 3e-3}
    assert duel.difference is not None
    assert duel.percent[0] == pytest.approx(100 * duel.difference / 90, rel=0.05)
    assert task.best_other == "adam"
    assert task.sooner is not None
    assert task.sooner.never == 0
    # A step of the made runs is as long for everyone.
    assert entrant.pace is not None
    assert entrant.pace.median == 1
    assert task.hidden == Hidden(runs=5, woke=5, step=10, gain=2, restarts=1)


@pytest.mark.parametrize("alone", [True, False, None])
def test_training_times_are_of_runs_that_had_the_machine_to_themselves(
    alone: bool | None, tmp_path: Path
) -> None:
    studies = {"tasks": [study("cifar10_vgg11")]}
    fill(tmp_path, studies, fate=lambda config, record: replace(record, alone=alone))
    evidence = published(tmp_path, studies)
    assert (evidence.tasks[0].contenders["hvadam"].pace is not None) is bool(alone)
    text = (tmp_path / "docs" / "findings.md").read_text(encoding="utf-8")
    assert ("Time of a whole training step" in text) is bool(alone)


def test_what_is_not_finished_is_named_and_not_counted(tmp_path: Path) -> None:
    studies = {"tasks": [study("digits_mlp"), study("digits_cnn"), study("cifar10_vgg11")]}
    fill(tmp_path, {"tasks": studies["tasks"][:2]})
    store = store_of(tmp_path, "tasks")
    lost = next(r for r in store if r.config.task == "digits_cnn" and r.config.contender == "sgd")
    store.path(lost.config).unlink()
    content = told(tmp_path, studies)
    assert [task.task for task in content.tasks] == ["digits_mlp"]
    assert sum(content.headline["adam"].values()) == 1
    cut = {one.task: (one.finished, one.of) for one in content.unfinished}
    assert cut == {"digits_cnn": (5, 6), "cifar10_vgg11": (0, 6)}
    text = flat(page.render_findings(content))
    assert "in no count: 2 studies" in text
    assert "| tasks | `digits_cnn` | 5 of 6 |" in text
    assert "Not finished: cifar10_vgg11 and digits_cnn." in flat(page.render_block(content))
    # One of three tasks bears no claim out; nor is one in general judged.
    assert claim_on(content, "Following").verdict == "not finished"
    # A run that failed is not over; its entry waits for another try.
    store.put(replace(lost, status="failed", reason="made so", test={}))
    assert told(tmp_path, studies).unfinished == content.unfinished


def test_without_evidence_one_line_and_nothing_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "README.md").write_text(README)
    assert main(["findings", "--store", str(tmp_path / "no"), "--out", str(tmp_path)]) == 2
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
    assert re.search(r"\| SGD \| collapsed \| no number, leans \w+ \|", text)
    assert "1 of 5 diverged" in text
    assert content.tasks[0].duels["adam"].standing in ("tie", "unsettled")


def test_a_settled_difference_shows_however_small() -> None:
    units = Units(Metric("perplexity", "min"), [[45.0, 46.0], [45.5, 46.5]])
    percent = (-0.0006, -0.0017, -0.0004)
    found = Duel(5, 0.00027, 0.00016, 0.00076, 0.95, 0.06, "behind", "behind", percent)
    assert difference(found, units) == "+0.0003 [+0.0002, +0.0008]"
    assert difference(replace(found, standing="tie"), units) == "0.0 [0.0, 0.0]"
    assert difference(replace(found, difference=0.3), units) == "+0.3 [0.0, 0.0]"


def test_the_readme_changes_between_its_markers_only(tmp_path: Path) -> None:
    studies = {"tasks": [study()]}
    fill(tmp_path, studies)
    content = published(tmp_path, studies)
    text = (tmp_path / "README.md").read_text(encoding="utf-8")
    before, _, rest = text.partition(page.START)
    block, _, after = rest.partition(page.END)
    assert (before, after) == (README.partition(page.START)[0], README.partition(page.END)[2])
    assert "last year" not in block
    assert "| n |" in block
    assert page.replace_block(text, content) == text
    for broken in ("no markers", README.replace(page.END, ""), README + README):
        with pytest.raises(ValueError, match="needs the lines"):
            page.replace_block(broken, content)


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
    assert text == page.render_findings(content)
    for name in re.findall(r"\]\(figures/(.*?)\)", text):
        assert (stale.parent / name).exists()
    for anchor in re.findall(r"\]\(#(.*?)\)", text):
        headings = [line.strip("# ").lower().replace(" ", "-") for line in text.splitlines()]
        assert anchor in headings
    assert content.options["gamma"].everywhere == ("0.5",)
    assert "tied on all of 1 task: 0.5. The default, 0.5, is among them." in flat(text)
    assert claim_on(content, "Every part").verdict == "holds"
    guide = (tmp_path / "docs" / "howto" / "coming-from-adamw.md").read_text(encoding="utf-8")
    assert guide == page.render_guide(content)

    folded = (tmp_path / "docs" / "evidence.html").read_text(encoding="utf-8")
    assert page.headline(content) in html.unescape(flat(folded))
    for claim in content.claims:
        assert claim.claim in html.unescape(folded)
        assert page.why(claim, content).replace("`", "") in without_marks(folded)
    assert folded.count('<span class="badge">not testable here</span>') == 2
    hold_page(folded)
    # Once each, in either ground, with a caption; those of the light ground are the files.
    light, dark = (re.findall(rf'{x}="data:image/png;base64,(.*?)"', folded) for x in SHOWN)
    assert {b64decode(one) for one in light} == {
        path.read_bytes() for path in stale.parent.iterdir()
    }
    assert len(light) == len(set(dark) - set(light)) == folded.count("<figcaption>") == 6


SHOWN = ("<img src", "srcset")


def without_marks(page_text: str) -> str:
    return html.unescape(re.sub(r"<[^>]*>", "", page_text))


def hold_page(text: str) -> None:
    """A page has all that its links lead to, and folds all but the first things away."""
    ids = re.findall(r'id="([^"]*)"', text)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'href="#([^"]*)"', text)) <= set(ids)
    contents = text.partition('<ul class="contents">')[2].partition("</ul>")[0]
    assert re.findall(r'href="#([^"]*)"', contents) == [one for one in ids if one in contents]
    assert "<details open" not in text
    outside = re.sub(r"<details.*</details>", "", text, flags=re.DOTALL)
    assert "<table" not in outside
    assert text.count("<table") == text.count('<div class="scroll" tabindex="0">')
    assert len(text) < 1_500_000


def test_a_run_has_one_number_in_all_panels_of_a_figure() -> None:
    """The default's runs are in each map of a task, whatever is best in that map."""
    content = Evidence.load(ROOT / "results" / "evidence.json")
    figure = part_figures.draw_maps(content.maps)
    panels = [axes for axes in figure.axes if len(axes.texts) > 1]
    assert len(panels) == len(content.maps)
    for task in {one.task for one in content.maps}:
        columns = []
        for one, axes in zip(content.maps, panels, strict=True):
            if one.task == task:
                place = one.values.index(one.default)
                own = [text for text in axes.texts if text.get_position()[0] == place]
                columns.append([text.get_text() for text in own])
        assert columns == [columns[0]] * len(columns)
    # The first level computes a gain but takes no step that it multiplies.
    ablation = part_figures.draw_ablation(content.ablation)
    [legend] = ablation.legends
    labels = [text.get_text() for text in legend.get_texts()]
    assert labels == ["short runs", "long runs", "HVAdam¹", "HVAdam²", "HVAdam"]
    gains = ablation.axes[2]
    assert sum(np.size(line.get_xdata()) > 2 for line in gains.lines) == 3


def test_what_a_rate_three_times_off_costs(tmp_path: Path) -> None:
    studies = {"tasks": [study("digits_mlp"), study("digits_cnn")]}

    def fragile(config: RunConfig, record: Record) -> Record:
        lost = config.contender == "sgd" and config.options["lr"] > 3e-3
        return replace(record, status="diverged", test={}) if lost else record

    fill(tmp_path, studies, fate=fragile)
    content = told(tmp_path, studies)
    one = content.tasks[0].contenders["hvadam"]
    # A made run loses a point for each decade that its rate is off, of those that it has.
    top = one.rates["0.003"]
    assert top is not None
    assert one.third == pytest.approx(100 * math.log10(3) / top, rel=1e-3)
    assert one.triple == pytest.approx(100 * math.log10(10 / 3) / top, rel=1e-3)
    assert content.tasks[0].contenders["sgd"].triple == math.inf
    found = tables.off_rates(content.tasks)
    assert list(found)[-1] == "sgd"
    text = flat(page.render_findings(content))
    assert "HVAdam loses 0.5% with a third of its best rate and 0.6% with three times it" in text
    assert re.search(r"\| SGD \| \S+ \| diverged \|", text)


def test_a_picture_on_dark_ground_is_the_same_drawing_in_other_colours() -> None:
    tasks = Evidence.load(ROOT / "results" / "evidence.json").tasks

    def drawn(ground: Ground) -> bytes:
        with on_ground(ground):
            return encode(figures.draw_forest(tasks))

    light, dark = drawn(LIGHT), drawn(DARK)
    assert (light, dark) == (drawn(LIGHT), drawn(DARK))
    day, night = (Image.open(BytesIO(one)).convert("L") for one in (light, dark))
    assert day.size == night.size
    paper = [one.getpixel((0, 0)) for one in (day, night)]
    assert paper == [pytest.approx(255, abs=5), pytest.approx(0x17, abs=5)]
    assert np.max(np.asarray(night)) > 200  # ink stands out
    # Grey intervals, paper and bands aside, what is dark on one is bright on the other.
    ink = np.asarray(day) < 60
    assert np.mean(np.asarray(night)[ink] > 120) > 0.95


@pytest.mark.slow
def test_the_page_is_three_screens_and_fits_a_phone(tmp_path: Path) -> None:
    if not any(map(shutil.which, look.BROWSERS)):
        pytest.skip("no Chromium here")
    shown = ROOT / "docs" / "evidence.html"
    for size in look.SIZES:
        assert look.look(shown, tmp_path, size, "dark") == []
        assert (tmp_path / f"{size}-dark-unfolded.png").exists()
    with Image.open(tmp_path / "desktop-dark.png") as picture:
        assert picture.height <= 3 * 900


def test_the_guide_reads_the_ratio_of_rates_and_its_program_runs(tmp_path: Path) -> None:
    studies = {"tasks": [study("digits_mlp"), study("digits_cnn")]}
    fill(tmp_path, studies)
    content = told(tmp_path, studies)
    assert content.rates.median_ratio == pytest.approx(3)
    guide = page.render_guide(content)
    assert "Start with **3 times AdamW's learning rate**" in guide
    run_program(guide, tmp_path)
    # Of a rate that AdamW liked, HVAdam's own tuning tells what it costs.
    cost = content.rates.tasks[0].short_at_adamws
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
        assert [column.tied for column in found.columns] == tied
    assert found.columns[0].short == pytest.approx(100 * 0.5 / 90, rel=1e-4)


def test_the_evidence_has_one_form_and_comes_back_from_it(tmp_path: Path) -> None:
    studies = {"tasks": [study()]}

    def unlucky(config: RunConfig, record: Record) -> Record:
        """One run of HVAdam never gets where Adam ended, and most of SGD's diverge."""
        if config.seed >= TUNING_SEED or (config.entrant, config.seed) == ("hvadam", 1):
            return record
        lost = config.contender == "sgd" and config.seed > 1
        return replace(record, status="diverged", test={}) if lost else record

    fill(tmp_path, studies, {"hvadam": -2.0}, unlucky)
    evidence = told(tmp_path, studies)
    path = tmp_path / "evidence.json"
    path.write_text(evidence.to_text(), encoding="utf-8")
    assert Evidence.load(path) == evidence
    assert Evidence.load(path).to_text() == evidence.to_text()
    # What has no number is None, and an interval may reach infinity, which JSON has no sign for.
    [task] = evidence.tasks
    assert task.contenders["sgd"].median is None
    assert task.duels["sgd"].difference == math.inf
    assert '"difference":"inf"' in evidence.to_text()
    assert task.sooner is not None
    assert task.sooner.high == math.inf


def test_the_plan_is_what_the_comparison_runs() -> None:
    studies = planned()
    assert list(studies) == ["tasks", "ablation", "sensitivity", "generative"]
    entrants = {entry.entrant for one in studies["tasks"] for entry in one.entries}
    assert {describe.USUAL, describe.STILL, "hvadam", "adam", "adamw"} <= entrants


def test_committed_pages_are_made_of_the_committed_numbers() -> None:
    content = Evidence.load(ROOT / "results" / "evidence.json")
    text, guide, front = (
        (ROOT / name).read_text(encoding="utf-8")
        for name in ("docs/findings.md", "docs/howto/coming-from-adamw.md", "README.md")
    )
    assert text == page.render_findings(content)
    assert guide == page.render_guide(content)
    assert front == page.replace_block(front, content)
    folded = (ROOT / "docs" / "evidence.html").read_text(encoding="utf-8")
    hold_page(folded)
    pictures = {path.name: path.read_bytes() for path in (ROOT / "docs/figures").glob("evidence-*")}
    again = page.render_evidence(content, pictures, pictures)  # dark ones are nowhere else
    assert re.sub(r'srcset=".*?"', "", folded) == re.sub(r'srcset=".*?"', "", again)
    for prose in (text, guide):
        assert wrap(prose) + "\n" == prose
        assert not [line for line in prose.splitlines() if len(line) > 100 and line[0] not in "|<"]
        assert "unsettled," not in prose
    for name in re.findall(r"\]\(figures/(.*?)\)", text):
        assert (ROOT / "docs" / "figures" / name).stat().st_size < 150_000
