"""The block of a product of rows of i8 with panels of integer codes, as LLVM code."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from irrun.fast.block import FORMS, WIDTH, Form, Sums, in_rows
from irrun.fast.integers.dots import BYTES, DOT
from irrun.fast.machine.emitting import FLOATS, INTS, at, equal, fetch_on, fused, int64, looped, repeated
from irrun.fast.machine.late import cgutils, emitted, ir, literal, types
from irrun.fast.machine.processor import VECTOR, VECTORS

__all__ = ["multiply_quantized"]

_F32: Final = ir.FloatType()
_I32: Final = ir.IntType(32)


def _multiply_quantized(
    context: Any, rows: Any, panels: Any, weights: Any, zeros: Any, a: Any, lda: Any, units: Any, sums: Any, b: Any,
    ldb: Any, shifts: Any, scales: Any, c: Any, ldc: Any, groups: Any, parts: Any, size: Any,
) -> Any:  # fmt: skip
    """Multiply ``rows`` rows of i8 by ``panels`` panels of codes, and store the results in ``c``, in f32.

    ``rows`` and ``panels`` are literal. A panel has ``groups`` groups of ``parts`` times ``size`` > 0 rows. A group has
    its zeros and scales, and a part of it a unit for each row of ``a``: f32 [rows, groups * parts] at the address
    ``units``. ``sums`` is that of the sums of what the numbers of a row stand for, f32 [rows, groups]. The rows of
    ``a`` are ``lda`` bytes apart, and ``size`` is a multiple of the codes of a word: see ``i8.QuantizedCodes``. The
    dtype of ``weights`` says how many bits codes have. ``multiply_codes`` has the other parameters.
    """
    shape = literal(rows), literal(panels)
    is_packed, zero_form = weights.dtype.name == "uint8", FORMS[zeros.dtype.name]

    vectors = range(shape[1] * VECTORS)
    each = _HALF if shape[0] > _FEW and VECTORS == 2 * _HALF else len(vectors)

    def generate(context: Any, builder: Any, signature: Any, arguments: Sequence[ir.Value]) -> ir.Value:
        for first in vectors[::each]:
            _quantized(builder, shape[0], vectors[first : first + each], is_packed, zero_form, *arguments[4:])
        return context.get_dummy_value()

    given = rows, panels, weights, zeros, a, lda, units, sums, b, ldb, shifts, scales, c, ldc, groups, parts, size
    return types.void(*given), generate


multiply_quantized: Final[Callable[..., None]] = emitted(_multiply_quantized, prefer_literal=True)


_FEW: Final = 3
"""Rows whose vectors of a panel are computed at once, where there are 32 registers: they have 12 sums of a part."""
_HALF: Final = 2
"""Vectors that are computed at a time, where there are 32 registers: 6 rows have 12 sums of a part and 12 of all."""


def _quantized(
    builder: Any, rows: int, vectors: range, is_packed: bool, zero_form: Form, a: ir.Value, lda: ir.Value,
    units: ir.Value, sums: ir.Value, b: ir.Value, ldb: ir.Value, shifts: ir.Value, scales: ir.Value, c: ir.Value,
    ldc: ir.Value, groups: ir.Value, parts: ir.Value, size: ir.Value,
) -> None:  # fmt: skip
    """Multiply the rows by some vectors of the columns of the panels."""
    code_bytes = WIDTH // 2 if is_packed else WIDTH
    nothing = equal(FLOATS, 0.0)
    with cgutils.for_range(builder, groups) as loop:
        group = loop.index
        is_first = builder.icmp_signed("==", group, int64(0))
        totals = [[cgutils.alloca_once_value(builder, nothing) for _ in vectors] for _ in range(rows)]
        for total in (total for row in totals for total in row):
            builder.store(nothing, total)
        with cgutils.for_range(builder, parts) as inner:
            part = builder.add(builder.mul(group, parts), inner.index)
            begin = builder.mul(part, size)
            codes = builder.add(b, builder.mul(begin, int64(code_bytes)))
            found = _dots(builder, rows, vectors, is_packed, builder.add(a, begin), lda, codes, ldb, size)
            every = builder.mul(groups, parts)
            for row in range(rows):
                unit = _of_row(builder, units, part, every, row)
                for dots, total in zip(found[row], totals[row]):
                    value = fused(builder, builder.sitofp(dots, FLOATS), unit, builder.load(total))
                    builder.store(value, total)
        for n, vector in enumerate(vectors):
            panel, own = divmod(vector, VECTORS)
            place = builder.add(group, builder.mul(groups, int64(panel)))
            zero = _of_columns(builder, zero_form, shifts, place, own)
            factor = _of_columns(builder, FORMS["float32"], scales, place, own)
            for row in range(rows):
                sum = builder.fneg(_of_row(builder, sums, group, groups, row))
                value = fused(builder, sum, zero, builder.load(totals[row][n]))
                line = builder.add(c, builder.mul(ldc, int64(4 * row)))
                target = at(builder, line, int64(4 * VECTOR * vector), FLOATS)
                before = builder.select(is_first, nothing, builder.load(target, align=4))
                builder.store(fused(builder, value, factor, before), target, align=4)


def _of_row(builder: Any, numbers: ir.Value, column: ir.Value, columns: ir.Value, row: int) -> ir.Value:
    """Return a vector with the number of a row and a column of f32, which are at an address, in each place."""
    place = builder.add(column, builder.mul(columns, int64(row)))
    return repeated(builder, builder.load(at(builder, numbers, builder.mul(place, int64(4)), _F32), align=4))


def _of_columns(builder: Any, form: Form, numbers: ir.Value, row: ir.Value, vector: int) -> ir.Value:
    """Return a vector, in f32, of a row of ``VECTORS`` vectors that begin at an address."""
    step = VECTOR * form.bytes
    begin = builder.add(numbers, builder.mul(row, int64(VECTORS * step)))
    place = at(builder, begin, int64(vector * step), form.stored)
    return form.widen(builder, [builder.load(place, align=form.bytes)])[0]


def _dots(
    builder: Any, rows: int, vectors: range, is_packed: bool, a: ir.Value, lda: ir.Value, b: ir.Value, ldb: ir.Value,
    size: ir.Value,
) -> Sums:  # fmt: skip
    """Return the sums of the products of ``size`` numbers of each row with the codes of each column."""
    assert DOT is not None
    dot, count = DOT, len(vectors)
    begins = [builder.add(a, builder.mul(lda, int64(row))) for row in range(rows)]

    def step(k: ir.Value, values: Sequence[ir.Value]) -> list[ir.Value]:
        address, sums = values[0], in_rows(values[1:], count)
        panels = {vector // VECTORS for vector in vectors}
        places = {panel: builder.add(address, builder.mul(ldb, int64(panel))) for panel in sorted(panels)}
        loads = [
            builder.load(at(builder, places[vector // VECTORS], int64(4 * VECTOR * (vector % VECTORS)), INTS), align=1)
            for vector in vectors
        ]
        if rows <= _FEW:
            fetch_on(builder, [*places.values()], BYTES * WIDTH)
        for half, weights in enumerate(_halves(builder, loads) if is_packed else [loads]):
            offset = builder.add(k, int64(BYTES * half))
            words = [builder.load(at(builder, begin, offset, _I32), align=1) for begin in begins]
            sums = dot.add(builder, dot, sums, words, weights, signed_words=True)
        return [builder.add(address, int64(BYTES * WIDTH)), *(value for row in sums for value in row)]

    by = 2 * BYTES if is_packed else BYTES
    _, *sums = looped(builder, size, by, [b, *[equal(INTS, 0)] * (rows * count)], step)
    return in_rows(sums, count)


def _halves(builder: Any, loads: Sequence[ir.Value]) -> list[list[ir.Value]]:
    """Return the vectors of the low four bits of all bytes, and those of the high four bits."""
    shifted = [builder.lshr(load, equal(INTS, 4)) for load in loads]
    return [[builder.and_(vector, equal(INTS, 0x0F0F0F0F)) for vector in vectors] for vectors in (loads, shifted)]
