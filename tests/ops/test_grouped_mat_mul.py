"""GroupedMatMul-17. OpenVINO has no kernel of it yet, so that it only builds the models; numpy is the witness."""

from typing import Any

import numpy as np
import pytest

from irrun.diagnostics import Refused
from kit import *

_ROWS, _WEIGHTS = [[1, 2], [3, 4], [5, 6]], [[[1, 0], [0, 1]], [[1, 1], [2, 0]]]

VALUES = [
    Values("2d", "GroupedMatMul-17", [_ROWS, _WEIGHTS, i64(1, 3)], [[1, 2], [7, 6], [11, 10]]),
    Values("empty-group", "GroupedMatMul-17", [_ROWS, _WEIGHTS, i64(0, 3)], [[3, 2], [7, 6], [11, 10]]),
    Values("3d", "GroupedMatMul-17", [[[[1, 2]], [[3, 4]]], _WEIGHTS, None], [[[1, 2]], [[7, 6]]]),
    Values("i64-beyond-2**53", "GroupedMatMul-17", [[[2**53 + 1]], [[[1]]], i64(1)], [[2**53 + 1]]),
    Values("f16-rounds-once", "GroupedMatMul-17", [np.array([[2048, 1, 1]], np.float16), np.ones((1, 1, 3), np.float16), i64(1)], np.array([[2050]], np.float16)),
    Values("no-rows", "GroupedMatMul-17", [np.ones((0, 2)), np.ones((3, 4, 2)), i64(0, 0, 0)], np.ones((0, 4))),
    Values("no-groups", "GroupedMatMul-17", [np.ones((0, 2)), np.ones((0, 4, 2)), i64()], np.ones((0, 4))),
]  # fmt: skip

SHAPES = [
    Shapes("spec-2d", "GroupedMatMul-17", ["f32[10,64]", "f32[3,128,64]", "i64{3,8,10}"], "f32[10,128]"),
    Shapes("spec-3d", "GroupedMatMul-17", ["f32[3,4,64]", "f32[3,128,64]"], "f32[3,4,128]"),
    Shapes("dynamic", "GroupedMatMul-17", ["f32[?,?]", "f32[?,128,64]", "i32[?]"], "f32[?,128]"),
    Shapes("dynamic-3d", "GroupedMatMul-17", ["f32[?,?,64]", "f32[3,?,64]"], "f32[3,?,?]"),
    Shapes("unknown-ranks", "GroupedMatMul-17", ["f32[...]", "f32[...]", "i32[...]"], "f32[?,?]"),
    Shapes("unknown-ranks-3d", "GroupedMatMul-17", ["f32[...]", "f32[...]"], "f32[?,?,?]"),
]

REFUSALS = [
    Refusal("c1-2d-without-offsets", "GroupedMatMul-17", ["f32[10,4]", "f32[3,5,4]"]),
    Refusal("c1-3d-with-offsets", "GroupedMatMul-17", ["f32[3,2,4]", "f32[3,5,4]", "i64[3]"]),
    Refusal("c1-2d-by-2d", "GroupedMatMul-17", ["f32[10,4]", "f32[10,4]", "i64[3]"]),
    Refusal("c2-2d-offsets", "GroupedMatMul-17", ["f32[10,4]", "f32[3,5,4]", "i64[1,3]"]),
    Refusal("c2-count", "GroupedMatMul-17", ["f32[10,4]", "f32[3,5,4]", "i64[2]"]),
    Refusal("c3-descend", "GroupedMatMul-17", ["f32[10,4]", "f32[3,5,4]", "i64{8,3,10}"]),
    Refusal("c3-too-few", "GroupedMatMul-17", ["f32[10,4]", "f32[3,5,4]", "i64{3,8,9}"]),
    Refusal("c3-negative", "GroupedMatMul-17", ["f32[?,4]", "f32[3,5,4]", "i64{-1,8,9}"]),
    Refusal("c4-inner", "GroupedMatMul-17", ["f32[10,4]", "f32[3,5,6]", "i64[3]"]),
    Refusal("c5-groups", "GroupedMatMul-17", ["f32[2,10,4]", "f32[3,5,4]"]),
    Refusal("ir301-u8-offsets", "GroupedMatMul-17", ["f32[10,4]", "f32[3,5,4]", "u8[3]"]),
    Refusal("ir302-types", "GroupedMatMul-17", ["f32[10,4]", "f16[3,5,4]", "i64[3]"]),
]


def _product(a: np.ndarray, b: np.ndarray, ends: tuple[int, ...]) -> np.ndarray:
    parts = [part.astype(np.float64) @ w.T for part, w in zip(np.split(a, ends[:-1]), b.astype(np.float64))]
    return np.concatenate(parts).astype(a.dtype)


def _grouped(dtype: Any, ends: tuple[int, ...]) -> dict[str, Any]:
    a, b = arange(ends[-1], 4, dtype=dtype), random(len(ends), 3, 4, dtype=dtype)
    return {"inputs": [a, b, np.array(ends, np.int32)], "expected": _product(a, b, ends)}


CASES = [
    Case(f"{np.dtype(t).name}-{ends}", "GroupedMatMul-17", shapes=[2], **_grouped(t, ends))
    for t in (np.float32, np.int32, np.int64)
    for ends in ((3, 8, 10), (0, 4, 4), (5,))
] + [
    Case(
        f"3d-{np.dtype(t).name}",
        "GroupedMatMul-17",
        [random(3, 2, 4, dtype=t), random(3, 5, 4, dtype=t, seed=1)],
        expected=random(3, 2, 4, dtype=t) @ random(3, 5, 4, dtype=t, seed=1).swapaxes(1, 2),
    )
    for t in NUMERIC
]


def test_offsets_of_a_run():
    """Offsets that only a run can see."""
    with pytest.raises(Refused) as caught:
        operation("GroupedMatMul-17").run(np.ones((10, 4)), np.ones((2, 5, 4)), i64(3, 11))
    assert caught.value.label == "C3"
