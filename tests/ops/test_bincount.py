"""Bincount-17: OpenVINO does not have it yet, so that numpy is the witness."""

import numpy as np
import pytest

from irrun.opdef import Refused
from kit import *

_X = i64(1, 3, 1, 0)

VALUES = [
    *[Values(f"{np.dtype(t).name}", "Bincount-17", [_X.astype(t)], np.bincount(_X)) for t in (np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64)],
    # OpenVINO's reference tests
    Values("reference", "Bincount-17", [np.array([0, 1, 1, 3, 3], np.int32)], [1, 2, 0, 2]),
    Values("reference-minlength", "Bincount-17", [np.array([0, 1, 2], np.int32)], [1, 1, 1, 0, 0, 0], {"minlength": 6}),
    Values("reference-u8", "Bincount-17", [np.array([2, 2, 2, 0], np.uint8)], [1, 0, 3]),
    Values("reference-empty", "Bincount-17", [np.empty(0, np.int32)], [0, 0, 0, 0], {"minlength": 4}),
    Values("reference-weights", "Bincount-17", [np.array([0, 1, 1, 2], np.int32), f32([1.5, 2, 3, 4])], f32([1.5, 5, 4])),
    Values("minlength", "Bincount-17", [_X], [1, 2, 0, 1, 0, 0], {"minlength": 6}),
    Values("longer-than-minlength", "Bincount-17", [_X], [1, 2, 0, 1], {"minlength": 2}),
    *[Values(f"weights-{np.dtype(t).name}", "Bincount-17", [_X, np.array([1, 2, 3, 4], t)], np.array([4, 4, 0, 2], t)) for t in (np.float32, np.float64, np.int32, np.int64)],
    Values("i64-weights-exact", "Bincount-17", [i64(0, 0), i64(2**53, 1)], i64(2**53 + 1), rtol=0),
    Values("empty", "Bincount-17", [i64()], np.empty(0, np.int64)),
    Values("empty-minlength", "Bincount-17", [i64(), np.empty(0, np.float32)], [0, 0], {"minlength": 2}),
]  # fmt: skip

SHAPES = [
    Shapes("spec-1", "Bincount-17", ["i64[10]"], "i64[?]", {"minlength": 0}),
    Shapes("spec-2", "Bincount-17", ["i64[10]", "f32[10]"], "f32[5..]", {"minlength": 5}),
    Shapes("contents", "Bincount-17", ["u8{1,3,1}"], "i64{0,2,0,1}"),
    Shapes("unknown-rank", "Bincount-17", ["i32[...]", "i32[...]"], "i32[?]"),
]

REFUSALS = [
    Refusal("c1-2d", "Bincount-17", ["i64[1,2]"]),
    Refusal("c2-2d", "Bincount-17", ["i64[2]", "f32[1,2]"]),
    Refusal("c2-length", "Bincount-17", ["i64[2]", "f32[3]"]),
    Refusal("c3-negative", "Bincount-17", ["i64{1,-1}"]),
    Refusal("c4-minlength", "Bincount-17", ["i64[2]"], {"minlength": -1}),
    Refusal("ir301-data", "Bincount-17", ["f32[2]"]),
    Refusal("ir301-weights", "Bincount-17", ["i64[2]", "f16[2]"]),
]


def test_negative_at_run_time() -> None:
    with pytest.raises(Refused, match="-1"):
        operation("Bincount-17").run(i64(1, -1), f32([1, 2]))
