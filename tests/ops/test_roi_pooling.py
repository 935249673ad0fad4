"""ROIPooling-2."""

from typing import Any

import numpy as np

from kit import *


def _attributes(height: int, width: int, method: str = "max", scale: float = 1.0) -> dict[str, Any]:
    return {"pooled_h": height, "pooled_w": width, "spatial_scale": scale, "method": method}


def _rois(*rows: list[float]) -> np.ndarray:
    return np.array(rows, np.float32)


_DATA = arange(2, 1, 4, 5, start=1)
_NOTHING = [[[0, 0], [0, 0]]]


def _expected(*rois: Any) -> np.ndarray:
    return np.array(rois, np.float32)


VALUES = [
    Values("max", "ROIPooling-2", [_DATA, _rois([0, 0, 0, 3, 3], [1, 1, 1, 2, 2])], _expected([[[7, 9], [17, 19]]], [[[27, 28], [32, 33]]]), _attributes(2, 2)),
    Values("no-rows", "ROIPooling-2", [np.ones((1, 1, 0, 5), np.float32), _rois([0, 0, 0, 3, 3])], _expected([[[0, 0], [0, 0]]]), _attributes(2, 2)),
    Values("bilinear-no-rows", "ROIPooling-2", [np.ones((1, 1, 0, 5), np.float32), _rois([0, 0, 0, 1, 1])], _expected([[[0, 0], [0, 0]]]), _attributes(2, 2, method="bilinear")),
    Values("max-malformed", "ROIPooling-2", [_DATA, _rois([0, 2, 2, 1, 1])], _expected([[[13, 13], [13, 13]]]), _attributes(2, 2)),
    Values("max-outside", "ROIPooling-2", [_DATA, _rois([0, -1, -1, 9, 9])], _expected([[[20, 20], [0, 0]]]), _attributes(2, 2)),
    Values("max-nan", "ROIPooling-2", [_DATA, _rois([0, 0, np.nan, 3, 3])], _expected(_NOTHING), _attributes(2, 2)),
    Values("max-of-negatives", "ROIPooling-2", [-_DATA, _rois([0, 0, 0, 3, 3])], _expected([[[-1, -3], [-11, -13]]]), _attributes(2, 2)),
    # halves are rounded away from zero: 1, 2, 3, 3
    Values("max-scale", "ROIPooling-2", [_DATA, _rois([0, 1, 3, 5, 5])], _expected([[[13, 14], [18, 19]]]), _attributes(2, 2, scale=0.5)),
    Values("bilinear", "ROIPooling-2", [_DATA, _rois([0, 0, 0, 1, 1], [0, 0.5, 0.5, 1, 0.5])], _expected([[[1, 5], [16, 20]]], [[[10.5, 12.5], [10.5, 12.5]]]), _attributes(2, 2, "bilinear")),
    Values("bilinear-middle", "ROIPooling-2", [_DATA, _rois([0, 0, 0, 1, 1])], _expected([[[10.5]]]), _attributes(1, 1, "bilinear")),
    Values("bilinear-outside", "ROIPooling-2", [_DATA, _rois([0, 0, -1, 2, 1])], _expected([[[0, 0], [16, 0]]]), _attributes(2, 2, "bilinear")),
    # OpenVINO: a batch index of -1 ends the list
    Values("end-of-list", "ROIPooling-2", [_DATA, _rois([0, 0, 0, 3, 3], [-1, 0, 0, 3, 3], [0, 0, 0, 3, 3])], _expected([[[7, 9], [17, 19]]], _NOTHING, _NOTHING), _attributes(2, 2)),
    Values("f64", "ROIPooling-2", [_DATA.astype(np.float64), _rois([0, 0, 0, 3, 3]).astype(np.float64)], [[[[7, 9], [17, 19]]]], _attributes(2, 2)),
    *(Values(f"no-bins-{method}", "ROIPooling-2", [_DATA, _rois([0, 0, 0, 3, 3])], np.zeros((1, 1, 2, 0), np.float32), _attributes(2, 0, method)) for method in ("max", "bilinear")),
    Values("no-rois", "ROIPooling-2", [_DATA, np.ones((0, 5), np.float32)], np.ones((0, 1, 2, 2), np.float32), _attributes(2, 2)),
]  # fmt: skip

SHAPES = [
    Shapes("static", "ROIPooling-2", ["f32[1,256,14,14]", "f32[300,5]"], "f32[300,256,6,7]", _attributes(6, 7)),
    Shapes("dynamic", "ROIPooling-2", ["f16[?,256,?,?]", "f16[?,?]"], "f16[?,256,6,6]", _attributes(6, 6)),
    Shapes("unknown-ranks", "ROIPooling-2", ["f32[...]", "f32[...]"], "f32[?,?,6,6]", _attributes(6, 6)),
]

REFUSALS = [
    Refusal("c1-data", "ROIPooling-2", ["f32[1,3,4]", "f32[1,5]"], _attributes(2, 2)),
    Refusal("c1-rois", "ROIPooling-2", ["f32[1,3,4,4]", "f32[5]"], _attributes(2, 2)),
    Refusal("c1-columns", "ROIPooling-2", ["f32[1,3,4,4]", "f32[1,4]"], _attributes(2, 2)),
    Refusal("c2-no-rows", "ROIPooling-2", ["f32[1,3,4,4]", "f32[1,5]"], _attributes(-1, 2)),
    Refusal("c3-scale", "ROIPooling-2", ["f32[1,3,4,4]", "f32[1,5]"], _attributes(2, 2, scale=0)),
    Refusal("c4-batch-index", "ROIPooling-2", ["f32[1,3,4,4]", "f32[1,5]{1,0,0,3,3}"], _attributes(2, 2)),
    Refusal("c5-one-size", "ROIPooling-2", ["f32[1,3,4,4]", "f32[1,5]"], _attributes(2, 2) | {"output_size": [2]}),
    Refusal("c5-other-bins", "ROIPooling-2", ["f32[1,3,4,4]", "f32[1,5]"], _attributes(2, 2) | {"output_roi": [2, 3]}),
    Refusal("ir301-integers", "ROIPooling-2", ["i32[1,3,4,4]", "i32[1,5]"], _attributes(2, 2)),
]


def _regions(method: str, scale: float) -> np.ndarray:
    """Regions of all kinds, some malformed or partly outside."""
    rng = np.random.default_rng(0)
    corners = rng.random((20, 4)) * 1.6 - 0.3
    sizes = [1, 1, 1, 1] if method == "bilinear" else [9 / scale, 8 / scale] * 2
    return np.concatenate([rng.integers(0, 2, (20, 1)), corners * sizes], 1).astype(np.float32)


CASES = [
    Case(
        f"{method}-{height}x{width}-{scale}",
        "ROIPooling-2",
        [random(2, 3, 8, 9), _regions(method, scale)],
        _attributes(height, width, method, scale),
    )
    for method in ("max", "bilinear")
    for height, width in ((1, 1), (3, 2), (7, 7), (1, 4))
    for scale in (1.0, 0.25)
] + [
    Case("f64", "ROIPooling-2", [_DATA.astype(np.float64), _rois([0, 0, 0, 3, 3]).astype(np.float64)], _attributes(2, 2)),
    Case("f16", "ROIPooling-2", [_DATA.astype(np.float16), _rois([0, 0, 0, 3, 3]).astype(np.float16)], _attributes(2, 2)),
    Case("end-of-list", "ROIPooling-2", [_DATA, _rois([0, 0, 0, 3, 3], [-1, 0, 0, 3, 3], [0, 0, 0, 3, 3])], _attributes(2, 2)),
]  # fmt: skip
