"""Interpolate-1, Interpolate-4 and Interpolate-11."""

import ml_dtypes
import numpy as np
import pytest
from PIL import Image

import irrun
from irrun import build as b
from irrun.inference.layer import infer
from irrun.opdef import Refused, Site, Value
from irrun.types import ELEMENT_TYPES, Dim, PartialShape
from kit import *

_NEW, _OLD, _OLDEST = "Interpolate-11", "Interpolate-4", "Interpolate-1"
_MODES = ("nearest", "linear", "linear_onnx", "cubic", "bilinear_pillow", "bicubic_pillow")
_COORDINATES = ("half_pixel", "pytorch_half_pixel", "asymmetric", "tf_half_pixel_for_nn", "align_corners")
_ROUNDINGS = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil", "simple")


def _sizes(mode="nearest", **others):
    return {"mode": mode, "shape_calculation_mode": "sizes", **others}


def _scales(mode="nearest", **others):
    return {"mode": mode, "shape_calculation_mode": "scales", **others}


_ROW = f32([1, 2, 3, 4])

VALUES = [
    Values("nearest", _NEW, [_ROW, i64(8)], f32([1, 1, 2, 2, 3, 3, 4, 4]), _sizes()),
    Values("nearest-half", _NEW, [_ROW, i64(2)], f32([1, 3]), _sizes()),
    Values("nearest-half-ceil", _NEW, [_ROW, i64(2)], f32([2, 4]), _sizes(nearest_mode="round_prefer_ceil")),
    Values("nearest-asymmetric", _NEW, [_ROW, i64(3)], f32([1, 2, 3]), _sizes(coordinate_transformation_mode="asymmetric", nearest_mode="floor")),
    Values("nearest-simple", _NEW, [_ROW, i64(3)], f32([1, 3, 4]), _sizes(coordinate_transformation_mode="asymmetric", nearest_mode="simple")),
    Values("nearest-i64", _NEW, [i64(2**62 + 1, 0), i64(4)], i64(2**62 + 1, 2**62 + 1, 0, 0), _sizes()),
    Values("linear-align-corners", _NEW, [_ROW, i64(7)], f32([1, 1.5, 2, 2.5, 3, 3.5, 4]), _sizes("linear", coordinate_transformation_mode="align_corners")),
    Values("linear-onnx-half-pixel", _NEW, [_ROW, i64(8)], f32([1, 1.25, 1.75, 2.25, 2.75, 3.25, 3.75, 4]), _sizes("linear_onnx")),
    Values("antialias", _NEW, [_ROW, i64(2)], f32([12 / 7, 23 / 7]), _sizes("linear", antialias=True)),
    Values("cubic", _NEW, [f32([0, 0, 8, 0, 0]), f32([2])], f32([0, -0.28125, -0.84375, 2.09375, 7.03125, 7.03125, 2.09375, -0.84375, -0.28125, 0]), _scales("cubic")),
    Values("bicubic-pillow", _NEW, [f32([0, 0, 8, 0, 0]), f32([2])], f32([0, -24 / 137, -72 / 131, 1.8125, 6.9375, 6.9375, 1.8125, -72 / 131, -24 / 137, 0]), _scales("bicubic_pillow", cube_coeff=-0.5)),
    Values("bilinear-pillow-shrinks", _NEW, [_ROW, i64(2)], f32([12 / 7, 23 / 7]), _sizes("bilinear_pillow")),
    Values("pillow-rounds-between", _NEW, [np.array([[0, 1], [1, 1]], np.uint8), i64(1, 1)], np.array([[1]], np.uint8), _sizes("bilinear_pillow")),
    Values("pillow-rounds-up", _NEW, [np.array([0, 5], np.uint8), i64(1)], np.array([3], np.uint8), _sizes("bilinear_pillow")),
    Values("pytorch-to-one", _NEW, [_ROW, i64(1)], f32([1]), _sizes("linear", coordinate_transformation_mode="pytorch_half_pixel")),
    Values("half-pixel-to-one", _NEW, [_ROW, i64(1)], f32([2.5]), _sizes("linear_onnx")),
    Values("scales", _OLD, [_ROW, i64(99), f32([2])], f32([1, 1, 2, 2, 3, 3, 4, 4]), _scales()),
    Values("scale-a-little-short", _NEW, [np.ones(10, np.float32), f32([0.6999999])], np.ones(7, np.float32), _scales()),
    Values("pads", _NEW, [_ROW, i64(6)], f32([0, 1, 2, 3, 4, 0]), _sizes(pads_begin=1, pads_end=[1])),
    # OpenVINO: leaves an axis alone that keeps its size; by the specification's formula this would be 2, 3, 4, 4
    Values("same-size", _NEW, [_ROW, i64(4)], _ROW, _sizes(coordinate_transformation_mode="tf_half_pixel_for_nn", nearest_mode="ceil")),
    # OpenVINO: the core kernel cuts off in mode linear_onnx
    Values("u8-rounds-half-to-even", _NEW, [np.array([0, 5, 8], np.uint8), i64(5)], np.array([0, 2, 5, 6, 8], np.uint8), _sizes("linear_onnx", coordinate_transformation_mode="align_corners")),
    Values("u8-saturates", _NEW, [np.array([0, 0, 255, 255], np.uint8), i64(8)], np.array([0, 0, 0, 58, 197, 255, 255, 255], np.uint8), _sizes("cubic")),
    Values("bf16", _NEW, [np.array([1, 2], ml_dtypes.bfloat16), i64(3)], np.array([1, 1.5, 2], ml_dtypes.bfloat16), _sizes("linear", pads_end=0)),
    Values("f64", _NEW, [np.array([1, 2.0]), i64(3)], np.array([1, 1.5, 2]), _sizes("cubic", coordinate_transformation_mode="align_corners")),
    Values("to-nothing", _NEW, [_ROW, i64(0)], np.zeros(0, np.float32), _sizes("cubic")),
    Values("no-images", _NEW, [np.zeros((0, 2), np.float32), i64(3), i64(1)], np.zeros((0, 3), np.float32), _sizes("linear")),
    Values("opset1-nearest", _OLDEST, [_ROW, i64(3)], f32([1, 3, 4]), {"mode": "nearest", "axes": 0, "align_corners": False}),
    Values("opset1-aligned", _OLDEST, [_ROW, i64(7)], f32([1, 1.5, 2, 2.5, 3, 3.5, 4]), {"mode": "linear", "axes": 0}),
    # OpenVINO: would sort the axes, but not the sizes
    Values("opset1-axes-in-order", _OLDEST, [arange(1, 2), i64(4, 1)], f32([[0, 0, 0, 1]]), {"mode": "nearest", "axes": [1, 0]}),
]  # fmt: skip

