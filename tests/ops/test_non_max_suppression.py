"""NonMaxSuppression-1, -3, -4, -5 and -9."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irrun
from kit import *
from nets import Net

_NEWEST, _NEW, _OLD = "NonMaxSuppression-9", ("NonMaxSuppression-5", "NonMaxSuppression-9"), (1, 3, 4)

# ONNX's and OpenVINO's tests
_BOXES = [[0, 0, 1, 1], [0, 0.1, 1, 1.1], [0, -0.1, 1, 0.9], [0, 10, 1, 11], [0, 10.1, 1, 11.1], [0, 100, 1, 101]]
_FLIPPED = [[1, 1, 0, 0], [0, 0.1, 1, 1.1], [0, 0.9, 1, -0.1], [0, 10, 1, 11], [1, 10.1, 0, 11.1], [1, 101, 0, 100]]
_CENTERS = [[0.5, y, 1, 1] for y in (0.5, 0.6, 0.4, 10.5, 10.6, 100.5)]
_SCORES = [0.9, 0.75, 0.6, 0.95, 0.5, 0.3]


def _inputs(boxes: Any, scores: Any, limit: int = 3, iou: float = 0.5, score: float = 0) -> list[np.ndarray]:
    return [f32(boxes), f32(scores), np.array(limit), f32(iou), f32(score)]


def _rows(rows: list[list[int]], scores: list[float]) -> tuple[np.ndarray, ...]:
    """All three outputs."""
    indices = np.array(rows, np.int64).reshape(-1, 3)
    return indices, f32([[*row[:2], s] for row, s in zip(rows, scores)]).reshape(-1, 3), np.array([len(rows)])


_KEPT = _rows([[0, 0, 3], [0, 0, 0], [0, 0, 5]], [0.95, 0.9, 0.3])
_EXAMPLES: list[tuple[str, list[np.ndarray], tuple[np.ndarray, ...], dict[str, Any]]] = [
    ("corner", _inputs([_BOXES], [[_SCORES]]), _KEPT, {}),
    ("flipped", _inputs([_FLIPPED], [[_SCORES]]), _KEPT, {}),
    ("center", _inputs([_CENTERS], [[_SCORES]]), _KEPT, {"box_encoding": "center"}),
    ("few-bits", _inputs([[[0, 0, 2, 1], [0, 0, 2, 1], [0, 2, 2, 3], [3, 3, 4, 4]]], [[[1.5, 1, 0.5, 3]]]), _rows([[0, 0, 3], [0, 0, 0], [0, 0, 2]], [3, 1.5, 0.5]), {}),
    ("identical", _inputs([[[0, 0, 1, 1]] * 10], [[[0.9] * 10]]), _rows([[0, 0, 0]], [0.9]), {}),
    ("limit", _inputs([_BOXES], [[_SCORES]], 2), _rows([[0, 0, 3], [0, 0, 0]], [0.95, 0.9]), {}),
    ("single", _inputs([[[0, 0, 1, 1]]], [[[0.9]]]), _rows([[0, 0, 0]], [0.9]), {}),
    ("iou-and-scores", _inputs([_BOXES], [[_SCORES]], 2, score=0.4), _rows([[0, 0, 3], [0, 0, 0]], [0.95, 0.9]), {}),
    ("two-classes", _inputs([_BOXES], [[_SCORES] * 2], 2), _rows([[0, 0, 3], [0, 1, 3], [0, 0, 0], [0, 1, 0]], [0.95, 0.95, 0.9, 0.9]), {}),
    ("two-batches", _inputs([_BOXES] * 2, [[_SCORES]] * 2, 2), _rows([[0, 0, 3], [1, 0, 3], [0, 0, 0], [1, 0, 0]], [0.95, 0.95, 0.9, 0.9]), {}),
    ("two-batches-unsorted", _inputs([_BOXES] * 2, [[_SCORES]] * 2, 2), _rows([[0, 0, 3], [0, 0, 0], [1, 0, 3], [1, 0, 0]], [0.95, 0.9, 0.95, 0.9]), {"sort_result_descending": False}),
]  # fmt: skip
_HALF = [[[0, 0, 1, 2], [0, 0, 1, 1], [5, 5, 6, 6]]]  # the IoU of the first two is exactly a half
_NEAR = f32([[[0, 0, 1, 1], [0, 0.9, 1, 1.9], [0, 1, 1, 2], [5, 5, 6, 6]]])  # the first and the third only touch
_TIED = f32([[[0, 0, 1, 1], [2, 2, 3, 3], [4, 4, 5, 5]]])


def _soft(sigma: float, iou: float) -> list[np.ndarray]:
    return [*_inputs(_HALF, [[[0.9, 0.8, 0.7]]], iou=iou), f32(sigma)]


_SOFT = 0.8 * np.exp(-0.5 * 0.25 / 0.5)
VALUES = [
    *[Values(f"{id}-{op}", op, inputs, expected, attributes) for op in _NEW for id, inputs, expected, attributes in _EXAMPLES],
    *[Values(f"{id}-{n}", f"NonMaxSuppression-{n}", inputs, expected[0], attributes) for n in (4,) for id, inputs, expected, attributes in _EXAMPLES if id not in ("identical",)],
    # OpenVINO: its CPU plugin drops where the IoU equals the threshold
    Values("iou-at-threshold", _NEWEST, _inputs(_HALF, [[[0.9, 0.8, 0.7]]]), _rows([[0, 0, 0], [0, 0, 1], [0, 0, 2]], [0.9, 0.8, 0.7])),
    # OpenVINO: drops it, where the specification keeps it
    Values("score-at-threshold", _NEWEST, _inputs(_HALF, [[[0.9, 0.8, 0.7]]], score=float(f32(0.8))), _rows([[0, 0, 0]], [0.9])),
    Values("ties", _NEWEST, _inputs(_TIED, [[[0.5, 0.5, 0.5], [0.5, 0.6, 0.5]]]), _rows([[0, 1, 1], [0, 0, 0], [0, 0, 1], [0, 0, 2], [0, 1, 0], [0, 1, 2]], [0.6, 0.5, 0.5, 0.5, 0.5, 0.5])),
    Values("no-area", _NEWEST, _inputs([[[0, 0, 0, 0], [0, 0, 0, 0]]], [[[0.5, 0.6]]]), _rows([[0, 0, 1], [0, 0, 0]], [0.6, 0.5])),
    Values("nan-score", _NEWEST, _inputs(_TIED, [[[0.5, np.nan, 0.6]]]), _rows([[0, 0, 2], [0, 0, 0]], [0.6, 0.5])),
    Values("soft-9", _NEW[1], _soft(0.5, 0.1), _rows([[0, 0, 0], [0, 0, 2], [0, 0, 1]], [0.9, 0.7, float(_SOFT)])),
    Values("soft-5", _NEW[0], _soft(0.5, 0.6), _rows([[0, 0, 0], [0, 0, 2], [0, 0, 1]], [0.9, 0.7, float(_SOFT)])),
    # OpenVINO: its CPU plugin gives what version 9 does
    Values("soft-5-beyond-threshold", _NEW[0], _soft(0.5, 0.1), _rows([[0, 0, 0], [0, 0, 2]], [0.9, 0.7])),
    Values("soft-limit", _NEW[1], [*_inputs(_HALF, [[[0.9, 0.8, 0.7]]], 2), f32(0.5)], _rows([[0, 0, 0], [0, 0, 2]], [0.9, 0.7])),
    Values("soft-score-threshold", _NEW[1], [*_inputs(_HALF, [[[0.9, 0.8, 0.7]]], 3, score=0.65), f32(0.5)], _rows([[0, 0, 0], [0, 0, 2]], [0.9, 0.7])),
    # the page calls the thresholds' default both 0 and "keep all boxes": 0 is what its formula, ONNX and OpenVINO have
    *[Values(f"no-thresholds-{op}", op, [_NEAR, f32([[[0.9, 0.8, 0.7, -0.5]]]), np.array(4)], _rows([[0, 0, 0], [0, 0, 2]], [0.9, 0.7])) for op in _NEW],
    Values("no-thresholds-4", "NonMaxSuppression-4", [_NEAR, f32([[[0.9, 0.8, 0.7, -0.5]]]), np.array(2)], np.array([[0, 0, 0], [0, 0, 2]])),
    Values("no-limit-given", _NEWEST, _inputs([_BOXES], [[_SCORES]])[:2], _rows([], [])),
    Values("negative-limit", _NEWEST, _inputs([_BOXES], [[_SCORES]], -1), _rows([], [])),
    Values("no-boxes", _NEWEST, _inputs(np.ones((1, 0, 4)), np.ones((1, 2, 0))), _rows([], [])),
    Values("i32", _NEWEST, _inputs([_BOXES], [[_SCORES]]), (_KEPT[0].astype(np.int32), _KEPT[1], np.array([3], np.int32)), {"output_type": "i32"}),
    Values("f16", _NEWEST, [f32([_BOXES]).astype(np.float16), f32([[_SCORES]]).astype(np.float16), np.array([3]), np.array([0.5], np.float16)], (_KEPT[0], _KEPT[1].astype(np.float16).astype(np.float32), _KEPT[2])),
    # what is left over holds -1
    Values("left-over-4", "NonMaxSuppression-4", _inputs([_BOXES] * 2, [[_SCORES]] * 2, 2, score=0.94), np.array([[0, 0, 3], [1, 0, 3], [-1, -1, -1], [-1, -1, -1]])),
    Values("left-over-3", "NonMaxSuppression-3", _inputs([_BOXES], [[_SCORES]], 2, score=0.94), np.array([[0, 0, 3], [-1, -1, -1]], np.int32), {"output_type": "i32"}),
    Values("left-over-1", "NonMaxSuppression-1", _inputs([_BOXES], [[_SCORES]], 9), np.array([[0, 0, 3], [0, 0, 0], [0, 0, 5], *[[-1] * 3] * 3])),
    # at most num_boxes rows, however many were kept
    Values("cut-1", "NonMaxSuppression-1", _inputs([_BOXES[::5]] * 2, [[_SCORES[::5]]] * 2), np.array([[0, 0, 0], [1, 0, 0]])),
    *[Values(f"few-bits-{n}", f"NonMaxSuppression-{n}", _EXAMPLES[3][1], _EXAMPLES[3][2][0]) for n in (1, 3)],
    *[Values(f"negative-limit-{n}", f"NonMaxSuppression-{n}", _inputs([_BOXES], [[_SCORES]], -1), np.zeros((0, 3), np.int64)) for n in (1, 3, 4)],
    Values("no-limit-given-1", "NonMaxSuppression-1", _inputs([_BOXES], [[_SCORES]])[:2], np.zeros((0, 3), np.int64)),
]  # fmt: skip

SHAPES = [
    *[Shapes(f"spec-{op}", op, ["f32[3,100,4]", "f32[3,5,100]", "i64[]{10}", "f32[]", "f32[]", "f32[]"], ["i64[..150,3]", "f32[..150,3]", "i64[1]"]) for op in _NEW],
    Shapes("spec-4", "NonMaxSuppression-4", ["f32[3,100,4]", "f32[3,5,100]", "i64[]{10}", "f32[]", "f32[]"], "i64[150,3]"),
    *[Shapes(f"spec-{n}", f"NonMaxSuppression-{n}", ["f32[1,1000,4]", "f32[1,1,1000]", "i64[]{2000}", "f32[]", "f32[]"], "i64[1000,3]") for n in (1, 3)],
    *[Shapes(f"few-{n}", f"NonMaxSuppression-{n}", ["f32[2,6,4]", "f32[2,3,6]", "i32[]{1}"], "i64[3,3]") for n in (1, 3)],
    *[Shapes(f"unknown-limit-{n}", f"NonMaxSuppression-{n}", ["f32[2,6,4]", "f32[2,3,6]", "i32[]"], "i64[..6,3]") for n in (1, 3)],
    Shapes("unknown-limit-4", "NonMaxSuppression-4", ["f32[2,6,4]", "f32[2,3,6]", "i32[]"], "i64[..36,3]"),
    Shapes("unknown-limit", _NEWEST, ["f32[2,6,4]", "f32[2,3,6]", "i32[1]", "f16[1]"], ["i32[..36,3]", "f32[..36,3]", "i32[1]"], {"output_type": "i32"}),
    Shapes("scores-tell", _NEWEST, ["f32[?,?,4]", "f32[2,3,6]", "i64[1]{4}"], ["i64[..24,3]", "f32[..24,3]", "i64[1]"]),
    Shapes("unknown-classes", _NEWEST, ["f32[2,6,4]", "f32[2,?,6]", "i64[1]{4}"], ["i64[?,3]", "f32[?,3]", "i64[1]"]),
    Shapes("unknown-rank", _NEWEST, ["f32[...]", "f32[...]", "i64[...]", "f32[...]", "f32[...]", "f32[...]"], ["i64[?,3]", "f32[?,3]", "i64[1]"]),
    Shapes("no-limit-given", _NEWEST, ["f32[2,6,4]", "f32[2,3,6]"], ["i64[0,3]", "f32[0,3]", "i64[1]"]),
]  # fmt: skip

REFUSALS = [
    *[
        Refusal(f"{id}-{n}", f"NonMaxSuppression-{n}", given)
        for n in (1, 3, 4, 5, 9)
        for id, given in [
            ("c1-boxes", ["f32[6,4]", "f32[2,3,6]"]),
            ("c1-box", ["f32[2,6,5]", "f32[2,3,6]"]),
            ("c1-scores", ["f32[2,6,4]", "f32[2,6]"]),
            ("c2-batches", ["f32[2,6,4]", "f32[1,3,6]"]),
            ("c2-boxes", ["f32[2,6,4]", "f32[2,3,5]"]),
            ("c3-limit", ["f32[2,6,4]", "f32[2,3,6]", "i64[2]"]),
            ("c3-iou", ["f32[2,6,4]", "f32[2,3,6]", "i64[]", "f32[1,1]"]),
            ("c3-score", ["f32[2,6,4]", "f32[2,3,6]", "i64[]", "f32[]", "f32[0]"]),
            ("ir301-integers", ["i32[2,6,4]", "i32[2,3,6]"]),
            ("ir301-float-limit", ["f32[2,6,4]", "f32[2,3,6]", "f32[]"]),
        ]
    ],
    *[Refusal(f"c3-1d-{n}", f"NonMaxSuppression-{n}", ["f32[2,6,4]", "f32[2,3,6]", "i64[1]"]) for n in _OLD],
    *[Refusal(f"c4-{n}", f"NonMaxSuppression-{n}", ["f32[2,6,4]", "f32[2,3,6]"], {"output_type": "u8"}) for n in (3, 4, 5, 9)],
    Refusal("c3-sigma", _NEWEST, ["f32[2,6,4]", "f32[2,3,6]", "i64[]", "f32[]", "f32[]", "f32[2]"]),
    Refusal("ir205-sigma", "NonMaxSuppression-4", ["f32[2,6,4]", "f32[2,3,6]", "i64[]", "f32[]", "f32[]", "f32[]"]),
]  # fmt: skip


def _random(batches: int, classes: int, boxes: int, limit: int, dtype: Any = np.float32) -> list[np.ndarray]:
    scores = random(batches, classes, boxes, dtype=dtype)
    return [random(batches, boxes, 4, dtype=dtype), scores, np.array(limit), np.array(0.3, dtype), np.array(0.2, dtype)]


_CORNER, _CENTER = {"box_encoding": "corner"}, {"box_encoding": "center"}
_UNSORTED = {"sort_result_descending": False}
CASES = [
    Case(f"{op}-{id}", op, inputs, attributes, shapes=[2])
    for op in _NEW
    for id, inputs, attributes in [
        *[(id, inputs, attributes) for id, inputs, _, attributes in _EXAMPLES],
        ("random", _random(2, 3, 30, 10), _CORNER),
        ("random-center", _random(2, 3, 30, 100), _CENTER),
        ("random-unsorted", _random(2, 3, 30, 10), _UNSORTED),
        ("one-class", _random(1, 1, 50, 50), _CORNER),
        ("i32", _random(2, 3, 30, 10), {"output_type": "i32"}),
        ("f16", _random(1, 2, 20, 10, np.float16), _CORNER),
        ("nothing-kept", [*_random(2, 3, 5, 10)[:4], f32(3)], _CORNER),
        ("one-element", [a if n < 2 else a.reshape(1) for n, a in enumerate(_random(2, 3, 30, 10))], _CORNER),
    ]
] + [
    Case("soft", _NEWEST, [*_random(2, 3, 30, 10), f32(0.4)], _CORNER),
    Case("soft-center", _NEWEST, [*_random(2, 2, 30, 40)[:4], f32(0.01), f32(0.2)], _CENTER | _UNSORTED),
    # OpenVINO: the number of boxes is not initialised where there are none
    Case("no-boxes", _NEWEST, _random(2, 3, 0, 10), _CORNER, shapes=[2], expected=_rows([], [])),
    Case("soft-small", _NEWEST, [f32([_BOXES]), f32([[_SCORES]]), np.array(6), f32(0.5), f32(0), f32(0.5)], _CORNER),
] + [
    # OpenVINO: its CPU plugin gives no rows of -1, so that only examples without any can be compared
    Case(f"{n}-{id}", f"NonMaxSuppression-{n}", inputs, attributes, shapes=[2])
    for n in _OLD
    for id, inputs, _, attributes in _EXAMPLES
    if id in ("corner", "flipped", "center", "limit", "single", "iou-and-scores")
]  # fmt: skip


@pytest.mark.parametrize(
    ("version", "batches", "expected"),
    [(1, "2", ["IR406"]), (3, "2", ["IR406"]), (4, "2", []), (1, "1", []), (3, "?", [])],
)
def test_several_batches_of_old_versions(version: int, batches: str, expected: list[str], tmp_path: Path) -> None:
    net = Net()
    inputs = [net.parameter("f32", f"{batches},5,4"), net.parameter("f32", f"{batches},3,5")]
    inputs.append(net.const("i64", "", (2).to_bytes(8, "little")))
    rows = "12" if version == 4 else "5"
    net.result(net.add("NonMaxSuppression", inputs, [("I64", f"{rows},3")], opset=f"opset{version}"))
    path = net.save(tmp_path)
    assert [finding.code for finding in irrun.check(path) if finding.code != "IR401"] == expected
