"""Proposal-1 and Proposal-4."""

import ml_dtypes
import numpy as np

from kit import Case, Refusal, Shapes, Values, against_openvino, f32, random, refusals, shapes, values

SQUARE = {"base_size": 16, "feat_stride": 8, "ratio": 1, "scale": 1, "min_size": 1, "nms_thresh": 0.7, "pre_nms_topn": 9}
INFO = f32([40, 60, 1])


def scores(*of_places):
    """The scores of places side by side: of the background, then of a box."""
    return f32([[np.zeros((1, len(of_places))), [of_places]]]).reshape(1, 2, 1, -1)


def deltas(*of_places):
    return f32(of_places).T.reshape(1, 4, 1, -1)


ZERO = [0, 0, 0, 0]

VALUES = [
    Values("one-box", "Proposal-4", [scores(0.5), deltas(ZERO), INFO], (f32([[0, 0, 0, 16, 16]]), f32([0.5])), {**SQUARE, "post_nms_topn": 1}),
    Values("an-end", "Proposal-4", [scores(0.5), deltas(ZERO), INFO], (f32([[0, 0, 0, 16, 16], [-1, 0, 0, 0, 0], [0] * 5]), f32([0.5, 0, 0])), {**SQUARE, "post_nms_topn": 3}),
    Values("version-1", "Proposal-1", [scores(0.5), deltas(ZERO), INFO], (f32([[0, 0, 0, 16, 16], [-1, 0, 0, 0, 0]]),), {**SQUARE, "post_nms_topn": 2}),
    # 32 x 32 moved by 8 pixels to the right, and the image ends at 59 and 39
    Values("moved-and-clipped", "Proposal-4", [scores(0.5), deltas([0.5, 0, np.log(2), np.log(3)]), INFO], (f32([[0, 0, 0, 32, 32]]), f32([0.5])), {**SQUARE, "post_nms_topn": 1}),
    Values("clipped-after", "Proposal-1", [scores(0.5), deltas([0, 0, np.log(8), np.log(8)]), INFO], (f32([[0, 0, 0, 60, 40]]),), {**SQUARE, "post_nms_topn": 1, "clip_before_nms": False, "clip_after_nms": True}),
    Values("normalized", "Proposal-1", [scores(0.5), deltas(ZERO), f32([32, 64, 1])], (f32([[0, 0, 0, 0.25, 0.5]]),), {**SQUARE, "post_nms_topn": 1, "normalize": True}),
    Values("the-best-first", "Proposal-4", [scores(0.1, 0.3, 0.2), deltas(ZERO, ZERO, ZERO), INFO], (f32([[0, 8, 0, 24, 16], [0, 16, 0, 32, 16]]), f32([0.3, 0.2])), {**SQUARE, "post_nms_topn": 2}),
    # boxes 8 pixels apart share 9 * 17 of 17 * 25 pixels
    Values("overlapping", "Proposal-4", [scores(0.1, 0.3, 0.2), deltas(ZERO, ZERO, ZERO), INFO], (f32([[0, 8, 0, 24, 16], [-1, 0, 0, 0, 0]]), f32([0.3, 0])), {**SQUARE, "post_nms_topn": 2, "nms_thresh": 0.3}),
    Values("pre-nms", "Proposal-4", [scores(0.1, 0.3, 0.2), deltas(ZERO, ZERO, ZERO), INFO], (f32([[0, 8, 0, 24, 16], [-1, 0, 0, 0, 0]]), f32([0.3, 0])), {**SQUARE, "post_nms_topn": 2, "pre_nms_topn": 1}),
    Values("small-last", "Proposal-4", [scores(0.1, 0.3), deltas(ZERO, [0, 0, -2, -2]), INFO], (f32([[0, 0, 0, 16, 16]]), f32([0.1])), {**SQUARE, "post_nms_topn": 1, "min_size": 8}),
    Values("scaled-deltas", "Proposal-1", [scores(0.5), deltas([1, 2, np.log(4), 0]), INFO], (f32([[0, 0, 8, 28, 24]]),), {**SQUARE, "post_nms_topn": 1, "box_coordinate_scale": 4, "box_size_scale": 2}),
]  # fmt: skip

SHAPES = [
    Shapes("spec", "Proposal-4", ["f32[7,4,28,28]", "f32[7,8,28,28]", "f32[3]"], ["f32[7000,5]", "f32[7000]"], {"base_size": 16, "feat_stride": 8, "min_size": 16, "nms_thresh": 1.0, "normalize": 0, "post_nms_topn": 1000, "pre_nms_topn": 1000, "ratio": 1, "scale": "1,2"}),
    Shapes("version-1", "Proposal-1", ["f16[2,2,28,?]", "f16[2,4,28,28]", "f16[4]"], ["f16[20,5]"], {**SQUARE, "post_nms_topn": 10}),
    Shapes("batch-from-deltas", "Proposal-4", ["f16[?,2,28,?]", "f16[2,4,28,28]", "f16[?]"], ["f16[20,5]", "f16[20]"], {**SQUARE, "post_nms_topn": 10}),
    Shapes("unknown-rank", "Proposal-4", ["f32[...]", "f32[...]", "f32[...]"], ["f32[?,5]", "f32[?]"], {**SQUARE, "post_nms_topn": 10}),
    Shapes("batch-within-bounds", "Proposal-4", ["f32[1..3,2,4,4]", "f32[...]", "f32[...]"], ["f32[10..30,5]", "f32[10..30]"], {**SQUARE, "post_nms_topn": 10}),
    Shapes("types-differ", "Proposal-4", ["f32[1,2,4,4]", "f16[1,4,4,4]", "f64[3]"], ["f32[10,5]", "f32[10]"], {**SQUARE, "post_nms_topn": 10}),
]  # fmt: skip