SHAPES = [
    Shapes("spec-4", _OLD, ["f32[1,2,48,80]", "i64{24,160}", "f32[2]", "i64{2,3}"], "f32[1,2,24,160]", _sizes("linear")),
    Shapes("spec-1", _OLDEST, ["f32[1,2,48,80]", "i64{50,60}"], "f32[1,2,50,60]", {"mode": "linear", "axes": [2, 3], "align_corners": 0, "pads_begin": 0, "pads_end": 0}),
    Shapes("unknown-sizes", _NEW, ["f32[1,2,48,80]", "i64[2]", "i64{2,3}"], "f32[1,2,?,?]", _sizes()),
    Shapes("partly-known-sizes", _NEW, ["f32[1,2,48,80]", "i64{?,2..5}", "i64{3,2}"], "f32[1,2,2..5,?]", _sizes()),
    Shapes("unknown-axes", _NEW, ["f32[1,2]", "i64{3,4}", "i64[2]"], "f32[?,?]", _sizes()),
    Shapes("unknown-rank", _NEW, ["f32[...]", "i64{3,4}", "i64{2,3}"], "f32[...]", _sizes()),
    Shapes("pads", _NEW, ["f32[?,2,3]", "i64{3}", "i64{2}"], "f32[?,7,3]", _sizes(pads_begin=[0, 1, 2, 9], pads_end=[0, 4])),
    Shapes("unknown-scales", _NEW, ["f32[2,?]", "f32[2]"], "f32[?,?]", _scales()),
]  # fmt: skip

