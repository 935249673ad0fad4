"""ROIAlignRotated-15."""

import math
from typing import Any

import numpy as np

from kit import *


def _attributes(height: int, width: int, samples: int = 2, **given: Any) -> dict[str, Any]:
    plain = {"pooled_h": height, "pooled_w": width, "sampling_ratio": samples, "spatial_scale": 1.0}
    return plain | {"clockwise_mode": False} | given


def _rois(*rows: list[float]) -> np.ndarray:
    return np.array(rows, np.float32)


def _image(*rows: list[float]) -> np.ndarray:
    return np.array([[rows]], np.float32)


_DATA = arange(2, 1, 4, 5, start=1)
# a region of two by two pixels around (1.5, 1.5): 7 8 above 12 13
_PLAIN, _QUARTER, _HALF = (_rois([2, 2, 2, 2, angle]) for angle in (0, math.pi / 2, math.pi))

VALUES = [
    Values("plain", "ROIAlignRotated-15", [_DATA, _PLAIN, i64(0)], _image([7, 8], [12, 13]), _attributes(2, 2, 1)),
    Values("quarter", "ROIAlignRotated-15", [_DATA, _QUARTER, i64(0)], _image([12, 7], [13, 8]), _attributes(2, 2, 1)),
    Values("quarter-clockwise", "ROIAlignRotated-15", [_DATA, _QUARTER, i64(0)], _image([8, 13], [7, 12]), _attributes(2, 2, 1, clockwise_mode=True)),
    Values("half", "ROIAlignRotated-15", [_DATA, _HALF, i64(0)], _image([13, 12], [8, 7]), _attributes(2, 2, 1)),
    Values("second-of-the-batch", "ROIAlignRotated-15", [_DATA, _PLAIN, i64(1)], _image([27, 28], [32, 33]), _attributes(2, 2, 1)),
    Values("samples", "ROIAlignRotated-15", [_DATA, _PLAIN, i64(0)], _image([10]), _attributes(1, 1, 2)),
    Values("adaptive", "ROIAlignRotated-15", [_DATA, _PLAIN, i64(0)], _image([10]), _attributes(1, 1, 0)),
    Values("scale-moves-the-centre", "ROIAlignRotated-15", [_DATA, _rois([1, 1, 1, 1, 0]), i64(0)], _image([7, 8], [12, 13]), _attributes(2, 2, 1, spatial_scale=2.0)),
    Values("nan-adaptive", "ROIAlignRotated-15", [_DATA, _rois([2, 2, np.nan, 2, 0]), i64(0)], _image([0, 0], [0, 0]), _attributes(2, 2, 0)),
    Values("outside", "ROIAlignRotated-15", [_DATA, _rois([20, 20, 2, 2, 0]), i64(0)], _image([0]), _attributes(1, 1)),
    Values("f16", "ROIAlignRotated-15", [_DATA.astype(np.float16), _PLAIN.astype(np.float16), i64(0)], _image([7, 8], [12, 13]).astype(np.float16), _attributes(2, 2, 1)),
    Values("no-rois", "ROIAlignRotated-15", [_DATA, np.ones((0, 5), np.float32), i64()], np.ones((0, 1, 2, 2), np.float32), _attributes(2, 2)),
]  # fmt: skip

SHAPES = [
    Shapes("spec", "ROIAlignRotated-15", ["f32[7,256,200,200]", "f32[1000,5]", "i64[1000]"], "f32[1000,256,6,6]", _attributes(6, 6)),
    Shapes("dynamic", "ROIAlignRotated-15", ["f16[?,256,?,?]", "f16[?,?]", "i32[9]"], "f16[9,256,6,7]", _attributes(6, 7)),
    Shapes("unknown-ranks", "ROIAlignRotated-15", ["f32[...]", "f32[...]", "i64[...]"], "f32[?,?,6,6]", _attributes(6, 6)),
]  # fmt: skip

_X, _R, _B = "f32[2,3,9,9]", "f32[5,5]", "i64[5]"
REFUSALS = [
    Refusal("c1-data", "ROIAlignRotated-15", ["f32[3,9,9]", _R, _B], _attributes(2, 2)),
    Refusal("c1-columns", "ROIAlignRotated-15", [_X, "f32[5,4]", _B], _attributes(2, 2)),
    Refusal("c2-counts", "ROIAlignRotated-15", [_X, _R, "i64[4]"], _attributes(2, 2)),
    Refusal("c3-pooled", "ROIAlignRotated-15", [_X, _R, _B], _attributes(0, 2)),
    Refusal("c3-samples", "ROIAlignRotated-15", [_X, _R, _B], _attributes(2, 2, -1)),
    Refusal("c3-scale", "ROIAlignRotated-15", [_X, _R, _B], _attributes(2, 2, spatial_scale=0)),
    Refusal("c4-batch-index", "ROIAlignRotated-15", [_X, "f32[1,5]", "i64{2}"], _attributes(2, 2)),
    Refusal("ir301-float-indices", "ROIAlignRotated-15", [_X, _R, "f32[5]"], _attributes(2, 2)),
]

_rng = np.random.default_rng(0)
_REGIONS = np.concatenate(
    [_rng.random((20, 2)) * 22 - 3, _rng.random((20, 2)) * 15, _rng.random((20, 1)) * 7 - 3.5], 1
).astype(np.float32)

CASES = [
    Case(
        f"{'clockwise' if clockwise else 'counter'}-{samples}-{np.dtype(index).name}",
        "ROIAlignRotated-15",
        [random(2, 3, 8, 9), _REGIONS, random(20, dtype=index) % 2],
        _attributes(3, 4, samples, spatial_scale=0.5, clockwise_mode=clockwise),
    )
    for clockwise in (False, True)
    for samples in (0, 1, 3)
    for index in (np.int32, np.int64)
]
