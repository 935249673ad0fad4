"""The limits of a run: its time, and weights that change under it."""

from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import irrun
from irrun import build as b
from irrun.cli import cli


def _endless() -> irrun.Model:
    """Return a model whose Loop never ends."""
    x = b.parameter([1], name="x")
    return b.model(b.Loop(-1, True, x, body=lambda i, a: (True, b.Add(a, [1.0])), name="loop"))


def test_a_loop_without_end_is_stopped(tmp_path: Path) -> None:
    path = tmp_path / "net.xml"
    irrun.save_model(_endless(), path)
    with pytest.raises(irrun.ExecutionError, match=r"IR607.*longer than the 0.2 s allowed") as caught:
        irrun.compile(path, timeout=0.2)(np.zeros(1, np.float32))
    assert [d.code for d in caught.value.diagnostics] == ["IR607"]
    result = CliRunner().invoke(cli, ["run", str(path), "-i", "x=[0]", "--timeout", "0.2"])
    assert (result.exit_code, "IR607" in result.output) == (1, True)


def _sequence(activation: str) -> irrun.Model:
    """Return a model of one recurrent sequence that takes minutes."""
    x, long = b.parameter([1, 10**7, 1], name="x"), np.array([10**7], np.int32)
    weights = np.ones((1, 1, 1), np.float32), np.ones((1, 1, 1), np.float32), np.zeros((1, 1), np.float32)
    start = np.zeros((1, 1, 1), np.float32)
    layer = b.RNNSequence(x, start, long, *weights, hidden_size=1, direction="forward", activations=[activation])
    return b.model(layer[0])


@pytest.mark.parametrize("activation", ["tanh", "relu"], ids=["packed", "plain"])
def test_a_long_sequence_is_stopped(activation: str) -> None:
    executable = irrun.compile(_sequence(activation), timeout=0.5)
    start = time.process_time()
    with pytest.raises(irrun.ExecutionError, match=r"IR607.*stopped in RNNSequence"):
        executable(np.zeros((1, 10**7, 1), np.float32))
    assert time.process_time() - start < 5


def test_a_run_in_time() -> None:
    executable = irrun.compile(b.model(b.ReLU(b.parameter([1], name="x"))), timeout=60)
    assert executable(np.ones(1, np.float32))[0].tolist() == [1]


def _saved(folder: Path) -> tuple[Path, Path]:
    path = folder / "net.xml"
    irrun.save_model(b.model(b.Add(b.parameter([1000], name="x"), np.ones(1000, np.float32))), path)
    return path, path.with_suffix(".bin")


@pytest.mark.parametrize("change", ["cut", "rewritten"])
def test_weights_that_change_after_compile(change: str, tmp_path: Path) -> None:
    path, weights = _saved(tmp_path)
    executable = irrun.compile(path)
    copied = irrun.compile(path, copy_weights=True)
    feed = np.zeros(1000, np.float32)
    assert executable(feed)[0].tolist() == [1] * 1000
    if change == "cut":
        os.truncate(weights, 0)
    else:
        with weights.open("r+b") as file:
            file.write(np.full(1000, 7, np.float32).tobytes())
        os.utime(weights, ns=(time.time_ns(), time.time_ns() + 1_000_000_000))
    with pytest.raises(irrun.ExecutionError, match=r"IR502.*has changed since the model was read.*compile the model"):
        executable(feed)
    assert copied(feed)[0].tolist() == [1] * 1000


@pytest.mark.parametrize("change", ["replaced", "removed", "touched before"])
def test_changes_that_do_no_harm(change: str, tmp_path: Path) -> None:
    path, weights = _saved(tmp_path)
    if change == "touched before":
        os.utime(weights)
    executable = irrun.compile(path)
    if change == "replaced":
        other = tmp_path / "other.bin"
        other.write_bytes(bytes(4000))
        other.replace(weights)
    elif change == "removed":
        weights.unlink()
    assert executable(np.zeros(1000, np.float32))[0].tolist() == [1] * 1000
