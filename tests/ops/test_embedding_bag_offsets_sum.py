"""EmbeddingBagOffsetsSum-3."""

from embeddings import offsets_cases, offsets_refusals, offsets_shapes, offsets_values
from kit import *

OP = "EmbeddingBagOffsetsSum-3"

VALUES = offsets_values(OP)
SHAPES = offsets_shapes(OP)
REFUSALS = offsets_refusals(OP)
CASES = offsets_cases(OP)
