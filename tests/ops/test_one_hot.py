"""OneHot-1 and OneHot-16."""

import ml_dtypes
import numpy as np

from kit import *

_LAST = {"axis": -1}
_ON_OFF = [np.array(1), np.array(0)]
_2D = [[[1, 0, 0], [0, 0, 1], [0, 0, 0]], [[0, 0, 0], [1, 0, 0], [0, 1, 0]]]

VALUES = [
    Values("spec-1", "OneHot-1", [i64(0, 3, 1, 2), np.array(3), np.array(1), np.array(2)], [[1, 2, 2], [2, 2, 2], [2, 1, 2], [2, 2, 1]], _LAST),
    Values("spec-16", "OneHot-16", [i64(0, -5, -2, 2), np.array(3), np.array(1), np.array(2)], [[1, 2, 2], [2, 2, 2], [2, 1, 2], [2, 2, 1]], {"axis": -1, "negative_indices_mode": "normalize"}),
    *[Values(f"spec-2d-{op}", op, [np.array([[0, 3, 1], [1, 2, 4]]), np.array(3), *_ON_OFF], _2D, {"axis": 1}) for op in ("OneHot-1", "OneHot-16")],
    *[Values(f"negative-{op}", op, [i64(-1, 0), np.array(2), *_ON_OFF], [[0, 0], [1, 0]], _LAST) for op in ("OneHot-1", "OneHot-16")],
    Values("first-axis", "OneHot-1", [i64(1, 0), np.array(3), *_ON_OFF], [[0, 1], [1, 0], [0, 0]], {"axis": 0}),
    Values("scalar", "OneHot-1", [np.array(1), np.array(3), *_ON_OFF], [0, 1, 0], {"axis": 0}),
    Values("i32-indices", "OneHot-16", [np.array([-1], np.int32), np.array(2), *_ON_OFF], [[0, 1]], {"axis": -1, "negative_indices_mode": "NORMALIZE"}),
    *[Values(f"{np.dtype(t).name}", "OneHot-1", [i64(1), np.array(2), np.array(3, t), np.array(2, t)], np.array([[2, 3]], t), _LAST)
      for t in (*NUMERIC, np.float64, ml_dtypes.bfloat16, ml_dtypes.int4)],
    Values("strings", "OneHot-1", [i64(1), np.array(2), np.array("yes"), np.array("no")], np.array([["no", "yes"]]), _LAST),
]  # fmt: skip

SHAPES = [
    Shapes("known", "OneHot-1", ["i64[2,3]", "i64[]{5}", "f32[]", "f32[]"], "f32[2,5,3]", {"axis": 1}),
    Shapes("partial", "OneHot-16", ["i32[?,3]", "i64[]{2..5}", "u8[]", "u8[]"], "u8[?,3,2..5]", _LAST),
    Shapes("depth-unknown", "OneHot-1", ["i64[2]", "i64[]", "f32[]", "f32[...]"], "f32[?,2]", {"axis": -2}),
    Shapes("unknown-rank", "OneHot-1", ["i64[...]", "i64[]{5}", "f32[]", "f32[]"], "f32[...]", _LAST),
]

REFUSALS = [
    *[
        Refusal(f"{id}-{op}", op, inputs, {"axis": axis})
        for op in ("OneHot-1", "OneHot-16")
        for id, inputs, axis in (
            ("c1-depth", ["i64[2]", "i64{3}", "f32[]", "f32[]"], -1),
            ("c1-on", ["i64[2]", "i64[]{3}", "f32[1]", "f32[]"], -1),
            ("c1-off", ["i64[2]", "i64[]{3}", "f32[]", "f32[2]"], -1),
            ("c2-negative", ["i64[2]", "i64[]{-1}", "f32[]", "f32[]"], -1),
            ("c2-zero", ["i64[2]", "i64[]{0}", "f32[]", "f32[]"], -1),
            ("c3-beyond", ["i64[2]", "i64[]{3}", "f32[]", "f32[]"], 2),
            ("c3-before", ["i64[2]", "i64[]{3}", "f32[]", "f32[]"], -3),
            ("ir301-u8", ["u8[2]", "i64[]{3}", "f32[]", "f32[]"], -1),
            ("ir301-indices", ["f32[2]", "i64[]{3}", "f32[]", "f32[]"], -1),
            ("ir302-on-off", ["i64[2]", "i64[]{3}", "f32[]", "f16[]"], -1),
        )
    ],
]

CASES = [
    *[Case(f"{np.dtype(t).name}-{op}", op, [i64(0, -1, 2, 5), np.array(3), np.array(1, t), np.array(0, t)], _LAST, shapes=[1], constants=[2, 3])
      for t in (*NUMERIC, np.bool_) for op in ("OneHot-1", "OneHot-16")],
    Case("normalize", "OneHot-16", [i64(0, -5, -2, 2), np.array(3), f32(1), f32(2)], {"axis": -1, "negative_indices_mode": "normalize"}, shapes=[1, 2, 3]),
    *[Case(f"rank-{len(s)}-axis-{axis}", "OneHot-1", [np.arange(np.prod(s, dtype=int)).reshape(s), np.array(4), f32(1), f32(0)], {"axis": axis}, constants=[1, 2, 3])
      for s in ((), (4,), (2, 3), (2, 1, 3), (2, 1, 3, 2)) for axis in {-len(s) - 1, -1, len(s) // 2}],
    Case("i32", "OneHot-1", [np.array([1, 2], np.int32), np.array(3, np.int32), f32(1), f32(0)], _LAST, shapes=[1]),
    Case("empty", "OneHot-1", [np.empty((0, 2), np.int64), np.array(3), f32(1), f32(0)], _LAST, constants=[1, 2, 3]),
]  # fmt: skip
