"""MVN-2 and MVN-6."""

from typing import Any

import ml_dtypes
import numpy as np

from kit import *


def _six(eps: float = 1e-9, mode: str = "inside_sqrt", variance: bool = True) -> dict[str, Any]:
    return {"eps": eps, "eps_mode": mode, "normalize_variance": variance}


def _two(eps: float = 1e-9, variance: bool = True, **which: Any) -> dict[str, Any]:
    return {"eps": eps, "normalize_variance": variance, **which}


_X = np.array([[1, 3], [10, 20]], np.float32)
_NCHW = random(2, 3, 4, 5)


def _expected(x: np.ndarray, *axes: int, eps: float = 1e-9) -> np.ndarray:
    wide = x.astype(np.float64)
    return (wide - wide.mean(axes, keepdims=True)) / np.sqrt(wide.var(axes, keepdims=True) + eps)


VALUES = [
    Values("mean", "MVN-6", [_X, i64(1)], [[-1, 1], [-5, 5]], _six(variance=False)),
    Values("variance", "MVN-6", [_X, i64(1)], [[-1, 1], [-1, 1]], _six()),
    Values("inside", "MVN-6", [_X, i64(1)], [[-1 / 2, 1 / 2], [-5 / 28**0.5, 5 / 28**0.5]], _six(3)),
    Values("outside", "MVN-6", [_X, i64(1)], [[-1 / 4, 1 / 4], [-5 / 8, 5 / 8]], _six(3, "OUTSIDE_SQRT")),
    Values("axis-0", "MVN-6", [_X, i64(0)], [[-1, -1], [1, 1]], _six()),
    Values("unsorted-negative", "MVN-6", [_NCHW, i64(-1, 0, 2)], _expected(_NCHW, 0, 2, 3), _six(), rtol=1e-4),
    Values("twice", "MVN-6", [_X, i64(1, -1)], [[-1, 1], [-1, 1]], _six()),
    Values("no-axes", "MVN-6", [_X, i64()], np.zeros((2, 2)), _six()),
    Values("scalar", "MVN-6", [np.float32(3), i64()], 0, _six()),
    Values("f16-beyond-its-squares", "MVN-6", [np.array([-600, 600], np.float16), i64(0)], np.array([-1, 1], np.float16), _six()),
    Values("bf16", "MVN-6", [np.array([1, 3], ml_dtypes.bfloat16), i64(0)], [-1, 1], _six()),
    Values("no-elements", "MVN-6", [np.zeros((3, 0), np.float32), i64(1)], np.zeros((3, 0)), _six()),
    # OpenVINO: takes integers as well
    Values("across", "MVN-2", [_NCHW], _expected(_NCHW, 1, 2, 3), _two(across_channels=True), rtol=1e-4),
    Values("by-channel", "MVN-2", [_NCHW], _expected(_NCHW, 2, 3), _two(across_channels=False), rtol=1e-4),
    Values("by-channel-by-default", "MVN-2", [_NCHW], _expected(_NCHW, 2, 3), _two(), rtol=1e-4),
    Values("axes", "MVN-2", [_NCHW], _expected(_NCHW, 0, 3), _two(reduction_axes=[0, -1]), rtol=1e-4),
    Values("axes-win", "MVN-2", [_NCHW], _expected(_NCHW, 3), _two(reduction_axes=[3], across_channels=True), rtol=1e-4),
    Values("mean-only", "MVN-2", [_X], [[-1, 1], [-5, 5]], _two(variance=False, across_channels=True)),
    Values("no-spatial", "MVN-2", [_X], np.zeros((2, 2)), _two(across_channels=False)),
]  # fmt: skip

SHAPES = [
    Shapes("spec", "MVN-6", ["f32[6,12,10,24]", "i64{0,2,3}"], "f32[6,12,10,24]", _six()),
    Shapes("unknown-rank", "MVN-6", ["f16[...]", "i32{1,-1}"], "f16[...]", _six()),
    Shapes("unknown-axes", "MVN-6", ["f16[?,3]", "i64[...]"], "f16[?,3]", _six()),
    Shapes("spec-across", "MVN-2", ["f32[6,12,10,24]"], "f32[6,12,10,24]", _two(across_channels=True)),
    Shapes("spec-axes", "MVN-2", ["f32[6,12,10,24]"], "f32[6,12,10,24]", _two(reduction_axes=[2, 3])),
    Shapes("unknown-rank-2", "MVN-2", ["f32[...]"], "f32[...]", _two(reduction_axes=[2, 3])),
]

REFUSALS = [
    Refusal("c1-scalar-axes", "MVN-6", ["f32[2,3]", "i64[]{1}"], _six()),
    Refusal("c1-axes-2d", "MVN-6", ["f32[2,3]", "i64[1,1]"], _six()),
    Refusal("c2-outside", "MVN-6", ["f32[2,3]", "i64{-3}"], _six()),
    Refusal("c3-more-axes-than-data", "MVN-6", ["f32[2,3]", "i64{0,0,1}"], _six()),
    Refusal("c1-outside-2", "MVN-2", ["f32[2,3]"], _two(reduction_axes=[2])),
    Refusal("c2-eps", "MVN-2", ["f32[2,3]"], _two(0)),
    Refusal("c4-eps", "MVN-6", ["f32[2,3]", "i64{1}"], _six(0)),
    Refusal("ir301-integers-2", "MVN-2", ["i32[2,3]"], _two()),
    Refusal("ir301-integers", "MVN-6", ["i32[2,3]", "i64{1}"], _six()),
    Refusal("ir301-string", "MVN-6", ["string[2,3]", "i64{1}"], _six()),
    Refusal("ir301-axes", "MVN-6", ["f32[2,3]", "u8{1}"], _six()),
]

# OpenVINO: the CPU plugin makes a scalar 1D
_AXES = [
    ((3,), [0]), ((2, 3), [1]), ((2, 3), [0]), ((2, 3, 4), [-1]), ((2, 3, 4), [2, 1]), ((2, 3, 4), []),
    ((2, 3, 4, 2), [1, 2, 3]), ((2, 3, 4, 2), [2, 3]), ((2, 3, 4, 2), [0, 2, 3]), ((2, 3, 2, 2, 2), [2, 3, 4]),
    ((0, 3), [1]), ((3, 0), [1]),
]  # fmt: skip


def _six_case(t: type, data: tuple[int, ...], axes: list[int], attributes: dict[str, Any]) -> Case:
    name = "-".join(map(str, ["6", np.dtype(t).name, list(data), axes, *attributes.values()]))
    return Case(
        name, "MVN-6", [random(*data, dtype=t), i64(*axes)], attributes, shapes=[1] if axes else [], constants=[1]
    )


CASES = [
    *(
        _six_case(t, data, axes, attributes)
        for t in (np.float32, np.float16)
        for data, axes in _AXES
        for attributes in (_six(0.01), _six(0.5, "outside_sqrt"), _six(variance=False))
    ),
    # OpenVINO: the CPU plugin takes axis 1 on or 2 on for every reduction_axes
    *(
        Case(f"2-{np.dtype(t).name}-{list(data)}-{across}-{variance}", "MVN-2", [random(*data, dtype=t)], _two(0.01, variance, across_channels=across))
        for t in (np.float32, np.float16)
        for data in [(3,), (2, 3), (2, 3, 4), (0, 3, 4), (2, 3, 4, 2), (2, 3, 2, 2, 2)]
        for across in (False, True)
        for variance in (False, True)
    ),
]  # fmt: skip
