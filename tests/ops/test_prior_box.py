"""PriorBox-1 and PriorBox-8."""

from itertools import product
from typing import Any

import numpy as np

from kit import *

_OPS = ("PriorBox-1", "PriorBox-8")
_ONE = {"offset": 0.5, "step": 100}  # one point in the middle of 100 x 100 pixels
_EMPTY: dict[str, Any] = {"min_size": [], "max_size": [], "aspect_ratio": [], "fixed_size": [], "fixed_ratio": [], "density": []}  # fmt: skip


def _around(*halves: tuple[float, float], x: float = 50, y: float = 50) -> list[list[float]]:
    """Boxes of these half widths and heights."""
    return [[x - w, y - h, x + w, y + h] for w, h in halves]


def _out(boxes: list[list[float]], *variance: float) -> np.ndarray:
    variances = np.broadcast_to(f32(variance or [0.1]), (len(boxes), 4))
    return np.stack([f32(boxes).ravel() / 100, variances.ravel()])


def _reference(boxes: list[list[float]]) -> np.ndarray:
    return np.stack([f32(boxes).ravel(), np.full(4 * len(boxes), 0.1, np.float32)])


_IMAGE = [i64(1, 1), i64(100, 100)]
_MIN, _MAX, _WIDE, _HIGH = (8, 8), (16, 16), (16, 4), (4, 16)
_ALL = {"min_size": [16], "max_size": [64], "aspect_ratio": [4]}
_ROWS: list[tuple[str, dict[str, Any], np.ndarray]] = [
    ("min", {"min_size": [16]}, _out(_around(_MIN))),
    ("max", {"min_size": [16], "max_size": [64]}, _out(_around(_MIN, _MAX))),
    ("ratio", {"min_size": [16], "aspect_ratio": [4]}, _out(_around(_MIN, _WIDE))),
    ("flip", {"min_size": [16], "aspect_ratio": [4], "flip": True}, _out(_around(_MIN, _WIDE, _HIGH))),
    ("ratio-once", {"min_size": [16], "aspect_ratio": [1, 4, 0.25, 4], "flip": True}, _out(_around(_MIN, _WIDE, _HIGH))),
    ("all", _ALL, _out(_around(_MIN, _MAX, _WIDE))),
    ("two", {"min_size": [16, 4], "max_size": [64], "aspect_ratio": [4]}, _out(_around(_MIN, _MAX, _WIDE, (2, 2), (4, 1)))),
    ("variance-1", {"min_size": [16], "variance": 0.3}, _out(_around(_MIN), 0.3)),
    ("variance-4", {"min_size": [16], "variance": [0.1, 0.2, 0.3, 0.4]}, _out(_around(_MIN), 0.1, 0.2, 0.3, 0.4)),
    ("outside", {"min_size": [120]}, _out([[-10, -10, 110, 110]])),
    ("clip", {"min_size": [120], "clip": True}, _out([[0, 0, 100, 100]])),
    ("scaled", {"min_size": [0.16, 0.04], "aspect_ratio": [4], "scale_all_sizes": False, "step": 1}, _out(_around(_MIN, (2, 2), _WIDE))),
    ("scaled-max", {"min_size": [0.16], "max_size": [0.3], "scale_all_sizes": False, "step": 1}, _out(_around(_MIN))),
    ("scaled-own-step", {"min_size": [0.16], "scale_all_sizes": False, "step": -1}, _out(_around(_MIN))),
    ("density", {"fixed_size": [8], "density": [2]}, _out([b for y in (48, 52) for x in (48, 52) for b in _around((4, 4), x=x, y=y)])),
    ("fixed-ratio", {"fixed_size": [8], "density": [1], "fixed_ratio": [1, 4]}, _out(_around((4, 4), (8, 2)))),
    ("fixed-aspect-ratio", {"fixed_size": [8], "density": [1], "aspect_ratio": [4]}, _out(_around((4, 4), (8, 2)))),
    # OpenVINO: of a fixed size that is not whole, squares are cut to it; half of an odd size is a whole number
    ("fixed-odd", {"fixed_size": [9], "density": [1]}, _out(_around((4.5, 4.5), x=50.5, y=50.5))),
    ("fixed-broken", {"fixed_size": [9.5], "density": [1], "aspect_ratio": [4]}, _out(_around((4.5, 4.5), (9.5, 2.375), x=50.5, y=50.5))),
    ("fixed-outside", {"fixed_size": [120], "density": [1]}, _out([[0, 0, 100, 100]])),
]  # fmt: skip

