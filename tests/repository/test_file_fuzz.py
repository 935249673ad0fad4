"""A sample of the fuzzer of files, and that a campaign reports each kind of failure and goes on."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from file_fuzz.campaign import Campaign, Failure, Figures
from file_fuzz.command import main
from file_fuzz.faults import FAULTS

pytestmark = [
    pytest.mark.processes,
    pytest.mark.skipif(sys.platform != "linux", reason="the limits of the workers are those of Linux"),
]


def _run(folder: Path, *arguments: str) -> None:
    """Run a campaign; it must succeed, and store nothing."""
    assert main([*arguments, "--keep", str(folder / "kept")]) == 0
    assert not (folder / "kept").exists()


def test_mutants(tmp_path: Path) -> None:
    _run(tmp_path, "--count", "200", "--seed", "14")


@pytest.mark.slow
def test_many_mutants(tmp_path: Path) -> None:
    _run(tmp_path, "--count", "20000", "--seed", "15", "--jobs", "2")


def _reported(folder: Path, first: int, count: int, silence: float) -> tuple[Figures, dict[str, Failure]]:
    reported: dict[str, Failure] = {}
    campaign = Campaign(
        "faults",
        count,
        "0",
        first,
        silence=silence,
        keep=folder,
        report=lambda f: reported.update({FAULTS[f.number]: f}),
    )
    return campaign.run(), reported


def test_every_failure_is_reported(tmp_path: Path) -> None:
    figures, reported = _reported(tmp_path, 0, FAULTS.index("hang"), 300)
    assert (figures.cases, figures.outcomes["result"]) == (FAULTS.index("hang"), 3)  # the slow one has a result, too
    assert list(reported) == ["exception", "out of memory", "slow", "crash", "exit"]
    lines = {name: failure.text.splitlines() for name, failure in reported.items()}
    assert lines["exception"][-1] == "ValueError: no IrrunError"
    assert lines["out of memory"][-1] == "MemoryError"
    assert lines["slow"][0].endswith("s of CPU time")
    assert lines["crash"][0] == "ended by SIGSEGV"
    assert lines["exit"] == ["ended with status 3"]
    assert {(path / "case.txt").read_text() for path in tmp_path.iterdir()} == set(reported)
    assert all((path / "failure.txt").read_text() for path in tmp_path.iterdir())


def test_a_case_that_hangs_is_reported(tmp_path: Path) -> None:
    figures, reported = _reported(tmp_path, FAULTS.index("hang"), 1, 0.2)
    assert (figures.cases, reported["hang"].signature) == (1, "hangs")


_INTERRUPTED = """
import os, signal, sys
sys.path[:] = sys.argv[1].split(os.pathsep)
from file_fuzz.campaign import Campaign
from file_fuzz.faults import FAULTS
stop = lambda figures: os.kill(os.getpid(), signal.SIGINT)
print(Campaign("faults", 2, "0", FAULTS.index("hang") - 1, progress=stop).run().cases)
"""


def test_an_interrupted_campaign_keeps_its_figures() -> None:
    """In a process of its own: what interrupts this one late would end the tests."""
    command = [sys.executable, "-c", _INTERRUPTED, os.pathsep.join(path for path in sys.path if path)]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    assert ended.stdout == "1\n"
