"""CTCGreedyDecoder-1."""

import ml_dtypes
import numpy as np

from kit import *

_OP = "CTCGreedyDecoder-1"


def _data(*paths: str, dtype: type = np.float32) -> np.ndarray:
    """[T, N, C] with these best paths: a, b, c are classes 0, 1, 2 and * is the blank, 3."""
    best = np.array([["abc*".index(c) for c in path] for path in paths]).T
    return np.eye(4)[best].astype(dtype)


def _mask(time: int, *lengths: int) -> np.ndarray:
    return (np.arange(time)[:, None] < np.array(lengths)).astype(np.float32)


def _out(*rows: list[int]) -> np.ndarray:
    return f32(rows)[:, :, None, None]


_ABBB = _data("abb*b*b")
VALUES = [
    Values("merged", _OP, [_ABBB, _mask(7, 7)], _out([0, 1, 1, 1, -1, -1, -1])),
    Values("not-merged", _OP, [_ABBB, _mask(7, 7)], _out([0, 1, 1, 1, 1, -1, -1]), {"ctc_merge_repeated": False}),
    Values("lengths", _OP, [_data("cca", "cca", "***", "cba"), _mask(3, 2, 0, 3, 3)], _out([2, -1, -1], [-1, -1, -1], [-1, -1, -1], [2, 1, 0])),
    Values("ends-at-the-first-0", _OP, [_data("abc"), f32([[1], [0], [1]])], _out([0, -1, -1])),
    Values("first-of-equals", _OP, [f32([[[1, 1, 0]]]), _mask(1, 1)], _out([0])),
    *[
        Values(np.dtype(t).name, _OP, [_data("abb", dtype=t), _mask(3, 3).astype(t)], _out([0, 1, -1]).astype(t))
        for t in (np.float16, ml_dtypes.bfloat16, np.float64)
    ],
    Values("no-batch", _OP, [np.ones((3, 0, 2), np.float32), _mask(3)], np.ones((0, 3, 1, 1), np.float32)),
    Values("no-time", _OP, [np.ones((0, 2, 2), np.float32), _mask(0, 0, 0)], np.ones((2, 0, 1, 1), np.float32)),
]  # fmt: skip

SHAPES = [
    Shapes("spec", _OP, ["f32[20,8,128]", "f32[20,8]"], "f32[8,20,1,1]"),
    Shapes("mask-tells", _OP, ["f16[?,?,128]", "f16[20,8]"], "f16[8,20,1,1]"),
    Shapes("interval", _OP, ["f32[2..20,?,128]", "f32[10..,?]"], "f32[?,10..20,1,1]"),
    Shapes("unknown-rank", _OP, ["f32[...]", "f32[...]"], "f32[?,?,1,1]"),
]

REFUSALS = [
    Refusal("c1-data", _OP, ["f32[20,8]", "f32[20,8]"]),
    Refusal("c1-mask", _OP, ["f32[20,8,128]", "f32[20,8,1]"]),
    Refusal("c2-time", _OP, ["f32[20,8,128]", "f32[19,8]"]),
    Refusal("c2-batch", _OP, ["f32[20,8,128]", "f32[20,7]"]),
    Refusal("ir301-integers", _OP, ["i32[20,8,128]", "f32[20,8]"]),
    Refusal("ir302-f16-mask", _OP, ["f32[20,8,128]", "f16[20,8]"]),
    Refusal("ir205-no-mask", _OP, ["f32[20,8,128]"]),
]

CASES = [
    Case(f"{np.dtype(t).name}-{merge}", _OP, [random(9, 5, 4, dtype=t), _mask(9, 9, 0, 4, 1, 8).astype(t)], {"ctc_merge_repeated": merge})
    for t in (np.float32, np.float16, np.float64) for merge in (True, False)
] + [
    Case("repeated", _OP, [_data("abb*b*b", "aaaaaaa", "*******"), _mask(7, 7, 6, 7)]),
    Case("ends-at-the-first-0", _OP, [_data("abcabc"), f32([[1], [1], [0], [1], [0], [1]])]),
    Case("one-class", _OP, [random(3, 2, 1), _mask(3, 3, 2)]),
]  # fmt: skip
