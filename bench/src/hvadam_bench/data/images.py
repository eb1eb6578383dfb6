"""CIFAR-10 and CIFAR-100 in both official layouts, and Fashion-MNIST as gzipped idx files."""

from __future__ import annotations

import io
import pickle
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hvadam_bench.data import DataError, DataSet, File, Source, lacking, read, refusal


@dataclass(frozen=True)
class Images:
    """Pixels, uint8 of shape (n, channels, height, width), and their labels, int64 from 0."""

    pixels: NDArray[np.uint8]
    labels: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(frozen=True)
class ImageData:
    """The official training and test images of one data set.

    Attributes:
        missing: Official training files that were not there, so that `train` lacks their images.
    """

    train: Images
    test: Images
    classes: int
    missing: tuple[str, ...] = ()


def read_binary(root: Path, file: File, classes: int) -> Images:
    """Read CIFAR's binary layout: label bytes, the finest last, then planes of 32×32."""
    raw = np.frombuffer(read(root, file), dtype=np.uint8)
    label_bytes = 1 if classes == 10 else 2
    record = label_bytes + 3072
    if len(raw) == 0 or len(raw) % record:
        raise refusal(root / file.path, f"whole records of {record} bytes", f"{len(raw)} bytes")
    rows = raw.reshape(-1, record)
    pixels = rows[:, label_bytes:].reshape(-1, 3, 32, 32)
    return _images(root / file.path, pixels, rows[:, label_bytes - 1], classes)


def read_pickle(root: Path, file: File, classes: int) -> Images:
    """Read CIFAR's Python layout: a pickled dict of a matrix of pixels and a list of labels."""
    path = root / file.path
    try:
        content: dict[bytes, Any] = _Arrays(io.BytesIO(read(root, file)), encoding="bytes").load()
        labels = np.asarray(content[b"labels" if classes == 10 else b"fine_labels"])
        pixels = np.asarray(content[b"data"]).reshape(-1, 3, 32, 32)
    except DataError:
        raise
    except Exception as error:  # a corrupt pickle can raise anything
        raise refusal(path, "a pickled CIFAR batch", f"{type(error).__name__}: {error}") from error
    if pixels.dtype != np.uint8 or len(pixels) != len(labels):
        got = f"{len(pixels)} of {pixels.dtype} and {len(labels)} labels"
        raise refusal(path, "as many images of uint8 as labels", got)
    return _images(path, pixels, labels, classes)


def read_idx(root: Path, pixels: File, labels: File, classes: int) -> Images:
    """Read MNIST's layout: two files, each a header of big-endian sizes and then bytes."""
    images = _idx(root, pixels, dimensions=3)
    marks = _idx(root, labels, dimensions=1)
    if len(images) != len(marks):
        got = f"{len(marks)} for {len(images)} images"
        raise refusal(root / labels.path, "one label for each image", got)
    return _images(root / labels.path, images[:, None], marks, classes)


def _idx(root: Path, file: File, dimensions: int) -> NDArray[np.uint8]:
    raw, path = read(root, file), root / file.path
    magic, header = struct.pack(">HBB", 0, 8, dimensions), 4 + 4 * dimensions
    if len(raw) < header or raw[:4] != magic:
        raise refusal(path, f"idx data starting with {magic.hex()}", raw[:4].hex() or "nothing")
    shape = struct.unpack(f">{dimensions}I", raw[4:header])
    values = np.frombuffer(raw, dtype=np.uint8, offset=header)
    if len(values) != np.prod(shape, dtype=object):
        raise refusal(path, f"{shape} values", f"{len(values)} values")
    return values.reshape(shape)


def _images(path: Path, pixels: NDArray[Any], labels: NDArray[Any], classes: int) -> Images:
    if len(labels) == 0 or labels.min() < 0 or labels.max() >= classes:
        got = f"{labels.min()} to {labels.max()}" if len(labels) else "none"
        raise refusal(path, f"labels from 0 to {classes - 1}", got)
    return Images(np.ascontiguousarray(pixels), labels.astype(np.int64))


class _Arrays(pickle.Unpickler):
    """An unpickler that makes arrays, and calls nothing else that the file may name."""

    allowed = ("_reconstruct", "ndarray", "dtype", "scalar", "_frombuffer")

    def find_class(self, module_name: str, global_name: str, /) -> Any:
        if module_name.partition(".")[0] == "numpy" and global_name in self.allowed:
            # The official files say numpy.core, a name that newer NumPy warns about.
            return super().find_class(module_name.replace("numpy.core", "numpy._core"), global_name)
        if (module_name, global_name) == ("_codecs", "encode"):
            return super().find_class(module_name, global_name)
        raise pickle.UnpicklingError(f"{module_name}.{global_name} has no place in a CIFAR batch")


