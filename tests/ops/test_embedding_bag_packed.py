"""EmbeddingBagPacked-15."""

import numpy as np

from embeddings import PAIRS, TABLE, packed_cases, packed_refusals, packed_shapes, packed_values
from kit import *

OP = "EmbeddingBagPacked-15"
MEAN = {"reduction": "mean"}
_TABLE = [[-1, 2], [3, 4], [-5, -6], [-7, 8], [9, 10]]
_DOUBLED = np.array([[-12, -8], [-4, -4], [4, 36]], np.int8)
_MEANS = np.array([[-3, -2], [-1, -1], [1, 9]], np.int32)

VALUES = [
    *packed_values(OP),
    Values("spec-3", OP, [TABLE, PAIRS], [[-1.05, -1.2], [-1.0, -1.1], [-0.1, 0.4]], MEAN, rtol=1e-5),
    # OpenVINO's reference tests
    Values("reference-i8", OP, [np.array(_TABLE, np.int8), PAIRS, np.full((3, 2), 2, np.int8)], _DOUBLED),
    Values("reference-mean-i32", OP, [np.array(_TABLE, np.int32), PAIRS], _MEANS, MEAN),
    Values("mean-of-integers", OP, [np.array([[-3], [0], [5]]), [[0, 1], [2, 1]]], [[-1], [2]], MEAN),
]

REFUSALS = [
    *packed_refusals(OP),
    Refusal("c4-weighted-mean", OP, ["f32[5,2]", "i64[3,2]", "f32[3,2]"], MEAN),
]

SHAPES = packed_shapes(OP)
CASES = packed_cases(OP, {"reduction": "sum"}) + packed_cases(OP, MEAN)
