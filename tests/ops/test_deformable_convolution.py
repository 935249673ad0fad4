"""DeformableConvolution-1 and DeformableConvolution-8."""

from typing import Any

import ml_dtypes
import numpy as np

from kit import *


def _attributes(**given: Any) -> dict[str, Any]:
    plain = {"strides": [1, 1], "pads_begin": [0, 0], "pads_end": [0, 0], "dilations": [1, 1], "auto_pad": "explicit"}
    return plain | given


_PAD = {"bilinear_interpolation_pad": True}
_IMAGE = np.array([[[[1, 2], [3, 4]]]], np.float32)
_ONE = np.ones((1, 1, 1, 1), np.float32)


def _move(y: float, x: float, dtype: Any = np.float32) -> np.ndarray:
    """One offset for all four windows of a 1×1 kernel."""
    return np.broadcast_to(np.array([y, x], dtype).reshape(1, 2, 1, 1), (1, 2, 2, 2)).copy()


def _image(*rows: list[float]) -> np.ndarray:
    return np.array([[rows]], np.float32)


VALUES = [
    Values("no-offset", "DeformableConvolution-1", [_IMAGE, _move(0, 0), _ONE], _IMAGE, _attributes()),
    Values("no-columns", "DeformableConvolution-8", [np.ones((1, 1, 2, 0), np.float32), _move(0.5, 0.5), _ONE], _image([0, 0], [0, 0]), _attributes(pads_end=[0, 2])),
    Values("y-before-x", "DeformableConvolution-1", [_IMAGE, _move(1, 0), _ONE], _image([3, 4], [0, 0]), _attributes()),
    Values("between", "DeformableConvolution-1", [_IMAGE, _move(0, 0.25), _ONE], _image([1.25, 2], [3.25, 4]), _attributes()),
    Values("between-fading", "DeformableConvolution-8", [_IMAGE, _move(0, 0.25), _ONE], _image([1.25, 1.5], [3.25, 3]), _attributes(**_PAD)),
    Values("before-the-first", "DeformableConvolution-8", [_IMAGE, _move(0, -0.25), _ONE], _image([0, 1.75], [0, 3.75]), _attributes()),
    Values("before-the-first-fading", "DeformableConvolution-8", [_IMAGE, _move(0, -0.25), _ONE], _image([0.75, 1.75], [2.25, 3.75]), _attributes(**_PAD)),
    Values("mask", "DeformableConvolution-8", [_IMAGE, _move(0, 0), _ONE, np.array([[[[1, 0], [2, 0.5]]]], np.float32)], _image([1, 0], [6, 2]), _attributes()),
    Values("far-away", "DeformableConvolution-8", [_IMAGE, _move(0, 9), _ONE], np.zeros_like(_IMAGE), _attributes()),
    # OpenVINO: crashes
    Values("nowhere", "DeformableConvolution-8", [_IMAGE, _move(np.nan, np.inf), _ONE], np.zeros_like(_IMAGE), _attributes()),
    Values("integers", "DeformableConvolution-1", [_IMAGE.astype(np.int32), _move(1, 0, np.int32), _ONE.astype(np.int32)], _image([3, 4], [0, 0]).astype(np.int32), _attributes()),
    Values("f16-rounds-once", "DeformableConvolution-1", [np.array([[[[2048]], [[1]], [[1]]]], np.float16), np.zeros((1, 2, 1, 1), np.float16), np.ones((1, 3, 1, 1), np.float16)], np.array([[[[2050]]]], np.float16), _attributes()),
    Values("bf16", "DeformableConvolution-1", [_IMAGE.astype(ml_dtypes.bfloat16), _move(0, 0.5, ml_dtypes.bfloat16), _ONE.astype(ml_dtypes.bfloat16)], _image([1.5, 2], [3.5, 4]).astype(ml_dtypes.bfloat16), _attributes()),
    Values("no-batch", "DeformableConvolution-1", [np.ones((0, 1, 2, 2)), np.ones((0, 2, 2, 2)), np.ones((3, 1, 1, 1))], np.ones((0, 3, 2, 2)), _attributes()),
]  # fmt: skip

