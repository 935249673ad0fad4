"""SliceScatter-15."""

import ml_dtypes
import numpy as np
import pytest

from irrun.opdef import Refused
from kit import *

_OP = "SliceScatter-15"
_DATA = arange(2, 5)
_MAX, _MIN = 2**31 - 1, -(2**31)

VALUES = [
    Values("spec-1", _OP, [_DATA, f32([[10, 20, 30, 40, 50]]), i64(0), i64(1), i64(1), i64(0)], f32([[10, 20, 30, 40, 50], [5, 6, 7, 8, 9]])),
    Values("spec-2", _OP, [_DATA, f32([[10, 20, 30], [40, 50, 60]]), i64(-25), i64(25), i64(2), i64(1)],
           f32([[10, 1, 20, 3, 30], [40, 6, 50, 8, 60]])),
    Values("spec-3", _OP, [arange(3, 5), f32([[50, 60], [70, 80]]), i64(0, 1), i64(3, 5), i64(2, 2)],
           f32([[0, 50, 2, 60, 4], [5, 6, 7, 8, 9], [10, 70, 12, 80, 14]])),
    Values("backwards", _OP, [_DATA, f32([[10, 20, 30], [40, 50, 60]]), i64(25), i64(-25), i64(-2), i64(-1)],
           f32([[30, 1, 20, 3, 10], [60, 6, 50, 8, 40]])),
    Values("nothing", _OP, [_DATA, np.zeros((0, 5), np.float32), i64(1), i64(1), i64(1)], _DATA),
    Values("no-bounds", _OP, [_DATA, -_DATA, i64(), i64(), i64()], -_DATA),
    # OpenVINO: converts updates of another type
    Values("other-type", _OP, [_DATA, np.array([[1, 2, 3, 4, 5]], np.float16), i64(0), i64(1), i64(1)], f32([[1, 2, 3, 4, 5], [5, 6, 7, 8, 9]])),
    *(Values(f"type-{np.dtype(t).name}", _OP, [np.array([1, 0], t), np.array([1], t), i64(1), i64(2), i64(1)], np.array([1, 1], t))
      for t in (np.float64, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.int4, np.uint64, np.bool_)),
]  # fmt: skip

SHAPES = [
    Shapes("data", _OP, ["f32[?,2..3]", "f32[1,2]", "i64{0}", "i64{1}", "i64{1}"], "f32[?,2..3]"),
    Shapes("unknown-bounds", _OP, ["f32[4,3]", "f32[?,3]", "i64[?]", "i64[?]", "i64[?]"], "f32[4,3]"),
    Shapes("unknown-rank", _OP, ["f32[...]", "f32[?,3]", "i64{0}", "i64{1}", "i64{1}"], "f32[...]"),
    Shapes("carries", _OP, ["i64{1,?,3}", "i64{4..5}", "i64{2}", "i64{3}", "i64{1}", "i64{0}"], "i64{1,?,4..5}"),
]

REFUSALS = [
    Refusal("c1-scalar", _OP, ["f32[]", "f32[]", "i64{}", "i64{}", "i64{}"]),
    Refusal("c2-start-scalar", _OP, ["f32[3]", "f32[1]", "i64[]{0}", "i64{1}", "i64{1}"]),
    Refusal("c2-lengths", _OP, ["f32[3,3]", "f32[1,3]", "i64{0}", "i64{1,1}", "i64{1}"]),
    Refusal("c2-too-many", _OP, ["f32[3]", "f32[1]", "i64[2]", "i64[2]", "i64[2]"]),
    Refusal("c3-step-0", _OP, ["f32[3]", "f32[1]", "i64{0}", "i64{1}", "i64{0}"]),
    Refusal("c4-axis", _OP, ["f32[3]", "f32[1]", "i64{0}", "i64{1}", "i64{1}", "i64{1}"]),
    Refusal("c4-axis-twice", _OP, ["f32[3,3]", "f32[1,3]", "i64{0,0}", "i64{1,1}", "i64{1,1}", "i64{0,-2}"]),
    Refusal("c5-dims", _OP, ["f32[3,3]", "f32[2,3]", "i64{0}", "i64{1}", "i64{1}"]),
    Refusal("c5-rank", _OP, ["f32[3,3]", "f32[]", "i64{0}", "i64{1}", "i64{1}"]),
    Refusal("c5-no-broadcast", _OP, ["f32[3,3]", "f32[1,1]", "i64{0}", "i64{1}", "i64{1}"]),
    Refusal("ir301-float-start", _OP, ["f32[3]", "f32[1]", "f32[1]", "i64{1}", "i64{1}"]),
]

_SLICES = [  # shape, start, stop, step, axes
    ((5,), (1,), (4,), (1,), (0,)), ((5,), (_MAX,), (_MIN,), (-2,), (0,)), ((4, 5), (1, -4), (9, -1), (2, 1), (0, 1)),
    ((2, 3, 4), (0, 1), (2, 4), (1, 2), (2, 1)), ((2, 3, 4, 2), (2, 0), (-4, 1), (-1, 1), (-2, 0)),
    ((2, 3, 2, 2, 4), (1, 1), (2, 4), (1, 2), (1, 4)), ((3, 2), (1,), (1,), (1,), (0,)),
]  # fmt: skip


def _case(t, shape, start, stop, step, axes):
    data = random(*shape, dtype=t)
    index = [slice(None)] * len(shape)
    for axis, *bounds in zip(axes, start, stop, step):
        index[axis] = slice(*bounds)
    updates = random(*data[tuple(index)].shape, dtype=t, seed=1)
    name = f"{np.dtype(t).name}-{list(shape)}-{list(start)}-{list(stop)}-{list(step)}-{list(axes)}"
    return Case(name, _OP, [data, updates, i64(*start), i64(*stop), i64(*step), i64(*axes)], shapes=[2, 3, 4, 5])


CASES = [
    _case(t, *row) for number, row in enumerate(_SLICES) for t in ((*NUMERIC, np.bool_) if number == 3 else NUMERIC[:1])
] + [
    Case("no-axes", _OP, [_DATA, f32([[9, 9, 9, 9, 9]]), i64(1), i64(2), i64(1)], shapes=[2, 3, 4]),
    Case("i32", _OP, [_DATA, f32([[9, 9, 9, 9, 9]]), *(np.array([n], np.int32) for n in (1, 2, 1, 0))], shapes=[2, 3, 4, 5]),
]  # fmt: skip


def test_c5_when_only_a_run_can_see_it():
    with pytest.raises(Refused) as caught:
        operation(_OP).run(_DATA, f32([[1]]), i64(0), i64(1), i64(1))
    assert caught.value.label == "C5"
