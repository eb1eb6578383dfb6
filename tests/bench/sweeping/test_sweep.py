from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_records import made_record
from made_sweeps import Inline, Instant, peak

from hvadam_bench import contenders, tasks
from hvadam_bench.analysis.grouping import ContenderRuns, group
from hvadam_bench.pages.report.answers import answer_of
from hvadam_bench.pages.report.page import sections_of
from hvadam_bench.running.config import RunConfig
from hvadam_bench.running.records import REFERENCE_NOTE, Record, Store
from hvadam_bench.sweeping.costs import Costs
from hvadam_bench.sweeping.engines import Outcome
from hvadam_bench.sweeping.recipe import Recipe
from hvadam_bench.sweeping.search import (
    EXTENSIONS,
    Arm,
    Contest,
    Entry,
    ladder,
    narrowed,
)
from hvadam_bench.sweeping.sweep import Sweep


def run(study: Contest, store: Store, end: Callable[[RunConfig], Record | Outcome]) -> tuple:
    sweep, engine = Sweep([study], store), Instant(store, end)
    sweep.run(engine)
    return sweep, engine


def runs_of(sweep: Sweep, name: str) -> ContenderRuns:
    """Return one contender's runs in the sweep's only study."""
    [reading] = sweep.results()
    assert reading.results is not None
    return reading.results.contenders[name]


EVERYONE = [Entry(name) for name in contenders.names()]


def test_everyone_gets_the_same_number_of_trials_around_its_own_default() -> None:
    for arm in Contest("digits_mlp", EVERYONE).arms():
        rates = sorted(trial.options["lr"] for trial in arm.trials)
        assert len(set(rates)) == 7
        default = contenders.get(arm.entry.contender).defaults["lr"]
        assert rates[3] / default == pytest.approx(1, rel=0.25)  # 2.5e-3 is between two rungs
        assert rates[-1] / rates[0] == pytest.approx(1000)


def test_another_option_to_search_costs_everyone_as_many_trials() -> None:
    entries = [Entry("adam"), Entry("hvadam", axes={"gamma": (0.0, 0.1, 0.5, 1.0)})]
    entries.append(Entry("padam", axes={"partial": (0.1, 0.2, 0.3)}))
    adam, hvadam, padam = Contest("digits_mlp", entries, trials=5).arms()
    assert len(adam.trials) == len(hvadam.trials) == len(padam.trials) == 20
    assert len({trial.options["lr"] for trial in adam.trials}) == 20
    assert len({trial.options["lr"] for trial in hvadam.trials}) == 5
    assert {trial.options["gamma"] for trial in hvadam.trials} == {0.0, 0.1, 0.5, 1.0}
    # No narrower for being finer.
    assert max(t.options["lr"] for t in adam.trials) >= max(t.options["lr"] for t in hvadam.trials)
    # Who is left out of a run changes nothing for the others.
    alone = narrowed([Contest("digits_mlp", entries, trials=5)], contenders=["adam"])[0].arms()
    assert [arm.trials for arm in alone] == [adam.trials]


def test_a_rate_can_be_anothers(store: Store) -> None:
    entries = [Entry("adam"), Entry("nadam", rate_of="adam"), Entry("sgd", rates=[0.5])]
    study = Contest("digits_mlp", entries, trials=3, seeds=2)
    sweep, engine = run(study, store, peak(1e-3))
    assert runs_of(sweep, "adam").options["lr"] == 1e-3
    assert runs_of(sweep, "nadam").options["lr"] == 1e-3
    assert runs_of(sweep, "sgd").options["lr"] == 0.5
    for name in ("nadam", "sgd"):  # nobody else tunes
        assert sorted(j.config.seed for j in engine.jobs if j.config.contender == name) == [0, 1]
    # Who is asked for alone brings who tunes for it.
    [narrow] = narrowed([study], contenders=["nadam"])
    assert [arm.entry.contender for arm in narrow.arms()] == ["adam", "nadam"]


