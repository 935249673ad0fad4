"""Copies as calls of machine code: rows, runs of elements, and transposed matrices."""

from __future__ import annotations

import math
from typing import Any, Final, Protocol, cast

import numpy as np

from irrun.fast.attention.weights import as_columns
from irrun.fast.block import WIDTH, widen_block
from irrun.fast.machine.calls import in_calls
from irrun.fast.machine.memory import address_of, data_address, row_at
from irrun.fast.machine.processor import HALVES, VECTOR, compiled
from irrun.fast.precision.tiles import copy_words
from irrun.kernels.copies import Runs, moving
from irrun.opdef import Call, Calls, Kernel, Op, Packing, Request

__all__ = ["copied_in_calls", "copying", "offer", "reads_turned", "turned_in_calls", "turning"]

_WORD_BYTES: Final = 4
_MAX_ELEMENTS: Final = 1 << 22
"""The most elements of an image that a table moves. f32 counts their places; a larger table would take much memory."""


class _Concat(Protocol):
    axis: int


class _Interpolate(Protocol):
    mode: str

    def prepare(self, request: Request, /) -> Kernel | None: ...


def offer(op: Op, request: Request) -> Kernel | None:
    """Return the kernel of Concat, of Interpolate to the nearest element, or of Gather of rows that stay in 16 bits.

    Shapes are static. None for others.
    """
    if op.type == "Concat":
        return _concat(cast(_Concat, op), request)
    return _gather(op, request) if op.type == "Gather" else _interpolate(cast(_Interpolate, op), request)


def copied_in_calls(kernel: Kernel, dtype: np.dtype) -> Kernel:
    """Return a kernel of calls for one that copies runs of a dtype, and others as they are."""
    runs = kernel.call
    if not isinstance(runs, Runs) or dtype.hasobject or runs.run * dtype.itemsize % _WORD_BYTES:
        return kernel
    table, words = runs.table, runs.run * dtype.itemsize // _WORD_BYTES

    def calls(data: np.ndarray, *_: Any, out: np.ndarray, spare: np.ndarray) -> Calls:
        return [Call(_copy_runs, (_bytes(data), table, words, _bytes(out)), len(table))]

    return in_calls(kernel.algorithm, calls, runs.shape, dtype, table.size * words)


