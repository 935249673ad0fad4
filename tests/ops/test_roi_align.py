"""ROIAlign-3 and ROIAlign-9."""

from typing import Any

import numpy as np

from kit import *


def _attributes(height: int, width: int, samples: int = 2, **given: Any) -> dict[str, Any]:
    plain = {"pooled_h": height, "pooled_w": width, "sampling_ratio": samples, "spatial_scale": 1.0, "mode": "avg"}
    return plain | given


def _rois(*rows: list[float]) -> np.ndarray:
    return np.array(rows, np.float32)


def _image(*rows: list[float]) -> np.ndarray:
    return np.array([[rows]], np.float32)


_DATA = arange(2, 1, 4, 5, start=1)
_FIRST = [_DATA, _rois([0, 0, 3, 3]), i64(0)]
_NUMBERS = """
     0 1 8 5 5 2 0 7  7 10 4 5 9 0 0 5  7 0 4 0 4 7 6 10  9 5 1 7 4 7 10 8
     2 0 8 3 6 8 10 4  2 10 7 8 7 0 6 9  2 4 8 5 2 3 3 1  5 9 10 0 9 5 5 3
    10 5 2 0 10 0 5 4  3 10 5 5 10 0 8 8  9 1 0 7 9 6 8 7  10 9 2 3 3 5 6 9
     4 9 2 4 5 5 3 1  1 6 8 0 5 5 10 8  6 9 6 9 1 2 7 1  1 3 0 4 0 7 10 2
"""
_REFERENCE = [f32(_NUMBERS.split()).reshape(2, 1, 8, 8), _rois([2, 2, 4, 4], [2, 2, 4, 4]), i64(0, 1)]
_POINT = [_DATA, _rois([2, 2, 2, 2]), i64(0)]

VALUES = [
    Values("avg", "ROIAlign-3", _FIRST, _image([5.5, 7], [13, 14.5]), _attributes(2, 2)),
    Values("max", "ROIAlign-3", _FIRST, _image([7.75, 9.25], [15.25, 16.75]), _attributes(2, 2, mode="max")),
    # OpenVINO's reference tests
    Values("reference-avg", "ROIAlign-3", _REFERENCE, f32([[[[3, 3.75], [4.75, 5]]], [[[3, 5.5], [2.75, 3.75]]]]), _attributes(2, 2)),
    Values("reference-max", "ROIAlign-3", _REFERENCE, f32([[[[4.375, 4.9375], [5.6875, 5.625]]], [[[4.625, 7.125], [3.3125, 4.3125]]]]), _attributes(2, 2, mode="max")),
    Values("second-of-the-batch", "ROIAlign-3", [_DATA, _rois([0, 0, 3, 3]), i64(1)], _image([25.5, 27], [33, 34.5]), _attributes(2, 2)),
    Values("adaptive", "ROIAlign-3", _FIRST, _image([5.5, 7], [13, 14.5]), _attributes(2, 2, 0)),
    Values("at-least-a-pixel", "ROIAlign-3", _POINT, _image([16]), _attributes(1, 1)),
    # no other mode makes a region at least a pixel wide
    Values("asymmetric-by-default", "ROIAlign-9", _POINT, _image([16]), _attributes(1, 1)),
    Values("no-more-than-a-point", "ROIAlign-9", _POINT, _image([10]), _attributes(1, 1, aligned_mode="half_pixel_for_nn")),
    Values("half-pixel", "ROIAlign-9", _POINT, _image([14.5]), _attributes(1, 1, spatial_scale=1.1, aligned_mode="half_pixel")),
    # OpenVINO: the CPU plugin gives NaN
    Values("no-samples", "ROIAlign-9", _POINT, _image([0]), _attributes(1, 1, 0, aligned_mode="half_pixel")),
    Values("no-samples-max", "ROIAlign-9", _POINT, _image([0]), _attributes(1, 1, 0, mode="max", aligned_mode="half_pixel")),
    # OpenVINO: the largest is never less than 0
    # the size of such a region is no number, so that it has no samples
    Values("nan-adaptive", "ROIAlign-3", [_DATA, _rois([np.nan, 0, 3, 3]), i64(0)], _image([0, 0], [0, 0]), _attributes(2, 2, 0)),
    Values("max-of-negatives", "ROIAlign-3", [-_DATA, *_FIRST[1:]], _image([0, 0], [0, 0]), _attributes(2, 2, mode="max")),
    Values("outside", "ROIAlign-3", [_DATA, _rois([20, 20, 22, 22]), i64(0)], _image([0, 0], [0, 0]), _attributes(2, 2)),
    Values("f16", "ROIAlign-3", [_DATA.astype(np.float16), _FIRST[1].astype(np.float16), i64(0)], _image([5.5, 7], [13, 14.5]).astype(np.float16), _attributes(2, 2)),
    Values("no-rows", "ROIAlign-9", [np.ones((2, 1, 0, 5), np.float32), *_FIRST[1:]], _image([0, 0], [0, 0]), _attributes(2, 2)),
    Values("no-columns-max", "ROIAlign-3", [np.ones((2, 1, 4, 0), np.float32), *_FIRST[1:]], _image([0, 0], [0, 0]), _attributes(2, 2, mode="max")),
    Values("no-rois", "ROIAlign-3", [_DATA, np.ones((0, 4), np.float32), i64()], np.ones((0, 1, 2, 2), np.float32), _attributes(2, 2)),
]  # fmt: skip

