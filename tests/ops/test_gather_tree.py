"""GatherTree-1."""

import numpy as np
import pytest

from irrun.opdef import Refused
from kit import *

STEPS = [[[1, 2, 3]], [[4, 5, 6]], [[7, 8, 9]]]
PARENTS = [[[0, 0, 0]], [[0, 1, 1]], [[2, 1, 2]]]
_TOKENS = [
    [[1, 4, 9, 7, 9, 1, 2, 3, 9, 2]], [[3, 1, 4, 2, 4, 4, 7, 4, 9, 5]], [[8, 4, 3, 7, 5, 2, 4, 8, 3, 1]],
    [[5, 7, 9, 4, 5, 6, 4, 2, 9, 2]], [[8, 8, 7, 9, 8, 3, 1, 7, 5, 9]],
]  # fmt: skip

VALUES = [
    Values("beams", "GatherTree-1", [STEPS, PARENTS, [3], 10], [[[2, 2, 2]], [[6, 5, 6]], [[7, 8, 9]]]),
    Values("shorter", "GatherTree-1", [STEPS, PARENTS, [2], 10], [[[1, 2, 2]], [[4, 5, 6]], [[10, 10, 10]]]),
    Values("longer-than-time", "GatherTree-1", [STEPS, PARENTS, [7], 10], [[[2, 2, 2]], [[6, 5, 6]], [[7, 8, 9]]]),
    Values("of-no-length", "GatherTree-1", [STEPS, PARENTS, [0], 10], [[[10, 10, 10]]] * 3),
    Values("ends-early", "GatherTree-1", [STEPS, PARENTS, [3], 6], [[[2, 2, 2]], [[6, 5, 6]], [[6, 8, 6]]]),
    Values(
        "batches",
        "GatherTree-1",
        [[[[1, 2], [3, 4]], [[5, 6], [7, 8]]], [[[0, 0], [0, 0]], [[1, 1], [1, 0]]], [2, 1], 0],
        [[[2, 2], [3, 4]], [[5, 6], [0, 0]]],
    ),
    # OpenVINO's reference tests
    Values(
        "reference",
        "GatherTree-1",
        [_TOKENS, _TOKENS, [9], 9],
        [
            [[4, 4, 9, 9, 4, 9, 2, 9, 9, 9]],
            [[1, 1, 9, 9, 1, 9, 9, 9, 9, 9]],
            [[1, 1, 9, 9, 1, 9, 9, 9, 9, 9]],
            [[9] * 10],
            [[9] * 10],
        ],
    ),
    Values("no-time", "GatherTree-1", [np.empty((0, 1, 2)), np.empty((0, 1, 2)), [1.0], 0.0], np.empty((0, 1, 2))),
]

SHAPES = [
    Shapes("spec", "GatherTree-1", ["i32[100,1,10]", "i32[100,1,10]", "i32[1]", "i32[]"], "i32[100,1,10]"),
    Shapes("dims-meet", "GatherTree-1", ["f32[?,?,10]", "f32[100,?,?]", "f32[2]", "f32[...]"], "f32[100,2,10]"),
    Shapes("unknown-rank", "GatherTree-1", ["f32[...]", "f32[...]", "f32[2]", "f32[]"], "f32[...]"),
]

REFUSALS = [
    Refusal("c1-rank", "GatherTree-1", ["i32[1,10]", "i32[...]", "i32[1]", "i32[]"]),
    Refusal("c1-shapes", "GatherTree-1", ["i32[100,1,10]", "i32[100,1,9]", "i32[1]", "i32[]"]),
    Refusal("c2-rank", "GatherTree-1", ["i32[100,1,10]", "i32[100,1,10]", "i32[]", "i32[]"]),
    Refusal("c2-count", "GatherTree-1", ["i32[100,1,10]", "i32[100,1,10]", "i32[2]", "i32[]"]),
    Refusal("c3-end-token", "GatherTree-1", ["i32[100,1,10]", "i32[100,1,10]", "i32[1]", "i32[1]"]),
    Refusal("ir302-types", "GatherTree-1", ["i32[100,1,10]", "i32[100,1,10]", "i64[1]", "i32[]"]),
    Refusal("c5-fraction", "GatherTree-1", ["f32[1,1,1]{0.5}", "f32[1,1,1]{0.0}", "f32{1.0}", "f32[]{0.0}"]),
    Refusal("c4-parent", "GatherTree-1", ["i32[2,1,2]{1,2,3,4}", "i32[2,1,2]{0,0,0,2}", "i32{2}", "i32[]{0}"]),
]


def _search(times: int, batches: int, beams: int) -> list[np.ndarray]:
    rng = np.random.default_rng(times)
    steps, parents = rng.integers(0, 9, (times, batches, beams)), rng.integers(0, beams, (times, batches, beams))
    return [steps, parents, rng.integers(1, times + 1, batches), np.array(4)]


CASES = [
    Case(f"{np.dtype(t).name}-{shape}", "GatherTree-1", [a.astype(t) for a in _search(*shape)])
    for shape in [(1, 1, 1), (3, 1, 3), (5, 3, 2), (20, 2, 7)]
    for t in (np.float32, np.float16, np.int32, np.int64)
]


@pytest.mark.parametrize("place", range(3))
@pytest.mark.parametrize("number", [0.5, np.nan, np.inf])
def test_entries_are_whole(place, number):
    arrays = [np.zeros((1, 1, 1), np.float32), np.zeros((1, 1, 1), np.float32), np.ones(1, np.float32), np.float32(0)]
    arrays[place] = np.full_like(arrays[place], number)
    with pytest.raises(Refused) as caught:
        operation("GatherTree-1").run(*arrays)
    assert caught.value.label == "C5"


def test_a_parent_seen_by_the_run_only():
    arrays = [np.array(a) for a in (STEPS, [[[0, 0, 0]], [[0, 1, 3]], [[2, 1, 2]]], [3], 0)]
    with pytest.raises(Refused) as caught:
        operation("GatherTree-1").run(*arrays)
    assert caught.value.label == "C4"
