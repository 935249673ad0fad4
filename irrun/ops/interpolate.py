"""Interpolate: resize a tensor along some axes.  Spec: image/interpolate-{1,4,11}.

Every mode is separable, so the axes are resized one after the other. Along an axis, each output element is a weighted
sum of a few input elements, its taps.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from irrun.kernels.blocks import BLOCK, each_block, finishing, scratch
from irrun.kernels.elementwise import native
from irrun.kernels.matmul import matmul
from irrun.opdef import Finish, Kernel, Op, Site, Value, attr, op, opt, ports
from irrun.ops._last import moved_axes, permuted
from irrun.ops._sampling import cubic_weights, is_integer, saturated
from irrun.types import INF, UNKNOWN_RANK, Dim, PartialShape

_MODES = ("nearest", "linear", "linear_onnx", "cubic")
_COORDINATES = ("half_pixel", "pytorch_half_pixel", "asymmetric", "tf_half_pixel_for_nn", "align_corners")
_ROUNDINGS = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil", "simple")

Taps = tuple[np.ndarray, np.ndarray]
"""The taps along an axis: two arrays, of indices and of weights, with a row for each output element."""

Strip = tuple[slice, slice, np.ndarray]
"""A run of output elements along an axis, the run of input elements that they read, and the matrix of weights between
them, with a row for each output element and a column for each input element."""

Pass = tuple[int, int, int | np.ndarray | list[Strip]]
"""How to resize one axis: the axis, its size in the output, and one of three: how often each input element is repeated
(last axis only), the index of the input element for each output element, or strips."""

_STRIP: Final = 32
"""The output elements of a strip where an axis grows, its input elements where the axis shrinks. Shorter strips hold
fewer zero weights, but their matrix products are slower."""


@op("Interpolate", since=11, spec="image/interpolate-11")
class Interpolate11(Op):
    """Resize ``image`` along ``axes`` (all by default) to the sizes, or by the scales, of ``scales_or_sizes``.

    C1  ``scales_or_sizes`` and ``axes`` are 1D and of one length.
    C2  ``axes`` names axes of ``image``, counted from the front, none of them twice.
    C3  Pads, sizes and scales are not negative, and scales are finite.
    C4  An axis of length 0 keeps the length 0.
    C5  Sizes are integers, scales are floats.
    """

    # OpenVINO's CPU plugin antialiases differently from its core kernel and the specification, uses -0.5 in place
    # of cube_coeff in mode bicubic_pillow, and rounds i32 and i64 only once in the modes of Pillow

    mode = attr.choice(*_MODES, "bilinear_pillow", "bicubic_pillow")
    shape_calculation_mode = attr.choice("sizes", "scales")
    coordinate_transformation_mode = attr.choice(*_COORDINATES, default="half_pixel")
    nearest_mode = attr.choice(*_ROUNDINGS, default="round_prefer_floor")
    antialias = attr.bool(False)
    pads_begin = attr.ints((0,))
    pads_end = attr.ints((0,))
    cube_coeff = attr.float(-0.75)
    inputs = ports(image="T", scales_or_sizes="T_VALUES", axes=opt("T_AXES"))
    types = {"T": "numeric", "T_VALUES": "int float", "T_AXES": "int"}

    def infer(self, at: Site, image: Value, scales_or_sizes: Value, axes: Value | None = None) -> Value:
        kind = scales_or_sizes.type.kind
        by_scales = self.shape_calculation_mode == "scales"
        at.require(
            kind == "dynamic" or (kind == "float") == by_scales,
            "C5",
            f"shape_calculation_mode is {self.shape_calculation_mode}, scales_or_sizes {scales_or_sizes.type}",
        )
        return self.resized(at, image, scales_or_sizes, axes)

    def resized(self, at: Site, image: Value, values: Value, axes: Value | None) -> Value:
        """Infer the output. ``values`` are sizes or scales, as ``shape_calculation_mode`` says."""
        rank = image.rank
        count = Dim.unknown() if rank is None else Dim(rank)
        if axes is not None:
            at.require(axes.rank in (None, 1), "C1", f"axes is {axes.shape}, not 1D")
            count = axes.shape.count()
        at.require(values.rank in (None, 1), "C1", f"the {self.shape_calculation_mode} are {values.shape}, not 1D")
        counts = f"there are {values.shape.count()} {self.shape_calculation_mode} and {count} axes"
        at.require(values.shape.count().meet(count) is not None, "C1", counts)
        at.require(min((0, *self.pads_begin, *self.pads_end)) == 0, "C3", "a pad is negative")
        if image.shape.dims is None or rank is None:
            return image.reshaped(UNKNOWN_RANK)
        places = tuple(range(rank)) if axes is None else axes.ints()
        if places is None:
            return image.reshaped(PartialShape.of_rank(rank))
        at.require(all(0 <= axis < rank for axis in places), "C2", f"axes {list(places)} are not of a rank of {rank}")
        at.require(len(set(places)) == len(places), "C2", f"axes {list(places)} name one twice")
        dims = [dim + begin + end for dim, (begin, end) in zip(image.shape.dims, self._pads(rank))]
        for i, axis in enumerate(places):
            size = self._size(at, dims[axis], values, i)
            at.require(dims[axis].hi > 0 or size.lo == 0, "C4", f"axis {axis} of {dims[axis]} is resized to {size}")
            dims[axis] = size
        return image.reshaped(dims)

    def _size(self, at: Site, dim: Dim, values: Value, i: int) -> Dim:
        """Return the size of an axis of size ``dim`` after entry ``i`` of ``values`` has resized it."""
        if self.shape_calculation_mode == "sizes":
            sizes = values.dims()
            size = Dim.unknown() if sizes is None else sizes[i]
            at.require(size.hi >= 0, "C3", f"size {i} is {size}")
            return size.max(0)
        if values.exact is None:
            return Dim.unknown()
        scale = np.float32(values.exact[i])
        at.require(0 <= scale < np.inf, "C3", f"scale {i} is {scale}")
        if scale == 1:
            return dim
        term = (dim * int(scale)).term if scale == int(scale) else None
        return Dim(_scaled(dim.lo, scale), INF if dim.hi == INF else _scaled(dim.hi, scale), term)

    def _pads(self, rank: int) -> list[tuple[int, int]]:
        """Return (begin, end) for each axis. Attributes too short are filled up with 0, those too long are cut."""
        begin, end = ((*pads, *(0,) * rank)[:rank] for pads in (self.pads_begin, self.pads_end))
        return list(zip(begin, end))

    def run(self, image: np.ndarray, scales_or_sizes: np.ndarray, axes: np.ndarray | None = None) -> np.ndarray:
        return self.resize(image, scales_or_sizes, range(image.ndim) if axes is None else axes.tolist())

    def resize(self, image: np.ndarray, values: np.ndarray, axes: Sequence[int]) -> np.ndarray:
        """Resize ``image`` along ``axes``. ``values`` are sizes or scales, as ``shape_calculation_mode`` says."""
        pads = self._pads(image.ndim)
        if any(map(any, pads)):
            image = np.pad(image, pads)
        resized, shrinks = self._resized(image.shape, values, axes)
        if self.mode == "nearest" or image.size == 0 or any(size == 0 for _, size, _ in resized):
            for axis, size, scale in resized:
                image = np.take(image, self._nearest(size, scale, image.shape[axis]), axis)
            return image
        whole = is_integer(image.dtype)
        x = image.astype(np.result_type(image, np.float32), copy=False)
        for axis, size, scale in resized:
            x = _weighted(x, axis, *self._taps(size, scale, image.shape[axis], shrinks))
            if whole and self.mode.endswith("pillow"):
                x = _rounded(x)
        # OpenVINO's CPU plugin rounds and saturates, too, while the core kernel truncates in modes linear_onnx and
        # cubic, and wraps around
        return saturated(np.rint(x), image.dtype) if whole else x.astype(image.dtype, copy=False)

    def _resized(
        self, shape: Sequence[int], values: np.ndarray, axes: Sequence[int]
    ) -> tuple[list[tuple[int, int, np.float32]], bool]:
        """Return (axis, size, scale) of each axis to resize, in the order of resizing, and whether to antialias."""
        if self.shape_calculation_mode == "scales":
            scales = [np.float32(scale) for scale in values.tolist()]
            sizes = [_scaled(shape[axis], scale) for axis, scale in zip(axes, scales)]
        else:
            sizes = values.tolist()
            scales = [np.float32(size) / np.float32(shape[axis] or 1) for axis, size in zip(axes, sizes)]
        # OpenVINO: an axis that keeps its size is left alone, whatever its coordinates would be
        resized = [row for row in zip(axes, sizes, scales) if row[1] != shape[row[0]] and row[2] != 1]
        # Pillow resizes rows first, then rounds, then columns
        return sorted(resized, reverse=True), self.antialias and any(scale < 1 for scale in scales)

    def prepare(self, *inputs: Value | None) -> Kernel:
        image, values, axes = (*inputs, None)[:3]
        return self.prepared(image, values, axes) or Kernel(self.run)

    def prepared(self, image: Value | None, values: Value | None, axes: Value | None) -> Kernel | None:
        """Return the kernel for f32 or f64 of a static shape, without pads, and constant sizes or scales; else None."""
        if image is None or values is None or any((*self.pads_begin, *self.pads_end)):
            return None
        shape, given = image.shape.static, values.exact
        places = range(len(shape or ())) if axes is None else axes.ints()
        if shape is None or given is None or places is None:
            return None
        if not native(image) or not math.prod(shape):
            return None
        resized, shrinks = self._resized(shape, given, places)
        passes: list[Pass] = []
        for axis, size, scale in resized:
            if self.mode == "nearest":
                near, times = self._nearest(size, scale, shape[axis]), size // shape[axis]
                repeats = axis == len(shape) - 1 and np.array_equal(near, np.arange(shape[axis]).repeat(times))
                passes.append((axis, size, times if repeats else near))
            else:
                taps = self._taps(size, scale, shape[axis], shrinks)
                passes.append((axis, size, _strips(*taps, shape[axis], image.type.dtype)))
        if not passes or not all(size for _, size, _ in passes):
            return None
        return _in_blocks(shape, passes, lambda part: self.resize(part, given, places))

    def prepare_channels_last(self, *inputs: Value | None) -> Kernel | None:
        image, values, axes = (*inputs, None)[:3]
        return self.prepared_channels_last(image, values, axes)

    def prepared_channels_last(self, image: Value | None, values: Value | None, axes: Value | None) -> Kernel | None:
        """Return the kernel of ``prepared`` for an ``image`` of rank 4 in channels-last layout, or None."""
        places = range(4) if axes is None else axes.ints()
        if image is None or places is None:
            return None
        kernel = self.prepared(permuted(image), values, Value.of(moved_axes(np.array(places))))
        return kernel and replace(kernel, algorithm=f"{kernel.algorithm}, channels last")

    def _coordinates(self, size: int, scale: np.float32, count: int) -> np.ndarray:
        """Return the coordinates of ``size`` output elements on an input axis of ``count``; in f32, as in OpenVINO."""
        x = np.arange(size, dtype=np.float32)
        half = np.float32(0.5)
        if self.coordinate_transformation_mode == "asymmetric":
            return x / scale
        if self.coordinate_transformation_mode == "tf_half_pixel_for_nn":
            return (x + half) / scale
        if self.coordinate_transformation_mode == "align_corners":
            return x * np.float32(count - 1) / np.float32(max(size - 1, 1))
        if self.coordinate_transformation_mode == "pytorch_half_pixel" and size == 1:
            return x
        return (x + half) / scale - half

    def _nearest(self, size: int, scale: np.float32, count: int) -> np.ndarray:
        """Return the index of the input element for each output element."""
        x = self._coordinates(size, scale, count)
        if self.nearest_mode == "round_prefer_floor":
            index = np.ceil(x - np.float32(0.5))
        elif self.nearest_mode == "round_prefer_ceil":
            index = _rounded(x)
        elif self.nearest_mode == "ceil" or (self.nearest_mode == "simple" and scale < 1):
            index = np.ceil(x)
        else:
            index = np.floor(x)
        return np.clip(index.astype(np.int64), 0, count - 1)

    def _taps(self, size: int, scale: np.float32, count: int, shrinks: bool) -> Taps:
        """Return the taps of ``size`` output elements on an input axis of ``count``, antialiased with ``shrinks``."""
        if self.mode == "bilinear_pillow":
            return _pillow(size, count, 1, lambda x: 1 - x)
        if self.mode == "bicubic_pillow":
            return _pillow(size, count, 2, self._bicubic)
        x = self._coordinates(size, scale, count)
        if self.mode == "linear":
            return _linear(x, count, scale if shrinks else np.float32(1))
        if self.mode == "linear_onnx":
            x = np.clip(x, 0, np.float32(count - 1))
            low = x.astype(np.int64)
            part = x - low
            return np.stack([low, np.minimum(low + 1, count - 1)], axis=-1), np.stack([1 - part, part], axis=-1)
        low = np.floor(x)
        near = low.astype(np.int64)[:, None] + np.arange(-1, 3)
        return np.clip(near, 0, count - 1), cubic_weights(x - low, self.cube_coeff)

    def _bicubic(self, x: np.ndarray) -> np.ndarray:
        """Return the weights of a cubic filter at the distances ``x``, from 0 to 2."""
        a = self.cube_coeff
        return np.where(x < 1, ((a + 2) * x - (a + 3)) * x * x + 1, (((x - 5) * x + 8) * x - 4) * a)


def _scaled(n: int, scale: np.float32) -> int:
    """Return ``floor(n * scale)``. OpenVINO adds 1e-6 to the scale, and computes in f32."""
    return int(np.floor(np.float32(n) * (scale + np.float32(1e-6))))


def _rounded(x: np.ndarray) -> np.ndarray:
    """Round to the nearest integers, halves away from 0."""
    whole = np.trunc(x)
    return whole + np.where(np.abs(x - whole) >= 0.5, np.sign(x), 0)


def _linear(x: np.ndarray, count: int, a: np.float32) -> Taps:
    """Return the taps of a triangular filter around each coordinate, which falls to 0 at a distance of 1 / ``a``.

    Taps outside the input have the weight 0.
    """
    reach = int(np.ceil(2 / a))
    near = _rounded(x).astype(np.int64)[:, None] + np.arange(-reach, reach + 1)
    weights = np.maximum(0, 1 - np.abs(a * (x[:, None] - near.astype(np.float32))))
    weights = np.where((near >= 0) & (near < count), weights, 0)
    return np.clip(near, 0, count - 1), _normalised(weights)


def _pillow(size: int, count: int, reach: int, filter: Callable[[np.ndarray], np.ndarray]) -> Taps:
    """Return the taps of Pillow's resampling: ``filter`` around the centre of each output element.

    ``filter`` takes distances below ``reach``; it is stretched where the image shrinks.
    """
    scale = count / size
    width = max(scale, 1.0)
    middle = (np.arange(size) + 0.5) * scale
    first = np.maximum(np.trunc(middle - reach * width + 0.5), 0)
    last = np.minimum(np.trunc(middle + reach * width + 0.5), count)
    near = first[:, None] + np.arange(int((last - first).max()))
    distance = np.abs(near - middle[:, None] + 0.5) / width
    weights = np.where((near < last[:, None]) & (distance < reach), filter(distance), 0)
    return np.clip(near, 0, count - 1).astype(np.int64), _normalised(weights)


def _normalised(weights: np.ndarray) -> np.ndarray:
    """Divide the weights of each output element by their sum, unless that is 0."""
    total = weights.sum(axis=-1, keepdims=True)
    return weights / np.where(total == 0, 1, total)


def _weighted(x: np.ndarray, axis: int, indices: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the weighted sums of the taps of ``x`` along ``axis``, in the dtype of ``x``."""
    out = np.zeros((*x.shape[:axis], len(indices), *x.shape[axis + 1 :]), x.dtype)
    weights = weights.astype(x.dtype)
    for column in np.flatnonzero(weights.any(axis=0)):
        of_axis = weights[:, column].reshape(-1, *(1,) * (x.ndim - axis - 1))
        out += np.take(x, indices[:, column], axis) * of_axis
    return out


