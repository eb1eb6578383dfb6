"""Names and messages of the tasks, and what listing them loads."""

from __future__ import annotations

import subprocess
import sys

import pytest

from hvadam_bench import tasks


def test_tasks_go_by_their_files() -> None:
    assert tasks.names() == sorted(tasks.names())
    assert all(tasks.get(name).name == name for name in tasks.names())


def test_tasks_load_no_framework() -> None:
    code = """
import sys
from hvadam_bench import contenders, tasks
assert contenders.names()
assert all(tasks.get(name).scales["smoke"] for name in tasks.names())
assert "torch" not in sys.modules, "torch came along"
"""
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("digits_mpl", "there is no task 'digits_mpl'; did you mean 'digits_mlp'?"),
        ("xyz", f"there is no task 'xyz'; there are {tasks.names()[0]}, "),
    ],
)
def test_unknown_words(name: str, message: str) -> None:
    with pytest.raises(ValueError, match="there is no task") as caught:
        tasks.get(name)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)
