"""ScatterNDUpdate-4 (documented as ScatterNDUpdate-3) and ScatterNDUpdate-15."""

import ml_dtypes
import numpy as np
import pytest

from irrun.opdef import Refused
from kit import *

_OP = "ScatterNDUpdate-15"
_BOTH = ("ScatterNDUpdate-4", _OP)
_REDUCTIONS = ("none", "sum", "sub", "prod", "min", "max")
_ABCD = [[1, 2, 3, 4], [5, 6, 7, 8], [8, 7, 6, 5], [4, 3, 2, 1]]
_DCBA = [[8, 7, 6, 5], [4, 3, 2, 1], [1, 2, 3, 4], [5, 6, 7, 8]]
_FIVES = [[5, 5, 5, 5], [6, 6, 6, 6], [7, 7, 7, 7], [8, 8, 8, 8]]
_ONES = [[1, 1, 1, 1], [2, 2, 2, 2], [3, 3, 3, 3], [4, 4, 4, 4]]
_PLACES = [[0], [2], [-3], [-3], [0]]

VALUES = [
    *(Values(f"spec-elements-{o}", o, [arange(8, start=1), [[4], [3], [1], [7], [-2], [-4]], f32([9, 10, 11, 12, 13, 14])],
             f32([1, 11, 3, 10, 14, 6, 13, 12])) for o in _BOTH),
    *(Values(f"spec-slices-{o}", o, [f32([_ABCD, _ABCD, _DCBA, _DCBA]), [[0], [2]], f32([_FIVES, _ONES])],
             f32([_FIVES, _ABCD, _ONES, _DCBA])) for o in _BOTH),
    *(Values(f"spec-{r}", _OP, [np.array([1, 2, 3, 4], t), np.array(_PLACES), np.array([10, 20, 30, 40, 50], t)], np.array(e, t), {"reduction": r})
      for r, t, e in (("sum", np.float16, [61, 72, 23, 4]), ("sub", np.int32, [-59, -68, -17, 4]))),
    # the specification's examples print -3 of 4 as place 2 here, which is 1
    Values("prod", _OP, [f32([1, 2, 3, 4]), _PLACES, f32([10, 20, 30, 40, 50])], f32([500, 2400, 60, 4]), {"reduction": "prod"}),
    Values("none", _OP, [f32([1, 2, 3, 4]), _PLACES, f32([10, 20, 30, 40, 50])], f32([50, 40, 20, 4])),
    Values("u8-wraps", _OP, [np.array([1, 2], np.uint8), [[0], [0]], np.array([250, 10], np.uint8)], np.array([5, 2], np.uint8), {"reduction": "sum"}),
    # OpenVINO: in the CPU plugin only the first of several booleans counts
    Values("boolean-sub", _OP, [[True, False], [[0], [1], [1]], [True, True, True]], [False, False], {"reduction": "sub"}),
    # OpenVINO: the CPU plugin does nothing for tuples of no indices
    Values("empty-tuples", _OP, [arange(2, 2), np.zeros((1, 0), np.int64), f32([[[9, 8], [7, 6]]])], f32([[9, 8], [7, 6]])),
    Values("empty-tuples-sum", _OP, [arange(2), np.zeros((2, 0), np.int64), f32([[1, 2], [3, 4]])], f32([4, 7]), {"reduction": "sum"}),
    Values("one-tuple", _OP, [arange(2, 2), i64(1, 0), f32(9)], f32([[0, 1], [9, 3]])),
    Values("one-tuple-one-element", _OP, [arange(2, 2), i64(1, 0), f32([9])], f32([[0, 1], [9, 3]])),
    Values("no-tuples", _OP, [arange(2, 2), np.zeros((0, 2), np.int64), np.zeros(0, np.float32)], arange(2, 2)),
    *(Values(f"type-{np.dtype(t).name}-{r}", _OP, [np.array([1, 0], t), [[1]], np.array([1], t)], np.array([1, e], t), {"reduction": r})
      for t in (np.float64, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.int4, np.int8, np.uint64) for r, e in (("none", 1), ("sum", 1), ("min", 0))),
]  # fmt: skip

