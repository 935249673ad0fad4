"""The block of a matrix product that stays in registers, as LLVM code.

numba compiles most loops well, but it does not keep a block of results in vector registers, and on this the speed of a
matrix product depends. So ``multiply_block`` emits this one loop itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, cast

from irrun.fast.machine.emitting import (
    CACHE_LINE_BYTES,
    FLOATS,
    INTS,
    at,
    called,
    equal,
    fetch,
    fetch_on,
    fused,
    int64,
    looped,
    repeated,
)  # fmt: skip
from irrun.fast.machine.late import cgutils, emitted, ir, literal, types
from irrun.fast.machine.processor import VECTOR, VECTORS, has

__all__ = [
    "FORMS",
    "HALF",
    "WIDTH",
    "Form",
    "Sums",
    "in_rows",
    "is_half",
    "multiplied",
    "multiply_block",
    "multiply_codes",
    "row_bytes",
    "unpack_block",
    "widen_block",
    "widened",
]

WIDTH: Final = VECTOR * VECTORS
"""Columns of a panel."""
HALF: Final = VECTORS // 2
"""Vectors of half a panel."""

_F32: Final = ir.FloatType()
Sums = Sequence[Sequence[ir.Value]]
"""The vectors of sums of each row of a block."""


def _products(builder: Any, elements: Sequence[ir.Value], weights: Sequence[ir.Value], sums: Sums) -> Sums:
    return [[fused(builder, a, b, c) for b, c in zip(weights, row)] for a, row in zip(elements, sums)]


@dataclass(frozen=True)
class Form:
    """How the numbers of a panel are stored, and how they become f32 in registers."""

    element: ir.Type
    bytes: int
    """Bytes of an element."""
    widen: Callable[[Any, list[ir.Value]], list[ir.Value]]
    """From the vectors of a row of a panel to those in f32."""
    share: int = 1
    """How many numbers of a row an element holds."""
    add: Callable[[Any, Sequence[ir.Value], Sequence[ir.Value], Sums], Sums] = _products
    """Adds to the sums the products of an element for each row of the other matrix, repeated in each place, and the
    vectors of weights."""

    @property
    def stored(self) -> ir.VectorType:
        return ir.VectorType(self.element, VECTOR)


def _from_bf16(builder: Any, loads: list[ir.Value]) -> list[ir.Value]:
    """bf16 is the upper half of f32."""
    wide = [builder.shl(builder.zext(load, INTS), equal(INTS, 16)) for load in loads]
    return [builder.bitcast(vector, FLOATS) for vector in wide]


def _from_nibbles(builder: Any, loads: list[ir.Value]) -> list[ir.Value]:
    """The low four bits of all bytes are the first half of the row, the high four bits the second half."""
    wide = [builder.zext(load, INTS) for load in loads]
    high = [builder.lshr(vector, equal(INTS, 4)) for vector in wide]
    if has("avx512f"):
        table, name = ir.Constant(FLOATS, [float(n) for n in range(16)]), "llvm.x86.avx512.permvar.sf.512"
        return [called(builder, name, FLOATS, table, vector) for vector in wide + high]  # by the low four bits
    low = [builder.and_(vector, equal(INTS, 15)) for vector in wide]
    return [builder.sitofp(vector, FLOATS) for vector in low + high]


def _pairs(builder: Any, elements: Sequence[ir.Value], weights: Sequence[ir.Value], sums: Sums) -> Sums:
    """Add both products of pairs of bf16: with one instruction, or one half after the other, widened to f32."""
    whole = [builder.bitcast(pairs, INTS) for pairs in elements]
    if has("avx512bf16"):
        name = f"llvm.x86.avx512bf16.dpbf16ps.{32 * VECTOR}"
        return [[called(builder, name, FLOATS, c, a, b) for b, c in zip(weights, row)] for a, row in zip(whole, sums)]
    for take, number in (builder.shl, 16), (builder.and_, 0xFFFF0000):
        a, b = (
            [builder.bitcast(take(pairs, equal(INTS, number)), FLOATS) for pairs in some] for some in (whole, weights)
        )
        sums = _products(builder, a, b, sums)
    return sums


FORMS: Final = {
    "float32": Form(_F32, 4, lambda builder, loads: loads),
    "uint16": Form(ir.HalfType(), 2, lambda builder, loads: [builder.fpext(n, FLOATS) for n in loads]),
    "int16": Form(ir.IntType(16), 2, _from_bf16),
    "int8": Form(
        ir.IntType(8), 1, lambda builder, loads: [builder.sitofp(builder.sext(n, INTS), FLOATS) for n in loads]
    ),
    "uint8": Form(ir.IntType(8), 1, _from_nibbles, share=2),
    "uint32": Form(ir.IntType(32), 4, lambda builder, loads: loads, add=_pairs),
}
"""The forms of panels: f32, f16 (uint16), bf16 (int16), i8, two unsigned numbers of four bits in a byte (uint8), and
pairs of bf16 of two rows (uint32). The keys are names of dtypes.

