"""Products of 8 bits on processors without VNNI: the sums of pairs saturate at 16 bits.

``vpmaddubsw`` multiplies u8 by i8 and adds pairs of neighbouring products in i16. Where a pair is beyond ±32768, the
result is wrong by the rest. This is arithmetic: the error follows from the codes, and irrun predicts its value.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any, Final

import numpy as np

from irrun.debug.low_precision.families import channel_axes, is_quantized
from irrun.debug.low_precision.formats import is_float
from irrun.debug.low_precision.simulation import Arrays
from irrun.debug.low_precision.units import Unit

__all__ = ["SATURATING", "Saturation"]

SATURATING: Final = "i8 in sums of 16 bits"
"""The name of the form of a layer whose sums saturate."""
_LIMIT: Final = 32767
_BYTE: Final = 255
_CODES: Final = 128
_FEW: Final = 64
"""The elements of a channel that are looked at first."""
_NEAR: Final = 1e-3
"""How far a code may be from an integer, because its value is a float."""


@dataclass
class Saturation:
    """Predicts the sums of a run. It has to see the layers in their order: FakeQuantize says where 0 lies."""

    _zeros: dict[str, int] = field(default_factory=dict)
    """The code of 0 in the outputs of each layer that passes on the values of a FakeQuantize."""

    def lost(self, unit: Unit, inputs: Arrays) -> np.ndarray | None:
        """Return what saturation adds to the output of a layer, in its units.

        None if the layer is no product of quantized data and weights, or if no pair saturates.
        """
        producers = unit.inputs[0].outputs if unit.inputs and unit.inputs[0] is not None else ()
        zero = next((self._zeros[name] for name, _ in producers if name in self._zeros), None)
        if unit.op.type == "FakeQuantize":
            zero = _zero_of(unit.op, inputs)
        if zero is None:
            return None
        if is_quantized(unit.op):
            return _of_layer(unit, inputs, zero)
        self._zeros[unit.name] = zero
        return None


def _zero_of(op: Any, inputs: Arrays) -> int | None:
    """Return the code of 0 behind a FakeQuantize with one range; None for one of another kind."""
    low, high = inputs[3:5]
    if low is None or high is None or low.size != 1 or high.size != 1 or op.levels > _BYTE + 1 or high <= low:
        return None
    return int(np.rint(-low.item() / (high.item() - low.item()) * (op.levels - 1)))


def _of_layer(unit: Unit, inputs: Arrays, zero: int) -> np.ndarray | None:
    data, weights = [*inputs[:2], None, None][:2]
    if data is None or weights is None or not unit.constant[1]:
        return None
    if not (is_float(data) and is_float(weights) and data.size and weights.size):
        return None
    with np.errstate(all="ignore"):
        coded = _codes_of(weights, channel_axes(unit.op, 1, weights.ndim), _CODES)
        read = None if coded is None else _codes_of(data, (), _BYTE)
    if coded is None or read is None:
        return None
    (codes, scale), (integers, scales) = read, coded
    codes = codes + zero
    if codes.min() < 0 or codes.max() > _BYTE:
        return None
    is_product = unit.op.type == "MatMul"
    lost = _of_product(unit.op, codes, integers) if is_product else _of_convolution(unit.op, codes, integers, zero)
    if lost is None:
        return None
    along = scales if is_product else scales.reshape(-1, *[1] * (lost.ndim - 2))
    return lost * along * scale[0]


def _codes_of(array: np.ndarray, channels: Sequence[int], most: int) -> tuple[np.ndarray, np.ndarray] | None:
    """Return integers of at most ``most`` and scales whose product is an array, or None if there are none.

    ``channels`` are the axes along which each index has a scale of its own. The scale is the greatest that fits.
    """
    rows = np.moveaxis(array, channels, range(len(channels))).reshape(prod(array.shape[axis] for axis in channels), -1)
    greatest = np.abs(rows).max(axis=1, keepdims=True).astype(np.float64)
    known = greatest > 0
    relative = rows / np.where(known, greatest, 1)
    few = relative[:, :_FEW] if channels else np.unique(relative)[np.newaxis]
    steps = _steps(few, np.where(known, 0, 1), most)
    if (steps is None or _distance(relative * steps).max() >= _NEAR) and few.shape != relative.shape and channels:
        steps = _steps(relative, np.where(known, 0, 1), most)
    if steps is None:
        return None
    codes = np.rint(relative * steps)
    scales = np.where(known, greatest, 1) / steps
    moved = codes.astype(np.int32).reshape(*(array.shape[axis] for axis in channels), *np.delete(array.shape, channels))
    return np.moveaxis(moved, range(len(channels)), channels), scales[:, 0]


def _steps(relative: np.ndarray, steps: np.ndarray, most: int) -> np.ndarray | None:
    """Return the least number in each row with which all of its elements become integers, or None if a row has none."""
    for code in range(1, most + 1):
        steps = np.where((steps == 0) & (_distance(relative * code).max(axis=1, keepdims=True) < _NEAR), code, steps)
        if steps.all():
            return steps
    return None


def _distance(array: np.ndarray) -> np.ndarray:
    return np.abs(array - np.rint(array))


def _of_product(op: Any, codes: np.ndarray, weights: np.ndarray) -> np.ndarray | None:
    """Return what MatMul loses, with an output for each row of codes and each column of a matrix."""
    if weights.ndim != 2 or op.transpose_a:
        return None
    rows = weights if op.transpose_b else weights.T
    lost = _lost(rows, codes.reshape(-1, codes.shape[-1]).T)
    return None if lost is None else lost.T.reshape(*codes.shape[:-1], len(rows))


def _of_convolution(op: Any, codes: np.ndarray, filters: np.ndarray, zero: int) -> np.ndarray | None:
    """Return what a convolution loses: in a window, the pairs are those of neighbouring channels at each place."""
    if op.type not in ("Convolution", "GroupConvolution"):
        return None
    grouped = filters if op.type == "GroupConvolution" else filters[np.newaxis]
    groups, outputs, channels, *kernel = grouped.shape
    axes = op.axes(codes.shape[2:], kernel)
    widths = [(0, 0), (0, 0), *((axis.begin, max(axis.reach - axis.size - axis.begin, 0)) for axis in axes)]
    padded = np.pad(codes, widths, constant_values=zero)
    places = [axis.out for axis in axes]
    total: np.ndarray | None = None
    for tap in np.ndindex(*kernel):
        seen = tuple(
            slice(at * axis.dilation, at * axis.dilation + (axis.out - 1) * axis.stride + 1, axis.stride)
            for at, axis in zip(tap, axes)
        )
        for group in range(groups):
            data = padded[(slice(None), slice(group * channels, (group + 1) * channels), *seen)]
            lost = _lost(grouped[(group, ..., *tap)], np.moveaxis(data, 1, 0).reshape(channels, -1))
            if lost is None:
                continue
            if total is None:
                total = np.zeros((len(codes), groups, outputs, *places))
            total[:, group] += np.moveaxis(lost.reshape(outputs, len(codes), *places), 0, 1)
    return None if total is None else total.reshape(len(codes), groups * outputs, *places)


def _lost(weights: np.ndarray, terms: np.ndarray) -> np.ndarray | None:
    """Return what saturation adds to ``weights`` [outputs, terms] times ``terms`` [terms, places]; None for nothing."""
    odd = weights[:, 1::2]
    even = weights[:, 0::2][:, : odd.shape[1]]
    first, second = (terms[start : 2 * odd.shape[1] : 2].max(axis=1) for start in (0, 1))
    up = np.maximum(even, 0) * first + np.maximum(odd, 0) * second
    most = np.maximum(up, np.maximum(-even, 0) * first + np.maximum(-odd, 0) * second)
    lost: np.ndarray | None = None
    for output, pair in zip(*np.nonzero(most > _LIMIT)):
        total = even[output, pair] * terms[2 * pair] + odd[output, pair] * terms[2 * pair + 1]
        rest = np.clip(total, -_LIMIT - 1, _LIMIT) - total
        if rest.any():
            lost = np.zeros((len(weights), terms.shape[1])) if lost is None else lost
            lost[output] += rest
    return lost
