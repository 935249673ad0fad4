"""GridSample-9."""

import ml_dtypes
import numpy as np

from kit import *

_OP = "GridSample-9"
_ROW = f32([[[[0, 10, 20, 30]]]])
_MODES = ("bilinear", "bicubic", "nearest")
_PADDINGS = ("zeros", "border", "reflection")


def _grid(*xs):
    """Points of one row."""
    return f32([[[[x, 0] for x in xs]]])


VALUES = [
    Values("ends", _OP, [_ROW, _grid(-1, 1)], f32([[[[0, 15]]]])),
    Values("ends-aligned", _OP, [_ROW, _grid(-1, 1, 0)], f32([[[[0, 30, 15]]]]), {"align_corners": True}),
    Values("border", _OP, [_ROW, _grid(-1, 1, 5)], f32([[[[0, 30, 30]]]]), {"padding_mode": "border"}),
    # the pixel at -1, seen from -3/4 to 3/4: with the edge twice, 3 steps back from 0 is pixel 2
    Values("reflection", _OP, [_ROW, _grid(-2.25)], f32([[[[20]]]]), {"padding_mode": "reflection"}),
    Values("reflection-aligned", _OP, [_ROW, _grid(-3)], f32([[[[30]]]]), {"padding_mode": "reflection", "align_corners": True}),
    Values("nearest-even", _OP, [_ROW, _grid(-0.5, 0, 0.5)], f32([[[[0, 20, 20]]]]), {"mode": "nearest"}),
    Values("nearest-is-exact", _OP, [np.array([[[[2**62 + 1]]]]), _grid(0)], np.array([[[[2**62 + 1]]]]), {"mode": "nearest"}),
    Values("one-pixel", _OP, [f32([[[[7]]]]), _grid(-9, 0.3, 9)], f32([[[[7, 7, 7]]]]), {"mode": "bicubic", "padding_mode": "reflection", "align_corners": True}),
    # OpenVINO: the CPU plugin cuts off to i32 and i64
    Values("i32-rounds", _OP, [_ROW.astype(np.int32), _grid(-0.1, 0.23, 0.03)], np.array([[[[13, 20, 16]]]], np.int32)),
    Values("u8-saturates", _OP, [np.array([[[[0, 0, 255, 255]]]], np.uint8), _grid(-0.4, 0.5)], np.array([[[[0, 255]]]], np.uint8), {"mode": "bicubic", "padding_mode": "border"}),
    Values("bf16", _OP, [_ROW.astype(ml_dtypes.bfloat16), _grid(0)], np.array([[[[15]]]], ml_dtypes.bfloat16)),
    Values("nan", _OP, [_ROW, _grid(np.nan)], f32([[[[np.nan]]]])),
    Values("nan-nearest", _OP, [_ROW, _grid(np.nan)], f32([[[[0]]]]), {"mode": "nearest"}),
    # OpenVINO: the CPU plugin reads out of bounds
    Values("empty-image", _OP, [np.zeros((1, 1, 0, 3), np.float32), _grid(0)], f32([[[[0]]]]), {"padding_mode": "border"}),
]  # fmt: skip

SHAPES = [
    Shapes("spec", _OP, ["f32[1,3,100,100]", "f32[1,10,10,2]"], "f32[1,3,10,10]"),
    Shapes("unknown", _OP, ["f32[?,3,100,?]", "f32[2..,?,10,?]"], "f32[2..,3,?,10]"),
    Shapes("unknown-grid", _OP, ["f32[1,3,100,100]", "f32[...]"], "f32[1,3,?,?]"),
    Shapes("unknown-data", _OP, ["f16[...]", "f32[1,10,9,2]"], "f16[1,?,10,9]"),
]

REFUSALS = [
    Refusal("c1-data", _OP, ["f32[3,100,100]", "f32[1,10,10,2]"]),
    Refusal("c1-grid", _OP, ["f32[1,3,100,100]", "f32[10,10,2]"]),
    Refusal("c2-pair", _OP, ["f32[1,3,100,100]", "f32[1,10,10,3]"]),
    Refusal("c3-batch", _OP, ["f32[1,3,100,100]", "f32[2,10,10,2]"]),
    Refusal("ir301-grid", _OP, ["f32[1,3,100,100]", "i32[1,10,10,2]"]),
]

CASES = [
    Case(
        f"{mode}-{padding}-{align}-{np.dtype(t).name}",
        _OP,
        [random(2, 3, 4, 5, dtype=t), random(2, 3, 6, 2) * 1.5],
        {"mode": mode, "padding_mode": padding, "align_corners": align},
    )
    for mode in _MODES
    for padding in _PADDINGS
    for align in (False, True)
    for t in ((np.float32, np.float16, np.uint8, np.int8) if padding == "border" else (np.float32,))
] + [
    Case("nearest-i32", _OP, [random(1, 2, 4, 5, dtype=np.int32), random(1, 3, 6, 2)], {"mode": "nearest"}),
    Case("nearest-i64", _OP, [random(1, 2, 4, 5, dtype=np.int64), random(1, 3, 6, 2)], {"mode": "nearest"}),
    Case("nearest-boolean", _OP, [random(1, 2, 4, 5, dtype=bool), random(1, 3, 6, 2)], {"mode": "nearest"}),
    Case("f16-grid", _OP, [random(1, 2, 4, 5), random(1, 3, 6, 2, dtype=np.float16)], {"mode": "nearest"}),
    Case("no-points", _OP, [arange(1, 2, 2, 3), np.zeros((1, 0, 4, 2), np.float32)]),
    Case("no-channels", _OP, [np.zeros((1, 0, 2, 3), np.float32), _grid(0, 1)]),
]
