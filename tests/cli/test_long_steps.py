"""``irrun run --timeout`` ends within a second of its limit, in the middle of a step that takes much longer."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

import irrun
import irrun.build as b

pytestmark = pytest.mark.processes

_SIZE = 5000
"""The product of two matrices of this size takes seconds."""


def _model(folder: Path) -> Path:
    x = b.parameter([_SIZE, _SIZE], "f32", name="x")
    path = folder / "m.xml"
    irrun.save_model(b.model(b.SoftMax(b.MatMul(b.MatMul(b.ReLU(x), x, name="first"), x, name="second"), axis=1)), path)
    return path


def _seconds(path: Path, timeout: str, *options: str) -> tuple[float, subprocess.CompletedProcess[str]]:
    command = [sys.executable, "-m", "irrun", "run", str(path), "-i", "x=ones", "--timeout", timeout, *options]
    since = time.monotonic()
    ended = subprocess.run(command, cwd=path.parent, capture_output=True, text=True, check=False)
    return time.monotonic() - since, ended


@pytest.mark.parametrize("options", [(), ("--exact",), ("--runs", "3"), ("--format", "json")], ids=" ".join)
def test_a_long_step_ends_the_process(options: tuple[str, ...], tmp_path: Path) -> None:
    path = _model(tmp_path)
    start, _ = _seconds(path, "1e-9")  # the time to start, to read and to make the input
    taken, ended = _seconds(path, "0.3", *options)
    assert taken - start < 4  # on a busy machine; a whole run takes longer
    assert ended.returncode == 1
    assert ended.stderr.count("the run took longer than the 0.3 s allowed and was stopped") == 1
    assert "IR607" in ended.stderr
    if "json" in options:
        assert json.loads(ended.stdout)["error"]["diagnostics"][0]["code"] == "IR607"
    else:
        assert ended.stdout == ""


def test_no_file_is_half_written(tmp_path: Path) -> None:
    """The index of a dump lists what is there, and the outputs are missing."""
    path = _model(tmp_path)
    _, ended = _seconds(path, "2", "--dump", "dump", "-o", "out.npz", "--trace", "t.json")
    assert ended.returncode == 1
    assert {file.name for file in tmp_path.iterdir()} <= {"m.xml", "m.bin", "dump"}
    rows = json.loads((tmp_path / "dump" / "index.json").read_text())
    assert {file.name for file in (tmp_path / "dump").iterdir()} == {"index.json", *(row["file"] for row in rows)}


def test_a_run_in_time_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "m.xml"
    irrun.save_model(b.model(b.ReLU(b.parameter([3], name="x"))), path)
    _, ended = _seconds(path, "60", "--runs", "3")
    assert (ended.returncode, ended.stderr) == (0, "")