SHAPES = [
    *(
        Shapes(f"spec-5-{o}", o, ["f32[1000,256,10,15]", "i64[25,125,3]", "f32[25,125,15]"], "f32[1000,256,10,15]")
        for o in _BOTH
    ),
    Shapes("unknown", _OP, ["f32[?,2..3]", "i32[...]", "f32[...]"], "f32[?,2..3]"),
    Shapes("unknown-length", _OP, ["f32[?,3]", "i32[2,?]", "f32[4,5]"], "f32[?,3]"),
    Shapes("unknown-data", _OP, ["f32[...]", "i32[2,1]", "f32[2,5]"], "f32[...]"),
    Shapes("carries", _OP, ["i64{1,?,3}", "i64[1,1]{2}", "i64{4..5}"], "i64{1,?,4..5}"),
    Shapes("sum-of-unknown", _OP, ["i64{1,?,3}", "i64[1,1]{2}", "i64{4}"], "i64{unknown}", {"reduction": "sum"}),
]

REFUSALS = [
    row
    for o in _BOTH
    for row in (
        Refusal(f"c1-data-{o}", o, ["f32[]", "i64[1,1]", "f32[1]"]),
        Refusal(f"c1-indices-{o}", o, ["f32[3]", "i64[]", "f32[1]"]),
        Refusal(f"c2-{o}", o, ["f32[3]", "i64[1,2]", "f32[1]"]),
        Refusal(f"c3-{o}", o, ["f32[3,4]", "i64[2,1]", "f32[2,3]"]),
        Refusal(f"c3-rank-{o}", o, ["f32[3,4]", "i64[2,1]", "f32[2]"]),
        Refusal(f"c3-one-element-{o}", o, ["f32[3,4]", "i64[1,2]", "f32[]"]),
        Refusal(f"c4-{o}", o, ["f32[3]", "i64[1,1]{3}", "f32[1]"]),
        Refusal(f"c4-second-{o}", o, ["f32[3,2]", "i64{0,-3}", "f32[]"]),
        Refusal(f"ir301-{o}", o, ["f32[3]", "i8[1,1]", "f32[1]"]),
        Refusal(f"ir302-{o}", o, ["f32[3]", "i64[1,1]", "f16[1]"]),
    )
]

_SCATTERED = [
    ((5,), (3, 1)),
    ((3, 4), (4, 2)),
    ((3, 4), (2, 1)),
    ((2, 3, 4), (2, 2, 2)),
    ((2, 3, 4), (2,)),
    ((2, 3, 2, 2, 2), (3, 3)),
    ((2, 3), (0, 1)),
]


def _case(op, reduction, t, data, indices):
    places = np.abs(random(*indices, dtype=np.int64)) % np.array(data[: indices[-1]], np.int64)
    updates = random(*indices[:-1], *data[indices[-1] :], dtype=t, seed=1)
    return Case(
        f"{op}-{reduction}-{np.dtype(t).name}-{list(data)}-{list(indices)}",
        op,
        [random(*data, dtype=t), places, updates],
        {} if op == "ScatterNDUpdate-4" else {"reduction": reduction},
        shapes=[1],
        # OpenVINO: the CPU plugin crashes for one tuple that is no row of them
        how="core" if len(indices) == 1 else "cpu",
    )


CASES = [
    _case(_OP, reduction, t, data, indices)
    for reduction in _REDUCTIONS
    for number, (data, indices) in enumerate(_SCATTERED)
    for t in ((*NUMERIC, np.bool_) if number == 3 else NUMERIC[:1])
    if not (t is np.bool_ and reduction == "sub")
] + [
    _case("ScatterNDUpdate-4", "none", t, data, indices) for data, indices in _SCATTERED for t in (np.float32, np.bool_)
]  # fmt: skip


@pytest.mark.parametrize("op", _BOTH)
def test_c4_when_only_a_run_can_see_it(op):
    with pytest.raises(Refused) as caught:
        operation(op).run(f32([1, 2]), np.array([[2]]), f32([3]))
    assert caught.value.label == "C4"


def test_sums_are_rounded_once():
    """The page adds one update after the other, in the element type: irrun may lose less."""
    arrays = np.array([2048], np.float16), np.array([[0], [0]]), np.array([1, 1], np.float16)
    assert operation(_OP, {"reduction": "sum"}).run(*arrays).tolist() == [2050]
