"""EmbeddingBagPackedSum-3."""

from embeddings import packed_cases, packed_refusals, packed_shapes, packed_values
from kit import against_openvino, refusals, shapes, values

OP = "EmbeddingBagPackedSum-3"

test_values = values(packed_values(OP))
test_shapes = shapes(packed_shapes(OP))
test_refusals = refusals(packed_refusals(OP))
test_against_openvino = against_openvino(packed_cases(OP))
