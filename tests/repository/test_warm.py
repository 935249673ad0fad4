"""Processes that are forked from a warm one behave as those that are started."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import warm
from places import ROOT

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="processes are forked on Linux only")

PROGRAM = """
import os, sys
print(os.getcwd(), sys.argv, sys.stdin.read(), os.environ.get("OF_ITS_OWN"), __name__, os.umask(0))
print("é", file=sys.stderr)
"""
ENDINGS = {
    "its end": "pass",
    "a status": "raise SystemExit(7)",
    "a message": "raise SystemExit('no')",
    "an exception": "x = 1\n1/0",
    "an interrupt": "raise KeyboardInterrupt",
    "a signal": "import os, signal; os.kill(os.getpid(), signal.SIGTERM)",
    "at exit": "import atexit; atexit.register(print, 'bye')",
    "a thread": "import threading, time; threading.Thread(target=lambda: (time.sleep(0.1), print('late'))).start()",
}


def _both(words: Sequence[str], **settings: Any) -> list[tuple[int, str, list[str]]]:
    """Return the status, the output and the last lines of the errors of a real process and of a forked one."""
    results: list[tuple[int, str, list[str]]] = []
    for run in (subprocess.run, warm.run):
        done = run([sys.executable, *words], capture_output=True, text=True, **settings)
        results.append((done.returncode, done.stdout, done.stderr.splitlines()[-1:]))
    return results


@pytest.mark.parametrize("ending", ENDINGS)
def test_endings(ending: str) -> None:
    real, forked = _both(["-c", ENDINGS[ending]])
    assert forked == real


def test_settings(tmp_path: Path) -> None:
    environment = {**os.environ, "OF_ITS_OWN": "ü"}
    real, forked = _both(["-c", PROGRAM, "a", "b c"], cwd=tmp_path, env=environment, input="in")
    assert forked == real
    assert "OF_ITS_OWN" not in os.environ


def test_a_script(tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text("X = 3")
    (tmp_path / "script.py").write_text("import beside, sys\nprint(__name__, __file__, sys.argv, beside.X)")
    real, forked = _both([str(tmp_path / "script.py"), "a"])
    assert forked == real


def test_a_module() -> None:
    real, forked = _both(["-m", "irrun", "check", "samples/wrong_dim.xml"], cwd=ROOT)
    assert forked == real
    assert forked[0] == 1


def test_a_forked_process_is_killed_and_waited_for(tmp_path: Path) -> None:
    words = [sys.executable, "-c", "import time; time.sleep(600)"]
    with warm.Popen(words, cwd=tmp_path, start_new_session=True) as process:
        try:
            assert process._status is not None
            assert os.getsid(process.pid) == process.pid
            assert process.poll() is None
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(0.05)
        finally:
            process.kill()
        assert process.wait(60) == -9


@pytest.mark.parametrize("variable", ["PYTHONHASHSEED", "OMP_NUM_THREADS"])
def test_what_is_read_at_the_start_needs_a_real_process(variable: str) -> None:
    environment = os.environ | {variable: "1"}
    with warm.Popen([sys.executable, "-c", "pass"], env=environment) as process:
        assert process._status is None


def test_another_irrun_needs_a_real_process(tmp_path: Path) -> None:
    (tmp_path / "irrun").mkdir()
    (tmp_path / "irrun" / "__init__.py").touch()
    (tmp_path / "irrun" / "__main__.py").write_text("print('another')")
    done = warm.run([sys.executable, "-m", "irrun"], cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout == "another\n"
