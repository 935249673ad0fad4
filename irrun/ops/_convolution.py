"""What Convolution and GroupConvolution share: their shape rule, the direct kernel and the prepared ones.

Kernels see filters as (groups, out, in, …) and data as (batch, groups * in, …).
"""

import functools
import itertools
import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from irrun.opdef import Kernel, Site, Value, attr, ports
from irrun.ops._gemm import matmul, narrow, wide
from irrun.ops._windows import Axis, Sliding, taps
from irrun.types import Dim, PartialShape


class Filtering(Sliding):
    """Base of all convolutions: ``filters`` have ``leading`` axes before the spatial ones.

    C1  ``data`` has one of ``ranks``, ``filters`` one that fits it.
    C5  The channels of ``data`` are those that the filters take.
    """

    dilations = attr.ints()
    types = {"T": "numeric", "T_SHAPE": "int"}
    ranks = frozenset({3, 4, 5})
    leading = 2

    def spatial(self, at: Site, data: Value, filters: Value) -> int | None:
        """The number of spatial axes, as far as it is known."""
        found = {r for r in (data.rank, filters.rank and filters.rank - self.leading + 2) if r is not None}
        shapes = f"data is {data.shape}, filters are {filters.shape}"
        at.require(len(found) <= 1 and found <= self.ranks, "C1", shapes)
        if len(self.ranks) == 1:
            found = set(self.ranks)
        return max(found, default=2) - 2 or len(self.strides or self.dilations) or None

    def channels(self, at: Site, data: Dim, filters: Sequence[Dim]) -> Dim:
        """The channels of the output, from those of ``data`` and the leading dims of the filters."""
        raise NotImplementedError

    def correlated(self, at: Site, data: Value, filters: Value) -> Value:
        """The output of all but the transposed convolutions."""
        spatial = self.spatial(at, data, filters)
        if spatial is None:
            return data.reshaped(PartialShape(None))
        batch, channels, *sizes = data.shape.dims or PartialShape.of_rank(2 + spatial)
        given = filters.shape.dims or tuple(PartialShape.of_rank(self.leading + spatial))
        out = self.channels(at, channels, given[: self.leading])
        return data.reshaped([batch, out, *self.slide(at, sizes, given[self.leading :])])


def ungrouped(at: Site, data: Dim, ins: Dim, outs: Dim) -> Dim:
    """``channels`` of an operation without groups."""
    at.require(data.meet(ins) is not None, "C5", f"data has {data} channels, the filters take {ins}")
    return outs


