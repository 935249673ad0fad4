"""EmbeddingBagOffsetsSum-3."""

import numpy as np

from embeddings import offsets_cases, offsets_refusals, offsets_shapes, offsets_values
from kit import *

OP = "EmbeddingBagOffsetsSum-3"

VALUES = offsets_values(OP)
SHAPES = offsets_shapes(OP)
REFUSALS = offsets_refusals(OP)
CASES = offsets_cases(OP)


def test_sums_are_rounded_once():
    """The page adds one row after the other, in the element type: irrun may lose less."""
    arrays = np.array([[2048], [1]], np.float16), i64(0, 1, 1), i64(0)
    assert operation(OP).run(*arrays).tolist() == [[2050]]
