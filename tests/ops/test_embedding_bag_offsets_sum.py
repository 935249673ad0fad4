"""EmbeddingBagOffsetsSum-3."""

from embeddings import offsets_cases, offsets_refusals, offsets_shapes, offsets_values
from kit import against_openvino, refusals, shapes, values

OP = "EmbeddingBagOffsetsSum-3"

test_values = values(offsets_values(OP))
test_shapes = shapes(offsets_shapes(OP))
test_refusals = refusals(offsets_refusals(OP))
test_against_openvino = against_openvino(offsets_cases(OP))