_SPEC = ["f32[1,4,224,224]", "f32[1,50,220,220]", "f32[64,4,5,5]"]
SHAPES = [
    Shapes("spec-1", "DeformableConvolution-1", _SPEC, "f32[1,64,220,220]", _attributes()),
    Shapes("spec-1-groups", "DeformableConvolution-1", [_SPEC[0], "f32[1,200,220,220]", _SPEC[2]], "f32[1,64,220,220]", _attributes(deformable_group=4)),
    Shapes("spec-8", "DeformableConvolution-8", [*_SPEC, "f32[1,25,220,220]"], "f32[1,64,220,220]", _attributes()),
    Shapes("no-mask", "DeformableConvolution-8", [*_SPEC, None], "f32[1,64,220,220]", _attributes()),
    Shapes("dynamic", "DeformableConvolution-8", ["f32[?,?,?,?]", "f32[2,?,?,7]", "f32[64,4,5,5]", "f32[?,?,9,?]"], "f32[2,64,9,7]", _attributes()),
    Shapes("unknown-ranks", "DeformableConvolution-1", ["f32[...]", "f32[...]", "f32[...]"], "f32[?,?,1..,1..]", _attributes()),
]  # fmt: skip

_X, _MOVES, _W = "f32[1,4,6,6]", "f32[1,18,4,4]", "f32[2,4,3,3]"
_LABELS: list[tuple[str, list[str | None], dict[str, Any]]] = [
    ("c1-data", ["f32[1,4,6]", _MOVES, _W], _attributes()),
    ("c1-offsets", [_X, "f32[1,18,4]", _W], _attributes()),
    ("c1-filters", [_X, _MOVES, "f32[2,4,3]"], _attributes()),
    ("c2-strides", [_X, _MOVES, _W], _attributes(strides=[1])),
    ("c3-dilation-0", [_X, _MOVES, _W], _attributes(dilations=[0, 1])),
    ("c4-kernel", [_X, _MOVES, "f32[2,4,7,3]"], _attributes()),
    ("c5-channels", [_X, _MOVES, "f32[2,3,3,3]"], _attributes()),
    ("c6-group-0", [_X, _MOVES, _W], _attributes(group=0)),
    ("c6-group-of-filters", [_X, _MOVES, "f32[3,2,3,3]"], _attributes(group=2)),
    ("c6-group-of-channels", ["f32[1,3,6,6]", "f32[1,36,4,4]", "f32[2,3,3,3]"], _attributes(deformable_group=2)),
    ("c7-channels", [_X, "f32[1,9,4,4]", _W], _attributes()),
    ("c7-windows", [_X, "f32[1,18,4,5]", _W], _attributes()),
    ("c7-batch", [_X, "f32[2,18,4,4]", _W], _attributes()),
]
REFUSALS = [
    *[Refusal(f"{id}-{v}", f"DeformableConvolution-{v}", inputs, a) for v in (1, 8) for id, inputs, a in _LABELS],
    Refusal("c8-channels", "DeformableConvolution-8", [_X, _MOVES, _W, "f32[1,18,4,4]"], _attributes()),
    Refusal("c8-windows", "DeformableConvolution-8", [_X, _MOVES, _W, "f32[1,9,5,4]"], _attributes()),
    Refusal("c1-mask", "DeformableConvolution-8", [_X, _MOVES, _W, "f32[1,9,4]"], _attributes()),
    Refusal("ir205-mask-in-1", "DeformableConvolution-1", [_X, _MOVES, _W, "f32[1,9,4,4]"], _attributes()),
    Refusal("ir302-types", "DeformableConvolution-1", [_X, "f16[1,18,4,4]", _W], _attributes()),
]