def _strips(indices: np.ndarray, weights: np.ndarray, count: int, dtype: np.dtype) -> list[Strip]:
    """Return the taps of an axis of ``count`` input elements as strips."""
    strips: list[Strip] = []
    step = max(1, min(_STRIP, _STRIP * len(indices) // count))
    for start in range(0, len(indices), step):
        near = indices[start : start + step]
        first = int(near.min())
        matrix = np.zeros((len(near), int(near.max()) + 1 - first), dtype)
        np.add.at(matrix, (np.arange(len(near))[:, None], near - first), weights[start : start + step])
        strips.append((slice(start, start + len(near)), slice(first, first + matrix.shape[1]), matrix))
    return strips


def _in_blocks(shape: Sequence[int], passes: Sequence[Pass], plain: Callable[[np.ndarray], np.ndarray]) -> Kernel:
    """Return the kernel that resizes one axis after the other, in blocks of the axes before the first resized one.

    ``plain`` resizes all axes of a block that holds NaN or infinity.
    """
    sizes = list(shape)
    for axis, size, _ in passes:
        sizes[axis] = size
    lead = shape[: min(axis for axis, _, _ in passes)]
    weighted = any(isinstance(along, list) for _, _, along in passes)

    def resize(x: np.ndarray, out: np.ndarray) -> None:
        if weighted and not np.isfinite(x.max() - x.min()):  # 0 * inf would make a whole strip NaN
            out[...] = plain(x)
            return
        for number, (axis, size, along) in enumerate(passes, 1):
            shape = *x.shape[:axis], size, *x.shape[axis + 1 :]
            target = out if number == len(passes) else scratch(number % 2, x.dtype, *shape)
            if isinstance(along, int):
                for i in range(along):
                    target[..., i::along] = x
            elif isinstance(along, np.ndarray):
                np.take(x, along, axis, out=target, mode="clip")  # "raise" would buffer the output
            else:
                _multiplied(x, axis, along, target)
            x = target

    def call(image: np.ndarray, *_: Any, out: np.ndarray | None = None, finish: Finish | None = None) -> np.ndarray:
        whole = np.empty(sizes, image.dtype) if out is None else out
        fill = finishing(lambda index: resize(image[index], whole[index]), whole, finish)
        each_block(fill, tuple(lead), math.prod(sizes[len(lead) :]) * image.itemsize, 2 * BLOCK, work=whole.nbytes)
        return whole

    return Kernel(call, "in blocks", out=True, finish=True)


def _multiplied(x: np.ndarray, axis: int, strips: list[Strip], out: np.ndarray) -> None:
    """Fill ``out``, which is C-contiguous, with the products of ``x`` and the weights of ``strips`` along ``axis``."""
    inner = math.prod(x.shape[axis + 1 :])
    x, into = (array.reshape(-1, array.shape[axis], inner) for array in (x, out))
    for places, seen, weights in strips:
        if inner == 1:
            matmul(x[:, seen, 0], weights.T, into[:, places, 0])
        else:
            matmul(weights, x[:, seen], into[:, places])


@op("Interpolate", since=4, spec="image/interpolate-4")
class Interpolate4(Interpolate11):
    """As Interpolate-11 without Pillow's modes; ``shape_calculation_mode`` selects the input ``sizes`` or ``scales``.

    C1  ``sizes`` or ``scales``, whichever counts, and ``axes`` are 1D and of one length.
    C2  ``axes`` names axes of ``data``, counted from the front, none of them twice.
    C3  Pads, sizes and scales are not negative, and scales are finite.
    C4  An axis of length 0 keeps the length 0.
    """

    mode = attr.choice(*_MODES)
    inputs = ports(data="T", sizes="T_SIZE", scales="T_SCALES", axes=opt("T_AXES"))
    types = {"T": "numeric", "T_SIZE": "int", "T_SCALES": "float", "T_AXES": "int"}

    def infer(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, at: Site, data: Value, sizes: Value, scales: Value, axes: Value | None = None
    ) -> Value:
        return self.resized(at, data, scales if self.shape_calculation_mode == "scales" else sizes, axes)

    def run(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, data: np.ndarray, sizes: np.ndarray, scales: np.ndarray, axes: np.ndarray | None = None
    ) -> np.ndarray:
        values = scales if self.shape_calculation_mode == "scales" else sizes
        return self.resize(data, values, range(data.ndim) if axes is None else axes.tolist())

    def prepare(self, *inputs: Value | None) -> Kernel:
        data, sizes, scales, axes = (*inputs, None)[:4]
        values = scales if self.shape_calculation_mode == "scales" else sizes
        return self.prepared(data, values, axes) or Kernel(self.run)

    def prepare_channels_last(self, *inputs: Value | None) -> Kernel | None:
        data, sizes, scales, axes = (*inputs, None)[:4]
        values = scales if self.shape_calculation_mode == "scales" else sizes
        return self.prepared_channels_last(data, values, axes)


@op("Interpolate", since=1, spec="image/interpolate-1")
class Interpolate1(Op):
    """Resize ``data`` along ``axes`` to ``target_spatial_shape``.

    C1  ``target_spatial_shape`` is 1D and has one entry per entry of ``axes``.
    C2  ``axes`` names axes of ``data``, counted from the front, none of them twice.
    C3  No pad or size is negative.
    C4  An axis of length 0 keeps the length 0.
    C5  ``mode`` is not area, which the specification names and does not define.
    """

    # OpenVINO sorts ``axes`` first, so that its sizes count from the front; and it has no mode area

    axes = attr.ints()
    mode = attr.choice("nearest", "linear", "cubic", "area")
    align_corners = attr.bool(True)
    antialias = attr.bool(False)
    pads_begin = attr.ints((0,))
    pads_end = attr.ints((0,))
    inputs = ports(data="T", target_spatial_shape="T_SIZE")
    types = {"T": "numeric", "T_SIZE": "int"}  # OpenVINO: integers as well as the floats of the specification

    def infer(self, at: Site, data: Value, target_spatial_shape: Value) -> Value:
        at.require(self.mode != "area", "C5", "mode is area")
        axes = Value.of(np.array(self.axes, np.int64))
        return self._newer(data.rank or 4).resized(at, data, target_spatial_shape, axes)

    def run(self, data: np.ndarray, target_spatial_shape: np.ndarray) -> np.ndarray:
        return self._newer(data.ndim).resize(data, target_spatial_shape, self.axes)

    def prepare(self, *inputs: Value | None) -> Kernel:
        data, target_spatial_shape = inputs
        axes = Value.of(np.array(self.axes, np.int64))
        newer = self._newer((data and data.rank) or 4)
        return newer.prepared(data, target_spatial_shape, axes) or Kernel(self.run)

    def prepare_channels_last(self, *inputs: Value | None) -> Kernel | None:
        data, target_spatial_shape = inputs
        axes = Value.of(np.array(self.axes, np.int64))
        return self._newer(4).prepared_channels_last(data, target_spatial_shape, axes)

    def _newer(self, rank: int) -> Interpolate11:
        """Return the Interpolate-11 that OpenVINO computes instead; the specification leaves these details open."""
        mode = "linear_onnx" if self.mode == "linear" and rank < 5 else self.mode
        pads = any((*self.pads_begin, *self.pads_end))
        if self.align_corners:
            coordinates = "align_corners"
        elif self.mode == "linear" and not pads and not (rank == 4 and set(self.axes) == {2, 3}):
            coordinates = "half_pixel"
        else:
            coordinates = "asymmetric"
        return Interpolate11(
            mode=mode, shape_calculation_mode="sizes", coordinate_transformation_mode=coordinates,
            nearest_mode="simple", antialias=self.antialias, pads_begin=self.pads_begin, pads_end=self.pads_end,
        )  # fmt: skip
