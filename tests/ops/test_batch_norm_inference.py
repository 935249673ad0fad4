"""BatchNormInference-1 and BatchNormInference-5."""

import ml_dtypes
import numpy as np

import irrun
from irrun import build as b
from kit import *

_DATA = np.array([[[1, 2], [3, 4]], [[5, 6], [7, 8]]], np.float32)
_GAMMA, _BETA, _MEAN, _VARIANCE = (np.array(n, np.float32) for n in ([1, 2], [0, 10], [1, 3], [1, 4]))
_EXPECTED = np.array([[[0, 1], [10, 11]], [[4, 5], [14, 15]]], np.float32)


def _moved(inputs: list) -> list:
    """The inputs of version 5 in the order of version 1."""
    data, gamma, beta, mean, variance = inputs
    return [gamma, beta, data, mean, variance]


_INPUTS = [_DATA, _GAMMA, _BETA, _MEAN, _VARIANCE]

VALUES = [
    Values("5", "BatchNormInference-5", _INPUTS, _EXPECTED, {"epsilon": 0}),
    Values("1", "BatchNormInference-1", _moved(_INPUTS), _EXPECTED, {"epsilon": 0}),
    Values("epsilon", "BatchNormInference-5", [[[6.0]], [1.0], [0.0], [0.0], [3.0]], [[3]], {"epsilon": 1}),
    Values("zero-variance", "BatchNormInference-5", [[[1.0]], [1.0], [0.0], [0.0], [0.0]], [[np.inf]], {"epsilon": 0}),
    Values("negative-variance", "BatchNormInference-5", [[[1.0]], [1.0], [0.0], [0.0], [-1.0]], [[np.nan]], {"epsilon": 0}),
    # 2047 + 2 is no f16, nor is 256 + 1 a bf16
    Values("f16-rounds-once", "BatchNormInference-5", [np.array(a, np.float16) for a in ([[2047.0]], [1.0], [2.0], [-2.0], [1.0])], np.array([[2052]], np.float16), {"epsilon": 0}),
    Values("bf16", "BatchNormInference-5", [np.array(a, ml_dtypes.bfloat16) for a in ([[256.0]], [1.0], [-1.0], [-1.0], [1.0])], np.array([[256]], ml_dtypes.bfloat16), {"epsilon": 0}),
    Values("no-batch", "BatchNormInference-5", [np.ones((0, 2)), *[np.ones(2)] * 4], np.ones((0, 2)), {"epsilon": 1}),
]  # fmt: skip

_STATISTICS = ["f32[3]"] * 4
SHAPES = [
    Shapes("spec-2d", "BatchNormInference-5", ["f32[10,128]", *["f32[128]"] * 4], "f32[10,128]", {"epsilon": "9.99e-06"}),
    Shapes("spec-4d", "BatchNormInference-5", ["f32[1,3,224,224]", *_STATISTICS], "f32[1,3,224,224]", {"epsilon": "9.99e-06"}),
    Shapes("1", "BatchNormInference-1", ["f32[3]", "f32[3]", "f32[1,3,?]", "f32[3]", "f32[3]"], "f32[1,3,?]", {"epsilon": 0}),
    Shapes("channels-from-statistics", "BatchNormInference-5", ["f16[?,?,?]", "f16[...]", "f16[?]", "f16[3]", "f16[1..4]"], "f16[?,3,?]", {"epsilon": 0}),
    Shapes("unknown-rank", "BatchNormInference-5", ["f32[...]", *_STATISTICS], "f32[...]", {"epsilon": 0}),
]  # fmt: skip

_REFUSED = [
    ("c1-rank-1", ["f32[3]", *_STATISTICS], 0),
    ("c1-no-channels", ["f32[1,0]", *["f32[0]"] * 4], 0),
    ("c2-gamma-2d", ["f32[1,3]", "f32[1,3]", *_STATISTICS[1:]], 0),
    ("c2-variance-length", ["f32[1,3]", *_STATISTICS[1:], "f32[4]"], 0),
    ("c2-statistics-differ", ["f32[...]", "f32[3]", "f32[4]", "f32[3]", "f32[3]"], 0),
    ("c3-epsilon", ["f32[1,3]", *_STATISTICS], -1),
    ("ir301-integers", ["i32[1,3]", *["i32[3]"] * 4], 0),
    ("ir302-types", ["f16[1,3]", *_STATISTICS], 0),
    ("ir205-no-variance", ["f32[1,3]", *_STATISTICS[1:]], 0),
]
REFUSALS = [Refusal(id, "BatchNormInference-5", inputs, {"epsilon": epsilon}) for id, inputs, epsilon in _REFUSED] + [
    Refusal(f"{id}-1", "BatchNormInference-1", _moved(inputs), {"epsilon": epsilon})
    for id, inputs, epsilon in _REFUSED
    if len(inputs) == 5
]


def _inputs(*shape: int, dtype: type = np.float32) -> list[np.ndarray]:
    statistics = [random(shape[1], dtype=dtype, seed=n) for n in range(4)]
    return [random(*shape, dtype=dtype), *statistics[:3], abs(statistics[3])]


_SHAPES = [(2, 3), (2, 3, 4), (1, 3, 4, 5), (2, 3, 2, 1, 4), (0, 3, 2)]
CASES = (
    [Case(f"5-{shape}", "BatchNormInference-5", _inputs(*shape), {"epsilon": 0.5}) for shape in _SHAPES]
    + [Case(f"1-{shape}", "BatchNormInference-1", _moved(_inputs(*shape)), {"epsilon": 1e-3}) for shape in _SHAPES]
    + [
        Case(np.dtype(t).name, "BatchNormInference-5", _inputs(2, 3, 4, dtype=t), {"epsilon": 0.25}, rtol=rtol)
        for t, rtol in ((np.float16, 2e-3), (np.float64, 1e-5))
    ]
    + [Case("constants", "BatchNormInference-5", _inputs(2, 3, 4), {"epsilon": 0.25}, constants=[1, 2, 3, 4])]
)


def test_a_variance_of_zero() -> None:
    """The difference to the mean divided by 0 is infinite, also with constant statistics: shifts of NaN are not made."""
    data = b.parameter([1, 1, 2], "f32", name="data")
    ones = np.ones(1, np.float32)
    y = b.BatchNormInference(data, *map(b.constant, (ones, ones, ones, 0 * ones)), epsilon=0)
    feed = np.array([[[3, -1]]], np.float32)
    np.testing.assert_array_equal(irrun.compile(b.model({"y": y}), exact=False)([feed])[0], [[[np.inf, -np.inf]]])