PLAIN = Contest("digits_mlp", [Entry("adam"), Entry("hvadam")])


@pytest.mark.parametrize(
    ("contenders", "reference", "compared", "running"),
    [
        (None, None, "adam", ["adam", "hvadam"]),
        (["nadam", "adam"], None, "adam", ["adam", "nadam"]),
        (["adamw", "nadam"], None, "adamw", ["adamw", "nadam"]),
        (["adamw", "nadam"], "nadam", "nadam", ["adamw", "nadam"]),
        (["adamw", "nadam"], "sgd", "sgd", ["adamw", "nadam", "sgd"]),
        (None, "sgd", "sgd", ["adam", "hvadam", "sgd"]),
    ],
)
def test_the_reference_is_the_one_named_or_the_studys_own_or_the_first(
    contenders: list[str] | None, reference: str | None, compared: str, running: list[str]
) -> None:
    [study] = narrowed([PLAIN], contenders=contenders, reference=reference)
    assert study.reference == compared
    assert [arm.entry.contender for arm in study.arms()] == running


def test_a_sweep_without_adam_has_verdicts_and_its_report_knows_the_reference(store: Store) -> None:
    [study] = narrowed([PLAIN], contenders=["nadam", "adamw"], seeds=10, rates=[1e-3])

    def end(config: RunConfig) -> Record:
        return made_record(0.9 if config.contender == "nadam" else 0.8, config=config)

    sweep, _ = run(study, store, end)
    [reading] = sweep.results()
    assert reading.results is not None
    assert answer_of(reading.results).told == (
        "Use NAdam at lr 0.001: nobody is ahead of it (n = 10). Behind: AdamW (−10.00 points)."
    )
    [section] = sections_of(store, store)
    assert section.answer.told == answer_of(reading.results).told
    run(replace(study, reference="adamw"), store, end)  # all is recorded
    [section] = sections_of(store, store)
    assert section.answer.badge == "use NAdam"


def test_rates_and_changes_are_for_everyone() -> None:
    entries = [
        Entry("adam", {"lr": 0.1}),
        Entry("nadam", rate_of="adam"),
        Entry("sgd", rates=[1.0]),
    ]
    study = Contest("digits_mlp", entries, settings={"width": 8}, tuning_settings={"epochs": 1})
    changes = {"options": {"weight_decay": 0.1}, "settings": {"epochs": 2}}
    [changed] = narrowed([study], rates=[1e-3, 3e-3], **changes)
    for arm in changed.arms():
        assert [trial.options["lr"] for trial in arm.trials] == [1e-3, 3e-3]
        assert {trial.options["weight_decay"] for trial in arm.trials} == {0.1}
        for config in (*arm.tuning(arm.trials), *arm.judging({})):
            assert config.settings == {"width": 8, "epochs": 2}
    assert narrowed([study]) == [study]


@given(st.sampled_from([1e-3, 3e-3, 2e-4, 30.0, 0.1]), st.integers(-9, 9), st.integers(1, 5))
def test_rungs_rise_by_three_and_ten(first: float, rung: int, fineness: int) -> None:
    assert ladder(first, rung, fineness) < ladder(first, rung + 1, fineness)
    # Three digits of each are kept.
    assert ladder(first, 2 * fineness, fineness) == pytest.approx(10 * first, rel=1e-2)
    assert ladder(first, rung * fineness, fineness) == pytest.approx(ladder(first, rung), rel=1e-2)


def test_a_finer_grid_is_finer_for_everyone_and_grows_by_its_own_steps(store: Store) -> None:
    [adam] = Contest("digits_mlp", [Entry("adam")], trials=3, fineness=2).arms()
    assert sorted(one.options["lr"] for one in adam.trials) == [5.48e-4, 1e-3, 1.73e-3]
    study = Contest("digits_mlp", [Entry("adam")], trials=3, fineness=2, seeds=1)
    sweep, _ = run(study, store, peak(3e-3))
    [arm] = study.arms()
    tried = sorted(one.options["lr"] for one in arm.tuned(sweep.ledger).trials)
    assert tried == [5.48e-4, 1e-3, 1.73e-3, 3e-3, 5.48e-3]


