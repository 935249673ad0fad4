"""Pipes and devices in place of files: refused, without waiting and without filling the memory."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import irrun
import warm
from irrun.ir import parse
from places import SAMPLES

pytestmark = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")


def _run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run irrun in a process with at most 4 GiB of addresses, which ends if it waits."""
    program = (
        "import resource, runpy; resource.setrlimit(resource.RLIMIT_AS, (4 << 30,) * 2); runpy.run_module('irrun')"
    )
    program = program.replace("run_module('irrun')", "run_module('irrun', run_name='__main__')")
    return warm.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("kind", ["pipe", "device", "folder"])
@pytest.mark.parametrize("command", ["check", "show", "why"])
def test_weights_that_are_no_file(kind: str, command: str, tmp_path: Path) -> None:
    model, weights = tmp_path / "convnet.xml", tmp_path / "convnet.bin"
    shutil.copy(SAMPLES / "convnet.xml", model)
    if kind == "pipe":
        os.mkfifo(weights)
    elif kind == "device":
        weights.symlink_to("/dev/zero")
    else:
        weights.mkdir()
    result = _run(command, str(model), *(["logits"] if command == "why" else []))
    assert result.returncode == 2
    assert f"cannot read {weights}: it is a {kind}, not a file" in (result.stdout + result.stderr)


def test_a_model_that_is_a_device(tmp_path: Path) -> None:
    model = tmp_path / "model.xml"
    model.symlink_to("/dev/zero")
    with pytest.raises(irrun.ReadError, match="it is a device, not a file"):
        irrun.check(model)


def test_a_model_from_a_pipe(tmp_path: Path) -> None:
    """The shell passes ``<(command)`` as a pipe."""
    command = f"{sys.executable} -m irrun check <(cat {SAMPLES / 'elementwise.xml'}) -w {SAMPLES / 'elementwise.bin'}"
    result = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=60)
    assert result.returncode == 0, result.stderr


def test_a_pipe_to_which_nobody_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parse, "_PATIENCE", 0.1)
    os.mkfifo(tmp_path / "model.xml")
    with pytest.raises(irrun.ReadError, match="no process writes to the pipe"):
        irrun.check(tmp_path / "model.xml")


def test_a_pipe_whose_writer_is_late(tmp_path: Path) -> None:
    pipe = tmp_path / "model.xml"
    os.mkfifo(pipe)
    writer = threading.Thread(
        target=lambda: (time.sleep(0.3), pipe.write_bytes((SAMPLES / "wrong_dim.xml").read_bytes()))
    )
    writer.start()
    assert "IR401" in {d.code for d in irrun.check(pipe, weights=SAMPLES / "wrong_dim.bin")}
    writer.join()
