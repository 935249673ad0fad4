"""EmbeddingBagOffsets-15."""

import numpy as np
import pytest

from embeddings import (
    HALF,
    INDICES,
    TABLE,
    offsets_cases,
    offsets_refusals,
    offsets_shapes,
    offsets_values,
)
from irrun.opdef import Refused
from kit import *

OP = "EmbeddingBagOffsets-15"
MEAN = {"reduction": "mean"}

VALUES = [
    *offsets_values(OP),
    Values("spec-3", OP, [TABLE, INDICES, i64(0, 2, 2)], [[-1.05, -1.2], [0, 0], [-0.1, 0.4]], MEAN, rtol=1e-5),
    Values(
        "mean-with-default",
        OP,
        [TABLE, INDICES, i64(0, 2, 2), 1],
        [[-1.05, -1.2], [-0.1, -0.4], [-0.1, 0.4]],
        MEAN,
        rtol=1e-5,
    ),
    Values("mean-of-integers", OP, [np.array([[-3], [0], [5]]), i64(0, 1, 2, 1), i64(0, 2)], [[-1], [2]], MEAN),
    Values("mean-of-nothing", OP, [TABLE, i64(), i64(0)], [[0, 0]], MEAN),
]

REFUSALS = [
    *offsets_refusals(OP),
    Refusal("c4-weighted-mean", OP, ["f32[5,2]", "i64[4]", "i64[3]", "i64[]", "f32[4]"], MEAN),
]


@pytest.mark.parametrize(("indices", "offsets", "default", "label"), [
    (i64(0, 5), i64(0), 0, "C3"), (i64(0), i64(0, 1), 5, "C3"), (i64(0, 1), i64(1, 0), 0, "C5"),
])  # fmt: skip
def test_contents_seen_by_the_run_only(indices: np.ndarray, offsets: np.ndarray, default: int, label: str):
    with pytest.raises(Refused) as caught:
        operation(OP).run(TABLE, indices, offsets, np.array(default), HALF[: len(indices)])
    assert caught.value.label == label


SHAPES = offsets_shapes(OP)
CASES = offsets_cases(OP, {"reduction": "sum"}) + offsets_cases(OP, MEAN)