REFUSALS = [
    row
    for o, values_of, axes in (
        (_NEW, lambda v: [v], True),
        (_OLD, lambda v: [v, "f32[?]"], True),
    )
    for row in (
        Refusal(f"c1-2d-{o}", o, ["f32[2,3]", *values_of("i64[1,2]")], _sizes()),
        Refusal(f"c1-axes-{o}", o, ["f32[2,3]", *values_of("i64[1]"), "i64[]{1}"], _sizes()),
        Refusal(f"c1-count-{o}", o, ["f32[2,3]", *values_of("i64[2]"), "i64[1]"], _sizes()),
        Refusal(f"c1-count-of-all-{o}", o, ["f32[2,3]", *values_of("i64[1]")], _sizes()),
        Refusal(f"c2-outside-{o}", o, ["f32[2,3]", *values_of("i64[1]"), "i64{2}"], _sizes()),
        Refusal(f"c2-negative-{o}", o, ["f32[2,3]", *values_of("i64[1]"), "i64{-1}"], _sizes()),
        Refusal(f"c2-twice-{o}", o, ["f32[2,3]", *values_of("i64[2]"), "i64{1,1}"], _sizes()),
        Refusal(f"c3-pad-{o}", o, ["f32[2,3]", *values_of("i64[2]")], _sizes(pads_begin=-1)),
        Refusal(f"c3-size-{o}", o, ["f32[2,3]", *values_of("i64{-1,4}")], _sizes()),
        Refusal(f"c4-{o}", o, ["f32[2,0]", *values_of("i64{2,4}")], _sizes()),
    )
] + [
    Refusal("c5-sizes", _NEW, ["f32[2]", "f32[1]"], _sizes()),
    Refusal("c5-scales", _NEW, ["f32[2]", "i64[1]"], _scales()),
    Refusal("c1-opset1", _OLDEST, ["f32[2,3]", "i64[2]"], {"mode": "nearest", "axes": 0}),
    Refusal("c2-opset1", _OLDEST, ["f32[2,3]", "i64[1]"], {"mode": "nearest", "axes": 2}),
    Refusal("c3-opset1", _OLDEST, ["f32[2,3]", "i64{-1}"], {"mode": "nearest", "axes": 1}),
    Refusal("c4-opset1", _OLDEST, ["f32[2,0]", "i64{1}"], {"mode": "nearest", "axes": 1}),
    Refusal("ir301-opset1-integers", _OLDEST, ["i32[2,3]", "i64[1]"], {"mode": "nearest", "axes": 0}),
    Refusal("c5-opset1-area", _OLDEST, ["f32[2,3]", "i64[1]"], {"mode": "area", "axes": 0}),
    Refusal("ir301-boolean", _NEW, ["boolean[2]", "i64[1]"], _sizes()),
]  # fmt: skip

_SPATIAL = i64(2, 3)


def _case(id, data, attributes, sizes, axes=_SPATIAL, scales=None, version=11, **others):
    """A case by sizes, or by scales where they are given."""
    attributes = {"pads_begin": [0], "pads_end": [0], **attributes}
    values_of = sizes if scales is None else scales
    if version == 11:
        return Case(id, _NEW, [data, values_of, axes], attributes, shapes=[1, 2], **others)
    inputs = [data, sizes, f32([1] * len(axes)) if scales is None else scales, axes]
    return Case(id, _OLD, inputs, attributes, shapes=[1, 2, 3], **others)


_IMAGE = random(2, 3, 5, 6)

