"""EmbeddingSegmentsSum-3."""

import numpy as np
import pytest

from embeddings import HALF, INDICES, SMALL, TABLE, TYPES
from irrun.opdef import Refused
from kit import *

OP = "EmbeddingSegmentsSum-3"
IDS = i64(0, 0, 2, 2)
_TABLE = [[-1, 2], [3, 4], [-5, -6], [-7, 8], [9, 10]]
SUMMED = [[-2.1, -2.4], [0, 0], [-0.2, 0.8]]

VALUES = [
    Values("spec", OP, [TABLE, INDICES, IDS, 3, 0, HALF], [[-1.05, -1.2], [-0.2, -0.6], [-0.1, 0.4]], rtol=1e-5),
    Values("no-weights", OP, [TABLE, INDICES, IDS, 3, 1], [SUMMED[0], [-0.1, -0.4], SUMMED[2]], rtol=1e-5),
    Values("no-default", OP, [TABLE, INDICES, IDS, 4], [*SUMMED, [0, 0]], rtol=1e-5),
    # OpenVINO's reference tests
    Values(
        "reference-i32",
        OP,
        [np.array(_TABLE, np.int32), INDICES, IDS, 3],
        np.array([[-6, -4], [0, 0], [2, 18]], np.int32),
    ),
    Values(
        "reference-i8",
        OP,
        [np.array(_TABLE, np.int8), INDICES, IDS, 3, 0, np.full(4, 2, np.int8)],
        np.array([[-12, -8], [-1, 2], [4, 36]], np.int8),
    ),
    Values("small", OP, [SMALL.astype(np.int64), INDICES, IDS, 3], np.array([[1, 1], [0, 0], [1, 1]])),
    Values("default-of-zeros", OP, [TABLE, INDICES, IDS, 3, -1], SUMMED, rtol=1e-5),
    Values("out-of-order", OP, [TABLE, INDICES, i64(2, 0, 2, 0), 3], [[-1.1, -2.5], [0, 0], [-1.2, 0.9]], rtol=1e-5),
    Values("no-indices", OP, [TABLE, i64(), i64(), 2, 1], [[-0.1, -0.4]] * 2),
    Values("no-segments", OP, [TABLE, i64(), i64(), 0], np.empty((0, 2))),
    Values("rank-1", OP, [TABLE[:, 0], INDICES, IDS, 3], [-2.1, 0, -0.2], rtol=1e-5),
]

SHAPES = [
    Shapes("spec", OP, ["f32[5,2]", "i64{0,2,3,4}", "i64{0,0,2,2}", "i64[]{3}", "i64[]{0}", "f32[4]"], "f32[3,2]"),
    Shapes("unknown-count", OP, ["f32[5,?]", "i64[?]", "i64[4]", "i64[]"], "f32[?,?]"),
    Shapes("unknown-table", OP, ["f32[...]", "i64[?]", "i64[4]", "i64[]{3}"], "f32[...]"),
]

REFUSALS = [
    Refusal("c1-scalar-table", OP, ["f32[]", "i64[4]", "i64[4]", "i64[]"]),
    Refusal("c2-indices", OP, ["f32[5,2]", "i64[2,2]", "i64[2,2]", "i64[]"]),
    Refusal("c3-index", OP, ["f32[5,2]", "i64{5}", "i64{0}", "i64[]"]),
    Refusal("c3-default", OP, ["f32[5,2]", "i64[4]", "i64[4]", "i64[]", "i64[]{5}"]),
    Refusal("c4-weights", OP, ["f32[5,2]", "i64[4]", "i64[4]", "i64[]", "i64[]", "f32[3]"]),
    Refusal("c5-shape", OP, ["f32[5,2]", "i64[4]", "i64[3]", "i64[]"]),
    Refusal("c5-segment", OP, ["f32[5,2]", "i64[4]", "i64{0,0,2,2}", "i64[]{2}"]),
    Refusal("c5-negative-segment", OP, ["f32[5,2]", "i64[4]", "i64{0,0,-1,2}", "i64[]"]),
    Refusal("c6-1d", OP, ["f32[5,2]", "i64[4]", "i64[4]", "i64[1]"]),
    Refusal("c6-negative", OP, ["f32[5,2]", "i64[4]", "i64[4]", "i64[]{-1}"]),
    Refusal("ir302-segments", OP, ["f32[5,2]", "i64[4]", "i64[4]", "i32[]"]),
]

# OpenVINO: counts on segment_ids being sorted, as the specification says that they should
CASES = [
    Case(
        f"{np.dtype(t).name}-{list(shape)}-{len(more)}",
        OP,
        [random(*shape, dtype=t), INDICES, IDS, np.array(4), *more[:1], *(a.astype(t) for a in more[1:])],
        shapes=[3],
    )
    for shape in [(5, 2), (5, 2, 1, 3)]
    for t in TYPES
    for more in ([], [np.array(1)], [np.array(0), random(4, dtype=np.int32, seed=1)])
]


def test_contents_seen_by_the_run_only():
    with pytest.raises(Refused) as caught:
        operation(OP).run(TABLE, i64(0), i64(3), np.array(3))
    assert caught.value.label == "C5"
