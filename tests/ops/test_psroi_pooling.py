"""PSROIPooling-1."""

from typing import Any

import numpy as np

from kit import *


def _average(outputs: int, size: int, scale: float = 1.0) -> dict[str, Any]:
    return {"output_dim": outputs, "group_size": size, "spatial_scale": scale, "mode": "average", "spatial_bins_x": 1, "spatial_bins_y": 1}  # fmt: skip


def _bilinear(outputs: int, size: int, across: int, down: int) -> dict[str, Any]:
    bins = {"spatial_bins_x": across, "spatial_bins_y": down}
    return {"output_dim": outputs, "group_size": size, "spatial_scale": 1.0, "mode": "bilinear"} | bins


def _rois(*rows: list[float]) -> np.ndarray:
    return np.array(rows, np.float32)


_DATA = arange(2, 4, 4, 5, start=1)
_WHOLE = np.array([[[[4, 26], [54, 76]]]], np.float32)

VALUES = [
    Values("average", "PSROIPooling-1", [_DATA, _rois([0, 0, 0, 3, 3])], _WHOLE, _average(1, 2)),
    Values("average-outside", "PSROIPooling-1", [_DATA, _rois([0, -1, -1, 9, 9])], np.array([[[[10.5, 32.5], [0, 0]]]], np.float32), _average(1, 2)),
    Values("average-nan", "PSROIPooling-1", [_DATA, _rois([0, 0, np.nan, 3, 3])], 0 * _WHOLE, _average(1, 2)),
    Values("average-rounds", "PSROIPooling-1", [_DATA, _rois([0, 0.5, 1.5, 2.5, 3.4])], np.array([[[[12.5, 33.5], [57.5, 78.5]]]], np.float32), _average(1, 2)),
    # OpenVINO's reference tests
    Values(
        "reference", "PSROIPooling-1", [np.cumsum(np.full(6400, np.float32(0.1)), dtype=np.float32).reshape(2, 8, 20, 20), _rois([0, 1, 2, 4, 6], [1, 0, 3, 10, 4], [0, 10, 7, 11, 13])],
        np.array([
            [6.2499962, 46.44986, 90.249184, 130.44876, 166.25095, 206.45341, 250.25606, 290.45853],
            [326.36069, 366.86316, 408.36572, 448.86816, 486.37045, 526.86841, 568.35828, 608.84839],
            [18.100033, 58.199684, 104.09898, 144.1996, 178.10167, 218.20412, 264.1069, 304.20935],
        ], np.float32).reshape(3, 2, 2, 2),
        _average(2, 2), 1e-5,
    ),
    # OpenVINO: a malformed region is a tenth of a pixel
    Values("average-malformed", "PSROIPooling-1", [arange(1, 1, 9, 9), _rois([0, 5, 5, 2, 2])], np.array([[[[50]]]], np.float32), _average(1, 1)),
    Values("bilinear-middle", "PSROIPooling-1", [arange(1, 1, 3, 3), _rois([0, 0, 0, 1, 1])], np.array([[[[4]]]], np.float32), _bilinear(1, 1, 1, 1)),
    Values("bilinear-no-columns", "PSROIPooling-1", [np.ones((1, 1, 3, 0), np.float32), _rois([0, 0, 0, 1, 1])], np.zeros((1, 1, 1, 1), np.float32), _bilinear(1, 1, 1, 1)),
    Values("bilinear-corners", "PSROIPooling-1", [arange(1, 1, 3, 3), _rois([0, 0, 0, 1, 1])], np.array([[[[0, 2], [6, 8]]]], np.float32), _bilinear(1, 2, 1, 1)),
    # the left half of channel 0 (at 0.25) and the right half of channel 1 (at 0.75)
    Values("bilinear-bins", "PSROIPooling-1", [arange(1, 2, 1, 5), _rois([0, 0, 0, 1, 1])], np.array([[[[4.5]]]], np.float32), _bilinear(1, 1, 2, 1)),
    # OpenVINO: a batch index of -1 ends the list
    Values("end-of-list", "PSROIPooling-1", [_DATA, _rois([0, 0, 0, 3, 3], [-1, 0, 0, 3, 3], [0, 0, 0, 3, 3])], np.concatenate([_WHOLE, 0 * _WHOLE, 0 * _WHOLE]), _average(1, 2)),
    Values("f16", "PSROIPooling-1", [_DATA.astype(np.float16), _rois([0, 0, 0, 3, 3]).astype(np.float16)], _WHOLE.astype(np.float16), _average(1, 2)),
    Values("no-rois", "PSROIPooling-1", [_DATA, np.ones((0, 5), np.float32)], np.ones((0, 1, 2, 2), np.float32), _average(1, 2)),
]  # fmt: skip

