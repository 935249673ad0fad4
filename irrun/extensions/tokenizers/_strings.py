"""String tensors and ragged tensors as ports: begins, ends and data.

A string tensor is three ports: begins and ends, i32 of one shape, and chars, u8 [n]. String k is
``chars[begins[k]:ends[k]]``. Strings may share bytes, overlap and leave gaps. A ragged tensor has row begins and row
ends instead, which count the elements of its data.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np

from irrun.opdef import Input, Site, Value
from irrun.types import ELEMENT_TYPES, Dim, PartialShape

__all__ = [
    "I32", "RAGGED", "STRINGS", "ZERO", "check_pieces", "check_ragged", "check_rows", "check_spans", "check_strings",
    "gathered", "is_range", "known_bytes", "packed", "pieces", "ragged_outputs", "rows_of", "skip_flags",
    "string_outputs",
]  # fmt: skip

I32: Final = ELEMENT_TYPES["i32"]
_U8: Final = ELEMENT_TYPES["u8"]
ZERO: Final = np.zeros(0, np.int32)

STRINGS: Final[dict[str, str | Input]] = {"begins": "i32", "ends": "i32", "chars": "u8"}
"""The ports of a string tensor."""
RAGGED: Final[dict[str, str | Input]] = {"row_begins": "i32", "row_ends": "i32", **STRINGS}
"""The ports of a ragged string tensor: row k holds the strings from ``row_begins[k]`` up to ``row_ends[k]``."""


def check_strings(
    at: Site, begins: Value, ends: Value, chars: Value, *, label: str = "C1", what: str = ""
) -> PartialShape:
    """Return the shape of a string tensor. Refuse the layer if its begins, ends and chars contradict each other."""
    shape = check_spans(at, begins, ends, label, what)
    at.require(chars.rank in (None, 1), label, f"{what}chars is {chars.shape}, not 1D")
    if begins.exact is not None and ends.exact is not None:
        check_pieces(at, begins.exact, ends.exact, chars.shape[0].hi if chars.rank == 1 else None, label, what)
    return shape


def check_spans(at: Site, begins: Value, ends: Value, label: str, what: str = "") -> PartialShape:
    """Return the common shape of ``begins`` and ``ends``. Refuse the layer if they have none."""
    shape = begins.shape.meet(ends.shape)
    at.require(shape is not None, label, f"{what}begins is {begins.shape}, but {what}ends is {ends.shape}")
    assert shape is not None
    return shape


def check_rows(at: Site, begins: Value, ends: Value, count: Dim, label: str = "C2") -> PartialShape:
    """Return the shape of the rows of a ragged tensor with ``count`` elements. Refuse rows that are not within it."""
    shape = check_spans(at, begins, ends, label, "row_")
    if begins.exact is not None and ends.exact is not None:
        check_pieces(at, begins.exact, ends.exact, count.hi, label, "row_", "elements")
    return shape


def check_ragged(at: Site, ports: Sequence[Value]) -> PartialShape:
    """Return the shape of the rows of a ragged string tensor. The clauses are C1 for strings and C2 for rows."""
    shape = check_strings(at, *ports[2:5])
    at.require(shape.rank in (None, 1), "C1", f"begins is {shape}, not 1D: the rows hold the other axes")
    return check_rows(at, ports[0], ports[1], shape[0] if shape.rank == 1 else Dim.unknown())


def check_pieces(
    at: Site,
    begins: np.ndarray,
    ends: np.ndarray,
    length: float | None,
    label: str,
    what: str = "",
    unit: str = "bytes of chars",
) -> None:
    """Refuse spans that do not lie within ``length`` elements. ``None`` stands for an unknown length."""
    if begins.shape != ends.shape:
        at.refuse(label, f"{what}begins has the shape {list(begins.shape)}, but {what}ends {list(ends.shape)}")
    most = float("inf") if length is None else length
    if begins.size and (begins.min() < 0 or ends.max() > most or (begins > ends).any()):
        bad = (begins < 0) | (begins > ends) | (ends > most)
        index = int(np.flatnonzero(bad.ravel())[0])
        begin, end = int(begins.ravel()[index]), int(ends.ravel()[index])
        within = "" if length is None else f" within the {length:,} {unit}"
        at.refuse(label, f"{what}begins[{index}] = {begin} and {what}ends[{index}] = {end} are no span{within}")


def pieces(
    begins: np.ndarray, ends: np.ndarray, chars: np.ndarray, *, label: str = "C1", what: str = ""
) -> list[bytes]:
    """Return the strings of a string tensor in row-major order. Raises Refused if a string is not within ``chars``."""
    check_pieces(Site(), begins, ends, chars.size, label, what)
    data = chars.tobytes()
    return [data[begin:end] for begin, end in zip(begins.ravel().tolist(), ends.ravel().tolist())]


def packed(strings: Iterable[bytes], shape: Sequence[int]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return begins, ends and chars of a string tensor of this shape, without gaps."""
    items = list(strings)
    ends = np.fromiter(itertools.accumulate(map(len, items)), np.int32, len(items))
    begins = np.concatenate((ZERO, [0], ends[:-1]), dtype=np.int32)[: len(items)]
    return begins.reshape(shape), ends.reshape(shape), np.frombuffer(b"".join(items), np.uint8)


def rows_of(row_begins: np.ndarray, row_ends: np.ndarray, count: int) -> tuple[list[int], list[int]]:
    """Return the begin and end of each row. Raises Refused (C2) for a row that is not within ``count`` strings."""
    check_pieces(Site(), row_begins, row_ends, count, "C2", "row_", "elements")
    return row_begins.ravel().tolist(), row_ends.ravel().tolist()


def gathered(begins: np.ndarray, ends: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the indices of all elements of the spans, one span after the other, and the offsets of the spans in it.

    There is one offset more than there are spans.
    """
    lengths = (ends - begins).ravel().astype(np.int64)
    offsets = np.concatenate(([0], np.cumsum(lengths)))
    shift = np.repeat(begins.ravel() - offsets[:-1], lengths)
    return np.arange(offsets[-1]) + shift, offsets


def is_range(indices: np.ndarray, count: int) -> bool:
    """Return whether indices are those of ``count`` elements in their order."""
    return len(indices) == count and bool((indices == np.arange(count)).all())


def string_outputs(shape: PartialShape) -> tuple[Value, Value, Value]:
    """Return the outputs of an operation that makes new strings of this shape."""
    return Value(I32, shape), Value(I32, shape), Value(_U8, PartialShape.of_rank(1))


def ragged_outputs(rows: PartialShape, chars: Value) -> tuple[Value, ...]:
    """Return the outputs of an operation that cuts the strings of rows: any number of strings, with the same chars."""
    some = Value(I32, PartialShape.of([Dim.unknown()]))
    return Value(I32, rows), Value(I32, rows), some, some, Value(_U8, chars.shape)


def skip_flags(at: Site, skips: Value | None, strings: PartialShape, label: str) -> None:
    """Refuse skip flags that are not one for each string."""
    if skips is not None and skips.shape.rank is not None and strings.rank is not None:
        count, flags = strings.count(), skips.shape.count()
        message = f"skips is {skips.shape}, but there are {count} strings"
        at.require(count.lo <= flags.hi and flags.lo <= count.hi, label, message)


def known_bytes(value: Value | None) -> bytes | None:
    """Return the contents of a text that is one port, or None if they are not known."""
    return None if value is None or value.exact is None else value.exact.tobytes()
