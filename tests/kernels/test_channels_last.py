"""Kernels on values with channels last, against ``run`` on the order of the specification."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from grouped import each
from irrun.opdef import Index, Kernel, Value
from irrun.planning.requests import channels_last_kernel
from kit import kernel_of, operation

RANDOM = np.random.default_rng(7)
LAST, FIRST = (0, 2, 3, 1), (0, 3, 1, 2)


@dataclass(frozen=True)
class Row:
    """One layer; its inputs at ``constant`` are known when it is prepared, ``name`` is that of the method."""

    type: str
    inputs: Sequence[np.ndarray]
    attributes: dict[str, Any] = field(default_factory=dict)
    constant: Sequence[int] = (1,)
    name: str = ""

    def __str__(self) -> str:
        shapes = [f"{array.dtype}{list(array.shape)}" for array in self.inputs]
        changed = [f"{key}={value}" for key, value in self.attributes.items() if value not in ((1, 1), (0, 0))]
        return "-".join([self.type, *shapes, *changed])


def normal(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    return RANDOM.standard_normal(shape).astype(dtype)


def i64(x: Any) -> np.ndarray:
    return np.array(x, np.int64)


def windows(
    strides: Sequence[int] = (1, 1), begin: Sequence[int] = (0, 0), end: Sequence[int] | None = None, **more: Any
) -> dict[str, Any]:
    return {"strides": strides, "pads_begin": begin, "pads_end": begin if end is None else end, **more}


def geometry(
    strides: Sequence[int] = (1, 1), begin: Sequence[int] = (0, 0), end: Sequence[int] | None = None,
    dilations: Sequence[int] = (1, 1), **more: Any,
) -> dict[str, Any]:  # fmt: skip
    return windows(strides, begin, end, dilations=dilations, **more)


def specials(*shape: int) -> np.ndarray:
    array = normal(*shape)
    array.flat[[3, 700]] = np.inf, np.nan
    return array


GEOMETRIES = [
    geometry(), geometry((2, 2)), geometry((1, 1), (1, 1)), geometry((2, 1), (1, 0), (0, 2)), geometry((3, 2), (2, 1)),
    geometry((1, 1), (2, 2), (2, 2), (2, 3)), geometry((2, 2), (0, 1), (3, 1), (1, 2)), geometry(auto_pad="same_upper"),
    geometry((2, 2), auto_pad="same_lower"),
]  # fmt: skip
NORMAL = {"normalize_variance": True, "eps": 0.1, "eps_mode": "inside_sqrt"}
SIZES, SCALES = {"shape_calculation_mode": "sizes"}, {"shape_calculation_mode": "scales"}
NO_MASKS = {name: [0] for name in ("new_axis_mask", "shrink_axis_mask", "ellipsis_mask")}
PLANES = (1, 1), (1, 1)
PADDED = geometry(*PLANES)

ROWS = [
    *[Row("Convolution-1", [normal(2, 3, 9, 11), normal(5, 3, *kernel)], g, name="im2col")
      for kernel in ((3, 3), (2, 4)) for g in GEOMETRIES],
    *[Row("Convolution-1", [normal(n, 6, 9, 12), normal(5, 6, 1, 1)], g, name="matmul")
      for n in (1, 3) for g in (geometry(), geometry((2, 3)))],
    Row("Convolution-1", [normal(2, 6, 9, 12), normal(5, 6, 1, 1)], PADDED, name="im2col"),
    Row("Convolution-1", [normal(1, 3, 600, 400), normal(16, 3, 5, 5)], geometry((2, 2), (2, 2)), name="im2col"),
    Row("Convolution-1", [normal(1, 16, 300, 250), normal(40, 16, 1, 1)], geometry(), name="matmul"),
    *[Row("Convolution-1", [normal(n, ins, *size), normal(ins + 8, ins, 3, 3)], g, name=name)
      for n, ins, size, name in ((2, 32, (28, 28), "Winograd F(4×4, 3×3)"), (1, 32, (26, 31), "Winograd F(4×4, 3×3)"),
                                 (3, 128, (7, 7), "Winograd F(2×2, 3×3)"), (1, 128, (14, 13), "Winograd F(2×2, 3×3)"),
                                 (1, 64, (14, 13), "im2col"))
      for g in (geometry(), PADDED, geometry((1, 1), (0, 2), (1, 0)))],
    Row("Convolution-1", [normal(1, 64, 130, 140), normal(32, 64, 3, 3)], PADDED, name="Winograd F(4×4, 3×3)"),
    Row("Convolution-1", [specials(1, 32, 28, 28), normal(32, 32, 3, 3)], PADDED, name="Winograd F(4×4, 3×3)"),
    Row("Convolution-1", [normal(2, 4, 9, 9, dtype=np.float64), normal(3, 4, 3, 3, dtype=np.float64)], PADDED, name="im2col"),
    *[Row("GroupConvolution-1", [normal(2, 6, 9, 11), normal(6, 1, 1, *kernel)], g, name="depthwise")
      for kernel in ((3, 3), (5, 2), (1, 1)) for g in GEOMETRIES],
    *[Row("GroupConvolution-1", [normal(1, 24, 150, 140), normal(24, 1, 1, 3, 3)], geometry((n, n), (1, 1)), name="depthwise") for n in (1, 2)],
    *[Row("ConvolutionBackpropData-1", [normal(2, 6, 9, 11), normal(6, 5, *n)], geometry(n), name="matmul")
      for n in ((2, 2), (3, 1))],
    Row("ConvolutionBackpropData-1", [normal(1, 32, 100, 90), normal(32, 16, 2, 2), i64([200, 180])], geometry((2, 2)), [1, 2], name="matmul"),
    *[Row("MaxPool-1", [normal(2, 5, 9, 11)], windows(**{"kernel": (3, 2), **w}), []) for w in (
        {}, {"strides": (2, 2), "begin": (1, 1)}, {"strides": (2, 3), "rounding_type": "ceil"}, {"begin": (2, 0), "end": (0, 1)})],
    Row("MaxPool-1", [normal(2, 32, 100, 120)], windows((2, 2), (1, 1), kernel=(3, 3)), []),
    *[Row("AvgPool-1", [normal(2, 5, 9, 11)], windows(**{"kernel": (3, 2), "exclude-pad": e, **w}), []) for e in (True, False) for w in (
        {}, {"strides": (2, 2), "begin": (1, 1)}, {"strides": (2, 3), "rounding_type": "ceil"}, {"begin": (2, 0), "end": (0, 1)})],
    Row("AvgPool-1", [normal(2, 32, 100, 120)], {**windows((2, 2), (1, 1), kernel=(3, 3)), "exclude-pad": True}, []),
    *[Row("Concat-1", [normal(2, *a), normal(2, *b)], {"axis": axis}, [])
      for axis, a, b in ((1, (3, 4, 5), (6, 4, 5)), (2, (3, 4, 5), (3, 1, 5)), (-1, (3, 4, 5), (3, 4, 2)))],
    *[Row(f"Reduce{what}-1", [normal(2, 3, 40, 50), i64(axes)], {"keep_dims": True})
      for what in ("Mean", "Sum", "Max") for axes in ([2, 3], [1], [-1], [0, -2], [0, 1, 2, 3])],
    Row("ReduceL2-4", [normal(2, 3, 40, 50), i64([2, 3])], {"keep_dims": True}),
    *[Row("Split-1", [normal(2, 6, 4, 10), i64(axis)], {"num_splits": 2}) for axis in range(-4, 4)],
    *[Row("VariadicSplit-1", [normal(2, 6, 4, 10), i64(axis), i64(lengths)], constant=[1, 2])
      for axis, lengths in ((1, [1, -1, 2]), (-1, [3, 7]), (2, [4]), (0, [1, 1]))],
    *[Row("Slice-8", [normal(2, 6, 7, 10), *map(i64, bounds)], constant=[1, 2, 3, 4])
      for bounds in (([1], [6], [2], [1]), ([-1, 1], [-9, 90], [-1, 3], [2, -1]), ([0, 2], [1, 4], [1, 1]))],
    *[Row("StridedSlice-1", [normal(2, 6, 7, 10), *map(i64, bounds)], {**NO_MASKS, "begin_mask": [1], "end_mask": [0, 1], **masks}, [1, 2, 3])
      for bounds, masks in ((([0, 2], [2, 0], [1, 2]), {}), (([0, 1, 0, 9], [2, 0, 7, 0], [1, 1, 1, -2]), {}),
                            (([0, 0, 3], [1, 0, 9], [1, 1, 2]), {"ellipsis_mask": [0, 1]}), (([0, 1], [2, 3]), {}))],
    *[Row("Gather-8", [normal(2, 6, 7, 10), i64(indices), i64(axis)], constant=[1, 2])
      for indices, axis in (([3, 0, -1], 1), ([1], -3), ([6, 6, 2], 2), ([9, -10], -1), ([12, 0], 1))],
    *[Row("ShuffleChannels-1", [normal(2, 6, 4, 12)], {"axis": axis, "group": 2}, []) for axis in (-4, 1, 2, 3)],
    *[Row("DepthToSpace-1", [normal(2, 12 * n, 3, 5)], {"block_size": size, "mode": mode}, [])
      for mode in ("blocks_first", "depth_first") for n, size in ((1, 1), (1, 2), (3, 3))],
    *[Row("SpaceToDepth-1", [normal(2, 5, 12, 6)], {"block_size": size, "mode": "blocks_first"}, []) for size in (1, 2, 3)],
    *[Row("Pad-12", [normal(2, 4, 7, 5), i64(begin), i64(end)], {"pad_mode": mode}, [1, 2])
      for mode in ("constant", "edge", "reflect", "symmetric") for begin, end in (([0, 0, 1, 2], [0, 0, 3, 0]), ([1, 3, -2, 0], [0, 1, 1, -1]))],
    Row("Pad-1", [normal(2, 4, 7, 5), i64([0, 0, 1, 2]), i64([0, 1, 0, 0]), normal()], {"pad_mode": "constant"}, [1, 2]),
    *[Row(f"{name}-{since}", [normal(2, 5, 6, 7)], {"axis": axis}, []) for axis in (0, 1, 2, 3, -1, -3)
      for name, since in (("SoftMax", 8), ("LogSoftmax", 5)) ],
    *[Row("LRN-1", [normal(2, 9, 6, 7), i64(axes)], {"alpha": 0.5, "beta": 0.75, "bias": 1, "size": size})
      for size in (1, 5) for axes in ([1], [2, 3], [-1])],
    *[Row("NormalizeL2-1", [normal(2, 5, 6, 7), i64(axes)], {"eps": 0.1, "eps_mode": mode})
      for mode in ("add", "max") for axes in ([1], [-1], [2, 3], [1, 2, 3])],
    *[Row("MVN-6", [normal(2, 5, 6, 7), i64(axes)], {**NORMAL, **more})
      for axes in ([2, 3], [1], [-1, -2, -3]) for more in ({}, {"eps_mode": "outside_sqrt"}, {"normalize_variance": False})],
    *[Row("MVN-2", [normal(2, 5, 6, 7)], {"normalize_variance": True, "eps": 0.1, **along}, [])
      for along in ({}, {"across_channels": True}, {"reduction_axes": [1, -1]})],
    *[Row("GroupNormalization-12", [normal(*shape), normal(shape[1]), normal(shape[1])], {"num_groups": groups, "epsilon": 0.1}, [])
      for shape, groups in (((2, 6, 5, 7), 1), ((2, 6, 5, 7), 3), ((2, 6, 5, 7), 6), ((1, 48, 40, 60), 4), ((3, 4, 1, 1), 2))],
    *[Row("BatchNormInference-5", [normal(*shape), *(normal(shape[1]) for _ in range(3)), np.abs(normal(shape[1]))], {"epsilon": 0.1}, range(1, 5))
      for shape in ((2, 6, 5, 7), (1, 48, 40, 60))],
    *[Row("AdaptiveAvgPool-8", [normal(2, 5, 9, 11), i64(shape)]) for shape in ([3, 4], [1, 1], [13, 2])],
    *[Row("AdaptiveMaxPool-8", [normal(2, 5, 9, 11), i64(shape)]) for shape in ([3, 4], [1, 1], [13, 2])],
    *[Row("Interpolate-11", [normal(2, 5, 6, 7), i64([12, 9]), i64(axes)], {"mode": mode, **SIZES}, [1, 2])
      for axes in ([2, 3], [3, 1]) for mode in ("nearest", "linear", "linear_onnx", "cubic", "bilinear_pillow", "bicubic_pillow")],
    *[Row("Interpolate-11", [normal(2, 5, 6, 7), i64([12, 9]), i64([2, 3])], {"mode": mode, **SIZES, "coordinate_transformation_mode": how}, [1, 2])
      for mode in ("nearest", "cubic") for how in ("pytorch_half_pixel", "asymmetric", "tf_half_pixel_for_nn", "align_corners")],
    *[Row("Interpolate-11", [normal(2, 5, 6, 7), i64([9, 4]), i64([2, 3])], {"mode": "nearest", **SIZES, "nearest_mode": how}, [1, 2])
      for how in ("round_prefer_ceil", "floor", "ceil", "simple")],
    Row("Interpolate-11", [normal(2, 5, 6, 7), i64([3, 4]), i64([2, 3])], {"mode": "linear", **SIZES, "antialias": True}, [1, 2]),
    Row("Interpolate-11", [normal(2, 5, 6, 7), np.array([1, 2, 2, 0.5], np.float32)], {"mode": "linear_onnx", **SCALES}),
    Row("Interpolate-4", [normal(2, 5, 6, 7), i64([12, 9]), normal(2), i64([2, 3])], {"mode": "linear", **SIZES}, [1, 3]),
    Row("Interpolate-4", [normal(2, 5, 6, 7), i64([2, 2, 2, 2]), np.array([1, 1, 2, 3], np.float32)], {"mode": "nearest", **SCALES}, [1, 2]),
    *[Row("Interpolate-1", [normal(2, 5, 6, 7), i64([12, 9])], {"axes": axes, "mode": mode, "align_corners": corners})
      for axes in ([2, 3], [1, 3]) for mode in ("nearest", "linear", "cubic") for corners in (True, False)],
]  # fmt: skip


def prepared(row: Row) -> Kernel:
    values = [Value.of(array) for array in row.inputs]
    known = [value if i in row.constant else Value(value.type, value.shape) for i, value in enumerate(values)]
    kernel = channels_last_kernel(operation(row.type, row.attributes), known)
    assert kernel is not None
    return kernel


def moved(row: Row, kernel: Kernel) -> list[np.ndarray]:
    """The inputs in channels-last layout, without the contents of those that the kernel holds in another form."""
    return [
        np.zeros(0) if i in kernel.packing.inputs else np.ascontiguousarray(array.transpose(LAST)) if array.ndim == 4 else array
        for i, array in enumerate(row.inputs)
    ]  # fmt: skip


def outputs(found: Any) -> Sequence[np.ndarray]:
    return found if isinstance(found, tuple) else (found,)


def same(found: Any, row: Row, *, finished: float = 0) -> None:
    """Of an operation of several outputs, the kernel may give the first alone."""
    wanted = outputs(operation(row.type, row.attributes).run(*row.inputs))
    assert len(outputs(found)) in (1, len(wanted))
    for got, array in zip(outputs(found), wanted):
        assert got.dtype == array.dtype
        assert got.transpose(FIRST).shape == array.shape
        largest = np.nanmax(np.where(np.isinf(array), 0, np.abs(array)))
        np.testing.assert_allclose(got.transpose(FIRST), array + finished, rtol=1e-5, atol=1e-5 * largest)


def call(kernel: Kernel, inputs: Sequence[np.ndarray], **keywords: Any) -> np.ndarray:
    with np.errstate(all="ignore"):  # as the executor does
        return kernel.call(*inputs, **keywords)


VIEWS = {"Split-1", "VariadicSplit-1", "Slice-8", "StridedSlice-1"}
SUMS = {"ReduceL2-4", "LRN-1"}
IN_TILES = {
    "Convolution-1", "GroupConvolution-1", "ConvolutionBackpropData-1", "MaxPool-1", "AvgPool-1", "SoftMax-8",
    "LogSoftmax-5", "NormalizeL2-1", "MVN-2", "MVN-6", "GroupNormalization-12", "BatchNormInference-5",
    "Interpolate-1", "Interpolate-4", "Interpolate-11",
}  # fmt: skip


@each("row", [row for row in ROWS if row.type != "Pad-12"], ids=str)
def test_what_a_kernel_can(row: Row) -> None:
    """Which memory a kernel fills."""
    kernel = prepared(row)
    assert kernel.out == ("tiles" if row.type in IN_TILES else "new" if row.type in VIEWS | SUMS else "whole")


@each("row", ROWS, ids=str)
def test_kernel(row: Row) -> None:
    kernel = prepared(row)
    assert kernel.algorithm.removesuffix(", channels last") == row.name or not row.name
    inputs = moved(row, kernel)
    before = [array.copy() for array in inputs]
    found = call(kernel, inputs)
    same(found, row)
    if kernel.out != "new":
        out = np.full(found.shape, 3, found.dtype)
        assert call(kernel, inputs, out=out) is out
        same(out, row)
    for array, copy in zip(inputs, before):
        np.testing.assert_array_equal(array, copy)


@each("row", [row for row in ROWS if prepared(row).out == "tiles"], ids=str)
def test_tiles(row: Row) -> None:
    """Each element is computed and then reported once, and is not written again."""
    kernel = prepared(row)
    inputs = moved(row, kernel)
    out = np.zeros_like(call(kernel, inputs))
    times = np.zeros(out.shape, int)

    def on_tile_ready(index: Index) -> None:
        out[index] += 1
        times[index] += 1

    call(kernel, inputs, out=out, on_tile_ready=on_tile_ready)
    assert (times == 1).all()
    same(out, row, finished=1)


@each("row", [row for row in ROWS if row.inputs[0].size < 10_000], ids=str)
def test_of_a_view(row: Row) -> None:
    """What a kernel is given may lie in any order."""
    kernel = prepared(row)
    inputs = moved(row, kernel)
    same(call(kernel, [np.asfortranarray(inputs[0]), *inputs[1:]]), row)


MANY = np.full((1, 2, 600, 600), 0.1, np.float32)


@pytest.mark.parametrize("axes", [[2, 3], [0, 2, 3]], ids=str)
def test_sums_of_many_elements(axes: list[int]) -> None:
    """They are not added one by one, which would lose a thousandth here; nor where the usual order is a view."""
    row = Row("ReduceMean-1", [MANY, i64(axes)], {"keep_dims": True})
    kernel, (data, _) = prepared(row), moved(row, prepared(row))
    np.testing.assert_allclose(call(kernel, [data, i64(axes)]), MANY[0, 0, 0, 0], rtol=1e-5)
    usual = kernel_of(operation(row.type, row.attributes), *map(Value.of, row.inputs))
    np.testing.assert_allclose(call(usual, [data.transpose(FIRST), i64(axes)]), MANY[0, 0, 0, 0], rtol=1e-5)


def test_the_mean_of_many_elements() -> None:
    row = Row("MVN-6", [MANY, i64([2, 3])], NORMAL)
    kernel = prepared(row)
    np.testing.assert_allclose(call(kernel, moved(row, kernel)), 0, atol=1e-5)


UNKNOWN_AXES = [
    Row("ReduceMean-1", [normal(1, 2, 3, 4), i64([1])], {"keep_dims": True}, []),
    Row("Split-1", [normal(1, 2, 3, 4), i64(1)], {"num_splits": 2}, []),
    Row("VariadicSplit-1", [normal(1, 2, 3, 4), i64(1), i64([1, 1])], {}, []),
    Row("Slice-8", [normal(1, 2, 3, 4), i64([0]), i64([1]), i64([1]), i64([1])], {}, [1, 2, 3]),
    Row("StridedSlice-1", [normal(1, 2, 3, 4), i64([0]), i64([1])], {**NO_MASKS, "begin_mask": [0], "end_mask": [0]}, [1]),
    Row("Gather-8", [normal(1, 2, 3, 4), i64([1]), i64(1)], {}, [1]),
    Row("Pad-12", [normal(1, 2, 3, 4), i64([0] * 4), i64([1] * 4)], {"pad_mode": "constant"}, [1]),
    Row("Interpolate-11", [normal(1, 2, 3, 4), i64([2]), i64([1])], {"mode": "nearest", **SIZES}, [1]),
]  # fmt: skip


@each("row", UNKNOWN_AXES, ids=str)
def test_not_for_what_is_known_only_later(row: Row) -> None:
    values = [Value.of(array) for array in row.inputs]
    known = [value if i in row.constant else Value(value.type, value.shape) for i, value in enumerate(values)]
    assert channels_last_kernel(operation(row.type, row.attributes), [*known]) is None


def test_what_has_no_such_kernel() -> None:
    filters = normal(3, 2, 2, 3, 3)
    grouped = operation("GroupConvolution-1", geometry())
    assert channels_last_kernel(grouped, [Value.of(normal(1, 6, 5, 5)), Value.of(filters)]) is None
    halves = normal(1, 3, 5, 5, dtype=np.float16), normal(2, 3, 3, 3, dtype=np.float16)
    assert channels_last_kernel(operation("Convolution-1", geometry()), [*map(Value.of, halves)]) is None
    upwards = operation("ConvolutionBackpropData-1", geometry((2, 2)))
    assert channels_last_kernel(upwards, [Value.of(normal(1, 3, 5, 5)), Value.of(normal(3, 2, 3, 3))]) is None
