from __future__ import annotations

import re
from dataclasses import replace

import pytest
from made_records import made_record

from hvadam import optimizers
from hvadam.bench import cli, recipes, tasks
from hvadam.bench.config import RunConfig
from hvadam.bench.costs import Costs
from hvadam.bench.search import Study
from hvadam.bench.training import check

SWEPT = [name for name in recipes.names() if recipes.get(name).studies]
PUBLISHED = [name for name in SWEPT if name.endswith("_published")]


def study_of(name: str, task: str) -> Study:
    return next(study for study in recipes.get(name).studies if study.task == task)


@pytest.mark.parametrize("name", SWEPT)
def test_every_run_of_a_recipe_can_start(name: str) -> None:
    for study in recipes.get(name).studies:
        assert study.reference in [entry.contender for entry in study.entries]
        assert study.scale in tasks.get(study.task).scales
        for arm in study.arms():
            options = arm.trials[-1].options
            check(arm.final(options)[0])
            assert set(options) <= set(optimizers.get(arm.entry.contender).defaults)


@pytest.mark.parametrize("name", sorted(set(SWEPT) - set(PUBLISHED)))
def test_recipes_give_everyone_as_much_and_leave_the_test_set_alone(name: str) -> None:
    for study in recipes.get(name).studies:
        if len(study.entries) == 1:
            continue  # a map of options, where nobody is compared with another
        assert (study.budget, study.protocol) == ("equal", "standard")
        assert len({(len(arm.trials), arm.runs) for arm in study.arms()}) == 1
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
            names = [arm.final(arm.trials[0].options)[0].entrant for arm in study.arms()]
            assert len(set(names)) == len(names)
    names = [arm.final({})[0].entrant for arm in study_of("padam", "wgan").arms()]
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


def test_the_list_says_what_each_costs(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    assert cli.main(["recipes"]) == 0
    lines = capsys.readouterr().out.splitlines()
    demo = next(line for line in lines if line.startswith(" demo") or line.startswith("demo"))
    runs = str(recipes.get("demo").runs)
    assert re.search(rf"laptop\s+{runs}\s+\d+ (min|h)", demo)
    for name in recipes.names():
        assert any(line.split()[:1] == [name] for line in lines)
    assert "not here yet" not in "".join(lines)


def test_costs_are_those_on_record_where_there_are_any() -> None:
    config = RunConfig("digits_mlp", "adam")
    guess = Costs().of(config)
    ran = replace(made_record(config=config), train_seconds=7.0, evaluation_seconds=1.0)
    lost = replace(made_record(config=config, status="diverged"), train_seconds=0.1)
    costs = Costs([ran, lost])
    assert costs.of(config) == 8.0
    assert costs.of(replace(config, contender="sgd")) == 8.0
    assert costs.of(replace(config, settings={"epochs": 1})) == 8.0
    costs.learn(replace(ran, config=replace(config, settings={"epochs": 1}), train_seconds=1.0))
    assert costs.of(replace(config, settings={"epochs": 1})) == 2.0
    assert costs.of(config) == 8.0
    assert costs.of(replace(config, task="digits_cnn")) == guess
