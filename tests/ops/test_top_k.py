"""TopK-1, TopK-3 and TopK-11."""

import itertools

import ml_dtypes
import numpy as np
import pytest

from irrun.opdef import Refused
from kit import *

OPS = ("TopK-1", "TopK-3", "TopK-11")
NAN, INF = np.nan, np.inf


def how(mode: str, sort: str = "value", axis: int = -1, **more: object) -> dict[str, object]:
    return {"axis": axis, "mode": mode, "sort": sort, **more}


def _indices(*numbers: int) -> np.ndarray:
    return np.array(numbers, np.int32)


_X = [5, 3, 1, 2, 5, 5]

VALUES = [
    *[Values(f"spec-stable-{op}", op, [f32(_X), np.array(4)], ([5, 3, 1, 2], _indices(0, 1, 2, 3)), how("min", "index")) for op in OPS],
    *[
        Values(f"{mode}-{sort}-{np.dtype(t).name}", "TopK-11", [np.array(_X).astype(t), np.array(4)], (np.array(found).astype(t), _indices(*order)), how(mode, sort, stable=True))
        for t in (*NUMERIC, np.float64, ml_dtypes.bfloat16, ml_dtypes.uint4)
        for mode, sort, found, order in (
            ("max", "value", [5, 5, 5, 3], [0, 4, 5, 1]),
            ("max", "index", [5, 3, 5, 5], [0, 1, 4, 5]),
            ("max", "none", [5, 5, 5, 3], [0, 4, 5, 1]),
            ("min", "value", [1, 2, 3, 5], [2, 3, 1, 0]),
        )
    ],
    # the page leaves the order of equal elements open unless stable says it; here it is the same
    Values("ties-by-default", "TopK-11", [f32(_X), np.array(4)], ([5, 5, 5, 3], _indices(0, 4, 5, 1)), how("max")),
    Values("ties-beyond-k", "TopK-3", [f32([1, 7, 7, 7]), np.array(2)], ([7, 7], _indices(1, 2)), how("max")),
    Values("first-axis", "TopK-3", [f32([[1, 6], [5, 2], [3, 4]]), np.array(2)], ([[5, 6], [3, 4]], np.array([[1, 0], [2, 2]], np.int32)), how("max", axis=0)),
    Values("i64-indices", "TopK-3", [f32([1, 2]), np.array(1)], ([2], np.array([1])), how("max", index_element_type="i64")),
    Values("extremes", "TopK-3", [np.array([-(2**63), 2**63 - 1, 0]), np.array(3)], (np.array([2**63 - 1, 0, -(2**63)]), _indices(1, 2, 0)), how("max"), rtol=0),
    Values("infinite", "TopK-3", [f32([0, -INF, INF]), np.array(3)], ([INF, 0, -INF], _indices(2, 0, 1)), how("max")),
    # NaN is smaller than any number
    Values("nan-max", "TopK-3", [f32([1, NAN, 3, -INF]), np.array(3)], ([3, 1, -INF], _indices(2, 0, 3)), how("max")),
    Values("nan-max-all", "TopK-3", [f32([1, NAN, 3]), np.array(3)], ([3, 1, NAN], _indices(2, 0, 1)), how("max")),
    Values("nan-min", "TopK-3", [f32([1, NAN, -INF, NAN]), np.array(3)], ([NAN, NAN, -INF], _indices(1, 3, 2)), how("min")),
    Values("none-wanted", "TopK-3", [f32([[1, 2]]), np.array(0)], (np.empty((1, 0)), np.empty((1, 0), np.int32)), how("max")),
    Values("of-nothing", "TopK-3", [np.empty((0, 3), np.float32), np.array(2)], (np.empty((0, 2)), np.empty((0, 2), np.int32)), how("max")),
]  # fmt: skip

