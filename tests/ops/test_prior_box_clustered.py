"""PriorBoxClustered-1."""

from typing import Any

import numpy as np

from kit import *

_OP = "PriorBoxClustered-1"
_TWO: dict[str, Any] = {"width": [8.0, 120.0], "height": [4.0, 10.0], "offset": 0.5, "clip": False}
_IMAGE = [i64(1, 1), i64(50, 100)]


def _out(boxes: Any, *variance: float) -> np.ndarray:
    variances = np.broadcast_to(f32(variance or [0.1]), (len(boxes), 4))
    return np.stack([(f32(boxes) / f32([100, 50, 100, 50])).ravel(), variances.ravel()])


_BOXES = [[46, 23, 54, 27], [-10, 20, 110, 30]]
VALUES = [
    Values("no-step", _OP, _IMAGE, _out(_BOXES), _TWO),
    Values("steps", _OP, _IMAGE, _out(_BOXES), _TWO | {"step_w": 100, "step_h": 50}),
    Values("step", _OP, _IMAGE, _out([[x, y + 25, u, v + 25] for x, y, u, v in _BOXES]), _TWO | {"step": 100}),
    Values("step-for-the-other", _OP, _IMAGE, _out(_BOXES), _TWO | {"step": 100, "step_h": 50}),
    Values("clip", _OP, _IMAGE, _out([_BOXES[0], [0, 20, 100, 30]]), _TWO | {"clip": True}),
    Values("clip-is-the-default", _OP, _IMAGE, _out([[0, 0, 100, 50]]), {"width": 200, "height": 200, "offset": 0.5}),
    Values("size-1-is-the-default", _OP, _IMAGE, _out([[49.5, 24.5, 50.5, 25.5]]), {"offset": 0.5}),
    Values("variance-1", _OP, _IMAGE, _out(_BOXES, 0.5), _TWO | {"variance": 0.5}),
    Values("variance-4", _OP, _IMAGE, _out(_BOXES, 0.1, 0.2, 0.3, 0.4), _TWO | {"variance": [0.1, 0.2, 0.3, 0.4]}),
    Values("grid", _OP, [i64(2, 2), i64(50, 100)], _out([[x - 4, y - 2, x + 4, y + 2] for y in (5, 15) for x in (8, 24)]), {"width": 8, "height": 4, "step_w": 16, "step_h": 10, "offset": 0.5}),
    # OpenVINO's reference tests
    Values("reference", _OP, [i64(2, 2), i64(10, 10)], np.stack([f32([0, 0, 0.15, 0.15, 0.35, 0, 0.65, 0.15, 0, 0.35, 0.15, 0.65, 0.35, 0.35, 0.65, 0.65]), np.tile(f32([0.1, 0.2, 0.3, 0.4]), 4)]),
           {"width": 3, "height": 3, "variance": [0.1, 0.2, 0.3, 0.4], "offset": 0}),
    Values("no-points", _OP, [i64(0, 2), i64(50, 100)], np.zeros((2, 0), np.float32), _TWO),
]  # fmt: skip

_SPEC = {
    "clip": False, "height": [44.0, 10.0, 30.0, 19.0, 94.0, 32.0, 61.0, 53.0, 17.0], "offset": 0.5, "step": 16.0,
    "variance": [0.1, 0.1, 0.2, 0.2], "width": [86.0, 13.0, 57.0, 39.0, 68.0, 34.0, 142.0, 50.0, 23.0],
}  # fmt: skip
SHAPES = [
    Shapes("spec", _OP, ["i64{10,19}", "i64{180,320}"], "f32[2,6840]", _SPEC),
    Shapes("partly-known", _OP, ["i64{2,1..3}", "i64[2]"], "f32[2,16..48]", _TWO),
    Shapes("unknown-rank", _OP, ["i32[...]", "i64[...]"], "f32[2,?]", _TWO),
]

REFUSALS = [
    Refusal("c1-output-size", _OP, ["i64[2,1]", "i64[2]"], _TWO),
    Refusal("c1-image-size", _OP, ["i64[2]", "i64[3]"], _TWO),
    Refusal("c2", _OP, ["i64[2]", "i64[2]"], _TWO | {"variance": [0.1, 0.2, 0.3]}),
    Refusal("c3", _OP, ["i64[2]", "i64[2]"], _TWO | {"height": [4]}),
    Refusal("c4-width", _OP, ["i64[2]", "i64[2]"], _TWO | {"width": [4, 0]}),
    Refusal("c4-height", _OP, ["i64[2]", "i64[2]"], _TWO | {"height": [-1, 4]}),
    Refusal("ir301-floats", _OP, ["f32[2]", "f32[2]"], _TWO),
]

_GRID = [i64(3, 4), i64(37, 51)]
CASES = [
    Case(f"{id}-{clip}", _OP, _GRID, {"step_w": 0.0, "step_h": 0.0, "step": 0.0, "variance": []} | _TWO | attributes | {"clip": clip}, shapes=[0, 1])
    for clip in (False, True)
    for id, attributes in [
        ("no-step", {}), ("step", {"step": 7.0}), ("steps", {"step_w": 9.0, "step_h": 6.0}), ("step-w", {"step_w": 9.0}),
        ("step-for-the-other", {"step": 5.0, "step_h": 6.0}), ("variance", {"variance": [0.5]}),
    ]
] + [
    Case("spec", _OP, [i64(10, 19), i64(180, 320)], _SPEC, shapes=[0, 1]),
    Case("i32", _OP, [a.astype(np.int32) for a in _GRID], _TWO, shapes=[0, 1]),
]  # fmt: skip
