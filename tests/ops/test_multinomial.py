"""Multinomial-13."""

import ml_dtypes
import numpy as np
import pytest

from kit import *

_PROBS = np.random.default_rng(1).random((3, 6)).astype(np.float32)


def how(
    convert_type: str = "i64", *, replace: bool = True, log: bool = False, seeds: tuple[int, int] = (5, 7)
) -> dict[str, object]:
    return {
        "convert_type": convert_type,
        "with_replacement": replace,
        "log_probs": log,
        "global_seed": seeds[0],
        "op_seed": seeds[1],
    }


_CERTAIN = f32([[0, 1, 0], [3, 0, 0]])

VALUES = [
    *[Values(f"certain-{np.dtype(t).name}", "Multinomial-13", [_CERTAIN.astype(t), np.array(4)], [[1] * 4, [0] * 4], how())
      for t in (np.float32, np.float64, np.float16, ml_dtypes.bfloat16)],
    Values("certain-log", "Multinomial-13", [f32([[-100, 5, -100]]), np.array([3])], np.array([[1, 1, 1]], np.int32), how("i32", log=True)),
    Values("last-one-left", "Multinomial-13", [f32([[1, 0]]), np.array(1)], [[0]], how(replace=False)),
    Values("no-samples", "Multinomial-13", [_CERTAIN, np.array(0)], np.empty((2, 0)), how()),
    Values("no-rows", "Multinomial-13", [np.empty((0, 3), np.float32), np.array(2)], np.empty((0, 2)), how()),
]  # fmt: skip

SHAPES = [
    Shapes("spec", "Multinomial-13", ["f32[2,3]", "i32[]{10}"], "i32[2,10]", how("i32")),
    Shapes("samples-unknown", "Multinomial-13", ["f32[?,3]", "i64[1]"], "i64[?,?]", how()),
    Shapes("samples-partial", "Multinomial-13", ["f16[2,3]", "i64{2..5}"], "i64[2,2..5]", how()),
    Shapes("unknown-rank", "Multinomial-13", ["f32[...]", "i64[...]"], "i64[?,?]", how()),
]

REFUSALS = [
    Refusal("c1-1d", "Multinomial-13", ["f32[3]", "i64[]{2}"], how()),
    Refusal("c2-two", "Multinomial-13", ["f32[2,3]", "i64{2,3}"], how()),
    Refusal("c2-negative", "Multinomial-13", ["f32[2,3]", "i64[]{-2}"], how()),
    Refusal("c3-f32", "Multinomial-13", ["f32[2,3]", "i64[]{2}"], how("f32")),
    Refusal("c4-too-many", "Multinomial-13", ["f32[2,3]", "i64[]{4}"], how(replace=False)),
    Refusal("ir301-integer", "Multinomial-13", ["i32[2,3]", "i64[]{2}"], how()),
]

CASES = [
    Case(
        f"{np.dtype(t).name}-{to}-replace-{replace}-log-{log}", "Multinomial-13", [_PROBS.astype(t), np.array(6, samples)],
        how(to, replace=replace, log=log), shapes=[1],
    )
    for t, to, samples in ((np.float32, "i32", np.int64), (np.float64, "i64", np.int32), (np.float16, "i64", np.int64))
    for replace in (True, False) for log in (False, True)
]  # fmt: skip


@pytest.mark.parametrize("replace", [True, False])
def test_no_seeds_give_other_classes_every_time(replace: bool) -> None:
    op = operation("Multinomial-13", how(replace=replace, seeds=(0, 0)))
    first, second = (op.run(np.ones((4, 50), np.float32), np.array(50)) for _ in range(2))
    assert not np.array_equal(first, second)
    assert replace or all(len(set(row)) == 50 for row in first.tolist())
