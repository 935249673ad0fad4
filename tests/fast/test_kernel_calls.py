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
from kernel_calls import MODELS, call
from processor_forms import FORMS


def test_every_compiled_kernel_is_called() -> None:
    assert set(MODELS) == set(OFFERS)


@pytest.mark.parametrize("type", MODELS)
def test_calls(type: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IRRUN_FAST", "always")
    made = [call(type, seed=34, number=number) for number in range(8)]
    assert not [one for one in made if one.wrong]
    assert any(one.kernels for one in made)


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("form", FORMS)
def test_every_instruction_set(form: str, threads: int) -> None:
    """What processors with fewer instructions run, as far as this one can."""
    command = [sys.executable, "-m", "tools", "kernel_calls", "--calls", "480", "--seed", "340"]
    command += ["--form", form, "--threads", str(threads)]
    done = subprocess.run(command, cwd=ROOT, env=_plainly(os.environ), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def _plainly(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if not name.startswith("NUMBA_CPU")}
