"""What the plugin has a kernel for, and what it computes by other layers or not at all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import zip_longest
from typing import Final

import numpy as np

from irrun.opdef import Op, Value
from irrun.types import Dim

__all__ = [
    "SPATIAL",
    "differ",
    "dims_of",
    "numbers_of",
    "of_average",
    "of_bits",
    "of_depthwise",
    "of_interpolation",
    "of_norm",
    "of_output_shape",
    "of_ranges",
]

_BYTE: Final = 8  # bits
SPATIAL: Final = 2  # the first spatial axis of an image
_TOO_FEW: Final = (0, 1)  # levels for which the plugin has no kernel
_RANGES: Final = 4  # the inputs of FakeQuantize behind its data
_VOLUME: Final = 5  # the most dims that the plugin resizes: batch, channels, depth, height and width
_WINDOW: Final = 15  # the fewest rows and columns for which the fast kernel of depthwise convolution fails
_ONE_INPUT: Final = 11  # the first Interpolate with one input for both sizes and scales
_AT_ONCE: Final = 4  # the columns that the kernel of a convolution of bits computes at a time


def of_depthwise(op: Op | None, values: Sequence[Value | None]) -> Iterator[str]:
    """Yield whether each channel has a filter whose window the fast kernel for one step at a time does not finish."""
    filters = None if values[1] is None else values[1].shape.static
    is_wide = filters is not None and filters[1:3] == (1, 1) and min(filters[3:], default=0) >= _WINDOW
    if is_wide and all(step == 1 for step in getattr(op, "strides", ())):
        yield f"each channel has a window of {_WINDOW} rows and columns or more, and no Sigmoid or Tanh behind it"


def of_output_shape(op: Op, values: Sequence[Value | None]) -> Iterator[str]:
    """Yield whether the plugin cannot guess an unknown dim of the input from ``output_shape``.

    It divides by the step without a sign. With steps of 1, only a guess of -1 is refused: it means an unknown dim.
    """
    dims, filters, sizes = dims_of(values[0]), dims_of(values[1]), numbers_of(values[2])
    names = ("strides", "dilations", "pads_begin", "pads_end", "output_padding")
    lists = [[*getattr(op, name, ()), *[0] * _VOLUME] for name in names]
    is_explicit = not getattr(op, "auto_pad", "explicit").startswith("same")
    for dim, window, size, step, gap, begin, end, more in zip(
        (dims or ())[SPATIAL:], (filters or ())[-len(sizes or ()) :], sizes or (), *lists
    ):
        if dim.value is None and window.value is not None and step > 0:
            room = size - gap * (window.value - 1) - 1 + (begin + end if is_explicit else 0) - more
            if room == -2 if step == 1 else room < 0:
                yield "no window fits into output_shape along an unknown dim"
                return


def of_ranges(op: Op, values: Sequence[Value | None]) -> Iterator[str]:
    """Yield which kernel FakeQuantize needs if its ranges are constant, and whether one has more dims than the data.

    Negative levels are a huge number, as OpenVINO reads them.
    """
    if getattr(op, "levels", 2) in _TOO_FEW:
        yield "it has fewer than 2 levels"
    dims = dims_of(values[0])
    exact = [value.exact for value in values[1:5] if value is not None and value.exact is not None]
    if dims and any(of.ndim > len(dims) for of in exact):
        yield "a constant range has more dims than input 0"
    elif dims and len(exact) == _RANGES:
        yield from _of_constant_ranges(op, dims, exact)


def _of_constant_ranges(op: Op, dims: Sequence[Dim], exact: Sequence[np.ndarray]) -> Iterator[str]:
    """Yield which kernel FakeQuantize needs. If a range varies along other axes than 1 and 2, other layers compute it.

    There is none for axis 2, and for bits of 0 and 1 only that of images.
    """
    low, high, *outputs = exact
    levels = getattr(op, "levels", 2)
    axes = [[len(dims) - of.ndim + at for at, size in enumerate(of.shape) if size > 1] for of in exact]
    of_inputs = [axis for of in axes[:2] for axis in of]
    is_simple = len(dims) > 1 and all(len(of) <= 1 for of in axes[:2]) and {*of_inputs} <= {1, 2}
    empty = {at - of.ndim + len(dims) for of in exact for at, size in enumerate(of.shape) if size == 0}
    if empty:
        if is_simple and (1 in of_inputs if levels == 2 else empty & {0, 1}):
            yield "a constant range is empty"
        return
    if is_simple and of_inputs[-1:] == [2] and axes[2] != [1]:
        yield "the range of its input varies along axis 2 alone"
    with suppress(ValueError, TypeError):  # ranges that do not broadcast, or are strings
        if levels != 2 and None not in [dim.value for dim in dims] and np.any(low > high):
            yield "the range of its input is reversed"
        if levels in (*_TOO_FEW, 2) and is_simple and of_inputs[-1:] != [2]:
            is_binary = levels == 2 and not np.any(low != high) and all(np.isin(of, (0, 1)).all() for of in outputs)
            rank = "an image" if len(dims) == _VOLUME - 1 else "another rank"
            yield f"it makes bits of {rank}" if is_binary else "it has at most two levels, which are not 0 and 1"


def of_norm(op: Op, values: Sequence[Value | None]) -> Iterator[str]:
    """Yield whether LRN sums along axes for which the plugin has no kernel: it counts them from the first."""
    dims, axes = dims_of(values[0]), numbers_of(values[1])
    if dims is not None and axes and axes != [1] and not ({*range(SPATIAL, len(dims))} <= {*axes} and min(axes) >= 0):
        yield "its axes are neither the channels nor all spatial axes"


def of_interpolation(op: Op, values: Sequence[Value | None]) -> Iterator[str]:
    """Yield whether an axis is resized that the plugin takes for the batch or the channels of an image.

    The plugin moves axes to the end if they are few, and computes images of 5 dims as OpenVINO itself does in the modes
    of Pillow and in ``cubic``. Newer releases take axis 1 of 4 for the depth.
    """
    shape = None if values[0] is None else values[0].shape.static
    by_sizes = getattr(op, "shape_calculation_mode", "sizes") == "sizes"
    by_axis, mode = type(op).since >= _ONE_INPUT, str(getattr(op, "mode", ""))
    given = values[1] if by_sizes or by_axis else values[2]
    if shape is None or not SPATIAL < len(shape) <= _VOLUME or given is None or given.exact is None:
        return
    if len(shape) == _VOLUME and (mode == "cubic" or mode.endswith("_pillow")):
        return
    pads = [[*getattr(op, name, ()), *[0] * len(shape)] for name in ("pads_begin", "pads_end")]
    padded = [sum(of) for of in zip(shape, *pads)]
    named = values[2 if by_axis else 3]
    axes = sorted(getattr(op, "axes", ())) or numbers_of(named)  # OpenVINO sorts an attribute
    if axes is None and named is not None:
        return
    axes = [*range(len(shape))] if axes is None else [axis % len(shape) for axis in axes]
    is_pillow = mode.endswith("_pillow")
    if (axes == [1, 2] and len(shape) == _VOLUME - 1) if is_pillow else len(axes) <= len(shape) - SPATIAL:
        return
    sizes = dict(zip(axes, np.ravel(given.exact).tolist()))
    if not by_sizes and is_pillow:
        sizes, by_sizes = {axis: int(size * padded[axis]) for axis, size in sizes.items()}, True
    resized = {axis for axis, size in sizes.items() if size != (padded[axis] if by_sizes else 1)}
    if resized & ({0, 1} if len(shape) == _VOLUME else {0} if len(shape) == _VOLUME - 1 else set()):
        yield "it resizes axis 0 of 4, or axis 0 or 1 of 5"
    elif resized & {0, 1}:
        yield "it resizes axis 1 of 4, or axis 0 or 1 of 3"


def of_average(op: Op, values: Sequence[Value | None]) -> Iterator[str]:
    """Yield whether a window that counts data alone may have none, and whether no kernel averages the integers."""
    pads = [*zip_longest(getattr(op, "pads_begin", ()), getattr(op, "pads_end", ()), fillvalue=0)]
    is_explicit = getattr(op, "exclude_pad", False) and getattr(op, "auto_pad", "") == "explicit"
    gaps = [*getattr(op, "dilations", ()), *[1] * len(pads)]
    spans = [gap * (size - 1) + 1 for gap, size in zip(gaps, getattr(op, "kernel", ()))]
    if is_explicit and any(max(of) >= span for of, span in zip(pads, spans)):
        yield "a window fits into its padding"
    dims, type = dims_of(values[0]) or (), None if values[0] is None else values[0].type
    if len(dims) > 1 and dims[1].value == 1 and type is not None and type.kind in ("int", "uint") and type.bits > _BYTE:
        yield "it averages integers of one channel, longer than a byte"


def of_bits(op: Op, values: Sequence[Value | None]) -> Iterator[str]:
    """Yield whether a step of the kernel for bits lies in the padding: it computes up to 4 columns at a time."""
    dims, width = dims_of(values[0]), None if values[1] is None else values[1].shape.static
    if dims is not None and len(dims) > 1 and dims[1].value != 1:
        yield "it has several channels"
    columns = dims[-1].value if dims else None
    step, gap, begin, end = ((0, *getattr(op, name))[-1] for name in ("strides", "dilations", "pads_begin", "pads_end"))
    if columns is None or not width or step < 1 or getattr(op, "auto_pad", "explicit") != "explicit":
        return
    span = (width[-1] - 1) * gap
    count = (columns + begin + end - span - 1) // step + 1
    at_once = min(_AT_ONCE, count)
    if count > 0 and max(begin, (count - count % at_once - 1) * step + span - columns - begin + 1) > at_once:
        yield "a step of its kernel lies in the padding"


def differ(a: Dim, b: Dim) -> bool:
    """Return whether two dims are known and differ."""
    return a.value is not None and b.value is not None and a.value != b.value


def dims_of(value: Value | None) -> tuple[Dim, ...] | None:
    """Return the dims of an input, or None if it is not connected or its rank is unknown."""
    return None if value is None else value.shape.dims


def numbers_of(value: Value | None) -> list[int] | None:
    """Return the contents of an input of integers, or None if they are unknown."""
    data = None if value is None else value.exact
    return None if data is None or data.dtype.kind not in "iu" else np.ravel(data).tolist()