def grouped(at: Site, data: Dim, groups: Dim, ins: Dim, outs: Dim) -> Dim:
    """``channels`` of an operation with groups."""
    message = f"data has {data} channels, {groups} groups take {ins} each"
    at.require(data.meet(groups * ins) is not None, "C5", message)
    if data.is_static and ins.is_static and ins.lo:
        at.require(data.lo % ins.lo == 0, "C5", message)
        groups = Dim(data.lo // ins.lo)
    return groups * outs


class ConvolutionBase(Filtering):
    """Base of Convolution and GroupConvolution."""

    inputs = ports(data="T", filters="T")

    def infer(self, at: Site, data: Value, filters: Value) -> Value:
        return self.correlated(at, data, filters)

    def prepare(self, *inputs: Value | None) -> Kernel:
        data, filters = inputs
        assert data is not None and filters is not None
        if filters.data is None or wide(filters.data.dtype).kind != "f":
            return Kernel(self.run)
        grouped = filters.data.reshape(*(1,) * (3 - self.leading), *filters.data.shape)
        return prepared(grouped, lambda sizes: self.axes(sizes, grouped.shape[3:]), data.shape)


# ---------------------------------------------------------------------------------------------
# the direct kernel


def convolve(data: np.ndarray, filters: np.ndarray, axes: Sequence[Axis]) -> np.ndarray:
    """The convolution, one matrix product for each tap."""
    batch, (groups, outs, ins) = len(data), filters.shape[:3]
    work = wide(data.dtype)
    split = data.reshape(batch, groups, ins, *data.shape[2:]).astype(work, copy=False)
    out = np.zeros((batch, groups, outs, *(axis.out for axis in axes)), work)
    for tap, windows, elements in taps(axes):
        seen = split[(..., *elements)]
        matrix = seen.reshape(batch, groups, ins, math.prod(seen.shape[3:]))
        product = matmul(filters[(..., *tap)].astype(work, copy=False), matrix)
        out[(..., *windows)] += product.reshape(batch, groups, outs, *seen.shape[3:])
    return narrow(out.reshape(batch, groups * outs, *out.shape[3:]), data.dtype)


# ---------------------------------------------------------------------------------------------
# prepared kernels: filters are packed once, and the method is chosen once for each shape of the data


Method = Callable[[np.ndarray], np.ndarray]
"""(batch, groups, in, …) to (batch, groups, out, …), both of the type that sums are kept in."""


def prepared(
    filters: np.ndarray, axes_of: Callable[[Sequence[int]], tuple[Axis, ...]], shape: PartialShape
) -> Kernel:
    """The kernel for constant filters of a float type."""
    work, (groups, outs, ins) = wide(filters.dtype), filters.shape[:3]
    packed = Filters(filters.astype(work, copy=False))

    @functools.lru_cache
    def method(shape: tuple[int, ...]) -> Method:
        return choose(packed, axes_of(shape[2:]))

    def kernel(data: np.ndarray, _: np.ndarray) -> np.ndarray:
        split = data.reshape(len(data), groups, ins, *data.shape[2:]).astype(work, copy=False)
        out = method(data.shape)(split)
        return narrow(out.reshape(len(data), groups * outs, *out.shape[3:]), data.dtype)

    if shape.static is not None:
        method(shape.static)
    return Kernel(kernel)


class Filters:
    """Constant filters, packed for the methods that ask for it."""

    def __init__(self, filters: np.ndarray) -> None:
        self.groups, self.outs, self.ins, *self.kernel = filters.shape
        self.array = filters
        self.matrix = filters.reshape(self.groups, self.outs, self.ins * math.prod(self.kernel))

    @functools.cached_property
    def tiled(self) -> np.ndarray:
        """What Winograd multiplies the tiles with: a matrix for each of their elements."""
        spread = _FILTER @ self.array.reshape(-1, 9).T.astype(np.float64)
        return spread.reshape(36, self.groups, self.outs, self.ins).astype(self.array.dtype)


def choose(filters: Filters, axes: tuple[Axis, ...]) -> Method:
    """The fastest method for these filters and this geometry."""
    steps = {(axis.stride, axis.dilation) for axis in axes}
    windows = math.prod(axis.out for axis in axes)
    if steps == {(1, 1)} and set(filters.kernel) == {1} and not any(axis.begin or axis.end for axis in axes):
        return functools.partial(pointwise, filters)
    few = min(filters.outs, filters.ins) < 32 or windows < 14 * 14
    if steps == {(1, 1)} and filters.kernel == [3, 3] and filters.array.dtype == np.float32 and not few:
        return functools.partial(winograd, filters, axes)
    return functools.partial(columns, filters, axes)


def pointwise(filters: Filters, data: np.ndarray) -> np.ndarray:
    """One matrix product, without a copy."""
    batch, groups, ins, *sizes = data.shape
    out = matmul(filters.matrix, data.reshape(batch, groups, ins, math.prod(sizes)))
    return out.reshape(batch, groups, filters.outs, *sizes)


def columns(filters: Filters, axes: tuple[Axis, ...], data: np.ndarray) -> np.ndarray:
    """Copy what each tap sees into the rows of a matrix, block by block, and multiply it with the filters."""
    batch, groups, ins = data.shape[:3]
    rows, *rest = (axis.out for axis in axes)
    height, width = ins * math.prod(filters.kernel), math.prod(rest)
    out = np.empty((batch, groups, filters.outs, rows * width), data.dtype)
    steps = _steps((batch, groups, rows), height * width * data.itemsize)
    for images, some in _blocks((batch, groups), steps):
        padded = _padded(data[images, some], axes, [axis.begin + axis.size + axis.end for axis in axes])
        for (block,) in _blocks((rows,), steps[2:]):
            windows = (block, *(slice(0, n) for n in rest))
            matrix = np.empty((*padded.shape[:3], *filters.kernel, block.stop - block.start, *rest), data.dtype)
            for tap in np.ndindex(*filters.kernel):
                seen = (axis.seen(n, part) for axis, n, part in zip(axes, tap, windows))
                matrix[(slice(None), slice(None), slice(None), *tap)] = padded[(..., *seen)]
            matrix = matrix.reshape(*padded.shape[:2], height, (block.stop - block.start) * width)
            target = out[images, some, :, block.start * width : block.stop * width]
            matmul(filters.matrix[some], matrix, out=target)
    return out.reshape(batch, groups, filters.outs, rows, *rest)


def winograd(filters: Filters, axes: tuple[Axis, ...], data: np.ndarray) -> np.ndarray:
    """Winograd's F(4×4, 3×3): 36 products for a tile of 16 windows in place of 144.

    Its error is about eight times that of the plain sum of products, some 2e-5 on outputs of unit variance.
    """
    batch, groups, ins = data.shape[:3]
    high, broad = (axis.out for axis in axes)
    down, across = -(-high // 4), -(-broad // 4)
    out = np.empty((batch, groups, filters.outs, down, 4, across, 4), data.dtype)
    steps = _steps((batch, groups, down), 36 * max(ins, filters.outs) * across * data.itemsize)
    for images, some in _blocks((batch, groups), steps):
        padded = _padded(data[images, some], axes, (4 * down + 2, 4 * across + 2))
        for (block,) in _blocks((down,), steps[2:]):
            strip = padded[..., 4 * block.start : 4 * block.stop + 2, :]
            tiles = sliding_window_view(strip, (6, 6), (3, 4))[:, :, :, ::4, ::4].transpose(5, 6, 0, 1, 2, 3, 4)
            lead, grid = tiles.shape[2:4], tiles.shape[5:]
            spread = matmul(_DATA, tiles.reshape(36, -1)).reshape(36, *lead, ins, math.prod(grid))
            product = matmul(filters.tiled[:, np.newaxis, some], spread)
            found = matmul(_OUT, product.reshape(36, -1)).reshape(4, 4, *lead, filters.outs, *grid)
            out[images, some, :, block] = found.transpose(2, 3, 4, 5, 0, 6, 1)
    with np.errstate(over="ignore", invalid="ignore"):
        if not np.isfinite(out.sum()):  # an infinity or NaN spoils its whole tile
            return columns(filters, axes, data)
    whole = out.reshape(batch, groups, filters.outs, 4 * down, 4 * across)
    return np.ascontiguousarray(whole[..., :high, :broad])


def _vandermonde(columns: int) -> np.ndarray:
    """The powers of five points, and of infinity: what the polynomials of Winograd's method are evaluated at."""
    points = np.array([0, 1, -1, 1 / 2, -2])  # these keep the error small
    return np.vstack([points[:, np.newaxis] ** np.arange(columns), np.eye(columns)[-1]])


_FILTER = np.kron(_vandermonde(3), _vandermonde(3))
_DATA = np.kron(*[np.linalg.inv(_vandermonde(6)).T] * 2).astype(np.float32)
_OUT = np.kron(_vandermonde(4).T, _vandermonde(4).T).astype(np.float32)

_BLOCK = 1 << 21
"""Bytes that are copied before they are multiplied: what the second cache of a core holds."""


def _steps(counts: Sequence[int], size: int) -> list[int]:
    """How many of each axis to take at once, where one of the last takes ``size`` bytes."""
    steps: list[int] = []
    for count in reversed(counts):
        steps.insert(0, max(1, min(count, _BLOCK // max(size, 1))))
        size *= steps[0]
    return steps


def _blocks(counts: Sequence[int], steps: Sequence[int]) -> Iterator[tuple[slice, ...]]:
    return itertools.product(
        *([slice(i, min(i + step, count)) for i in range(0, count, step)] for count, step in zip(counts, steps))
    )


def _padded(data: np.ndarray, axes: tuple[Axis, ...], sizes: Sequence[int]) -> np.ndarray:
    """The data among zeros, cut where the axes grow to less than they are."""
    if data.shape[3:] == tuple(sizes) and not any(axis.begin for axis in axes):
        return data
    out = np.zeros((*data.shape[:3], *sizes), data.dtype)
    kept = [max(0, min(axis.size, size - axis.begin)) for axis, size in zip(axes, sizes)]
    inside = (slice(axis.begin, axis.begin + n) for axis, n in zip(axes, kept))
    out[(..., *inside)] = data[(..., *map(slice, kept))]
    return out
