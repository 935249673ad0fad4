"""ConvertLike-1."""

import numpy as np

from kit import *

VALUES = [
    Values("f32-like-i32", "ConvertLike-1", [f32([3.7, -1.5]), np.array([0], np.int32)], np.array([3, -1], np.int32)),
    Values(
        "i32-like-f16", "ConvertLike-1", [np.array([[1, 2]], np.int32), np.float16(0)], np.array([[1, 2]], np.float16)
    ),
    Values("like-itself", "ConvertLike-1", [f32(2.5), f32(0)], f32(2.5)),
    Values("like-nothing", "ConvertLike-1", [f32([2.5]), np.empty((0, 2), bool)], [True]),
]

SHAPES = [
    Shapes("spec", "ConvertLike-1", ["i32[256,56]", "f32[3]"], "f32[256,56]"),
    Shapes("partial", "ConvertLike-1", ["i32[2,?,1..8]", "u2[...]"], "u2[2,?,1..8]"),
    Shapes("unknown-rank", "ConvertLike-1", ["f32[...]", "i64[2]"], "i64[...]"),
    Shapes("exact-contents", "ConvertLike-1", ["i64{1,5}", "i32{7}"], "i32{1,5}"),
]

REFUSALS = [
    Refusal("ir301-from-string", "ConvertLike-1", ["string[2]", "f32[2]"]),
    Refusal("ir301-to-string", "ConvertLike-1", ["f32[2]", "string[2]"]),
    Refusal("ir301-to-weights", "ConvertLike-1", ["f32[2]", "u3[2]"]),
]

CASES = [
    *[
        Case(
            f"{source}-like-{to}",
            "ConvertLike-1",
            [(arange(2, 3) % most).astype(source), random(4, dtype=to)],
            constants=[1],
        )
        for source in ("bool", "uint8", "int32", "float32")
        for to, most in (("bool", 2), ("uint8", 7), ("int64", 7), ("float16", 7))
    ],
    *[
        Case(f"rank-{len(s)}{'-empty' * (0 in s)}", "ConvertLike-1", [arange(*s), random(2, dtype=np.int32)])
        for s in ((), (4,), (0, 2), (2, 1, 3), (2, 1, 3, 2), (1, 2, 1, 3, 2))
    ],
]
