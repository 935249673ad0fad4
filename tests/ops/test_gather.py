"""Gather-1, Gather-7 and Gather-8."""

import ml_dtypes
import numpy as np
import pytest

import irrun
from irrun import build as b
from kit import *

_DATA = np.array([[1, 2, 3, 4, 5], [6, 7, 8, 9, 10]], np.float32)
_INDICES = i64(0, 0, 4, 4, 0, 0).reshape(2, 3)
_AXIS0, _AXIS1 = np.array(0), np.array(1)

VALUES = [
    Values("spec-1", "Gather-8", [_DATA[0], i64(0, 0, 4), _AXIS0], f32([1, 1, 5])),
    Values("spec-2", "Gather-8", [_DATA, _INDICES, _AXIS1], f32([[1, 1, 5], [10, 6, 6]]), {"batch_dims": 1}),
    Values("spec-2-opset7", "Gather-7", [_DATA, _INDICES, _AXIS1], f32([[1, 1, 5], [10, 6, 6]]), {"batch_dims": 1}),
    Values(
        "spec-3", "Gather-8",
        [arange(2, 2, 5, start=1), i64(0, 0, 4, 4, 0, 0, 1, 2, 4, 4, 3, 2).reshape(2, 2, 3), np.array(2)],
        f32([[[1, 1, 5], [10, 6, 6]], [[12, 13, 15], [20, 19, 18]]]), {"batch_dims": 2},
    ),
    Values(
        "spec-4", "Gather-8", [arange(2, 1, 5, 4, start=1), i64(1, 2, 4, 4, 3, 2).reshape(2, 3), np.array(2)],
        f32([[[[5, 6, 7, 8], [9, 10, 11, 12], [17, 18, 19, 20]]], [[[37, 38, 39, 40], [33, 34, 35, 36], [29, 30, 31, 32]]]]),
        {"batch_dims": 1},
    ),
    Values("spec-5", "Gather-8", [_DATA, _INDICES, _AXIS1], f32([[1, 1, 5], [10, 6, 6]]), {"batch_dims": -1}),
    Values("spec-6", "Gather-8", [_DATA[0], i64(0, -2, -1), _AXIS0], f32([1, 4, 5])),
    Values("spec-7", "Gather-8", [_DATA[0], i64(3, 10, -20), _AXIS0], f32([4, 0, 0])),
    Values("outside-in-batches", "Gather-8", [_DATA, i64(5, -6, 1, -1).reshape(2, 2), _AXIS1], f32([[0, 0], [7, 10]]), {"batch_dims": 1}),
    Values("outside-inner-axis", "Gather-8", [_DATA, i64(5, 0), _AXIS1], f32([[0, 1], [0, 6]])),
    Values("scalar-index", "Gather-1", [_DATA, np.array(1), _AXIS0], _DATA[1]),
    Values("scalar-output", "Gather-1", [_DATA[0], np.array(1), _AXIS0], f32(2)),
    Values("empty-axis", "Gather-8", [np.zeros((0, 3), np.float32), i64(0, 1), _AXIS0], np.zeros((2, 3), np.float32)),
    Values("unsigned-indices", "Gather-8", [_DATA[0], np.array([4, 200], np.uint8), _AXIS0], f32([5, 0])),
    # OpenVINO: the CPU plugin gives 0 for the negative index of an older version, the core kernel counts from the end
    Values("negative-opset1", "Gather-1", [_DATA[0], i64(-1), _AXIS0], f32([5])),
    Values("negative-opset7", "Gather-7", [_DATA[0], i64(-1), _AXIS0], f32([5])),
    *(Values(f"type-{np.dtype(t).name}", "Gather-8", [np.array([1, 0, 1], t), i64(1, 2, 3), _AXIS0], np.array([0, 1, 0], t))
      for t in (np.float64, ml_dtypes.bfloat16, ml_dtypes.float8_e5m2, ml_dtypes.int4, np.int8, np.uint64, np.bool_)),
    Values("strings", "Gather-8", [np.array(["a", "bc"]), i64(1, 2), _AXIS0], np.array(["bc", ""])),
]  # fmt: skip

SHAPES = [
    Shapes("spec-1", "Gather-1", ["f32[6,12,10,24]", "i64[15,4,20,28]", "i64[]{1}"], "f32[6,15,4,20,28,10,24]"),
    Shapes("spec-7", "Gather-7", ["f32[2,64,128]", "i64[2,32,21]", "i64[]{1}"], "f32[2,32,21,128]", {"batch_dims": 1}),
    Shapes("spec-8", "Gather-8", ["f32[2,64,128]", "i64[2,32,21]", "i64[]{1}"], "f32[2,32,21,128]", {"batch_dims": 1}),
    Shapes("negative-axis", "Gather-8", ["f32[2,64,?]", "i64[7]", "i64{-2}"], "f32[2,7,?]"),
    Shapes("batch-dims-meet", "Gather-8", ["f32[?,64]", "i64[2..4,3]", "i64[]{1}"], "f32[2..4,3]", {"batch_dims": -1}),
    Shapes("unknown-axis", "Gather-8", ["f32[2,64]", "i64[2,3]", "i64[]"], "f32[2,?]", {"batch_dims": 1}),
    Shapes("unknown-data", "Gather-8", ["f32[...]", "i64[2]", "i64[]{-1}"], "f32[...]"),
    Shapes("unknown-indices", "Gather-8", ["f32[2]", "i64[...]", "i64[]{0}"], "f32[...]", {"batch_dims": -1}),
    Shapes("unknown-everything", "Gather-8", ["f32[...]", "i64[...]", "i64[...]"], "f32[...]", {"batch_dims": -1}),
    Shapes("carries", "Gather-8", ["i64{1,?,2..5,3}", "i64{2,-1}", "i64[]{0}"], "i64{2..5,3}"),
    Shapes("carries-scalar", "Gather-1", ["i64{1,?,2..5,3}", "i64[]{2}", "i64[]{0}"], "i64[]{2..5}"),
    Shapes("unknown-index", "Gather-8", ["i64{1,2}", "i64{?}", "i64[]{0}"], "i64{unknown}"),
]

