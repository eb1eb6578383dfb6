"""Records of other machines and versions: read as far as they can be, refused by name where not."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from made_records import made_record

from hvadam.__main__ import main
from hvadam._version import __version__
from hvadam_bench.running.checking import to_line
from hvadam_bench.running.config import RunConfig, key_of
from hvadam_bench.running.records import Record, Store, UnreadableError

Change = Callable[[dict[str, Any]], object]


def plain_record(seed: int = 0) -> dict[str, Any]:
    """Return the plain values of a record that all is well with."""
    record = made_record(0.75, config=RunConfig("digits_mlp", "adam", "smoke", seed, {"lr": 0.01}))
    about = {"versions": {"hvadam": "9.9"}}
    return json.loads(json.dumps(replace(record, environment=about).to_json()))


def write(store: Store, plain: dict[str, Any]) -> Path:
    """Write plain values as a record that nobody but a reader could object to."""
    path = store.folder / "digits_mlp-smoke" / "adam" / f"{key_of(plain['config'])}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(to_line(plain))
    return path


def nested(depth: int) -> list[Any]:
    """Return lists in lists."""
    inner: list[Any] = []
    for _ in range(depth):
        inner = [inner]
    return inner


def changing(**fields: Any) -> Change:
    """Return a change of some fields of a record."""
    return lambda plain: plain.update(fields)


def configured(**fields: Any) -> Change:
    """Return a change of some fields of a record's configuration."""
    return lambda plain: plain["config"].update(fields)


