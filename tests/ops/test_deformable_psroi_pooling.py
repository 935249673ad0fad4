"""DeformablePSROIPooling-1."""

from typing import Any

import numpy as np

from kit import *


def _attributes(outputs: int, size: int, across: int = 1, down: int = 1, **given: Any) -> dict[str, Any]:
    bins = {"spatial_bins_x": across, "spatial_bins_y": down, "trans_std": 1.0, "part_size": 1}
    plain = {"output_dim": outputs, "group_size": size, "spatial_scale": 1.0, "mode": "bilinear_deformable"}
    return plain | bins | given


def _rois(*rows: list[float]) -> np.ndarray:
    return np.array(rows, np.float32)


def _one(value: float) -> np.ndarray:
    return np.full((1, 1, 1, 1), value, np.float32)


def _move(x: float, y: float) -> np.ndarray:
    return np.array([x, y], np.float32).reshape(1, 2, 1, 1)


_DATA = arange(1, 1, 5, 5)
_MIDDLE = _rois([0, 2, 2, 2, 2])  # one pixel, whose corner is at (1.5, 1.5): between 6, 7, 11, 12

VALUES = [
    Values("corner", "DeformablePSROIPooling-1", [_DATA, _MIDDLE], _one(9), _attributes(1, 1)),
    Values("sub-bins", "DeformablePSROIPooling-1", [_DATA, _MIDDLE], _one(10.5), _attributes(1, 1, 2, 2)),
    Values("own-channels", "DeformablePSROIPooling-1", [arange(1, 4, 1, 1), _rois([0, 0, 0, 0, 0])], arange(1, 1, 2, 2), _attributes(1, 2)),
    Values("x-before-y", "DeformablePSROIPooling-1", [_DATA, _MIDDLE, _move(1, 2)], _one(20), _attributes(1, 1)),
    Values("trans-std", "DeformablePSROIPooling-1", [_DATA, _MIDDLE, _move(1, 2)], _one(14.5), _attributes(1, 1, trans_std=0.5)),
    Values("no-rows", "DeformablePSROIPooling-1", [np.ones((1, 1, 0, 5), np.float32), _MIDDLE], _one(0), _attributes(1, 1)),
    Values("no-columns", "DeformablePSROIPooling-1", [np.ones((1, 1, 5, 0), np.float32), _MIDDLE], _one(0), _attributes(1, 1)),
    # OpenVINO's reference tests
    *(
        Values(f"reference-{move}", "DeformablePSROIPooling-1", [arange(1, 8, 3, 3), _rois([0, 1, 1, 2, 2]), np.full((1, 2, 2, 2), move, np.float32)], f32(expected).reshape(1, 2, 2, 2), _attributes(2, 2, part_size=2))
        for move, expected in ((0, [2, 12, 23, 33, 38, 48, 59, 69]), (0.1, [2.8, 12.8, 23.8, 33.8, 38.8, 48.8, 59.8, 69.8]), (0.5, [6, 15.5, 25.5, 35, 42, 51.5, 61.5, 71]))
    ),
    Values(
        "reference-partly-outside", "DeformablePSROIPooling-1", [arange(1, 16, 2, 2), _rois([0, 10, 10, 20, 20], [0, 100, 100, 200, 200])],
        f32([[16 * n + bin for n in range(4) for bin in (0.375, 4.71875, 9.0625, 13.40625)], [0] * 16]).reshape(2, 4, 2, 2),
        _attributes(4, 2, spatial_scale=0.0625),
    ),
    # OpenVINO: a malformed region is a tenth of a pixel wide
    Values("malformed", "DeformablePSROIPooling-1", [_DATA, _rois([0, 2, 2, 0, 0]), _move(10, 0)], _one(10), _attributes(1, 1)),
    Values("outside", "DeformablePSROIPooling-1", [_DATA, _rois([0, 9, 9, 9, 9])], _one(0), _attributes(1, 1)),
    Values("half-outside", "DeformablePSROIPooling-1", [_DATA, _rois([0, 0, 2, 0, 2]), _move(-0.5, 0)], _one(7.5), _attributes(1, 1, 2, 1)),
    # OpenVINO: a batch index of -1 ends the list
    Values("end-of-list", "DeformablePSROIPooling-1", [_DATA, _rois([-1, 2, 2, 2, 2], [0, 2, 2, 2, 2])], np.zeros((2, 1, 1, 1), np.float32), _attributes(1, 1)),
    Values("f16", "DeformablePSROIPooling-1", [_DATA.astype(np.float16), _MIDDLE.astype(np.float16)], _one(9).astype(np.float16), _attributes(1, 1)),
    Values("no-rois", "DeformablePSROIPooling-1", [_DATA, np.ones((0, 5), np.float32)], np.ones((0, 1, 1, 1), np.float32), _attributes(1, 1)),
]  # fmt: skip

