"""ReorgYolo-2."""

import numpy as np

from kit import *

_OP = "ReorgYolo-2"


def _loops(data: np.ndarray, stride: int) -> np.ndarray:
    """Element by element, as Darknet does."""
    n, c, h, w = data.shape
    out, fewer = np.empty_like(data), c // stride**2
    flat = data.ravel()
    for b, k, j, i in np.ndindex(n, c, h, w):
        block, k2 = k // fewer, k % fewer
        i2, j2 = i * stride + block % stride, j * stride + block // stride
        out[b, k, j, i] = flat[i2 + w * stride * (j2 + h * stride * (k2 + fewer * b))]
    return out.reshape(n, c * stride**2, h // stride, w // stride)


_PIXELS = arange(1, 4, 2, 2)
VALUES = [
    # the elements as 4 x 4 pixels: every second one of every second row, four times
    Values("by-hand", _OP, [_PIXELS], f32([0, 2, 8, 10, 1, 3, 9, 11, 4, 6, 12, 14, 5, 7, 13, 15]).reshape(1, 16, 1, 1), {"stride": 2}),
    *[
        Values(f"loops-{list(shape)}-{stride}", _OP, [arange(*shape)], _loops(arange(*shape), stride), {"stride": stride})
        for shape, stride in [((2, 8, 4, 6), 2), ((1, 64, 26, 26), 2), ((2, 9, 6, 3), 3), ((2, 5, 4, 4), 2), ((3, 2, 3, 2), 1)]
    ],
    Values("stride-twice", _OP, [_PIXELS], _loops(_PIXELS, 2), {"stride": "2, 2"}),
    Values("no-batch", _OP, [np.ones((0, 4, 2, 2), np.float32)], np.ones((0, 16, 1, 1), np.float32), {"stride": 2}),
    Values("strings", _OP, [_PIXELS.astype(str)], _loops(_PIXELS.astype(str), 2), {"stride": 2}),
]  # fmt: skip

SHAPES = [
    Shapes("spec", _OP, ["f32[1,64,26,26]"], "f32[1,256,13,13]", {"stride": 2}),
    Shapes("dynamic", _OP, ["f32[?,64,?,2..26]"], "f32[?,256,?,1..13]", {"stride": 2}),
    Shapes("unknown-rank", _OP, ["u8[...]"], "u8[?,?,?,?]", {"stride": 2}),
]

REFUSALS = [
    Refusal("c1", _OP, ["f32[64,26,26]"], {"stride": 2}),
    Refusal("c2-zero", _OP, ["f32[1,64,26,26]"], {"stride": 0}),
    Refusal("c2-two", _OP, ["f32[1,64,26,26]"], {"stride": "2,3"}),
    Refusal("c3-height", _OP, ["f32[1,64,25,26]"], {"stride": 2}),
    Refusal("c3-width", _OP, ["f32[1,64,26,25]"], {"stride": 2}),
    Refusal("c4", _OP, ["f32[1,3,26,26]"], {"stride": 2}),
]

CASES = [
    Case(f"{list(shape)}-{stride}", _OP, [random(*shape)], {"stride": [stride]})
    for shape, stride in [
        ((2, 8, 4, 6), 2),
        ((1, 64, 26, 26), 2),
        ((2, 9, 6, 3), 3),
        ((2, 5, 4, 4), 2),
        ((3, 2, 3, 2), 1),
    ]
] + [Case(np.dtype(t).name, _OP, [random(1, 4, 4, 4, dtype=t)], {"stride": [2]}) for t in NUMERIC]
