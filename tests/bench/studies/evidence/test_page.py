"""What the pages say follows from the evidence, and from nothing else."""

from __future__ import annotations

import html
import math
import re
import shutil
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from xml.etree import ElementTree

import look
import numpy as np
import pytest
from made_evaluation_times import made_evaluation_times
from made_evidence import fill, smooth, told
from PIL import Image

from hvadam_bench.pages.figures import encode, encode_svg, on_ground
from hvadam_bench.pages.markdown import wrap
from hvadam_bench.pages.palette import DARK, LIGHT, Ground
from hvadam_bench.studies._results import save
from hvadam_bench.studies.evidence import figures, page, tables
from hvadam_bench.studies.evidence.measure import compute
from hvadam_bench.studies.evidence.plan import contests
from hvadam_bench.studies.evidence.result import Difference, Evidence, Rule

ROOT = Path(__file__).parents[4]
README = "# hvadam\n\n<!-- findings:start -->\nlast year's\n<!-- findings:end -->\n\nThe rest.\n"


def flat(text: str) -> str:
    """Without line breaks, which may fall anywhere in a sentence."""
    return " ".join(text.split())


def published(evidence: Evidence, out: Path) -> dict[str, str]:
    """All that is written, by name, where it is text."""
    (out / "README.md").write_text(README)
    written = page.render({"evidence": evidence}, out)
    return {path.name: path.read_text("utf-8") for path in written if path.suffix != ".png"}


def test_the_answer_follows_from_the_verdicts(good: Evidence, bad: Evidence) -> None:
    first, second, momentum, best, rule = page.answer(good)
    assert first.startswith("**On smooth, full-batch problems: use it.** Against Adam, HVAdam is")
    assert "is ahead on 2 of 2 tasks; against the best of Adam's family, it is ahead on 2" in first
    assert first.endswith("All 2 tasks are finished.")
    assert second.startswith("**With mini-batches: use it.** Against AdamW, HVAdam is ahead on 2")
    assert "Against Adam with `beta1=0.95`, HVAdam is ahead on 2 of 2 tasks." in momentum
    assert "With `beta1=0.95` as well, it is ahead on 2 of 2 tasks." in momentum
    assert "on smooth, full-batch problems HVAdam on 2 of 2 tasks" in best
    assert '["alignment"]`. Above 0.4 HVAdam ended lower than Adam' in rule
    assert "in 3 of 3 cases (2 by always guessing the same)" in rule
    first, second, momentum, best, _ = page.answer(bad)
    assert first.startswith("**On smooth, full-batch problems: stay with Adam.** Against Adam,")
    assert second.startswith("**With mini-batches: stay with AdamW.**")
    assert "HVAdam is behind on 2 of 2 tasks." in momentum
    assert "HVAdam" not in best


def test_who_is_ahead_of_both_is_named(bad: Evidence) -> None:
    ahead = {"ahead": 2, "behind": 0, "equal": 0, "undecided": 0}
    behind = {**ahead, "ahead": 0, "behind": 2}
    tasks = tuple(replace(one, family_best="nadam") for one in bad.minibatch.tasks)
    standings = {"reference": ahead, "family": behind}
    between = replace(bad.minibatch, tasks=tasks, standings=standings)
    assert between.rival == "nadam"
    second = page.answer(replace(bad, minibatch=between))[1]
    assert second.startswith(
        "**With mini-batches: try NAdam first.** Against AdamW, HVAdam is ahead"
    )
    unsolved = tuple(replace(one, solved=False) for one in tasks)
    assert replace(between, tasks=unsolved).rival is None


