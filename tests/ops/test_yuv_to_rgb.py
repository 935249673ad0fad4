"""NV12toRGB-8, NV12toBGR-8, I420toRGB-8 and I420toBGR-8."""

from typing import Any

import ml_dtypes
import numpy as np

from kit import *

_NV12 = ("NV12toRGB-8", "NV12toBGR-8")
_I420 = ("I420toRGB-8", "I420toBGR-8")
_OPS = _NV12 + _I420

_GREY = np.full((1, 2, 2, 1), 116, np.float32)  # 1.164 * 100 without colours


def _plane(*rows, dtype: Any = np.float32):
    return np.array(rows, dtype)[None, :, :, None]


def _image(*pixel, dtype: Any = np.float32):
    """An image of 2 x 2 equal pixels."""
    return np.full((1, 2, 2, 3), pixel, dtype)


def _yuv(*shape, dtype: Any = np.uint8):
    return np.random.default_rng(len(shape)).integers(0, 256, shape).astype(dtype)


VALUES = [
    *(Values(f"grey-{o}", o, [_plane([116, 116], [116, 116], [128, 128])], _image(116.4, 116.4, 116.4)) for o in _OPS),
    # u = 138, v = 128: blue gains 20.18, green loses 3.91
    Values("nv12-rgb", "NV12toRGB-8", [_plane([116, 116], [116, 116], [138, 128])], _image(116.4, 112.49, 136.58)),
    Values("nv12-bgr", "NV12toBGR-8", [_plane([116, 116], [116, 116], [138, 128])], _image(136.58, 112.49, 116.4)),
    Values("i420-rgb", "I420toRGB-8", [_plane([116, 116], [116, 116], [138, 128])], _image(116.4, 112.49, 136.58)),
    Values("i420-bgr", "I420toBGR-8", [_plane([116, 116], [116, 116], [138, 128])], _image(136.58, 112.49, 116.4)),
    Values("u8-rounds", "NV12toRGB-8", [_plane([116, 116], [116, 116], [138, 128], dtype=np.uint8)], _image(116, 112, 137, dtype=np.uint8)),
    Values("clipped", "NV12toRGB-8", [_plane([255, 255], [255, 255], [0, 255], dtype=np.uint8)], _image(255, 225, 20, dtype=np.uint8)),
    Values("bf16", "I420toRGB-8", [_plane([116, 116], [116, 116], [128, 128], dtype=ml_dtypes.bfloat16)], _image(116.5, 116.5, 116.5, dtype=ml_dtypes.bfloat16)),
    Values("two-planes", "NV12toRGB-8", [_GREY, f32([[[[138, 128]]]])], _image(116.4, 112.49, 136.58)),
    Values("three-planes", "I420toRGB-8", [_GREY, f32([[[[138]]]]), f32([[[[128]]]])], _image(116.4, 112.49, 136.58)),
    Values("planes-that-follow", "I420toRGB-8", [_plane(*[[16] * 4] * 4, [128, 138, 128, 128], [128, 128, 128, 128])],
           f32([[[[0, 0, 0]] * 2 + [[0, 0, 20.18]] * 2] * 2 + [[[0, 0, 0]] * 4] * 2])),
    Values("pairs-that-follow", "NV12toRGB-8", [_plane(*[[16] * 4] * 4, [128, 128, 138, 128], [128, 128, 128, 128])],
           f32([[[[0, 0, 0]] * 2 + [[0, 0, 20.18]] * 2] * 2 + [[[0, 0, 0]] * 4] * 2])),
]  # fmt: skip

SHAPES = [
    *(Shapes(f"spec-1-{o}", o, ["u8[1,720,640,1]"], "u8[1,480,640,3]") for o in _OPS),
    *(Shapes(f"spec-2-{o}", o, ["f32[1,480,640,1]", "f32[1,240,320,2]"], "f32[1,480,640,3]") for o in _NV12),
    *(
        Shapes(f"spec-2-{o}", o, ["f32[1,480,640,1]", "f32[1,240,320,1]", "f32[1,240,320,1]"], "f32[1,480,640,3]")
        for o in _I420
    ),
    Shapes("unknown-plane", "NV12toRGB-8", ["f32[?,?,3..8,?]"], "f32[?,?,3..8,3]"),
    Shapes("unknown-rank", "NV12toRGB-8", ["f32[...]"], "f32[?,?,?,3]"),
    Shapes("planes-meet", "NV12toRGB-8", ["f32[?,?,3..8,1]", "f32[4,5..6,?,2]"], "f32[4,10..12,3..8,3]"),
    Shapes("unknown-colours", "I420toBGR-8", ["f32[1,4,6,1]", "f32[...]", "f32[...]"], "f32[1,4,6,3]"),
]

_COLOURS: list[tuple[str, int, list[str]]] = [
    *((o, 2, []) for o in _NV12),
    *((o, 1, ["u8[1,2,3,1]"]) for o in _I420),
]

REFUSALS = [
    row
    for o in _OPS
    for row in (
        Refusal(f"c1-{o}", o, ["u8[720,640,1]"]),
        Refusal(f"c2-{o}", o, ["u8[1,720,640,3]"]),
        Refusal(f"c3-height-{o}", o, ["u8[1,721,640,1]"]),
        Refusal(f"c3-width-{o}", o, ["u8[1,720,641,1]"]),
        Refusal(f"ir301-{o}", o, ["i8[1,720,640,1]"]),
    )
] + [
    row
    for o, colours, others in _COLOURS
    for row in (
        Refusal(f"c1-colours-{o}", o, ["u8[1,4,6,1]", "u8[2,3]", *others]),
        Refusal(f"c4-batch-{o}", o, ["u8[1,4,6,1]", f"u8[2,2,3,{colours}]", *others]),
        Refusal(f"c4-height-{o}", o, ["u8[1,4,6,1]", f"u8[1,4,3,{colours}]", *others]),
        Refusal(f"c4-width-{o}", o, ["u8[1,4,6,1]", f"u8[1,2,6,{colours}]", *others]),
        Refusal(f"c4-channels-{o}", o, ["u8[1,4,6,1]", f"u8[1,2,3,{3 - colours}]", *others]),
        Refusal(f"ir302-{o}", o, ["u8[1,4,6,1]", f"f32[1,2,3,{colours}]", *others]),
    )
] + [
    Refusal(f"c5-{o}", o, ["u8[1,4,6,1]", "u8[1,2,3,1]"]) for o in _I420
]  # fmt: skip

CASES = [
    row
    for o in _OPS
    for t in (np.uint8, np.float32, np.float16, np.float64)
    for row in (
        # halves are rounded as their last bits have it
        Case(f"{o}-one-plane-{np.dtype(t).name}", o, [_yuv(2, 6, 8, 1, dtype=t)], atol=1 if t is np.uint8 else None),
        Case(
            f"{o}-planes-{np.dtype(t).name}",
            o,
            [
                _yuv(2, 4, 8, 1, dtype=t),
                *([_yuv(2, 2, 4, 2, dtype=t)] if o in _NV12 else [_yuv(2, 2, 4, 1, dtype=t)] * 2),
            ],
        ),
    )
] + [Case(f"{o}-empty", o, [np.zeros((0, 3, 2, 1), np.float32)]) for o in _OPS]
