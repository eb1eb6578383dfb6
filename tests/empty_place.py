"""Tries built packages in an empty environment, outside of the source tree.

    python empty_place.py DIST PYTHON TORCH...

installs DIST's wheel of hvadam with the build of torch that is named, as pip takes it, and runs
`smoke.py` there; then the wheel of hvadam-bench beside it, likewise.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path


def main(dist: Path, python: str, torch: list[str]) -> None:
    """Make the place, install, try."""
    smoke = (Path(__file__).parent / "smoke.py").read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([python, "-m", "venv", f"{folder}/venv"], check=True)
        Path(folder, "smoke.py").write_text(smoke, encoding="utf-8")
        run(folder, "-m", "pip", "install", "--quiet", *torch)
        for part, package in (("library", "hvadam-"), ("bench", "hvadam_bench-")):
            [wheel] = dist.resolve().glob(f"{package}*.whl")
            run(folder, "-m", "pip", "install", "--quiet", str(wheel))
            run(folder, "smoke.py", part)
    print(f"hvadam: the wheels work in an empty place, with {' '.join(torch)}")


def run(folder: str, *words: str) -> None:
    """Run the place's own Python there, without what the environment says of other packages."""
    subprocess.run([f"{folder}/venv/bin/python", "-I", *words], cwd=folder, check=True)


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3:])