In the last form, four bytes of the other matrix, an f32 in other forms, are a pair, too: see ``precision.bf16``."""


def _multiply_block(
    context: Any, rows: Any, vectors: Any, weights: Any, a: Any, lda: Any, b: Any, ldb: Any, c: Any, ldc: Any,
    depth: Any, adds: Any, ahead: Any, then: Any,
) -> Any:  # fmt: skip
    """Multiply ``rows`` rows of ``a`` by panels of ``b``, and store the results in ``c`` or add them to it.

    ``rows`` and ``vectors`` are literals: the vectors of a row of results are those of one or more panels, or the first
    ones of a panel. ``a``, ``b`` and ``c`` are addresses. The rows of ``a`` and ``c`` are ``lda``
    and ``ldc`` floats apart. A panel has ``depth`` > 0 rows of ``VECTORS`` vectors, and the next panel begins ``ldb``
    bytes further. The dtype of the array ``weights``, of which nothing else matters, says how a panel is stored: see
    ``FORMS``. Meanwhile, several rows fetch into the cache ``depth`` lines of it from the address ``ahead`` on.

    ``then`` is a tuple of what the results become before they are stored, ``clamp(result + bias + residual)``: the
    addresses of the bias and of the residual, or 0; how many floats the rows of the residual are apart; and the limits.
    """
    shape = literal(rows), literal(vectors)
    form = FORMS[weights.dtype.name]

    def generate(context: Any, builder: Any, signature: Any, arguments: Sequence[ir.Value]) -> ir.Value:
        _block(builder, shape, form, *arguments[3:])
        return context.get_dummy_value()

    return types.void(rows, vectors, weights, a, lda, b, ldb, c, ldc, depth, adds, ahead, then), generate


multiply_block: Final[Callable[..., None]] = emitted(_multiply_block, prefer_literal=True)


def _block(
    builder: Any, shape: tuple[int, int], form: Form, a: ir.Value, lda: ir.Value, b: ir.Value, ldb: ir.Value,
    c: ir.Value, ldc: ir.Value, depth: ir.Value, adds: ir.Value, ahead: ir.Value, then: ir.Value,
) -> None:  # fmt: skip
    bias, residual, apart, low, high = cgutils.unpack_tuple(builder, then, 5)
    results = multiplied(builder, shape, form, a, lda, b, ldb, depth, ahead)
    for condition, begin, step in (
        (builder.trunc(adds, ir.IntType(1)), c, ldc),
        (builder.icmp_signed("!=", bias, int64(0)), bias, int64(0)),
        (builder.icmp_signed("!=", residual, int64(0)), residual, apart),
    ):
        results = _changed_if(builder, condition, results, partial(_plus, builder, begin, step))
    bounds = repeated(builder, low), repeated(builder, high)
    is_bound = builder.or_(
        builder.fcmp_ordered(">", low, ir.Constant(_F32, -math.inf)),
        builder.fcmp_ordered("<", high, ir.Constant(_F32, math.inf)),
    )
    results = _changed_if(builder, is_bound, results, partial(_clamped, builder, *bounds))
    for row, values in enumerate(results):
        for value, place in zip(values, _places(builder, c, ldc, row, len(values))):
            builder.store(value, place, align=4)


def _changed_if(builder: Any, condition: ir.Value, results: Sums, change: Callable[[Sums], Sums]) -> Sums:
    """Return what ``change`` makes of results if the condition holds at run time, else the results."""
    before = builder.block
    with builder.if_then(condition):
        changed, inside = change(results), builder.block
    chosen = [[builder.phi(FLOATS) for _ in values] for values in results]
    for phis, values, others in zip(chosen, results, changed):
        for phi, value, other in zip(phis, values, others):
            phi.add_incoming(value, before)
            phi.add_incoming(other, inside)
    return chosen


def _plus(builder: Any, begin: ir.Value, step: ir.Value, results: Sums) -> Sums:
    """Return results plus the rows of f32 from an address on, which are ``step`` floats apart."""
    rows = [_places(builder, begin, step, row, len(values)) for row, values in enumerate(results)]
    return [
        [builder.fadd(value, builder.load(place, align=4)) for value, place in zip(values, places)]
        for values, places in zip(results, rows)
    ]


def _clamped(builder: Any, low: ir.Value, high: ir.Value, results: Sums) -> Sums:
    """Return results between two limits. NaN stays."""

    def clamped(value: ir.Value) -> ir.Value:
        least = builder.select(builder.fcmp_ordered("<", value, low), low, value)
        return builder.select(builder.fcmp_ordered(">", least, high), high, least)

    return [[clamped(value) for value in values] for values in results]


def _places(builder: Any, begin: ir.Value, step: ir.Value, row: int, count: int) -> list[ir.Value]:
    """Return pointers to the vectors of a row."""
    line = builder.add(begin, builder.mul(step, int64(4 * row)))
    return [at(builder, line, int64(4 * VECTOR * n), FLOATS) for n in range(count)]


def multiplied(
    builder: Any,
    shape: tuple[int, int],
    form: Form,
    a: ir.Value,
    lda: ir.Value,
    b: ir.Value,
    ldb: ir.Value,
    depth: ir.Value,
    ahead: ir.Value | None = None,
) -> Sums:
    """Multiply rows by panels, and return the vectors of the results of each row: see ``_multiply_block``."""
    rows, count = shape
    begins = [at(builder, a, builder.mul(lda, int64(4 * row)), _F32) for row in range(rows)]

    def step(k: ir.Value, values: Sequence[ir.Value]) -> list[ir.Value]:
        address, *sums = values
        places = [builder.add(address, builder.mul(ldb, int64(panel))) for panel in range(-(-count // VECTORS))]
        if rows > 1 and ahead is not None:
            fetch(builder, builder.add(ahead, builder.mul(k, int64(CACHE_LINE_BYTES))))
        elif rows == 1:  # a single row waits for memory alone
            fetch_on(builder, places, row_bytes(form))
        vectors = [vector for place in places for vector in widened(builder, form, place)]
        elements = [repeated(builder, builder.load(builder.gep(begin, [k]), align=4)) for begin in begins]
        added = form.add(builder, elements, vectors, in_rows(sums, count))
        return [builder.add(address, int64(row_bytes(form))), *(value for row in added for value in row)]

    _, *sums = looped(builder, depth, 1, [b, *[equal(FLOATS, 0.0)] * (rows * count)], step)
    return in_rows(sums, count)


def in_rows(values: Sequence[ir.Value], count: int) -> Sums:
    """Return values in rows of so many."""
    return [values[n : n + count] for n in range(0, len(values), count)]


def row_bytes(form: Form) -> int:
    """Return the bytes of a row of a panel."""
    return VECTORS // form.share * VECTOR * form.bytes


def _multiply_codes(
    context: Any, rows: Any, panels: Any, weights: Any, zeros: Any, a: Any, lda: Any, b: Any, ldb: Any, sums: Any,
    shifts: Any, scales: Any, c: Any, ldc: Any, groups: Any, size: Any,
) -> Any:  # fmt: skip
    """Multiply ``rows`` rows of ``a`` by ``panels`` panels of codes, and store the results in ``c``.

    ``rows`` and ``panels`` are literal. A panel has ``groups`` groups of ``size`` > 0 rows. ``sums`` is the address of
    the sums of ``a`` over each group, f32 [rows, groups]. ``shifts`` and ``scales`` are the addresses of the zeros and
    scales of the first panel [panels, groups, columns], in f32 or, if the array ``zeros`` is i8, zeros in i8. See
    ``multiply_block`` for the other parameters.
    """
    shape, form = (literal(rows), literal(panels)), FORMS[weights.dtype.name]
    zero_form = FORMS[zeros.dtype.name]

    def generate(context: Any, builder: Any, signature: Any, arguments: Sequence[ir.Value]) -> ir.Value:
        _codes(builder, shape, form, zero_form, *arguments[4:])
        return context.get_dummy_value()

    given = rows, panels, weights, zeros, a, lda, b, ldb, sums, shifts, scales, c, ldc, groups, size
    return types.void(*given), generate


multiply_codes: Final[Callable[..., None]] = emitted(_multiply_codes, prefer_literal=True)


def _codes(
    builder: Any, shape: tuple[int, int], form: Form, zero_form: Form, a: ir.Value, lda: ir.Value, b: ir.Value,
    ldb: ir.Value, sums: ir.Value, shifts: ir.Value, scales: ir.Value, c: ir.Value, ldc: ir.Value, groups: ir.Value,
    size: ir.Value,
) -> None:  # fmt: skip
    rows, panels = shape
    with cgutils.for_range(builder, groups) as loop:
        group = loop.index
        begin = builder.add(a, builder.mul(builder.mul(group, size), int64(4)))
        codes = builder.add(b, builder.mul(builder.mul(group, size), int64(row_bytes(form))))
        raw = multiplied(builder, (rows, panels * VECTORS), form, begin, lda, codes, ldb, size)
        first = builder.icmp_signed("==", group, int64(0))
        for panel in range(panels):
            place = builder.add(group, builder.mul(groups, int64(panel)))
            zeros = widened(builder, zero_form, builder.add(shifts, builder.mul(place, int64(row_bytes(zero_form)))))
            factors = widened(builder, FORMS["float32"], builder.add(scales, builder.mul(place, int64(4 * WIDTH))))
            for row in range(rows):
                number = builder.add(group, builder.mul(groups, int64(row)))
                sum = repeated(builder, builder.load(at(builder, sums, builder.mul(number, int64(4)), _F32), align=4))
                line = builder.add(c, builder.mul(ldc, int64(4 * row)))
                for n, (zero, factor) in enumerate(zip(zeros, factors)):
                    part = builder.fsub(raw[row][panel * VECTORS + n], builder.fmul(sum, zero))
                    target = at(builder, line, int64(4 * VECTOR * (panel * VECTORS + n)), FLOATS)
                    before = builder.select(first, equal(FLOATS, 0.0), builder.load(target, align=4))
                    builder.store(builder.fadd(before, builder.fmul(part, factor)), target, align=4)


def _unpack_block(
    context: Any,
    weights: Any,
    b: Any,
    zeros: Any,
    scales: Any,
    c: Any,
    depth: Any,
) -> Any:
    """Store ``(codes - zeros) * scales`` in ``c``, a panel of ``depth`` > 0 rows of f32.

    All but ``depth`` are addresses: ``b`` of a panel as in ``multiply_block``, ``zeros`` and ``scales`` of one row of
    f32. numba's own loop is slower: before each row, it checks whether the arrays overlap.
    """
    form = FORMS[weights.dtype.name]

    def generate(context: Any, builder: Any, signature: Any, arguments: Sequence[ir.Value]) -> ir.Value:
        _unpack(builder, form, *arguments[1:])
        return context.get_dummy_value()

    return types.void(weights, b, zeros, scales, c, depth), generate


unpack_block: Final[Callable[..., None]] = emitted(_unpack_block)


def _unpack(
    builder: Any, form: Form, b: ir.Value, zeros: ir.Value, scales: ir.Value, c: ir.Value, depth: ir.Value
) -> None:
    places = [int64(4 * VECTOR * n) for n in range(VECTORS)]
    shifts = [builder.load(at(builder, zeros, place, FLOATS), align=4) for place in places]
    factors = [builder.load(at(builder, scales, place, FLOATS), align=4) for place in places]
    step = int64(row_bytes(form))
    with cgutils.for_range(builder, depth) as loop:
        vectors = widened(builder, form, builder.add(b, builder.mul(loop.index, step)))
        row = builder.add(c, builder.mul(loop.index, int64(4 * VECTOR * VECTORS)))
        for place, vector, shift, factor in zip(places, vectors, shifts, factors):
            number = builder.fmul(builder.fsub(vector, shift), factor)
            builder.store(number, at(builder, row, place, FLOATS), align=4)


_HALF_BYTES: Final = 2


def _widen_block(context: Any, weights: Any, b: Any, c: Any, depth: Any) -> Any:
    """Store the ``depth`` rows of a panel at the address ``b`` as f32 at ``c``. See ``multiply_block``.

    The panel is one of ``is_half``.
    """
    form = FORMS[weights.dtype.name]

    def generate(context: Any, builder: Any, signature: Any, arguments: Sequence[ir.Value]) -> ir.Value:
        _, b, c, depth = arguments
        if form.bytes != _HALF_BYTES:  # nobody calls this
            return context.get_dummy_value()
        with cgutils.for_range(builder, depth) as loop:
            vectors = widened(builder, form, builder.add(b, builder.mul(loop.index, int64(row_bytes(form)))))
            row = builder.add(c, builder.mul(loop.index, int64(4 * WIDTH)))
            for n, vector in enumerate(vectors):
                builder.store(vector, at(builder, row, int64(4 * VECTOR * n), FLOATS), align=4)
        return context.get_dummy_value()

    return types.void(weights, b, c, depth), generate


widen_block: Final[Callable[..., None]] = emitted(_widen_block)


def _is_half(context: Any, weights: Any) -> Any:
    """Return whether panels are of f16 or bf16, which the compiler knows."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Sequence[ir.Value]) -> ir.Value:
        return ir.Constant(ir.IntType(1), int(FORMS[weights.dtype.name].bytes == _HALF_BYTES))

    return types.boolean(weights), generate


is_half: Final = cast(Callable[[Any], bool], emitted(_is_half))


def widened(builder: Any, form: Form, address: ir.Value) -> list[ir.Value]:
    """Return the vectors, in f32, of the row of a panel at an address."""
    step = VECTOR * form.bytes
    places = (at(builder, address, int64(n * step), form.stored) for n in range(VECTORS // form.share))
    return form.widen(builder, [builder.load(place, align=form.bytes) for place in places])
