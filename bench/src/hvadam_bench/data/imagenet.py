"""ImageNet-1k as folders of pictures, ``train/<wnid>/*.JPEG`` and ``val/<wnid>/*.JPEG``.

Nothing is decoded before it is asked for. Pictures need Pillow.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hvadam_bench.data import DataError, DataSet, refusal


@dataclass(frozen=True)
class Folder:
    """Pictures in one folder per class; labels follow the order of the folders' names."""

    path: Path
    classes: tuple[str, ...]

    @cached_property
    def pictures(self) -> tuple[tuple[Path, int], ...]:
        """Return all paths and their labels, sorted."""
        return tuple(
            (picture, label)
            for label, name in enumerate(self.classes)
            for picture in sorted((self.path / name).glob("*.JPEG"))
        )

    def __len__(self) -> int:
        return len(self.pictures)


@dataclass(frozen=True)
class FolderData:
    """The official training and validation folders, with the same classes."""

    train: Folder
    test: Folder
    classes: int


def decode(path: Path) -> NDArray[np.uint8]:
    """Decode a picture file to uint8 of shape (height, width, 3); a few are grey or CMYK.

    Raises:
        DataError: the file is cut short or no picture.
    """
    try:
        from PIL import Image
    except ModuleNotFoundError as error:
        raise DataError("imagenet needs Pillow: pip install 'hvadam[bench]'.") from error
    try:
        with Image.open(path) as picture:
            return np.asarray(picture.convert("RGB"))
    except (OSError, SyntaxError, ValueError) as error:  # Pillow raises all three
        raise refusal(path, "a whole JPEG picture", str(error)) from error


def load(root: Path, classes: int = 1000) -> FolderData:
    """Find the folders; `classes` many must be there in both parts, none of them empty."""
    train, val = root / "imagenet" / "train", root / "imagenet" / "val"
    names = _subfolders(train)
    if len(names) != classes:
        raise refusal(train, f"{classes:,} folders, one per class", f"{len(names):,}")
    if _subfolders(val) != names:
        odd = sorted(set(names) ^ set(_subfolders(val)))
        raise refusal(val, f"folders of the same names as {train}", f"{odd[0]} in one only")
    parts = Folder(train, names), Folder(val, names)
    for part in parts:
        empty = set(range(classes)) - {label for _, label in part.pictures}
        if empty:
            raise refusal(part.path / names[min(empty)], "a folder of *.JPEG", "none")
    return FolderData(*parts, classes)


def _subfolders(path: Path) -> tuple[str, ...]:
    found = path.iterdir() if path.is_dir() else ()
    return tuple(sorted(one.name for one in found if one.is_dir()))


def _missing(root: Path) -> str | None:
    absent = [part for part in ("train", "val") if not _subfolders(root / "imagenet" / part)]
    wanted = " and ".join(f"imagenet/{part}/<wnid>/*.JPEG" for part in absent)
    return f"put {wanted} into {root}" if absent else None


DATA_SETS = [
    DataSet(
        name="imagenet",
        title="ImageNet-1k: 1,281,167 pictures in 1,000 classes",
        licence="for research, after registration",
        load=load,
        missing=_missing,
        by_hand="register at https://image-net.org for ILSVRC2012 and unpack its archives, the "
        "validation pictures sorted into folders by class",
    )
]
