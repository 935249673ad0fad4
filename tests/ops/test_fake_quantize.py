"""FakeQuantize-1."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import irrun
from broadcasting import PDPD, PDPD_REFUSED, pdpd
from irrun import build as b
from kit import *

OP = "FakeQuantize-1"
Shape = tuple[int, ...]


def f(*numbers: float, dtype: Any = np.float32) -> np.ndarray:
    return np.array(numbers, dtype)


def _limits(*numbers: float, dtype: Any = np.float32) -> list[np.ndarray]:
    return [f(n, dtype=dtype) for n in numbers]


_X = f(-1, 0, 0.1, 0.24, 0.26, 0.5, 0.74, 0.76, 1, 2)
_ROW = f(0.25, 0.5, 1)

VALUES = [
    Values("three-levels", OP, [_X, *_limits(0, 1, -1, 1)], f(-1, -1, -1, -1, 0, 0, 0, 1, 1, 1), {"levels": 3}),
    Values("inverted-input", OP, [_X, *_limits(1, 0, -1, 1)], f(-1, -1, 1, 1, 0, 0, 0, -1, -1, 1), {"levels": 3}),
    Values("inverted-output", OP, [_X, *_limits(0, 1, 1, -1)], f(1, 1, 1, 1, 0, 0, 0, -1, -1, -1), {"levels": 3}),
    Values("binarization", OP, [_X, *_limits(0.5, 0.5, -1, 1)], f(-1, -1, -1, -1, -1, -1, 1, 1, 1, 1), {"levels": 2}),
    Values("halves-to-even", OP, [f(0.5, 1.5, 2.5), *_limits(0, 4, 0, 4)], f(0, 2, 2), {"levels": 5}),
    Values("nan", OP, [f(np.nan, 2), *_limits(0, 1, -1, 1)], f(np.nan, 1), {"levels": 3}),
    Values("infinite", OP, [f(np.inf, -np.inf), *_limits(0, 1, -1, 1)], f(1, -1), {"levels": 3}),
    Values("f16", OP, [_X.astype(np.float16), *_limits(0, 1, -1, 1, dtype=np.float16)], f(-1, -1, -1, -1, 0, 0, 0, 1, 1, 1, dtype=np.float16), {"levels": 3}),
    Values("bf16", OP, [f(0.3, 9, dtype=ml_dtypes.bfloat16), *_limits(0, 1, -1, 1, dtype=ml_dtypes.bfloat16)], f(0, 1), {"levels": 3}),
    Values("f64", OP, [f(0.3, dtype=np.float64), *_limits(0, 1, 0, 1, dtype=np.float64)], [0.3], {"levels": 11}, rtol=1e-15),
    Values("limits-of-each-column", OP, [[_ROW, _ROW], f(0, 0, 0), _ROW, f(0, 0, 0), _ROW * 2], [_ROW * 2, _ROW * 2], {"levels": 2}),
    Values("leading-1s-dropped", OP, [_ROW, np.zeros((1, 1), np.float32), *_limits(1, -1, 1)], f(-1, -1, 1), {"levels": 2}),
    Values("scalars", OP, [np.float32(2), np.float32(0), np.float32(1), np.float32(3), np.float32(4)], 4, {"levels": 2}),
    *(
        Values(f"rules-pdpd-{a}-{b}-{axis}", OP, [np.ones(a, np.float32), np.zeros(b, np.float32), *_limits(1, 0), arange(*b)], np.broadcast_to(arange(*b).reshape(aligned), a), {"levels": 2} | pdpd(axis))
        for a, b, axis, aligned in PDPD if axis in (-1, len(a) - 1)
    ),
]  # fmt: skip

SHAPES = [
    Shapes(
        "spec", OP, ["f32[1,64,56,56]", *["f32[1,64,1,1]"] * 2, *["f32[1,1,1,1]"] * 2], "f32[1,64,56,56]", {"levels": 2}
    ),
    Shapes("numpy-keeps-data", OP, ["f32[?,3]", *["f32[2,3]"] * 4], "f32[?,3]", {"levels": 2}),
    Shapes("scalar-limits", OP, ["f32[?,3]", *["f32[]"] * 4], "f32[?,3]", {"levels": 2}),
    Shapes("leading-1s", OP, ["f32[2,3]", *["f32[1,1,2,3]"] * 4], "f32[2,3]", {"levels": 2}),
    Shapes("none", OP, ["f32[?,3]", *["f32[2,?]"] * 4], "f32[2,3]", {"levels": 2, "auto_broadcast": "none"}),
    Shapes("pdpd", OP, ["f32[?,3]", *["f32[2]"] * 4], "f32[2,3]", {"levels": 2} | pdpd(0)),
    Shapes("unknown-rank", OP, ["f32[...]", *["f32[2]"] * 4], "f32[...]", {"levels": 2}),
    Shapes("unknown-limits", OP, ["f32[2,3]", *["f32[...]"] * 4], "f32[2,3]", {"levels": 2}),
]


def _refusal(id: str, data: Shape, limit: Shape, attributes: dict[str, Any], port: int = 1) -> Refusal:
    limits = ["f32[1]" if attributes == {} else f"f32[{','.join(map(str, data))}]"] * 4
    limits[port - 1] = f"f32[{','.join(map(str, limit))}]"
    return Refusal(id, OP, [f"f32[{','.join(map(str, data))}]", *limits], {"levels": 2} | attributes)


REFUSALS = [
    *(_refusal(f"c1-{port}", (2, 3), (3,), {"auto_broadcast": "none"}, port) for port in range(1, 5)),
    *(_refusal(f"c2-dim-{port}", (2, 3), (2,), {}, port) for port in range(1, 5)),
    _refusal("c2-data-would-grow", (1, 3), (2, 3), {}),
    _refusal("c2-rank-would-grow", (2, 3), (4, 2, 3), {}),
    *(Refusal(f"c3-{why}", OP, [f"f32{list(a)}", *[f"f32{list(b)}"] * 4], {"levels": 2} | pdpd(axis)) for why, a, b, axis in PDPD_REFUSED),
    Refusal("c4-levels", OP, ["f32[2]", *["f32[1]"] * 4], {"levels": 1}),
    *(Refusal(f"ir301-{type}", OP, [f"{type}[2]", *[f"{type}[1]"] * 4], {"levels": 2}) for type in ("u8", "i32")),
    Refusal("ir302-types", OP, ["f32[2]", *["f16[1]"] * 4], {"levels": 2}),
    Refusal("ir205-arity", OP, ["f32[2]", *["f32[1]"] * 3], {"levels": 2}),
]  # fmt: skip

_SHAPES: list[tuple[Shape, Shape, Shape]] = [
    ((), (), ()), ((3,), (1,), (3,)), ((2, 3), (2, 1), ()), ((0, 3), (3,), (1,)), ((2, 3, 4), (3, 1), (1, 3, 1)),
    ((1, 2, 3, 4), (1, 2, 1, 1), (1, 1, 1, 1)), ((1, 2, 2, 3, 2), (2, 1, 1, 1), (1, 2, 1, 1, 1)),
]  # fmt: skip


def _case(levels: int, dtype: type, data: Shape, low: Shape, out: Shape, attributes: dict[str, Any]) -> Case:
    x = random(*data, dtype=dtype)
    in_low, out_low = -abs(random(*low, dtype=dtype, seed=1)), random(*out, dtype=dtype, seed=2)
    one, two = x.dtype.type(1), x.dtype.type(2)
    inputs = [x, in_low, in_low + two, out_low, out_low + one]
    name = f"{levels}-{np.dtype(dtype).name}-{list(data)}-{list(low)}-{list(out)}-{'-'.join(map(str, attributes.values()))}"
    return Case(name, OP, inputs, {"levels": levels} | attributes, shapes=[1, 2, 3, 4])


CASES = [
    *(_case(levels, dtype, *row, {}) for levels in (2, 16, 256) for dtype in (np.float32, np.float16) for row in _SHAPES),
    *(_case(16, np.float32, s, s, s, {"auto_broadcast": "none"}) for s in [(), (2, 3), (1, 2, 3, 4)]),
]  # fmt: skip


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("end", [np.nan, np.inf])
def test_an_end_of_the_output_range_that_is_not_finite(exact: bool, end: float) -> None:
    """Beyond the input range, the other end of the output range is the result: constant, or known when it runs."""
    x, limits = b.parameter([1, 2], "f32", name="x"), (f32([0]), f32([1]))
    for low in (f32([end]), b.parameter([1], "f32", name="low")):
        feeds = [f32([[9, 9]]), *([] if isinstance(low, np.ndarray) else [f32([end])])]
        model = b.model([b.FakeQuantize(x, limits[0], limits[1], low, f32([3]), levels=2)])
        np.testing.assert_array_equal(irrun.compile(model, exact=exact)(feeds)[0], [[3, 3]])
