"""Eye-9."""

import ml_dtypes
import numpy as np

from kit import *


def _inputs(rows: int, columns: int, diagonal: int, *batch: int, dtype: type = np.int64) -> list[np.ndarray]:
    return [np.array(n, dtype) for n in (rows, columns, diagonal)] + ([np.array(batch, dtype)] if batch else [])


I32, F32 = {"output_type": "i32"}, {"output_type": "f32"}

VALUES = [
    Values("spec-1", "Eye-9", _inputs(3, 4, 2), np.array([[0, 0, 1, 0], [0, 0, 0, 1], [0, 0, 0, 0]], np.int32), I32),
    Values("spec-2", "Eye-9", _inputs(3, 4, -1), np.array([[0, 0, 0, 0], [1, 0, 0, 0], [0, 1, 0, 0]], np.int32), I32),
    Values("spec-3", "Eye-9", _inputs(2, 2, 5, 1, 2), np.zeros((1, 2, 2, 2)), {"output_type": "f16"}),
    Values("far-below", "Eye-9", _inputs(2, 3, -7), np.zeros((2, 3)), F32),
    Values("empty-batch", "Eye-9", [*_inputs(2, 2, 0), i64()], [[1, 0], [0, 1]], F32),
    Values("no-rows", "Eye-9", _inputs(0, 3, 0), np.zeros((0, 3)), F32),
    Values("1d", "Eye-9", [i64(1), i64(2), i64(1)], [[0, 1]], F32),
    Values("bf16", "Eye-9", _inputs(1, 2, 0), np.array([[1, 0]], ml_dtypes.bfloat16), {"output_type": "bf16"}),
    Values("i4", "Eye-9", _inputs(1, 2, 0), np.array([[1, 0]], ml_dtypes.int4), {"output_type": "i4"}),
]

SHAPES = [
    Shapes("known", "Eye-9", ["i32[]{5}", "i32[]{4}", "i32[]"], "i8[5,4]", {"output_type": "i8"}),
    Shapes("spec-unknown", "Eye-9", ["i32[]", "i32[]", "i32[]", "i32{2,3}"], "f32[2,3,?,?]", F32),
    Shapes("partial", "Eye-9", ["i64[]{2..5}", "i64{7}", "i64[?]", "i64{?,3}"], "f32[?,3,2..5,7]", F32),
    Shapes("batch-of-known-length", "Eye-9", ["i64[]{2}", "i64[]{2}", "i64[]", "i64[2]"], "f32[?,?,2,2]", F32),
    Shapes("batch-of-unknown-length", "Eye-9", ["i64[]{2}", "i64[]{2}", "i64[]", "i64[?]"], "f32[...]", F32),
]

REFUSALS = [
    Refusal("c1-rows", "Eye-9", ["i64{2,3}", "i64[]{2}", "i64[]{0}"], F32),
    Refusal("c1-columns", "Eye-9", ["i64[]{2}", "i64[1,1]", "i64[]{0}"], F32),
    Refusal("c1-diagonal", "Eye-9", ["i64[]{2}", "i64[]{2}", "i64{0,1}"], F32),
    Refusal("c2-rows", "Eye-9", ["i64[]{-2}", "i64[]{2}", "i64[]{0}"], F32),
    Refusal("c2-batch", "Eye-9", ["i64[]{2}", "i64[]{2}", "i64[]{0}", "i64{-1}"], F32),
    Refusal("c3-batch", "Eye-9", ["i64[]{2}", "i64[]{2}", "i64[]{0}", "i64[]{2}"], F32),
    Refusal("c4-boolean", "Eye-9", ["i64[]{2}", "i64[]{2}", "i64[]{0}"], {"output_type": "boolean"}),
    Refusal("c4-string", "Eye-9", ["i64[]{2}", "i64[]{2}", "i64[]{0}"], {"output_type": "string"}),
    Refusal("ir301-float", "Eye-9", ["f32[]", "i64[]{2}", "i64[]{0}"], F32),
]

CASES = [
    *[
        Case(f"{t}-{diagonal}", "Eye-9", _inputs(3, 4, diagonal), {"output_type": t}, shapes=[0, 1, 2])
        for t in ("f32", "f16", "i32", "i64", "u8", "i8")
        for diagonal in (0, 2, -1, 9, -9)
    ],
    *[
        Case(f"batch-{batch}", "Eye-9", _inputs(2, 3, 1, *batch, dtype=np.int32), F32, shapes=[0, 1, 2, 3])
        for batch in ((2,), (2, 3), (1, 2, 2))
    ],
]
