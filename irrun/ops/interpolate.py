"""Interpolate: resize a tensor along some axes.  Spec: image/interpolate-{1,4,11}.

Every mode is separable, so the axes are resized one after the other.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import irrun.kernels.resampling as resampling
from irrun.kernels.blocks import BLOCK_BYTES, each_block, reporting, scratch
from irrun.kernels.elementwise import native
from irrun.opdef import CHANNELS_LAST, Kernel, OnTileReady, Op, Request, Site, Value, attr, ignore_tile, op, opt, ports
from irrun.ops._sampling import is_integer, saturated
from irrun.types import INF, UNKNOWN_RANK, Dim, PartialShape

_MODES = ("nearest", "linear", "linear_onnx", "cubic")
_COORDINATES = ("half_pixel", "pytorch_half_pixel", "asymmetric", "tf_half_pixel_for_nn", "align_corners")
_ROUNDINGS = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil", "simple")


@op("Interpolate", since=11, spec="image/interpolate-11")
class Interpolate11(Op):
    """Resize ``image`` along ``axes`` (all by default) to the sizes, or by the scales, of ``scales_or_sizes``.

    C1  ``scales_or_sizes`` and ``axes`` are 1D and have the same length.
    C2  ``axes`` names axes of ``image``, counted from the front, none of them twice.
    C3  Pads, sizes and scales are not negative, and scales are finite.
    C4  An axis of length 0 keeps the length 0.
    C5  ``scales_or_sizes`` holds integers if ``shape_calculation_mode`` is sizes, and floats if it is scales.
    """

    # OpenVINO's CPU plugin antialiases in a different way than its core kernel and the specification; in mode
    # bicubic_pillow, it uses -0.5 for cube_coeff; in both modes of Pillow, it rounds i32 and i64 only once, at the end

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
    channels_last = True

    def infer(self, at: Site, image: Value, scales_or_sizes: Value, axes: Value | None = None) -> Value:
        kind = scales_or_sizes.type.kind
        by_scales = self.shape_calculation_mode == "scales"
        at.require(
            kind == "dynamic" or (kind == "float") == by_scales,
            "C5",
            f"shape_calculation_mode is {self.shape_calculation_mode}, but scales_or_sizes is {scales_or_sizes.type}",
        )
        return self.resized(at, image, scales_or_sizes, axes)

    def resized(self, at: Site, image: Value, values: Value, axes: Value | None) -> Value:
        """Infer the output. ``values`` are sizes or scales, as ``shape_calculation_mode`` says."""
        rank = image.rank
        count = Dim.unknown() if rank is None else Dim(rank)
        if axes is not None:
            at.require(axes.rank in (None, 1), "C1", f"axes is {axes.shape}, not 1D")
            count = axes.shape.count()
        at.require(
            values.rank in (None, 1), "C1", f"the tensor of {self.shape_calculation_mode} is {values.shape}, not 1D"
        )
        counts = f"there are {values.shape.count()} {self.shape_calculation_mode}, but {count} axes"
        at.require(values.shape.count().meet(count) is not None, "C1", counts)
        for name in ("pads_begin", "pads_end"):
            pads = getattr(self, name)
            at.require(min((0, *pads)) == 0, "C3", f"{name} {list(pads)} has a negative entry")
        if image.shape.dims is None or rank is None:
            return image.reshaped(UNKNOWN_RANK)
        places = tuple(range(rank)) if axes is None else axes.ints()
        if places is None:
            return image.reshaped(PartialShape.of_rank(rank))
        at.require(
            all(0 <= axis < rank for axis in places), "C2", f"axes {list(places)} has an entry outside 0 to {rank - 1}"
        )
        at.require(len(set(places)) == len(places), "C2", f"axes {list(places)} names an axis more than once")
        dims = [dim + begin + end for dim, (begin, end) in zip(image.shape.dims, self._pads(rank))]
        for i, axis in enumerate(places):
            size = self._size(at, dims[axis], values, i)
            at.require(
                dims[axis].hi > 0 or size.lo == 0,
                "C4",
                f"axis {axis} has the length {dims[axis]}, but is resized to {size}",
            )
            dims[axis] = size
        return image.reshaped(dims)

    def _size(self, at: Site, dim: Dim, values: Value, i: int) -> Dim:
        """Return the size of an axis of size ``dim`` after entry ``i`` of ``values`` has resized it."""
        if self.shape_calculation_mode == "sizes":
            sizes = values.dims()
            size = Dim.unknown() if sizes is None else sizes[i]
            at.require(size.hi >= 0, "C3", f"size {i} is {size}, which is negative")
            return size.max(0)
        if values.exact is None:
            return Dim.unknown()
        scale = np.float32(values.exact[i])
        at.require(0 <= scale < np.inf, "C3", f"scale {i} is {scale}, which is negative or not finite")
        if scale == 1:
            return dim
        term = (dim * int(scale)).term if scale == int(scale) else None
        return Dim(
            resampling.scaled_size(dim.lo, scale), INF if dim.hi == INF else resampling.scaled_size(dim.hi, scale), term
        )

    def _pads(self, rank: int) -> list[tuple[int, int]]:
        """Return (begin, end) for each axis. A short attribute is filled up with 0, a long one is cut."""
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
            x = resampling.weighted_sums(x, axis, *self._taps(size, scale, image.shape[axis], shrinks))
            if whole and self.mode.endswith("pillow"):
                x = resampling.round_half_away(x)
        # OpenVINO's CPU plugin rounds and saturates as well; its core kernel truncates in modes linear_onnx and cubic,
        # and wraps around
        return saturated(np.rint(x), image.dtype) if whole else x.astype(image.dtype, copy=False)

    def _resized(
        self, shape: Sequence[int], values: np.ndarray, axes: Sequence[int]
    ) -> tuple[list[tuple[int, int, np.float32]], bool]:
        """Return (axis, size, scale) of each axis to resize, in the order of resizing, and whether to antialias."""
        if self.shape_calculation_mode == "scales":
            scales = [np.float32(scale) for scale in values.tolist()]
            sizes = [resampling.scaled_size(shape[axis], scale) for axis, scale in zip(axes, scales)]
        else:
            sizes = values.tolist()
            scales = [np.float32(size) / np.float32(shape[axis] or 1) for axis, size in zip(axes, sizes)]
        # OpenVINO does not resample an axis that keeps its size, even if its coordinates would change
        resized = [row for row in zip(axes, sizes, scales) if row[1] != shape[row[0]] and row[2] != 1]
        # Pillow resizes rows first, then rounds, then columns
        return sorted(resized, reverse=True), self.antialias and any(scale < 1 for scale in scales)

    def prepare(self, request: Request) -> Kernel | None:
        image, values, axes = request.first(3)
        return self.prepared(image, values, axes, request.channels_last)

    def prepared(
        self, image: Value | None, values: Value | None, axes: Value | None, channels_last: bool
    ) -> Kernel | None:
        """Return the kernel for f32 or f64 of a static shape, without pads, and constant sizes or scales; else None."""
        if image is None or values is None or any((*self.pads_begin, *self.pads_end)):
            return None
        given = values.exact
        places = range(image.rank or 0) if axes is None else axes.ints()
        if channels_last and places is not None:
            image, places = image.channels_last(), [CHANNELS_LAST[axis] for axis in places]
        shape = image.shape.static
        if shape is None or given is None or places is None:
            return None
        if not native(image) or not math.prod(shape):
            return None
        resized, shrinks = self._resized(shape, given, places)
        if not resized or not all(size for _, size, _ in resized):
            return None
        passes: list[resampling.Pass] = []
        for axis, size, scale in resized:
            if self.mode == "nearest":
                near, times = self._nearest(size, scale, shape[axis]), size // shape[axis]
                repeats = axis == len(shape) - 1 and np.array_equal(near, np.arange(shape[axis]).repeat(times))
                passes.append((axis, size, times if repeats else near))
            else:
                taps = self._taps(size, scale, shape[axis], shrinks)
                passes.append((axis, size, resampling.strips(*taps, shape[axis], image.type.dtype)))
        return _in_blocks(shape, passes, lambda part: self.resize(part, given, places))

    def _nearest(self, size: int, scale: np.float32, count: int) -> np.ndarray:
        """Return the index of the input element for each of ``size`` output elements, on an input axis of ``count``."""
        x = resampling.coordinates(self.coordinate_transformation_mode, size, scale, count)
        return resampling.nearest(x, count, self.nearest_mode, scale < 1)

    def _taps(self, size: int, scale: np.float32, count: int, shrinks: bool) -> resampling.Taps:
        """Return the taps of ``size`` output elements on an input axis of ``count``, antialiased with ``shrinks``."""
        if self.mode == "bilinear_pillow":
            return resampling.pillow_bilinear_taps(size, count)
        if self.mode == "bicubic_pillow":
            return resampling.pillow_bicubic_taps(size, count, self.cube_coeff)
        x = resampling.coordinates(self.coordinate_transformation_mode, size, scale, count)
        if self.mode == "linear":
            return resampling.triangle_taps(x, count, scale if shrinks else np.float32(1))
        if self.mode == "linear_onnx":
            return resampling.linear_taps(x, count)
        return resampling.cubic_taps(x, count, self.cube_coeff)


def _in_blocks(
    shape: Sequence[int], passes: Sequence[resampling.Pass], plain: Callable[[np.ndarray], np.ndarray]
) -> Kernel:
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
                resampling.multiply_strips(x, axis, along, target)
            x = target

    def call(
        image: np.ndarray, *_: Any, out: np.ndarray | None = None, on_tile_ready: OnTileReady = ignore_tile
    ) -> np.ndarray:
        whole = np.empty(sizes, image.dtype) if out is None else out
        fill = reporting(lambda index: resize(image[index], whole[index]), whole, on_tile_ready)
        each_block(
            fill, tuple(lead), math.prod(sizes[len(lead) :]) * image.itemsize, 2 * BLOCK_BYTES, work=whole.nbytes
        )
        return whole

    return Kernel(call, "in blocks", out="tiles")


@op("Interpolate", since=4, spec="image/interpolate-4")
class Interpolate4(Interpolate11):
    """Compute the same as Interpolate-11, without the modes of Pillow.

    ``shape_calculation_mode`` selects which of the inputs ``sizes`` and ``scales`` is used.

    C1  The input that is used (``sizes`` or ``scales``) and ``axes`` are 1D and have the same length.
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

    def prepare(self, request: Request) -> Kernel | None:
        data, sizes, scales, axes = request.first(4)
        values = scales if self.shape_calculation_mode == "scales" else sizes
        return self.prepared(data, values, axes, request.channels_last)