REFUSALS = [
    row
    for o in ("Gather-1", "Gather-7", "Gather-8")
    for row in (
        Refusal(f"c1-{o}", o, ["f32[2,3]", "i64[2]", "i64{0,1}"]),
        Refusal(f"c1-2d-{o}", o, ["f32[2,3]", "i64[2]", "i64[1,1]"]),
        Refusal(f"c2-{o}", o, ["f32[2,3]", "i64[2]", "i64{2}"]),
        Refusal(f"c2-scalar-{o}", o, ["f32[]", "i64[2]", "i64{0}"]),
        Refusal(f"ir301-{o}", o, ["f32[2,3]", "f32[2]", "i64{0}"]),
    )
] + [
    row
    for o in ("Gather-7", "Gather-8")
    for row in (
        Refusal(f"c3-beyond-axis-{o}", o, ["f32[2,3]", "i64[2,3]", "i64{0}"], {"batch_dims": 1}),
        Refusal(f"c3-beyond-indices-{o}", o, ["f32[2,3]", "i64[2]", "i64{1}"], {"batch_dims": 2}),
        Refusal(f"c3-beyond-data-{o}", o, ["f32[2]", "i64[2,3]", "i64{0}"], {"batch_dims": 2}),
        Refusal(f"c3-negative-{o}", o, ["f32[2,3]", "i64[2]", "i64{1}"], {"batch_dims": -2}),
        Refusal(f"c4-{o}", o, ["f32[2,3]", "i64[3,2]", "i64{1}"], {"batch_dims": 1}),
    )
]  # fmt: skip

_GATHERED = [
    ((5,), (), 0, 0), ((5,), (3,), 0, 0), ((5, 2), (), -1, 0), ((5, 2), (3,), 0, 0), ((5, 2), (3, 1), -1, 0),
    ((2, 3, 4), (2, 2), 1, 0), ((2, 3, 4), (2, 2), 2, 1), ((2, 3, 4), (2, 3), 2, 2), ((2, 3, 4), (2, 3, 2), 2, -1),
    ((2, 3, 4, 2, 2), (2, 2), 3, 1), ((2, 3, 4), (0,), 1, 0), ((2, 3), (2, 0), 1, 1),
]  # fmt: skip

CASES = [
    Case(
        f"{np.dtype(t).name}-{list(data)}-{list(indices)}-{axis}-{batch}",
        "Gather-8",
        [random(*data, dtype=t), random(*indices, dtype=np.int64), np.array(axis)],
        {"batch_dims": batch},
        shapes=[1],
        constants=[2],
        how="core" if 0 in indices else "cpu",  # OpenVINO: crashes for no indices, and wants a constant axis
    )
    for number, (data, indices, axis, batch) in enumerate(_GATHERED)
    for t in ((*NUMERIC, np.bool_) if number in (3, 6) else NUMERIC[:1])
] + [
    Case("opset7", "Gather-7", [random(2, 3, 4), i64(0, 3, 2, 1).reshape(2, 2), np.array(2)], {"batch_dims": 1}, shapes=[1], constants=[2]),
    Case("opset1", "Gather-1", [random(2, 3, 4), i64(0, 3, 2, 1).reshape(2, 2), np.array(2)], shapes=[1], constants=[2]),
    Case("i32", "Gather-8", [random(2, 3), np.array([-1, 1], np.int32), np.array([-1], np.int32)], shapes=[1], constants=[2]),
    Case("u8-indices", "Gather-8", [random(2, 3), np.array([2, 1], np.uint8), np.array([1], np.int8)], shapes=[1], constants=[2]),
    Case("axis-as-parameter", "Gather-8", [random(2, 3), i64(1, 0), np.array(1)], shapes=[1, 2]),
]  # fmt: skip


@pytest.mark.parametrize("rows", [[0, 1], [1, 0], [0], [0, 0], [-2, -1]])
def test_all_rows_in_order_are_no_copy_that_a_caller_shares(rows: list[int]) -> None:
    """As a cache whose rows ``beam_idx`` chooses: dims that are open until the run."""
    data, indices = b.parameter([None, 3], name="data"), b.parameter([None], "i32", name="rows")
    model = irrun.compile(b.model({"y": b.Gather(data, indices, 0)}))
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    result = model({"data": array, "rows": np.array(rows, np.int32)})["y"]
    np.testing.assert_array_equal(result, array[rows])
    result += 1
    assert array[0, 0] == 0