BAD: dict[str, tuple[Change, str]] = {
    "task": (configured(task="../../escaped/evil"), "config.task must be a plain name"),
    "absolute": (configured(task="/tmp/evil"), "config.task must be a plain name"),
    "contender": (configured(contender="../../secret"), "config.contender must be a plain name"),
    "backslash": (configured(contender="..\\secret"), "config.contender must be a plain name"),
    "scale": (configured(scale=".."), "config.scale must be a plain name"),
    "control": (configured(scale="a\nb"), "config.scale must be a plain name"),
    "empty": (configured(task=""), "config.task must be a plain name"),
    "long": (configured(task="x" * 300), "config.task must be a plain name"),
    "no name": (configured(task=3), "config.task must be a plain name"),
    "artifact": (
        changing(artifacts=["../../../secret.png"]),
        r"artifacts\[0\] must be a plain name",
    ),
    "string": (changing(test={"accuracy": "high"}), "test must be a table of numbers"),
    "huge": (changing(test={"accuracy": 10**400}), "test must be a table of numbers"),
    "lr": (configured(options={"lr": "0.01"}), "config.options must be .* learning rate .*, got"),
    "negative": (
        configured(options={"lr": -0.1}),
        "a learning rate of at least 0, got {'lr': -0.1}",
    ),
    "curve": (changing(curve=[]), "curve is empty, and its status is 'done'"),
    "metric": (changing(metric="perplexity"), "curve has a point without 'perplexity'"),
    "test": (changing(test={"loss": 1.0}), "test has no 'accuracy'"),
    "deep": (changing(basis={"a": nested(200)}), r"basis\['a'\] must be nested at most"),
    "status": (changing(status="paused"), "status must be one of"),
    "newer": (configured(precision="bf16"), "config has 'precision', which is not known here"),
    "no config": (changing(config=5), "config must be a table of names and values, got 5"),
    "older": (lambda plain: plain.pop("curve"), "curve is missing"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_nobody_could_use_is_named_and_the_rest_is_read(name: str, store: Store) -> None:
    change, said = BAD[name]
    sound, plain = plain_record(), plain_record(seed=1)
    write(store, sound)
    change(plain)
    path = write(store, plain)
    before = path.read_bytes()
    records, [fault] = store.contents()
    assert [record.config.seed for record in records] == [0]
    assert str(path) in str(fault)
    assert "made by hvadam 9.9 and cannot be read by" in str(fault)
    assert "damaged" not in str(fault)
    with pytest.raises(UnreadableError, match=said):
        list(store)
    # Packed it is left where it is, and nothing is written elsewhere.
    packing = Store(store.folder, store.folder.parent / "packed")
    assert [one.name for one in packing.pack()] == ["digits_mlp.jsonl.gz"]
    assert path.read_bytes() == before
    written = [one for one in store.folder.parent.rglob("*") if one.is_file()]
    assert len(written) == 3


def test_a_fault_of_this_version_is_not_told_as_one_of_two(store: Store) -> None:
    plain = plain_record()
    plain["environment"]["versions"]["hvadam"] = __version__
    plain["status"] = "paused"
    path = write(store, plain)
    _, [fault] = store.contents()
    assert f"{path} was made by hvadam {__version__} and cannot be read: status" in str(fault)


def test_what_is_nested_without_end_is_named(store: Store) -> None:
    write(store, plain_record())
    path = store.folder / "digits_mlp-smoke" / "adam" / "deep.json"
    path.write_text("[" * 100_000)
    records, [fault] = store.contents()
    assert len(records) == 1
    assert str(fault) == f"{path} is damaged (it is nested too deeply); delete it and run again."


def test_fields_of_other_versions_are_ignored_and_kept(store: Store, tmp_path: Path) -> None:
    newer = plain_record()
    newer["energy"] = {"joules": 3}
    newer["curve"][0]["watts"] = 2.5
    older = plain_record(seed=1)
    for name in ("decay", "study", "role", "gradient_evaluations", "basis", "artifacts"):
        del older[name]
    for plain in (newer, older):
        write(store, plain)
    known = {record.config.seed: record for record in store}
    assert known[0] == Record.from_json(plain_record())
    assert (known[1].decay, known[1].role) == ({}, "judged")
    packing = Store(store.folder, tmp_path / "packed")
    [path] = packing.pack()
    lines = gzip.decompress(path.read_bytes()).decode().splitlines()
    assert sorted(lines) == sorted(map(to_line, (newer, older)))
    # A line that cannot be read at all stays too.
    strange = plain_record(seed=2)
    strange["config"]["precision"] = "bf16"
    text = "\n".join([*lines, to_line(strange), ""])
    path.write_bytes(gzip.compress(text.encode()))
    packing.pack()
    assert to_line(strange) in gzip.decompress(path.read_bytes()).decode().splitlines()
    assert len(packing.contents().records) == 2


@pytest.mark.parametrize("rates", [(0.0,), (0.0, 0.1)])
def test_a_report_shows_a_learning_rate_of_zero(
    rates: tuple[float, ...], tmp_path: Path, store: Store
) -> None:
    for rate in rates:
        plain = plain_record()
        plain["config"]["options"]["lr"] = rate
        plain["role"] = "tuning"
        write(store, plain)
    assert main(["report", "--store", str(store.folder), "--out", str(tmp_path / "page.html")]) == 0


def test_a_report_takes_records_that_were_measured_differently(
    tmp_path: Path, store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    older, newer = plain_record(), plain_record(seed=1)
    newer["test"]["arrived"] = 1.0
    other = plain_record(seed=2)
    other.update(metric="error", goal="min", test={"error": 0.25})
    for point in other["curve"]:
        point["valid"] = {"error": 0.5}
    for plain in (older, newer, other):
        write(store, plain)
    assert main(["report", "--store", str(store.folder), "--out", str(tmp_path / "page.html")]) == 0
    assert capsys.readouterr().err == (
        "hvadam: 1 record of digits_mlp was judged by 'error', where most are by 'accuracy': "
        "left out; sweep to make them again.\n"
    )


def test_a_report_names_all_that_it_leaves_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    store = Store(Path("runs"))
    (tmp_path / "secret").mkdir()
    write(store, plain_record())
    for seed, change in ((1, configured(contender="../../secret")), (2, changing(test={}))):
        plain = plain_record(seed)
        change(plain)
        write(store, plain)
    damaged = write(store, plain_record(seed=3))
    damaged.write_text(damaged.read_text().replace("0.75", "0.76"))
    assert main(["report"]) == 0
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 3
    assert sum("must be a plain name, without a path in it, got '../../secret'" in s for s in said)
    assert sum(f"{damaged} is damaged (its checksum is wrong)" in s for s in said) == 1
    page = Path("report.html").read_text("utf-8")
    assert "1 records: 1 done" in page
    assert f"{damaged} is damaged" in page
    for path in store.folder.rglob("*.json"):
        path.write_text("{}")
    assert main(["report"]) == 2
    assert "there are no records in runs" in capsys.readouterr().err
