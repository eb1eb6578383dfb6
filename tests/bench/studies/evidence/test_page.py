"""What the pages say follows from the evidence, and from nothing else."""

from __future__ import annotations

import html
import math
import re
import shutil
from io import BytesIO
from pathlib import Path
from xml.etree import ElementTree

import look
import numpy as np
import pytest
from made_evidence import fill, made_times, smooth, told
from PIL import Image

from hvadam_bench.pages.figures import encode, encode_svg, on_ground
from hvadam_bench.pages.markdown import wrap
from hvadam_bench.pages.palette import DARK, LIGHT, Ground
from hvadam_bench.pages.tables import Table
from hvadam_bench.studies._results import save
from hvadam_bench.studies.evidence import figures, page
from hvadam_bench.studies.evidence.describe import Plain
from hvadam_bench.studies.evidence.measure import compute
from hvadam_bench.studies.evidence.plan import contests

ROOT = Path(__file__).parents[4]
README = "# hvadam\n\n<!-- findings:start -->\nlast year's\n<!-- findings:end -->\n\nThe rest.\n"


def flat(text: str) -> str:
    """Without line breaks, which may fall anywhere in a sentence."""
    return " ".join(text.split())


def published(evidence: Plain, out: Path) -> dict[str, str]:
    """All that is written, by name, where it is text."""
    (out / "README.md").write_text(README)
    written = page.render({"evidence": evidence}, out)
    return {path.name: path.read_text("utf-8") for path in written if path.suffix != ".png"}


def test_the_answer_follows_from_the_verdicts(good: Plain, bad: Plain) -> None:
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


def test_who_is_ahead_of_both_is_named(bad: Plain) -> None:
    ahead = {"ahead": 2, "behind": 0, "equal": 0, "undecided": 0}
    behind = {**ahead, "ahead": 0, "behind": 2}
    tasks = [{**one, "family_best": "nadam"} for one in bad["minibatch"]["tasks"]]
    standings = {"reference": ahead, "family": behind}
    between = {**bad["minibatch"], "tasks": tasks, "standings": standings}
    second = page.answer({**bad, "minibatch": between})[1]
    assert second.startswith(
        "**With mini-batches: try NAdam first.** Against AdamW, HVAdam is ahead"
    )


def test_what_nobody_can_tell_is_not_told(good: Plain) -> None:
    counts = {"ahead": 0, "behind": 0, "equal": 1, "undecided": 1}
    even = {**good["smooth"], "standings": {"reference": counts, "family": counts}}
    said = page.answer({**good, "smooth": even})[0]
    assert "**On smooth, full-batch problems: no reason to change.**" in said
    assert "HVAdam is equal on 1 of 2 tasks and undecided on 1" in said
    useless = {**good["noise"]["rule"], "right": 3, "of": 5, "guess": 3}
    said = page.answer({**good, "noise": {**good["noise"], "rule": useless}})[-1]
    assert "its diagnostics do not say" in said
    assert "right in 3 of 5 cases, always guessing the same in 3." in said


def test_while_it_runs_the_pages_say_how_far_it_is(tmp_path: Path, good: Plain) -> None:
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


def rows_of(text: str, head: str) -> list[list[str]]:
    """Return the cells of the first table below a heading, its own heads first."""
    table = re.search(r"^\|(.*\n\|)+.*", text[text.index(f"# {head}\n") :], re.MULTILINE)
    assert table is not None
    lines = table[0].splitlines()
    return [line[2:-2].split(" | ") for line in (lines[0], *lines[2:])]


def test_every_number_of_a_table_is_that_of_the_evidence(good: Plain) -> None:
    task = good["smooth"]["tasks"][0]
    short, details = (page.render_part(part, good) for part in ("findings", "details"))
    heads, shown, *_ = rows_of(short, "Smooth problems")
    assert len(heads) == len(shown)
    assert shown[1:3] == [page.median(name, task) for name in ("hvadam", "adam")]
    duel = task["duels"]["adam"]
    ends = [math.exp(-duel[name]) for name in ("amount", "high", "low")]
    assert shown[3] == f"×{ends[0]:.2f} [{ends[1]:.2f}, {ends[2]:.2f}] ahead"
    assert shown[-1] == "100%, 100%"
    assert [row[-1] for row in rows_of(short, "Mini-batches")[1:]] == ["decoupled 0.01"] * 2
    # Every run and every rate is there.
    for one in task["contenders"].values():
        for value in (*one["values"], *one["rates"].values()):
            assert page.value(value, task) in details
    heads, *rows = rows_of(details, "Time to target")
    assert len(heads) == 1 + len(good["smooth"]["profiles"])
    assert {len(row) for row in rows} == {len(heads)}