_SPEC = ["f32[7,256,200,200]", "f32[1000,4]", "i64[1000]"]
SHAPES = [
    Shapes("spec-3", "ROIAlign-3", _SPEC, "f32[1000,256,6,6]", _attributes(6, 6)),
    Shapes("spec-9", "ROIAlign-9", _SPEC, "f32[1000,256,6,6]", _attributes(6, 6, aligned_mode="half_pixel")),
    Shapes("dynamic", "ROIAlign-3", ["f16[?,256,?,?]", "f16[?,?]", "i32[9]"], "f16[9,256,6,7]", _attributes(6, 7)),
    Shapes("unknown-ranks", "ROIAlign-9", ["f32[...]", "f32[...]", "i64[...]"], "f32[?,?,6,6]", _attributes(6, 6)),
]

_X, _R, _B = "f32[2,3,9,9]", "f32[5,4]", "i64[5]"
_LABELS: list[tuple[str, list[str], dict[str, Any]]] = [
    ("c1-data", ["f32[3,9,9]", _R, _B], _attributes(2, 2)),
    ("c1-rois", [_X, "f32[4]", _B], _attributes(2, 2)),
    ("c1-columns", [_X, "f32[5,5]", _B], _attributes(2, 2)),
    ("c1-batch-indices", [_X, _R, "i64[5,1]"], _attributes(2, 2)),
    ("c2-counts", [_X, _R, "i64[4]"], _attributes(2, 2)),
    ("c3-pooled", [_X, _R, _B], _attributes(2, 0)),
    ("c3-samples", [_X, _R, _B], _attributes(2, 2, -1)),
    ("c3-scale", [_X, _R, _B], _attributes(2, 2, spatial_scale=-1)),
    ("c4-batch-index", [_X, "f32[1,4]", "i64{2}"], _attributes(2, 2)),
    ("c4-negative", [_X, "f32[?,4]", "i64{-1}"], _attributes(2, 2)),
    ("ir301-float-indices", [_X, _R, "f32[5]"], _attributes(2, 2)),
    ("ir302-types", [_X, "f16[5,4]", _B], _attributes(2, 2)),
]
REFUSALS = [Refusal(f"{id}-{v}", f"ROIAlign-{v}", inputs, a) for v in (3, 9) for id, inputs, a in _LABELS]


def _regions(count: int = 20) -> np.ndarray:
    """Regions of all kinds, some malformed or partly outside."""
    corners = np.random.default_rng(0).random((count, 4)) * 1.6 - 0.3
    return (corners * [18, 16, 18, 16]).astype(np.float32)


# OpenVINO: without a sampling_ratio, the CPU plugin gives NaN for a malformed region of the aligned modes
_SOUND = np.concatenate([_regions()[:, :2], _regions()[:, :2] + abs(_regions()[:, 2:]) + 1], 1)

CASES = [
    Case(
        f"9-{aligned}-{mode}-{samples}",
        "ROIAlign-9",
        [random(2, 3, 8, 9), _SOUND if samples == 0 else _regions(), random(20, dtype=np.int64) % 2],
        _attributes(3, 4, samples, spatial_scale=0.5, mode=mode, aligned_mode=aligned),
    )
    for aligned in ("asymmetric", "half_pixel_for_nn", "half_pixel")
    for mode in ("avg", "max")
    for samples in (0, 1, 3)
] + [
    Case(
        f"3-{mode}-{samples}",
        "ROIAlign-3",
        [random(2, 3, 8, 9), _regions(), random(20, dtype=np.int32) % 2],
        _attributes(2, 3, samples, spatial_scale=0.5, mode=mode),
    )
    for mode in ("avg", "max")
    for samples in (0, 2)
]
