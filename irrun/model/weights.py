"""Read and write constants in the ``.bin``.

The file is memory-mapped. A tensor whose elements take whole bytes is a view of the map, without a copy. Types of less
than a byte, ``boolean`` and ``string`` are unpacked to new arrays.
"""

from __future__ import annotations

import math
import mmap
import os
from collections.abc import Callable
from contextlib import suppress
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Final

import ml_dtypes
import numpy as np

from irrun.diagnostics import Refused
from irrun.types import NF4, ElementType, PartialShape, decoded, encoded, text_array

__all__ = ["Weights", "is_unpacked", "pack", "strings_of"]


class Weights:
    """The contents of a ``.bin``: of the file at ``path``, or the bytes ``data`` if these are passed."""

    def __init__(self, path: Path | None = None, data: bytes | None = None) -> None:
        self.path = path
        self.given = data
        self._mapped: os.stat_result | None = None
        """The state of the file when it was mapped."""

    @cached_property
    def data(self) -> np.ndarray:
        """The whole file as uint8 [n], read-only unless the file cannot be memory-mapped."""
        if self._map is not None:
            return np.frombuffer(self._map, np.uint8)
        if self.given is not None or self.path is None:
            return np.frombuffer(self.given or b"", np.uint8)
        return _frozen(np.fromfile(self.path, np.uint8))

    @property
    def copied(self) -> int:
        """The bytes that ``copy_into_memory`` has read."""
        return 0 if self._mapped is None or self.given is None else len(self.given)

    @cached_property
    def _map(self) -> mmap.mmap | None:
        if self.path is None or self.given is not None:
            return None
        try:
            with self.path.open("rb") as file:
                self._mapped = os.fstat(file.fileno())
                return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError):  # the file is empty, or the file system or platform does not support mmap
            return None

    def copy_into_memory(self) -> None:
        """Read the file into memory, so that later changes of the file have no effect. Earlier views stay views."""
        if self._map is not None:
            self.given = bytes(self._map)
            self.__dict__.pop("_map", None)
            self.__dict__.pop("data", None)

    def require_unchanged(self) -> None:
        """Raise Refused (IR502) if the mapped file has been written to or cut short since it was mapped.

        Its tensors would then have other values, and reading beyond its new end would kill the process. A file that
        was removed, or replaced by another one of the same name, does no harm: the map keeps the old file. Of an empty
        file, nothing is mapped, and a file system may give its inode to another one.
        """
        if self.path is None or self._mapped is None or self._mapped.st_size == 0 or self.given is not None:
            return
        try:
            now = os.stat(self.path)
        except OSError:  # the file is removed
            return
        before = self._mapped
        if (now.st_dev, now.st_ino) != (before.st_dev, before.st_ino):
            return
        if (now.st_size, now.st_mtime_ns) != (before.st_size, before.st_mtime_ns):
            raise Refused(
                f"{self.path} has changed since the model was read; it had {before.st_size:,} bytes and has "
                f"{now.st_size:,}",
                help="compile the model again, and replace a .bin by renaming instead of writing to it; or copy the "
                "weights into memory with copy_weights=True (--copy-weights)",
                code="IR502",
            )

    def release(self) -> None:
        """Let the system reuse the memory of the pages read so far. Reading them again loads them from the file.

        Views of the map stay valid. Without a map, or where the system has no such call, this does nothing.
        """
        if _DROP is not None and self._map is not None:
            with suppress(OSError):  # madvise only advises the system, so a failure does no harm
                self._map.madvise(_DROP)

    def __len__(self) -> int:
        return len(self.data)

    def bytes_at(self, offset: int, size: int) -> np.ndarray:
        """Return the ``size`` bytes at ``offset`` as a view of the file. Raises Refused (IR502) if it has fewer."""
        if offset < 0 or size < 0 or offset + size > len(self.data):
            raise Refused(
                f"offset {offset} and size {size} reach outside the .bin, which has {len(self.data)} bytes",
                "C1",
                "pass the .bin of this model, or correct offset and size",
                code="IR502",
            )
        return self.data[offset : offset + size]

    def tensor(self, offset: int, size: int, element_type: ElementType, shape: tuple[int, ...]) -> np.ndarray:
        """Return the tensor of ``shape`` that is stored in the ``size`` bytes at ``offset``.

        Its dtype is that of ``element_type``. It may be a read-only view of the file. Raises the errors of ``require``.
        """
        raw, count = self.require(offset, size, element_type, shape), math.prod(shape)
        if element_type.kind == "string":
            return _frozen(_strings(raw, count).reshape(shape))
        unpack = _UNPACK.get(element_type.name)
        if unpack is not None:
            return _frozen(unpack(raw, count).reshape(shape))
        return raw.view(element_type.dtype).reshape(shape)

    def require(self, offset: int, size: int, element_type: ElementType, shape: tuple[int, ...]) -> np.ndarray:
        """Return the bytes of a tensor of ``shape``, as a view of the file, without unpacking them.

        Raises Refused: IR305 for the type ``dynamic``, IR502 if the range is outside the file, IR503 if ``size`` is
        less than type and shape need, IR504 if the bytes are not a valid string tensor, and IR604 if numpy has no array
        of this shape.
        """
        raw, count = self.bytes_at(offset, size), math.prod(shape)
        if element_type.kind == "dynamic":
            help = "write the element type of its values"
            raise Refused("a constant cannot have the element type dynamic", "C2", help, code="IR305")
        if element_type.kind == "string":
            _require_array(element_type, shape)
            _require_strings(raw, count)
            return raw
        needed = element_type.nbytes(count)
        if size < needed:
            raise Refused(
                f"size is {size}, but shape [{','.join(map(str, shape))}] of {element_type} takes {needed} bytes",
                "C2",
                f'write size="{needed}" or correct the shape',
                code="IR503",
            )
        _require_array(element_type, shape)
        return raw[:needed]


