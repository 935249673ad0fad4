"""ScatterElementsUpdate-3 and ScatterElementsUpdate-12."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from irrun.opdef import Refused
from kit import *

_OP = "ScatterElementsUpdate-12"
_BOTH = ("ScatterElementsUpdate-3", _OP)
_REDUCTIONS = ("none", "sum", "prod", "min", "max", "mean")
_SUM = {"reduction": "sum"}


def _of(t, data, updates, expected, **attributes):
    """One place, several updates: data [d, 1], updates at 0, expected at 0."""
    return [
        Values(
            f"{np.dtype(t).name}-{'-'.join(map(str, attributes.values()))}-{list(updates)}",
            _OP,
            [np.array([data, 1], t), np.zeros(len(updates), np.int64), np.array(updates, t), i64(0)],
            np.array([expected, 1], t),
            attributes,
        )
    ]


VALUES = [
    Values("spec-1", _OP, [f32([2, 3, 4, 6]), i64(1, 0, 0, -2, -1, 2), f32([10, 20, 30, 40, 70, 60]), i64(0)], f32([52, 13, 104, 76]), _SUM),
    Values("spec-2", _OP, [f32([2, 3, 4, 6]), i64(1, 0, 0, 2, 3, 2), f32([10, 20, 30, 40, 70, 60]), i64(0)], f32([50, 10, 100, 70]), {**_SUM, "use_init_val": False}),
    *(Values(f"spec-3-{o}", o, [np.zeros((3, 4), np.int32), [[1, 2], [0, 3]], np.array([[11, 12], [13, 14]], np.int32), i64(1)],
             np.array([[0, 11, 12, 0], [13, 0, 0, 14], [0, 0, 0, 0]], np.int32)) for o in _BOTH),
    Values("spec-4", _OP, [np.ones((3, 4), np.int32), [[1, 1], [0, 3]], np.array([[11, 12], [13, 14]], np.int32), i64(1)],
           np.array([[1, 24, 1, 1], [14, 1, 1, 15], [1, 1, 1, 1]], np.int32), _SUM),
    Values("spec-5", _OP, [np.full((3, 4), 2, np.int32), [[1, 1], [0, 3]], np.array([[11, 12], [13, 14]], np.int32), i64(1)],
           np.array([[2, 264, 2, 2], [26, 2, 2, 28], [2, 2, 2, 2]], np.int32), {"reduction": "prod"}),
    # OpenVINO: ScatterElementsUpdate-3, too, takes negative indices
    *(Values(f"negative-{o}", o, [arange(3), i64(-1), f32([7]), np.array(-1)], f32([0, 1, 7])) for o in _BOTH),
    *(Values(f"last-stays-{o}", o, [arange(3), i64(1, 1), f32([7, 8]), i64(0)], f32([0, 8, 2])) for o in _BOTH),
    *(Values(f"no-updates-{r}", _OP, [arange(3), i64(), np.zeros(0, np.float32), i64(0)], arange(3), {"reduction": r, "use_init_val": False}) for r in _REDUCTIONS),
    # OpenVINO: the CPU plugin rounds the mean of integers towards 0; the specification and the core kernel down
    *_of(np.int32, -3, [-10], -7, reduction="mean"),
    *_of(np.int32, 100, [-10, -5], -8, reduction="mean", use_init_val=False),
    *_of(np.uint8, 200, [100, 3], 101, reduction="mean"),
    *_of(np.uint8, 200, [100, 3], 47, reduction="sum"),
    *_of(np.int64, 1, [2**62, 3], 2**62 + 4, reduction="sum"),
    *_of(np.int64, 2**62 + 1, [2**62], 2**62, reduction="min"),
    *_of(np.int64, 5, [-7], -7, reduction="max", use_init_val=False),
    *_of(np.float32, 5, [-7], -7, reduction="max", use_init_val=False),
    *_of(np.float32, 5, [7, 9], 7, reduction="min", use_init_val=False),
    *_of(np.float64, 1, [2**-40], 1 + 2**-40, reduction="sum"),
    *_of(np.bool_, True, [False, False], True, reduction="sum"),
    *_of(np.bool_, True, [False, True], False, reduction="prod"),
    *_of(np.bool_, True, [False], False, reduction="max", use_init_val=False),
    *_of(np.bool_, False, [True], True, reduction="min", use_init_val=False),
    *_of(np.float32, 1, [np.nan], np.nan, reduction="max"),
]  # fmt: skip

_SPEC = ["f32[1000,256,7,7]", "i64[125,20,7,6]", "f32[125,20,7,6]", "i64{0}"]

SHAPES = [
    *(Shapes(f"spec-6-{o}", o, _SPEC, "f32[1000,256,7,7]") for o in _BOTH),
    Shapes("unknown", _OP, ["f32[?,2..3]", "i32[...]", "f32[...]", "i64[...]"], "f32[?,2..3]"),
    Shapes("unknown-data", _OP, ["f32[...]", "i32[5]", "f32[5]", "i64{0}"], "f32[...]"),
    Shapes("longer-at-axis", _OP, ["f32[3,4]", "i32[3,9]", "f32[3,9]", "i64{-1}"], "f32[3,4]"),
    Shapes("unknown-axis", _OP, ["f32[3,4]", "i32[9,4]", "f32[?,?]", "i64[]"], "f32[3,4]"),
    Shapes("carries", _OP, ["i64{1,?,3}", "i64{2}", "i64{4..5}", "i64{0}"], "i64{1,?,4..5}"),
    Shapes("sum-of-unknown", _OP, ["i64{1,?,3}", "i64{2}", "i64{4..5}", "i64{0}"], "i64{unknown}", _SUM),
]

REFUSALS = [
    row
    for o in _BOTH
    for row in (
        Refusal(f"c1-{o}", o, ["f32[3,4]", "i64[2,2]", "f32[2,2]", "i64{0,1}"]),
        Refusal(f"c2-{o}", o, ["f32[3,4]", "i64[2,2]", "f32[2,2]", "i64{2}"]),
        Refusal(f"c3-rank-{o}", o, ["f32[3,4]", "i64[2]", "f32[2]", "i64{0}"]),
        Refusal(f"c3-shape-{o}", o, ["f32[3,4]", "i64[2,1]", "f32[1,2]", "i64{0}"]),
        Refusal(f"c4-{o}", o, ["f32[3,4]", "i64[4,4]", "f32[4,4]", "i64{1}"]),
        Refusal(f"c5-{o}", o, ["f32[3]", "i64{3}", "f32[1]", "i64{0}"]),
        Refusal(f"c5-negative-{o}", o, ["f32[3]", "i64{-4}", "f32[1]", "i64{0}"]),
        Refusal(f"ir302-{o}", o, ["f32[3]", "i64{0}", "f16[1]", "i64{0}"]),
    )
] + [
    Refusal("c6-mean-of-booleans", _OP, ["boolean[3]", "i64{0}", "boolean[1]", "i64{0}"], {"reduction": "mean"}),
]  # fmt: skip

_SCATTERED = [
    ((5,), (3,), 0), ((3, 4), (2, 3), 0), ((3, 4), (3, 6), 1), ((2, 3, 4), (2, 2, 3), -1), ((2, 2, 2, 2, 3), (1, 3, 1, 2, 3), 1), ((3, 4), (0, 4), 0),
]  # fmt: skip


def _expected(reduction, data, indices, updates, axis, use_init_val):
    """One update at a time, for what the CPU plugin rounds or wraps otherwise."""
    out = data.astype(object)
    seen: dict[tuple[int, ...], list[Any]] = {}
    for at in np.ndindex(indices.shape):
        place = list(at)
        place[axis] = int(indices[at])
        seen.setdefault(tuple(place), []).append(updates[at].item())
    for place, numbers in seen.items():
        both = [data[place].item(), *numbers] if use_init_val else numbers
        out[place] = (
            sum(both) // len(both) if reduction == "mean" else {"sum": sum, "min": min, "max": max}[reduction](both)
        )
    return out.astype(data.dtype)


CASES = [
    Case(
        f"opset12-{reduction}-{init}-{np.dtype(t).name}-{list(data)}-{list(indices)}-{axis}",
        _OP,
        [random(*data, dtype=t), np.abs(random(*indices, dtype=np.int64)) % data[axis], random(*indices, dtype=t, seed=1), i64(axis)],
        {"reduction": reduction, "use_init_val": init},
        shapes=[1, 3],
        expected=_expected("mean", random(*data, dtype=t), np.abs(random(*indices, dtype=np.int64)) % data[axis], random(*indices, dtype=t, seed=1), axis, init)
        if reduction == "mean" and np.dtype(t).kind in "iu" else None,  # OpenVINO: the CPU plugin rounds towards 0
    )
    for number, (data, indices, axis) in enumerate(_SCATTERED)
    for reduction in _REDUCTIONS
    for init in (True, False)
    for t in ((*NUMERIC, np.bool_) if number == 2 else NUMERIC[:1])
    if not (t is np.bool_ and reduction == "mean")
] + [
    Case(
        f"opset3-{np.dtype(t).name}-{list(data)}-{axis}",
        "ScatterElementsUpdate-3",
        [random(*data, dtype=t), np.abs(random(*indices, dtype=np.int64)) % data[axis], random(*indices, dtype=t, seed=1), i64(axis)],
        shapes=[1, 3],
    )
    for data, indices, axis in _SCATTERED
    for t in (np.float32, np.bool_)
]  # fmt: skip


@pytest.mark.parametrize("op", _BOTH)
def test_c5_when_only_a_run_can_see_it(op):
    with pytest.raises(Refused) as caught:
        operation(op).run(f32([1, 2]), i64(2), f32([3]), i64(0))
    assert caught.value.label == "C5"


@pytest.mark.parametrize(("t", "whole"), [(np.float16, 2048), (ml_dtypes.bfloat16, 256)])
def test_sums_are_rounded_once(t, whole):
    """The page adds one update after the other, in the element type: irrun may lose less."""
    arrays = np.array([whole], t), i64(0, 0), np.array([1, 1], t), i64(0)
    assert operation(_OP, _SUM).run(*arrays).tolist() == [whole + 2]
