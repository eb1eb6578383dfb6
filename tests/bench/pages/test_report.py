"""The report, from records that no run made."""

from __future__ import annotations

import base64
import json
import math
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from made_sweeps import SKILL, TASKS, Made, record, sweep

from hvadam_bench.analysis import effects, profiles, statistics
from hvadam_bench.analysis.grouping import TaskResults, command, group
from hvadam_bench.analysis.judging import middle_run
from hvadam_bench.cli import main
from hvadam_bench.cli.arguments import parse_changes
from hvadam_bench.pages import report
from hvadam_bench.pages.formatting import NOTHING
from hvadam_bench.pages.palette import look
from hvadam_bench.pages.report import charts, page
from hvadam_bench.pages.report.answers import Answer, answer_of
from hvadam_bench.pages.standings import ablation, results
from hvadam_bench.running.config import RunConfig
from hvadam_bench.running.records import Record, Store

# Few enough for quick intervals, with one that loses a run, and the ablation.
FEW = {name: SKILL[name] for name in ("adam", "lion", "hvadam", "hvadam1")}


class Page(HTMLParser):
    """A page taken apart: addresses it names, its tables, its embedded JSON, all its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.addresses: list[str] = []
        self.tables: list[list[list[str]]] = []
        self.scripts: list[str] = []
        self.sliders: list[dict[str, str | None]] = []
        self.text = ""
        self._path: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.addresses += [v or "" for k, v in attrs if k in ("src", "href", "srcset", "action")]
        self._path.append(tag)
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append("")
        elif tag == "input":
            self.sliders.append({k: v for k, v in attrs if k in ("min", "max", "value")})
        elif tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag: str) -> None:
        while tag in self._path and self._path.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        if "script" in self._path:
            self.scripts[-1] += data
        elif "style" not in self._path:
            self.text += data
            if "td" in self._path or "th" in self._path:
                self.tables[-1][-1][-1] += data.strip()

    @property
    def content(self) -> dict[str, Any]:
        return json.loads(self.scripts[0])


def stored(tmp_path: Path, *records: Record) -> Store:
    store = Store(tmp_path / "runs")
    store.folder.mkdir(parents=True)
    for one in records:
        store.put(one)
    return store


def board_of(*records: Record) -> TaskResults:
    [board] = group(records)
    return board


def test_one_page_that_fetches_nothing(tmp_path: Path) -> None:
    store = stored(tmp_path, *sweep(TASKS[0], FEW), *sweep(TASKS[1], FEW))
    [out] = report.write(store, tmp_path / "report.html")
    text = out.read_text(encoding="utf-8")
    made = Page(text)
    assert made.addresses
    assert all(address.startswith("#") for address in made.addresses)
    assert not re.findall(r"url\(|@import|https?://(?!www\.w3\.org)", text)
    assert "default-src 'none'" in text
    assert len(text) < 5e6
    assert set(made.content["charts"]) == {
        *("task-0-curves", "task-0-rates", "task-1-curves", "task-1-rates")
    }
    assert "Against Adam, HVAdam leans ahead on 2 of 2 tasks." in made.text


def test_numbers_are_those_of_the_statistics(tmp_path: Path) -> None:
    records = list(sweep(TASKS[1], FEW))
    made = Page(page.render_html(stored(tmp_path, *records)))
    rows = {row[0]: row[1:] for row in made.tables[0][1:]}
    assert list(rows) == ["HVAdam", "Adam", "Lion"]

    metric = statistics.Metric("perplexity", "min")
    judged = {
        name: [r for r in records if r.config.contender == name and r.role == "judged"]
        for name in FEW
    }
    values = [statistics.final(run, metric) for run in judged["hvadam"]]
    interval = statistics.bootstrap(values)
    shown = [statistics.summarize(values).median, interval.low, interval.high]
    assert numbers(rows["HVAdam"][0]) == pytest.approx(shown, abs=0.05)
    pairs = statistics.paired(judged["hvadam"], judged["adam"], metric)
    ours, theirs = zip(*pairs, strict=True)
    found = effects.compare(ours, theirs, effects.Scale("factor", 1.005))
    less = 100 * (1 - math.exp(-found.estimate))
    assert rows["HVAdam"][1] == f"−{less:.0f}% leans ahead (5 more seeds)"
    assert rows["Adam"][1] == "reference"
    pace, *others = rows["HVAdam"][4:]
    assert rows["HVAdam"][2:4] == ["5", "0.001"]
    assert re.fullmatch(r"[\d.]+ ms", pace)
    goal = profiles.target(judged["adam"], metric)
    assert goal is not None
    steps = profiles.middle_reached(judged["hvadam"], metric, goal).step
    assert others == [f"{steps:.0f}", "5 done", "3 done, 1 diverged, 1 pruned"]
    assert rows["Lion"][6] == "4 done, 1 diverged"


def test_markdown_has_the_same_tables(tmp_path: Path) -> None:
    store = stored(tmp_path, *sweep(TASKS[0], FEW))
    shown = Page(page.render_html(store)).tables
    lines = [line for line in page.render_markdown(store).splitlines() if line.startswith("|")]
    rows = [
        [cell.strip().strip("*").replace("\\", "") for cell in line.strip("|").split(" | ")]
        for line in lines
        if not line.startswith("|---")
    ]
    assert rows == [row for table in shown for row in table]
    assert len(shown) == 2  # results, ablation


def test_times_are_those_of_runs_that_had_the_machine_to_themselves() -> None:
    runs = [
        record(contender=name, seed=seed, pace=0.01 if alone else 0.09, alone=alone)
        for name in ("adam", "hvadam")
        for seed, alone in enumerate((True, True, True, False, None))
        if name == "adam" or not alone
    ]
    [task] = group(runs)
    table = results(task)
    rows = {row[0].text: dict(zip(table.heads, row, strict=True)) for row in table.cells}
    assert rows["Adam"]["time per step"].text == "10.0 ms"  # not the 90 of those that shared it
    assert [run.config.seed for run in rows["Adam"]["time per step"].records] == [0, 1, 2]
    assert rows["HVAdam"]["time per step"].text == NOTHING
    chart = charts.curves(task)
    assert chart is not None
    assert all("seconds" not in trace for trace in chart["traces"])


def test_without_times_their_columns_are_left_out(tmp_path: Path) -> None:
    for alone in (True, False, None):
        [task] = group(sweep(TASKS[0], FEW, alone=alone))
        table, chart = results(task), charts.curves(task)
        assert chart is not None
        assert ("time per step" in table.heads) is bool(alone)
        assert "steps to Adam's target" in table.heads
        assert ("had their machine to themselves" in table.reading) is bool(alone)
        assert all(("seconds" in trace) is bool(alone) for trace in chart["traces"])
        (tmp_path / str(alone)).mkdir()
        store = stored(tmp_path / str(alone), *sweep(TASKS[0], FEW, alone=alone))
        listed = Page(page.render_html(store)).content["runs"]
        assert {run["seconds"] is None for run in listed} == {not alone}


def test_every_cell_leads_to_its_runs_and_to_commands_that_repeat_them(tmp_path: Path) -> None:
    odd = {"lr": 0.01, "betas": [0.9, 0.99], "mode": "late one", "flag": True, "text": "1"}
    more = record(contender="adam", seed=7, options=odd, settings={"epochs": 3})
    store = stored(tmp_path, more, *sweep(TASKS[0], FEW))
    text = page.render_html(store)
    runs = Page(text).content["runs"]
    cells = re.findall(r'<td[^>]*>(?:<button[^>]*data-runs="([\d,]+)"[^>]*>)?([^<]*)', text)
    assert {words for places, words in cells if not places} == {"none"}  # runs that are not there
    linked = {int(place) for places, _ in cells if places for place in places.split(",")}
    assert linked == set(range(len(runs)))
    for run in runs:
        assert Record.from_line((store.folder / run["path"]).read_text())
    assert repeated(command(more.config)).key == more.config.key


def repeated(line: str) -> RunConfig:
    """As `hvadam run` reads it."""
    words = shlex.split(line)
    assert words[:2] == ["hvadam", "run"]
    pairs = list(zip(words[4::2], words[5::2], strict=True))
    given = dict(pairs)
    options, settings = parse_changes([value for name, value in pairs if name == "--set"])
    task, contender, scale, seed = *words[2:4], given["--scale"], int(given["--seed"])
    return RunConfig(task, contender, scale, seed, options, settings)


def test_nothing_is_called_ahead_inside_the_noise() -> None:
    def answer(seeds: int, better: float) -> Answer:
        runs = [record(contender="adam", seed=i) for i in range(seeds)]
        runs += [record(contender="hvadam", seed=i, loss=0.04 - better) for i in range(seeds)]
        board = board_of(*runs)
        marked = [row[0].contender for row in results(board).cells if row[1].mark]
        assert (marked == ["hvadam"]) == (seeds >= 10 and better > 0)
        return answer_of(board)

    assert answer(10, 0.03).kind == "ahead"
    assert answer(10, 0.03).badge == "use HVAdam"
    assert answer(10, 0.0).kind == "stay"
    assert (answer(5, 0.03).kind, answer(5, 0.03).badge) == ("leans", "leans to HVAdam")
    said = (
        "So far, use HVAdam at lr 0.001: it leans ahead of Adam, +1.87 points (n = 3); about 7 more"
    )
    assert answer(3, 0.03).sentence.startswith(said)
    assert answer(1, 0.03).kind == "stay"
    said = "So far, use Adam at lr 0.001: nobody leans ahead of it (n = 1)."
    assert answer(1, 0.03).sentence == said


def test_the_headline_is_whom_to_use_and_how_the_others_stand() -> None:
    ends = {"adamw": 0.04, "nadam": 0.02, "lion": 0.1, "radam": 0.04}
    runs = [
        record(TASKS[1], name, seed=i, loss=end) for name, end in ends.items() for i in range(10)
    ]
    runs += [record(TASKS[1], "sgd", seed=i, status="diverged") for i in range(10)]
    task = replace(board_of(*runs), compared_with="adamw")
    one = answer_of(task)
    said = (
        r"Use NAdam at lr 0\.001: it is ahead of AdamW, −\d\.\d+% \[−[\d.]+, −[\d.]+\] perplexity"
    )
    assert re.match(said, one.sentence)
    assert re.match(r"Behind: SGD \(diverged\), Lion \(\+3\d% perplexity\)\.", one.others)
    assert re.search(r"Undecided: RAdam \([−+][\d.]+% perplexity; [\w, ]+ more seeds\)", one.others)
    stays = answer_of(replace(task, compared_with="nadam"))
    assert stays.sentence == "Use NAdam at lr 0.001: nobody is ahead of it (n = 10)."
    assert stays.badge == "stay with NAdam"


def test_what_nobody_solves_has_no_verdict() -> None:
    runs = [record(TASKS[1], name, seed=i) for name in ("adam", "lion") for i in range(10)]
    runs = [replace(run, test={**run.test, "arrived": 0.0}) for run in runs]
    assert answer_of(board_of(*runs)).told.startswith("Nobody solves this task")


def test_hvadams_story_is_told_only_where_it_runs(tmp_path: Path) -> None:
    few = ("adamw", "nadam", "lion")
    runs = [record(contender=name, seed=i) for name in few for i in range(5)]
    store = stored(tmp_path, *runs)
    store.note_reference(runs[0].config.task, runs[0].config.scale, "lion")
    text = page.render_html(store)
    made = Page(text)
    assert "HVAdam" not in made.text
    assert "<h1>ResNet on CIFAR-10</h1>" in text
    assert made.tables[0][0][2] == "against Lion"
    assert "steps to Lion's target" in made.tables[0][0]
    assert "hidden vector" in page.render_html(stored(tmp_path / "own", record(contender="hvadam")))


def test_an_empty_store_says_so(tmp_path: Path) -> None:
    made = Page(page.render_html(stored(tmp_path)))
    assert "There are no records" in made.text
    assert made.tables == []


def test_one_record_is_shown_without_a_verdict(tmp_path: Path) -> None:
    made = Page(page.render_html(stored(tmp_path, record(contender="hvadam"))))
    assert "nothing to compare yet" in made.text
    assert made.tables[0][1][0] == "HVAdam"
    assert made.tables[0][1][3] == "1"
    assert "Not tuned on separate runs: HVAdam" in made.text


@pytest.mark.parametrize("status", ["diverged", "failed"])
def test_a_contender_without_an_end_is_shown(tmp_path: Path, status: Any) -> None:
    lost = [record(contender="hvadam", seed=i, status=status, reason="why") for i in range(3)]
    adam = [record(contender="adam", seed=i) for i in range(3)]
    made = Page(page.render_html(stored(tmp_path, *lost, *adam)))
    rows = {row[0]: row[1:] for row in made.tables[0][1:]}
    assert rows["HVAdam"][0] == {"diverged": "diverged", "failed": "no judged runs"}[status]
    assert rows["HVAdam"][-2] == f"3 {status}"
    assert {run["reason"] for run in made.content["runs"]} == {"why", ""}


def test_published_numbers_stand_only_beside_the_same_protocol(tmp_path: Path) -> None:
    task = TASKS[1]._replace(published={"adam": 85.04}, published_from="They are of a table.")
    same = board_of(record(task, "adam", scale="paper"))
    assert results(same).heads[3] == "published"
    assert "85.04" in results(same).cells[0][3].text
    assert "far as that is known. They are of a table." in page.Section(same, 0).published
    other = board_of(record(TASKS[1], "adam"))
    assert "published" not in results(other).heads
    assert page.Section(other, 0).published == ""  # a task of which the paper knows nothing
    known = board_of(record(TASKS[1]._replace(name="ptb_lstm1"), "adam"))
    assert "not its protocol" in page.Section(known, 0).published


def test_published_numbers_stand_beside_every_level_of_the_ablation() -> None:
    levels = {"hvadam0": 85.04, "hvadam1": 84.54, "hvadam2": 83.42, "hvadam": 83.31}
    task = TASKS[1]._replace(published=levels)
    table = ablation(board_of(*(record(task, name, scale="paper") for name in levels)))
    place = table.heads.index("published")
    assert [row[place].text for row in table.cells] == ["85.04", "84.54", "83.42", "83.31"]
    bare = ablation(board_of(*(record(TASKS[1], name) for name in levels)))
    assert "published" not in bare.heads


def test_odd_names_are_escaped(tmp_path: Path) -> None:
    name = "<q>&\"'|`</script>"
    task = TASKS[0]._replace(title=f"{name} title")
    one = record(task, "adam", reason=name, options={"lr": 0.1, "mode": name})
    store = stored(tmp_path, one, record(task, "<i>|*who*", seed=1))
    text = page.render_html(store)
    made = Page(text)
    assert "<q>" not in text
    assert "<i>" not in text
    assert f"{name} title" in made.text
    assert made.content["runs"][0]["reason"] == name
    lines = page.render_markdown(store).splitlines()
    row = next(line for line in lines if line.startswith("| ") and "who" in line)
    assert "\\<i>\\|\\*who\\*" in row


WGAN = Made("wgan", "A generator", "frechet", "min", 300.0, 20.0)


def generated(store: Store, run: Record, pictures: Mapping[int, bytes], **more: Any) -> Record:
    """A run that made pictures, in a store."""
    artifacts = {f"samples-{step:07d}.png": content for step, content in pictures.items()}
    made = replace(run, artifacts=tuple(artifacts), **more)
    store.put(made, artifacts)
    return made


def coded(picture: bytes) -> str:
    return base64.b64encode(picture).decode()


def test_samples_are_shown_at_every_step_and_embedded_once(tmp_path: Path) -> None:
    store = stored(tmp_path)
    start, middle = b"the same untrained network", b"adam at 200"
    generated(store, record(WGAN, "adam"), {0: start, 200: middle, 400: b"adam at 400"})
    lost = record(WGAN, "lion", status="diverged", reason="loss was inf at step 210")
    generated(store, lost, {0: start, 200: b"lion at 200"})
    same = {"status": "collapsed", "reason": "the samples are all alike, from step 200 to the end."}
    generated(store, record(WGAN, "hvadam"), {0: start, 200: b"h 200", 400: b"h 400"}, **same)
    text = page.render_html(store)
    made = Page(text)
    pictures = (start, middle, b"adam at 400", b"lion at 200", b"h 200", b"h 400")
    assert [text.count(coded(picture)) for picture in pictures] == [1] * len(pictures)
    # Without scripts: where each ended, in the order of the tables.
    last = [address for address in made.addresses if address.startswith("data:")]
    ends = (b"h 400", b"adam at 400", b"lion at 200")
    assert last == [f"data:image/png;base64,{coded(picture)}" for picture in ends]
    assert made.sliders == [{"min": "0", "max": "2", "value": "2"}]
    packed = json.loads(made.scripts[1])
    assert packed["steps"] == [0, 200, 400]
    shown = {name: own["shown"] for name, own in packed["figures"].items()}
    assert shown["hvadam"][0] == shown["adam"][0] == shown["lion"][0]
    assert packed["pictures"][shown["adam"][1]] == coded(middle)
    assert shown["lion"][1] == shown["lion"][2]  # it stays at its last one
    assert packed["figures"]["lion"]["values"][2].endswith("at step 200")
    assert "diverged: loss was inf at step 210" in made.text
    assert "collapsed: the samples are all alike, from step 200 to the end." in made.text
    assert "1 done, 1 collapsed, 1 diverged" in made.text


def test_the_page_opens_with_the_answer_and_says_what_hvadam_is(tmp_path: Path) -> None:
    store = Store(tmp_path / "runs")
    for run in sweep(TASKS[0]):
        store.put(run)
    picture = tmp_path / "paths.png"
    picture.write_bytes(b"paths down a valley")
    [out] = report.write(store, tmp_path / "report.html", paths=picture)
    text = out.read_text("utf-8")
    answer = text.index("So far, use HVAdam at lr 0.001: it leans ahead of Adam")
    about = text.index("HVAdam is Adam with a hidden vector")
    shown = text.index(base64.b64encode(picture.read_bytes()).decode())
    assert answer < about < shown < text.index('<section id="task-0">')
    [plain] = report.write(store, tmp_path / "plain.html")
    assert "Down a narrow valley" not in plain.read_text("utf-8")


def test_samples_are_of_the_run_in_the_middle() -> None:
    metric = statistics.Metric.of(record(WGAN))
    runs = [record(WGAN, seed=seed, loss=loss) for seed, loss in enumerate((0.4, 0.1, 0.2))]
    runs.append(record(WGAN, seed=3, status="diverged"))
    assert middle_run(runs[:3], metric).config.seed == 2
    assert middle_run(runs, metric).config.seed == 0  # of two the worse
    assert middle_run(runs[:2], metric._replace(goal="max")).config.seed == 1


def test_samples_that_are_missing_or_too_many_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = stored(tmp_path)
    adam = generated(store, record(WGAN, "adam"), {step: b"." * 100 for step in range(0, 401, 20)})
    lion = generated(store, record(WGAN, "lion"), {400: b"gone"})
    shutil.rmtree(store.artifacts_path(lion.config))
    (store.artifacts_path(adam.config) / "samples-0000200.png").unlink()
    board = board_of(*store)
    found = charts.samples(board, store)
    assert found is not None
    assert [figure["name"] for figure in found["figures"]] == ["adam"]
    assert found["steps"] == [step for step in range(0, 401, 20) if step != 200]
    monkeypatch.setattr(charts, "BUDGET", 350)
    found = charts.samples(board, store)
    assert found is not None
    assert (len(found["steps"]), found["steps"][-1], found["left_out"]) == (3, 400, 17)
    assert "Pictures of 17 more evaluations lie beside the records." in page.render_html(store)
    shutil.rmtree(store.artifacts_path(adam.config))
    assert "<h3>Samples" not in page.render_html(store)
    assert "amples" not in page.render_markdown(store)


def test_a_verdict_tells_of_collapses() -> None:
    runs = [record(WGAN, "adam", seed=seed) for seed in range(3)]
    for name in ("hvadam", "lion"):
        runs += [replace(record(WGAN, name, seed=seed), status="collapsed") for seed in range(3)]
    one = answer_of(board_of(*runs))
    assert "HVAdam and Lion collapsed on most seeds: the samples are all alike." in one.sentence


def test_a_frechet_distance_is_not_taken_for_fid_nor_its_noise_for_a_difference() -> None:
    runs = [record(WGAN, seed=seed) for seed in range(3)]
    noisy = [
        replace(run, test={**run.test, "frechet_sd": sd})
        for run, sd in zip(runs, (0.5, 1.25, 9.0), strict=True)
    ]
    table = results(board_of(*noisy))
    assert table.heads[1] == "test Fréchet distance (not FID)"
    assert "never with a published FID" in table.reading
    assert "The measure's own noise is 1.2:" in table.reading
    fid = [replace(run, test={**run.test, "fid": 1.0}) for run in runs]
    table = results(board_of(*fid))
    assert table.heads[1] == "test FID"
    assert "noise" not in table.reading


def test_contenders_of_the_registry_look_different() -> None:
    from hvadam_bench import contenders

    looks = [look(name) for name in contenders.names()]
    assert len({(one.light, one.dash) for one in looks}) == len(looks)
    assert len({one.label for one in looks}) == len(looks)
    assert look("hvadam").width > max(one.width for one in looks if one.label != "HVAdam")


def test_no_framework_is_needed(tmp_path: Path) -> None:
    stored(tmp_path, record(contender="adam"), record(contender="hvadam"))
    code = """