# data, filters, windows, attributes
_MODELS: list[tuple[str, tuple[int, ...], tuple[int, ...], tuple[int, int], dict[str, Any]]] = [
    ("plain", (2, 4, 6, 7), (3, 4, 3, 2), (4, 6), _attributes()),
    ("pads", (1, 2, 5, 5), (3, 2, 3, 3), (5, 6), _attributes(pads_begin=[1, 2], pads_end=[1, 1])),
    ("strides", (1, 2, 9, 8), (3, 2, 2, 3), (3, 2), _attributes(strides=[3, 2], dilations=[2, 2])),
    ("groups", (1, 4, 5, 6), (6, 2, 2, 2), (4, 5), _attributes(group=2)),
    ("deformable-groups", (2, 4, 5, 6), (3, 4, 2, 2), (4, 5), _attributes(deformable_group=2)),
    ("both-groups", (1, 8, 5, 6), (4, 4, 2, 2), (4, 5), _attributes(group=2, deformable_group=4)),
    ("more-groups", (1, 8, 5, 6), (4, 2, 2, 2), (4, 5), _attributes(group=4, deformable_group=2)),
    ("same-upper", (1, 2, 5, 6), (3, 2, 2, 3), (3, 6), _attributes(strides=[2, 1], auto_pad="same_upper")),
    ("valid", (1, 2, 5, 6), (3, 2, 2, 3), (4, 4), _attributes(auto_pad="valid", pads_begin=[1, 1])),
]


def _inputs(
    data: tuple[int, ...], filters: tuple[int, ...], windows: tuple[int, int], parts: int, masked: bool = False
) -> list[np.ndarray]:
    taps = parts * filters[2] * filters[3]
    mask = [np.abs(random(data[0], taps, *windows, seed=3))] if masked else []
    return [random(*data), random(data[0], 2 * taps, *windows, seed=2), random(*filters, seed=1), *mask]


_DEFAULTS: dict[str, Any] = {"group": 1, "deformable_group": 1}
CASES = [
    Case(
        f"1-{id}",
        "DeformableConvolution-1",
        _inputs(data, filters, windows, attributes.get("deformable_group", 1)),
        _DEFAULTS | attributes,
    )
    for id, data, filters, windows, attributes in _MODELS
] + [
    Case(
        f"8-{id}-{'mask' if masked else 'plain'}-{'fading' if fading else 'clamped'}",
        "DeformableConvolution-8",
        _inputs(data, filters, windows, attributes.get("deformable_group", 1), masked),
        _DEFAULTS | {"bilinear_interpolation_pad": fading} | attributes,
    )
    for id, data, filters, windows, attributes in _MODELS for masked in (False, True) for fading in (False, True)
] + [
    Case(
        f"integers-{np.dtype(t).name}",
        "DeformableConvolution-1",
        [arange(1, 2, 4, 4, dtype=t), random(1, 8, 3, 3, dtype=np.int8).astype(t) % 3, arange(2, 2, 2, 2, dtype=t)],
        _attributes(group=1, deformable_group=1),
    )
    for t in (np.int32, np.float16, np.float64)
]  # fmt: skip


def test_an_infinite_pixel_counts_only_where_it_is_sampled() -> None:
    """Outside the data, and at a neighbour of which nothing is sampled, it is no 0 times infinity."""
    layer = operation("DeformableConvolution-1", _attributes(group=1, deformable_group=1))
    one = np.ones((1, 1, 1, 1), np.float32)
    outside = layer.run(np.full((1, 1, 1, 1), np.inf, np.float32), np.full((1, 2, 1, 1), 5, np.float32), one)
    np.testing.assert_array_equal(outside, np.zeros((1, 1, 1, 1)))
    row = np.array([1, np.inf], np.float32).reshape(1, 1, 1, 2)
    np.testing.assert_array_equal(layer.run(row, np.zeros((1, 2, 1, 2), np.float32), one), row)
