"""Bodies and state built in Python: If, Loop, TensorIterator and variables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irrun
from irrun import build as b
from irrun.types import INF
from oracle import Oracle


def _same(oracle: Oracle, model: irrun.Model, folder: Path, *feeds: list[np.ndarray]) -> None:
    """Saved, a model checks clean and OpenVINO gives for each of ``feeds`` what irrun gives."""
    path = folder / "model.xml"
    irrun.save_model(model, path)
    assert not irrun.check(path).diagnostics
    for given in feeds:
        for got, want in zip(irrun.run(model, given, strict=True).arrays, oracle(path, given), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-6)


X = np.array([[1, -2, 3]], np.float32)


def test_if(tmp_path: Path, oracle: Oracle) -> None:
    cond, x = b.parameter([], "boolean"), b.parameter([None, 3])
    both = b.If(cond, x, then=lambda a: (b.Add(a, 1), a), otherwise=lambda a: (b.Multiply(a, [2.0]), b.ReLU(a)))
    _same(oracle, b.model(list(both)), tmp_path, [np.array(True), X], [np.array(False), X])


def test_loop(tmp_path: Path, oracle: Oracle) -> None:
    x, table, trips = b.parameter([1, 3]), b.parameter([4, 3]), b.parameter([], "i64")

    def body(i: b.Node, total: b.Node, row: b.Node, step: b.Node) -> Any:
        grown = b.Add(b.Add(total, row), b.Multiply(step, b.Convert(i, destination_type="f32")))
        return b.Less(b.ReduceMax(grown, [0, 1]), 20.0), grown, b.concatenated(grown)

    loop = b.Loop(trips, True, x, b.sliced(table), b.invariant([0.5]), body=body)
    rows = np.arange(12, dtype=np.float32).reshape(4, 3)
    _same(oracle, b.model(list(loop)), tmp_path, [X, rows, np.array(3)], [X, rows, np.array(4)])


def test_what_is_carried_may_grow(tmp_path: Path, oracle: Oracle) -> None:
    x = b.parameter([1, 3])
    loop = b.Loop(3, True, x, body=lambda i, a: (True, b.Concat(a, a, axis=0)))
    assert loop.shape.rank == 2
    _same(oracle, b.model(loop), tmp_path, [X])


def test_one_of_two_that_are_carried_may_grow() -> None:
    """It grows by the row that stays as it is."""
    x = b.parameter([1, 3])
    loop = b.Loop(3, True, x, x, body=lambda i, grows, stays: (True, b.Concat(grows, stays, axis=0), b.Abs(stays)))
    grown, stayed = loop
    assert (grown.shape[0].hi, str(stayed.shape)) == (INF, "[1,3]")
    outputs = irrun.run(b.model([grown, stayed]), [X], strict=True).arrays
    np.testing.assert_array_equal(outputs[0], np.concatenate([X, X, abs(X), abs(X)]))
    np.testing.assert_array_equal(outputs[1], abs(X))


def test_tensor_iterator(tmp_path: Path, oracle: Oracle) -> None:
    x = b.parameter([1, 6])

    def body(part: b.Node, total: b.Node) -> Any:
        total = b.Add(total, part)
        return total, b.concatenated(total, axis=1)

    forward = b.TensorIterator(b.sliced(x, axis=1, part_size=2), [[0.0, 0.0]], body=body)
    backward = b.TensorIterator(b.sliced(x, axis=1, start=-1, end=0, stride=-1), [[0.0]], body=body)
    _same(oracle, b.model([*forward, *backward]), tmp_path, [np.arange(6, dtype=np.float32)[None]])


def test_bodies_within_bodies(tmp_path: Path, oracle: Oracle) -> None:
    x = b.parameter([1, 3])

    def body(i: b.Node, a: b.Node) -> Any:
        odd = b.Equal(b.Mod(i, 2), 1)
        return True, b.If(odd, a, then=lambda v: b.Add(v, 1.0), otherwise=lambda v: b.Multiply(v, [2.0, 3.0, 4.0]))

    _same(oracle, b.model(b.Loop(5, True, x, body=body)), tmp_path, [X])


def test_a_body_uses_what_it_is_given() -> None:
    x = b.parameter([2], name="x")
    with pytest.raises(ValueError, match='the body of If uses parameter "x" of the model around it'):
        b.If(True, then=lambda: x, otherwise=lambda: [1.0, 2.0])
    with pytest.raises(ValueError, match="then returns 1 outputs, but otherwise returns 2"):
        b.If(True, x, then=lambda a: a, otherwise=lambda a: (a, a))
    with pytest.raises(ValueError, match="returns 1 values, but it must return the condition and 1 values"):
        b.Loop(2, True, x, body=lambda i, a: True)


def test_state() -> None:
    x = b.parameter([2], name="x")
    held = b.ReadValue([0.0, 0.0], variable_id="sum", variable_type="f32", variable_shape=[2])
    total = b.Add(held, x)
    executable = irrun.compile(b.model({"total": total}, sinks=[b.Assign(total, variable_id="sum")]))
    ones = np.ones(2, np.float32)
    assert [executable(ones)["total"][0] for _ in range(3)] == [1, 2, 3]
