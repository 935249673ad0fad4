"""EmbeddingBagPackedSum-3."""

from embeddings import packed_cases, packed_refusals, packed_shapes, packed_values
from kit import *

OP = "EmbeddingBagPackedSum-3"

VALUES = packed_values(OP)
SHAPES = packed_shapes(OP)
REFUSALS = packed_refusals(OP)
CASES = packed_cases(OP)
