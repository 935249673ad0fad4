"""Rows for the Embedding operations, which two files each share."""

from __future__ import annotations

from typing import Any

import numpy as np

from kit import Case, Refusal, Shapes, Values, i64, random

TABLE = np.array([[-0.2, -0.6], [-0.1, -0.4], [-1.9, -1.8], [-1.0, 1.5], [0.8, -0.7]], np.float32)
WEIGHTS = np.array([0.5, 0.2, -2, 1], np.float32)
HALF = np.full(4, 0.5, np.float32)
INDICES = i64(0, 2, 3, 4)
SMALL = np.array([[0, 1], [1, 0], [1, 0], [0, 1], [1, 0]], np.float32)
"""Numbers that every type has."""
PAIRS = np.array([[0, 2], [1, 2], [3, 4]])
TYPES = (np.float32, np.float16, np.int32, np.int64, np.uint8)


def offsets_values(op: str) -> list[Values]:
    """The specification's examples first."""
    begins = i64(0, 2, 2)
    summed = [[-2.1, -2.4], [0, 0], [-0.2, 0.8]]
    rows: list[tuple[str, list[Any], Any]] = [
        ("spec-1", [TABLE, INDICES, begins, 0, HALF], [[-1.05, -1.2], [-0.2, -0.6], [-0.1, 0.4]]),
        ("spec-2", [TABLE, INDICES, begins, -1, WEIGHTS], [[-0.48, -0.66], [0, 0], [2.8, -3.7]]),
        ("no-weights", [TABLE, INDICES, begins, 1], [summed[0], TABLE[1], summed[2]]),
        ("no-default", [TABLE, INDICES, begins], summed),
        ("weights-without-default", [TABLE, INDICES, begins, None, HALF], np.array(summed) / 2),
        ("last-bag-empty", [TABLE, INDICES, i64(0, 4)], [[-2.3, -1.6], [0, 0]]),
        ("first-indices-in-no-bag", [TABLE, INDICES, i64(2), 0, WEIGHTS], [[2.8, -3.7]]),
        ("no-indices", [TABLE, i64(), i64(0, 0), 3], [TABLE[3], TABLE[3]]),
        ("no-bags", [TABLE, INDICES, i64()], np.empty((0, 2))),
        ("small", [SMALL, INDICES, begins], [[1, 1], [0, 0], [1, 1]]),
        ("small-i64", [SMALL.astype(np.int64), INDICES, begins], [[1, 1], [0, 0], [1, 1]]),
        ("rank-1", [TABLE[:, 0], INDICES, begins], [-2.1, 0, -0.2]),
        ("rank-3", [TABLE[:, :, None], INDICES, begins], np.array(summed)[:, :, None]),
        ("i8-wraps", [np.array([[100], [29]], np.int8), i64(0, 1), i64(0)], np.array([[-127]], np.int8)),
    ]
    return [Values(id, op, inputs, _as(inputs[0], expected), rtol=1e-5) for id, inputs, expected in rows]


def _as(table: np.ndarray, expected: Any) -> np.ndarray:
    return np.asarray(expected, table.dtype)


def offsets_shapes(op: str) -> list[Shapes]:
    return [
        Shapes("spec", op, ["f32[5,2]", "i64{0,2,3,4}", "i64{0,2,2}", "i64[]{0}", "f32[4]"], "f32[3,2]"),
        Shapes("dims", op, ["f32[5,?,2..3]", "i64[?]", "i64[2..3]"], "f32[2..3,?,2..3]"),
        Shapes("unknown-ranks", op, ["f32[5,2]", "i64[...]", "i64[...]", None, "f32[...]"], "f32[?,2]"),
        Shapes("unknown-table", op, ["f32[...]", "i64[4]", "i64[3]"], "f32[...]"),
    ]


def offsets_refusals(op: str) -> list[Refusal]:
    return [
        Refusal("c1-scalar-table", op, ["f32[]", "i64[4]", "i64[3]"]),
        Refusal("c2-indices", op, ["f32[5,2]", "i64[2,2]", "i64[3]"]),
        Refusal("c3-index", op, ["f32[5,2]", "i64{0,5}", "i64[3]"]),
        Refusal("c3-negative-index", op, ["f32[5,2]", "i64{0,-1}", "i64[3]"]),
        Refusal("c3-default", op, ["f32[5,2]", "i64[4]", "i64[3]", "i64[]{5}"]),
        Refusal("c3-negative-default", op, ["f32[5,2]", "i64[4]", "i64[3]", "i64[]{-2}"]),
        Refusal("c3-default-1d", op, ["f32[5,2]", "i64[4]", "i64[3]", "i64[1]"]),
        Refusal("c4-weights", op, ["f32[5,2]", "i64[4]", "i64[3]", "i64[]", "f32[3]"]),
        Refusal("c5-scalar", op, ["f32[5,2]", "i64[4]", "i64[]"]),
        Refusal("c5-descending", op, ["f32[5,2]", "i64[4]", "i64{0,3,2}"]),
        Refusal("c5-beyond", op, ["f32[5,2]", "i64[4]", "i64{0,5}"]),
        Refusal("c5-negative", op, ["f32[5,2]", "i64[4]", "i64{-1,5}"]),
        Refusal("ir301-boolean", op, ["boolean[5,2]", "i64[4]", "i64[3]"]),
        Refusal("ir302-indices", op, ["f32[5,2]", "i64[4]", "i32[3]"]),
        Refusal("ir302-weights", op, ["f32[5,2]", "i64[4]", "i64[3]", "i64[]", "f16[4]"]),
    ]


