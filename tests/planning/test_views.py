"""Steps that only move elements: as a reshape, as a view, or as one copy. Numpy's own functions say what they give."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import irrun
from irrun import build as b
from irrun.growing.layouts import LAYOUTS

Move = Callable[[Any], Any]


def transpose(*axes: int) -> tuple[Move, Move]:
    return (lambda x: b.Transpose(x, [*axes])), (lambda x: x.transpose(axes))


def reshape(*shape: int) -> tuple[Move, Move]:
    return (lambda x: b.Reshape(x, [*shape], special_zero=False)), (lambda x: x.reshape(shape))


def roll(shifts: list[int], axes: list[int]) -> tuple[Move, Move]:
    return (lambda x: b.Roll(x, shifts, axes)), (lambda x: np.roll(x, shifts, axes))


def pad(begins: list[int], ends: list[int], mode: str = "constant") -> tuple[Move, Move]:
    def by_numpy(x: np.ndarray) -> np.ndarray:
        grown = [*zip(np.maximum(begins, 0), np.maximum(ends, 0))]
        x = np.pad(x, grown, mode) if mode != "constant" else np.pad(x, grown)  # type: ignore[call-overload]
        return x[tuple(slice(max(-p, 0), n - max(-q, 0)) for p, q, n in zip(begins, ends, x.shape))]

    def node(x: Any) -> Any:
        return b.Pad(x, begins, ends, pad_mode=mode)

    return node, by_numpy


def slice_rows(begin: int, end: int, step: int) -> tuple[Move, Move]:
    return (lambda x: b.Slice(x, [begin], [end], [step], [1])), (lambda x: x[:, begin:end:step])


WINDOWS = [reshape(2, 2, 4, 2, 4, 16), transpose(0, 1, 3, 2, 4, 5), reshape(-1, 16, 16)]
BACK = [reshape(2, 2, 2, 4, 4, 16), transpose(0, 1, 3, 2, 4, 5), reshape(2, 8, 8, 16)]
SHAPE = (2, 8, 8, 16)
TYPES = {"f32": np.float32, "f16": np.float16, "i64": np.int64, "u8": np.uint8, "boolean": np.bool_}


@pytest.mark.parametrize(
    ("moves", "steps"),
    [
        ([*WINDOWS], 1),
        ([roll([-2, -3], [1, 2]), *WINDOWS], 1),
        ([reshape(2, 8, 8, 16), pad([0] * 4, [0] * 4), roll([-2, -3], [1, 2]), *WINDOWS], 1),
        ([*WINDOWS, *BACK, roll([2, 3], [1, 2])], 1),
        ([pad([0] * 4, [0] * 4)], 1),
        ([pad([0] * 4, [0] * 4), reshape(2, 64, 16), transpose(0, 2, 1)], 2),
        ([pad([0, -1, 0, 0], [0, -2, 0, 0])], 1),
        ([pad([0, 2, 1, 0], [0, 1, 0, 0], "edge"), slice_rows(1, 9, 2)], 2),
        ([pad([0, 2, 1, 0], [0, 1, 0, 0], "symmetric")], 1),
        ([pad([0, 2, 1, 0], [0, 1, 0, 0]), transpose(0, 2, 3, 1), reshape(2, -1)], 3),
        ([reshape(2, 64, 4, 4), transpose(0, 2, 1, 3)], 1),
        ([roll([1], [3])], 1),
        ([transpose(0, 2, 3, 1), reshape(2, -1), roll([5], [1])], 3),
        ([roll([8], [1]), roll([0], [0])], 1),
        ([slice_rows(7, -9, -3)], 1),
        ([transpose(1, 0, 2, 3), slice_rows(0, 1, 1), reshape(8, 8, 16)], 3),
        ([reshape(16, 8, 16), slice_rows(1, 8, 3), reshape(48, 16), roll([1], [0])], 1),
    ],
)
@pytest.mark.parametrize("type", TYPES)
def test_steps_that_move_elements(moves: list[tuple[Move, Move]], steps: int, type: str) -> None:
    """In the middle of a model and at its end, with its input in any memory, and in the memory of the run before."""
    data = np.random.default_rng(0).integers(0, 2 if type == "boolean" else 200, SHAPE).astype(TYPES[type])
    node = b.parameter(list(SHAPE), type)
    for move, _ in moves:
        node = move(node)
    model = irrun.compile(b.model(node))
    if type == "f32":  # runs of narrower types may be too short
        assert len(model.plan.steps) == steps
    for layout in LAYOUTS.values():
        placed = wanted = layout(data)
        for _, by_numpy in moves:
            wanted = by_numpy(wanted)
        first, second = model([placed])[0], model([placed])[0]
        np.testing.assert_array_equal(first, wanted)
        np.testing.assert_array_equal(second, wanted)
        assert first.dtype == TYPES[type]


def test_a_pad_of_no_elements_may_have_a_value() -> None:
    x = b.parameter(list(SHAPE), "f32")
    model = irrun.compile(b.model(b.Roll(b.Pad(x, [0] * 4, [0] * 4, np.float32(7), pad_mode="constant"), [3], [1])))
    data = np.random.default_rng(0).standard_normal(SHAPE, np.float32)
    assert len(model.plan.steps) == 1
    np.testing.assert_array_equal(model([data])[0], np.roll(data, 3, 1))


def quarter(x: Any, top: int, left: int) -> Any:
    rows = b.Slice(x, [top], [100], [2], [1])
    return b.Slice(rows, [left], [100], [2], [2])


PLACES = [(0, 0), (1, 0), (0, 1), (1, 1)]


@pytest.mark.parametrize("axis", [3, 0, -2])
def test_a_concat_of_parts_of_one_value_is_one_copy(axis: int) -> None:
    """As in Swin, which joins four neighbours."""
    x = b.parameter(list(SHAPE), "f32")
    whole = b.Reshape(x, [2, 8, 8, 16], special_zero=False)
    model = irrun.compile(b.model(b.Concat(*[quarter(whole, *place) for place in PLACES], axis=axis)))
    assert len(model.plan.steps) == 1
    for layout in LAYOUTS.values():
        data = layout(np.random.default_rng(0).standard_normal(SHAPE, np.float32))
        wanted = np.concatenate([data[:, top::2, left::2] for top, left in PLACES], axis)
        np.testing.assert_array_equal(model([data])[0], wanted)


def test_parts_that_others_read_stay() -> None:
    x, y = (b.parameter(list(SHAPE), "f32", name=name) for name in "xy")
    first, second, other = quarter(x, 0, 0), quarter(x, 1, 1), quarter(y, 0, 1)
    nodes = {
        "seen": b.Concat(first, second, axis=3),
        "first": b.Exp(first),
        "two": b.Concat(quarter(x, 0, 1), other, axis=0),
        "twice": b.Concat(x, x, axis=3),
    }
    model = irrun.compile(b.model(nodes))
    rng = np.random.default_rng(0)
    a, c = (rng.standard_normal(SHAPE, np.float32) for _ in range(2))
    results = model([a, c])
    np.testing.assert_array_equal(results["seen"], np.concatenate([a[:, ::2, ::2], a[:, 1::2, 1::2]], 3))
    np.testing.assert_allclose(results["first"], np.exp(a[:, ::2, ::2]), rtol=1e-6)
    np.testing.assert_array_equal(results["two"], np.concatenate([a[:, ::2, 1::2], c[:, ::2, 1::2]], 0))
    np.testing.assert_array_equal(results["twice"], np.concatenate([a, a], 3))
