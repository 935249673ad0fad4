"""The time of a command grows with the length of a file: nothing in it meets each of the others.

``python -m tools growth`` measures the same cases with 10,000 and 100,000 things.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from growth.cases import CASES
from growth.measure import timed

pytestmark = pytest.mark.processes

FEW, MANY = 300, 2400
_EVERY = 8
"""The lane ``spec`` checks one of so many cases, in turn through all kinds of files; the lane ``slow`` the others."""
OTHERS = [(name, command) for name, case in CASES.items() for command in case.commands if command != "check"]


def grows_linearly(name: str, command: str, folder: Path) -> bool:
    """Return whether eight times as many things take less than 24 times as much of the processor.

    With each pair, it would be 64 times. The machine may be busy, so that one of three attempts is enough.
    """
    case = CASES[name]
    timed(command, case.write(folder, 3))  # imports
    for _ in range(3):
        few, many = (timed(command, case.write(folder, count)) for count in (FEW, MANY))
        assert few[1] == many[1]
        if many[0] < 24 * max(few[0], 0.02):  # what is quicker is noise
            return True
    return False


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if n % _EVERY else []) for n, name in enumerate(CASES)]
)
def test_the_time_of_a_check_grows_with_the_file(name: str, tmp_path: Path) -> None:
    assert grows_linearly(name, "check", tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "command"), OTHERS)
def test_the_time_of_a_command_grows_with_the_file(name: str, command: str, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    assert grows_linearly(name, command, tmp_path)
