"""The recipes of the paper's tables, and the page that shows them beside published numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from made_records import made_record

from hvadam_bench import cli, contenders, studies, tasks
from hvadam_bench.cli import lists
from hvadam_bench.running.options import check
from hvadam_bench.studies import Place
from hvadam_bench.studies import _recipes as recipes
from hvadam_bench.sweeping.search import Contest
from hvadam_bench.sweeping.sweep import Sweep

SWEPT = [name for name in recipes.names() if recipes.get(name).studies]
PUBLISHED = [name for name in SWEPT if name.endswith("_published")]


def study_of(name: str, task: str) -> Contest:
    return next(study for study in recipes.get(name).studies if study.task == task)


@pytest.mark.parametrize("name", SWEPT)
def test_every_run_of_a_recipe_can_start(name: str) -> None:
    for study in recipes.get(name).studies:
        assert study.reference in [entry.contender for entry in study.entries]
        assert study.scale in tasks.get(study.task).scales
        for arm in study.arms():
            options = arm.trials[-1].options if arm.trials else dict(arm.entry.options)
            for config in (*arm.tuning(arm.trials)[-1:], arm.judging(options)[0]):
                check(config)
            assert set(options) <= set(contenders.get(arm.entry.contender).defaults)


@pytest.mark.parametrize("name", sorted(set(SWEPT) - set(PUBLISHED)))
def test_recipes_give_everyone_as_much_and_leave_the_test_set_alone(name: str) -> None:
    for study in recipes.get(name).studies:
        if len(study.entries) == 1:
            continue  # a map of options, where nobody is compared with another
        assert (study.budget, study.protocol) == ("equal", "standard")
        tuned = [arm for arm in study.arms() if not (arm.entry.rate_of or arm.entry.rates)]
        assert len({(len(arm.trials), arm.runs) for arm in tuned}) == 1
        assert "hvadam" in [entry.contender for entry in study.entries]


@pytest.mark.parametrize("name", PUBLISHED)
def test_what_was_published_has_a_fair_version_with_the_same_contenders(name: str) -> None:
    for study in recipes.get(name).studies:
        fair = study_of(name.removesuffix("_published"), study.task)
        assert study.protocol == "inherited"
        assert [e.contender for e in study.entries] == [e.contender for e in fair.entries]


def test_entries_of_one_contender_have_names_of_their_own() -> None:
    for recipe in map(recipes.get, SWEPT):
        for study in recipe.studies:
            names = [arm.judging({})[0].entrant for arm in study.arms()]
            assert len(set(names)) == len(names)
    names = [arm.judging({})[0].entrant for arm in study_of("padam", "wgan").arms()]
    assert names[-3:] == ["padam (p 0)", "hvadam", "hvadam (no hidden step)"]


def test_the_searches_are_those_of_appendix_f() -> None:
    def searched(name: str, task: str) -> dict[str, set]:
        arm = next(a for a in study_of(name, task).arms() if a.entry.contender == "hvadam")
        options = [trial.options for trial in arm.trials]
        return {
            key: {o[key] for o in options} for key in ("lr", "gamma", "eps") if key in options[0]
        }

    assert searched("cifar10_published", "cifar10_vgg11") == {
        **{"lr": {0.1, 0.01, 1e-3, 1e-4}, "gamma": set(range(11)), "eps": {1e-8}}
    }
    assert searched("vit_published", "cifar100_vit_b16") == {
        **{"lr": {1e-3, 1e-4, 1e-5}, "gamma": {1}, "eps": {1e-12, 1e-16}}
    }
    assert searched("imagenet_published", "imagenet_resnet50") == {
        **{"lr": {4e-3, 1e-3}, "gamma": {0.5}, "eps": {1e-8}}
    }
    assert searched("lstm_published", "ptb_lstm3") == {"lr": {1e-2, 1e-3, 1e-4}, "gamma": {0.5}}


@pytest.mark.parametrize(
    ("table", "published"),
    [
        ("ablation_published", ["85.04", "84.54", "83.42", "83.31"]),
        ("diffusion", ["11.68", "15.09", "82.29"]),
        ("iwslt14", []),  # which the paper lists without a result
    ],
)
def test_the_page_shows_what_was_published(
    table: str, published: list[str], tmp_path: Path
) -> None:
    def record_all(sweeps: Sequence[Sweep]) -> bool:
        for sweep in sweeps:
            for arm in (arm for contest in sweep.contests for arm in contest.arms()):
                while needed := arm.needed(sweep.ledger):
                    for config, role in needed:
                        task = tasks.get(config.task)
                        made = made_record(60.0, config=config, metric=task.metric)
                        number = task.published.get(config.contender)
                        sweep.store.put(replace(made, role=role, published=number))
        return True

    study = studies.get("paper")
    place = Place(tmp_path, tmp_path / "runs", sweep=record_all)
    found = study.measure(study.plan(tables=(table,), seeds=1), place)
    [page] = study.render(found, tmp_path)
    [panel] = found["paper"].panels
    shown = [row[panel["heads"].index("published")] for row in panel["rows"] if published]
    assert shown == published
    assert all(f" {number} |" in page.read_text(encoding="utf-8") for number in published)
    assert ("published" in panel["heads"]) == bool(published)


@pytest.mark.parametrize("name", sorted(set(recipes.names()) - set(SWEPT)))
def test_commands_are_those_of_the_command_line(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for command in recipes.get(name).commands:
        program, *args = command.split()
        assert program == "hvadam"
        assert cli.main([args[0], "--help"]) == 0
        known = capsys.readouterr().out
        assert all(word in known for word in args if word.startswith("--"))


@pytest.mark.parametrize("width", [80, 200])
def test_the_list_says_what_each_costs_and_breaks_no_name(
    width: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)  # where there are no records
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setattr(lists, "usable_cores", lambda: 2)
    assert cli.main(["recipes"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert {len(line) for line in lines} == {width}
    for name in recipes.names():
        [first] = [i for i, line in enumerate(lines) if line.startswith(f"{name} ")]
        later = (i for i, line in enumerate(lines[first + 1 :], first + 1) if line[0] != " ")
        own = " ".join(lines[first : next(later, None)])
        words = own.replace(",", " ").split()
        recipe = recipes.get(name)
        assert set(recipe.tasks) <= set(words)
        assert all(command in " ".join(own.split()) for command in recipe.commands)
        if recipe.studies:
            assert f"{recipe.runs:,} runs" in own
    # Guesses follow the task: at 40 s a run it would be called 17 minutes.
    assert "laptop scale, 52 runs, about 32 s on 2 cores" in "\n".join(lines)