import sys
sys.modules["torch"] = None  # importing it fails
from hvadam_bench.cli import main
sys.exit(main(sys.argv[1:]))
"""
    arguments = ["report", "--store", "runs", "--out", "new/page.html", "--markdown"]
    subprocess.run([sys.executable, "-c", code, *arguments], check=True, cwd=tmp_path)
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == ["page.html", "page.md"]


def test_packed_records_are_read_too(tmp_path: Path) -> None:
    made = [record(contender=name, seed=seed) for name in ("adam", "hvadam") for seed in range(3)]
    folder, out = tmp_path / "packed", tmp_path / "page.html"
    store = Store(tmp_path / "runs", folder)
    for one in made:
        store.put(one)
    store.pack()
    assert main(["report", "--store", str(folder), "--out", str(out)]) == 0
    runs = Page(out.read_text(encoding="utf-8")).content["runs"]
    assert len(runs) == len(made)
    assert {run["path"].partition(",")[0] for run in runs} == {
        f"packed/{made[0].config.task}.jsonl.gz"
    }


def test_a_store_that_is_not_there_or_broken_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", "--store", str(tmp_path / "none")]) == 2
    assert "Make some with `hvadam sweep demo`" in capsys.readouterr().err
    store = stored(tmp_path, record())
    store.path(record().config).write_text("{")
    assert main(["report", "--store", str(store.folder), "--out", str(tmp_path / "x.html")]) == 2
    assert "is damaged" in capsys.readouterr().err
    assert not (tmp_path / "x.html").exists()


def numbers(text: str) -> list[float]:
    return [float(found) for found in re.findall(r"-?\d+\.\d+", text.replace("−", "-"))]
