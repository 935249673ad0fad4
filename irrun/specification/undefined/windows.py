"""Behaviours of windows that slide over data: convolutions and poolings."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from irrun.specification.undefined.forms import Behaviour, Inputs, Undefined, is_integer

__all__ = ["BEHAVIOURS"]


def _positions(axis: Any) -> np.ndarray:
    """Return which position of the data each tap of each window along an axis sees: (windows, taps)."""
    return axis.stride * np.arange(axis.out)[:, None] + axis.dilation * np.arange(axis.kernel) - axis.begin


def _joined(flags: Sequence[np.ndarray], join: np.ufunc) -> np.ndarray:
    """Return a flag for each window, from the flags along each axis."""
    return functools.reduce(join.outer, flags)


# ---------------------------------------------------------------------------------------------
# convolutions


def _pads_of_bits(op: Any, inputs: Inputs) -> Undefined:
    """A window sees a pad: the page does not say which number stands for its value."""
    data, filters = inputs
    if data is None or filters is None:
        return True
    axes = op.axes(data.shape[2:], filters.shape[2:])
    outside = [((seen := _positions(axis)) < 0) | (seen >= axis.size) for axis in axes]
    return _joined([flags.any(1) for flags in outside], np.logical_or)


def _pads_of_output_shape(op: Any, inputs: Inputs) -> Undefined:
    """With ``output_shape``, the pads that the page computes are not the pads of OpenVINO."""
    data, filters, wanted = (*inputs, None)[:3]
    if len(inputs) < 3 or inputs[2] is None:
        return False
    if data is None or filters is None or wanted is None:
        return True
    kernel = filters.shape[-len(wanted) :]
    return any(_page_begin(op, n, data.shape[2 + n], k, int(wanted[n])) for n, k in enumerate(kernel))


def _page_begin(op: Any, axis: int, size: int, kernel: int, wanted: int) -> bool:
    """Return whether the pad at the beginning of an axis is another one by the formula of the page."""
    stride, dilation, more, begin = (
        values[axis] if values else default
        for values, default in ((op.strides, 1), (op.dilations, 1), (op.output_padding, 0), (op.pads_begin, 0))
    )
    total = stride * (size - 1) + (kernel - 1) * dilation + 1 - wanted + more
    if op.auto_pad.startswith("same"):
        return total < 0
    return total // 2 != (begin if op.auto_pad == "explicit" else 0)


def _deformable_groups(op: Any, inputs: Inputs) -> Undefined:
    """By the page, the parts of ``offsets`` belong to outputs; in OpenVINO, they belong to channels of the data."""
    return op.group % op.deformable_group != 0


def _locations(op: Any, inputs: Inputs) -> tuple[list[np.ndarray], list[int]] | None:
    """Return where each tap samples along y and x, each (batch, part, tap, windows), and the size of the data."""
    data, offsets, filters = inputs[:3]
    if data is None or offsets is None or filters is None:
        return None
    axes = op.axes(data.shape[2:], filters.shape[2:])
    counts = tuple(axis.kernel for axis in axes), tuple(axis.out for axis in axes)
    shifts = offsets.astype(np.float64).reshape(len(data), op.deformable_group, *counts[0], 2, *counts[1])
    rows, columns = (_positions(axis).T for axis in axes)
    y = shifts[:, :, :, :, 0] + rows[:, None, :, None]
    x = shifts[:, :, :, :, 1] + columns[None, :, None, :]
    return [y, x], [axis.size for axis in axes]


def _fractional_offsets(op: Any, inputs: Inputs) -> Undefined:
    """A tap samples between pixels: the page does not say what is there."""
    known = _locations(op, inputs)
    if known is None:
        return True
    (y, x), _ = known
    between = (y != np.floor(y)) | (x != np.floor(x)) | ~np.isfinite(y + x)
    return np.any(between, axis=(1, 2, 3))[:, None]


def _before_the_first_pixel(op: Any, inputs: Inputs) -> Undefined:
    """A tap samples nowhere, or less than one pixel before the data.

    There, the page moves it to the first pixel; in OpenVINO, it gives 0.
    """
    known = _locations(op, inputs)
    if known is None:
        return True
    (y, x), (height, width) = known
    near = (y > -1) & (y < height) & (x > -1) & (x < width) & ((y < 0) | (x < 0))
    if op.bilinear_interpolation_pad:
        near[...] = False
    return np.any(near | ~np.isfinite(y + x), axis=(1, 2, 3))[:, None]


# ---------------------------------------------------------------------------------------------
# poolings


def _of_windows(op: Any, inputs: Inputs, holds: Callable[[np.ndarray], np.ndarray]) -> np.ndarray | None:
    """Return ``holds`` of each window's elements (batch, channels, elements): an array of the output's shape."""
    data = inputs[0]
    if data is None or (len(inputs) > 1 and inputs[1] is None):
        return None
    sizes = data.shape[2:]
    if len(inputs) > 1:
        counts = np.asarray(inputs[1]).tolist()
        seen = [
            [range(n * size // count, -(-(n + 1) * size // count)) for n in range(count)]
            for size, count in zip(sizes, counts)
        ]
    else:
        axes = op.axes(sizes, op.kernel)
        seen = [[row[(row >= 0) & (row < axis.size)] for row in _positions(axis)] for axis in axes]
    result = np.zeros((*data.shape[:2], *map(len, seen)), bool)
    for place in itertools.product(*(range(len(windows)) for windows in seen)):
        index = np.ix_(*(np.asarray(windows[n], int) for windows, n in zip(seen, place)))
        elements = data[(slice(None), slice(None), *index)]
        elements = elements.reshape(*data.shape[:2], math.prod(elements.shape[2:]))
        result[(..., *place)] = holds(elements)
    return result


def _has_indices(op: Any) -> bool:
    return "index_element_type" in op.attributes


def _nan_in_window(op: Any, inputs: Inputs) -> Undefined:
    """A window holds NaN: the page does not say whether NaN is the largest element."""
    found = _of_windows(op, inputs, lambda elements: (elements != elements).any(-1))
    return True if found is None else found


def _has_equal_largest(elements: np.ndarray) -> np.ndarray:
    if not elements.shape[-1]:
        return np.zeros(elements.shape[:-1], bool)
    return (elements == elements.max(-1, keepdims=True)).sum(-1) > 1


def _equal_largest(op: Any, inputs: Inputs) -> Undefined:
    """The largest element of a window stands there more than once: the page does not say which index is given."""
    found = _of_windows(op, inputs, _has_equal_largest)
    return (False, True if found is None else found)


def _pads_alone(op: Any, inputs: Inputs) -> Undefined:
    """A window sees no element: its mean is 0 / 0, and its largest element may have no -inf in its type, or index."""
    data, found = inputs[0], _of_windows(op, inputs, lambda elements: np.array(elements.shape[-1] == 0))
    if op.type == "AvgPool":
        return op.exclude_pad and (True if found is None else found)
    if data is None or found is None:
        return (False, True) if _has_indices(op) else False
    finite = is_integer(data) or not np.isinf(np.asarray(-np.inf, data.dtype).astype(np.float64))
    return (finite & found, found) if _has_indices(op) else finite & found


def _beyond_the_pads(op: Any, inputs: Inputs) -> Undefined:
    """A window reaches beyond the pads: the page does not say whether its mean counts what is there."""
    if op.exclude_pad or inputs[0] is None:
        return not op.exclude_pad and op.rounding_type != "floor"
    axes = op.axes(inputs[0].shape[2:], op.kernel)
    return _joined([(_positions(axis) >= axis.size + axis.end).any(1) for axis in axes], np.logical_or)


def _same_with_strides(op: Any, inputs: Inputs) -> Undefined:
    """With same_upper and same_lower, the page keeps the size of the data; OpenVINO divides it by the strides."""
    return op.auto_pad.startswith("same") and any(stride > 1 for stride in op.strides)


def _valid_with_ceil(op: Any, inputs: Inputs) -> Undefined:
    """With valid and a part of a window left, the formula of the page does not round up, but its example does."""
    if op.auto_pad != "valid" or op.rounding_type == "floor" or inputs[0] is None:
        return op.auto_pad == "valid" and op.rounding_type != "floor"
    axes = op.axes(inputs[0].shape[2:], op.kernel)
    return any((axis.size - (axis.kernel - 1) * axis.dilation - 1) % axis.stride for axis in axes)


def _windows_in_pads(op: Any, inputs: Inputs) -> Undefined:
    """With ceil_torch, more than one window begins in the pads: the rules of the page take one away."""
    if op.rounding_type != "ceil_torch" or inputs[0] is None:
        return op.rounding_type == "ceil_torch"
    axes = op.axes(inputs[0].shape[2:], op.kernel)
    whole = [
        -((axis.kernel - 1) * axis.dilation + 1 - axis.size - axis.begin - axis.end) / axis.stride for axis in axes
    ]
    return any(np.ceil(steps) + 1 - axis.out > 1 for steps, axis in zip(whole, axes))


BEHAVIOURS: Final[Mapping[str, Behaviour]] = {
    "before-the-first-pixel": _before_the_first_pixel,
    "beyond-the-pads": _beyond_the_pads,
    "deformable-groups": _deformable_groups,
    "equal-largest": _equal_largest,
    "fractional-offsets": _fractional_offsets,
    "nan-in-window": _nan_in_window,
    "pads-alone": _pads_alone,
    "pads-of-bits": _pads_of_bits,
    "pads-of-output-shape": _pads_of_output_shape,
    "same-with-strides": _same_with_strides,
    "valid-with-ceil": _valid_with_ceil,
    "windows-in-pads": _windows_in_pads,
}
