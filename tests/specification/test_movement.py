"""Which elements the pages of operations that move elements leave open."""

from __future__ import annotations

from typing import Any

import numpy as np

from grouped import each
from kit import arange, f32, i64
from left_open import check_left_open

_ROWS, _ZERO = arange(2, 3), np.array(0)
_COL2IM = {"output_size": "1,1", "kernel_size": "1,1"}
_STEPS = [arange(2, 2, 1), np.zeros((2, 2, 1))]


@each(
    "behaviour, name, attributes, inputs, expected",
    [
        ("axes-of-numpy", "Broadcast-1", {}, [f32([1]), i64(2), i64(0)], True),
        ("axes-of-numpy", "Broadcast-1", {}, [f32([1]), i64(2)], False),
        ("axes-of-numpy", "Broadcast-1", {}, [f32([1]), i64(2), None], False),
        ("axes-of-numpy", "Broadcast-1", {"mode": "explicit"}, [f32([1]), i64(2), i64(0)], False),
        ("boolean-sum", "Col2Im-15", _COL2IM, [np.ones((1, 1, 1), bool)], True),
        ("boolean-sum", "Col2Im-15", _COL2IM, [np.ones((1, 1, 1))], False),
        ("sum-overflow", "Col2Im-15", {"output_size": "3,1", "kernel_size": "2,1"}, [np.full((1, 2, 2), 100, np.int8)], [[[[False], [True], [False]]]]),
        ("sum-overflow", "Col2Im-15", {"output_size": "3,1", "kernel_size": "2,1"}, [np.full((1, 2, 2), 100, np.float32)], False),
        ("unbatched", "Col2Im-15", _COL2IM, [np.ones((1, 1))], True),
        ("unbatched", "Col2Im-15", _COL2IM, [np.ones((1, 1, 1))], False),
        ("gathered-outside", "Gather-1", {}, [_ROWS, i64(1, -1, 2), _ZERO], [[False], [True], [True]]),
        ("gathered-outside", "Gather-7", {}, [_ROWS, i64(0, 3), np.array([-1])], [[False, True]]),
        ("gathered-outside", "Gather-7", {"batch_dims": 1}, [_ROWS, i64(0, 3, 2, 1).reshape(2, 2), np.array(1)], [[False, True], [False, False]]),
        ("gathered-outside", "Gather-8", {}, [_ROWS, i64(1, -3), _ZERO], False),
        ("gathered-outside", "Gather-8", {}, [np.array(["a"], object), i64(0, -1, 1), _ZERO], [False, False, True]),
        ("negative-index", "GatherElements-6", {"axis": 0}, [f32([1, 2]), i64(0, -1)], [False, True]),
        ("negative-tuple", "GatherND-5", {}, [_ROWS, i64(1, -1).reshape(2, 1)], [[False], [True]]),
        ("negative-tuple", "GatherND-5", {"batch_dims": 1}, [_ROWS, i64(1, -1).reshape(2, 1)], [False, True]),
        ("replicated-indices", "GatherND-8", {"batch_dims": 1}, [_ROWS, i64(1).reshape(1, 1)], True),
        ("replicated-indices", "GatherND-8", {"batch_dims": 1}, [_ROWS[:1], i64(1, 0).reshape(2, 1)], False),
        ("no-steps", "GatherTree-1", {}, [*_STEPS, i64(2, 0), None], [[[False], [True]]]),
        ("reflected-nothing", "Pad-12", {"pad_mode": "reflect"}, [np.zeros((0, 2)), i64(0, 1), i64(0, 0)], True),
        ("reflected-nothing", "Pad-12", {"pad_mode": "reflect"}, [_ROWS, i64(0, 1), i64(0, 0)], False),
        ("reflected-nothing", "Pad-12", {"pad_mode": "edge"}, [np.zeros((0, 2)), i64(0, 1), i64(0, 0)], False),
        ("reversed-axes", "Reverse-1", {"mode": "index"}, [_ROWS, i64(-1)], True),
        ("reversed-axes", "Reverse-1", {"mode": "index"}, [_ROWS, i64(1, 1)], True),
        ("reversed-axes", "Reverse-1", {"mode": "index"}, [_ROWS, i64(1, 0)], False),
        ("reversed-axes", "Reverse-1", {"mode": "mask"}, [_ROWS, np.array([True, True])], False),
        ("sequence-of-none", "ReverseSequence-1", {}, [_ROWS, i64(0, 2)], [[True], [False]]),
        ("sequence-of-none", "ReverseSequence-1", {"batch_axis": -1, "seq_axis": 0}, [_ROWS, i64(0, 2, 1)], [[True, False, False]]),
        ("sequence-of-batches", "ReverseSequence-1", {"batch_axis": 1}, [_ROWS, i64(1, 2, 1)], True),
        ("sequence-of-batches", "ReverseSequence-1", {"batch_axis": -1}, [_ROWS, i64(2, 2, 2)], False),
        ("sequence-of-batches", "ReverseSequence-1", {}, [_ROWS, i64(1, 2)], False),
        ("updated-twice", "ScatterUpdate-3", {}, [_ROWS, i64(1, 1, 0), np.ones((2, 3)), np.array(-1)], [[False, True, False]]),
        ("updated-twice", "ScatterElementsUpdate-12", {}, [_ROWS, i64(0, -2, 0).reshape(3, 1), np.ones((3, 1)), _ZERO], [[True, False, False], [False] * 3]),
        ("updated-twice", "ScatterElementsUpdate-12", {"reduction": "mean"}, [f32([1]), i64(0, 0), f32([1, 2]), _ZERO], [True]),
        ("updated-twice", "ScatterElementsUpdate-12", {"reduction": "sum"}, [f32([1]), i64(0, 0), f32([1, 2]), _ZERO], False),
        ("updated-twice", "ScatterNDUpdate-4", {}, [_ROWS, i64(1, 1).reshape(2, 1), np.ones((2, 3))], [[False], [True]]),
        ("updated-twice", "ScatterNDUpdate-15", {}, [_ROWS, i64(1, -1, 1, 2).reshape(2, 2), f32([1, 2])], [[False] * 3, [False, False, True]]),
        ("negative-place", "ScatterNDUpdate-4", {}, [_ROWS, i64(-1).reshape(1, 1), np.ones((1, 3))], True),
        ("negative-place", "ScatterElementsUpdate-3", {}, [f32([1]), i64(0), f32([1]), _ZERO], False),
        ("nan-in-order", "ScatterNDUpdate-15", {"reduction": "max"}, [f32([np.nan]), None, None], True),
        ("nan-in-order", "ScatterNDUpdate-15", {"reduction": "sum"}, [f32([np.nan]), None, None], False),
        ("nan-in-order", "ScatterNDUpdate-15", {"reduction": "min"}, [f32([1]), i64(0), f32([2])], False),
        ("sum-overflow", "ScatterElementsUpdate-12", {"reduction": "sum"}, [np.array([200, 1], np.uint8), i64(0, 1), np.array([100, 1], np.uint8), _ZERO], [True, False]),
        ("sum-overflow", "ScatterElementsUpdate-12", {"reduction": "sum"}, [i64(2**62, 1), i64(0, 1), i64(2**63 - 1, 1), _ZERO], [True, False]),
        ("updates-of-another-type", "SliceScatter-15", {}, [_ROWS, np.ones((1, 3)), None, None, None], True),
        ("updates-of-another-type", "SliceScatter-15", {}, [_ROWS, _ROWS[:1], None, None, None], False),
        ("no-channels", "ShuffleChannels-1", {"group": 3}, [np.ones((2, 0))], True),
        ("no-channels", "ShuffleChannels-1", {"group": 3}, [np.ones((0, 3))], False),
        ("split-of-nothing", "Split-1", {"num_splits": 3}, [np.ones((2, 0)), np.array(1)], True),
        ("split-of-nothing", "Split-1", {"num_splits": 2}, [np.ones((2, 0)), np.array(0)], False),
        *(
            ("slice-of-contradictions", "StridedSlice-1", masks, [_ROWS, *(i64(*n) for n in bounds)], expected)
            for masks, bounds, expected in [
                ({}, ([0, 1], [2, 3]), False),
                ({}, ([0, 1], [2, 1]), True),
                ({"begin_mask": "0,1"}, ([0, 1], [2, 1]), False),
                ({}, ([0, 1], [2, 0], [1, -1]), False),
                ({"end_mask": "0,1"}, ([0, 1], [2, 0], [1, -1]), True),
                ({}, ([0, -4], [2, 0], [1, -1]), True),
                ({"begin_mask": "0,1"}, ([0, -4], [2, 0], [1, -1]), False),
                ({}, ([0], [2]), True),
                ({"ellipsis_mask": "0,1"}, ([0, 9], [2, 9]), False),
                ({"shrink_axis_mask": "1"}, ([1, 0], [1, 2]), False),
                ({"shrink_axis_mask": "1"}, ([1, 0], [1, 2], [0, 1]), True),
                ({"new_axis_mask": "1"}, ([0, 0, 0], [0, 2, 3]), False),
                ({"new_axis_mask": "1", "shrink_axis_mask": "1"}, ([0, 0, 0], [0, 2, 3]), True),
            ]
        ),
        ("unique-slices", "Unique-10", {}, [_ROWS, i64(0)], True),
        ("unique-slices", "Unique-10", {}, [_ROWS[:1], i64(1)], False),
        ("unique-slices", "Unique-10", {}, [_ROWS], False),
        ("unique-slices", "Unique-10", {"sorted": False}, [_ROWS, i64(0)], False),
        ("nan", "Unique-10", {}, [f32([np.nan])], True),
        ("negative-repeats", "Tile-1", {}, [_ROWS, i64(2, -1)], True),
        ("negative-repeats", "Tile-1", {}, [_ROWS, i64(2, 0)], False),
        ("inferred-beside-zero", "Reshape-1", {"special_zero": False}, [np.ones((0, 4)), i64(0, -1)], True),
        ("inferred-beside-zero", "Reshape-1", {"special_zero": True}, [np.ones((2, 0)), i64(0, -1)], False),
        ("inferred-beside-zero", "Reshape-1", {"special_zero": True}, [np.ones((0, 2)), i64(0, -1)], True),
        ("inferred-beside-zero", "Reshape-1", {"special_zero": False}, [np.ones((0, 4)), i64(0, 2)], False),
        ("squeezed-scalar", "Squeeze-1", {}, [np.array(7), i64(0)], True),
        ("squeezed-scalar", "Squeeze-1", {}, [np.array(7), i64()], False),
        ("squeezed-scalar", "Squeeze-15", {}, [np.array([7]), i64(0)], False),
        ("unsqueezed-axes", "Unsqueeze-1", {}, [_ROWS, i64()], True),
        ("unsqueezed-axes", "Unsqueeze-1", {}, [_ROWS, i64(0, 0)], True),
        ("unsqueezed-axes", "Unsqueeze-1", {}, [_ROWS, i64(0, -1)], False),
        ("one-shift", "Roll-7", {}, [_ROWS, i64(1), i64(0, 1)], True),
        ("one-shift", "Roll-7", {}, [_ROWS, i64(1), i64(0)], False),
        ("one-shift", "Roll-7", {}, [_ROWS, np.array(1), i64(0, 1)], False),
    ],
)  # fmt: skip
def test_what_a_page_leaves_open(
    behaviour: str, name: str, attributes: dict[str, Any], inputs: list[np.ndarray | None], expected: Any
) -> None:
    check_left_open(behaviour, name, attributes, inputs, expected)