SHAPES = [
    *[Shapes(f"spec-{op}", op, ["f32[6,12,10,24]", "i32[]{3}"], ["f32[6,3,10,24]", "i32[6,3,10,24]"], how("max", axis=1)) for op in OPS],
    Shapes("k-unknown", "TopK-11", ["f32[2,7]", "i64[]"], ["f32[2,..7]", "i64[2,..7]"], how("max", index_element_type="i64")),
    Shapes("k-partial", "TopK-3", ["f32[2,7]", "u8[]{2..9}"], ["f32[2,2..7]", "i32[2,2..7]"], how("max")),
    Shapes("dim-unknown", "TopK-3", ["f32[2,?]", "i64[]{5}"], ["f32[2,5]", "i32[2,5]"], how("max")),
    Shapes("unknown-rank", "TopK-3", ["f32[...]", "i64[...]"], ["f32[...]", "i32[...]"], how("max")),
]  # fmt: skip

REFUSALS = [
    Refusal(f"{id}-{op}", op, inputs, attributes)
    for op in OPS
    for id, inputs, attributes in (
        ("c1-scalar", ["f32[]", "i64[]{1}"], how("max", axis=0)),
        ("c1-beyond", ["f32[2,3]", "i64[]{1}"], how("max", axis=2)),
        ("c1-before", ["f32[2,3]", "i64[]{1}"], how("max", axis=-3)),
        ("c2-1d", ["f32[2,3]", "i64{1}"], how("max")),
        ("c3-more", ["f32[2,3]", "i64[]{4}"], how("max")),
        ("c3-negative", ["f32[2,3]", "i64[]{-1}"], how("max")),
        ("c4-u8", ["f32[2,3]", "i64[]{1}"], how("max", index_element_type="u8")),
        ("ir301-boolean", ["boolean[2,3]", "i64[]"], how("max")),
        ("ir301-float-k", ["f32[2,3]", "f32[]"], how("max")),
    )
]

# distinct numbers, so that the order is certain
_DISTINCT = np.random.default_rng(0).permutation(120)

CASES = [
    *[Case(f"{op}-{np.dtype(t).name}-{mode}-{sort}", op, [_DISTINCT[:12].reshape(2, 6).astype(t), np.array(3)], how(mode, sort), shapes=[1])
      for op in OPS for t in (NUMERIC if op == "TopK-3" else (np.float32,)) for mode, sort in itertools.product(("max", "min"), ("value", "index"))],
    *[Case(f"rank-{len(s)}-axis-{axis}-{mode}", "TopK-11", [_DISTINCT[: int(np.prod(s))].reshape(s).astype(np.float32), np.array(2)], how(mode, axis=axis, index_element_type="i64"), constants=[1])
      for s in ((4,), (3, 2), (2, 3, 4), (3, 2, 3, 2), (2, 2, 2, 3, 2)) for axis in {-len(s), -1, len(s) // 2} for mode in ("max", "min")],
    *[Case(f"stable-{mode}-{sort}", "TopK-11", [f32([_X, _X[::-1]]), np.array(4)], how(mode, sort, stable=True), constants=[1])
      for mode, sort in itertools.product(("max", "min"), ("value", "index"))],
]  # fmt: skip


@pytest.mark.parametrize("k", [-1, 4], ids=["c3-negative", "c3-more"])
def test_k_at_run_time(k: int) -> None:
    with pytest.raises(Refused) as caught:
        operation("TopK-3", how("max")).run(f32([1, 2, 3]), np.array(k))
    assert caught.value.label == "C3"


@pytest.mark.parametrize("mode", ["max", "min"])
def test_selection_is_that_of_a_stable_sort(mode: str) -> None:
    x = random(4, 50, dtype=np.int32)
    order = np.argsort(-x if mode == "max" else x, axis=-1, kind="stable")
    for k in (1, 7, 49, 50):
        found, indices = operation("TopK-11", how(mode)).run(x, np.array(k))
        np.testing.assert_array_equal(indices, order[:, :k])
        np.testing.assert_array_equal(found, np.take_along_axis(x, order[:, :k], axis=-1))