def test_the_winner_is_judged_by_seeds_nobody_tuned_on(store: Store) -> None:
    study = Contest("digits_mlp", [Entry("adam"), Entry("sgd")], tuning_seeds=2, seeds=4)
    sweep, engine = run(study, store, peak(3e-3))
    adam, sgd = runs_of(sweep, "adam"), runs_of(sweep, "sgd")
    assert adam.options == sgd.options == {"lr": 3e-3}
    assert adam.tuned
    assert [run.config.seed for run in adam.judged] == [0, 1, 2, 3]
    assert {run.config.options["lr"] for run in adam.judged} == {3e-3}
    assert {config.seed for config in engine.tuning} == {1000, 1001}
    # Adam's grid has 3e-3 inside, that of SGD begins there and had to grow, once.
    assert (len(adam.trials), len(sgd.trials)) == (7, 7 + 1)
    assert len(engine.jobs) == len({job.config.key for job in engine.jobs})
    assert len(engine.jobs) == 2 * (7 * 2 + 4) + 2


@pytest.mark.parametrize(
    ("best", "extensions", "at_edge"), [(0.3, 3, False), (1e-9, EXTENSIONS, True)]
)
def test_a_best_rate_at_the_edge_extends_the_grid(
    store: Store, best: float, extensions: int, at_edge: bool
) -> None:
    sweep, _ = run(Contest("digits_mlp", [Entry("adam")], seeds=1), store, peak(best))
    adam = runs_of(sweep, "adam")
    assert (len(adam.trials), adam.at_edge) == (7 + extensions, at_edge)
    tried = sorted(options["lr"] for options in adam.trials)
    assert tried[-1] == (1.0 if best == 0.3 else 0.03)


def test_all_diverged_searches_downwards(store: Store) -> None:
    study = Contest("digits_mlp", [Entry("adam")], trials=3, seeds=1)
    sweep, _ = run(study, store, peak(1e-6))
    assert runs_of(sweep, "adam").options == {"lr": 1e-6}


def test_a_second_time_does_nothing_and_a_third_with_more_seeds_only_those(store: Store) -> None:
    study = Contest("digits_mlp", [Entry("adam")], seeds=2)
    first, _ = run(study, store, peak(1e-3))
    again, idle = run(study, store, peak(1e-3))
    assert idle.jobs == []
    assert again.results() == first.results()
    _, more = run(replace(study, seeds=3), store, peak(1e-3))
    assert [job.config.seed for job in more.jobs] == [2]


def test_a_published_search_is_repeated_as_it_was(store: Store) -> None:
    entries = [
        Entry("adam", {"lr": 1e-3}),
        Entry("hvadam", {"eps": 1e-8}, {"gamma": (0.0, 1.0)}, rates=(1e-2, 1e-3)),
    ]
    study = Contest("digits_mlp", entries, budget="published", seeds=1)
    sweep, engine = run(study, store, peak(1.0))
    assert {config.contender for config in engine.tuning} == {"hvadam"}
    assert len(engine.tuning) == 4
    adam, hvadam = runs_of(sweep, "adam"), runs_of(sweep, "hvadam")
    assert adam.judged[0].config.options == {"lr": 1e-3}
    assert not adam.tuned
    assert hvadam.options == {"eps": 1e-8, "lr": 1e-2, "gamma": 0.0}  # the edge is accepted
    assert len(hvadam.trials) == 4


