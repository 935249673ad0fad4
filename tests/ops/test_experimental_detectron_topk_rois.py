"""ExperimentalDetectronTopKROIs-6."""

import ml_dtypes
import numpy as np

from kit import *

OP = "ExperimentalDetectronTopKROIs-6"

VALUES = [
    Values("some", OP, [arange(3, 4), f32([0.1, 0.3, 0.2])], arange(3, 4)[[1, 2]], {"max_rois": 2}),
    Values("too-few", OP, [arange(1, 4, start=1), f32([0.1])], f32([[1, 2, 3, 4], [0, 0, 0, 0]]), {"max_rois": 2}),
    Values("equal", OP, [arange(3, 4), f32([0.1, 0.3, 0.3])], arange(3, 4)[[1, 2, 0]], {"max_rois": 3}),
    Values("none", OP, [arange(3, 4), f32([0.1, 0.3, 0.2])], np.zeros((0, 4), np.float32)),
]

SHAPES = [
    Shapes("spec", OP, ["f32[5000,4]", "f32[5000]"], "f32[1000,4]", {"max_rois": 1000}),
    Shapes("unknown", OP, ["f16[?,?]", "f16[5]"], "f16[3,4]", {"max_rois": 3}),
    Shapes("unknown-ranks", OP, ["f64[...]", "f64[...]"], "f64[3,4]", {"max_rois": 3}),
]

REFUSALS = [
    Refusal("c1-rois-rank", OP, ["f32[12]", "f32[3]"]),
    Refusal("c1-rois", OP, ["f32[3,5]", "f32[3]"]),
    Refusal("c1-probs-rank", OP, ["f32[3,4]", "f32[3,1]"]),
    Refusal("c2-count", OP, ["f32[3,4]", "f32[4]"]),
    Refusal("c3-negative", OP, ["f32[3,4]", "f32[3]"], {"max_rois": -1}),
    Refusal("ir301-int", OP, ["i32[3,4]", "i32[3]"]),
    Refusal("ir302-types", OP, ["f32[3,4]", "f16[3]"]),
]

CASES = [
    Case(f"{count}-{most}-{t.__name__}", OP, [random(count, 4, dtype=t), np.random.default_rng(1).permutation(count).astype(t)], {"max_rois": most})
    for count, most in [(5, 3), (20, 20), (7, 0), (1, 1)]
    for t in (np.float32, np.float16, np.float64, ml_dtypes.bfloat16)
]  # fmt: skip
