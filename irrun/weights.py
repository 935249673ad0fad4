"""The ``.bin``: mapped into memory, bounds checked, sub-byte types unpacked.

A tensor of a byte-wide or wider type is a read-only view of the file; nothing is copied.
"""

from __future__ import annotations

import math
import mmap
from collections.abc import Callable
from contextlib import suppress
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Final

import ml_dtypes
import numpy as np

from irrun.diagnostics import Refused
from irrun.types import NF4, ElementType

__all__ = ["Weights", "pack"]


class Weights:
    """A ``.bin`` file, or the same bytes in memory."""

    def __init__(self, path: Path | None = None, data: bytes | None = None) -> None:
        self.path = path
        self.given = data

    @cached_property
    def data(self) -> np.ndarray:
        """The whole file as uint8 [n], read-only."""
        if self._map is not None:
            return np.frombuffer(self._map, np.uint8)
        if self.given is not None or self.path is None:
            return np.frombuffer(self.given or b"", np.uint8)
        return np.fromfile(self.path, np.uint8)

    @cached_property
    def _map(self) -> mmap.mmap | None:
        if self.path is None or self.given is not None:
            return None
        try:
            with self.path.open("rb") as file:
                return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError):  # an empty file, or no mmap on this file system or platform
            return None

    def release(self) -> None:
        """Give back the memory of what was read of the map; what is read again comes back from the file by itself."""
        if _DROP is not None and self._map is not None:
            with suppress(OSError):  # it is no more than advice
                self._map.madvise(_DROP)

    def __len__(self) -> int:
        return len(self.data)

    def tensor(self, offset: int, size: int, element_type: ElementType, shape: tuple[int, ...]) -> np.ndarray:
        """The tensor of ``shape`` in the ``size`` bytes at ``offset``. Raises Refused (IR502 to IR504)."""
        if offset < 0 or size < 0 or offset + size > len(self.data):
            raise Refused(
                f"offset {offset} and size {size} reach to byte {offset + size} of a .bin of {len(self.data)} bytes",
                "C1",
                "the .bin is cut short or belongs to another model",
                code="IR502",
            )
        raw = self.data[offset : offset + size]
        count = math.prod(shape)
        if element_type.kind == "dynamic":
            raise Refused("no constant has the element type dynamic", "C2", code="IR305")
        if element_type.kind == "string":
            return _strings(raw, count).reshape(shape)
        needed = element_type.nbytes(count)
        if size != needed and not (count == 0 and size == 1):  # OpenVINO writes a byte for no elements
            raise Refused(
                f"size is {size}, but shape [{','.join(map(str, shape))}] of {element_type} takes {needed} bytes",
                "C2",
                f'write size="{needed}" or correct the shape',
                code="IR503",
            )
        unpack = _UNPACK.get(element_type.name)
        if unpack is not None:
            return _frozen(unpack(raw[:needed], count).reshape(shape))
        return raw[:needed].view(element_type.dtype).reshape(shape)


_DROP: Final[int | None] = getattr(mmap, "MADV_DONTNEED", None)
"""Not on Windows, nor in the browser."""


def _frozen(array: np.ndarray) -> np.ndarray:
    array.flags.writeable = False
    return array


def _fields(raw: np.ndarray, bits: int, count: int, *, low_first: bool) -> np.ndarray:
    """``count`` unsigned fields of ``bits`` (1, 2 or 4) each from the bytes, as uint8."""
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    parts = raw[:, None] >> (shifts if low_first else shifts[::-1])
    return (parts & ((1 << bits) - 1)).reshape(-1)[:count]


def _i4(raw: np.ndarray, count: int) -> np.ndarray:
    codes = _fields(raw, 4, count, low_first=True).astype(np.int8)
    return np.where(codes > 7, codes - 16, codes).astype(ml_dtypes.int4)


def _u3(raw: np.ndarray, count: int) -> np.ndarray:
    groups = raw.reshape(-1, 3)
    low = _fields(groups[:, :2].reshape(-1), 2, len(groups) * 8, low_first=False)
    high = _fields(groups[:, 2], 1, len(groups) * 8, low_first=False)
    return (low | high << 2)[:count]


