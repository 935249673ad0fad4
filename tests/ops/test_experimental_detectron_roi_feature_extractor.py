"""ExperimentalDetectronROIFeatureExtractor-6."""

from typing import Any

import ml_dtypes
import numpy as np

from kit import *

OP = "ExperimentalDetectronROIFeatureExtractor-6"
SOME = {"output_size": 2, "sampling_ratio": 1, "pyramid_scales": "1,2"}


def level(value, size=8):
    return np.full((1, 1, size, size), value, np.float32)


def regions_of(*of_regions):
    return f32([np.full((1, 2, 2), value) for value in of_regions])


SIDES = f32([[0, 0, side, side] for side in (50, 111, 113, 900)])
ELSEWHERE = f32([[300, 20, 300 + side, 20 + side] for side in (50, 111, 113, 600)])

VALUES = [
    # the middles of four bins of 2 x 2 pixels
    Values("middles", OP, [f32([[0, 0, 4, 4]]), arange(1, 1, 6, 6)], (f32([[[[7, 9], [19, 21]]]]), f32([[0, 0, 4, 4]])), SOME),
    Values("aligned", OP, [f32([[0, 0, 4, 4]]), arange(1, 1, 6, 6)], (f32([[[[3.5, 5.5], [15.5, 17.5]]]]), f32([[0, 0, 4, 4]])), {**SOME, "aligned": True}),
    Values("scale", OP, [f32([[0, 0, 8, 8]]), arange(1, 1, 6, 6)], (f32([[[[7, 9], [19, 21]]]]), f32([[0, 0, 8, 8]])), {**SOME, "pyramid_scales": 2}),
    Values("adaptive", OP, [f32([[0, 0, 8, 4]]), arange(1, 1, 9, 9)], (f32([[[[11, 15], [29, 33]]]]), f32([[0, 0, 8, 4]])), {**SOME, "sampling_ratio": 0}),
    # OpenVINO's reference tests
    Values(
        "reference", OP, [f32([[0, 1, 2, 3], [4, 5, 6, 7]]), arange(1, 2, 2, 3)],
        (
            f32([
                [[[17, 21, 25], [29, 33, 37], [38, 42, 46]], [[89, 93, 97], [101, 105, 109], [110, 114, 118]]],
                [[[50, 54, 58], [50, 54, 58], [25, 27, 29]], [[122, 126, 130], [122, 126, 130], [61, 63, 65]]],
            ]) / 12,
            f32([[0, 1, 2, 3], [4, 5, 6, 7]]),
        ),
        {"output_size": 3, "sampling_ratio": 2, "pyramid_scales": "4"},
    ),
    # the side of the first level is below 112, that of the next below 224
    Values("levels", OP, [SIDES, *(level(value, 1000) for value in (1, 2, 3))], (regions_of(1, 1, 2, 3), SIDES), {**SOME, "pyramid_scales": "1,1,1,1"}),
    Values("levels-elsewhere", OP, [ELSEWHERE, *(level(value, 1000) for value in (1, 2, 3))], (regions_of(1, 1, 2, 3), ELSEWHERE), {**SOME, "pyramid_scales": "1,1,1,1"}),
    Values("empty-region", OP, [f32([[3, 3, 3, 5], [3, 3, 1, 1]]), level(7)], (regions_of(0, 7), f32([[3, 3, 3, 5], [3, 3, 1, 1]])), {**SOME, "pyramid_scales": 1}),
    Values("no-region", OP, [np.zeros((0, 4), np.float32), level(7)], (np.zeros((0, 1, 2, 2), np.float32), np.zeros((0, 4), np.float32)), SOME),
]  # fmt: skip

SHAPES = [
    Shapes("spec", OP, ["f32[1000,4]", "f32[1,256,200,336]", "f32[1,256,100,168]", "f32[1,256,50,84]", "f32[1,256,25,42]"], ["f32[1000,256,7,7]", "f32[1000,4]"], {"output_size": 7, "sampling_ratio": 2, "pyramid_scales": "4,8,16,32,64"}),
    Shapes("unknown", OP, ["f32[?,?]", "f32[?,?,?,?]", "f32[?,3,?,?]"], ["f32[?,3,2,2]", "f32[?,4]"], SOME),
    Shapes("unknown-ranks", OP, ["f32[...]", "f32[...]"], ["f32[?,?,2,2]", "f32[?,4]"], SOME),
]  # fmt: skip

REFUSALS = [
    Refusal(id, OP, inputs, {**SOME, **attributes})
    for id, inputs, attributes in [
        ("c1-rois-rank", ["f32[4]", "f32[1,3,5,6]"], {}),
        ("c1-rois", ["f32[1,5]", "f32[1,3,5,6]"], {}),
        ("c1-level-rank", ["f32[1,4]", "f32[3,5,6]"], {}),
        ("c1-batch", ["f32[1,4]", "f32[1,3,5,6]", "f32[2,3,5,6]"], {}),
        ("c2-channels", ["f32[1,4]", "f32[1,3,5,6]", "f32[1,4,5,6]"], {}),
        ("c3-few", ["f32[1,4]", "f32[1,3,5,6]", "f32[1,3,5,6]"], {"pyramid_scales": 1}),
        ("c3-zero", ["f32[1,4]", "f32[1,3,5,6]", "f32[1,3,5,6]"], {"pyramid_scales": "1,0"}),
        ("c4-size", ["f32[1,4]", "f32[1,3,5,6]"], {"output_size": 0}),
        ("c4-ratio", ["f32[1,4]", "f32[1,3,5,6]"], {"sampling_ratio": -1}),
        ("ir205-no-level", ["f32[1,4]"], {}),
        ("ir301-int", ["i32[1,4]", "i32[1,3,5,6]"], {}),
        ("ir302-types", ["f32[1,4]", "f16[1,3,5,6]"], {}),
    ]
]


def case(id, levels=3, dtype: Any = np.float32, **attributes):
    rng = np.random.default_rng(4)
    corners = rng.uniform(-20, 300, (12, 2))
    regions = np.concatenate([corners, corners + rng.uniform(-3, 1, (12, 1)) + 2.0 ** rng.uniform(2, 9, (12, 2))], -1)
    pyramid = [random(1, 2, 40 >> n, 48 >> n, dtype=dtype) for n in range(levels)]
    attributes = {"output_size": 3, "sampling_ratio": 2, "pyramid_scales": [8, 16, 32], **attributes}
    return Case(f"{id}-{np.dtype(dtype).name}", OP, [regions.astype(dtype), *pyramid], attributes)


CASES = [
    *(case("some", dtype=t) for t in (np.float32, np.float16, np.float64, ml_dtypes.bfloat16)),
    case("aligned", aligned=True),
    case("adaptive", sampling_ratio=0),
    case("adaptive-aligned", sampling_ratio=0, aligned=True, output_size=7),
    case("one-level", levels=1),
    case("two-levels", levels=2, output_size=1, sampling_ratio=3),
]
