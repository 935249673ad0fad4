"""FakeConvert-13."""

from typing import Any

import ml_dtypes
import numpy as np

from kit import *

OP = "FakeConvert-13"
E4M3 = {"destination_type": "f8e4m3"}
E5M2 = {"destination_type": "f8e5m2"}


def f(*numbers: float, dtype: Any = np.float32) -> np.ndarray:
    return np.array(numbers, dtype)


_ONE = f(1)

VALUES = [
    Values("f8e4m3", OP, [f(0, 1, -1, 0.1, 16.9, 18, 448), _ONE], f(0, 1, -1, 0.1015625, 16, 18, 448), E4M3),
    Values("f8e4m3-subnormal", OP, [f(1.5 * 2**-10, 2**-9, 2.4 * 2**-9), _ONE], f(2**-9, 2**-9, 2**-8), E4M3),
    Values("halves-to-even", OP, [f(17, 19, 2**-10, 2.5 * 2**-9), _ONE], f(16, 20, 0, 2**-8), E4M3),
    # OpenVINO: keeps the largest of the type
    Values("f8e4m3-beyond", OP, [f(460, 1000, np.inf, -np.inf, np.nan), _ONE], f(448, 448, 448, -448, np.nan), E4M3),
    Values("f8e5m2", OP, [f(0, 1, -1, 0.1, 17, 19, 57344), _ONE], f(0, 1, -1, 0.09375, 16, 20, 57344), E5M2),
    Values("f8e5m2-beyond", OP, [f(60000, 61440, 70000, -np.inf, np.nan), _ONE], f(57344, 57344, 57344, -57344, np.nan), E5M2),
    Values("scale-shift", OP, [f(1.1, 2.3), f(100), f(3)], f(1.07, 2.27), E4M3),
    Values("scale-of-each-row", OP, [[f(1.1), f(1.1)], [f(1), f(10)]], [f(1.125), f(1.1)], E4M3),
    Values("f16", OP, [f(1.1, dtype=np.float16), f(1, dtype=np.float16)], f(1.125, dtype=np.float16), E4M3),
    Values("bf16", OP, [f(1.1, dtype=ml_dtypes.bfloat16), f(1, dtype=ml_dtypes.bfloat16)], f(1), E5M2),
    Values("scalars", OP, [np.float32(1.1), np.float32(1), np.float32(0)], 1.125, E4M3),
]  # fmt: skip

SHAPES = [
    Shapes("spec", OP, ["f32[1,64,56,56]", "f32[1,64,1,1]", "f32[1,64,1,1]"], "f32[1,64,56,56]", E4M3),
    Shapes("no-shift", OP, ["f16[?,3]", "f16[3]"], "f16[?,3]", E5M2),
    Shapes("unknown-ranks", OP, ["f16[...]", "f16[3]", "f16[...]"], "f16[...]", E5M2),
    Shapes("unknown-scale", OP, ["f32[2,3]", "f32[...]", "f32[?]"], "f32[2,3]", E5M2),
]

REFUSALS = [
    Refusal("c1-dim", OP, ["f32[2,3]", "f32[2]"], E4M3),
    Refusal("c1-rank", OP, ["f32[2,3]", "f32[1,1,1]"], E4M3),
    Refusal("c1-data-would-grow", OP, ["f32[1,3]", "f32[2,3]"], E4M3),
    Refusal("c1-shift", OP, ["f32[1,3]", "f32[...]", "f32[2,3]"], E4M3),
    Refusal("c2-shift", OP, ["f32[2,3]", "f32[1]", "f32[2,3]"], E4M3),
    Refusal("c2-rank", OP, ["f32[2,3]", "f32[]", "f32[1]"], E4M3),
    Refusal("ir301-f64", OP, ["f64[2,3]", "f64[1]"], E4M3),
    Refusal("ir302-types", OP, ["f32[2,3]", "f16[1]"], E4M3),
]

_SHAPES = [
    ((), ()), ((3,), (1,)), ((2, 3), (3,)), ((0, 3), (3,)), ((2, 3, 4), (3, 1)), ((1, 2, 3, 4), (1, 2, 1, 1)),
    ((1, 2, 2, 3, 2), (2, 1, 1, 1)),
]  # fmt: skip


def _case(destination: dict[str, Any], dtype: type, data: tuple[int, ...], scale: tuple[int, ...], shift: bool) -> Case:
    inputs = [random(*data, dtype=dtype), abs(random(*scale, dtype=dtype, seed=1)) + np.dtype(dtype).type(1)]
    inputs += [random(*scale, dtype=dtype, seed=2)] * shift
    name = f"{destination['destination_type']}-{np.dtype(dtype).name}-{list(data)}-{list(scale)}{'-shift' * shift}"
    return Case(name, OP, inputs, destination, shapes=range(1, len(inputs)))


CASES = [
    _case(destination, dtype, data, scale, shift)
    for destination in (E4M3, E5M2)
    for dtype in (np.float32, np.float16)
    for data, scale in _SHAPES
    for shift in (False, True)
]