def offsets_cases(op: str, attributes: dict[str, Any] | None = None) -> list[Case]:
    # OpenVINO: goes wrong where the last bag is empty, where there are no indices and for a 1D table
    begins = i64(0, 2, 2)
    more: list[list[Any]] = [
        [],
        [np.array(0)],
        [np.array(-1)],
        *([[np.array(1), random(4, dtype=np.int32, seed=1)]] if (attributes or {}).get("reduction") != "mean" else []),
    ]
    return [
        Case(
            f"{np.dtype(t).name}-{list(shape)}-{len(extra)}{extra[0] if extra else ''}",
            op,
            [random(*shape, dtype=t), INDICES, begins, *extra[:1], *(a.astype(t) for a in extra[1:])],
            attributes or {},
        )
        for shape in [(5, 2), (5, 2, 1, 3)]
        for t in TYPES
        for extra in more
    ] + [Case("i32-indices", op, [TABLE, INDICES.astype(np.int32), begins.astype(np.int32)], attributes or {})]


def packed_values(op: str) -> list[Values]:
    """The specification's examples first."""
    summed = [[-2.1, -2.4], [-2.0, -2.2], [-0.2, 0.8]]
    rows: list[tuple[str, list[Any], Any]] = [
        ("spec-1", [TABLE, PAIRS], summed),
        ("spec-2", [TABLE, PAIRS, np.full((3, 2), 0.5, np.float32)], np.array(summed) / 2),
        ("no-indices", [TABLE, np.empty((2, 0), np.int64)], np.zeros((2, 2))),
        ("no-bags", [TABLE, np.empty((0, 2), np.int64)], np.empty((0, 2))),
        ("small", [SMALL, PAIRS], [[1, 1], [2, 0], [1, 1]]),
        ("small-i64", [SMALL.astype(np.int64), PAIRS], [[1, 1], [2, 0], [1, 1]]),
        ("rank-1", [TABLE[:, 0], PAIRS], [-2.1, -2.0, -0.2]),
        ("rank-3", [TABLE[:, :, None], PAIRS], np.array(summed)[:, :, None]),
        ("i8-wraps", [np.array([[100], [29]], np.int8), np.array([[0, 1]])], np.array([[-127]], np.int8)),
    ]
    return [Values(id, op, inputs, _as(inputs[0], expected), rtol=1e-5) for id, inputs, expected in rows]


def packed_shapes(op: str) -> list[Shapes]:
    return [
        Shapes("spec", op, ["f32[5,2]", "i64[3,2]", "f32[3,2]"], "f32[3,2]"),
        Shapes("dims", op, ["f32[5,?,2..3]", "i32[2..3,?]"], "f32[2..3,?,2..3]"),
        Shapes("unknown-indices", op, ["f32[5,2]", "i64[...]"], "f32[?,2]"),
        Shapes("unknown-table", op, ["f32[...]", "i64[3,2]"], "f32[...]"),
    ]


def packed_refusals(op: str) -> list[Refusal]:
    return [
        Refusal("c1-scalar-table", op, ["f32[]", "i64[3,2]"]),
        Refusal("c2-indices", op, ["f32[5,2]", "i64[4]"]),
        Refusal("c3-index", op, ["f32[5,2]", "i64[1,2]{0,5}"]),
        Refusal("c4-weights", op, ["f32[5,2]", "i64[3,2]", "f32[2,3]"]),
        Refusal("ir301-boolean", op, ["boolean[5,2]", "i64[3,2]"]),
        Refusal("ir301-indices", op, ["f32[5,2]", "u8[3,2]"]),
    ]


def packed_cases(op: str, attributes: dict[str, Any] | None = None) -> list[Case]:
    # OpenVINO: goes wrong where there are no indices and for a 1D table
    weighted = (attributes or {}).get("reduction") != "mean"
    return [
        Case(
            f"{np.dtype(t).name}-{list(shape)}-{len(weights)}",
            op,
            [random(*shape, dtype=t), PAIRS, *weights],
            attributes or {},
        )
        for shape in [(5, 2), (5, 2, 1, 3)]
        for t in TYPES
        for weights in ([], *([[random(3, 2, dtype=np.int32, seed=1).astype(t)]] if weighted else []))
    ] + [Case("i32-indices", op, [TABLE, PAIRS.astype(np.int32)], attributes or {})]
