"""What the pages of conversions, quantization and strings leave open."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import ml_dtypes
import numpy as np

from irrun.opdef import Op
from irrun.specification.undefined.forms import (
    Behaviour,
    Inputs,
    aligned,
    doubles,
    element_type,
    fits,
    is_integer,
    whole,
)
from irrun.types import NF4, ElementType

__all__ = ["BEHAVIOURS"]


def _to_integers(data: np.ndarray, to: ElementType, *, modulo: bool) -> np.ndarray:
    """Return which numbers are not converted to an integer type in one way.

    ``modulo`` says whether negative integers become unsigned ones modulo a power of 2.
    """
    if is_integer(data):
        numbers = whole(data)
        return ~fits(numbers, to) & ~np.asarray((numbers < 0) & (modulo and to.kind == "uint"), bool)
    finite = np.isfinite(doubles(data))
    numbers = np.where(finite, doubles(data), 0)
    cut = np.trunc(numbers)
    return ~(finite & (np.abs(numbers - cut) < 0.5) & fits(cut, to))


def _to_floats(data: np.ndarray, to: ElementType) -> np.ndarray:
    """Return which numbers are not converted to a float type in one way.

    They are out of its range, or rounded away from 0 where another engine may cut them off. For types of 16 bits or
    more, this difference is within the tolerance of a comparison.
    """
    if to.name == "nf4":
        return ~np.isin(data.astype(np.float32), NF4)
    with np.errstate(all="ignore"):
        rounded = data.astype(to.dtype)
    near, finite = doubles(rounded), np.isfinite(doubles(data))
    if is_integer(data) and data.dtype.itemsize == 8:
        larger = np.asarray(np.abs(np.where(np.isfinite(near), near, 0)).astype(object) > abs(whole(data)), bool)
        return (larger & (to.bits < 16)) | ~np.isfinite(near)
    exact = doubles(data)
    away = finite & (to.bits < 16) & ((np.abs(near) > np.abs(exact)) | (near * exact < 0))
    beyond = finite & (~np.isfinite(near) | (np.abs(exact) > float(ml_dtypes.finfo(to.dtype).max)))
    return away | beyond | (~finite & (np.isnan(near) != np.isnan(exact))) | (np.isinf(exact) & ~np.isinf(near))


def _open(data: np.ndarray, to: ElementType, *, modulo: bool) -> bool | np.ndarray:
    """Return which elements the pages do not determine after a conversion to another type."""
    if element_type(data) is to or data.dtype == np.bool_:
        return False
    if to.kind == "boolean":
        numbers = doubles(data)
        return (numbers != 0) & (numbers != 1)
    return _to_integers(data, to, modulo=modulo) if to.is_integer else _to_floats(data, to)


def _conversion(op: Op, inputs: Inputs) -> bool | np.ndarray:
    """A number that the other type cannot hold, or that may be cut off or rounded to another one.

    Convert, but not ConvertLike, determines how a negative integer becomes unsigned. The outputs of ConvertPromoteTypes
    are open as a whole.
    """
    data, *others = inputs
    if data is None:
        return False
    if op.type == "Convert":
        to = getattr(op, "destination_type", None)
        return to is not None and _open(data, to, modulo=True)
    (other,) = others
    if other is None:
        return False
    if op.type == "ConvertLike":
        return _open(data, element_type(other), modulo=False)
    common = element_type(op.run(data, other)[0])
    return any(bool(np.any(_open(array, common, modulo=False))) for array in (data, other))


def _level_between(op: Op, inputs: Inputs) -> bool | np.ndarray:
    """A number half-way between two levels of quantization, or so near that rounding errors decide.

    FakeConvert leaves open, too, what becomes of numbers beyond the type that it emulates.
    """
    if any(array is None for array in inputs[: 5 if op.type == "FakeQuantize" else 2]):
        return False
    data, *others = [array for array in inputs if array is not None]
    exact, single = doubles(data), float(np.finfo(np.float64 if data.dtype == np.float64 else np.float32).eps)
    with np.errstate(all="ignore"):
        if op.type == "FakeConvert":
            to = ml_dtypes.float8_e4m3fn if getattr(op, "destination_type", "") == "f8e4m3" else ml_dtypes.float8_e5m2
            scaled, moved = exact * doubles(others[0]), doubles(others[1]) if len(others) > 1 else np.zeros(())
            value, error = scaled - moved, 4 * single * (np.abs(scaled) + np.abs(moved))
            near = [doubles((value + sign * error).astype(np.float32).astype(to)) for sign in (-1, 1)]
            return (near[0] != near[1]) | (np.abs(value) > float(ml_dtypes.finfo(to).max))
        low, high = (doubles(aligned(op, data, limit)) for limit in others[:2])
        steps = getattr(op, "levels", 2) - 1
        share = (exact - low) / (high - low) * steps
        inside = (exact > np.minimum(low, high)) & (exact <= np.maximum(low, high))
        error = 4 * single * steps * (1 + (np.abs(exact) + np.abs(low)) / np.abs(high - low))
        return inside & (np.abs(share - np.floor(share) - 0.5) <= error)


def _is_text(symbols: bytes) -> bool:
    try:
        symbols.decode()
    except UnicodeDecodeError:
        return False
    return True


def _strings(op: Op, inputs: Inputs) -> bool | np.ndarray:
    """Bytes that are not UTF-8; in StringTensorPack, any string where begins or ends are not in ascending order."""
    if any(array is None for array in inputs):
        return False
    arrays = [array for array in inputs if array is not None]
    if op.type == "StringTensorUnpack":
        return not all(_is_text(str(text).encode("utf-8", "surrogateescape")) for text in arrays[0].flat)
    begins, ends, symbols = arrays
    if (np.diff(begins.ravel()) < 0).any() or (np.diff(ends.ravel()) < 0).any():
        return True
    text = symbols.tobytes()
    wrong = [not _is_text(text[begin:end]) for begin, end in zip(begins.flat, ends.flat)]
    return np.array(wrong, bool).reshape(begins.shape)


BEHAVIOURS: Final[Mapping[str, Behaviour]] = {
    "conversion": _conversion,
    "level-between": _level_between,
    "strings": _strings,
}