def test_what_nobody_can_tell_is_not_told(good: Evidence) -> None:
    counts = {"ahead": 0, "behind": 0, "equal": 1, "undecided": 1}
    even = replace(good.smooth, standings={"reference": counts, "family": counts})
    said = page.answer(replace(good, smooth=even))[0]
    assert "**On smooth, full-batch problems: no reason to change.**" in said
    assert "HVAdam is equal on 1 of 2 tasks and undecided on 1" in said
    useless = Rule("alignment", 0.4, 3, 5, 3)
    said = page.answer(replace(good, noise=replace(good.noise, rule=useless)))[-1]
    assert "its diagnostics do not say" in said
    assert "right in 3 of 5 cases, always guessing the same in 3." in said


def test_while_it_runs_the_pages_say_how_far_it_is(tmp_path: Path, good: Evidence) -> None:
    planned = [smooth("heat_pinn"), smooth("two_spirals"), smooth("matrix_factorization")]
    fill(tmp_path / "runs", {"smooth": planned[:1]})
    evidence = told(tmp_path / "runs", {"smooth": planned})
    texts = published(evidence, tmp_path)
    for name in ("README.md", "findings.md"):
        said = flat(texts[name])
        assert "**On smooth, full-batch problems: too early to say.**" in said
        assert "1 of 3 tasks is finished." in said
        assert "**With mini-batches: no answer yet.**" in said
        assert "How to tell beforehand**: the runs that could say are not finished." in said
    assert "| smooth | `two_spirals` |  | 0 of 6 | 0 |" in texts["findings.md"]
    nothing = told(tmp_path / "none", {"smooth": planned})
    texts = published(nothing, tmp_path)
    assert "0 of 3 tasks are finished." in flat(texts["README.md"])
    assert "<picture>" not in texts["README.md"]
    assert list((tmp_path / "docs" / "figures").iterdir()) == []
    assert "No task is finished yet." in texts["findings.md"]


def test_every_number_of_a_table_is_that_of_the_evidence(good: Evidence) -> None:
    task = good.smooth.tasks[0]
    [row, *_] = tables.suite(good.smooth).rows
    shown = [str(cell) for cell in row]
    ours, adam = task.contenders["hvadam"], task.contenders["adam"]
    assert shown[1:3] == [tables.value(one.median, task) for one in (ours, adam)]
    duel = task.duels["adam"]
    assert None not in (duel.amount, duel.low, duel.high)
    ends = [math.exp(-(x or 0)) for x in (duel.amount, duel.high, duel.low)]
    assert shown[3] == f"×{ends[0]:.2f} [{ends[1]:.2f}, {ends[2]:.2f}] ahead"
    assert shown[-1] == "100%, 100%"
    batches = tables.suite(good.minibatch)
    assert [str(row[-1]) for row in batches.rows] == ["decoupled 0.01"] * 2
    # Every run and every rate is there.
    details = page.render_details(good)
    for one in task.contenders.values():
        for value in one.values:
            assert tables.value(value, task) in details
        for rate in one.rates.values():
            assert tables.value(rate, task) in details
    for suite in good.suites:
        heads = tables.targets(suite).heads
        assert len(heads) == 1 + len(suite.profiles)


def test_what_an_evaluation_takes_is_told_where_it_was_measured(
    tmp_path: Path, good: Evidence
) -> None:
    assert "ms each" not in page.render_details(good)
    assert "an evaluation takes" not in flat(page.render_findings(good))
    save(made_evaluation_times(), tmp_path / "evaluation-times.json")
    costs = compute(tmp_path, tmp_path, {}).costs
    timed = replace(good, costs=costs)
    assert (
        "not seconds. With HVAdam's step an evaluation takes, by the median over tasks and from "
        "the least to the most, 1.27 times as long as with Adam's on smooth, full-batch problems "
        "(1.05 to 1.50) and 1.25 times as long as with AdamW's with mini-batches (1.25 to 1.25); "
        "3 rounds in turns, 1 thread (Abacus, 2 cores)."
    ) in flat(page.render_findings(timed))
    measured, other = tables.everyone(good.smooth.tasks[0], costs), good.minibatch.tasks[1]
    at = measured.heads.index("ms each (× Adam's)")
    shown = {row[0].text: row[at].text for row in measured.cells}
    assert shown["HVAdam"] == "3.00 (×1.50)"
    assert shown["Adam"] == "2.00 (×1.00)"
    assert shown["SGD"] == "–"  # which was not there
    # A task that was not timed has no column of dashes.
    assert not any("ms each" in head for head in tables.everyone(other, costs).heads)
    texts = published(timed, tmp_path)
    assert "ms each" in texts["evidence.html"]


