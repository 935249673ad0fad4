"""ScatterUpdate-3."""

import ml_dtypes
import numpy as np
import pytest

from irrun.opdef import Refused
from kit import *

_OP = "ScatterUpdate-3"
_DATA = f32([[-1, 1, -1, 3, 4], [-1, 6, -1, 8, 9], [-1, 11, 1, 13, 14]])

VALUES = [
    Values("spec-2", _OP, [_DATA, i64(0, 2), f32([[1, 1], [1, 1], [1, 2]]), i64(1)],
           f32([[1, 1, 1, 3, 4], [1, 6, 1, 8, 9], [1, 11, 2, 13, 14]])),
    Values("scalar-index", _OP, [arange(2, 3), np.array(1), f32([7, 8, 9]), np.array(0)], f32([[0, 1, 2], [7, 8, 9]])),
    Values("2d-indices", _OP, [arange(4), [[3, 0], [1, 1]], f32([[7, 8], [9, 10]]), np.array(-1)], f32([8, 10, 2, 7])),
    Values("no-indices", _OP, [arange(2, 3), np.zeros(0, np.int64), np.zeros((0, 3), np.float32), np.array(0)], arange(2, 3)),
    *(Values(f"type-{np.dtype(t).name}", _OP, [np.array([1, 0], t), i64(1), np.array([1], t), i64(0)], np.array([1, 1], t))
      for t in (np.float64, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.int4, np.uint64, np.bool_)),
]  # fmt: skip

SHAPES = [
    Shapes(
        "spec-1", _OP, ["f32[1000,256,10,15]", "i32[125,20]", "f32[1000,125,20,10,15]", "i64{1}"], "f32[1000,256,10,15]"
    ),
    Shapes("unknown", _OP, ["f32[?,2..3]", "i32[...]", "f32[...]", "i64[...]"], "f32[?,2..3]"),
    Shapes("unknown-axis", _OP, ["f32[?,3]", "i32[2]", "f32[4,5]", "i64[]"], "f32[?,3]"),
    Shapes("unknown-data", _OP, ["f32[...]", "i32[2]", "f32[4,5]", "i64[]{0}"], "f32[...]"),
    Shapes("carries", _OP, ["i64{1,?,3}", "i64{2}", "i64{4..5}", "i64[]{0}"], "i64{1,?,4..5}"),
    Shapes("carries-into-exact", _OP, ["i64{1,2,3}", "i64{0}", "i64{?}", "i64[]{0}"], "i64{?,2,3}"),
    Shapes("unknown-index", _OP, ["i64{1,2,3}", "i64{?}", "i64{7}", "i64[]{0}"], "i64{unknown}"),
]

REFUSALS = [
    Refusal("c1-axis", _OP, ["f32[3,4]", "i64[2]", "f32[2,4]", "i64{0,1}"]),
    Refusal("c2-axis", _OP, ["f32[3,4]", "i64[2]", "f32[2,4]", "i64{2}"]),
    Refusal("c2-scalar", _OP, ["f32[]", "i64[2]", "f32[2]", "i64{0}"]),
    Refusal("c3-updates", _OP, ["f32[3,4]", "i64[2]", "f32[3,4]", "i64{0}"]),
    Refusal("c3-updates-rank", _OP, ["f32[3,4]", "i64[2]", "f32[2]", "i64[1]"]),
    Refusal("c4-index", _OP, ["f32[3,4]", "i64{0,3}", "f32[2,4]", "i64{0}"]),
    Refusal("c4-negative-index", _OP, ["f32[3,4]", "i64{0,-1}", "f32[2,4]", "i64{0}"]),
    Refusal("ir301-strings", _OP, ["string[3]", "i64[2]", "string[2]", "i64{0}"]),
    Refusal("ir302-updates", _OP, ["f32[3,4]", "i64[2]", "f16[2,4]", "i64{0}"]),
]

CASES = [
    Case(
        f"{np.dtype(t).name}-{list(data)}-{np.shape(indices)}-{axis}",
        _OP,
        [random(*data, dtype=t), np.array(indices, np.int64), random(*data[:axis], *np.shape(indices), *data[axis + 1 :], dtype=t, seed=1), i64(axis)],
        shapes=[1, 3],
        how="core" if np.ndim(indices) == 0 else "cpu",  # OpenVINO: the CPU plugin refuses a scalar index
    )
    for number, (data, indices, axis) in enumerate(
        [((5,), [3, 1], 0), ((3, 4), [0, 2], 0), ((3, 4), [[1, 3]], 1), ((3, 4), 1, 0), ((2, 3, 4), [[2], [0]], 1),
         ((2, 3, 4, 2), [3, 3, 1], 2), ((2, 1, 2, 2, 3), [2, 0], 4), ((3, 0), [1], 0), ((3, 2), [], 0)]
    )
    for t in ((*NUMERIC, np.bool_) if number == 4 else NUMERIC[:1])
] + [
    Case("negative-axis", _OP, [random(3, 4), np.array([1, 3], np.int32), random(3, 2), np.array(-1, np.int32)], shapes=[1, 3]),
]  # fmt: skip


def test_c4_when_only_a_run_can_see_it():
    with pytest.raises(Refused) as caught:
        operation(_OP).run(f32([1, 2]), i64(-1), f32([3]), i64(0))
    assert caught.value.label == "C4"


def test_c3_when_only_a_run_can_see_it():
    with pytest.raises(Refused) as caught:
        operation(_OP).run(arange(2, 3), i64(1), arange(1, 3), i64(1))
    assert caught.value.label == "C3"
