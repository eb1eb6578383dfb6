"""Image files of the official layouts: whole, in part, and not what they say."""

from __future__ import annotations

import gzip
import hashlib
import pickle
from pathlib import Path

import numpy as np
import pytest
from made_problems import as_binary, as_idx, pictures

from hvadam_bench import data, tasks
from hvadam_bench.data import DataError, File, images
from hvadam_bench.tasks.vision.classification import ImageProblem


@pytest.mark.parametrize("classes", [10, 100])
def test_cifar_reads_the_same_from_both_layouts(classes: int, tmp_path: Path) -> None:
    pixels, labels = pictures(5, classes)
    (tmp_path / "a.bin").write_bytes(as_binary(pixels, labels, classes))
    key = b"labels" if classes == 10 else b"fine_labels"
    content = {b"data": pixels.reshape(5, -1), key: labels.tolist()}
    (tmp_path / "a").write_bytes(pickle.dumps(content, protocol=2))
    for part in (
        images.read_binary(tmp_path, File("a.bin"), classes),
        images.read_pickle(tmp_path, File("a"), classes),
    ):
        assert (part.pixels.dtype, part.labels.dtype) == (np.uint8, np.int64)
        np.testing.assert_array_equal(part.pixels, pixels)
        np.testing.assert_array_equal(part.labels, labels)


def test_a_pickle_may_call_nothing(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"cos\nsystem\n(S'touch harmed'\ntR.")
    with pytest.raises(DataError, match=r"a must be a pickled CIFAR batch, got .*os\.system"):
        images.read_pickle(tmp_path, File("a"), 10)


def test_labels_beyond_the_classes_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.bin").write_bytes(as_binary(*pictures(9, 100), classes=10))
    with pytest.raises(DataError, match=r"a\.bin must be labels from 0 to 9, got \d+ to \d\d;"):
        images.read_binary(tmp_path, File("a.bin"), 10)


def test_cifar_uses_the_official_files_that_are_there(tmp_path: Path) -> None:
    files = []
    for name in ("one", "two", "test"):
        content = as_binary(*pictures(4, 10), classes=10)
        (tmp_path / name).write_bytes(content)
        files.append(File(name, len(content), hashlib.md5(content).hexdigest()))
    cifar = images._cifar(10, files, [File("gone"), File("gone too")], md5="")
    assert (len(cifar.load(tmp_path).train), cifar.load(tmp_path).missing) == (8, ())

    (tmp_path / "one").rename(tmp_path / "one.part")  # as if half downloaded
    found = cifar.load(tmp_path)
    assert (len(found.train), len(found.test), found.missing) == (4, 4, ("one",))

    (tmp_path / "two").write_bytes(b"x" * files[1].size)  # right size, wrong content
    assert cifar.missing(tmp_path) is None
    with pytest.raises(DataError, match=f"two must be the official file with md5 {files[1].md5}"):
        cifar.load(tmp_path)
    (tmp_path / "two").write_bytes(b"x")
    with pytest.raises(DataError, match=r"two has 1 bytes where the official file has 12,292"):
        cifar.load(tmp_path)
    (tmp_path / "two").unlink()
    with pytest.raises(DataError, match=r"put one, two into .* \(one: half downloaded\)"):
        cifar.load(tmp_path)


@pytest.mark.usefixtures("no_data_folder")
def test_a_task_reads_all_of_the_official_cifar_or_says_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Six files of the official names with 20 images each."""
    # Files of any size and content pass, under the official names.
    official = [File(path) for path in data.get("cifar10").sources[0].files]
    folder = tmp_path / "none" / "cifar-10-batches-bin"
    folder.mkdir(parents=True)
    made = [pictures(20, 10) for _ in official]
    for file, content in zip(official, made, strict=True):
        (tmp_path / "none" / file.path).write_bytes(as_binary(*content, classes=10))
    cifar10 = images._cifar(10, official, [], md5="")
    monkeypatch.setattr(data, "get", lambda name: {"cifar10": cifar10}[name])
    task = tasks.get("cifar10_resnet8")
    settings = {**task.scales["laptop"], "width": 4, "batch_size": 10}
    problem = task.build(settings, 0, "standard")
    assert isinstance(problem, ImageProblem)
    whole = np.concatenate([labels for _, labels in made[:-1]])
    held = np.arange(100) % 10 == 9
    shown, indices = problem.parts["train"]
    np.testing.assert_array_equal(shown.labels[indices], whole[~held])
    shown, indices = problem.parts["valid"]
    np.testing.assert_array_equal(shown.labels[indices], whole[held])
    shown, indices = problem.parts["test"]
    np.testing.assert_array_equal(shown.centred(indices), made[-1][0])

    (tmp_path / "none" / official[2].path).unlink()
    with pytest.raises(DataError, match=r"takes all of the images, and .*data_batch_3\.bin are"):
        task.build(settings, 0, "standard")
    part = task.build({**settings, "train_images": 80}, 0, "standard")
    assert isinstance(part, ImageProblem)
    assert len(part.parts["train"][1]) == 72


def test_fashion_mnist_must_be_whole(tmp_path: Path) -> None:
    folder = tmp_path / "fashion-mnist"
    folder.mkdir()
    pixels, labels = np.arange(6 * 4, dtype=np.uint8).reshape(6, 2, 2), np.arange(6, dtype=np.uint8)
    for part in ("train", "t10k"):
        (folder / f"{part}-images-idx3-ubyte.gz").write_bytes(gzip.compress(as_idx(pixels)))
        (folder / f"{part}-labels-idx1-ubyte.gz").write_bytes(gzip.compress(as_idx(labels)))
    found = images.load_fashion_mnist(tmp_path, train=6, test=6)
    np.testing.assert_array_equal(found.train.pixels[:, 0], pixels)
    np.testing.assert_array_equal(found.test.labels, labels)
    with pytest.raises(DataError, match=r"train-images.* must be 60,000 images, got 6"):
        images.load_fashion_mnist(tmp_path)
    (folder / "t10k-labels-idx1-ubyte.gz").write_bytes(gzip.compress(as_idx(labels[:5])))
    with pytest.raises(DataError, match=r"t10k-labels.* one label for each image, got 5 for 6"):
        images.load_fashion_mnist(tmp_path, train=6, test=6)