CASES = [
    _case(f"{mode}-{coordinates}-{list(sizes)}", _IMAGE, _sizes(mode, coordinate_transformation_mode=coordinates), sizes)
    for mode in _MODES[1:4]
    for coordinates in _COORDINATES
    for sizes in (i64(8, 9), i64(3, 4), i64(7, 2), i64(1, 6))
] + [
    _case(
        f"nearest-{coordinates}-{rounding}-{list(sizes)}", _IMAGE,
        _sizes("nearest", coordinate_transformation_mode=coordinates, nearest_mode=rounding), sizes,
    )
    for coordinates in _COORDINATES
    for rounding in _ROUNDINGS
    for sizes in (i64(10, 9), i64(3, 4))
] + [
    _case(f"{mode}-{list(sizes)}", _IMAGE, _sizes(mode, cube_coeff=-0.5), sizes)
    for mode in _MODES[4:] for sizes in (i64(8, 9), i64(3, 4), i64(5, 2), i64(9, 6))
] + [
    _case(f"antialias-{coordinates}-{list(sizes)}", _IMAGE, _sizes("linear", coordinate_transformation_mode=coordinates, antialias=True), sizes, how="core")
    for coordinates in _COORDINATES for sizes in (i64(2, 3), i64(2, 9))
] + [
    _case(f"scales-{mode}-{scale}-{version}", _IMAGE, _scales(mode), i64(1, 1), scales=f32([scale, 1.3]), version=version)
    for mode in _MODES[:4] for scale in (0.7, 2, 1.7) for version in (11, 4)
] + [
    _case("bicubic_pillow-cube-coeff", _IMAGE, _sizes("bicubic_pillow", cube_coeff=-0.75), i64(8, 4), how="core"),
    *(_case(f"opset4-{mode}", _IMAGE, _sizes(mode), i64(8, 4), version=4) for mode in _MODES[:4]),
] + [
    _case(
        f"{mode}-{np.dtype(t).name}", random(1, 2, 4, 5, dtype=t), _sizes(mode, cube_coeff=-0.5), i64(7, 3),
        how="core" if mode.endswith("pillow") else "cpu",
        atol=None if mode == "nearest" or t is np.float16 else 1,  # halves are rounded as their last bits have it
    )
    for mode in _MODES for t in (np.float16, np.uint8, np.int8, np.int32, np.int64)
    if not (mode.endswith("pillow") and t in (np.int32, np.int64))
] + [
    _case(f"{mode}-pads", _IMAGE, _sizes(mode, cube_coeff=-0.5, pads_begin=[0, 0, 1, 0], pads_end=[0, 0, 2, 1]), i64(9, 4)) for mode in _MODES
] + [
    _case(f"{mode}-axes-swapped", _IMAGE, _sizes(mode, cube_coeff=-0.5), i64(9, 4), i64(3, 2)) for mode in _MODES
] + [
    _case(f"{mode}-{rank}d", random(*shape), _sizes(mode), i64(*sizes), i64(*axes))
    for mode in _MODES[:4]
    for rank, shape, sizes, axes in ((1, (4,), (6,), (0,)), (2, (4, 5), (6, 3), (0, 1)), (3, (2, 3, 5), (8,), (2,)), (4, (2, 4, 5, 2), (6, 3), (1, 2)))
] + [
    _case(f"{mode}-5d", random(1, 2, 3, 4, 5), _sizes(mode), i64(5, 3, 8), i64(2, 3, 4)) for mode in ("nearest", "linear", "linear_onnx")
] + [
    # OpenVINO: the CPU plugin resizes no batches and channels
    _case(f"{mode}-every-axis", random(2, 2, 3, 3), _sizes(mode), i64(3, 1, 4, 2), i64(0, 1, 2, 3), how="core") for mode in ("nearest", "linear", "cubic")
] + [
    Case("no-axes", _NEW, [random(1, 1, 3, 4), i64(1, 1, 5, 5)], {**_sizes("linear"), "pads_begin": [0], "pads_end": [0]}, shapes=[1]),
] + [
    Case(
        f"opset1-{mode}-{align}-{list(data.shape)}", _OLDEST, [data, i64(*sizes)],
        {"mode": mode, "axes": axes, "align_corners": align, "antialias": False, "pads_begin": [0], "pads_end": [0]},
        shapes=[1],
    )
    for mode in ("nearest", "linear", "cubic")
    for align in (True, False)
    for data, sizes, axes in (
        (_IMAGE, (8, 4), [2, 3]), (random(4, 5), (6, 3), [0, 1]), (random(1, 2, 5), (8,), [2]), (random(1, 1, 3, 4, 5), (5, 3, 8), [2, 3, 4]),
    )
    if not (mode == "cubic" and data.ndim == 5)  # OpenVINO: the CPU plugin has no cubic in 5D
] + [
    Case(
        "opset1-pads", _OLDEST, [_IMAGE, i64(8, 4)],
        {"mode": "linear", "axes": [2, 3], "align_corners": False, "antialias": False, "pads_begin": [0, 0, 1, 0], "pads_end": [0]}, shapes=[1],
    ),
]  # fmt: skip


def _scaled(shape, *scales):
    (found,) = infer(operation(_NEW, _scales()), Site(), [tensor(f"f32{shape}"), Value.of(f32(scales))], {})
    return str(found.shape)


def test_scales_of_dims():
    assert _scaled("[10,7,4]", 2, 0.5, 0.6999999) == "[20,3,2]"
    assert _scaled("[?,3..9,2..]", 2, 0.5, 3) == "[?,1..4,6..]"
    assert _scaled("[?]", 1) == "[?]"


def test_scales_keep_the_history_of_dims():
    image = Value(ELEMENT_TYPES["f32"], PartialShape((Dim.unknown("H"),)))
    (found,) = infer(operation(_NEW, _scales()), Site(), [image, Value.of(f32([2]))], {})
    assert str(found.shape[0].term) == "H * 2"


@pytest.mark.parametrize("scale", [-1, np.inf, np.nan])
def test_c3_scale(scale):
    with pytest.raises(Refused) as caught:
        _scaled("[2]", scale)
    assert caught.value.label == "C3"


