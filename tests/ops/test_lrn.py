"""LRN-1."""

from typing import Any

import ml_dtypes
import numpy as np

from kit import *

OP = "LRN-1"


def _attributes(size: int, alpha: float = 1e-4, beta: float = 0.75, bias: float = 1.0) -> dict[str, Any]:
    return {"alpha": alpha, "beta": beta, "bias": bias, "size": size}


def _plain(size: int, axes: int = 1) -> dict[str, Any]:
    """The element over the sum of squares in its region."""
    return _attributes(size, float(size**axes), 1.0, 0.0)


def _by_loops(x: np.ndarray, axes: tuple[int, ...], size: int, alpha: float, beta: float, bias: float) -> np.ndarray:
    """The specification's formula, element by element."""
    out = np.empty_like(x)
    for place in np.ndindex(x.shape):
        region = tuple(slice(max(0, p - size // 2), p + size // 2 + 1) if a in axes else p for a, p in enumerate(place))
        out[place] = x[place] / (bias + alpha / size ** len(axes) * (x[region] ** 2).sum()) ** beta
    return out


_X = arange(2, 5, 3, 2, start=1)
_ONES = np.ones((1, 6), np.float32)

VALUES = [
    Values("one", OP, [_ONES * 2, i64(1)], _ONES / 2, _plain(1)),
    Values("three", OP, [_ONES, i64(1)], [[1 / 2, 1 / 3, 1 / 3, 1 / 3, 1 / 3, 1 / 2]], _plain(3)),
    Values("negative-axis", OP, [_ONES, i64(-1)], [[1 / 2, 1 / 3, 1 / 3, 1 / 3, 1 / 3, 1 / 2]], _plain(3)),
    Values("wider-than-data", OP, [_ONES, i64(1)], _ONES / 6, _plain(21)),
    Values("no-axes", OP, [_ONES * 2, i64()], _ONES / 2, _plain(3, 0)),
    # OpenVINO: a region of even size is one smaller; the specification's formula makes it one larger
    Values("even", OP, [_ONES, i64(1)], [[1 / 2, 1 / 3, 1 / 3, 1 / 3, 1 / 3, 1 / 2]], _plain(4)),
    *(
        Values(f"spec-formula-{axes}-{size}", OP, [_X, i64(*axes)], _by_loops(_X, axes, size, 0.3, 0.75, 2), _attributes(size, 0.3, 0.75, 2))
        for axes in [(1,), (2, 3), (0,), (1, 2, 3)] for size in (1, 3, 5)
    ),
    Values("f16-beyond-its-squares", OP, [np.array([[512]], np.float16), i64(1)], np.array([[2.0**-9]], np.float16), _plain(1)),
    Values("bf16", OP, [np.array([[2]], ml_dtypes.bfloat16), i64(1)], [[0.5]], _plain(1)),
    Values("no-elements", OP, [np.zeros((2, 0), np.float32), i64(1)], np.zeros((2, 0)), _plain(3)),
]  # fmt: skip

SHAPES = [
    Shapes("spec", OP, ["f32[6,12,10,24]", "i64{1}"], "f32[6,12,10,24]", _attributes(5)),
    Shapes("unknown-rank", OP, ["f16[...]", "i32{1,-1}"], "f16[...]", _attributes(5)),
    Shapes("unknown-axes", OP, ["f16[?,3]", "i64[...]"], "f16[?,3]", _attributes(5)),
]

REFUSALS = [
    Refusal("c1-scalar-axes", OP, ["f32[2,3]", "i64[]{1}"], _attributes(5)),
    Refusal("c1-axes-2d", OP, ["f32[2,3]", "i64[1,1]"], _attributes(5)),
    Refusal("c2-outside", OP, ["f32[2,3]", "i64{2}"], _attributes(5)),
    Refusal("c4-more-axes-than-data", OP, ["f32[2,3]", "i64{0,0,1}"], _attributes(5)),
    Refusal("c4-unknown-axes", OP, ["f32[2,3]", "i64[3]"], _attributes(5)),
    Refusal("c3-size", OP, ["f32[2,3]", "i64{1}"], _attributes(0)),
    Refusal("c5-beta", OP, ["f32[2,3]", "i64{1}"], _attributes(5) | {"beta": 0}),
    Refusal("ir301-integers", OP, ["i32[2,3]", "i64{1}"], _attributes(5)),
    Refusal("ir301-string", OP, ["string[2,3]", "i64{1}"], _attributes(5)),
    Refusal("ir301-axes", OP, ["f32[2,3]", "f32[1]"], _attributes(5)),
]

# OpenVINO: the CPU plugin has LRN along axis 1 or all spatial axes, only where axes is constant, and of the bias only
# the integer (1.5 is 1)
_CASES = [
    ((2, 6), [1]), ((2, 6, 3), [1]), ((2, 5, 3, 4), [1]), ((1, 7, 2, 3, 2), [1]), ((2, 2, 5, 4), [2, 3]),
]  # fmt: skip

CASES = [
    Case(f"{np.dtype(t).name}-{list(data)}-{axes}-{size}", OP, [random(*data, dtype=t), i64(*axes)], _attributes(size, 0.7, 0.75, 2.0), constants=[1])
    for t in (np.float32, np.float16)
    for data, axes in _CASES
    for size in (1, 2, 3, 4, 5)
]  # fmt: skip
