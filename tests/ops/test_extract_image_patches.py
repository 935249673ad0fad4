"""ExtractImagePatches-3."""

from typing import Any

import ml_dtypes
import numpy as np

from kit import *


def windows(sizes: str, strides: str, rates: str = "1,1", auto_pad: str = "valid") -> dict[str, Any]:
    return {"sizes": sizes, "strides": strides, "rates": rates, "auto_pad": auto_pad}


TEN, TWO = arange(1, 1, 10, 10, start=1), arange(1, 2, 5, 5, start=1)

VALUES = [
    *(
        Values(f"{dtype.__name__}", "ExtractImagePatches-3", [np.ones((1, 1, 2, 2), dtype)],
               np.ones((1, 4, 1, 1), dtype), windows("2,2", "1,1"))
        for dtype in (ml_dtypes.float8_e5m2, ml_dtypes.float8_e4m3fn, ml_dtypes.int4)
    ),
    Values(
        "spec-1", "ExtractImagePatches-3", [TEN],
        [[[[n, n + 5], [n + 50, n + 55]] for n in (1, 2, 3, 11, 12, 13, 21, 22, 23)]], windows("3,3", "5,5"),
    ),
    Values(
        "spec-2", "ExtractImagePatches-3", [TEN],
        [[[[n + column]] for n in (1, 11, 21, 31) for column in range(4)]], windows("4,4", "8,8"),
    ),
    Values(
        "spec-3", "ExtractImagePatches-3", [TEN],
        [[
            [[0, 0], [0, 89]], [[0, 0], [81, 90]], [[0, 0], [82, 0]], [[0, 0], [83, 0]],
            [[0, 9], [0, 99]], [[1, 10], [91, 100]], [[2, 0], [92, 0]], [[3, 0], [93, 0]],
            [[0, 19], [0, 0]], [[11, 20], [0, 0]], [[12, 0], [0, 0]], [[13, 0], [0, 0]],
            [[0, 29], [0, 0]], [[21, 30], [0, 0]], [[22, 0], [0, 0]], [[23, 0], [0, 0]],
        ]],
        windows("4,4", "9,9", auto_pad="same_upper"),
    ),
    Values(
        "spec-4", "ExtractImagePatches-3", [TEN],
        [[[[n, n + 5], [n + 50, n + 55]] for n in (1, 3, 5, 21, 23, 25, 41, 43, 45)]], windows("3,3", "5,5", "2,2"),
    ),
    Values(
        "spec-5", "ExtractImagePatches-3", [TWO],
        [[[[n, n + 3], [n + 15, n + 18]] for n in (1, 26, 2, 27, 6, 31, 7, 32)]], windows("2,2", "3,3"),
    ),
    Values(
        "same-lower", "ExtractImagePatches-3", [arange(1, 1, 3, 3, start=1)],
        [[[[0, 0], [0, 5]], [[0, 0], [4, 6]], [[0, 2], [0, 8]], [[1, 3], [7, 9]]]],
        windows("2,2", "2,2", auto_pad="same_lower"),
    ),
    Values("too-small", "ExtractImagePatches-3", [arange(1, 1, 3, 3)], np.empty((1, 16, 0, 0)), windows("4,4", "2,2")),
    Values("much-too-small", "ExtractImagePatches-3", [arange(1, 1, 3, 3)], np.empty((1, 36, 0, 0)), windows("6,6", "2,2")),
    Values("empty-same", "ExtractImagePatches-3", [np.empty((1, 1, 0, 3))], np.empty((1, 4, 0, 2)), windows("2,2", "2,2", auto_pad="same_upper")),
]  # fmt: skip

SHAPES = [
    Shapes("spec", "ExtractImagePatches-3", ["f32[64,3,10,10]"], "f32[64,27,2,2]", windows("3,3", "5,5")),
    Shapes("dims", "ExtractImagePatches-3", ["f32[?,3,3..10,?]"], "f32[?,27,1..2,?]", windows("3,3", "5,5")),
    Shapes(
        "dims-same",
        "ExtractImagePatches-3",
        ["f32[?,3,3..10,?]"],
        "f32[?,27,1..2,?]",
        windows("3,3", "5,5", auto_pad="same_lower"),
    ),
    Shapes("unknown-rank", "ExtractImagePatches-3", ["f32[...]"], "f32[?,?,?,?]", windows("3,3", "5,5")),
]

REFUSALS = [
    Refusal("c1-rank", "ExtractImagePatches-3", ["f32[3,10,10]"], windows("3,3", "5,5")),
    Refusal("c2-one-size", "ExtractImagePatches-3", ["f32[1,3,10,10]"], windows("3", "5,5")),
    Refusal("c2-no-stride", "ExtractImagePatches-3", ["f32[1,3,10,10]"], windows("3,3", "5,0")),
    Refusal("c2-no-rate", "ExtractImagePatches-3", ["f32[1,3,10,10]"], windows("3,3", "5,5", "0,1")),
]

CASES = [
    Case(
        f"{auto_pad}-{np.dtype(t).name}-{list(shape)}-{sizes}",
        "ExtractImagePatches-3",
        [random(*shape, dtype=t)],
        {"sizes": sizes, "strides": strides, "rates": rates, "auto_pad": auto_pad},
    )
    for auto_pad in ("valid", "same_upper", "same_lower")
    for shape, sizes, strides, rates in [
        ((2, 3, 7, 8), [3, 2], [2, 3], [1, 1]),
        ((1, 2, 6, 9), [2, 3], [1, 4], [2, 2]),
        ((0, 2, 3, 3), [2, 2], [1, 1], [1, 1]),
        ((1, 1, 3, 3), [1, 1], [2, 2], [1, 1]),
        ((1, 1, 3, 5), [4, 4], [2, 2], [1, 1]),
    ]
    for t in (*NUMERIC, np.bool_)
]
