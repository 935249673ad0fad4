"""The precisions that are simulated: how each rounds an array, and what it can hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import ml_dtypes
import numpy as np

__all__ = ["FORMATS", "Format", "grouped_weights", "is_float", "quantized_range", "quantized_weights", "widened"]


@dataclass(frozen=True, slots=True)
class Format:
    """A precision. ``dtype`` is None for integers, in which inputs of matrix products and convolutions are quantized.

    ``limit`` is the greatest finite value. ``tolerance`` is the element type whose default tolerance the outputs have.
    """

    name: str
    dtype: np.dtype | None
    limit: float
    tolerance: str
    per_channel: bool = False
    """Whether int8 weights have a scale for each output channel, not one for the whole tensor."""
    is_int4: bool = False
    """Whether the weights of matrix products, and nothing else, are in int4 with a scale for each group."""
    has_zeros: bool = False
    """Whether each group of int4 weights has a zero point: u4 instead of i4."""
    group: int = 0
    """The weights of a row that share a scale; 0 for all of them."""

    @property
    def is_quantized(self) -> bool:
        """Whether values are integers with a scale."""
        return self.dtype is None

    def round(self, array: np.ndarray, *, saturate: bool = False) -> np.ndarray:
        """Return a float array rounded to this precision, in its own dtype. Any other array is returned as it is.

        Ties round to even, and subnormal numbers are kept. A value beyond the range becomes infinite or, with
        ``saturate``, the greatest finite value, as OpenVINO stores a constant.
        """
        if self.dtype is None or array.dtype not in _WIDE or not array.size:
            return array
        rounded = _rounded(array, self.dtype)
        if saturate:
            beyond = np.isinf(rounded) & np.isfinite(array)
            if beyond.any():
                rounded = np.where(beyond, np.copysign(np.asarray(self.limit, array.dtype), array), rounded)
        return rounded


_WIDE: Final = frozenset({np.dtype(np.float32), np.dtype(np.float64)})
_F16: Final = np.dtype(np.float16)
_BF16: Final = np.dtype(ml_dtypes.bfloat16)

FORMATS: Final[Mapping[str, Format]] = {
    "f16": Format("f16", _F16, float(np.finfo(np.float16).max), "f16"),
    "bf16": Format("bf16", _BF16, float(ml_dtypes.finfo(ml_dtypes.bfloat16).max), "bf16"),
    "int8": Format("int8", None, np.inf, "f8e4m3"),
    "int8-per-channel": Format("int8-per-channel", None, np.inf, "f8e4m3", per_channel=True),
    "int4": Format("int4", None, np.inf, "f8e4m3", is_int4=True),
    "int4-asymmetric": Format("int4-asymmetric", None, np.inf, "f8e4m3", is_int4=True, has_zeros=True),
}
"""The precisions by name."""


def is_float(array: np.ndarray) -> bool:
    """Return whether an array has a dtype that a precision rounds."""
    return array.dtype in _WIDE


def widened(array: np.ndarray) -> np.ndarray:
    """Return an array of f16 or bf16 as float32, any other array as it is."""
    return array.astype(np.float32) if array.dtype in (_F16, _BF16) else array


def _rounded(array: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Return a float array rounded to ``dtype``, in its own dtype.

    For float32, adding half a unit to the bits takes a quarter of the time of two conversions.
    """
    with np.errstate(all="ignore"):
        if array.dtype != np.float32 or array.ndim == 0:
            return np.asarray(array.astype(dtype).astype(array.dtype))
        dropped = 13 if dtype == _F16 else 16
        bits = np.ascontiguousarray(array).view(np.uint32)
        rounded = (bits >> np.uint32(dropped)) & np.uint32(1)
        rounded += bits
        rounded += np.uint32((1 << (dropped - 1)) - 1)
        rounded &= np.uint32((0xFFFFFFFF << dropped) & 0xFFFFFFFF)
        values = rounded.view(np.float32)
        magnitude = np.abs(array)
        # neither subnormal numbers of f16 nor NaN and Inf follow from the bits
        odd = ~(magnitude < 65520.0) if dtype == _F16 else ~(magnitude < np.inf)
        if dtype == _F16:
            odd |= (magnitude < 2.0**-14) & (magnitude > 0)
        if odd.any():
            values[odd] = array[odd].astype(dtype).astype(np.float32)
        return values


def quantized_weights(weights: np.ndarray, channels: Sequence[int]) -> np.ndarray:
    """Return weights quantized to the integers -127 … 127, with the zero point 0, and dequantized again.

    ``channels`` are the axes along which each index has a scale of its own; without them, there is one scale.
    """
    if not is_float(weights) or not weights.size:
        return weights
    kept = {axis % weights.ndim for axis in channels}
    rest = tuple(axis for axis in range(weights.ndim) if axis not in kept)
    scale = np.abs(weights).max(axis=rest, keepdims=True) / 127
    scale = np.where(scale > 0, scale, 1)
    return (np.clip(np.rint(weights / scale), -127, 127) * scale).astype(weights.dtype)


_MIN_GROUP: Final = 16
"""The least size to which a group is halved until it divides a row, like ``GroupSizeFallbackMode.ADJUST`` of NNCF."""


def grouped_weights(weights: np.ndarray, axis: int, format: Format) -> np.ndarray:
    """Return weights quantized to int4 in groups along ``axis``, and dequantized again, as NNCF quantizes them.

    The scale of a symmetric group maps its greatest magnitude to -8, the scale and zero point of another one its range,
    with 0, to 0 … 15. Scales are rounded to f16. Where the size of a group does not divide the row, it is halved; a
    row that 16 does not divide is one group.
    """
    if not is_float(weights) or not weights.size:
        return weights
    moved = np.moveaxis(weights, axis, -1)
    size = format.group or moved.shape[-1]
    while moved.shape[-1] % size:
        size = size // 2 if size // 2 >= _MIN_GROUP else moved.shape[-1]
    groups = moved.reshape(*moved.shape[:-1], -1, size)
    low, high = (limit(groups, axis=-1, keepdims=True) for limit in (np.min, np.max))
    if format.has_zeros:
        low, high = np.minimum(low, 0), np.maximum(high, 0)
        scale, zero, least = (high - low) / 15, 0.0, 0
    else:
        scale, zero, least = np.where(-low >= high, -low, -high) / 8, 0.0, -8
    scale = scale.astype(np.float16).astype(weights.dtype)
    scale = np.where(scale == 0, 1, scale)
    if format.has_zeros:
        zero = np.clip(np.rint(-low / scale), 0, 15)
    levels = np.clip(np.rint(groups / scale) + zero, least, least + 15)
    return np.moveaxis(((levels - zero) * scale).reshape(moved.shape), -1, axis).astype(weights.dtype)


def quantized_range(array: np.ndarray, low: float, high: float) -> np.ndarray:
    """Return an array quantized to 256 levels of the range from ``low`` to ``high``, and dequantized again.

    The range is extended to contain 0, which a level represents exactly. Values outside saturate.
    """
    if not is_float(array) or not array.size:
        return array
    low, high = min(low, 0.0), max(high, 0.0)
    scale = (high - low) / 255
    if not scale or not np.isfinite(scale):
        return array
    zero = np.rint(-low / scale)
    levels = np.clip(np.rint(array / np.asarray(scale, array.dtype)) + zero, 0, 255)
    return ((levels - zero) * scale).astype(array.dtype)
