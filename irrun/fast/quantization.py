"""FakeQuantize with one range for all elements, in one pass: numpy takes up to seven."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

import numpy as np

from irrun.fast.arithmetic import moved
from irrun.fast.functions import Number, contracted
from irrun.fast.machine.processor import compiled
from irrun.fast.row_change import RowChange
from irrun.opdef import Joins, Kernel, Request, Value

__all__ = ["offer", "quantized"]


class _FakeQuantize(Protocol):
    levels: int

    def is_usual(self, values: Sequence[Value]) -> bool: ...


def offer(op: _FakeQuantize, request: Request) -> Kernel | None:
    """Return the kernel of FakeQuantize for f32 with one constant range for all elements, or None for others."""
    values = [value for value in request.inputs if value is not None]
    limits = [value.exact for value in values[1:] if value.exact is not None and value.exact.size == 1]
    if len(limits) < 4 or values[0].type.name != "f32" or not values[0].rank or not op.is_usual(values):
        return None
    return quantized(op.levels, np.concatenate(limits, axis=None))


def quantized(levels: int, limits: np.ndarray) -> Kernel:
    """Return the kernel of FakeQuantize for f32.

    ``limits`` are the ends of the range of the input and of that of the output, f32 [4], the first below the second.
    With up to 256 levels, a number that is within rounding of the middle between two steps may become either of them.
    """
    in_low, in_high, out_low, out_high = limits
    steps = np.float32(levels - 1)
    step = (out_high - out_low) / steps
    numbers = np.array([in_low, in_high, in_high - in_low, steps, step, out_low], np.float32)
    quantize = _quantize
    if levels <= _MAX_COARSE_LEVELS:
        scale = float(steps) / (float(in_high) - float(in_low))
        numbers[2:4] = scale, -float(in_low) * scale
        quantize = _quantize_coarsely
    change = RowChange(quantize, numbers, whole=False)

    def call(x: np.ndarray, *_: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        whole = np.empty(x.shape, np.float32) if out is None else out
        if whole is not x:
            np.copyto(whole, x)
        change(whole)
        return whole

    return Kernel(call, out="elementwise", joins=Joins(change=change, row_calls=change.rows, row_inputs=(0,)))


_MAX_COARSE_LEVELS: Final = 256
"""The most levels for which a multiplication takes the place of a subtraction and a division. It is as close to the
formula in real numbers, but may round a number in the middle between two steps to the other one."""


@compiled
def _quantize(
    source: int, step: int, target: int, apart: int, columns: int, numbers: np.ndarray, first: int, last: int
) -> None:
    """Quantise in place: with a second array, which might overlap the first, the compiler would emit no vectors."""
    low, high, width, steps, each, base = numbers[0], numbers[1], numbers[2], numbers[3], numbers[4], numbers[5]
    for i in range(first, last):
        row = moved(source + 4 * i * step, target + 4 * i * apart, columns)
        for j in range(columns):
            row[j] = np.rint((_clipped(row[j], low, high) - low) / width * steps) * each + base


@compiled
def _quantize_coarsely(
    source: int, step: int, target: int, apart: int, columns: int, numbers: np.ndarray, first: int, last: int
) -> None:
    """Quantise as ``_quantize``, with a multiplication in place of the division, which takes half of the time."""
    low, high, scale, shift, each, base = numbers[0], numbers[1], numbers[2], numbers[3], numbers[4], numbers[5]
    for i in range(first, last):
        row = moved(source + 4 * i * step, target + 4 * i * apart, columns)
        for j in range(columns):
            row[j] = _level(_clipped(row[j], low, high), scale, shift) * each + base


@contracted
def _clipped(x: Number, low: Number, high: Number) -> Number:
    return low if x < low else high if x > high else x  # NaN stays


@contracted
def _level(x: Number, scale: Number, shift: Number) -> Number:
    return np.rint(x * scale + shift)
