"""Windows that slide over the spatial axes of data: the geometry that convolutions and poolings share."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final


@dataclass(frozen=True, slots=True)
class Axis:
    """The windows along one axis: ``out`` windows over ``size`` elements and the pads around these."""

    size: int
    kernel: int
    stride: int
    dilation: int
    begin: int
    end: int
    out: int

    def span(self, tap: int) -> tuple[slice, slice]:
        """Return the windows that see an element through ``tap``, and the elements that they see, as two slices.

        Windows that see a pad through ``tap`` are left out.
        """
        offset = tap * self.dilation - self.begin  # window n sees element n * stride + offset
        first = max(0, -(offset // self.stride))
        last = min(self.out, -((offset - self.size) // self.stride))
        if first >= last:
            return slice(0, 0), slice(0, 0)
        start = first * self.stride + offset
        return slice(first, last), slice(start, start + (last - first - 1) * self.stride + 1, self.stride)

    @property
    def seeing(self) -> Sequence[int]:
        """Return the taps that may see an element. Far more taps than elements and windows are not all returned."""
        return range(self.kernel) if self.kernel <= self.size + self.out else _seeing(self)

    @property
    def reach(self) -> int:
        """Return how many elements, including pads, all windows cover together."""
        return (self.out - 1) * self.stride + (self.kernel - 1) * self.dilation + 1

    @property
    def inside(self) -> tuple[slice, slice]:
        """Return the slice of the covered extent that holds data, and the slice of the data that lies in it."""
        return _inside(self)

    def phase(self, phase: int, size: int) -> tuple[slice, slice]:
        """Return which of the positions ``phase``, ``phase + stride``, … hold data, and the slice of this data.

        Positions count from the start of the covered extent. ``size`` is how many there are.
        """
        first = max(0, -((phase - self.begin) // self.stride))
        start = first * self.stride + phase - self.begin
        count = max(0, min(size - first, -((start - self.size) // self.stride)))
        return slice(first, first + count), slice(start, start + count * self.stride, self.stride)

    def part(self, windows: slice) -> tuple[Axis, slice]:
        """Return the axis of some of the windows, and the slice of the elements that they see.

        The new axis covers these elements only.
        """
        return _part(self, windows.start, windows.stop)


@lru_cache
def _seeing(axis: Axis) -> list[int]:
    """Return the taps of a kernel through which some window sees an element, ascending."""
    seeing: set[int] = set()
    for offset in range(axis.begin, axis.begin - axis.out * axis.stride, -axis.stride):
        first, last = -(-offset // axis.dilation), (offset + axis.size - 1) // axis.dilation
        seeing.update(range(max(0, first), min(axis.kernel, last + 1)))
    return sorted(seeing)


def is_sparse(axes: Sequence[Axis]) -> bool:
    """Return whether a copy of the data with its pads would be far larger than the data and the windows together."""
    dense = math.prod(axis.size for axis in axes) + math.prod(axis.out for axis in axes)
    # the copies have room for whole strides
    return (
        math.prod(max(axis.reach, axis.stride) for axis in axes)
        > _MAX_PADDED_PER_ELEMENT * dense + _MAX_PADS_ALONE_ELEMENTS
    )


_MAX_PADDED_PER_ELEMENT: Final = 8
"""The most elements of a padded plane for each element of data and each window. Usual networks stay below 6."""
_MAX_PADS_ALONE_ELEMENTS: Final = 1 << 14
"""A plane of this many elements may consist of pads alone: it takes 64 KiB in f32."""


@lru_cache(1 << 12)
def _inside(axis: Axis) -> tuple[slice, slice]:
    return Axis(axis.size, 1, 1, 1, axis.begin, 0, axis.reach).span(0)


@lru_cache(1 << 12)
def _part(axis: Axis, first: int, last: int) -> tuple[Axis, slice]:
    begin = first * axis.stride - axis.begin
    some = Axis(axis.size, axis.kernel, axis.stride, axis.dilation, -begin, 0, last - first)
    start, stop = (max(0, min(place, axis.size)) for place in (begin, begin + some.reach))
    return replace(some, size=stop - start, begin=start - begin, end=begin + some.reach - stop), slice(start, stop)


def taps(axes: Sequence[Axis]) -> Iterator[tuple[tuple[int, ...], tuple[slice, ...], tuple[slice, ...]]]:
    """Yield each tap that may see an element, the windows that see an element through it, and these elements."""
    for tap in itertools.product(*(axis.seeing for axis in axes)):
        spans = [axis.span(n) for axis, n in zip(axes, tap)]
        yield tap, tuple(windows for windows, _ in spans), tuple(elements for _, elements in spans)
