"""Each command starts in a process of its own, as a user starts it: other tests fork from a warm one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from irrun import __version__
from irrun.cli import COMMANDS
from places import ROOT

pytestmark = pytest.mark.processes


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_starts(command: str) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "irrun", command, "--help"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"Usage: irrun {command}")


def test_the_console_script(tmp_path: Path) -> None:
    script = Path(sys.executable).with_name("irrun.exe" if sys.platform == "win32" else "irrun")
    if not script.exists():
        pytest.skip("irrun is not installed in this environment: no console script")
    said = subprocess.run([script, "--version"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert said.stdout.startswith(f"irrun {__version__} ")
    sample = ROOT / "samples" / "convnet.xml"
    done = subprocess.run([script, "check", sample], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "checked 1 file: 0 errors, 0 warnings\n")
