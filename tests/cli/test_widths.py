"""Tables in terminals of 60, 80 and 200 columns: snapshots, and no number is ever broken.

``python -m tools snapshots`` writes the snapshots.
"""

from __future__ import annotations

import itertools
import re
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from rich.console import Console

from irrun.cli import _execution, _results, _terminal, cli
from irrun.running.profile import Profile
from places import SAMPLES

SNAPSHOTS = Path(__file__).parent / "snapshots"
WIDTHS = (60, 80, 200)


def terminal(width: int) -> Callable[..., Console]:
    """Return a function in place of ``_terminal.console``, for a terminal without colours."""

    def console(*, stderr: bool = False) -> Console:
        return _terminal._Console(
            file=sys.stderr if stderr else sys.stdout, width=width, force_terminal=True, force_interactive=False,
            color_system=None, markup=False, highlight=False, emoji=False, soft_wrap=True,
        )  # fmt: skip

    return console


def layers(width: int, patch: pytest.MonkeyPatch) -> str:
    patch.setattr(_terminal, "console", terminal(width))
    result = CliRunner().invoke(cli, ["show", str(SAMPLES / "convnet.xml"), "--layers"])
    assert result.exit_code == 0, result.output
    return result.stdout[result.stdout.index("layers\n") :]


def runs(width: int, patch: pytest.MonkeyPatch) -> str:
    """The times of runs that take 1, 2, 3, … milliseconds by a clock of the test."""
    patch.setattr(_terminal, "console", terminal(width))
    ticks = itertools.accumulate(number // 2 * 1e-3 if number % 2 else 1.0 for number in itertools.count(2))
    patch.setattr(_execution, "time", SimpleNamespace(perf_counter=lambda: next(ticks), monotonic=time.monotonic))
    result = CliRunner().invoke(cli, ["run", str(SAMPLES / "convnet.xml"), "--runs", "11"])
    assert result.exit_code == 0, result.output
    return result.stdout[result.stdout.index("times\n") :]


STEPS: Sequence[tuple[str, str, str, int, float]] = [
    ("/model/layers.0/self_attn/rotary_emb/Constant_1", "Concat", "", 0, 0.000012),
    ("/model/layers.0/self_attn/q_proj/MatMul", "MatMul", "packed u4", 2_000_000_000, 0.0123456),
    ("/model/layers.0/mlp/gate_proj/MatMul", "MatMul+Swish+Multiply", "packed u4", 8_000_000_000, 0.0453),
    ("/model/layers.10/mlp/down_proj/MatMul_with_a_name_that_no_terminal_shows_whole", "MatMul", "", 4 * 10**9, 1.25),
]


def profile(width: int, patch: pytest.MonkeyPatch) -> str:
    clock = iter([moment for at, (*_, took) in enumerate(STEPS) for moment in (float(at * 2), at * 2 + took)])
    patch.setattr(time, "perf_counter", lambda: next(clock))
    measured = Profile()
    for name, type, algorithm, flops, _ in STEPS:
        step: Any = SimpleNamespace(
            layers=tuple(SimpleNamespace(name=name, type=part) for part in type.split("+")),
            kernel=SimpleNamespace(algorithm=algorithm, flops=flops),
        )
        arrays = [np.zeros((1000, 1000), np.float32)]
        measured.before(step, arrays)
        measured.after(step, arrays, arrays)
    with CliRunner().isolation() as streams:
        _results._print_profile(terminal(width)(), measured)
        sys.stdout.flush()
        return re.sub(r"matrix products: \w+", "matrix products: …", streams[0].getvalue().decode())


TABLES = {"layers": layers, "runs": runs, "profile": profile}


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("table", TABLES)
def test_snapshot(table: str, width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    text = TABLES[table](width, monkeypatch)
    assert text == (SNAPSHOTS / f"{table}-{width}.txt").read_text("utf-8")
    assert all(
        len(line) <= width
        for line in text.splitlines()
        if line.startswith("  ") and not line.startswith(("  (", "  13 layers"))
    )


@pytest.mark.parametrize("table", TABLES)
def test_no_number_is_broken(table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In every width, a row is one line, and each number in it is one of the row in a wide terminal."""
    whole = _rows(TABLES[table](400, monkeypatch))
    for width in range(42, 220, 3):
        shown = _rows(TABLES[table](width, monkeypatch))
        assert len(shown) == len(whole), width
        for row, complete in zip(shown, whole):
            assert set(_numbers(row)) <= set(_numbers(complete)), (width, row)


def _rows(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("  ") and not line.startswith("  (")]


def _numbers(row: str) -> list[str]:
    return re.findall(r"\d[\d.]*", row)


def test_a_pipe_gets_the_whole_table() -> None:
    """Without a terminal, nothing is cut and no column is left out."""
    result = CliRunner().invoke(cli, ["show", str(SAMPLES / "convnet.xml"), "--layers"])
    assert "kernel=2,2 rounding_type=floor auto_pad=explicit" in result.stdout
    assert "…" not in result.stdout


if __name__ == "__main__":
    SNAPSHOTS.mkdir(exist_ok=True)
    for name, function in TABLES.items():
        for columns in WIDTHS:
            with pytest.MonkeyPatch.context() as context:
                (SNAPSHOTS / f"{name}-{columns}.txt").write_text(function(columns, context), "utf-8")
