"""Random calls of compiled kernels in odd memory: `python -m tools kernel_calls` makes more of them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping

import pytest

from places import ROOT

pytest.importorskip("numba", reason="the extra `fast` is not installed")

from irrun.fast import OFFERS
from irrun.fast.machine.forms import FORMS
from kernel_calls.calls import calls
from kernel_calls.kernels import kernels, needed, reached
from kernel_calls.models import MODELS


def test_every_operation_with_compiled_kernels_is_called() -> None:
    assert set(MODELS) >= set(OFFERS)


@pytest.mark.usefixtures("workers", "compiled_kernels")
def test_calls_reach_every_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """A new kernel that no model reaches fails here: add what reaches it to ``kernel_calls.models``."""
    monkeypatch.setenv("IRRUN_FAST", "always")
    draws = dict.fromkeys(MODELS, 9) | {"Rows": 24}  # groups of few rows, and of many; other rows times a number
    draws["ScaledDotProductAttention"] = 16  # masks of booleans
    made = [one for type, count in draws.items() for number in range(count) for one in calls(type, 34, number)]
    assert not [one for one in made if one.wrong]
    assert reached(name for one in made for name in one.kernels) >= needed(threads=1)


def test_kernels_are_listed() -> None:
    """Those that Python calls, those that only kernels call, and those of a package inside."""
    assert {"panels.multiply_part", "panels.multiply_panel", "windows.convolve", "few_queries._attend"} <= {*kernels()}
    assert reached(["panels.multiply_part"]) == {
        "panels.multiply_part", "panels.multiply_panels", "panels.multiply_panel", "panels.multiply_half",
    }  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("form", FORMS)
def test_every_instruction_set(form: str, threads: int) -> None:
    """What processors with fewer instructions run, as far as this one can."""
    command = [sys.executable, "-m", "tools", "kernel_calls", "--calls", "3000", "--seed", "340"]
    command += ["--form", form, "--threads", str(threads)]
    done = subprocess.run(command, cwd=ROOT, env=_plainly(os.environ), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def _plainly(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if not name.startswith("NUMBA_CPU")}