_GRID = [i64(2, 3), i64(40, 90)]
_POINTS = [(x, y) for y in (10, 30) for x in (15, 45, 75)]
VALUES = [
    *[Values(f"{id}-{op}", op, _IMAGE, expected, _ONE | attributes) for op in _OPS for id, attributes, expected in _ROWS],
    Values("order", "PriorBox-8", _IMAGE, _out(_around(_MIN, _WIDE, _MAX)), _ONE | _ALL | {"min_max_aspect_ratios_order": False}),
    # without a step the points are spread over the image, whatever the offset
    Values("grid", "PriorBox-1", _GRID, np.stack([f32([[(x - 2) / 90, (y - 2) / 40, (x + 2) / 90, (y + 2) / 40] for x, y in _POINTS]).ravel(), np.full(24, 0.1, np.float32)]), {"min_size": [4], "offset": 0.1}),
    Values("step", "PriorBox-1", [i64(1, 2), i64(100, 100)], _out(_around((2, 2), x=2, y=2) + _around((2, 2), x=10, y=2)), {"min_size": [4], "offset": 0.25, "step": 8}),
    # OpenVINO's reference tests
    Values(
        "reference-scaled", "PriorBox-1", [i64(2, 2), i64(10, 10)],
        _reference([
            [-0.75, -0.75, 1.25, 1.25], [-0.974745, -0.566497, 1.47474, 1.0665],
            [-0.25, -0.75, 1.75, 1.25], [-0.474745, -0.566497, 1.97474, 1.0665],
            [-0.75, -0.25, 1.25, 1.75], [-0.974745, -0.0664966, 1.47474, 1.5665],
            [-0.25, -0.25, 1.75, 1.75], [-0.474745, -0.0664966, 1.97474, 1.5665],
        ]),
        {"min_size": [2], "aspect_ratio": [1.5], "scale_all_sizes": False, "offset": 0}, 1e-5,
    ),
    Values(
        "reference-order", "PriorBox-8", [i64(2, 2), i64(10, 10)],
        _reference([
            [0.15, 0.15, 0.35, 0.35], [0.127526, 0.16835, 0.372474, 0.33165], [0.0918861, 0.0918861, 0.408114, 0.408114],
            [0.65, 0.15, 0.85, 0.35], [0.627526, 0.16835, 0.872474, 0.33165], [0.591886, 0.0918861, 0.908114, 0.408114],
            [0.15, 0.65, 0.35, 0.85], [0.127526, 0.66835, 0.372474, 0.83165], [0.0918861, 0.591886, 0.408114, 0.908114],
            [0.65, 0.65, 0.85, 0.85], [0.627526, 0.66835, 0.872474, 0.83165], [0.591886, 0.591886, 0.908114, 0.908114],
        ]),
        {"min_size": [2], "max_size": [5], "aspect_ratio": [1.5], "min_max_aspect_ratios_order": False, "offset": 0}, 1e-5,
    ),
    Values("i32", "PriorBox-1", [a.astype(np.int32) for a in _IMAGE], _ROWS[0][2], _ONE | _ROWS[0][1]),
    Values("no-points", "PriorBox-1", [i64(0, 3), i64(40, 90)], np.zeros((2, 0), np.float32), _ONE | {"min_size": [4]}),
    Values("no-columns", "PriorBox-1", [i64(2**48, 0), i64(40, 90)], np.zeros((2, 0), np.float32), _ONE | {"min_size": [4]}),
    Values("no-rows", "PriorBox-1", [i64(0, 2**48), i64(40, 90)], np.zeros((2, 0), np.float32), _ONE | {"min_size": [4]}),
]  # fmt: skip

_SPEC = {"aspect_ratio": 2.0, "flip": True, "max_size": 38.46, "min_size": 16.0, "offset": 0.5, "step": 16.0, "variance": [0.1, 0.1, 0.2, 0.2]}  # fmt: skip
SHAPES = [
    *[Shapes(f"spec-{op}", op, ["i64{24,42}", "i64{384,672}"], "f32[2,16128]", _SPEC) for op in _OPS],
    *[Shapes(f"density-{op}", op, ["i64{2,3}", "i64[2]"], "f32[2,624]", {"offset": 0.5, "fixed_size": [8, 9], "density": [2, 3], "aspect_ratio": [2]}) for op in _OPS],
    Shapes("dense", "PriorBox-8", ["i64{1,1}", "i64[2]"], f"f32[2,{4 * 10**12}]", {"offset": 0.5, "fixed_size": [8], "density": [10**6]}),
    Shapes("many", "PriorBox-8", ["i64{1,1}", "i64[2]"], f"f32[2,{4 * (10**4 * (10**4 + 1))}]", {"offset": 0.5, "min_size": [8] * 10**4, "aspect_ratio": [*range(2, 10**4 + 2)]}),
    Shapes("first-size-alone", "PriorBox-8", ["i64{1,1}", "i64[2]"], "f32[2,16]", {"offset": 0.5, "scale_all_sizes": False, "min_size": [8, 9, 10], "max_size": [20], "aspect_ratio": [2]}),
    Shapes("partly-known", "PriorBox-8", ["i64{2,1..3}", "i64[2]"], "f32[2,8..24]", {"offset": 0.5, "min_size": [4]}),
    Shapes("unknown", "PriorBox-8", ["i64[2]", "i64[2]"], "f32[2,?]", {"offset": 0.5, "min_size": [4]}),
    Shapes("unknown-rank", "PriorBox-1", ["i64[...]", "i64[...]"], "f32[2,?]", {"offset": 0.5, "min_size": [4]}),
]  # fmt: skip

