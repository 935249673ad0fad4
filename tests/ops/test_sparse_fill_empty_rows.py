"""SparseFillEmptyRows-16."""

from typing import Any

import numpy as np
import pytest

from irrun.opdef import Refused
from kit import *
from oracle import Oracle

NONE = np.empty((0, 2), np.int64)

VALUES = [
    Values(
        "spec-text",
        "SparseFillEmptyRows-16",
        [[1, 2, 3, 4], i64(5, 6), [[0, 1], [0, 3], [2, 0], [3, 1]], 9],
        ([[0, 1], [0, 3], [1, 0], [2, 0], [3, 1], [4, 0]], [1, 2, 9, 3, 4, 9], [False, True, False, False, True]),
    ),
    Values(
        "spec",
        "SparseFillEmptyRows-16",
        [[1.0, 3.0], i64(3, 3), [[0, 0], [2, 2]], 42.0],
        ([[0, 0], [1, 0], [2, 2]], [1, 42, 3], [False, True, False]),
    ),
    Values(
        "out-of-order",
        "SparseFillEmptyRows-16",
        [[1, 2, 3], i64(2, 3), [[1, 2], [1, 0], [1, 1]], 9],
        ([[0, 0], [1, 0], [1, 1], [1, 2]], [9, 2, 3, 1], [True, False]),
    ),
    Values(
        "no-values", "SparseFillEmptyRows-16", [i64(), i64(2, 3), NONE, 9], ([[0, 0], [1, 0]], [9, 9], [True, True])
    ),
    Values("no-rows", "SparseFillEmptyRows-16", [i64(), i64(0, 3), NONE, 9], (NONE, i64(), np.empty(0, np.bool_))),
]

SHAPES = [
    Shapes("known", "SparseFillEmptyRows-16", ["f32[2]", "i32{3,3}", "i32[2,2]{0,0,2,2}", "f32[]"], ["i32[3,2]", "f32[3]", "boolean[3]"]),
    Shapes("known-indices", "SparseFillEmptyRows-16", ["f32[2]", "i64{3..5,3}", "i64[2,2]{0,0,2,2}", "f32[]"], ["i64[3..5,2]", "f32[3..5]", "boolean[3..5]"]),
    Shapes("unknown-indices", "SparseFillEmptyRows-16", ["f32[2]", "i64{3,3}", "i64[2,2]", "f32[]"], ["i64[3..5,2]", "f32[3..5]", "boolean[3]"]),
    Shapes("no-values", "SparseFillEmptyRows-16", ["f32[0]", "i64{?,3}", "i64[0,2]", "f32[]"], ["i64[?,2]", "f32[?]", "boolean[?]"]),
    Shapes("unknown", "SparseFillEmptyRows-16", ["f32[?]", "i64[?]", "i64[...]", "f32[]"], ["i64[?,2]", "f32[?]", "boolean[?]"]),
]  # fmt: skip

REFUSALS = [
    Refusal("c1-values", "SparseFillEmptyRows-16", ["f32[2,1]", "i64[2]", "i64[2,2]", "f32[]"]),
    Refusal("c1-count", "SparseFillEmptyRows-16", ["f32[2]", "i64[2]", "i64[3,2]", "f32[]"]),
    Refusal("c1-columns", "SparseFillEmptyRows-16", ["f32[2]", "i64[2]", "i64[2,3]", "f32[]"]),
    Refusal("c2-three", "SparseFillEmptyRows-16", ["f32[2]", "i64[3]", "i64[2,2]", "f32[]"]),
    Refusal("c2-negative", "SparseFillEmptyRows-16", ["f32[2]", "i64{-1,3}", "i64[2,2]", "f32[]"]),
    Refusal("c3-default", "SparseFillEmptyRows-16", ["f32[2]", "i64[2]", "i64[2,2]", "f32[1]"]),
    Refusal("c4-row", "SparseFillEmptyRows-16", ["f32[2]", "i64{3,3}", "i64[2,2]{0,0,3,2}", "f32[]"]),
    Refusal("c4-column", "SparseFillEmptyRows-16", ["f32[2]", "i64{3,3}", "i64[2,2]{0,-1,2,2}", "f32[]"]),
    Refusal("ir301-boolean", "SparseFillEmptyRows-16", ["boolean[2]", "i64[2]", "i64[2,2]", "boolean[]"]),
    Refusal("ir302-types", "SparseFillEmptyRows-16", ["f32[2]", "i64[2]", "i32[2,2]", "f32[]"]),
]

# OpenVINO: crashes on no values at all
ROWS = {
    "some": ([5, 6], [[0, 1], [0, 3], [2, 0], [3, 1]]),
    "none": ([2, 2], [[0, 1], [1, 1]]),
    "out-of-order": ([3, 3], [[1, 2], [1, 0], [0, 1]]),
}
TYPES = [
    (np.float32, np.int32), (np.float16, np.int64), (np.int32, np.int64), (np.int64, np.int32),
]  # fmt: skip


@pytest.mark.parametrize("declared", ["static", "dims", "constants"])
@pytest.mark.parametrize("row", ROWS)
@pytest.mark.parametrize(("t", "i"), TYPES)
def test_against_openvino(declared: str, row: str, t: Any, i: Any, ov: Any, oracle: Oracle):
    # OpenVINO: cannot build it where the rank of values is unknown, as the cases of other operations are
    shape, indices = ROWS[row]
    arrays = [np.arange(1, len(indices) + 1).astype(t), np.array(shape, i), np.array(indices, i), np.array(9).astype(t)]
    constants = [1, 2] if declared == "constants" else []
    nodes = [
        ov.opset1.constant(a)
        if position in constants
        else ov.opset1.parameter([-1] * a.ndim if declared == "dims" else a.shape, ov.Type(a.dtype))
        for position, a in enumerate(arrays)
    ]
    node = ov.opset16.sparse_fill_empty_rows(*nodes)
    parameters = [n for position, n in enumerate(nodes) if position not in constants]
    results = [ov.opset1.result(o) for o in node.outputs()]
    model = ov.Model(results, parameters, "sparse")
    same_as_openvino(oracle, model, [a for position, a in enumerate(arrays) if position not in constants])


def test_indices_seen_by_the_run_only():
    with pytest.raises(Refused) as caught:
        operation("SparseFillEmptyRows-16").run(i64(1), i64(2, 2), np.array([[2, 0]]), np.array(0))
    assert caught.value.label == "C4"
