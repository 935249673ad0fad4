"""NormalizeL2-1."""

from typing import Any

import ml_dtypes
import numpy as np

from kit import *

OP = "NormalizeL2-1"


def _eps(eps: float, mode: str = "add") -> dict[str, Any]:
    return {"eps": eps, "eps_mode": mode}


_X = np.array([[3, 4, 0], [-6, 8, 0]], np.float32)

VALUES = [
    Values("rows", OP, [_X, i64(1)], [[0.6, 0.8, 0], [-0.6, 0.8, 0]], _eps(1e-12)),
    Values("scalar-axis", OP, [_X, 1], [[0.6, 0.8, 0], [-0.6, 0.8, 0]], _eps(1e-12)),
    Values("negative-axis", OP, [_X, i64(-1)], [[0.6, 0.8, 0], [-0.6, 0.8, 0]], _eps(1e-12)),
    Values("all", OP, [_X, i64(1, 0)], _X / np.sqrt(np.float32(125)), _eps(1e-12)),
    Values("add", OP, [_X, i64(1)], _X / np.sqrt(np.array([[25 + 11], [100 + 11]], np.float32)), _eps(11)),
    Values("max", OP, [_X, i64(1)], _X / np.sqrt(np.array([[36], [100]], np.float32)), _eps(36, "max")),
    Values("zeros", OP, [np.zeros((2, 2), np.float32), i64(1)], np.zeros((2, 2)), _eps(1e-12)),
    Values("spec-no-axes", OP, [_X, i64()], [[1, 1, 0], [1, 1, 0]], _eps(5)),
    Values("scalar", OP, [np.float32(-3), i64()], 1, _eps(5)),
    Values("f16-beyond-its-squares", OP, [np.array([300, 400], np.float16), i64(0)], np.array([0.6, 0.8], np.float16), _eps(1e-12)),
    Values("bf16", OP, [np.array([3, 4], ml_dtypes.bfloat16), i64(0)], np.array([0.6, 0.8], ml_dtypes.bfloat16), _eps(1e-12)),
    Values("f64", OP, [np.array([1, 1.0]), i64(0)], np.full(2, 0.5**0.5), _eps(1e-300), rtol=1e-15),
    Values("no-elements", OP, [np.zeros((2, 0), np.float32), i64(1)], np.zeros((2, 0)), _eps(1e-12)),
]  # fmt: skip

SHAPES = [
    Shapes("spec-channels", OP, ["f32[6,12,10,24]", "i64{1}"], "f32[6,12,10,24]", _eps(1e-8)),
    Shapes("spec-channels-and-spatial", OP, ["f32[6,12,10,24]", "i64{1,2,3}"], "f32[6,12,10,24]", _eps(1e-8)),
    Shapes("unknown-rank", OP, ["f16[...]", "i32{1,-1}"], "f16[...]", _eps(1e-8)),
    Shapes("unknown-axes", OP, ["f16[?,3]", "u8[...]"], "f16[?,3]", _eps(1e-8, "max")),
]

REFUSALS = [
    Refusal("c1-axes-2d", OP, ["f32[2,3]", "i64[1,1]"], _eps(1)),
    Refusal("c2-outside", OP, ["f32[2,3]", "i64{2}"], _eps(1)),
    Refusal("c2-scalar-data", OP, ["f32[]", "i64{0}"], _eps(1)),
    Refusal("c3-twice", OP, ["f32[2,3]", "i64{1,-1}"], _eps(1)),
    Refusal("c4-eps", OP, ["f32[2]", "i64{0}"], _eps(0)),
    Refusal("ir301-integers", OP, ["i32[2]", "i64{0}"], _eps(1)),
    Refusal("ir301-string", OP, ["string[2]", "i64{0}"], _eps(1)),
    Refusal("ir301-axes", OP, ["f32[2]", "f32[1]"], _eps(1)),
]

_CASES = [
    ((), []), ((3,), [0]), ((3,), []), ((2, 3), [1]), ((2, 3), [0, 1]), ((2, 3, 4), [-1]), ((2, 3, 4), [1]),
    ((2, 3, 4, 2), [1]), ((2, 3, 4, 2), [1, 2, 3]), ((2, 3, 2, 2, 2), [1]), ((2, 3, 2, 2, 2), [4, 0]), ((0, 3), [1]),
]  # fmt: skip


def _case(mode: str, eps: float, dtype: type, data: tuple[int, ...], axes: list[int]) -> Case:
    x = random(*data, dtype=dtype)
    # OpenVINO: without axes, the CPU plugin still uses eps below rank 2, and the sign
    expected = None if axes else (x != 0).astype(dtype)
    name = f"{mode}-{eps}-{np.dtype(dtype).name}-{list(data)}-{axes}"
    return Case(name, OP, [x, i64(*axes)], _eps(eps, mode), constants=[1], expected=expected)


CASES = [
    _case(mode, eps, dtype, data, axes)
    for mode, eps in (("add", 1e-6), ("max", 1e-6), ("max", 3.0))
    for dtype in (np.float32, np.float16)
    for data, axes in _CASES
]