REFUSALS = [
    Refusal(f"{id}-{op}", op, given, _ONE | attributes)
    for op in _OPS
    for id, given, attributes in [
        ("c1-output-size", ["i64[1,2]", "i64[2]"], {}),
        ("c1-image-size", ["i64[2]", "i64[4]"], {}),
        ("c2", ["i64[2]", "i64[2]"], {"variance": [0.1, 0.2]}),
        ("c3-few", ["i64[2]", "i64[2]"], {"fixed_size": [8, 9], "density": [2]}),
        ("c3-none", ["i64[2]", "i64[2]"], {"fixed_size": [8]}),
        ("c3-many", ["i64[2]", "i64[2]"], {"fixed_size": [8], "density": [2, 3]}),
        ("c4-size", ["i64[2]", "i64[2]"], {"min_size": [0]}),
        ("c4-ratio", ["i64[2]", "i64[2]"], {"aspect_ratio": [2, -1]}),
        ("c4-density", ["i64[2]", "i64[2]"], {"fixed_size": [8], "density": [0.5]}),
        ("ir301-floats", ["f32[2]", "f32[2]"], {}),
    ]
]


def _floats(attributes: dict[str, Any]) -> dict[str, Any]:
    """The attributes as OpenVINO's factory takes them."""
    lists = ("variance", *_EMPTY)
    return {k: [float(n) for n in np.atleast_1d(v)] if k in lists else float(v) if k in ("step", "offset") else v for k, v in (_EMPTY | attributes).items()}  # fmt: skip


def _mixed(flip: bool, clip: bool, scale: bool, order: bool) -> dict[str, Any]:
    """Boxes of several sizes and ratios."""
    sizes = {"min_size": [7.5, 16], "max_size": [20, 33]} if scale else {"min_size": [0.2, 0.4]}
    flags = {"flip": flip, "clip": clip, "scale_all_sizes": scale, "min_max_aspect_ratios_order": order}
    return _floats(sizes | {"aspect_ratio": [2, 3, 1], "variance": [0.1, 0.2, 0.3, 0.4], "offset": 0.3} | flags)


# constant sizes are folded by OpenVINO's core; its CPU plugin, which halves odd sizes otherwise, is not asked
# OpenVINO: where scale_all_sizes is false, max_size makes it write beyond its output
_MODELS = [(id, _floats(_ONE | attributes)) for id, attributes, _ in _ROWS if id != "scaled-max"]
CASES = [
    *[Case(f"{id}-{op}", op, _IMAGE, attributes, shapes=[0, 1]) for op in _OPS for id, attributes in _MODELS if "fixed-ratio" not in id],
    *[Case(f"grid-{id}-{op}", op, [i64(3, 4), i64(37, 51)], attributes | {"step": step}, shapes=[0, 1]) for op in _OPS for id, attributes in _MODELS if "fixed-ratio" not in id for step in (0.0, 7.0)],
    *[Case(f"fixed-ratio-{op}", op, _GRID, _floats({"offset": 0.5, "fixed_size": [8, 9], "density": [2, 3], "fixed_ratio": [1, 2], "aspect_ratio": [2]}), shapes=[0, 1]) for op in _OPS],
    *[Case(f"spec-{op}", op, [i64(24, 42), i64(384, 672)], _floats(_SPEC), shapes=[0, 1]) for op in _OPS],
    *[Case(f"mixed-{flags}", "PriorBox-8", [i64(3, 2), i64(37, 51)], _mixed(*flags), constants=[0, 1]) for flags in product((False, True), repeat=4)],
    # OpenVINO: its CPU plugin does not know this attribute
    Case("order", "PriorBox-8", _GRID, _floats(_ONE | _ALL | {"min_max_aspect_ratios_order": False}), constants=[0, 1], how="core"),
    Case("i32", "PriorBox-8", [a.astype(np.int32) for a in _GRID], _floats(_SPEC), shapes=[0, 1]),
]  # fmt: skip
