"""Ragged tensors: join them, make them dense, and change their form."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from irrun.extensions.tokenizers._strings import I32, check_pieces, check_rows, check_spans, gathered
from irrun.opdef import Op, Site, Value, attr, op, opt, ports, variadic
from irrun.types import ELEMENT_TYPES, Dim, PartialShape

_BOOLEAN: Final = ELEMENT_TYPES["boolean"]


@op("CombineSegments")
class CombineSegments(Op):
    """Join the rows of several ragged tensors: row k is row k of the first one, then row k of the second one, …

    A tensor with one row, or with scalar begins and ends (the special tokens), takes part in each row. The last output
    is the id of the segment of each element: input ``segment_ids``, the last one, holds an id for each tensor.

    C1  The begins and ends of a tensor have one shape, and each row lies within its data. A scalar begin may stand
        beside an end of shape [1].
    C2  The inputs are three for each tensor, and ``segment_ids``, 1D of type i32 with an id for each tensor.
    C3  Tensors with more than one row have the same number of rows.
    C4  The data of all tensors have one element type and are 1D.
    """

    inputs = ports(begins="i32", ends="i32", data="any", more=variadic("any"))
    outputs = 6
    checked = False

    def infer(self, at: Site, *ports: Value) -> tuple[Value, ...]:
        ids, tensors = ports[-1], [ports[n : n + 3] for n in range(0, len(ports) - 1, 3)]
        at.require(len(ports) % 3 == 1, "C2", f"the layer has {len(ports)} inputs, not 3 for each tensor and 1 more")
        at.require(ids.type.name in ("i32", "dynamic"), "C2", f"segment_ids is {ids.type}, not i32")
        fits = ids.shape.meet(PartialShape.of([len(tensors)])) is not None
        at.require(fits, "C2", f"segment_ids is {ids.shape}, but there are {len(tensors)} tensors")
        shape = PartialShape.of([])
        for begins, ends, data in tensors:
            at.require(data.rank in (None, 1), "C4", f"data is {data.shape}, not 1D")
            same = "dynamic" in (data.type.name, tensors[0][2].type.name) or data.type is tensors[0][2].type
            at.require(same, "C4", f"data is {tensors[0][2].type} and {data.type}")
            if begins.rank == 0 and ends.rank == 1:  # the converter writes a scalar beside an array of one element
                begins = begins.reshaped([1]) if begins.data is None else Value.of(begins.data.reshape(1), begins.type)
            own = check_rows(at, begins, ends, data.shape[0] if data.rank else Dim.unknown(), "C1")
            shape = _joined(at, shape, own)
        rows, data = Value(I32, shape), Value(tensors[0][2].type, PartialShape.of([Dim.unknown()]))
        return rows, rows, data, rows, rows, Value(I32, data.shape)

    def run(self, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        ids, tensors = arrays[-1].ravel(), [arrays[n : n + 3] for n in range(0, len(arrays) - 1, 3)]
        for begins, ends, data in tensors:
            rows_of_tensor(begins.reshape(ends.shape) if not begins.ndim and ends.size == 1 else begins, ends, data)
        Site().require(ids.size == len(tensors), "C2", f"there are {ids.size} ids of {len(tensors)} tensors")
        static = _rows([ends.shape for _, ends, _ in tensors])
        count = math.prod(static)
        starts = np.cumsum([0, *(len(data) for _, _, data in tensors)])
        firsts = np.stack([np.broadcast_to(b.ravel() + s, count) for (b, _, _), s in zip(tensors, starts)], 1)
        lasts = np.stack([np.broadcast_to(e.ravel() + s, count) for (_, e, _), s in zip(tensors, starts)], 1)
        indices, offsets = gathered(firsts, lasts)
        data = np.concatenate([tensor[2] for tensor in tensors])[indices]
        segments = np.repeat(np.tile(ids, count), (lasts - firsts).ravel()).astype(np.int32)
        bounds = offsets[:: len(tensors)].astype(np.int32)
        begins, ends = bounds[:-1].reshape(static), bounds[1:].reshape(static)
        return begins, ends, data, begins, ends, segments

    def working(self, *inputs: np.ndarray) -> int:
        """Return the bytes of the output and of its indices: rows may share elements, so that it has any size."""
        rows = max((begins.size for begins in inputs[:-1:3]), default=1)
        total = 0.0
        for begins, ends in zip(inputs[:-1:3], inputs[1:-1:3]):
            own = ends.sum(dtype=np.float64) - begins.sum(dtype=np.float64)
            total += own * (rows if begins.size == 1 else 1)
        return max(0, int(total) * 24)


def _rows(shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """Return the shape of the rows of several tensors."""
    several = {shape for shape in shapes if shape not in ((), (1,))}
    if len(several) == 1:
        return several.pop()
    joined = PartialShape.of([])
    for shape in shapes:
        joined = _joined(Site(), joined, PartialShape.of(shape))
    return joined.static or ()


def rows_of_tensor(begins: np.ndarray, ends: np.ndarray, data: np.ndarray) -> None:
    """Raise Refused (C1) for a row that is not within the data."""
    check_pieces(Site(), begins, ends, len(data), "C1", "row_", "elements")


def _joined(at: Site, shape: PartialShape, own: PartialShape) -> PartialShape:
    """Return the shape of the rows of two tensors; one of them may be a scalar or have one row."""
    if own.rank == 0 or shape.rank == 0:
        return own if shape.rank == 0 else shape
    if own.rank == 1 and own[0] == 1:
        return shape
    if shape.rank == 1 and shape[0] == 1:
        return own
    met = shape.meet(own)
    if met is None and own.rank == shape.rank == 1 and 1 in (own[0].lo, shape[0].lo):  # one of them may have one row
        return shape if own[0].lo == 1 else own
    at.require(met is not None, "C3", f"the tensors have {shape} and {own} rows")
    assert met is not None
    return PartialShape.of([Dim.unknown()]) if own.rank == 1 and not own.is_static else met


@op("RaggedToDense")
class RaggedToDense(Op):
    """Return the rows as a dense tensor with ``size`` columns, and a mask that is true where an element is of a row.

    A longer row loses its end. A shorter one is filled with ``fill``: behind it, or before it where ``pad_right`` is
    false; an input ``pad_right`` overrides the attribute.

    C1  The begins and ends have one shape, and each row lies within ``data``.
    C2  ``size`` is one number that is not negative.
    C3  ``fill`` is one number of the type of ``data``.
    C4  The input ``pad_right`` is one boolean.
    C5  ``m_pad_max_length`` is false.
    """

    pad_right = attr.bool(default=True)
    m_pad_max_length = attr.bool(default=False)
    inputs = ports(begins="i32", ends="i32", data="T", size="i32", fill="T", pad_right=opt("boolean"))
    outputs = 2
    checked = False

    def infer(
        self,
        at: Site,
        begins: Value,
        ends: Value,
        data: Value,
        size: Value,
        fill: Value,
        pad_right: Value | None = None,
    ) -> tuple[Value, ...]:
        shape = check_rows(at, begins, ends, data.shape[0] if data.rank else Dim.unknown(), "C1")
        at.require(data.rank != 0, "C1", "data is a scalar")
        count, columns = size.shape.count(), size.dims()
        at.require(count.lo <= 1 <= count.hi, "C2", f"size is {size.shape}, not one number")
        column = columns[0] if columns else Dim.unknown()
        at.require(column.hi >= 0, "C2", f"size is {column}")
        for label, name, value in (("C3", "fill", fill), ("C4", "pad_right", pad_right)):
            count = Dim(1) if value is None else value.shape.count()
            at.require(count.lo <= 1 <= count.hi, label, f"{name} is {value and value.shape}, not one value")
        at.require(not self.m_pad_max_length, "C5", "OpenVINO reads behind a row if m_pad_max_length is true")
        if shape.dims is None or data.shape.dims is None:
            unknown = PartialShape(None)
            return Value(data.type, unknown), Value(_BOOLEAN, unknown)
        mask = (*shape.dims, column.max(0))
        return Value(data.type, PartialShape.of([*mask, *data.shape.dims[1:]])), Value(_BOOLEAN, PartialShape.of(mask))

    def run(
        self,
        begins: np.ndarray,
        ends: np.ndarray,
        data: np.ndarray,
        size: np.ndarray,
        fill: np.ndarray,
        pad_right: np.ndarray | None = None,
    ) -> tuple[np.ndarray, ...]:
        rows_of_tensor(begins, ends, data)
        for label, name, array in (("C2", "size", size), ("C3", "fill", fill), ("C4", "pad_right", pad_right)):
            if array is not None and array.size != 1:
                Site().refuse(label, f"{name} has {array.size} elements, not 1")
        columns = size.item()
        Site().require(columns >= 0, "C2", f"size is {columns}")
        is_right = self.pad_right if pad_right is None else pad_right.item()
        lengths = np.minimum(ends - begins, columns)[..., None]
        column = np.arange(columns, dtype=np.int32)
        place = column if is_right else column - (columns - lengths)
        mask = np.broadcast_to((place >= 0) & (place < lengths), (*begins.shape, columns))
        dense = np.empty((*begins.shape, columns, *data.shape[1:]), data.dtype)
        dense[...] = fill.ravel()[0]
        dense[mask] = data[np.broadcast_to(begins[..., None] + place, mask.shape)[mask]]
        return dense, mask.copy()

    def working(self, *inputs: np.ndarray) -> int:
        """Return the bytes of the outputs and of the places of their elements: ``size`` may be any number."""
        begins, _, data, size = inputs[:4]
        row = math.prod(data.shape[1:]) * data.itemsize
        return begins.size * max(0, int(size.ravel()[0]) if size.size else 0) * (row + 14)


@op("FuzeRagged")
class FuzeRagged(Op):
    """Join the strings of each row: string k begins where the first of row k begins, and ends where the last one ends.

    C1  The row begins and row ends have one shape, and each row lies within the strings.
    C2  The begins and ends of the strings have one shape.
    """

    inputs = ports(row_begins="i32", row_ends="i32", begins="i32", ends="i32")
    outputs = 2
    checked = False

    def infer(self, at: Site, row_begins: Value, row_ends: Value, begins: Value, ends: Value) -> tuple[Value, ...]:
        strings = check_spans(at, begins, ends, "C2")
        rows = check_rows(at, row_begins, row_ends, strings[0] if strings.rank == 1 else Dim.unknown(), "C1")
        return Value(I32, rows), Value(I32, rows)

    def run(
        self, row_begins: np.ndarray, row_ends: np.ndarray, begins: np.ndarray, ends: np.ndarray
    ) -> tuple[np.ndarray, ...]:
        Site().require(begins.shape == ends.shape, "C2", f"begins is {begins.shape}, but ends is {ends.shape}")
        check_pieces(Site(), row_begins, row_ends, begins.size, "C1", "row_", "elements")
        starts = np.append(begins.ravel(), ends.ravel()[-1:] if ends.size else np.zeros(1, np.int32))
        firsts = starts[row_begins]
        lasts = np.append(ends.ravel(), starts[-1:])[np.maximum(row_ends - 1, 0)]
        return firsts.astype(np.int32), np.where(row_ends > row_begins, lasts, firsts).astype(np.int32)


@op("RaggedTensorPack")
class RaggedTensorPack(Op):
    """Return the data of a ragged tensor, and drop its rows.

    C1  The begins and ends have one shape.
    """

    inputs = ports(begins="i32", ends="i32", data="any")
    checked = False

    def infer(self, at: Site, begins: Value, ends: Value, data: Value) -> Value:
        check_spans(at, begins, ends, "C1")
        return data.reshaped(data.shape)

    def run(self, begins: np.ndarray, ends: np.ndarray, data: np.ndarray) -> np.ndarray:
        Site().require(begins.shape == ends.shape, "C1", f"begins is {begins.shape}, but ends is {ends.shape}")
        return data


@op("RaggedToSparse")
class RaggedToSparse(Op):
    """Return the row and the column of each element of a ragged tensor.

    C1  The begins and ends are 1D and have one shape, and no row ends before it begins.
    """

    inputs = ports(begins="i32", ends="i32")
    checked = False

    def infer(self, at: Site, begins: Value, ends: Value) -> Value:
        shape = check_rows(at, begins, ends, Dim.unknown(), "C1")
        at.require(shape.rank in (None, 1), "C1", f"begins is {shape}, not 1D")
        return Value(I32, PartialShape.of([Dim.unknown(), 2]))

    def run(self, begins: np.ndarray, ends: np.ndarray) -> np.ndarray:
        check_pieces(Site(), begins, ends, None, "C1")
        indices, offsets = gathered(begins, ends)
        lengths = np.diff(offsets)
        rows, firsts = np.repeat(np.arange(begins.size), lengths), np.repeat(begins, lengths)
        return np.stack((rows, indices - firsts), 1).astype(np.int32)

    def working(self, *inputs: np.ndarray) -> int:
        """Return the bytes of the output and of its parts: a row may have any length."""
        begins, ends = inputs
        return max(0, int(ends.sum(dtype=np.float64) - begins.sum(dtype=np.float64))) * 40


@op("RaggedToRagged")
class RaggedToRagged(Op):
    """Return the begins and ends of rows, given the row of each element.

    ``rowids`` ascend; the first one that is no row ends them. A row without elements is empty.

    C1  ``rowids`` is 1D and ascends from 0 on.
    C2  ``first_dim_size`` is one number that is not negative: the number of rows.
    """

    inputs = ports(rowids="i32", first_dim_size="i32")
    outputs = 2

    def infer(self, at: Site, rowids: Value, first_dim_size: Value) -> tuple[Value, ...]:
        at.require(rowids.rank in (None, 1), "C1", f"rowids is {rowids.shape}, not 1D")
        count, sizes = first_dim_size.shape.count(), first_dim_size.dims()
        at.require(count.lo <= 1 <= count.hi, "C2", f"first_dim_size is {first_dim_size.shape}, not one number")
        rows = sizes[0] if sizes else Dim.unknown()
        at.require(rows.hi >= 0, "C2", f"first_dim_size is {rows}")
        if rowids.exact is not None:
            _check_ascending(at, rowids.exact)
        shape = PartialShape.of([rows.max(0)])
        return Value(I32, shape), Value(I32, shape)

    def run(self, rowids: np.ndarray, first_dim_size: np.ndarray) -> tuple[np.ndarray, ...]:
        _check_ascending(Site(), rowids)
        rows = np.arange(int(first_dim_size.ravel()[0]))
        begins, ends = np.searchsorted(rowids, rows, "left"), np.searchsorted(rowids, rows, "right")
        return begins.astype(np.int32), ends.astype(np.int32)


def _check_ascending(at: Site, rowids: np.ndarray) -> None:
    bad = np.flatnonzero(np.diff(rowids, prepend=rowids[:1] * 0) < 0)
    at.require(not len(bad), "C1", f"rowids[{bad[0] if len(bad) else 0}] is less than the one before it")
