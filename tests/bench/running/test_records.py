"""Records on disk: what is damaged is refused, what is packed is gone on from."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from made_records import made_record
from toys import Builder, config

from hvadam_bench.running import files, records
from hvadam_bench.running.config import RunConfig
from hvadam_bench.running.records import FINAL, Decay, Record, Status, Store
from hvadam_bench.running.runner import run

GONE = 999_999_999  # no process has such a number


def full(seed: int = 0, task: str = "digits_mlp") -> Record:
    """A record with something in every field."""
    record = made_record(
        0.8125, config=RunConfig(task, "hvadam", "smoke", seed, {"lr": 1e-05}), curve=[0.1, 1 / 3]
    )
    return replace(
        record,
        reason='na\u00efve "quotes" \\ and\nlines',
        environment={"commit": "0123abcd" * 5, "dirty": False, "versions": {"torch": "2.13"}},
        artifacts=("samples-0000010.png",),
        title="Perceptron",
        published=1e300,
        study="made",
        role="tuning",
        decay={"model": Decay("decoupled", 0.1)},
        gradient_evaluations=20,
    )


def flips(content: bytes) -> Iterator[bytes]:
    """Every content that differs in one bit."""
    for place, byte in enumerate(content):
        for bit in range(8):
            yield content[:place] + bytes([byte ^ 1 << bit]) + content[place + 1 :]


def refusals(path: Path, read: Callable[[], list[Record]]) -> tuple[int, int]:
    """Read a file with every bit flipped once: how often it was refused, and how often not.

    What is read all the same is what was written, and what is refused is named.
    """
    written, content = read(), path.read_bytes()
    refused = 0
    same = 0
    for flipped in flips(content):
        path.write_bytes(flipped)
        records._unpacked.cache_clear()  # the clock of files may be too slow to tell
        try:
            found, complaint = read(), ""
        except ValueError as error:
            found, complaint = written, str(error)
        if complaint:
            refused += 1
            assert f"{path} is damaged (" in complaint
            assert "delete it and run again." in complaint
            assert "\n" not in complaint
        else:
            same += 1
            assert found == written
    path.write_bytes(content)
    return refused, same


@pytest.mark.slow
def test_every_flipped_bit_of_a_record_is_refused_or_changes_nothing(store: Store) -> None:
    record = full()
    store.put(record)
    assert store.get(record.config) == Record.from_json(record.to_json())
    path = store.path(record.config)

    def read() -> list[Record]:
        found = store.get(record.config)
        return [found] if found else []

    refused, same = refusals(path, read)
    assert refused + same == 8 * path.stat().st_size
    assert same < 10  # such as the E of 1E-05


def test_every_flipped_bit_of_packed_records_is_refused_or_changes_nothing(tmp_path: Path) -> None:
    store = Store(tmp_path / "loose", tmp_path / "packed")
    for seed in range(3):
        store.put(full(seed))
    [path] = store.pack()
    clone = Store(tmp_path / "nothing", store.packed)
    refused, same = refusals(path, lambda: list(clone))
    assert refused + same == 8 * path.stat().st_size
    assert same <= 8 * 10  # the header of gzip: a time, a system, flags that nobody reads


def test_a_damaged_line_inside_a_sound_archive_is_refused(tmp_path: Path) -> None:
    store = Store(tmp_path / "loose", tmp_path / "packed")
    store.put(full())
    [path] = store.pack()
    text = gzip.decompress(path.read_bytes()).decode()
    path.write_bytes(gzip.compress(text.replace("0.8125", "0.8126").encode()))
    with pytest.raises(
        ValueError, match=r"digits_mlp\.jsonl\.gz is damaged \(line 1: its checksum"
    ):
        list(Store(tmp_path / "nothing", store.packed))


def test_a_record_without_a_checksum_or_of_another_run_is_refused(store: Store) -> None:
    record = full()
    path = store.path(record.config)
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(record.to_json()))
    with pytest.raises(ValueError, match="its checksum is wrong"):
        store.get(record.config)
    path.write_text(full(seed=1).to_line())
    with pytest.raises(ValueError, match=f"is the record of {full(seed=1).config.key}"):
        store.get(record.config)


def test_study_and_role_do_not_name_a_run(toys: Builder, store: Store) -> None:
    asked = config(seed=1000)
    record = run(asked, store, study="some", role="judged")
    assert (record.study, record.role) == ("some", "judged")  # whatever the seed
    assert run(asked, store, study="other", role="tuning") == Record.from_json(record.to_json())
    assert run(config(seed=0), store, role="tuning").role == "tuning"


def test_decay_and_gradient_evaluations_are_those_of_the_run(toys: Builder, store: Store) -> None:
    adam = run(config("adam"), store)
    assert adam.decay == {name: Decay("coupled", 0.01) for name in ("body", "head")}
    assert adam.gradient_evaluations == 24 * 2  # steps, networks
    hvadam = run(config("hvadam", options={"weight_decay": 0.2}), store)
    assert hvadam.decay["head"] == Decay("decoupled", 0.2)
    coupled = {"weight_decay": 0.2, "weight_decay_mode": "coupled"}
    assert run(config("hvadam", options=coupled), store).decay["head"] == Decay("coupled", 0.2)
    assert run(config("fromage"), store).decay["head"] == Decay("none", 0.0)
    assert run(config("sgd", options={"weight_decay": 0}), store).decay["head"].kind == "none"
    lost = run(config("sgd", options={"lr": 1e20}), store)
    assert (lost.status, lost.gradient_evaluations) == ("diverged", 2)


def test_a_fresh_clone_goes_on_from_the_packed_records(toys: Builder, tmp_path: Path) -> None:
    store = Store(tmp_path / "loose", tmp_path / "packed")
    one, two = run(config(), store), run(config(seed=1), store)
    store.pack()
    clone = Store(tmp_path / "fresh", tmp_path / "packed")
    toys.before_step = lambda step: pytest.fail("trained")
    assert run(config(), clone) == store.get(config())
    assert [r.config.seed for r in clone] == [
        r.config.seed for r in sorted((one, two), key=lambda r: r.config.key)
    ]
    assert not clone.folder.exists()
    toys.before_step = lambda step: None
    three = run(config(seed=2), clone)
    clone.put(replace(two, reason="made anew"))
    clone.pack()
    again = {r.config.seed: r for r in Store(tmp_path / "nothing", tmp_path / "packed")}
    assert sorted(again) == [0, 1, 2]
    assert again[1].reason == "made anew"  # what is loose goes before what is packed
    assert again[2] == Record.from_json(three.to_json())


def test_the_same_records_give_the_same_bytes(tmp_path: Path) -> None:
    made = [full(seed, task) for seed in range(4) for task in ("digits_mlp", "digits_cnn")]
    packed: list[list[bytes]] = []
    for name, order in (("one", made), ("two", made[::-1])):
        store = Store(tmp_path / name, tmp_path / f"{name} packed")
        for record in order:
            store.put(record)
        paths = store.pack()
        assert [path.name for path in paths] == ["digits_cnn.jsonl.gz", "digits_mlp.jsonl.gz"]
        packed.append([path.read_bytes() for path in paths])
        before = [path.stat().st_mtime_ns for path in paths]
        assert [path.stat().st_mtime_ns for path in store.pack()] == before  # not written again
        lines = gzip.decompress(packed[-1][0]).decode().splitlines()
        keys = [Record.from_line(line).config.key for line in lines]
        assert keys == sorted(keys)
    assert packed[0] == packed[1]
    assert packed[0][0][3:8] == bytes(5)  # no name, no time


def test_a_store_without_a_place_to_pack_to_says_so(store: Store) -> None:
    with pytest.raises(ValueError, match="has nowhere to pack to"):
        store.pack()


def test_packing_the_same_records_clears_drafts_of_the_killed(tmp_path: Path) -> None:
    store = Store(tmp_path / "runs", tmp_path / "packed")
    store.put(full(0))
    [path] = store.pack()
    path.with_name(f".{path.name}.{files.HOST}.{GONE}").write_bytes(b"half a file")
    store.pack()
    assert list(path.parent.iterdir()) == [path]


ENDS = ("done", "collapsed", "diverged", "pruned", "failed", "out_of_memory", "disk_full")


@pytest.mark.parametrize("known", ENDS)
@pytest.mark.parametrize("late", ENDS)
def test_a_final_record_is_never_replaced_by_a_lesser_one(
    known: Status, late: Status, store: Store
) -> None:
    first = replace(full(), status=known, reason="first")
    store.put(first)
    store.put(replace(first, status=late, reason="late"), {"samples-0000010.png": b"late"})
    kept = store.get(first.config)
    assert kept is not None
    lesser = known in FINAL and (late not in FINAL or (late == "pruned" != known))
    assert kept.reason == ("first" if lesser else "late")
    assert store.artifacts_path(first.config).exists() is not lesser
    # Of other settings it is another run, which replaces what no longer counts.
    store.put(replace(first, status=late, reason="other", basis={}))
    kept = store.get(first.config)
    assert kept is not None
    assert (kept.reason == "other") == (late in FINAL or known not in FINAL)


PACKER = """
import itertools, sys
from pathlib import Path
from hvadam_bench.running.records import Store
one, two, packed = map(Path, sys.argv[1:])
for folder in itertools.cycle([one, two]):
    Store(folder, packed).pack()
"""


@pytest.mark.slow
def test_a_kill_while_packing_leaves_the_old_file_or_the_new_one(tmp_path: Path) -> None:
    stores = [Store(tmp_path / name, tmp_path / "packed") for name in ("one", "two")]
    sound: set[bytes] = set()
    for i, store in enumerate(stores):
        for seed in range(20):
            store.put(replace(full(seed), reason=f"{i}"))
        [path] = store.pack()
        sound.add(path.read_bytes())
    assert len(sound) == 2
    folders = [str(store.folder) for store in stores]
    seen: set[bytes] = set()
    for attempt in range(25):
        command = [sys.executable, "-c", PACKER, *folders, str(tmp_path / "packed")]
        process = subprocess.Popen(command, env=os.environ)
        time.sleep(0.5 + 0.037 * attempt)
        process.send_signal(signal.SIGKILL)
        process.wait()
        content = path.read_bytes()
        assert content in sound
        seen.add(content)
        assert len(list(Store(tmp_path / "nothing", tmp_path / "packed"))) == 20
    assert len(seen) == 2  # so it was packing when it was killed
    stores[0].pack()
    assert [file.name for file in (tmp_path / "packed").iterdir()] == [path.name]  # no drafts
