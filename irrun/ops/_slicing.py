"""Shared by Slice, StridedSlice and SliceScatter: the shape of a slice, and the region that it takes."""

from collections.abc import Sequence

import numpy as np

from irrun.opdef import ORDER, Kernel, Site, Value
from irrun.types import INF, Dim, PartialShape

_OPEN = 2**31 - 1
"""A bound from INT_MAX on means "to the end" where the dim is unknown, as Slice-8 defines it."""


def sliced(dim: Dim, start: Dim | None, stop: Dim | None, step: Dim) -> Dim:
    """Return the length of ``range(dim)[start:stop:step]``. None as a bound is an open end."""
    if not step.is_static:
        return Dim(0, dim.hi)
    stride = step.lo
    if stride < 0:  # a backward slice is a forward slice of the mirror image, in which element -1 - i is i
        start, stop, stride = _mirrored(start), _mirrored(stop), -stride
    if not dim.is_static:
        start = None if start is not None and start.hi <= -_OPEN else start
        stop = None if stop is not None and stop.lo >= _OPEN else stop
    first = Dim(0) if start is None else _position(start, dim)
    last = dim if stop is None else _position(stop, dim)
    length = (last - first).max(0).ceil_div(stride)
    known = _known(dim, start, stop, stride)
    if known is None:
        return length
    return dim if known is dim else Dim(known.lo, known.hi, length.term)


def _mirrored(bound: Dim | None) -> Dim | None:
    """Return the bound in the mirror image."""
    return None if bound is None else -1 - bound


def _position(bound: Dim, dim: Dim) -> Dim:
    """Return the position of a bound in a dim. Negative bounds count from the end, and both ends clamp."""
    if bound.lo >= 0:
        return bound.min(dim)
    if bound.hi < 0:
        return (dim - -bound).max(0)
    return Dim(0, dim.hi)


def _known(dim: Dim, start: Dim | None, stop: Dim | None, stride: int) -> Dim | None:
    """Return all lengths that a dim can give where the bounds are known, or None where they are not.

    A bound starts or stops to clamp at certain sizes of the dim. Between these sizes, the length grows or shrinks
    steadily with the dim, so its extremes are at these sizes and at the ends of the dim.
    """
    if any(b is not None and not b.is_static for b in (start, stop)):
        return None
    low, high = (None if b is None else b.lo for b in (start, stop))
    sizes = [dim.lo, dim.hi, *(abs(b) for b in (low, high) if b is not None and dim.fits(abs(b)))]
    lengths = [len(range(n)[low:high:stride]) for n in sizes]
    if lengths == sizes:
        return dim
    longest = max(lengths)
    endless = dim.hi == INF and longest >= INF // (2 * stride)
    return Dim(min(lengths), INF if endless else longest)


def count_axes(at: Site, label: str, **bounds: Value | None) -> Dim:
    """Return how many axes are sliced. Each of ``bounds`` is 1D, and all have the same length."""
    count = Dim.unknown()
    for name, value in bounds.items():
        if value is None:
            continue
        at.require(value.rank in (None, 1), label, f"{name} is {value.shape}, not 1D")
        both = count.meet(value.shape.count())
        at.require(
            both is not None, label, f"{name} has length {value.shape.count()}, but the inputs before it have {count}"
        )
        assert both is not None
        count = both
    return count


def slice_shape(at: Site, data: Value, start: Value, stop: Value, step: Value, axes: Value | None) -> PartialShape:
    """Return the shape of ``data[start:stop:step]``. Refuses by the clauses C1 to C4 of Slice and SliceScatter."""
    at.require(data.rank != 0, "C1", "data is a scalar")
    count = count_axes(at, "C2", start=start, stop=stop, step=step, axes=axes)
    rank = data.rank
    at.require(rank is None or count.lo <= rank, "C2", f"start has length {count}, but data has rank {rank}")
    steps = step.dims() or ()
    at.require(not any(n == 0 for n in steps), "C3", f"step [{','.join(map(str, steps))}] has an entry of 0")
    if rank is None:
        return data.shape
    places = _axes(at, rank, count.value, axes)
    if places is None:
        return PartialShape.of([Dim(0, d.hi) for d in data.shape])
    dims = list(data.shape)
    unknown = (Dim(-INF, INF),) * len(places)
    for axis, *bounds in zip(places, *(value.dims() or unknown for value in (start, stop, step))):
        dims[axis] = sliced(dims[axis], *bounds)
    return PartialShape.of(dims)


def _axes(at: Site, rank: int, count: int | None, axes: Value | None) -> tuple[int, ...] | None:
    """Return the axes to slice, by default the first ``count``, or None where they are not known."""
    if axes is None:
        return None if count is None else tuple(range(count))
    places = axes.ints()
    if places is None:
        return None
    places = tuple(at.axis(axis, rank, "C4") for axis in places)
    at.require(len(set(places)) == len(places), "C4", f"axes {list(places)} names an axis more than once")
    return places


def region(
    rank: int, start: np.ndarray, stop: np.ndarray, step: np.ndarray, axes: np.ndarray | None
) -> tuple[slice, ...]:
    """Return the index of the part of a tensor that the bounds select.

    The entries of the bounds may be Dims. Raises UnknownDimError for an unknown one.
    """
    index = [slice(None)] * rank
    places = range(len(start)) if axes is None else axes.tolist()
    for axis, *bounds in zip(places, start.tolist(), stop.tolist(), step.tolist()):
        index[int(axis)] = slice(*(int(b) for b in bounds))
    return tuple(index)


def constants(inputs: Sequence[Value | None]) -> list[np.ndarray | None] | None:
    """Return the contents of the inputs, None for an absent one; None unless all inputs are constant."""
    arrays = [None if value is None else value.exact for value in inputs]
    return None if any(v is not None and a is None for v, a in zip(inputs, arrays)) else arrays


def view_channels_last(index: tuple[slice, ...]) -> Kernel:
    """Return the kernel that returns the view ``index``, of four axes, of channels-last data."""
    permuted = tuple(index[axis] for axis in ORDER)
    return Kernel(lambda data, *_: data[permuted], "view, channels last")
