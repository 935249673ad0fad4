"""Select-1."""

import itertools
from typing import Any

import ml_dtypes
import numpy as np

from broadcasting import NUMPY, NUMPY_REFUSED, PDPD, PDPD_REFUSED, pdpd
from kit import *

Shape = tuple[int, ...]


def _mask(*shape: int) -> np.ndarray:
    """Alternately true and false."""
    return arange(*shape, dtype=np.int64) % 2 == 0


VALUES = [
    Values("spec", "Select-1", [[[False, False], [True, False], [True, True]], [[-1, 0], [1, 2], [3, 4]], [[11, 10], [9, 8], [7, 6]]], [[11, 10], [1, 8], [3, 4]]),
    *(Values(f"rules-numpy-{a}-{b}", "Select-1", [True, arange(*a), arange(*b)], np.broadcast_to(arange(*a), r)) for a, b, r in NUMPY),
    *(Values(f"rules-numpy-cond-{a}-{b}", "Select-1", [_mask(*a), np.full(r, 1), np.full(b, -1)], np.where(np.broadcast_to(_mask(*a), r), 1, -1)) for a, b, r in NUMPY),
    Values("cond-grows", "Select-1", [[[True], [False]], i64(1, 2), 3], [[1, 2], [3, 3]]),
    *(
        Values(f"rules-pdpd-{a}-{b}-{axis}", "Select-1", [_mask(*b), arange(*a), -arange(*b)], np.where(_mask(*b).reshape(aligned), arange(*a), -arange(*b).reshape(aligned)), pdpd(axis))
        for a, b, axis, aligned in PDPD
    ),
    Values("exact", "Select-1", [[True, False], i64(2**53 + 1, 1), i64(1, 2**53 + 1)], i64(2**53 + 1, 2**53 + 1)),
    Values("boolean", "Select-1", [[True, False], [False, True], [True, True]], [False, True]),
    Values("bf16", "Select-1", [[True, False], np.array([1, 2], ml_dtypes.bfloat16), np.array(3, ml_dtypes.bfloat16)], [1, 3]),
    Values("not-the-other", "Select-1", [[True, False], np.array([1, np.nan]), np.array([np.nan, 2])], [1.0, 2.0]),
]  # fmt: skip

SHAPES = [
    *(Shapes(f"numpy-{a}-{b}", "Select-1", [f"boolean{list(a)}", f"f32{list(a)}", f"f32{list(b)}"], f"f32[{','.join(map(str, r))}]") for a, b, r in NUMPY),
    Shapes("cond-grows", "Select-1", ["boolean[4,2,3]", "i64[3]", "i64[2,1]"], "i64[4,2,3]"),
    Shapes("none", "Select-1", ["boolean[2,?]", "i64[?,3]", "i64[...]"], "i64[2,3]", {"auto_broadcast": "none"}),
    Shapes("pdpd", "Select-1", ["boolean[2]", "i64[?,3,4]", "i64[?,3]"], "i64[2,3,4]", pdpd(0)),
    Shapes("pdpd-unknown-rank", "Select-1", ["boolean[2]", "i64[...]", "i64[3]"], "i64[...]", pdpd(0)),
    Shapes("unknown-rank", "Select-1", ["boolean[2]", "i64[...]", "i64[3,1]"], "i64[...]"),
    Shapes("carries", "Select-1", ["boolean{1,0,..1,..1}", "i64{?,3,1,2..4}", "i64{5,?,7,3..9}"], "i64{?,?,1..7,2..9}"),
    Shapes("carries-exact-cond", "Select-1", ["boolean{1,0}", "i64{?,3}", "i64{5,2}"], "i64{?,2}"),
    Shapes("carries-unknown-cond", "Select-1", ["boolean{..1}", "i64{4}", "i64{4}"], "i64{4}"),
    Shapes("carries-scalar", "Select-1", ["boolean[]{1}", "i64[]{?}", "i64[]{5}"], "i64[]{?}"),
]  # fmt: skip


def _refusals(id: str, a: Shape, b: Shape, attributes: dict[str, Any]) -> list[Refusal]:
    """Both ``else`` and ``cond`` in the place of ``b``."""
    then, part = (",".join(map(str, s)) for s in (a, b))
    return [
        Refusal(f"{id}-else", "Select-1", ["boolean[]", f"f32[{then}]", f"f32[{part}]"], attributes),
        Refusal(f"{id}-cond", "Select-1", [f"boolean[{part}]", f"f32[{then}]", "f32[]"], attributes),
    ]


REFUSALS = [
    Refusal("c1-cond", "Select-1", ["boolean[2]", "f32[2,3]", "f32[2,3]"], {"auto_broadcast": "none"}),
    Refusal("c1-else", "Select-1", ["boolean[2,3]", "f32[2,3]", "f32[1,3]"], {"auto_broadcast": "none"}),
    *(row for a, b in NUMPY_REFUSED for row in _refusals(f"c2-{a}-{b}", a, b, {})),
    *(row for why, a, b, axis in PDPD_REFUSED for row in _refusals(f"c3-{why}", a, b, pdpd(axis))),
    Refusal("ir301-cond", "Select-1", ["i32[2]", "f32[2]", "f32[2]"]),
    Refusal("ir302-types", "Select-1", ["boolean[2]", "f32[2]", "i32[2]"]),
    Refusal("ir205-arity", "Select-1", ["boolean[2]", "f32[2]"]),
]

_SHAPES: list[tuple[Shape, Shape, Shape]] = [
    ((), (), ()), ((2, 3), (), ()), ((3,), (2, 3), (2, 1)), ((2, 1), (3,), (1,)), ((0,), (1,), (0,)),
    ((2, 0, 3), (3,), ()), ((2, 1, 5), (1, 4, 5), (4, 1)), ((3, 2, 1, 4), (5, 4), (3, 1, 5, 1)),
    ((2, 1, 2, 1, 3), (3, 1, 2, 1), (1, 1, 1, 2, 3)),
]  # fmt: skip


def _case(
    dtype: type, cond: Shape, then: Shape, otherwise: Shape, attributes: dict[str, Any], how: str = "cpu"
) -> Case:
    operands = [_mask(*cond), random(*then, dtype=dtype), random(*otherwise, dtype=dtype, seed=1)]
    name = "-".join(map(str, [np.dtype(dtype).name, list(cond), list(then), list(otherwise), *attributes.values()]))
    return Case(name, "Select-1", operands, attributes, how=how)


CASES = [
    *(_case(dtype, *row, {}) for dtype in (*NUMERIC, np.bool_) for row in _SHAPES),
    *(_case(dtype, s, s, s, {"auto_broadcast": "none"}) for dtype in (np.float32, np.int64) for s in [(), (2, 0), (2, 3, 1, 2)]),
    # OpenVINO: the CPU plugin has no pdpd broadcasting of its own
    *(
        _case(dtype, cond, a, b, pdpd(axis), "core")
        for dtype, (a, b, axis, _) in itertools.product((np.float32, np.int32), PDPD)
        for cond in (b, () if axis == -1 else b)
    ),
]  # fmt: skip


def test_strings():
    then, otherwise = np.array(["a", "b"]), np.array("else")
    assert operation("Select-1").run(np.array([True, False]), then, otherwise).tolist() == ["a", "else"]
