"""Tile-1."""

import numpy as np

from kit import *

VALUES = [
    Values("row", "Tile-1", [[1, 2], i64(3)], [1, 2, 1, 2, 1, 2]),
    Values("both", "Tile-1", [[[1, 2], [3, 4]], i64(2, 2)], [[1, 2, 1, 2], [3, 4, 3, 4]] * 2),
    Values("more-repeats", "Tile-1", [[1, 2], i64(2, 1, 2)], [[[1, 2, 1, 2]]] * 2),
    Values("fewer-repeats", "Tile-1", [[[1], [2]], i64(2)], [[1, 1], [2, 2]]),
    Values("scalar", "Tile-1", [7, i64(2)], [7, 7]),
    Values("no-repeats", "Tile-1", [[1, 2], i64()], [1, 2]),
    Values("nothing", "Tile-1", [[[1, 2]], i64(0, 2)], np.empty((0, 4))),
    Values("long-rows", "Tile-1", [arange(2, 3, 70), i64(2, 3, 1, 2)], np.tile(arange(2, 3, 70), (2, 3, 1, 2))),
    Values("short-and-long", "Tile-1", [arange(2, 40, 2), i64(3, 1, 2)], np.tile(arange(2, 40, 2), (3, 1, 2))),
    # OpenVINO: reads negative repeats as 0
    Values("negative", "Tile-1", [[[1, 2]], i64(2, -1)], np.empty((2, 0))),
]

SHAPES = [
    Shapes("spec-as-many", "Tile-1", ["f32[2,3,4]", "i64{1,2,3}"], "f32[2,6,12]"),
    Shapes("spec-more", "Tile-1", ["f32[2,3,4]", "i64{5,1,2,3}"], "f32[5,2,6,12]"),
    Shapes("spec-fewer", "Tile-1", ["f32[5,2,3,4]", "i64{1,2,3}"], "f32[5,2,6,12]"),
    Shapes("intervals", "Tile-1", ["f32[2..3,?,4]", "i64{2,3,1..5}"], "f32[4..6,?,4..20]"),
    Shapes("repeats-of-known-length", "Tile-1", ["f32[2,3]", "i64[3]"], "f32[?,?,?]"),
    Shapes("repeats-of-unknown-length", "Tile-1", ["f32[2,3]", "i64[?]"], "f32[...]"),
    Shapes("unknown-rank", "Tile-1", ["f32[...]", "i64{2,3}"], "f32[...]"),
    Shapes("string", "Tile-1", ["string[2]", "i32{2}"], "string[4]"),
    Shapes("carries-contents", "Tile-1", ["i64{?,2..3}", "i64{2}"], "i64{?,2..3,?,2..3}"),
    Shapes("unknown-repeats-of-contents", "Tile-1", ["i64{1,2}", "i64{1..2}"], "i64[2..4]"),
]

REFUSALS = [
    Refusal("c1-scalar", "Tile-1", ["f32[3]", "i64[]{2}"]),
    Refusal("c1-2d", "Tile-1", ["f32[3]", "i64[1,3]"]),
    Refusal("ir301-float-repeats", "Tile-1", ["f32[3]", "f32[1]"]),
]

_TILES = [
    ((), (2,)), ((), (2, 3)), ((3,), (1,)), ((3,), (2, 3)), ((2, 3), (3,)), ((2, 3), (2, 0)), ((0, 3), (2, 2)),
    ((2, 1, 3), (1, 2, 2)), ((2, 3, 1, 2), (2, 1, 3, 1)), ((1, 2, 1, 3, 2), (2, 2, 2, 1, 2)),
]  # fmt: skip

CASES = [
    Case(f"{np.dtype(t).name}-{list(data)}-{list(repeats)}", "Tile-1", [random(*data, dtype=t), i64(*repeats)], shapes=[1])
    for data, repeats in _TILES for t in (*NUMERIC, np.bool_)
] + [
    Case("i32-repeats", "Tile-1", [arange(2, 3), np.array([2, 2], np.int32)], shapes=[1]),
    Case("negative", "Tile-1", [arange(2, 3), i64(2, -1)], shapes=[1]),
]  # fmt: skip
