"""Tensors between processes: an element type, a shape, and the bytes of the elements.

The bytes are those of a ``.bin``: little-endian, in C order, sub-byte types packed. Strings are lists instead.
"""

from __future__ import annotations

import math

import numpy as np

from irrun.model.weights import Weights, pack
from irrun.types import ELEMENT_TYPES, ElementType, text_array

__all__ = ["Wire", "converted", "decoded", "encoded", "stored"]

Wire = tuple[str, tuple[int, ...], bytes | list[str]]
"""A tensor between processes: element type, shape, and bytes or strings."""


def encoded(array: np.ndarray, type: str | None = None) -> Wire:
    """Return a tensor for another process.

    ``type`` is its element type; by default the one that computes in the array's dtype. Raises ValueError if no
    element type has the dtype.
    """
    element_type = ELEMENT_TYPES[type] if type is not None else ElementType.of(array.dtype)
    if element_type is None or element_type.kind == "dynamic":
        raise ValueError(f"no element type has dtype {array.dtype}")
    if element_type.kind == "string":
        return element_type.name, array.shape, [str(word) for word in array.flat]
    data = pack(array, element_type) if array.size else b""
    return element_type.name, array.shape, data


def decoded(type: str, shape: tuple[int, ...], data: bytes | np.ndarray | list[str]) -> np.ndarray:
    """Return the array of a tensor from another process. ``data`` may be a uint8 array, of which it may be a view.

    Raises ValueError if the element type is unknown or the data do not fill the shape.
    """
    element_type, count = ELEMENT_TYPES.get(type), math.prod(shape)
    if element_type is None or element_type.kind == "dynamic":
        raise ValueError(f"{type!r} is no element type")
    if isinstance(data, list):
        if len(data) != count:
            raise ValueError(f"{len(data)} strings do not fill the shape {list(shape)}")
        return text_array(data, shape)
    raw = np.frombuffer(data, np.uint8) if isinstance(data, bytes) else data
    needed = element_type.nbytes(count)
    if element_type.kind == "string" or len(raw) < needed:
        raise ValueError(f"{len(raw)} bytes do not fill the shape {list(shape)} of {type}")
    if not count:
        return np.empty(shape, element_type.dtype)
    if element_type.bits < 8:
        return Weights(data=raw.tobytes()).tensor(0, len(raw), element_type, shape)
    return raw[:needed].view(element_type.dtype).reshape(shape)


def converted(array: np.ndarray, type: str) -> np.ndarray:
    """Return the array in an element type, if both are numeric, and otherwise unchanged.

    OpenVINO takes f32 and i32 for some inputs that an IR v10 declares as f16 and i64.
    """
    wanted, own = ELEMENT_TYPES.get(type), ElementType.of(array.dtype)
    numeric = ("float", "int", "uint")
    if wanted is None or own is None or wanted is own or wanted.kind not in numeric or own.kind not in numeric:
        return array
    with np.errstate(all="ignore"):
        return array.astype(wanted.dtype)


def stored(array: np.ndarray, type: str) -> np.ndarray:
    """Return an array of a ``.npy`` in the element type that it had before it was saved.

    A ``.npy`` holds no bf16, f8 or 4-bit types, but a wider type that has all of their values.
    """
    element_type = ELEMENT_TYPES.get(type)
    if element_type is None or element_type.kind == "string" or element_type.dtype == array.dtype:
        return array
    with np.errstate(all="ignore"):
        return array.astype(element_type.dtype)
