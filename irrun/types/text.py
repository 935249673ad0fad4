"""String tensors: numpy object arrays of ``str``.

A string of OpenVINO is any sequence of bytes, mostly UTF-8. A ``str`` holds each byte that is not UTF-8 as a surrogate
(PEP 383, ``errors="surrogateescape"``), so that nothing is lost. The fixed-width strings of numpy drop NULs at the end
and pad all strings to the longest, and its ``StringDType`` holds UTF-8 only.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np

__all__ = [
    "STRING_BYTES",
    "array_from",
    "as_text",
    "blank",
    "decoded",
    "encoded",
    "fixed_width",
    "holds_text",
    "text_array",
    "text_bytes",
]


def decoded(data: bytes) -> str:
    """Return a string of OpenVINO as ``str``."""
    return data.decode("utf-8", "surrogateescape")


def encoded(text: str) -> bytes:
    """Return the bytes of a string of OpenVINO. Raises UnicodeEncodeError for a surrogate that stands for no byte."""
    return text.encode("utf-8", "surrogateescape")


def text_array(strings: Iterable[str], shape: Sequence[int]) -> np.ndarray:
    """Return an array of ``str`` with this shape."""
    items = list(strings)
    array = np.empty(len(items), object)
    array[:] = items
    return array.reshape(shape)


def as_text(array: np.ndarray) -> np.ndarray | None:
    """Return the strings of any array as ``str`` objects, or None if it holds anything but strings.

    ``str``, fixed-width and variable-width strings of numpy, and bytes are accepted. Bytes that surrogates stand for
    are decoded where they are UTF-8 after all, so that equal bytes give equal strings. May return ``array`` itself.
    Raises ValueError for a surrogate that stands for no byte.
    """
    if array.dtype.kind not in "UTSO":
        return None
    items = array.ravel().tolist()
    if array.dtype == object and all(isinstance(item, str) for item in items) and _is_utf8("".join(items)):
        return array
    if not all(isinstance(item, (str, bytes)) for item in items):
        return None
    return text_array([_normal(item) for item in items], array.shape)


def _is_utf8(text: str) -> bool:
    """Return whether a text holds no surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _normal(item: str | bytes) -> str:
    if isinstance(item, bytes):
        return decoded(item)
    return str(item) if item.isascii() else decoded(encoded(item))


def array_from(data: Any) -> np.ndarray:
    """Return Python values as an array, as ``np.asarray`` does, but strings as objects, with the NULs at their ends."""
    array = np.asarray(data)
    is_cut = array.dtype.kind in "US" and not isinstance(data, (np.ndarray, np.generic))
    return np.array(data, object) if is_cut else array


def holds_text(array: np.ndarray) -> bool:
    """Return whether an array is a string tensor. Inference uses object arrays, never empty ones, for Dims as well."""
    return array.dtype == object and (not array.size or isinstance(array.flat[0], str))


def blank(shape: Sequence[int] | int, like: np.ndarray) -> np.ndarray:
    """Return an array of this shape with the dtype of ``like``, full of zeros or empty strings."""
    return np.full(shape, "", object) if holds_text(like) else np.zeros(shape, like.dtype)


def text_bytes(array: np.ndarray) -> int:
    """Return the bytes that the strings of an array take, beside the array itself."""
    return sum(len(text) + STRING_BYTES for text in array.ravel().tolist()) if holds_text(array) else 0


def fixed_width(array: np.ndarray) -> np.ndarray | None:
    """Return a string tensor as a fixed-width array, which files can hold, or None if that loses or wastes too much."""
    strings = array.ravel().tolist()
    longest = max(map(len, strings), default=0)
    padded = len(strings) * longest * _CHARACTER
    if any(text.endswith("\0") for text in strings) or padded > _GROWTH * sum(map(len, strings)) + _SMALL:
        return None
    return np.array(strings, np.dtype("U")).reshape(array.shape)


STRING_BYTES: Final = 56
"""The bytes of an empty ``str`` object, which those of its characters add to."""
_CHARACTER: Final = np.dtype("U1").itemsize
"""The bytes of a character in a fixed-width array."""
_GROWTH: Final = 16
"""A fixed-width array may take at most ``_GROWTH`` times the characters of its strings, plus ``_SMALL`` bytes."""
_SMALL: Final = 1 << 20
"""Bytes that any fixed-width array may take, since that little memory does not matter: see ``_GROWTH``."""