SHAPES = [
    Shapes("spec", "PSROIPooling-1", ["f32[1,3240,38,38]", "f32[100,5]"], "f32[100,360,6,6]", _bilinear(360, 6, 3, 3)),
    Shapes("average", "PSROIPooling-1", ["f32[1,98,38,38]", "f32[100,5]"], "f32[100,2,7,7]", _average(2, 7)),
    Shapes("dynamic", "PSROIPooling-1", ["f16[?,?,?,?]", "f16[?,?]"], "f16[?,2,7,7]", _average(2, 7)),
    Shapes("unknown-ranks", "PSROIPooling-1", ["f32[...]", "f32[...]"], "f32[?,2,7,7]", _average(2, 7)),
]

REFUSALS = [
    Refusal("c1-data", "PSROIPooling-1", ["f32[1,4,4]", "f32[1,5]"], _average(1, 2)),
    Refusal("c1-rois", "PSROIPooling-1", ["f32[1,4,4,4]", "f32[5]"], _average(1, 2)),
    Refusal("c1-columns", "PSROIPooling-1", ["f32[1,4,4,4]", "f32[1,4]"], _average(1, 2)),
    Refusal("c2-outputs", "PSROIPooling-1", ["f32[1,4,4,4]", "f32[1,5]"], _average(0, 2)),
    Refusal("c2-size", "PSROIPooling-1", ["f32[1,4,4,4]", "f32[1,5]"], _average(1, 0)),
    Refusal("c2-bins", "PSROIPooling-1", ["f32[1,4,4,4]", "f32[1,5]"], _bilinear(1, 1, 0, 1)),
    Refusal("c3-scale", "PSROIPooling-1", ["f32[1,4,4,4]", "f32[1,5]"], _average(1, 2, -1)),
    Refusal("c4-batch-index", "PSROIPooling-1", ["f32[1,4,4,4]", "f32[1,5]{1,0,0,3,3}"], _average(1, 2)),
    Refusal("c5-average", "PSROIPooling-1", ["f32[1,5,4,4]", "f32[1,5]"], _average(1, 2)),
    Refusal("c5-bilinear", "PSROIPooling-1", ["f32[1,5,4,4]", "f32[1,5]"], _bilinear(1, 2, 2, 2)),
    Refusal("ir301-integers", "PSROIPooling-1", ["i32[1,4,4,4]", "i32[1,5]"], _average(1, 2)),
]


def _regions(height: float, width: float, around: float = 0.3) -> np.ndarray:
    """Regions of all kinds, some malformed or, by ``around``, partly outside."""
    rng = np.random.default_rng(0)
    corners = rng.random((20, 4)) * (1 + 2 * around) - around
    return np.concatenate([rng.integers(0, 2, (20, 1)), corners * [width, height, width, height]], 1).astype(np.float32)


CASES = [
    Case(
        f"average-{size}-{scale}",
        "PSROIPooling-1",
        [random(2, 36, 8, 9), _regions(8 / scale, 9 / scale)],
        _average(36 // size**2, size, scale),
    )
    for size in (1, 2, 3, 6)
    for scale in (1.0, 0.25)
] + [
    Case(
        f"bilinear-{size}-{around}",
        "PSROIPooling-1",
        [random(2, 36, 8, 9), _regions(1, 1, around)],
        _bilinear(6, size, 3, 2),
    )
    for size in (1, 2, 5)
    for around in (0, 0.3)
]
