"""A process may fork while another of its threads compiles, links or imports kernels: the child computes, too."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytest.importorskip("numba", reason="the extra `fast` is not installed")

from places import ROOT


@pytest.mark.processes
@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_forks_at_random_moments_of_a_first_run() -> None:
    """Without the lock, 2 of 2 processes had a child that never ended: see docs/compiled-kernels.md for more forks."""
    done = subprocess.run(
        [sys.executable, "-m", "tools", "forks", "10"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
