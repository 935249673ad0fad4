"""Two versions of OpenVINO, each in a virtual environment of its own, as the sides of a comparison."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from irrun.debug import bisect, compare
from irrun.engines import parse_side
from places import DEPARTURES, ROOT

pytestmark = pytest.mark.slow

OLDER = "openvino==2024.6.0"


@pytest.fixture(scope="module")
def older(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Install an older OpenVINO in a virtual environment, and return the path of its interpreter.

    This is the only test that downloads something. It is skipped where that is not possible.
    """
    folder = tmp_path_factory.mktemp("older")
    made = subprocess.run([sys.executable, "-m", "venv", folder], capture_output=True, text=True, check=False)
    if made.returncode:
        pytest.skip(f"no virtual environment can be made: {made.stderr.strip()[-200:]}")
    python = str(folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python"))
    command = [python, "-m", "pip", "install", "-q", OLDER]
    installed = subprocess.run(command, capture_output=True, text=True, check=False)
    if installed.returncode:
        pytest.skip(f"pip cannot install {OLDER}: {installed.stderr.strip()[-200:]}")
    return python


def _sides(older: str, path: Path) -> tuple[str, str]:
    return f"openvino[python='{older}',precision=f32]:{path}", f"openvino[precision=f32]:{path}"


def test_versions_that_agree(older: str) -> None:
    comparison = compare(*_sides(older, ROOT / "samples" / "convnet.xml"))
    assert comparison.verdict == "agree"
    assert len(comparison.layers) == 13
    assert comparison.reference[1] == "OpenVINO 2024.6.0 CPU f32"
    assert comparison.candidate[1] != comparison.reference[1]


def test_a_fault_that_the_older_version_has_not(older: str) -> None:
    """The newer one fuses a MatMul and its bias, and loses an axis. It does not while it is observed."""
    sides = _sides(older, DEPARTURES / "matmul_bias.xml")
    feeds = {"x": np.ones((3, 1), np.float32)}
    comparison = compare(*sides, feeds)
    assert (comparison.verdict, comparison.first) == ("differ", None)
    assert comparison.outputs[0].measurement.problem == "the shape is [3, 1], that of the reference [1, 3, 1]"
    reference, candidate = map(parse_side, sides)
    bisection = bisect(reference, candidate, feeds)
    assert [layer.name for layer in bisection.layers] == ["MatMul", "Add"]
    assert bisection.runs <= 60
