"""NMSRotated-13."""

import math
from typing import Any

import numpy as np

from kit import *

_OP = "NMSRotated-13"


def _inputs(boxes: Any, scores: Any, limit: int = 10, iou: float = 0.5, score: float = 0) -> list[np.ndarray]:
    return [f32(boxes), f32(scores), np.array(limit), f32(iou), f32(score)]


def _rows(*rows: list[Any]) -> tuple[np.ndarray, ...]:
    indices = i64(*[n for row in rows for n in row[:3]]).reshape(-1, 3)
    scores = f32([[*row[:2], row[3]] for row in rows]).reshape(-1, 3)
    return indices, scores, np.array([len(rows)])


_SQUARE, _QUARTER, _EIGHTH = [5, 5, 2, 2, 0], math.pi / 2, math.pi / 4
_BAR = [0, 0, 8, 1, 0.5]
VALUES = [
    # a square turned by a right angle is the same one; by half of it, 0.707 of both is common
    Values("right-angle", _OP, _inputs([[_SQUARE, [5, 5, 2, 2, _QUARTER]]], [[[0.9, 0.8]]], iou=0.99), _rows([0, 0, 0, 0.9])),
    Values("half-angle-dropped", _OP, _inputs([[_SQUARE, [5, 5, 2, 2, _EIGHTH]]], [[[0.9, 0.8]]], iou=0.7), _rows([0, 0, 0, 0.9])),
    Values("half-angle-kept", _OP, _inputs([[_SQUARE, [5, 5, 2, 2, _EIGHTH]]], [[[0.9, 0.8]]], iou=0.71), _rows([0, 0, 0, 0.9], [0, 0, 1, 0.8])),
    # two bars one after the other in the direction in which they point, clockwise or not
    Values("clockwise", _OP, _inputs([[_BAR, [8 * math.cos(0.5) / 8, 8 * math.sin(0.5) / 8, 8, 1, 0.5]]], [[[0.9, 0.8]]], iou=0.7), _rows([0, 0, 0, 0.9])),
    Values("counterclockwise", _OP, _inputs([[_BAR, [math.cos(0.5), math.sin(0.5), 8, 1, 0.5]]], [[[0.9, 0.8]]], iou=0.7), _rows([0, 0, 0, 0.9], [0, 0, 1, 0.8]), {"clockwise": False}),
    Values("no-area", _OP, _inputs([[[5, 5, 0, 2, 0], [5, 5, 0, 2, 0]]], [[[0.9, 0.8]]]), _rows([0, 0, 0, 0.9], [0, 0, 1, 0.8])),
    Values("apart", _OP, _inputs([[_SQUARE, [9, 9, 2, 2, 1]]], [[[0.8, 0.9]]], iou=0), _rows([0, 0, 1, 0.9], [0, 0, 0, 0.8])),
    Values("i32", _OP, _inputs([[_SQUARE]], [[[0.9]]]), (np.array([[0, 0, 0]], np.int32), f32([[0, 0, 0.9]]), np.array([1], np.int32)), {"output_type": "i32"}),
    Values("no-boxes", _OP, _inputs(np.ones((1, 0, 5)), np.ones((1, 2, 0))), _rows()),
]  # fmt: skip

SHAPES = [
    Shapes("spec", _OP, ["f32[3,100,5]", "f32[3,5,100]", "i64[]{10}", "f32[]", "f32[]"], ["i64[..150,3]", "f32[..150,3]", "i64[1]"]),
    Shapes("unknown-limit", _OP, ["f16[2,6,5]", "f16[2,3,6]", "i32[1]", "f16[1]", "f32[1]"], ["i32[..36,3]", "f32[..36,3]", "i32[1]"], {"output_type": "i32"}),
    Shapes("unknown-rank", _OP, ["f32[...]"] * 2 + ["i64[...]"] + ["f32[...]"] * 2, ["i64[?,3]", "f32[?,3]", "i64[1]"]),
]  # fmt: skip

_REST = ["i64[]", "f32[]", "f32[]"]
REFUSALS = [
    Refusal("c1-boxes", _OP, ["f32[6,5]", "f32[2,3,6]", *_REST]),
    Refusal("c1-box", _OP, ["f32[2,6,4]", "f32[2,3,6]", *_REST]),
    Refusal("c1-scores", _OP, ["f32[2,6,5]", "f32[2,6]", *_REST]),
    Refusal("c2-batches", _OP, ["f32[2,6,5]", "f32[1,3,6]", *_REST]),
    Refusal("c2-boxes", _OP, ["f32[2,6,5]", "f32[2,3,5]", *_REST]),
    Refusal("c3-limit", _OP, ["f32[2,6,5]", "f32[2,3,6]", "i64[2]", "f32[]", "f32[]"]),
    Refusal("c3-score", _OP, ["f32[2,6,5]", "f32[2,3,6]", "i64[]", "f32[]", "f32[1,1]"]),
    Refusal("c4", _OP, ["f32[2,6,5]", "f32[2,3,6]", *_REST], {"output_type": "f32"}),
    Refusal("ir301-integers", _OP, ["i32[2,6,5]", "f32[2,3,6]", *_REST]),
    Refusal("ir205-no-score-threshold", _OP, ["f32[2,6,5]", "f32[2,3,6]", *_REST[:2]]),
]


def _random(batches: int, classes: int, boxes: int, iou: float, dtype: Any = np.float32) -> list[np.ndarray]:
    place, size = random(batches, boxes, 2) * 3, abs(random(batches, boxes, 2, seed=1)) + 0.5
    angle, scores = random(batches, boxes, 1, seed=2) * 3, abs(random(batches, classes, boxes, seed=3))
    boxed = np.concatenate([place, size, angle], axis=2).astype(dtype)
    return [boxed, scores.astype(dtype), np.array(boxes), np.array(iou, dtype), np.array(0.3, dtype)]


CASES = [
    Case(f"{iou}-{clockwise}-{sort}", _OP, _random(2, 2, 40, iou), {"clockwise": clockwise, "sort_result_descending": sort}, shapes=[2])
    for iou in (0.05, 0.2, 0.5) for clockwise in (True, False) for sort in (True, False)
] + [
    Case("i32", _OP, _random(1, 1, 20, 0.3), {"output_type": "i32"}),
    Case("f16", _OP, _random(1, 2, 20, 0.3, np.float16), {}),
]  # fmt: skip


def test_overlap_of_aligned_boxes() -> None:
    """Without rotation, or with a right angle, IoU is that of plain boxes."""
    corners = np.abs(random(20, 4)) * 3
    low, high = np.minimum(corners[:, :2], corners[:, 2:]), np.maximum(corners[:, :2], corners[:, 2:])
    sides = np.minimum(high[0], high) - np.maximum(low[0], low)
    common, areas = np.maximum(sides, 0).prod(axis=1), (high - low).prod(axis=1)
    expected = common / (areas[0] + areas - common)
    for turned in (False, True):
        size, angle = (high - low)[:, ::-1] if turned else high - low, math.pi / 2 if turned else 0
        boxes = np.concatenate([(low + high) / 2, size, np.full((20, 1), angle)], axis=1)
        found = operation(_OP).overlap(boxes)(0, np.arange(20))  # type: ignore[attr-defined]
        np.testing.assert_allclose(found, expected, atol=1e-6)
