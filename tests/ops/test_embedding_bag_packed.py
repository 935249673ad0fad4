"""EmbeddingBagPacked-15."""

import numpy as np

from embeddings import PAIRS, TABLE, packed_cases, packed_refusals, packed_shapes, packed_values
from kit import Refusal, Values, against_openvino, refusals, shapes, values

OP = "EmbeddingBagPacked-15"
MEAN = {"reduction": "mean"}

VALUES = [
    *packed_values(OP),
    Values("spec-3", OP, [TABLE, PAIRS], [[-1.05, -1.2], [-1.0, -1.1], [-0.1, 0.4]], MEAN, rtol=1e-5),
    Values("mean-of-integers", OP, [np.array([[-3], [0], [5]]), [[0, 1], [2, 1]]], [[-1], [2]], MEAN),
]

REFUSALS = [
    *packed_refusals(OP),
    Refusal("c4-weighted-mean", OP, ["f32[5,2]", "i64[3,2]", "f32[3,2]"], MEAN),
]

test_values = values(VALUES)
test_shapes = shapes(packed_shapes(OP))
test_refusals = refusals(REFUSALS)
test_sum_against_openvino = against_openvino(packed_cases(OP, {"reduction": "sum"}))
test_mean_against_openvino = against_openvino(packed_cases(OP, MEAN))