def test_differences_have_the_unit_that_matters(good: Evidence) -> None:
    factors = replace(good.smooth.tasks[0], unit="factor", margin=math.log(1.25))
    percents, points = replace(factors, margin=0.005), replace(factors, unit="points", margin=0.3)
    lower = Difference("adam", 10, math.log(4), math.log(2), math.log(10), 0.01, "ahead")
    assert tables.difference(lower, factors) == "×0.25 [0.10, 0.50]"
    small = Difference("adam", 10, 0.003, -0.001, 0.008, 0.01, "undecided")
    assert tables.difference(small, percents) == "−0.30% [−0.80, +0.10]"
    assert tables.difference(small, points) == "0.00 [0.00, +0.01]"
    nobody = Difference("adam", 0, None, None, None, None, "undecided")
    assert tables.difference(nobody, factors) == "–"
    assert tables.amount(math.log(1.25), factors) == "a factor of 1.25"
    assert tables.amount(0.005, percents) == "0.50%"
    assert tables.amount(0.3, points) == "0.30 points"
    assert tables.amount(None, points) == "–"


def test_no_number_for_what_has_none(good: Evidence) -> None:
    task = good.smooth.tasks[0]
    adam = task.contenders["adam"]
    lost = replace(
        adam, values=(None,) * 10, median=None, low=None, high=None, to_target=None, arrived=0.0
    )
    some = replace(adam, values=(None, *adam.values[1:]))
    contenders = {**task.contenders, "adam": lost, "nadam": some}
    gone = replace(task, contenders=contenders, solved=False, power=None, target=None)
    suite = replace(good.smooth, tasks=(gone,))
    evidence = replace(good, smooth=suite)
    front, short = page.render_block(evidence), page.render_findings(evidence)
    details = page.render_details(evidence)
    for text in (front, short, details):
        assert not re.search(r"\b(nan|NaN|inf|None)\b", text)
    figures.draw_suites(evidence)
    assert "1 of 10 diverged" in details
    assert "no verdict" in short
    assert "1 of them is solved by nobody and gives no verdict" in flat(front)
    assert "gives no verdict" in details


def test_the_readme_changes_between_its_markers_only(good: Evidence) -> None:
    text = page.replace_block(README, good)
    before, _, rest = text.partition(page.START)
    block, _, after = rest.partition(page.END)
    assert (before, after) == (README.partition(page.START)[0], README.partition(page.END)[2])
    assert "last year" not in block
    assert page.replace_block(text, good) == text
    for broken in ("no markers", README.replace(page.END, ""), README + README):
        with pytest.raises(ValueError, match="needs the lines"):
            page.replace_block(broken, good)


def test_pages_have_all_they_name_and_old_figures_leave(tmp_path: Path, good: Evidence) -> None:
    stale = tmp_path / "docs" / "figures" / "evidence-old.png"
    stale.parent.mkdir(parents=True)
    stale.write_bytes(b"")
    texts = published(good, tmp_path)
    files = {path.name for path in stale.parent.iterdir()}
    named = re.findall(r"figures/(.+?)[\")]", texts["findings.md"] + texts["README.md"])
    assert files == set(named)
    assert {"evidence-suites.svg", "evidence-suites-dark.svg", "evidence-noise.svg"} <= files
    for name in re.findall(r"\]\(figures/(.*?)\)", texts["findings.md"]):
        assert (stale.parent / name).exists()
    for name in re.findall(r'(?:srcset|src)="(.*?)"', texts["README.md"]):
        assert (tmp_path / name).exists()
    hold_page(texts["evidence.html"])
    said = html.unescape(re.sub(r"<[^>]*>", "", texts["evidence.html"]))
    for line in page.answer(good):
        assert re.sub(r"[*`]", "", line) in said
    for claim in good.claims:
        assert claim.claim in said