def test_what_an_evaluation_takes_is_told_where_it_was_measured(
    tmp_path: Path, good: Plain
) -> None:
    assert "ms each" not in page.render_part("details", good)
    assert "an evaluation takes" not in flat(page.render_part("findings", good))
    save(made_times(), tmp_path / "evaluation-times.json")
    timed = {**good, "costs": compute(tmp_path, tmp_path, {})["costs"]}
    assert (
        "not seconds. With HVAdam's step an evaluation takes, by the median over tasks and from "
        "the least to the most, 1.27 times as long as with Adam's on smooth, full-batch problems "
        "(1.05 to 1.50) and 1.25 times as long as with AdamW's with mini-batches (1.25 to 1.25); "
        "3 rounds in turns, 1 thread (Abacus, 2 cores)."
    ) in flat(page.render_part("findings", timed))
    details = page.render_part("details", timed)
    measured, other = good["smooth"]["tasks"][0], good["minibatch"]["tasks"][1]
    heads, *rows = rows_of(details, measured["title"])
    at = heads.index("ms each (× Adam's)")
    shown = {re.sub(r"[*]", "", row[0]): row[at] for row in rows}
    assert shown["HVAdam"] == "3.00 (×1.50)"
    assert shown["Adam"] == "2.00 (×1.00)"
    assert shown["SGD"] == "–"  # which was not there
    # A task that was not timed has no column of dashes.
    assert not any("ms each" in head for head in rows_of(details, other["title"])[0])
    assert "ms each" in published(timed, tmp_path)["evidence.html"]


def test_differences_have_the_unit_that_matters() -> None:
    factors = {"unit": "factor", "margin": math.log(1.25), "solved": True}
    percents, points = {**factors, "margin": 0.005}, {**factors, "unit": "points", "margin": 0.3}
    ends = {"amount": math.log(4), "low": math.log(2), "high": math.log(10)}
    lower = {**ends, "verdict": "ahead"}
    assert page.judged(lower, factors) == "×0.25 [0.10, 0.50] ahead"
    assert page.judged(lower, {**factors, "solved": False}).endswith("] no verdict")
    assert page.judged({**lower, "low": None, "high": None}, factors) == "×0.25 ahead"
    small = {"amount": 0.003, "low": -0.001, "high": 0.008, "verdict": "undecided"}
    assert page.judged(small, percents) == "−0.30% [−0.80, +0.10] undecided"
    assert page.judged(small, points) == "0.00 [0.00, +0.01] undecided"
    assert page.judged({**small, "amount": None}, factors) == "– undecided"
    assert page.amount(math.log(1.25), factors) == "a factor of 1.25"
    assert page.amount(0.005, percents) == "0.50%"
    assert page.amount(0.3, points) == "0.30 points"
    assert page.amount(None, points) == "–"


def test_no_number_for_what_has_none(good: Plain) -> None:
    task = good["smooth"]["tasks"][0]
    adam, nadam = (task["contenders"][name] for name in ("adam", "nadam"))
    nothing = dict.fromkeys(("median", "low", "high", "to_target"))
    lost = {**adam, "values": [None] * 10, **nothing, "arrived": 0.0}
    some = {**nadam, "values": [None, *nadam["values"][1:]]}
    contenders = {**task["contenders"], "adam": lost, "nadam": some}
    gone = {**task, "contenders": contenders, "solved": False, "power": None, "target": None}
    evidence = {**good, "smooth": {**good["smooth"], "tasks": [gone]}}
    parts = ("readme", "findings", "details")
    front, short, details = (page.render_part(part, evidence) for part in parts)
    for text in (front, short, details):
        assert not re.search(r"\b(nan|NaN|inf|None)\b", text)
    figures.draw_files(evidence)
    assert "1 of 10 diverged" in details
    assert "no verdict" in short
    assert "1 of them is solved by nobody and gives no verdict" in flat(front)
    assert "gives no verdict" in details


