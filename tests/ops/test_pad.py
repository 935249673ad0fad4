"""Pad-1 and Pad-12."""

import ml_dtypes
import numpy as np

from kit import *

_DATA = np.array([[1, 2, 3, 4], [5, 6, 7, 8], [9, 10, 11, 12]], np.int32)
_X = np.arange(5, dtype=np.float32)
_MODES = ("constant", "edge", "reflect", "symmetric")

_GROWN = {
    "constant": [[0, 1, 2, 3, 4, 0, 0, 0], [0, 5, 6, 7, 8, 0, 0, 0], [0, 9, 10, 11, 12, 0, 0, 0], [0] * 8, [0] * 8],
    "edge": [[1, 1, 2, 3, 4, 4, 4, 4], [5, 5, 6, 7, 8, 8, 8, 8], *[[9, 9, 10, 11, 12, 12, 12, 12]] * 3],
    "reflect": [
        [2, 1, 2, 3, 4, 3, 2, 1], [6, 5, 6, 7, 8, 7, 6, 5], [10, 9, 10, 11, 12, 11, 10, 9],
        [6, 5, 6, 7, 8, 7, 6, 5], [2, 1, 2, 3, 4, 3, 2, 1],
    ],
    "symmetric": [
        [1, 1, 2, 3, 4, 4, 3, 2], [5, 5, 6, 7, 8, 8, 7, 6], [9, 9, 10, 11, 12, 12, 11, 10],
        [9, 9, 10, 11, 12, 12, 11, 10], [5, 5, 6, 7, 8, 8, 7, 6],
    ],
}  # fmt: skip
_MIXED = {
    "constant": [[0] * 6, [0] * 6, [2, 3, 4, 0, 0, 0], [6, 7, 8, 0, 0, 0]],
    "edge": [*[[2, 3, 4, 4, 4, 4]] * 3, [6, 7, 8, 8, 8, 8]],
    "reflect": [[10, 11, 12, 11, 10, 9], [6, 7, 8, 7, 6, 5], [2, 3, 4, 3, 2, 1], [6, 7, 8, 7, 6, 5]],
    "symmetric": [[6, 7, 8, 8, 7, 6], [2, 3, 4, 4, 3, 2], [2, 3, 4, 4, 3, 2], [6, 7, 8, 8, 7, 6]],
}

