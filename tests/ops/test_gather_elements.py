"""GatherElements-6."""

import ml_dtypes
import numpy as np
import pytest

from irrun.opdef import Refused
from kit import *

_OP = "GatherElements-6"


def _indices(*shape, size):
    return np.abs(random(*shape, dtype=np.int64)) % size


VALUES = [
    Values("spec-1", _OP, [f32([[1, 2], [3, 4]]), [[0, 1], [0, 0]]], f32([[1, 4], [1, 2]]), {"axis": 0}),
    Values("spec-2", _OP, [f32([[1, 7], [4, 3]]), [[1, 1, 0], [1, 0, 1]]], f32([[7, 7, 1], [3, 4, 3]]), {"axis": 1}),
    Values("spec-3", _OP, [arange(3, 3, start=1), [[1, 0, 1], [1, 2, 0]]], f32([[4, 2, 6], [4, 8, 3]]), {"axis": 0}),
    Values("negative-axis", _OP, [f32([[1, 7], [4, 3]]), [[1], [0]]], f32([[7], [4]]), {"axis": -1}),
    # OpenVINO: the CPU plugin does so; the specification has no negative indices
    Values("negative-index", _OP, [f32([1, 2, 3]), i64(-1, -3)], f32([3, 1]), {"axis": 0}),
    Values("empty", _OP, [np.zeros((0, 2), np.float32), np.zeros((0, 2), np.int64)], np.zeros((0, 2), np.float32), {"axis": 0}),
    *(Values(f"type-{np.dtype(t).name}", _OP, [np.array([1, 0], t), i64(1, 0)], np.array([0, 1], t), {"axis": 0})
      for t in (np.float64, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.int4, np.uint64)),
    Values("strings", _OP, [np.array(["a", "bc"]), i64(1)], np.array(["bc"]), {"axis": 0}),
]  # fmt: skip

SHAPES = [
    Shapes("spec", _OP, ["f32[3,7,5]", "i32[3,10,5]"], "f32[3,10,5]", {"axis": 1}),
    Shapes("dims-meet", _OP, ["f32[?,7,2..6]", "i32[3,10,5..]"], "f32[3,10,5..6]", {"axis": -2}),
    Shapes("unknown-indices", _OP, ["f32[?,7,2..6]", "i32[...]"], "f32[?,?,2..6]", {"axis": 1}),
    Shapes("unknown-data", _OP, ["f32[...]", "i32[3,?]"], "f32[3,?]", {"axis": 1}),
    Shapes("unknown", _OP, ["f32[...]", "i32[...]"], "f32[...]", {"axis": 1}),
]

REFUSALS = [
    Refusal("c1-ranks", _OP, ["f32[3,4]", "i64[2]"], {"axis": 0}),
    Refusal("c1-scalars", _OP, ["f32[]", "i64[]"], {"axis": 0}),
    Refusal("c2-axis", _OP, ["f32[3,4]", "i64[3,4]"], {"axis": 2}),
    Refusal("c3-dims", _OP, ["f32[3,4]", "i64[2,4]"], {"axis": 1}),
    Refusal("c4-index", _OP, ["f32[3]", "i64{0,3}"], {"axis": 0}),
    Refusal("c4-negative-index", _OP, ["f32[..3]", "i64{-4,0}"], {"axis": 0}),
    Refusal("ir301-indices", _OP, ["f32[3]", "i8[3]"], {"axis": 0}),
]

CASES = [
    Case(
        f"{np.dtype(t).name}-{list(data)}-{list(indices)}-{axis}",
        _OP,
        [random(*data, dtype=t), _indices(*indices, size=data[axis])],
        {"axis": axis},
        shapes=[1],
    )
    for number, (data, indices, axis) in enumerate(
        [((5,), (3,), 0), ((3, 4), (2, 4), 0), ((3, 4), (3, 6), -1), ((2, 3, 4), (2, 5, 4), 1), ((2, 3, 2, 4), (1, 3, 2, 4), 0),
         ((2, 2, 2, 2, 3), (2, 2, 2, 2, 2), 4), ((3, 4), (3, 0), 1)]
    )
    for t in ((*NUMERIC, np.bool_) if number == 2 else NUMERIC[:1])
] + [
    Case("i32", _OP, [random(3, 4), np.array([[2, 0, 1, -1]], np.int32)], {"axis": 0}, shapes=[1]),
]  # fmt: skip


def test_c4_when_only_a_run_can_see_it():
    with pytest.raises(Refused) as caught:
        operation(_OP, {"axis": 0}).run(f32([1, 2]), i64(2))
    assert caught.value.label == "C4"