def _cifar(classes: int, binary: Sequence[File], pickled: Sequence[File], md5: str) -> DataSet:
    """Return a CIFAR of its training files and then its test file, in two layouts.

    The one of which most is there is read, the first one if both are whole.
    """

    def found(root: Path) -> tuple[Sequence[File], list[File]]:
        """Return the files of the layout, and those of them that are there."""
        there = ([f for f in files if (root / f.path).is_file()] for files in (binary, pickled))
        return max(zip((binary, pickled), there, strict=True), key=lambda pair: len(pair[1]))

    def missing(root: Path) -> str | None:
        files, present = found(root)
        return lacking(root, present if files[-1] in present and len(present) > 1 else files)

    def absent(root: Path) -> tuple[str, ...]:
        files, present = found(root)
        return tuple(file.path for file in files if file not in present)

    def load(root: Path) -> ImageData:
        if reason := missing(root):
            raise DataError(f"cifar{classes}: {reason}.")
        files, present = found(root)
        reader = read_binary if files is binary else read_pickle
        *train, test = (reader(root, file, classes) for file in present)
        joined = Images(
            np.concatenate([part.pixels for part in train]),
            np.concatenate([part.labels for part in train]),
        )
        return ImageData(joined, test, classes, absent(root))

    archive = f"https://www.cs.toronto.edu/~kriz/cifar-{classes}-binary.tar.gz"
    return DataSet(
        name=f"cifar{classes}",
        title=f"CIFAR-{classes}: 60,000 colour images of 32×32 in {classes} classes",
        licence="none stated; cite Krizhevsky 2009, and do not pass the files on",
        load=load,
        missing=missing,
        absent=absent,
        sources=[Source(archive, [file.path for file in binary], md5)],
    )


_CIFAR10 = _cifar(
    10,
    md5="c32a1d4ab5d03f1284b67883e8d87530",
    binary=[
        File(f"cifar-10-batches-bin/{name}.bin", 30_730_000, md5)
        for name, md5 in {
            "data_batch_1": "5dd7e06a14cb22eb9f671a540d1b7c25",
            "data_batch_2": "5ea93a67294ea407fff1d09f752e9692",
            "data_batch_3": "942cd6a4bcdd0dd3c604fbe906cb4421",
            "data_batch_4": "ae636b3ba5c66a11e91e8cb52e771fcb",
            "data_batch_5": "53f37980c15c3d472c316c40844f3f0d",
            "test_batch": "803d5f7f4d78ea53de84dbe85f74fb6d",
        }.items()
    ],
    pickled=[
        File(f"cifar-10-batches-py/{name}", md5=md5)
        for name, md5 in {
            "data_batch_1": "c99cafc152244af753f735de768cd75f",
            "data_batch_2": "d4bba439e000b95fd0a9bffe97cbabec",
            "data_batch_3": "54ebc095f3ab1f0389bbae665268c751",
            "data_batch_4": "634d18415352ddfa80567beed471001a",
            "data_batch_5": "482c414d41f54cd18b22e5b47cb7c3cb",
            "test_batch": "40351d587109b95175f43aff81a1287e",
        }.items()
    ],
)
_CIFAR100 = _cifar(
    100,
    md5="03b5dce01913d631647c71ecec9e9cb8",
    binary=[
        File("cifar-100-binary/train.bin", 153_700_000),
        File("cifar-100-binary/test.bin", 30_740_000),
    ],
    pickled=[
        File("cifar-100-python/train", md5="16019d7e3df5f24257cddd939b257f8d"),
        File("cifar-100-python/test", md5="f0ef6b0ae62326f3e7ffdfab6717acfc"),
    ],
)
# The files are checked by gzip's own sums and the sizes inside: re-compressed copies are as good.
# These sums are of what is downloaded.
_FASHION = {
    File(f"fashion-mnist/{name}-ubyte.gz"): md5
    for name, md5 in {
        "train-images-idx3": "8d4fb7e6c68d591d4c3dfef9ec88bf0d",
        "train-labels-idx1": "25c81989df183df01b3e8a0aad5dffbe",
        "t10k-images-idx3": "bef4ecab320f06d8554ea6380940ec79",
        "t10k-labels-idx1": "bb300cfdad3c16e7a12a480ee83cd310",
    }.items()
}


def load_fashion_mnist(root: Path, train: int = 60_000, test: int = 10_000) -> ImageData:
    """Read Fashion-MNIST; it must have as many images as the official files."""
    reason = lacking(root, [*_FASHION])
    if reason is not None:
        raise DataError(f"fashion_mnist: {reason}.")
    parts: list[Images] = []
    for pixels, labels, count in zip(
        [*_FASHION][::2], [*_FASHION][1::2], (train, test), strict=True
    ):
        part = read_idx(root, pixels, labels, classes=10)
        if len(part) != count:
            raise refusal(root / pixels.path, f"{count:,} images", f"{len(part):,}")
        parts.append(part)
    return ImageData(*parts, classes=10)


_ZALANDO = "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com"
DATA_SETS = [
    _CIFAR10,
    _CIFAR100,
    DataSet(
        name="fashion_mnist",
        title="Fashion-MNIST: 70,000 grey images of 28×28 in 10 classes",
        licence="MIT",
        load=load_fashion_mnist,
        missing=lambda root: lacking(root, [*_FASHION]),
        sources=[
            Source(f"{_ZALANDO}/{Path(file.path).name}", [file.path], md5)
            for file, md5 in _FASHION.items()
        ],
    ),
]