def test_a_task_that_cannot_start_leaves_the_others_alone(store: Store) -> None:
    def end(config: RunConfig) -> Record | Outcome:
        if config.task == "digits_cnn":
            return Outcome(config, "refused", "its data is not here")
        return peak(1e-3)(config)

    studies = [Contest(task, [Entry("adam")], seeds=1) for task in ("digits_mlp", "digits_cnn")]
    sweep, engine = Sweep(studies, store), Instant(store, end)
    sweep.run(engine)
    assert sweep.refused == {"digits_cnn": "its data is not here"}
    mlp, cnn = sweep.results()
    assert (mlp.finished, cnn.finished, cnn.results) == (True, False, None)
    # Two were under way when the first was refused.
    assert sum(job.config.task == "digits_cnn" for job in engine.jobs) <= 2


def test_the_longest_run_goes_first(store: Store) -> None:
    seconds = {"digits_mlp": 1.0, "digits_cnn": 60.0}

    def end(config: RunConfig) -> Record:
        return replace(peak(1e-3)(config), train_seconds=seconds[config.task])

    for task in seconds:
        store.put(end(RunConfig(task, "adam", seed=77, options={"lr": 1e-3})))
    studies = [Contest(task, [Entry("adam")], seeds=1) for task in seconds]
    engine = Instant(store, end)
    Sweep(studies, store).run(engine)
    assert [job.config.task for job in engine.jobs[:7]] == ["digits_cnn"] * 7


def test_progress_ends_with_all_runs_over(store: Store) -> None:
    seen = []
    study = Contest("digits_mlp", [Entry("adam"), Entry("sgd")], seeds=2)
    Sweep([study], store).run(Instant(store, peak(3e-3)), seen.append)
    assert seen[0].over == 0
    assert seen[0].total == 2 * (7 + 2)
    assert seen[-1].over == seen[-1].total == 2 * (7 + 2) + 1  # SGD's grid grew
    assert seen[-1].seconds_left == 0
    assert seen[-1].running == []


def test_rivals_are_the_same_contenders_trials_and_winners_have_none(store: Store) -> None:
    entries = [Entry("adam"), Entry("sgd")]
    study = Contest("digits_mlp", entries, seeds=1, pruner="median")
    _, engine = run(study, store, peak(3e-3))
    tuned = [job for job in engine.jobs if job.role == "tuning"]
    assert {job.pruner for job in tuned} == {"median"}
    counts = [len(job.rivals) for job in tuned if job.config.contender == "adam"]
    assert counts == sorted(counts)
    assert max(counts) < 7
    assert {job.pruner for job in engine.jobs if job not in tuned} == {"none"}


def test_trainings_see_as_many_examples_for_everyone(store: Store) -> None:
    entries = [Entry("sgd"), Entry("hvadam")]
    study = Contest("digits_mlp", entries, scale="smoke", trials=3, seeds=1)
    sweep, engine = Sweep([study], store, "quick"), Inline(store)
    sweep.run(engine)
    for name in ("sgd", "hvadam"):
        found = runs_of(sweep, name)
        examples = 2 * 16 * 64  # epochs, batches, examples
        assert found.tuning_examples == len(found.trials) * examples
        assert len(found.trials) >= 3
        assert found.judged[0].test["accuracy"] > 50
        assert {run.gradient_evaluations for run in found.judged} == {2 * 16}
    assert {record.study for record in store} == {"quick"}
    roles = {record.config.key: record.role for record in store}
    assert roles == {job.config.key: job.role for job in engine.jobs}
    again = Inline(store)
    Sweep([study], store).run(again)
    assert again.jobs == []


COMMAND = [sys.executable, "-m", "hvadam", "sweep", "demo"]
NARROW = ["--tasks", "digits_cnn", "--contenders", "adam,sgd", "--scale", "smoke", "--seeds", "2"]


def values(store: Store) -> dict[str, tuple]:
    """What every record says, without how long it took."""
    return {
        record.config.key: (record.status, record.test, [point.valid for point in record.curve])
        for record in store
    }