def _require_array(element_type: ElementType, shape: tuple[int, ...]) -> None:
    """Raise Refused (IR604) if numpy has no arrays of this shape."""
    if limit := PartialShape.of(shape).array_limit(element_type.dtype.itemsize):
        message = f"no array of {element_type} can have the shape [{','.join(map(str, shape))}]: {limit}"
        raise Refused(message, help="correct the shape", code="IR604")


def is_unpacked(element_type: ElementType) -> bool:
    """Return whether tensors of this type are unpacked to new arrays. Those of other types are views of the file."""
    return element_type.kind == "string" or element_type.name in _UNPACK


_DROP: Final[int | None] = getattr(mmap, "MADV_DONTNEED", None)
"""The advice that drops mapped pages from memory; None on Windows and in a browser, which do not have it."""


def _frozen(array: np.ndarray) -> np.ndarray:
    """Make ``array`` itself read-only and return it."""
    array.flags.writeable = False
    return array


def _fields(raw: np.ndarray, bits: int, count: int, *, low_first: bool) -> np.ndarray:
    """Return the first ``count`` unsigned fields of ``bits`` (1, 2 or 4) bits in the bytes ``raw``, as uint8 [count].

    ``low_first`` says whether the first field of a byte is in its lowest bits or in its highest.
    """
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    parts = raw[:, None] >> (shifts if low_first else shifts[::-1])
    return (parts & ((1 << bits) - 1)).reshape(-1)[:count]


def _i4(raw: np.ndarray, count: int) -> np.ndarray:
    codes = _fields(raw, 4, count, low_first=True).astype(np.int8)
    return np.where(codes > 7, codes - 16, codes).astype(ml_dtypes.int4)


