"""The operations whose inputs are quantized, and those that accumulate: their channels and their terms."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Final

import numpy as np

from irrun.opdef import Op

__all__ = ["TERMS", "accumulated", "channel_axes", "inner_axis", "is_convolution", "is_quantized", "taps"]

TERMS: Final = 32
"""The terms of a sum that are added exactly before the sum is rounded to the type of the accumulator."""


@dataclass(frozen=True, slots=True)
class _Convolution:
    """Where a convolution has its channels: the axes of the filters, and whether the data has groups."""

    out: tuple[int, ...]
    """The axes of the filters that tell output channels apart, with the groups."""
    inner: int
    """The axis of the filters that the sum goes over."""
    leading: int
    """The axes of the filters before the spatial ones."""


_CONVOLUTIONS: Final = {
    "Convolution": _Convolution((0,), 1, 2),
    "GroupConvolution": _Convolution((0, 1), 2, 3),
    "ConvolutionBackpropData": _Convolution((1,), 0, 2),
    "GroupConvolutionBackpropData": _Convolution((0, 2), 1, 3),
}
_SUMS: Final = ("ReduceSum", "ReduceMean")


def is_quantized(op: Op) -> bool:
    """Return whether int8 quantizes the first two inputs of an operation, as NNCF does."""
    return op.type == "MatMul" or is_convolution(op)


def is_convolution(op: Op) -> bool:
    """Return whether an operation is a convolution, whose output has channels and places."""
    return op.type in _CONVOLUTIONS


def taps(op: Op, filters: np.ndarray) -> int:
    """Return the number of places in a kernel of a convolution; 1 for other operations."""
    return prod(filters.shape[_CONVOLUTIONS[op.type].leading :]) if is_convolution(op) else 1


def channel_axes(op: Op, position: int, rank: int) -> tuple[int, ...]:
    """Return the axes of an input that tell output channels apart, where the input holds the weights.

    ``position`` is that of the input, and ``rank`` its rank. There are none for a vector, or for the data of a
    convolution.
    """
    convolution = _CONVOLUTIONS.get(op.type)
    if convolution is not None:
        return convolution.out if position == 1 else ()
    if rank < 2:
        return ()
    inner = inner_axis(op, position, rank)
    return (-1,) if inner == -2 else (-2,)


def inner_axis(op: Any, position: int, rank: int) -> int:
    """Return the axis of an input of MatMul that the sum goes over."""
    if rank < 2:
        return -1
    transposed = op.transpose_b if position else op.transpose_a
    return -2 if (position == 1) != transposed else -1


def accumulated(
    op: Op, arrays: Sequence[np.ndarray | None], round: Callable[[np.ndarray], np.ndarray]
) -> np.ndarray | None:
    """Return the output of an operation whose sum is rounded after every ``TERMS`` terms; None if it adds up nothing.

    MatMul, the convolutions, ReduceSum and ReduceMean accumulate. The terms are added in the order of the axis, and a
    sum that leaves the range of the type stays infinite.
    """
    given = [array for array in arrays if array is not None]
    if op.type in _SUMS:
        return _reduced(op, given, round)
    if op.type == "MatMul":
        parts = _product_parts(op, *given[:2])
    elif op.type in _CONVOLUTIONS:
        parts = _convolution_parts(_CONVOLUTIONS[op.type], *given[:2])
    else:
        return None
    total: np.ndarray | None = None
    for a, b in parts:
        part = round(np.asarray(op.run(a, b, *arrays[2:])))
        total = part if total is None else round(total + part)
    return total


def _product_parts(op: Op, a: np.ndarray, b: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the parts of both inputs of MatMul, each with ``TERMS`` terms of the sum."""
    axes = inner_axis(op, 0, a.ndim), inner_axis(op, 1, b.ndim)
    for start in range(0, max(a.shape[axes[0]], 1), TERMS):
        yield _part(a, axes[0], start, TERMS), _part(b, axes[1], start, TERMS)


def _convolution_parts(
    convolution: _Convolution, data: np.ndarray, filters: np.ndarray
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the parts of data and filters, each with as many input channels as have at most ``TERMS`` terms."""
    window = prod(filters.shape[convolution.leading :])
    channels = filters.shape[convolution.inner]
    step = max(1, TERMS // max(window, 1))
    groups = filters.shape[0] if convolution.leading == 3 else 1
    split = data.reshape(len(data), groups, channels, *data.shape[2:])
    for start in range(0, max(channels, 1), step):
        part = _part(split, 2, start, step)
        yield part.reshape(len(data), -1, *data.shape[2:]), _part(filters, convolution.inner, start, step)


def _part(array: np.ndarray, axis: int, start: int, length: int) -> np.ndarray:
    index = [slice(None)] * array.ndim
    index[axis] = slice(start, start + length)
    return array[tuple(index)]


def _reduced(op: Op, arrays: Sequence[np.ndarray], round: Callable[[np.ndarray], np.ndarray]) -> np.ndarray | None:
    """Return the output of ReduceSum or ReduceMean over a float array; None for another array, or without terms."""
    data = arrays[0]
    axes = sorted({int(axis) % data.ndim for axis in arrays[1].ravel()}) if data.ndim else []
    count = prod(data.shape[axis] for axis in axes)
    if not axes or not data.size or data.dtype.kind != "f":
        return None
    shape = np.asarray(op.run(*arrays)).shape
    last = np.moveaxis(data, axes, range(-len(axes), 0)).reshape(-1, count)
    total = np.zeros(len(last), data.dtype)
    for start in range(0, count, TERMS):
        total = round(total + round(last[:, start : start + TERMS].sum(axis=1)))
    return (total / count if op.type == "ReduceMean" else total).astype(data.dtype).reshape(shape)
