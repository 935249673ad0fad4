"""Boxes and rows that the tests of MatrixNms and MulticlassNms share."""

from __future__ import annotations

from typing import Any

import numpy as np

from kit import Refusal, Shapes, f32, random

BOXES = f32([[0, 0, 1, 1], [0, 0.1, 1, 1.1], [0, -0.1, 1, 0.9], [0, 10, 1, 11], [0, 10.1, 1, 11.1], [0, 100, 1, 101]])
SCORES = f32([0.9, 0.75, 0.6, 0.95, 0.5, 0.3])


def rows(boxes: np.ndarray, found: list[tuple[int, int, float]], counts: list[int]) -> tuple[np.ndarray, ...]:
    """The outputs for boxes [batches, n, 4]: for each detection its class, its place and its score."""
    flat = boxes.reshape(-1, 4)
    outputs = f32([[cls, score, *flat[place]] for cls, place, score in found]).reshape(-1, 6)
    return outputs, np.array([[place] for _, place, _ in found], np.int64).reshape(-1, 1), np.array(counts)


def boxes_and_scores(batches: int, classes: int, count: int, dtype: Any = np.float32) -> list[np.ndarray]:
    """Boxes that overlap much, some of them with no area, and scores in [0, 1]."""
    low, size = random(batches, count, 2), abs(random(batches, count, 2, seed=1))
    scores = random(batches, classes, count, seed=2) / 4 + 0.5
    return [np.concatenate([low, low + size], axis=2).astype(dtype), scores.astype(dtype)]


MODES: list[tuple[str, dict[str, Any]]] = [
    ("plain", {}),
    *(
        (f"{sort}-{across}", {"sort_result_type": sort, "sort_result_across_batch": across, "keep_top_k": 7})
        for sort in ("score", "classid", "none")
        for across in (False, True)
    ),
    ("score-threshold", {"score_threshold": 0.6}),
    ("nms-top-k", {"nms_top_k": 3}),
    ("background", {"background_class": 1, "output_type": "i32"}),
    ("not-normalized", {"normalized": False}),
]
"""Attributes to try."""


def shapes_of(op: str) -> list[Shapes]:
    def row(id: str, given: list[str | None], dims: str, batches: str, **attributes: Any) -> Shapes:
        type = attributes.get("output_type", "i64")
        return Shapes(
            f"{id}-{op}", op, given, [f"f32[{dims},6]", f"{type}[{dims},1]", f"{type}[{batches}]"], attributes
        )

    spec: list[str | None] = ["f32[3,100,4]", "f32[3,5,100]"]
    return [
        row("spec", spec, "..1500", "3", decay_function="gaussian", sort_result="score")
        if op.startswith("Matrix")
        else row("spec", spec, "..1500", "3", sort_result="score", nms_eta=0.0, iou_threshold=0.2),
        row("nms-top-k", spec, "..150", "3", nms_top_k=10, output_type="i32"),
        row("keep-top-k", spec, "..60", "3", keep_top_k=20),
        row("keep-top-k-many", spec, "..1500", "3", keep_top_k=2000),
        row("scores-tell", ["f32[?,?,4]", "f32[3,5,100]"], "..1500", "3"),
        row("unknown-boxes", ["f32[3,?,4]", "f32[3,5,?]"], "?", "3"),
        row("unknown-boxes-keep-top-k", ["f32[3,?,4]", "f32[3,5,?]"], "..60", "3", keep_top_k=20),
        row("unknown-rank", ["f32[...]", "f32[...]"], "?", "?"),
    ]


def refusals_of(op: str) -> list[Refusal]:
    plain: list[str | None] = ["f32[3,100,4]", "f32[3,5,100]"]
    return [
        Refusal(f"c1-boxes-{op}", op, ["f32[3,100]", "f32[3,5,100]"]),
        Refusal(f"c1-box-{op}", op, ["f32[3,100,5]", "f32[3,5,100]"]),
        Refusal(f"c1-scores-{op}", op, ["f32[3,100,4]", "f32[3,100]"]),
        Refusal(f"c2-batches-{op}", op, ["f32[3,100,4]", "f32[2,5,100]"]),
        Refusal(f"c2-boxes-{op}", op, ["f32[3,100,4]", "f32[3,5,99]"]),
        Refusal(f"c3-nms-top-k-{op}", op, plain, {"nms_top_k": -2}),
        Refusal(f"c3-keep-top-k-{op}", op, plain, {"keep_top_k": -2}),
        Refusal(f"c3-background-{op}", op, plain, {"background_class": -2}),
        Refusal(f"c4-{op}", op, plain, {"output_type": "f32"}),
        Refusal(f"ir301-integers-{op}", op, ["i32[3,100,4]", "i32[3,5,100]"]),
        Refusal(f"ir302-types-{op}", op, ["f32[3,100,4]", "f16[3,5,100]"]),
    ]