@pytest.mark.parametrize(("mode", "filter"), [("bilinear_pillow", "BILINEAR"), ("bicubic_pillow", "BICUBIC")])
def test_pillow(mode, filter):
    image = np.random.default_rng(0).integers(0, 256, (13, 17), np.uint8)
    for height, width in ((7, 9), (30, 5), (13, 40), (1, 1)):
        expected = Image.fromarray(image).resize((width, height), Image.Resampling[filter])
        got = operation(_NEW, _sizes(mode, cube_coeff=-0.5)).run(image, i64(height, width))
        # Pillow multiplies by weights of limited precision, so that a half may fall to either side
        np.testing.assert_allclose(got.astype(int), np.asarray(expected).astype(int), rtol=0, atol=1)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("mode", _MODES)
@pytest.mark.parametrize(("shape", "sizes", "axes"), [
    ((2, 3, 9, 8), (18, 16), (2, 3)),
    ((2, 3, 9, 8), (4, 21), (3, 2)),
    ((1, 40, 64, 50), (70, 64), (2, 3)),
    ((1, 6, 7, 2), (9, 3), (1, 2)),
    ((5, 7), (3,), (0,)),
    ((2, 5, 7), (10, 21), (1, 2)),
])  # fmt: skip
@pytest.mark.parametrize("one", [0, np.inf, np.nan])
def test_prepared(mode, shape, sizes, axes, dtype, one):
    """The kernel for constant sizes does what ``run`` does; what is not finite goes no further than there, either."""
    op, x = operation(_NEW, _sizes(mode, antialias=True)), random(*shape, dtype=dtype)
    x.flat[::97] = one
    inputs = i64(*sizes), i64(*axes)
    kernel = kernel_of(op, Value.of(x).reshaped(shape), *map(Value.of, inputs))
    with np.errstate(invalid="ignore"):
        expected = op.run(x, *inputs)
        found = filled(kernel, expected.shape, dtype, x, *inputs), kernel.call(x, *inputs)
    for array in found:
        np.testing.assert_allclose(array, expected, rtol=0, atol=8 * np.finfo(dtype).eps)


def test_prepared_versions():
    x, shape = random(1, 2, 5, 6), i64(10, 3)
    older = operation(_OLD, _scales("linear_onnx"))
    oldest = operation(_OLDEST, {"mode": "cubic", "axes": [2, 3], "align_corners": False})
    scales = f32([2, 0.5])
    for op, inputs in ((older, (i64(1, 1), scales, i64(2, 3))), (oldest, (shape,))):
        kernel = kernel_of(op, Value.of(x).reshaped(x.shape), *map(Value.of, inputs))
        expected = op.run(x, *inputs)
        assert expected.shape == (1, 2, 10, 3)
        np.testing.assert_allclose(filled(kernel, expected.shape, np.float32, x, *inputs), expected, atol=1e-6)


@pytest.mark.parametrize("case", ["pads", "integers", "no elements", "unknown sizes", "unknown image", "nothing to do"])
def test_prepared_otherwise(case):
    """What the better kernel does not do, ``run`` does."""
    x = random(1, 2, 5, 6, dtype=np.int32 if case == "integers" else np.float32)[:, : 0 if case == "no elements" else 2]
    op = operation(_NEW, _sizes("linear", **({"pads_begin": [0, 0, 1]} if case == "pads" else {})))
    sizes = i64(5, 6) if case == "nothing to do" else i64(7, 3)
    values, image = Value.of(sizes), Value.of(x)
    if case == "unknown sizes":
        values = values.reshaped(values.shape)
    if case == "unknown image":
        image = image.reshaped(PartialShape.parse("1,?,5,6") or PartialShape(None))
    kernel = kernel_of(op, image, values, Value.of(i64(2, 3)))
    assert kernel.out == "new"
    np.testing.assert_array_equal(kernel.call(x, sizes, i64(2, 3)), op.run(x, sizes, i64(2, 3)))


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("antialias", [False, True])
@pytest.mark.parametrize("mode", ["bilinear_pillow", "bicubic_pillow", "nearest", "linear", "linear_onnx", "cubic"])
def test_nothing_is_wanted(mode: str, antialias: bool, exact: bool) -> None:
    x = b.parameter([2, 3])
    settings = {"mode": mode, "shape_calculation_mode": "sizes", "antialias": antialias, "opset": 11}
    model = b.model(b.Interpolate(x, i64(0, 2), i64(0, 1), **settings))
    assert irrun.compile(model, exact=exact)([np.ones((2, 3), np.float32)]).arrays[0].shape == (0, 2)