SHAPES = [
    Shapes("spec-1", "DeformablePSROIPooling-1", ["f32[1,7938,63,38]", "f32[300,5]"], "f32[300,882,3,3]", _attributes(882, 3, 4, 4, part_size=3)),
    Shapes("spec-2", "DeformablePSROIPooling-1", ["f32[1,392,38,63]", "f32[300,5]", "f32[300,2,7,7]"], "f32[300,8,7,7]", _attributes(8, 7, 4, 4, part_size=7)),
    Shapes("dynamic", "DeformablePSROIPooling-1", ["f32[?,?,?,?]", "f32[?,?]", "f32[9,?,?,?]"], "f32[9,8,7,7]", _attributes(8, 7)),
    Shapes("unknown-ranks", "DeformablePSROIPooling-1", ["f32[...]", "f32[...]", "f32[...]"], "f32[?,8,7,7]", _attributes(8, 7)),
]  # fmt: skip

_X, _R = "f32[1,8,9,9]", "f32[3,5]"
REFUSALS = [
    Refusal("c1-data", "DeformablePSROIPooling-1", ["f32[1,8,9]", _R], _attributes(2, 2)),
    Refusal("c1-rois", "DeformablePSROIPooling-1", [_X, "f32[3,4]"], _attributes(2, 2)),
    Refusal("c1-offsets", "DeformablePSROIPooling-1", [_X, _R, "f32[3,2,1]"], _attributes(2, 2)),
    Refusal("c2-outputs", "DeformablePSROIPooling-1", [_X, _R], _attributes(0, 2)),
    Refusal("c2-bins", "DeformablePSROIPooling-1", [_X, _R], _attributes(2, 2, 0)),
    Refusal("c3-scale", "DeformablePSROIPooling-1", [_X, _R], _attributes(2, 2, spatial_scale=0)),
    Refusal("c4-batch-index", "DeformablePSROIPooling-1", [_X, "f32[1,5]{1,0,0,3,3}"], _attributes(2, 2)),
    Refusal("c5-channels", "DeformablePSROIPooling-1", [_X, _R], _attributes(3, 2)),
    Refusal("c6-rois", "DeformablePSROIPooling-1", [_X, _R, "f32[4,2,1,1]"], _attributes(2, 2)),
    Refusal("c6-parts", "DeformablePSROIPooling-1", [_X, _R, "f32[3,2,3,3]"], _attributes(2, 2)),
    Refusal("c6-odd", "DeformablePSROIPooling-1", [_X, _R, "f32[3,3,1,1]"], _attributes(2, 2)),
    Refusal("c6-classes", "DeformablePSROIPooling-1", [_X, _R, "f32[3,6,1,1]"], _attributes(2, 2)),
    Refusal("ir301-integers", "DeformablePSROIPooling-1", ["i32[1,8,9,9]", "i32[3,5]"], _attributes(2, 2)),
    Refusal("ir302-types", "DeformablePSROIPooling-1", [_X, "f16[3,5]"], _attributes(2, 2)),
]


def _regions(scale: float) -> np.ndarray:
    """Regions of all kinds, some malformed or partly outside."""
    rng = np.random.default_rng(0)
    corners = rng.random((20, 4)) * 1.6 - 0.3
    return np.concatenate([rng.integers(0, 2, (20, 1)), corners * ([9 / scale, 8 / scale] * 2)], 1).astype(np.float32)


CASES = [
    Case(
        f"{size}-{classes}-{scale}",
        "DeformablePSROIPooling-1",
        [random(2, 36, 8, 9), _regions(scale), *([random(20, 2 * classes, 3, 3, seed=1)] if classes else [])],
        _attributes(36 // size**2, size, 3, 2, part_size=3, trans_std=0.3, spatial_scale=scale),
    )
    for size, all_classes in ((1, (0, 1, 12)), (2, (0, 1, 3)), (3, (0, 4)), (6, (1,)))
    for classes in all_classes
    for scale in (1.0, 0.25)
] + [
    Case("f64", "DeformablePSROIPooling-1", [random(2, 9, 8, 9, dtype=np.float64), _regions(1).astype(np.float64)], _attributes(1, 3, 3, 2)),
]  # fmt: skip
