"""The page "Your first ten minutes" is true, and its commands are a script for an empty container."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

import ten_minutes
from page_blocks import TEN_MINUTES, first_ten_minutes

pytestmark = pytest.mark.processes

PAGE = TEN_MINUTES.read_text("utf-8")


def _blurred(text: str) -> str:
    """Leave out what differs from processor to processor: all but three digits of a number, those of a percentage
    behind its point, and a column's blanks."""
    return re.sub(r" +", " ", re.sub(r"(\d\.\d{2})\d+", r"\1", re.sub(r"(\d)\.\d+%", r"\1%", text)))


def test_each_command_prints_what_the_page_shows(tmp_path: Path) -> None:
    for block, printed in first_ten_minutes(tmp_path):
        assert _blurred(printed) == _blurred(block.code), block


def test_the_script_types_what_the_page_says() -> None:
    """In order, from the clone to the report; with the address replaced, and nothing of an excluded section."""
    script = ten_minutes.script(PAGE, "/a clone", without="openvino")
    typed = [line for line in script.splitlines() if not line.startswith("echo")]
    assert typed[2] == "git clone '/a clone'"
    assert "ADDRESS" not in script
    words = ["show", "run", "check", "check", "compare", "diff", "report"]
    assert [line.split()[1] for line in typed if line.startswith("irrun ")] == words
    assert "openvino" not in script
    assert "pip install -q openvino" in ten_minutes.script(PAGE, "x").splitlines()


@pytest.mark.parametrize(("command", "status"), [("exit 3", 3), ("false", 1), ("true", 0)])
def test_the_script_ends_with_the_first_command_that_fails(command: str, status: int, tmp_path: Path) -> None:
    script = ten_minutes.script(f"```sh\n{command}\ntouch reached\n```\n", "x")
    done = subprocess.run(["sh"], input=script, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == status
    assert (tmp_path / "reached").exists() == (status == 0)
    assert f"$ {command}" in done.stdout