@pytest.mark.slow
def test_a_killed_sweep_goes_on_to_the_same_records(tmp_path: Path) -> None:
    whole, broken = Store(tmp_path / "whole"), Store(tmp_path / "broken")
    command = [*COMMAND, *NARROW, "--workers", "2", "--store"]
    subprocess.run([*command, str(whole.folder)], check=True, stdout=subprocess.DEVNULL)
    process = subprocess.Popen([*command, str(broken.folder)], stdout=subprocess.DEVNULL)
    wait_until(lambda: len(list(broken)) >= 3)
    process.send_signal(signal.SIGKILL)
    process.wait()
    wait_until(lambda: not workers_of(process.pid, broken))
    kept = {path: path.stat().st_mtime_ns for path in broken.folder.rglob("*.json")}
    assert 3 <= len(kept) < len(list(whole))
    subprocess.run([*command, str(broken.folder)], check=True, stdout=subprocess.DEVNULL)
    assert values(broken) == values(whole)
    assert kept == {path: path.stat().st_mtime_ns for path in kept}  # none was made again
    leftovers = {path.name for path in broken.folder.rglob("*") if path.suffix not in ("", ".json")}
    assert leftovers == {REFERENCE_NOTE}


def workers_of(pid: int, store: Store) -> bool:
    """Whether a checkpoint or record still changes: the workers notice that they are alone."""
    before = sorted((path, path.stat().st_mtime_ns) for path in store.folder.rglob("*"))
    time.sleep(1)
    return before != sorted((path, path.stat().st_mtime_ns) for path in store.folder.rglob("*"))


def wait_until(condition: Callable[[], bool], seconds: float = 300) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.05)


@pytest.mark.slow
def test_the_command_line_reports_and_refuses(tmp_path: Path) -> None:
    environment = {**os.environ, "COLUMNS": "200"}

    def sweep(*args: str) -> subprocess.CompletedProcess[str]:
        command = [*COMMAND[:-1], *args, "--store", str(tmp_path)]
        return subprocess.run(command, capture_output=True, text=True, env=environment)

    done = sweep("demo", *NARROW)
    assert done.returncode == 0, done.stderr
    assert "against Adam" in done.stdout
    assert sweep("demos").stderr.startswith("hvadam: there is no recipe or task 'demos'")
    assert "there is no engine 'cloud'" in sweep("demo", "--engine", "cloud").stderr
    assert "there is no pruner" in sweep("demo", "--pruner", "hedge").stderr
    assert "is for --engine ray" in sweep("demo", "--address", "auto").stderr


def test_arms_remember_nothing(store: Store) -> None:
    study = Contest("digits_mlp", [Entry("adam")], seeds=1)
    sweep, _ = run(study, store, peak(1e-3))
    [arm] = study.arms()
    assert isinstance(arm, Arm)
    assert arm.needed(sweep.ledger) == []
    assert arm.tuned(sweep.ledger).best == runs_of(sweep, "adam").options


def test_a_run_made_for_another_purpose_is_read_in_the_plans_role(store: Store) -> None:
    study = Contest("digits_mlp", [Entry("adam")], trials=3, seeds=1)
    sweep, _ = run(study, store, peak(1e-3))
    for record in list(store):
        store.put(replace(record, study="", role="judged"))
    again, engine = run(study, store, peak(1e-3))
    assert engine.jobs == []
    assert runs_of(again, "adam").options == runs_of(sweep, "adam").options
    assert len(runs_of(again, "adam").tuning) == 3


def test_the_report_groups_a_sweeps_records_as_the_sweep_does(store: Store) -> None:
    study = Contest("digits_mlp", [Entry("adam"), Entry("sgd")], seeds=2)
    sweep, _ = run(study, store, peak(3e-3))
    [reported] = group(store)
    [reading] = sweep.results()
    assert reading.results is not None
    assert list(reported.contenders) == list(reading.results.contenders)
    for name, ours in reading.results.contenders.items():
        theirs = reported.contenders[name]
        assert (theirs.options, theirs.at_edge) == (ours.options, ours.at_edge)
        for kind in ("judged", "tuning", "rest"):
            keys = [sorted(run.config.key for run in getattr(one, kind)) for one in (ours, theirs)]
            assert keys[0] == keys[1], kind


