"""CTCGreedyDecoderSeqLen-6."""

from typing import Any

import numpy as np
import pytest

from irrun.diagnostics import Refused
from kit import *

_OP = "CTCGreedyDecoderSeqLen-6"


def _data(*paths: str) -> np.ndarray:
    """[N, T, C] with these best paths: a, b, c are classes 0, 1, 2 and * is 3, the blank unless another is named."""
    return np.eye(4, dtype=np.float32)[np.array([["abc*".index(c) for c in path] for path in paths])]


def _out(*rows: list[int]) -> tuple[np.ndarray, np.ndarray]:
    classes = np.array(rows, np.int32)
    return classes, (classes >= 0).sum(axis=1, dtype=np.int32)


def _i64(of: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    return of[0].astype(np.int64), of[1].astype(np.int64)


_I64 = {"classes_index_type": "i64", "sequence_length_type": "i64"}
_ROWS = f32([0.1, 0.2, 0, 0.15, 0.25, 0, 0.4, 0.3, 0, 0.45, 0.35, 0, 0.5, 0.6, 0, 0.55, 0.65, 0]).reshape(2, 3, 3)

VALUES = [
    Values("merged", _OP, [_data("abb*b*b"), i64(7)], _out([0, 1, 1, 1, -1, -1, -1])),
    Values("not-merged", _OP, [_data("abb*b*b"), i64(7)], _out([0, 1, 1, 1, 1, -1, -1]), {"merge_repeated": False}),
    Values("blank-index", _OP, [_data("abb*b*b"), i64(7), i64(1)], _out([0, 3, 3, -1, -1, -1, -1])),
    Values("blank-index-scalar", _OP, [_data("abb*b*b"), i64(4), np.array(0)], _out([1, 3, -1, -1, -1, -1, -1])),
    Values("lengths", _OP, [_data("cca", "cca", "***", "cba"), i64(2, 0, 3, 3)], _out([2, -1, -1], [-1, -1, -1], [-1, -1, -1], [2, 1, 0])),
    Values("openvino-batches", _OP, [_ROWS, i64(1, 1)], _out([1, -1, -1], [0, -1, -1]), {"merge_repeated": False}),
    Values("i64", _OP, [_data("ab"), i64(2)], _i64(_out([0, 1])), _I64),
    Values("no-batch", _OP, [np.ones((0, 3, 2), np.float32), i64()], (np.ones((0, 3), np.int32), np.ones(0, np.int32))),
]  # fmt: skip

SHAPES = [
    Shapes("spec", _OP, ["f32[8,20,128]", "i64[8]", "i64[]{120}"], ["i64[8,20]", "i64[8]"], _I64),
    Shapes("defaults", _OP, ["f16[8,20,128]", "i32[8]"], ["i32[8,20]", "i32[8]"]),
    Shapes("lengths-tell", _OP, ["f32[?,20,128]", "i32[8]", "i32[1]"], ["i32[8,20]", "i32[8]"]),
    Shapes("interval", _OP, ["f32[1..8,5..,128]", "i32[4..9]"], ["i32[4..8,5..]", "i32[4..8]"]),
    Shapes("unknown-rank", _OP, ["f32[...]", "i32[...]", "i32[...]"], ["i32[?,?]", "i32[?]"]),
]

_STATIC = ["f32[8,20,128]", "i32[8]", "i32[]"]
REFUSALS = [
    Refusal("c1-data", _OP, ["f32[8,20]", "i32[8]"]),
    Refusal("c1-length", _OP, ["f32[8,20,128]", "i32[8,1]"]),
    Refusal("c1-blank", _OP, ["f32[8,20,128]", "i32[8]", "i32[2]"]),
    Refusal("c1-blank-2d", _OP, ["f32[8,20,128]", "i32[8]", "i32[1,1]"]),
    Refusal("c2-batch", _OP, ["f32[8,20,128]", "i32[9]"]),
    Refusal("c3-classes", _OP, _STATIC, {"classes_index_type": "i8"}),
    Refusal("c3-lengths", _OP, _STATIC, {"sequence_length_type": "f32"}),
    Refusal("c4-length", _OP, ["f32[2,20,128]", "i32{20,21}"]),
    Refusal("c4-negative", _OP, ["f32[2,20,128]", "i32{-1,20}"]),
    Refusal("ir301-integers", _OP, ["i32[8,20,128]", "i32[8]"]),
    Refusal("ir301-float-length", _OP, ["f32[8,20,128]", "f32[8]"]),
    Refusal("ir301-u8-length", _OP, ["f32[8,20,128]", "u8[8]"]),
]

_MODES: list[dict[str, Any]] = [{"merge_repeated": True}, {"merge_repeated": False} | _I64]
CASES = [
    Case(f"{np.dtype(t).name}-{mode}", _OP, [random(5, 9, 4, dtype=t), np.array([9, 0, 4, 1, 8], lengths)], mode, shapes=[1])
    for t, lengths in ((np.float32, np.int32), (np.float16, np.int64), (np.float64, np.int32)) for mode in _MODES
] + [
    Case("blank-index", _OP, [random(2, 9, 4), i64(9, 7), i64(1)], _MODES[0], shapes=[1, 2]),
    Case("blank-index-scalar", _OP, [random(2, 9, 4), i64(9, 7), np.array(2)], _MODES[1], shapes=[1, 2]),
    Case("repeated", _OP, [_data("abb*b*b", "aaaaaaa", "*******"), i64(7, 6, 7)], _MODES[0]),
]  # fmt: skip


def test_c4_while_running() -> None:
    with pytest.raises(Refused, match="entry 4"):
        operation(_OP).run(_data("abc"), i64(4))
    with pytest.raises(Refused, match="entry 9"):
        operation(_OP).run(_data("abc", "abc", "abc"), i64(1, 9, 3))
    with pytest.raises(Refused, match="entry -1"):
        operation(_OP).run(_data("abc", "abc"), i64(3, -1))