def hold_page(text: str) -> None:
    """A page has all that its links lead to, and folds all tables away."""
    ids = re.findall(r'id="([^"]*)"', text)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'href="#([^"]*)"', text)) <= set(ids)
    assert "<details open" not in text
    outside = re.sub(r"<details.*</details>", "", text, flags=re.DOTALL)
    assert "<table" not in outside
    assert text.count("<table") == text.count('<div class="scroll" tabindex="0">')
    assert len(text) < 1_500_000


def test_a_figure_is_the_same_drawing_on_either_ground(good: Evidence) -> None:
    def drawn(chosen: Ground) -> tuple[bytes, bytes]:
        with on_ground(chosen):
            figure = figures.draw_suites(good)
            return encode(figure), encode_svg(figure, "suites")

    light, dark = drawn(LIGHT), drawn(DARK)
    assert drawn(LIGHT) == light
    day, night = (Image.open(BytesIO(png)).convert("L") for png, _ in (light, dark))
    assert day.size == night.size
    paper = [one.getpixel((0, 0)) for one in (day, night)]
    assert paper == [pytest.approx(255, abs=5), pytest.approx(0x17, abs=5)]
    assert np.max(np.asarray(night)) > 200  # ink stands out
    ElementTree.fromstring(light[1])


def test_a_row_for_each_task_and_dots_left_of_the_line_where_it_is_better(good: Evidence) -> None:
    figure = figures.draw_suites(good)
    assert len(figure.axes) == 2
    for axes, suite in zip(figure.axes, good.suites, strict=True):
        assert len(axes.get_yticks()) == len(suite.tasks)
        marks = [
            one for one in axes.lines if one.get_marker() in ("o", "<")
        ]  # "<": beyond the edge
        places = [x for one in marks for x in np.atleast_1d(np.asarray(one.get_xdata()))]
        assert len(places) >= len(suite.tasks)
        assert all(place < 0 for place in places)


def test_without_any_records_the_pages_and_the_terminal_say_so(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text(README)
    nothing = compute(tmp_path / "no", tmp_path / "results", contests())
    page.render({"evidence": nothing}, tmp_path)
    assert "not finished: pinn_convection" in list(tables.printed({"evidence": nothing}))
    assert "0 of 8 tasks are finished" in flat((tmp_path / "README.md").read_text())


def test_a_folder_without_a_readme_gets_none(tmp_path: Path, good: Evidence) -> None:
    page.render({"evidence": good}, tmp_path)
    assert not (tmp_path / "README.md").exists()
    assert (tmp_path / "docs" / "findings.md").exists()


@pytest.mark.slow
def test_the_page_is_three_screens_and_fits_a_phone(tmp_path: Path) -> None:
    if not any(map(shutil.which, look.BROWSERS)):
        pytest.skip("no Chromium here")
    shown = ROOT / "docs" / "evidence.html"
    for size in look.SIZES:
        assert look.look(shown, tmp_path, size, "dark") == []
        assert (tmp_path / f"{size}-dark-unfolded.png").exists()
    with Image.open(tmp_path / "desktop-dark.png") as picture:
        assert picture.height <= 3.2 * 900


def test_committed_pages_are_of_a_readable_size() -> None:
    text = (ROOT / "docs/findings.md").read_text(encoding="utf-8")
    assert wrap(text) + "\n" == text
    assert not [line for line in text.splitlines() if len(line) > 100 and line[0] not in "|<"]
    assert len(text.splitlines()) < 200
    for path in (ROOT / "docs" / "figures").glob("evidence-*"):
        assert path.stat().st_size < 150_000
