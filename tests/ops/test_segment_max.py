"""SegmentMax-16."""

import ml_dtypes
import numpy as np
import pytest

from irrun.opdef import Refused
from kit import *

ZERO, LOWEST = {"fill_mode": "zero"}, {"fill_mode": "lowest"}
_LOWEST = [
    (np.float32, np.finfo(np.float32).min), (np.float16, -65504), (ml_dtypes.bfloat16, -3.3895313892515355e38),
    (np.int32, -(2**31)), (np.uint8, 0), (ml_dtypes.int4, -8),
]  # fmt: skip

VALUES = [
    Values("1d-zero", "SegmentMax-16", [f32([1, 2, 3, 4]), i64(0, 0, 2, 2)], [2, 0, 4], ZERO),
    *[Values(f"lowest-{np.dtype(t).name}", "SegmentMax-16", [np.array([1, 2, 3, 4], t), i64(0, 0, 2, 2)], np.array([2, lowest, 4], t), LOWEST)
      for t, lowest in _LOWEST],
    Values("2d", "SegmentMax-16", [np.array([[8, 1], [6, 5], [4, 3], [2, 9]]), i64(0, 0, 1, 1), np.array(2)], np.array([[8, 5], [4, 9]]), ZERO),
    # OpenVINO's reference tests
    Values("reference-3d", "SegmentMax-16", [np.array([[[1, 2], [3, 4]], [[5, 6], [7, 8]], [[16, 15], [14, 13]], [[12, 11], [10, 9]]]), i64(0, 0, 1, 1)], [[[5, 6], [7, 8]], [[16, 15], [14, 13]]], LOWEST),
    Values("reference-more-segments", "SegmentMax-16", [np.array([1, 2, 3, 4], np.int32), i64(0, 1, 2, 3), np.array(6)], np.array([1, 2, 3, 4, -(2**31), -(2**31)], np.int32), LOWEST),
    Values("more-segments", "SegmentMax-16", [f32([1, 2]), i64(0, 1), np.array(4)], [1, 2, 0, 0], ZERO),
    Values("negatives", "SegmentMax-16", [f32([-5, -7]), i64(1, 1)], [0, -5], ZERO),
    Values("nan", "SegmentMax-16", [f32([[1, np.nan], [2, 3]]), i64(0, 0)], [[2, np.nan]], ZERO),
    Values("infinite", "SegmentMax-16", [f32([[np.inf, -np.inf], [2, -np.inf]]), i64(0, 0)], [[np.inf, -np.inf]], ZERO),
    Values("no-rows", "SegmentMax-16", [np.empty((0, 2), np.float32), i64()], np.empty((0, 2)), ZERO),
    Values("no-rows-two-segments", "SegmentMax-16", [np.empty((0, 2), np.float32), i64(), np.array(2)], [[0, 0], [0, 0]], ZERO),
    Values("spec-name", "SegmentMax-16", [f32([1]), i64(1)], [0, 1], {"empty_segment_value": "ZERO"}),
]  # fmt: skip

SHAPES = [
    Shapes("ids-known", "SegmentMax-16", ["i32[3,4]", "i64{0,1,1}"], "i32[2,4]", LOWEST),
    Shapes("ids-unknown", "SegmentMax-16", ["f32[3,4]", "i64[3]"], "f32[?,4]", ZERO),
    Shapes("count-known", "SegmentMax-16", ["f32[?,4]", "i64[?]", "i32[]{5}"], "f32[5,4]", ZERO),
    Shapes("count-partial", "SegmentMax-16", ["f32[3]", "i64{0,0,7}", "i64[]{2..9}"], "f32[8..9]", ZERO),
    Shapes("unknown-rank", "SegmentMax-16", ["f32[...]", "i64[...]", "i64[...]"], "f32[...]", ZERO),
]

REFUSALS = [
    Refusal("c1-scalar", "SegmentMax-16", ["f32[]", "i64[?]"], ZERO),
    Refusal("c2-ids-2d", "SegmentMax-16", ["f32[2]", "i64[1,2]"], ZERO),
    Refusal("c2-too-few", "SegmentMax-16", ["f32[3]", "i64[2]"], ZERO),
    Refusal("c3-descend", "SegmentMax-16", ["f32[2]", "i64{1,0}"], ZERO),
    Refusal("c3-negative", "SegmentMax-16", ["f32[2]", "i64{-1,0}"], ZERO),
    Refusal("c4-1d", "SegmentMax-16", ["f32[2]", "i64{0,1}", "i64{2}"], ZERO),
    Refusal("c4-negative", "SegmentMax-16", ["f32[2]", "i64{0,1}", "i64[]{-2}"], ZERO),
    Refusal("c5-count", "SegmentMax-16", ["f32[3]", "i64{0,1,3}", "i64[]{3}"], ZERO),
    Refusal("c5-at-most", "SegmentMax-16", ["f32[3]", "i64{0,1,3}", "i64[]{1..3}"], ZERO),
    Refusal("ir301-boolean", "SegmentMax-16", ["boolean[2]", "i64{0,1}"], ZERO),
    Refusal("ir301-ids", "SegmentMax-16", ["f32[2]", "u8{0,1}"], ZERO),
]

CASES = [
    *[Case(f"{np.dtype(t).name}-{mode['fill_mode']}", "SegmentMax-16", [arange(4, 3, dtype=t), i64(0, 0, 2, 2)], mode, shapes=[1])
      for t in (np.float32, np.int32) for mode in (ZERO, LOWEST)],
    Case("float16-zero", "SegmentMax-16", [arange(4, 3, dtype=np.float16), i64(0, 0, 2, 2)], ZERO, shapes=[1]),
    # OpenVINO: the CPU plugin makes -Inf of the lowest f16
    Case("float16-lowest", "SegmentMax-16", [np.array([1, 2], np.float16), i64(0, 2)], LOWEST, shapes=[1], expected=np.array([1, -65504, 2], np.float16)),
    *[Case(f"rank-{len(s)}-segments-{count}", "SegmentMax-16", [arange(*s), i64(0, 1, 1, 3), np.array(count)], ZERO, shapes=[1, 2])
      for s in ((4,), (4, 2), (4, 1, 3), (4, 2, 1, 2)) for count in (4, 6)],
    Case("i32-ids", "SegmentMax-16", [arange(3), np.array([0, 0, 1], np.int32), np.array(3)], LOWEST, shapes=[1, 2]),
]  # fmt: skip


@pytest.mark.parametrize(("ids", "label"), [([1, 0], "C3"), ([-1, 0], "C3"), ([0, 2], "C5")])
def test_ids_at_run_time(ids: list[int], label: str) -> None:
    with pytest.raises(Refused) as caught:
        operation("SegmentMax-16", ZERO).run(f32([1, 2]), np.array(ids), np.array(2))
    assert caught.value.label == label