def copying(source: np.ndarray, target: np.ndarray) -> Call:
    """Return the call that fills a matrix of f32 with another one. Both are contiguous."""
    words = source.shape[-1]
    return Call(_copy_rows, (_bytes(source), words, _bytes(target), 0, words), source.size // words)


def turned_in_calls(kernel: Kernel, shape: tuple[int, ...], dtype: np.dtype, first: bool) -> Kernel:
    """Return a kernel of calls for one that lays the channels of images last, or ``first``; ``shape`` is the result's.

    Elements of other than four bytes stay with the kernel.
    """
    batch, sizes = shape[0], (shape[1:2], shape[2:]) if first else (shape[1:3], shape[3:])
    rows, columns = map(math.prod, sizes)
    if dtype.itemsize != _WORD_BYTES or dtype.hasobject:
        return kernel

    def calls(data: np.ndarray, *, out: np.ndarray, spare: np.ndarray) -> Calls:
        source, target = np.ascontiguousarray(data).view(np.float32), out.view(np.float32)
        return turning(source.reshape(batch, columns, rows), target.reshape(batch, rows, columns))

    return in_calls(kernel.algorithm, calls, shape, dtype, batch * rows * columns)


def reads_turned(number: int, array: np.ndarray) -> bool:
    """Return whether an array with such strides, at the first input of a kernel, is a transposed contiguous one."""
    return number == 0 and array.swapaxes(-1, -2).flags.c_contiguous


def turning(source: np.ndarray, target: np.ndarray) -> Calls:
    """Return the calls that fill matrices of f32 with the transposed matrices ``source``. Rows are contiguous."""
    rows, step, apart = source.shape[-2], source.strides[-2], target.strides[-2]
    pairs = zip(source.reshape(-1, *source.shape[-2:]), target.reshape(-1, *target.shape[-2:]))
    return [
        Call(_turn_columns, (data_address(one), step, rows, data_address(other), apart), source.shape[-1], VECTOR)
        for one, other in pairs
    ]


def _concat(op: _Concat, request: Request) -> Kernel | None:
    shapes = [None if value is None else value.shape.static for value in request.inputs]
    types = {None if value is None else value.type for value in request.inputs}
    (type,) = types if len(types) == 1 else (None,)
    if type is None or not type.bits or not all(shapes):
        return None
    known = [list(shape or ()) for shape in shapes]
    axis, itemsize = op.axis % len(known[0]), type.dtype.itemsize
    whole = [*known[0][:axis], sum(shape[axis] for shape in known), *known[0][axis + 1 :]]
    rows, sizes = math.prod(whole[:axis]), [math.prod(shape[axis:]) * itemsize for shape in known]
    if not math.prod(whole) or any(size % _WORD_BYTES for size in sizes):
        return None
    words = [size // _WORD_BYTES for size in sizes]

    def calls(*arrays: np.ndarray, out: np.ndarray, spare: np.ndarray) -> Calls:
        begins = [sum(words[:n]) for n in range(len(words))]
        return [
            Call(_copy_rows, (_bytes(array), count, _bytes(out), begin, sum(words)), rows)
            for array, count, begin in zip(arrays, words, begins)
        ]

    return in_calls("compiled", calls, tuple(whole), type.dtype, rows * sum(words))


def _gather(op: Op, request: Request) -> Kernel | None:
    data, indices, axis = request.inputs
    stored, shape = None if data is None else data.stored, None if indices is None else indices.shape.static
    place = None if axis is None else axis.scalar()
    if stored is None or stored.scales is not None or stored.zeros is not None or indices is None or not shape:
        return None
    dtype = {"f16": np.uint16 if HALVES else None, "bf16": np.int16}.get(stored.type.name)
    columns = stored.shape[1]
    if dtype is None or columns % WIDTH or not math.prod(shape) or indices.type.name not in ("i32", "i64"):
        return None
    if place not in (0, -2) or getattr(op, "batch_dims", 0):
        return None
    table = stored.codes.view(dtype)

    def calls(_: None, indices: np.ndarray, axis: Any = None, *, out: np.ndarray, spare: np.ndarray) -> Calls:
        return [Call(_take_rows, (table, indices.reshape(-1), out.reshape(-1, columns)), indices.size)]

    work = math.prod(shape) * columns
    return in_calls("as stored", calls, (*shape, columns), np.float32, work, packing=Packing((0,)))


def _interpolate(op: _Interpolate, request: Request) -> Kernel | None:
    image = request.inputs[0]
    kernel = op.prepare(request) if op.mode == "nearest" and image is not None and image.type.name == "f32" else None
    if image is None or kernel is None:
        return None
    shape = (image.channels_last() if request.channels_last else image).shape.static or ()
    count = math.prod(shape)
    if count > _MAX_ELEMENTS:
        return None
    places = kernel.call(np.arange(count, dtype=np.float32).reshape(shape))
    copies = moving(places, count, np.dtype(np.float32).itemsize) if places.size <= _MAX_ELEMENTS else None
    return None if copies is None else copied_in_calls(copies, np.dtype(np.float32))


def _bytes(array: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


@compiled
def _copy_runs(source: np.ndarray, table: np.ndarray, words: int, target: np.ndarray, first: int, last: int) -> None:
    """Copy the runs from ``first`` to ``last``, of so many words of four bytes. ``table`` says where they are."""
    for n in range(first, last):
        copy_words(address_of(source) + 4 * words * table[n], address_of(target) + 4 * words * n, words)


@compiled
def _take_rows(table: np.ndarray, indices: np.ndarray, out: np.ndarray, first: int, last: int) -> None:
    """Fill the rows from ``first`` to ``last`` with rows of a table of 16 bits, or zeros where it has none.

    Negative indices count from the end. See ``block.FORMS`` for the dtype of the table.
    """
    rows, columns = table.shape
    for n in range(first, last):
        at = indices[n] + rows if indices[n] < 0 else indices[n]
        target = address_of(out) + 4 * columns * n
        if 0 <= at < rows:
            widen_block(table, address_of(table) + 2 * columns * at, target, columns // WIDTH)
        else:
            row = row_at(target, columns)
            for j in range(columns):
                row[j] = 0


@compiled
def _turn_columns(source: int, step: int, rows: int, target: int, apart: int, first: int, last: int) -> None:
    """Copy the columns ``first`` to ``last`` of ``source`` to rows of ``target``.

    Both are addresses of matrices, whose rows are ``step`` and ``apart`` bytes apart.
    """
    for left in range(first, last, VECTOR):
        right, top = min(left + VECTOR, last), 0
        if right - left == VECTOR:
            for i in range(0, rows // VECTOR * VECTOR, VECTOR):
                as_columns(source + i * step + 4 * left, step, target + left * apart + 4 * i, apart)
            top = rows // VECTOR * VECTOR
        for j in range(left, right):
            filled = row_at(target + j * apart, rows)
            for i in range(top, rows):
                filled[i] = row_at(source + i * step + 4 * j, 1)[0]


@compiled
def _copy_rows(
    source: np.ndarray, words: int, target: np.ndarray, begin: int, apart: int, first: int, last: int
) -> None:
    """Copy the rows from ``first`` to ``last``, of so many words, to rows which are ``apart`` words apart.

    They begin at the word ``begin`` of these.
    """
    for n in range(first, last):
        copy_words(address_of(source) + 4 * words * n, address_of(target) + 4 * (apart * n + begin), words)
