"""ExperimentalDetectronGenerateProposalsSingleImage-6."""

import numpy as np

from kit import Case, Refusal, Shapes, Values, against_openvino, f32, random, refusals, shapes, values

OP = "ExperimentalDetectronGenerateProposalsSingleImage-6"
SOME = {"min_size": 0, "nms_threshold": 0.7, "pre_nms_count": 9, "post_nms_count": 4}
INFO = f32([20, 40, 1])
ZERO = [0, 0, 0, 0]
LEFT, MIDDLE, RIGHT = [0, 0, 4, 4], [1, 0, 5, 4], [10, 10, 14, 18]


def deltas(*of_places):
    return f32(of_places).T.reshape(4, 1, -1)


THREE = [INFO, f32([LEFT, MIDDLE, RIGHT]), deltas(ZERO, ZERO, ZERO), f32([[[0.2, 0.3, 0.1]]])]

VALUES = [
    Values("the-best-first", OP, THREE, (f32([MIDDLE, LEFT, RIGHT, ZERO]), f32([0.3, 0.2, 0.1, 0])), SOME),
    # LEFT and MIDDLE share 12 of 20
    Values("overlapping", OP, THREE, (f32([MIDDLE, RIGHT, ZERO, ZERO]), f32([0.3, 0.1, 0, 0])), {**SOME, "nms_threshold": 0.59}),
    Values("just-not", OP, THREE, (f32([MIDDLE, LEFT, RIGHT, ZERO]), f32([0.3, 0.2, 0.1, 0])), {**SOME, "nms_threshold": 0.61}),
    Values("pre-nms", OP, THREE, (f32([MIDDLE, ZERO, ZERO, ZERO]), f32([0.3, 0, 0, 0])), {**SOME, "pre_nms_count": 1}),
    Values("post-nms", OP, THREE, (f32([MIDDLE]), f32([0.3])), {**SOME, "post_nms_count": 1}),
    Values("none", OP, THREE, (f32([]).reshape(0, 4), f32([])), {**SOME, "post_nms_count": 0}),
    # the sides of the others are 5 pixels
    Values("small-last", OP, THREE, (f32([RIGHT]), f32([0.1])), {**SOME, "min_size": 5, "pre_nms_count": 1, "post_nms_count": 1} | {"min_size": 5.0}) if False else
    Values("small-last", OP, [INFO, f32([LEFT, RIGHT]), deltas(ZERO, ZERO), f32([[[0.9, 0.1]]])], (f32([LEFT]), f32([0.9])), {**SOME, "min_size": 5, "post_nms_count": 1}),
    Values("moved", OP, [INFO, f32([[10, 10, 13, 17]]), deltas([0.5, -0.5, np.log(2), 0]), f32([[[0.5]]])], (f32([[10, 6, 17, 13]]), f32([0.5])), {**SOME, "post_nms_count": 1}),
    Values("clipped", OP, [INFO, f32([RIGHT]), deltas([0, 0, 9, 9]), f32([[[0.5]]])], (f32([[0, 0, 39, 19]]), f32([0.5])), {**SOME, "post_nms_count": 1}),
]  # fmt: skip
