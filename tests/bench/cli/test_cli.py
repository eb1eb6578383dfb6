"""The command line, through the function behind the console script."""

import json
import subprocess
import sys
from base64 import b64encode
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest
from made_records import made_record

from hvadam import __version__
from hvadam.__main__ import main
from hvadam_bench import tasks
from hvadam_bench.cli import showing
from hvadam_bench.running.config import RunConfig
from hvadam_bench.running.records import Store
from hvadam_bench.studies.speed.plan import SHAPES
from hvadam_bench.sweeping.sweep import Sweep


@pytest.mark.slow
def test_demo_draws_trains_and_writes_a_report(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "a [new] folder" / "demo"
    assert main(["demo", "--seeds", "1", "--steps", "20", "--out", str(out)]) == 0
    printed, errors = capsys.readouterr()
    assert errors == ""
    report = out / "report.html"
    assert printed.splitlines()[-1] == f"wrote {report}"
    assert "digits" in report.read_text(encoding="utf-8")
    [paths] = (out / "docs" / "figures").glob("*.png")
    assert b64encode(paths.read_bytes()).decode() in report.read_text(encoding="utf-8")
    done = [record for record in Store(out / "runs") if record.status == "done"]
    tasks = {record.config.task for record in done}
    contenders = {record.config.contender for record in done}
    assert tasks == {"digits_autoencoder", "digits_cnn"}
    assert contenders == {"adam", "hvadam"}


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["demo", "--seeds", "0"], ["--seeds", "0"]),
        (["demo", "--steps", "-1"], ["--steps", "-1"]),
        (["demo", "--steps", "many"], ["--steps", "many"]),
        (["demo", "--sedes", "3"], ["--sedes"]),
        (["demo", "more"], ["more"]),
        (["demos"], ["demos"]),
        (["speed", "--shapes", "lstm,tiny"], ["--shapes", "'tiny'", *SHAPES]),
        (["speed", "--threads", "0"], ["at least 1", "0"]),
        (["speed", "--threads", "1,two"], ["at least 1", "two"]),
        (["speed", "--threads", "1,4096"], ["--threads", "at most", "4096"]),
        (["speed", "--threads", "1,2", "--jax"], ["--threads", "without --jax", "1,2"]),
        (["speed", "fast"], ["fast"]),
        (["speed", "--jax", "--growth"], ["one of --jax, --growth"]),
        (["evidence", "--parts", "noises"], ["part", "'noises'", "'noise'"]),
        (["evidence", "--steps", "tables"], ["step", "'tables'", "baselines, times, evidence"]),
        (["study", "momentum", "--stages", "4"], ["stage", "4", "1, 2, 3"]),
        (["info", "more"], ["more"]),
    ],
    ids=" ".join,
)
def test_bad_arguments_give_one_line_and_write_nothing(
    arguments: list[str], named: list[str], refused: Callable[[list[str]], str]
) -> None:
    line = refused(arguments)
    assert all(word in line for word in named), line


def test_info_prints_tables_or_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info"]) == 0
    printed, errors = capsys.readouterr()
    assert (printed.split()[:2], errors) == (["hvadam", __version__], "")
    assert main(["info", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["versions"]["hvadam"] == __version__


@pytest.mark.parametrize("below", ["", "sub"])
def test_out_that_is_no_directory_is_refused_before_training(
    below: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(showing, "gather_and_show", lambda *args: pytest.fail("trained"))
    (tmp_path / "file").write_text("mine")
    out = tmp_path / "file" / below
    assert main(["demo", "--out", str(out)]) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith(f"hvadam: Invalid value for '--out': cannot write to {out}: ")
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.parametrize(
    ("module", "package"),
    [
        ("sklearn", "scikit-learn"),
        ("matplotlib", "matplotlib"),
        ("rich", "rich"),
        ("typer", "typer"),
    ],
)
def test_a_missing_package_is_named_with_the_way_out(
    module: str,
    package: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in [name for name in sys.modules if name.startswith(module)]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, module, None)
    assert find_spec(module) is None
    assert main(["demo"]) == 2
    printed, errors = capsys.readouterr()
    assert printed == ""
    assert errors == f"hvadam: this command needs {package}: pip install 'hvadam[bench]'\n"
    assert list(tmp_path.iterdir()) == []


def test_other_import_errors_are_not_blamed_on_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "hvadam_bench.cli.showing", None)
    with pytest.raises(ModuleNotFoundError, match=r"hvadam_bench\.cli\.showing"):
        main(["demo", "--out", str(tmp_path)])


def test_without_a_command_the_help_lists_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("Usage: hvadam")
    assert all(command in printed for command in ("demo", "study", "info", "--version"))


def test_version_from_a_shell_loads_no_framework() -> None:
    code = (
        "import sys; from hvadam_bench.cli import main; code = main(['--version']); "
        "sys.exit(code or 'torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"hvadam {__version__}\n", "")


def test_run_from_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = tmp_path / "runs"
    command = ["run", "digits_mlp", "hvadam", "--scale", "smoke", "--store", str(store)]
    command += ["--lr", "0.01", "--set", "betas=0.8,0.99", "--set", "task.epochs=1", "--seed", "3"]
    assert main(command) == 0
    [*_, said, where] = capsys.readouterr().out.splitlines()  # after progress, on a slow machine
    [record] = Store(store)
    assert record.config == RunConfig(
        *("digits_mlp", "hvadam", "smoke", 3),
        options={"lr": 0.01, "betas": [0.8, 0.99]},
        settings={"epochs": 1},
    )
    assert ": done; accuracy " in said
    assert where == f"recorded: {Store(store).path(record.config)}"
    assert main(command) == 0
    assert capsys.readouterr().out.splitlines()[-1].startswith("already recorded: ")


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["digits", "adam"], ["'digits'", "did you mean 'digits_"]),
        (["digits_mlp", "adm"], ["'adm'", "did you mean 'adam'?"]),
        (["digits_mlp", "adam", "--lr", "fast"], ["--lr", "fast"]),
        (["digits_mlp", "hvadam", "--lr", "-1"], ["lr must be >= 0", "-1"]),
        (["digits_mlp", "adam", "--lr", "1", "--set", "lr=2"], ["either --lr or --set"]),
        (["digits_mlp", "adam", "--set", "betas"], ["--set", "NAME=VALUE", "betas"]),
        (["digits_mlp", "adam", "--set", "betas=1"], ["betas", "(0.9, 0.999)", "got 1"]),
        (["digits_mlp", "adam", "--set", "gamma=1"], ["no option 'gamma'"]),
        (["digits_mlp", "adam", "--set", "task.epochs=x"], ["epochs", "'x'"]),
        (["digits_mlp", "adam", "--set", "task.epochs=0"], ["epochs must be", "least 1, got 0"]),
        (["digits_mlp", "adam", "--set", "task.epochs=-2"], ["epochs must be", "got -2"]),
        (["digits_mlp", "adam", "--set", "task.epochs=0.5"], ["a whole number", "got 0.5"]),
        (["digits_mlp", "adam", "--set", "task.batch_size=0"], ["batch_size must be", "got 0"]),
        (["digits_mlp", "adam", "--set", "task.batch_size=-4"], ["batch_size must be", "got -4"]),
        (["digits_mlp", "adam", "--scale", "large"], ["no scale 'large'", "smoke, laptop, paper"]),
        (["digits_mlp", "adam", "--protocol", "inherited"], ["no protocol 'inherited'"]),
        (["digits_mlp", "adam", "--seed", "-1"], ["--seed", "-1"]),
        (["digits_mlp"], ["contender"]),
    ],
    ids=" ".join,
)
def test_bad_arguments_of_run_give_one_line_and_write_nothing(
    arguments: list[str], named: list[str], refused: Callable[[list[str]], str]
) -> None:
    line = refused(["run", *arguments])
    assert all(word.lower() in line.lower() for word in named), line