@op("Interpolate", since=1, spec="image/interpolate-1")
class Interpolate1(Op):
    """Resize ``data`` along ``axes`` to ``target_spatial_shape``.

    C1  ``target_spatial_shape`` is 1D and has one entry for each of ``axes``.
    C2  ``axes`` names axes of ``data``, counted from the front, none of them twice.
    C3  Pads and sizes are not negative.
    C4  An axis of length 0 keeps the length 0.
    C5  ``mode`` is not area, which the specification names but does not define.
    """

    # OpenVINO first sorts ``axes``, so that the sizes belong to the axes from front to back; it has no mode area

    axes = attr.ints()
    mode = attr.choice("nearest", "linear", "cubic", "area")
    align_corners = attr.bool(True)
    antialias = attr.bool(False)
    pads_begin = attr.ints((0,))
    pads_end = attr.ints((0,))
    inputs = ports(data="T", target_spatial_shape="T_SIZE")
    types = {"T": "float", "T_SIZE": "int"}
    channels_last = True

    def infer(self, at: Site, data: Value, target_spatial_shape: Value) -> Value:
        at.require(self.mode != "area", "C5", "mode area is not defined by the specification", "use another mode")
        axes = Value.of(np.array(self.axes, np.int64))
        return self._newer(data.rank or 4).resized(at, data, target_spatial_shape, axes)

    def run(self, data: np.ndarray, target_spatial_shape: np.ndarray) -> np.ndarray:
        return self._newer(data.ndim).resize(data, target_spatial_shape, self.axes)

    def prepare(self, request: Request) -> Kernel | None:
        data, target_spatial_shape = request.inputs
        axes = Value.of(np.array(self.axes, np.int64))
        newer = self._newer((data and data.rank) or 4)
        return newer.prepared(data, target_spatial_shape, axes, request.channels_last)

    def _newer(self, rank: int) -> Interpolate11:
        """Return the Interpolate-11 that OpenVINO computes instead. The specification leaves these details open."""
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