VALUES = [
    *(Values(f"spec-{m}-{o}", o, [_DATA, i64(0, 1), i64(2, 3)], np.array(_GROWN[m], np.int32), {"pad_mode": m}) for m in _MODES for o in ("Pad-1", "Pad-12")),
    *(Values(f"spec-negative-{m}", "Pad-12", [_DATA, i64(-1, -1), i64(-1, -1)], np.array([[6, 7]], np.int32), {"pad_mode": m}) for m in _MODES),
    *(Values(f"spec-mixed-{m}", "Pad-12", [_DATA, i64(2, -1), i64(-1, 3)], np.array(_MIXED[m], np.int32), {"pad_mode": m}) for m in _MODES),
    *(Values(f"nothing-left-{m}", "Pad-12", [_X, i64(-3), i64(-3)], np.zeros(0, np.float32), {"pad_mode": m}) for m in _MODES),
    Values("value", "Pad-12", [_X[:2], i64(1), i64(2), f32(7)], f32([7, 0, 1, 7, 7]), {"pad_mode": "constant"}),
    Values("all-cropped", "Pad-12", [_X, i64(-7), i64(4), f32(7)], f32([7, 7]), {"pad_mode": "constant"}),
    Values("all-cropped-at-the-end", "Pad-12", [_X, i64(4), i64(-7), f32(7)], f32([7, 7]), {"pad_mode": "constant"}),
    Values("all-cropped-edge", "Pad-12", [_X, i64(-7), i64(4)], f32([4, 4]), {"pad_mode": "edge"}),
    Values("mirror-sees-what-is-cropped", "Pad-12", [_X, i64(-3), i64(4)], f32([3, 4, 4, 3, 2, 1]), {"pad_mode": "symmetric"}),
    *(Values(f"all-cropped-at-the-limit-{m}", "Pad-12", [_X, i64(-(2**63)), i64(0)], f32([]), {"pad_mode": m}) for m in _MODES),
    Values("value-ignored", "Pad-12", [_X, i64(1), i64(0), f32(7)], f32([0, 0, 1, 2, 3, 4]), {"pad_mode": "edge"}),
    Values("empty", "Pad-12", [np.zeros((0, 2), np.float32), i64(1, 0), i64(0, 1), f32(7)], np.full((1, 3), 7, np.float32), {"pad_mode": "constant"}),
    Values("empty-batch", "Pad-12", [np.zeros((0, 3), np.float32), i64(0, 2), i64(0, 1)], np.zeros((0, 6), np.float32), {"pad_mode": "reflect"}),
    Values("scalar", "Pad-12", [f32(3), i64(), i64()], f32(3), {"pad_mode": "edge"}),
    Values("strings", "Pad-12", [np.array(["a"]), i64(1), i64(1), np.array("bc")], np.array(["bc", "a", "bc"]), {"pad_mode": "constant"}),
    Values("strings-empty", "Pad-12", [np.array(["a"]), i64(1), i64(0)], np.array(["", "a"]), {"pad_mode": "constant"}),
    *(Values(f"type-{np.dtype(t).name}-{m}", "Pad-12", [np.array([1, 0], t), i64(1), i64(0), np.array(1, t)], np.array([1 if m in ("constant", "edge", "symmetric") else 0, 1, 0], t), {"pad_mode": m})
      for t in (np.float64, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.int4, np.int8, np.uint64, np.bool_) for m in _MODES),
]  # fmt: skip

SHAPES = [
    Shapes("spec", "Pad-1", ["f32[1,3,32,40]", "i64{0,5,2,1}", "i64{1,0,3,7}", "f32[]"], "f32[2,8,37,48]", {"pad_mode": "constant"}),
    Shapes("spec-negative", "Pad-12", ["f32[2,3,32,40]", "i64{0,-2,-8,1}", "i64{-1,4,-6,7}", "f32[]"], "f32[1,5,18,48]", {"pad_mode": "constant"}),
    Shapes("spec-edge", "Pad-12", ["f32[1,3,32,40]", "i64{0,5,2,1}", "i64{1,0,3,7}"], "f32[2,8,37,48]", {"pad_mode": "edge"}),
    Shapes("unknown-dims", "Pad-12", ["f32[?,2..4,?]", "i64{0,1,-2}", "i64{0,1,1}"], "f32[?,4..6,?]", {"pad_mode": "constant"}),
    Shapes("unknown-pads", "Pad-12", ["f32[2,3]", "i64[2]", "i64[2]"], "f32[?,?]", {"pad_mode": "edge"}),
    Shapes("partly-unknown-pads", "Pad-12", ["f32[2,3]", "i64{0,1..2}", "i64{0,0}"], "f32[2,4..5]", {"pad_mode": "edge"}),
    Shapes("rank-from-pads", "Pad-12", ["f32[...]", "i64{1,0}", "i64[?]"], "f32[?,?]", {"pad_mode": "edge"}),
    Shapes("unknown-rank", "Pad-12", ["f32[...]", "i64[?]", "i64[...]"], "f32[...]", {"pad_mode": "edge"}),
    Shapes("carries", "Pad-12", ["i64{?,3}", "i64{1}", "i64{0}", "i64[]{7}"], "i64{7,?,3}", {"pad_mode": "constant"}),
    Shapes("carries-edge", "Pad-12", ["i64{?,3}", "i64{-1}", "i64{1}"], "i64{3,3}", {"pad_mode": "edge"}),
]  # fmt: skip