def test_tuning_at_half_length_chooses_for_runs_of_full_length(store: Store) -> None:
    half, full = {"epochs": 2}, {"epochs": 4, "batch_size": 16}
    study = Contest(
        *("digits_mlp", [Entry("adam"), Entry("sgd")], "smoke"),
        **{"settings": full, "tuning_settings": half, "trials": 3, "seeds": 2},
    )
    sweep, engine = Sweep([study], store, "halved"), Instant(store, peak(3e-3))
    sweep.run(engine)
    assert {job.config.settings["epochs"] for job in engine.jobs if job.role == "tuning"} == {2}
    assert {job.config.settings["epochs"] for job in engine.jobs if job.role == "judged"} == {4}
    assert {job.config.settings["batch_size"] for job in engine.jobs} == {16}
    [reading] = sweep.results()
    assert reading.finished
    assert reading.results is not None
    assert reading.results.settings == full
    # A report has no plan, only records: it finds the same.
    for results in (reading.results, *group(store)):
        adam = results.contenders["adam"]
        assert results.settings == full
        assert adam.options == {"lr": 3e-3}
        assert adam.tuned
        assert {run.config.seed for run in adam.judged} == {0, 1}
        assert len(adam.tuning) >= 3
    _, idle = run(study, store, peak(3e-3))
    assert idle.jobs == []


def test_before_anything_is_judged_results_have_the_settings_to_be_judged(store: Store) -> None:
    study = Contest(
        *("digits_mlp", [Entry("adam")], "smoke"),
        **{"settings": {"epochs": 4}, "tuning_settings": {"epochs": 2}, "trials": 3, "seeds": 1},
    )
    [arm] = study.arms()
    store.put(replace(peak(1e-3)(arm.tuning(arm.trials)[0]), role="tuning"))
    [reading] = Sweep([study], store).results()
    assert reading.unfinished == ["adam"]
    assert reading.results is not None
    assert reading.results.settings == {"epochs": 4}


def test_half_length_takes_half_the_time(store: Store) -> None:
    study = Contest("digits_mlp", [Entry("adam")], "smoke", trials=3, seeds=1)
    epochs = tasks.get("digits_mlp").scales["smoke"]["epochs"]
    halved = replace(study, settings={"epochs": 2 * epochs}, tuning_settings={"epochs": epochs})
    one, other = (Sweep([s], store).progress(1).seconds_left for s in (study, halved))
    assert other == pytest.approx(one * (3 + 2) / (3 + 1))
    plain, halves = (Recipe("made", "", [s]).seconds(Costs()) for s in (study, halved))
    assert (plain, halves) == pytest.approx((one, other))


def test_a_study_may_ask_for_the_middle_of_the_plateau(store: Store) -> None:
    """The best rate is 1e-2, but 3e-3 and 1e-3 are hardly worse."""

    def end(config: RunConfig) -> Record:
        lr = config.options["lr"]
        value = {1e-3: 0.790, 3e-3: 0.795, 1e-2: 0.8}.get(lr, 0.5)
        return made_record(value, config=config)

    study = Contest("digits_mlp", [Entry("adam")], seeds=1)
    best, _ = run(study, store, end)
    assert runs_of(best, "adam").options == {"lr": 1e-2}
    middle, engine = run(replace(study, choice="plateau", split_error=0.02), store, end)
    assert runs_of(middle, "adam").options == {"lr": 3e-3}
    assert [job.config.options for job in engine.jobs] == [{"lr": 3e-3}]  # nothing tuned anew
    [reading] = Sweep(
        [replace(study, choice="plateau", split_error=0.02, first_seed=50)], store
    ).results()
    assert reading.results is not None
    assert reading.results.contenders["adam"].options == {"lr": 3e-3}  # before it is judged
