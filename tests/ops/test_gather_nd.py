"""GatherND-5 and GatherND-8."""

import ml_dtypes
import numpy as np
import pytest

from irrun.opdef import Refused
from kit import *

_BOTH = ("GatherND-5", "GatherND-8")
_FOUR = f32([[1, 2], [3, 4]])
_BATCHES = arange(2, 3, 4, start=1)
_INDICES = [[[[1]], [[0]], [[2]]], [[[0]], [[2]], [[2]]]]


def _indices(shape, data, batch):
    """Valid tuples for ``data``."""
    numbers = np.abs(random(*shape, dtype=np.int64))
    return numbers % np.array(data[batch : batch + shape[-1]], np.int64)


VALUES = [
    *(Values(f"spec-1-{o}", o, [_FOUR, [[0, 0], [1, 0]]], f32([1, 3])) for o in _BOTH),
    *(Values(f"spec-2-{o}", o, [_FOUR, [[1], [0]]], f32([[3, 4], [1, 2]])) for o in _BOTH),
    *(Values(f"spec-3-{o}", o, [_FOUR, [[[1]], [[0]]]], f32([[[3, 4]], [[1, 2]]])) for o in _BOTH),
    *(Values(f"spec-4-{o}", o, [_FOUR, [[1], [0]]], f32([2, 3]), {"batch_dims": 1}) for o in _BOTH),
    *(Values(f"spec-5-{o}", o, [_BATCHES, [[1], [0]]], f32([[5, 6, 7, 8], [13, 14, 15, 16]]), {"batch_dims": 1}) for o in _BOTH),
    Values("spec-6", "GatherND-8", [_BATCHES, _INDICES], f32([[[2], [5], [11]], [[13], [19], [23]]]), {"batch_dims": 2}),
    Values("spec-6-flattened", "GatherND-5", [_BATCHES, _INDICES], f32([[2], [5], [11], [13], [19], [23]]), {"batch_dims": 2}),
    Values("spec-7", "GatherND-8", [arange(1, 2, 2, 4, start=1), [[[[1], [0]], [[3], [2]]]]], f32([[[2, 5], [12, 15]]]), {"batch_dims": 3}),
    Values("negative", "GatherND-8", [_FOUR, [[-1, -2], [0, -1]]], f32([3, 2])),
    # OpenVINO: refuses batch dims that must be broadcast, which the specification allows
    Values("broadcast-indices", "GatherND-8", [_FOUR, [[1]]], f32([2, 4]), {"batch_dims": 1}),
    Values("broadcast-data", "GatherND-5", [_FOUR[:1], [[1], [0]]], f32([2, 1]), {"batch_dims": 1}),
    # OpenVINO: the CPU plugin reads elsewhere for tuples of no indices
    Values("empty-tuples", "GatherND-8", [_FOUR, np.zeros((2, 0), np.int64)], np.stack([_FOUR, _FOUR])),
    Values("one-tuple", "GatherND-8", [_FOUR, i64(1, 0)], f32(3)),
    Values("no-tuples", "GatherND-8", [_FOUR, np.zeros((0, 1), np.int64)], np.zeros((0, 2), np.float32)),
    *(Values(f"type-{np.dtype(t).name}", "GatherND-8", [np.array([1, 0], t), [[1], [0]]], np.array([0, 1], t))
      for t in (np.float64, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.int4, np.uint64)),
    Values("strings", "GatherND-8", [np.array(["a", "bc"]), [[1]]], np.array(["bc"])),
]  # fmt: skip

SHAPES = [
    *(Shapes(f"spec-1-{o}", o, ["f32[1000,256,10,15]", "i64[25,125,3]"], "f32[25,125,15]") for o in _BOTH),
    Shapes("spec-2", "GatherND-8", ["f32[30,2,100,35]", "i64[30,2,3,1]"], "f32[30,2,3,35]", {"batch_dims": 2}),
    Shapes("spec-2-flattened", "GatherND-5", ["f32[30,2,100,35]", "i64[30,2,3,1]"], "f32[60,3,35]", {"batch_dims": 2}),
    Shapes("spec-3", "GatherND-8", ["f32[1,64,64,320]", "i64[1,64,64,1,1]"], "f32[1,64,64,1]", {"batch_dims": 3}),
    Shapes("unknown-batch", "GatherND-8", ["f32[?,2,3]", "i64[2..,4,1]"], "f32[2..,4,3]", {"batch_dims": 1}),
    Shapes("unknown-batch-flattened", "GatherND-5", ["f32[?,2,3]", "i64[4,2,1]"], "f32[8]", {"batch_dims": 2}),
    Shapes("unknown-length", "GatherND-8", ["f32[4,2,3]", "i64[4,?]"], "f32[...]"),
    Shapes("unknown-data", "GatherND-8", ["f32[...]", "i64[4,1]"], "f32[...]"),
    Shapes("unknown-indices", "GatherND-8", ["f32[4]", "i64[...]"], "f32[...]"),
]

REFUSALS = [
    row
    for o in _BOTH
    for row in (
        Refusal(f"c1-data-{o}", o, ["f32[]", "i64[1]"]),
        Refusal(f"c1-indices-{o}", o, ["f32[3]", "i64[]"]),
        Refusal(f"c2-negative-{o}", o, ["f32[3]", "i64[1]"], {"batch_dims": -1}),
        Refusal(f"c2-data-{o}", o, ["f32[3]", "i64[3,1]"], {"batch_dims": 1}),
        Refusal(f"c2-indices-{o}", o, ["f32[3,3]", "i64[3]"], {"batch_dims": 1}),
        Refusal(f"c3-{o}", o, ["f32[3,3]", "i64[2,1]"], {"batch_dims": 1}),
        Refusal(f"c4-{o}", o, ["f32[3,3]", "i64[3,2]"], {"batch_dims": 1}),
        Refusal(f"c5-{o}", o, ["f32[3]", "i64{3}"]),
        Refusal(f"c5-second-{o}", o, ["f32[3,2]", "i64{0,-3}"]),
        Refusal(f"ir301-{o}", o, ["f32[3]", "f32[1]"]),
    )
]

_GATHERED = [
    ((5,), (1,), 0), ((5,), (3, 1), 0), ((3, 4), (2, 2), 0), ((3, 4), (2, 2, 1), 0), ((2, 3, 4), (2, 1), 1),
    ((2, 3, 4), (2, 5, 2), 1), ((2, 3, 4), (2, 3, 1), 2), ((2, 3, 4, 2), (2, 3, 2, 1), 2), ((2, 1, 2, 3, 2), (2, 1, 2, 2), 2),
    ((2, 3), (0, 2), 0),
]  # fmt: skip

CASES = [
    Case(
        f"{o}-{np.dtype(t).name}-{list(data)}-{list(indices)}-{batch}",
        o,
        [random(*data, dtype=t), _indices(indices, data, batch)],
        {"batch_dims": batch},
        shapes=[1],
    )
    for o in _BOTH
    for number, (data, indices, batch) in enumerate(_GATHERED)
    for t in ((*NUMERIC, np.bool_) if number == 4 else NUMERIC[:1])
] + [
    Case("negative", "GatherND-8", [_FOUR, np.array([[-1, -2], [0, -1]])], shapes=[1]),
    Case("u8", "GatherND-8", [random(3, 4), np.array([[2], [0]], np.uint8)], shapes=[1]),
]


@pytest.mark.parametrize("op", _BOTH)
def test_c5_when_only_a_run_can_see_it(op):
    with pytest.raises(Refused) as caught:
        operation(op).run(f32([1, 2]), np.array([[2]]))
    assert caught.value.label == "C5"