REFUSALS = [
    Refusal(f"{id}-{n}", f"Proposal-{n}", inputs, {**SQUARE, "post_nms_topn": 10, **attributes})
    for n in (1, 4)
    for id, inputs, attributes in [
        ("c1-probs-rank", ["f32[1,2,4]", "f32[1,4,4,4]", "f32[3]"], {}),
        ("c1-deltas-rank", ["f32[1,2,4,4]", "f32[1,4,4]", "f32[3]"], {}),
        ("c1-image-rank", ["f32[1,2,4,4]", "f32[1,4,4,4]", "f32[1,3]"], {}),
        ("c1-image-size", ["f32[1,2,4,4]", "f32[1,4,4,4]", "f32[5]"], {}),
        ("c1-batch", ["f32[1,2,4,4]", "f32[2,4,4,4]", "f32[3]"], {}),
        ("c1-width", ["f32[1,2,4,4]", "f32[1,4,4,5]", "f32[3]"], {}),
        ("c2-probs", ["f32[1,3,4,4]", "f32[1,?,4,4]", "f32[3]"], {}),
        ("c2-deltas", ["f32[1,2,4,4]", "f32[1,8,4,4]", "f32[3]"], {}),
        ("c2-anchors", ["f32[1,2,4,4]", "f32[1,4,4,4]", "f32[3]"], {"scale": "1,2"}),
        ("c3-post", ["f32[1,2,4,4]", "f32[1,4,4,4]", "f32[3]"], {"post_nms_topn": 0}),
        ("c3-pre", ["f32[1,2,4,4]", "f32[1,4,4,4]", "f32[3]"], {"pre_nms_topn": -1}),
        ("ir301-int", ["i32[1,2,4,4]", "f32[1,4,4,4]", "f32[3]"], {}),
    ]
]  # fmt: skip


def case(id, n, batch=1, height=5, width=6, dtype=np.float32, info=(40.0, 60.0, 1.0), **attributes):
    """A random case; the CPU plugin crashes where fewer than 8 boxes come before the suppression."""
    anchors = len(attributes.get("ratio", [1])) * len(attributes.get("scale", [1]))
    certain = np.random.default_rng(1).permutation(batch * 2 * anchors * height * width).reshape(batch, -1, height, width)
    return Case(
        f"{id}-{n}-{np.dtype(dtype).name}",
        f"Proposal-{n}",
        [(certain / certain.size + 0.01).astype(dtype), random(batch, 4 * anchors, height, width, dtype=dtype) / dtype(4), np.array(info, dtype)],
        {**SQUARE, "ratio": [1.0], "scale": [1.0], "pre_nms_topn": 20, "post_nms_topn": 8, "nms_thresh": 0.5, **attributes},
    )  # fmt: skip


CASES = [
    case(id, n, dtype=t, **attributes)
    for n in (1, 4)
    for id, t, attributes in [
        ("square", np.float32, {}),
        ("square", np.float64, {}),
        ("all", np.float32, {"pre_nms_topn": 100, "post_nms_topn": 30, "nms_thresh": 0.9}),
        ("anchors", np.float32, {"ratio": [0.5, 1.0, 2.67], "scale": [0.5, 1.0, 1.5], "batch": 2}),
        ("tensorflow", np.float32, {"framework": "tensorflow", "ratio": [0.5, 2.0], "scale": [1.0, 1.5], "batch": 2}),
        ("tensorflow-after", np.float32, {"framework": "tensorflow", "clip_before_nms": False, "clip_after_nms": True, "normalize": True}),
        ("not-clipped", np.float32, {"clip_before_nms": False}),
        ("clipped-after", np.float32, {"clip_before_nms": False, "clip_after_nms": True, "normalize": True}),
        ("scaled", np.float32, {"box_coordinate_scale": 2.0, "box_size_scale": 3.0}),
        ("min-size", np.float32, {"min_size": 10, "info": (40.0, 60.0, 1.5), "post_nms_topn": 4}),
        ("min-sizes", np.float32, {"min_size": 10, "info": (40.0, 60.0, 1.25, 1.75), "post_nms_topn": 4}),
        ("min-sizes-tensorflow", np.float32, {"min_size": 10, "info": (40.0, 60.0, 1.0, 1.75), "post_nms_topn": 4, "framework": "tensorflow"}),
    ]
] + [
    case("an-end", 1, pre_nms_topn=100, post_nms_topn=40),  # the CPU plugin leaves further scores undefined
    *(case("narrow", 4, dtype=t, height=3, width=4) for t in (np.float16, ml_dtypes.bfloat16)),
]  # fmt: skip

test_values = values(VALUES)
test_shapes = shapes(SHAPES)
test_refusals = refusals(REFUSALS)
test_against_openvino = against_openvino(CASES)