REFUSALS = [
    row
    for o in ("Pad-1", "Pad-12")
    for row in (
        Refusal(f"c1-scalar-{o}", o, ["f32[3]", "i64[]{1}", "i64{1}"], {"pad_mode": "edge"}),
        Refusal(f"c1-too-few-{o}", o, ["f32[3,3]", "i64{1}", "i64{1}"], {"pad_mode": "edge"}),
        Refusal(f"c1-differ-{o}", o, ["f32[...]", "i64{1}", "i64{1,1}"], {"pad_mode": "edge"}),
        Refusal(f"c2-value-{o}", o, ["f32[3]", "i64{1}", "i64{1}", "f32[1]"], {"pad_mode": "constant"}),
        Refusal(f"c3-reflect-{o}", o, ["f32[5]", "i64{5}", "i64{0}"], {"pad_mode": "reflect"}),
        Refusal(f"c3-reflect-end-{o}", o, ["f32[2..5]", "i64{0}", "i64{5}"], {"pad_mode": "reflect"}),
        Refusal(f"c3-symmetric-{o}", o, ["f32[5]", "i64{6}", "i64{0}"], {"pad_mode": "symmetric"}),
        Refusal(f"c3-edge-{o}", o, ["f32[0]", "i64{1}", "i64{0}"], {"pad_mode": "edge"}),
        Refusal(f"c4-{o}", o, ["string[3]", "i64{1}", "i64{0}"], {"pad_mode": "edge"}),
        Refusal(f"ir301-{o}", o, ["f32[3]", "f32[1]", "i64{0}"], {"pad_mode": "edge"}),
        Refusal(f"ir302-value-{o}", o, ["f32[3]", "i64{1}", "i64{0}", "f16[]"], {"pad_mode": "constant"}),
    )
] + [
    Refusal("c5-begin", "Pad-1", ["f32[3]", "i64{-1}", "i64{1}"], {"pad_mode": "edge"}),
    Refusal("c5-end", "Pad-1", ["f32[3]", "i64{1}", "i64{-1}"], {"pad_mode": "constant"}),
]  # fmt: skip

_PADDED = [
    ((5,), (2,), (1,)), ((5,), (4,), (4,)), ((5,), (-1,), (2,)), ((4, 5), (0, 3), (2, 0)), ((4, 5), (-2, 1), (1, -3)),
    ((2, 3, 4), (1, 0, 2), (0, 0, 3)), ((1, 2, 3, 4), (0, 0, 2, 1), (0, 0, 1, 3)), ((2, 2, 2, 2, 2), (0, 1, 0, 1, 0), (1, 0, 0, 1, 1)),
    ((3, 0), (1, 0), (1, 0)),
]  # fmt: skip

CASES = [
    Case(
        f"{o}-{m}-{np.dtype(t).name}-{list(shape)}-{list(begin)}-{list(end)}",
        o,
        [random(*shape, dtype=t), i64(*begin), i64(*end)] + ([random(dtype=t)] if m == "constant" else []),
        {"pad_mode": m},
        shapes=[1, 2],
        constants=[3],  # OpenVINO: the CPU plugin pads with 0 where pad_value is a Parameter
    )
    for o in ("Pad-1", "Pad-12")
    for m in _MODES
    for number, (shape, begin, end) in enumerate(_PADDED)
    for t in ((*NUMERIC, np.bool_) if number == 3 else NUMERIC[:1])
    if not (o == "Pad-1" and min(begin + end) < 0) and not (m == "reflect" and 0 in shape)
] + [
    Case("no-value", "Pad-12", [arange(2, 3), i64(1, 1), i64(0, 1)], {"pad_mode": "constant"}, shapes=[1, 2]),
    Case("i32-pads", "Pad-12", [arange(2, 3), np.array([1, 1], np.int32), np.array([0, 1], np.int32)], {"pad_mode": "edge"}, shapes=[1, 2]),
    Case("value-as-parameter", "Pad-12", [arange(2), i64(1), i64(0), f32(7)], {"pad_mode": "constant"}, shapes=[1, 2], how="core"),
]  # fmt: skip