def _u6(raw: np.ndarray, count: int) -> np.ndarray:
    groups = raw.reshape(-1, 3)
    low = _fields(groups[:, :2].reshape(-1), 4, len(groups) * 4, low_first=False)
    high = _fields(groups[:, 2], 2, len(groups) * 4, low_first=False)
    return (low | high << 4)[:count]


_UNPACK: Final[dict[str, Callable[[np.ndarray, int], np.ndarray]]] = {
    "boolean": lambda raw, count: raw != 0,
    "i4": _i4,
    "u4": lambda raw, count: _fields(raw, 4, count, low_first=True).astype(ml_dtypes.uint4),
    "u2": lambda raw, count: _fields(raw, 2, count, low_first=True).astype(ml_dtypes.uint2),
    "u1": lambda raw, count: _fields(raw, 1, count, low_first=False),
    "u3": _u3,
    "u6": _u6,
    "nf4": lambda raw, count: NF4[_fields(raw, 4, count, low_first=True)],
    "f4e2m1": lambda raw, count: _fields(raw, 4, count, low_first=True).view(ml_dtypes.float4_e2m1fn),
}


def pack(array: np.ndarray, element_type: ElementType) -> bytes:
    """The bytes that a tensor takes in the .bin: what ``Weights.tensor`` reads back."""
    flat = np.ascontiguousarray(array).reshape(-1)
    if element_type.kind == "string":
        words = [str(word).encode() for word in flat]
        offsets = np.cumsum([0, *map(len, words)])
        return np.array([len(words), *offsets], np.int32).tobytes() + b"".join(words)
    if not flat.size:
        return b"\0"  # as OpenVINO does: it refuses a .bin without a byte
    if element_type.bits >= 8:
        return flat.astype(element_type.dtype, copy=False).tobytes()
    if element_type.name == "nf4":
        codes = np.abs(flat.astype(np.float32)[:, None] - NF4).argmin(1).astype(np.uint8)
    elif element_type.kind == "float":
        codes = flat.astype(element_type.dtype).view(np.uint8)
    else:
        codes = flat.astype(np.int8 if element_type.kind == "int" else np.uint8).view(np.uint8)
    group = {"u3": 8, "u6": 4}.get(element_type.name, 8 // element_type.bits)
    codes = np.pad(codes & ((1 << element_type.bits) - 1), (0, -flat.size % group)).reshape(-1, group)
    if element_type.name == "u3":
        low, high = _joined(codes & 3, 2, low_first=False), _joined(codes >> 2, 1, low_first=False)
    elif element_type.name == "u6":
        low, high = _joined(codes & 15, 4, low_first=False), _joined(codes >> 4, 2, low_first=False)
    else:
        return _joined(codes, element_type.bits, low_first=element_type.name != "u1").tobytes()
    return np.hstack([low.reshape(-1, 2), high.reshape(-1, 1)]).tobytes()


def _joined(codes: np.ndarray, bits: int, *, low_first: bool) -> np.ndarray:
    """Bytes of unsigned fields of ``bits`` each: what ``_fields`` takes apart."""
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    parts = codes.reshape(-1, 8 // bits) << (shifts if low_first else shifts[::-1])
    return np.bitwise_or.reduce(parts, axis=1)


def _strings(raw: np.ndarray, count: int) -> np.ndarray:
    """int32 count, count + 1 int32 offsets from 0 on, then the UTF-8 bytes."""

    def broken(why: str) -> Refused:
        return Refused(f"the bytes are no string tensor of {count} elements: {why}", "C3", code="IR504")

    if count == 0 and len(raw) < 4:
        return np.empty(0, np.dtype("U"))
    head = (count + 2) * 4
    if len(raw) < head:
        raise broken(f"{len(raw)} bytes cannot hold the offsets")
    numbers = raw[:head].view(np.int32)
    if numbers[0] != count:
        raise broken(f"they hold {numbers[0]}")
    offsets, text = numbers[1:].tolist(), raw[head:].tobytes()
    if offsets[0] != 0 or any(a > b for a, b in pairwise(offsets)) or offsets[-1] > len(text):
        raise broken("the offsets do not ascend from 0 to the end")
    try:
        return np.array([text[a:b].decode() for a, b in pairwise(offsets)], np.dtype("U"))
    except UnicodeDecodeError as error:
        raise broken(f"they are not UTF-8 ({error.reason})") from None
