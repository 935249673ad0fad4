"""Whatever ends a comparison, no process and no file is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import irrun
from irrun import build as b
from irrun.engines import private_folder

pytestmark = [
    pytest.mark.processes,
    pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="finds processes in /proc"),
]

PLUGIN = """
import time
import numpy as np
from pathlib import Path
from irrun import Op, op, ports

@op("Wait", since=1)
class Wait(Op):
    \"\"\"Wait in a run.\"\"\"

    inputs = ports(data="f32")

    def infer(self, at, data):
        return data

    def run(self, data):
        Path("waiting").touch()
        time.sleep(SECONDS)
        return data
"""
START = 'import time; from pathlib import Path; Path("waiting").touch(); time.sleep(600)'


def _until(condition: Callable[[], bool], seconds: float = 120) -> bool:
    """Wait until a condition holds, and return whether it does."""
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.05)
    return condition()


def _processes(folder: Path) -> list[int]:
    """Return the processes whose temporary files are in a folder."""
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if f"TMPDIR={folder}\0".encode() in path.read_bytes():
                found.append(int(path.parent.name))
        except OSError:  # it has ended, or belongs to somebody else
            continue
    return found


def _model(folder: Path, waits: bool) -> None:
    x = b.ReLU(b.parameter([2000], name="x"), name="first")
    y = b.Tanh(x, name="second")
    path = folder / f"{waits}.xml"
    irrun.save_model(b.model({"y": b.Abs(y, name="third")}), path)
    if waits:
        text = path.read_text()
        path.write_text(text.replace('type="Tanh" version="opset1"', 'type="Wait" version="opset1"'))


@pytest.mark.parametrize("end", ["SIGINT", "SIGTERM", "SIGKILL"])
@pytest.mark.parametrize("phase", ["start", "reference", "candidate"])
def test_nothing_is_left(phase: str, end: str, tmp_path: Path) -> None:
    files = tmp_path / "tmp"
    files.mkdir()
    for waits in (False, True):
        _model(tmp_path, waits)
    (tmp_path / "wait.py").write_text(PLUGIN.replace("SECONDS", "600"))
    (tmp_path / "hang").write_text(f"#!{sys.executable}\n{START}\n")
    (tmp_path / "hang").chmod(0o755)
    sides = {
        "start": ["False.xml", "irrun[python=./hang]:False.xml"],
        "reference": ["True.xml", "False.xml"],
        "candidate": ["False.xml", "True.xml"],
    }[phase]
    command = [sys.executable, "-m", "irrun", "compare", *sides, "--plugin", "wait.py"]
    environment = {**os.environ, "TMPDIR": str(files), "PYTHONPATH": str(Path(irrun.__file__).parents[1])}
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        try:
            assert _until((tmp_path / "waiting").exists)
            assert len(_processes(files)) >= 2
            assert list(files.glob("irrun-*"))
            process.send_signal(signal.Signals[end])
            _, complaint = process.communicate(timeout=120)
        finally:
            process.kill()
    assert b"Traceback" not in complaint
    if phase == "start" and end != "SIGINT":  # a program that is no harness does not see the end of its input
        for pid in _processes(files):
            if b"hang" in Path(f"/proc/{pid}/cmdline").read_bytes():
                os.kill(pid, signal.SIGKILL)
    assert _until(lambda: not _processes(files))
    if phase == "start" and end != "SIGINT":  # no harness may be left that removes the folder: the next call does
        call = "from irrun.engines import private_folder\nwith private_folder():\n    pass"
        subprocess.run([sys.executable, "-c", call], env=environment, check=True)
    assert _until(lambda: not list(files.iterdir()), 10)


def test_what_killed_processes_left_is_swept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder whose lock nobody holds is removed, one in use and one of another program are not."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    for name, file in (("irrun-left", "lock"), ("irrun-other", "file"), ("other-left", "lock")):
        (tmp_path / name / "values").mkdir(parents=True)
        (tmp_path / name / file).touch()
    with private_folder() as first, private_folder() as second:
        names = {path.name for path in tmp_path.iterdir()}
        assert names == {"irrun-other", "other-left", first.name, second.name}
    assert {path.name for path in tmp_path.iterdir()} == {"irrun-other", "other-left"}