def test_batches_larger_than_the_training_set_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["run", "digits_mlp", "adam", "--set", "task.batch_size=100000"]
    assert main([*command, "--store", str(tmp_path)]) == 2
    printed, errors = capsys.readouterr()
    assert printed == ""
    assert errors == (
        "hvadam: batch_size must be at most 1077, all training examples, got 100000.\n"
    )
    assert list(tmp_path.iterdir()) == []


def test_a_sweep_takes_a_reference_rates_and_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[Sweep] = []

    def note(sweep: Sweep, *_: object) -> bool:
        begun.append(sweep)
        return True

    monkeypatch.setattr("hvadam_bench.cli.showing.sweep_and_show", note)
    command = ["sweep", "digits_mlp", "--contenders", "nadam,adamw", "--store", str(tmp_path)]
    assert main(command) == 0
    changes = ["--set", "task.epochs=2", "--set", "weight_decay=0.1"]
    assert main([*command, "--reference", "adamw", "--rates", "3e-3,1e-3", *changes]) == 0
    plain, changed = (study for sweep in begun for study in sweep.contests)
    assert (plain.reference, changed.reference) == ("nadam", "adamw")
    assert changed.settings == {"epochs": 2}
    for arm in changed.arms():
        found = [trial.options for trial in arm.trials]
        assert found == [{"lr": lr, "weight_decay": 0.1} for lr in (1e-3, 3e-3)]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--rates", "0"], "must be numbers above 0, got 0"),
        (["--rates", "1e-3,fast"], "must be a finite number, got fast"),
        (["--set", "lr=0.1"], "name learning rates with --rates"),
        (["--set", "task.epoch=3"], "digits_mlp has no setting 'epoch'"),
        (["--set", "beta=3"], "beta"),
        (["--reference", "adamm"], "there is no contender 'adamm'"),
    ],
)
def test_a_sweep_refuses_what_cannot_run_before_it_begins(
    arguments: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sweep", "digits_mlp", *arguments, "--store", str(tmp_path / "runs")]) == 2
    assert said in " ".join(capsys.readouterr().err.replace("│", "").split())
    assert not (tmp_path / "runs").exists()


def test_a_damaged_record_is_one_line_and_stops_nobody(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = Store(tmp_path)
    record = made_record()
    store.put(record)
    path = store.path(record.config)
    path.write_bytes(path.read_bytes()[:-20])  # cut by a crash of the machine
    assert main(["recipes", "--store", str(tmp_path)]) == 0
    assert capsys.readouterr().err == ""
    words = ["digits_mlp", "adam", "--scale", "smoke", "--store", str(tmp_path)]
    assert main(["report", "--store", str(tmp_path)]) == 2
    line, none = capsys.readouterr().err.splitlines()
    assert line.startswith(f"hvadam: {path} is damaged (")
    assert line.endswith("; delete it and run again.")
    assert "there are no records in" in none
    assert main(["run", *words]) == 0
    said = capsys.readouterr().out.splitlines()[0]
    assert said.startswith(f"{path} is damaged (")
    assert said.endswith("): run again")
    assert store.get(record.config) is not None


def test_tasks_are_listed_with_their_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HVADAM_DATA", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "200")
    assert main(["tasks"]) == 0
    printed = capsys.readouterr().out
    assert all(name in printed for name in tasks.names())
    assert "accuracy, more is better; smoke, laptop, paper; needs no data" in printed