def _u3(raw: np.ndarray, count: int) -> np.ndarray:
    """Return the first ``count`` u3 values, as uint8 [count].

    In each group of three bytes, the first two hold the two low bits of eight values and the third their high bits.
    """
    groups = raw.reshape(-1, 3)
    low = _fields(groups[:, :2].reshape(-1), 2, len(groups) * 8, low_first=False)
    high = _fields(groups[:, 2], 1, len(groups) * 8, low_first=False)
    return (low | high << 2)[:count]


def _u6(raw: np.ndarray, count: int) -> np.ndarray:
    """Return the first ``count`` u6 values, as uint8 [count].

    In each group of three bytes, the first two hold the four low bits of four values and the third their high bits.
    """
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
"""How to unpack types that cannot be a view, by name: bytes (uint8) and a count of elements to an array [count]."""


def pack(array: np.ndarray, element_type: ElementType) -> bytes:
    """Return the bytes of a tensor in the ``.bin``, from which ``Weights.tensor`` reads the same tensor.

    Values are converted to ``element_type`` if ``array`` has another dtype (``nf4``: to the nearest of its values).
    """
    flat = np.ascontiguousarray(array).reshape(-1)
    if element_type.kind == "string":
        words = [encoded(word) for word in flat.tolist()]
        offsets = np.cumsum([0, *map(len, words)])
        return np.array([len(words), *offsets], np.int32).tobytes() + b"".join(words)
    if not flat.size:
        return b"\0"  # OpenVINO does the same, and refuses an empty .bin
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
        low, high = _packed(codes & 3, 2, low_first=False), _packed(codes >> 2, 1, low_first=False)
    elif element_type.name == "u6":
        low, high = _packed(codes & 15, 4, low_first=False), _packed(codes >> 4, 2, low_first=False)
    else:
        return _packed(codes, element_type.bits, low_first=element_type.name != "u1").tobytes()
    return np.hstack([low.reshape(-1, 2), high.reshape(-1, 1)]).tobytes()


def strings_of(raw: np.ndarray) -> np.ndarray:
    """Return the strings in the bytes (uint8) that ``pack`` has written, as an array [n]. Raises Refused (IR504)."""
    count = int(raw[:4].view(np.int32)[0]) if len(raw) >= 4 else 0
    return _strings(raw, max(count, 0))


def _packed(codes: np.ndarray, bits: int, *, low_first: bool) -> np.ndarray:
    """Return the bytes, as uint8 [n], that hold ``codes`` in fields of ``bits`` bits: the inverse of ``_fields``."""
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    parts = codes.reshape(-1, 8 // bits) << (shifts if low_first else shifts[::-1])
    return np.bitwise_or.reduce(parts, axis=1)


def _require_strings(raw: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the offsets of ``count`` strings, int32 [count + 1], and their text, uint8 [n].

    The bytes of a string tensor are the count as int32, ``count + 1`` int32 offsets that begin with 0, and the text.
    Raises Refused (IR504) if they contradict each other.
    """

    def broken(why: str) -> Refused:
        return Refused(f"the bytes are not a string tensor of {count} elements: {why}", "C3", code="IR504")

    if count == 0 and len(raw) < 4:
        return np.zeros(1, np.int32), raw[:0]
    head = (count + 2) * 4
    if len(raw) < head:
        raise broken(f"{len(raw)} bytes cannot hold the offsets")
    numbers, text = raw[:head].view(np.int32), raw[head:]
    if numbers[0] != count:
        raise broken(f"they declare {numbers[0]} elements")
    offsets = numbers[1:]
    if offsets[0] != 0 or (offsets[1:] < offsets[:-1]).any() or offsets[-1] > len(text):
        raise broken("the offsets do not ascend from 0 to the end of the text")
    return offsets, text


def _strings(raw: np.ndarray, count: int) -> np.ndarray:
    """Return the strings of a string tensor as an array [count]. Raises Refused (IR504)."""
    offsets, text = _require_strings(raw, count)
    whole = text.tobytes()
    return text_array([decoded(whole[a:b]) for a, b in pairwise(offsets.tolist())], (count,))