def test_the_readme_changes_between_its_markers_only(good: Plain) -> None:
    own = page.render_part("readme", good)
    text = page.replace_block(README, own)
    before, _, rest = text.partition(page.START)
    block, _, after = rest.partition(page.END)
    assert (before, after) == (README.partition(page.START)[0], README.partition(page.END)[2])
    assert "last year" not in block
    assert page.replace_block(text, own) == text
    for broken in ("no markers", README.replace(page.END, ""), README + README):
        with pytest.raises(ValueError, match="needs the lines"):
            page.replace_block(broken, own)


def test_pages_have_all_they_name_and_old_figures_leave(tmp_path: Path, good: Plain) -> None:
    stale = tmp_path / "docs" / "figures" / "evidence-old.png"
    stale.parent.mkdir(parents=True)
    stale.write_bytes(b"")
    texts = published(good, tmp_path)
    names = ("suites", "suites-dark", "noise")
    assert {path.stem for path in stale.parent.iterdir()} == {f"evidence-{one}" for one in names}
    for name in re.findall(r"\]\(figures/(.*?)\)", texts["findings.md"]):
        assert (stale.parent / name).exists()
    for name in re.findall(r'(?:srcset|src)="(.*?)"', texts["README.md"]):
        assert (tmp_path / name).exists()
    hold_page(texts["evidence.html"])
    said = html.unescape(re.sub(r"<[^>]*>", "", texts["evidence.html"]))
    for line in page.answer(good):
        assert re.sub(r"[*`]", "", line) in said
    for claim in good["claims"]:
        assert claim["claim"] in said


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


def test_a_figure_is_the_same_drawing_on_either_ground(good: Plain) -> None:
    def drawn(chosen: Ground) -> tuple[bytes, bytes]:
        with on_ground(chosen):
            figure = figures.draw_suites([good["smooth"], good["minibatch"]])
            return encode(figure), encode_svg(figure, "suites")

    light, dark = drawn(LIGHT), drawn(DARK)
    assert drawn(LIGHT) == light
    day, night = (Image.open(BytesIO(png)).convert("L") for png, _ in (light, dark))
    assert day.size == night.size
    paper = [one.getpixel((0, 0)) for one in (day, night)]
    assert paper == [pytest.approx(255, abs=5), pytest.approx(0x17, abs=5)]
    assert np.max(np.asarray(night)) > 200  # ink stands out
    ElementTree.fromstring(light[1])


def test_a_row_for_each_task_and_dots_left_of_the_line_where_it_is_better(good: Plain) -> None:
    suites = [good["smooth"], good["minibatch"]]
    figure = figures.draw_suites(suites)
    assert len(figure.axes) == 2
    for axes, suite in zip(figure.axes, suites, strict=True):
        assert len(axes.get_yticks()) == len(suite["tasks"])
        marks = [
            one for one in axes.lines if one.get_marker() in ("o", "<")
        ]  # "<": beyond the edge
        places = [x for one in marks for x in np.atleast_1d(np.asarray(one.get_xdata()))]
        assert len(places) >= len(suite["tasks"])
        assert all(place < 0 for place in places)


def test_without_any_records_the_pages_and_the_terminal_say_so(tmp_path: Path) -> None:
    nothing = compute(tmp_path / "no", tmp_path / "results", contests())
    assert "not finished: pinn_convection" in list(page.printed({"evidence": nothing}))
    texts = published(nothing, tmp_path)
    assert "0 of 8 tasks are finished." in flat(texts["README.md"])
    assert "<picture>" not in texts["README.md"]
    assert not (tmp_path / "docs" / "figures").exists()
    assert "No task is finished yet." in texts["findings.md"]


def test_new_times_are_printed_the_reference_first() -> None:
    for alone, told_lines in ((True, 0), (None, 0), (False, 1)):
        [table, *lines] = page.printed({"evaluation-times": made_times(alone)})
        assert isinstance(table, Table)
        assert [[cell.text for cell in row] for row in table.cells[:3]] == [
            ["heat_pinn", "Adam", "2.00 (×1.00)"],
            ["heat_pinn", "NAdam", "2.00 (×1.00)"],
            ["heat_pinn", "HVAdam", "3.00 (×1.50)"],
        ]
        assert len([line for line in lines if "measure again" in str(line)]) == told_lines


def test_a_folder_without_a_readme_gets_none(tmp_path: Path, good: Plain) -> None:
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
