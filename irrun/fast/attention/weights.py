"""What attention does between its products, as LLVM code: keys as columns, and weights from scores."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial, reduce
from typing import Any, Final

from irrun.fast.block import FORMS, multiplied
from irrun.fast.machine.emitting import (
    CACHE_LINE_BYTES,
    FLOATS,
    INTS,
    at,
    called,
    equal,
    fetch,
    fused,
    int64,
    load_lanes,
    looped,
    mask_of,
    repeated,
)  # fmt: skip
from irrun.fast.machine.late import cgutils, emitted, ir, literal, types
from irrun.fast.machine.processor import VECTOR, VECTORS, has
from irrun.fast.precision.pairs import GROUP, neighbours

__all__ = ["TOGETHER", "as_columns", "fetch_row", "weigh_block", "weigh_rows"]

_F32: Final = ir.FloatType()
_I32: Final = ir.IntType(32)


def _as_columns(context: Any, source: Any, step: Any, target: Any, apart: Any) -> Any:
    """Store the ``VECTOR`` columns of so many rows as rows.

    ``source`` and ``target`` are addresses of words of 32 bits. The rows are ``step`` and ``apart`` bytes apart.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Sequence[ir.Value]) -> ir.Value:
        source, step, target, apart = arguments
        rows = [builder.load(at(builder, source, builder.mul(step, int64(n)), INTS), align=4) for n in range(VECTOR)]
        half = VECTOR // 2
        low, high = (
            ir.Constant(INTS, [n for i in range(begin, begin + half) for n in (i, i + VECTOR)]) for begin in (0, half)
        )
        for _ in range(VECTOR.bit_length() - 1):  # each time, another bit of the number of a row changes places
            pairs = [(rows[n], rows[n + half]) for n in range(half)]
            rows = [builder.shuffle_vector(*pair, order) for pair in pairs for order in (low, high)]
        for n, row in enumerate(rows):
            builder.store(row, at(builder, target, builder.mul(apart, int64(n)), INTS), align=4)
        return context.get_dummy_value()

    return types.void(source, step, target, apart), generate


as_columns: Final[Callable[..., None]] = emitted(_as_columns)


def _fetch_row(context: Any, address: Any, size: Any) -> Any:
    """Fetch ``size`` bytes from an address on into the second-level cache."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Sequence[ir.Value]) -> ir.Value:
        address, size = arguments
        with cgutils.for_range_slice(builder, int64(0), size, int64(CACHE_LINE_BYTES)) as (offset, _):
            fetch(builder, builder.add(address, offset))
        return context.get_dummy_value()

    return types.void(address, size), generate


fetch_row: Final[Callable[..., None]] = emitted(_fetch_row)


def _across(builder: Any, operation: str, vector: ir.Value, first: float | None, flag: str) -> ir.Value:
    """Return the sum (``fadd``) or the maximum (``fmax``) of the numbers of a vector."""
    given = [] if first is None else [ir.Constant(_F32, first)]
    name = f"llvm.vector.reduce.{operation}.v{VECTOR}f32"
    return called(builder, name, _F32, *given, vector, fastmath=(flag,))


_LEAST: Final = -126.0
"""The least power of two that is a normal number. Others take the processor a hundred times as long."""
_PER_E: Final = 1.4426950216293335
_ROUNDING: Final = float((3 << 22) + 127)
"""A number of this size holds an integer, and 127 more, in the lowest bits of its mantissa."""
_POWERS: Final = (
    0.001326472731307149,
    0.009671512991189957,
    0.05550733581185341,
    0.24022242426872253,
    0.6931469440460205,
    1.0,
)
"""2**f for |f| <= 1/2 as a polynomial, within 2e-7: the coefficients from the highest power on."""
_IN_PARTS: Final = has("avx512dq")
"""Whether an instruction takes the whole part off a number, and another one multiplies by two to the power of it."""


def _powers_of_two(builder: Any, numbers: Sequence[ir.Value]) -> list[ir.Value]:
    """Return 2 to the power of vectors of numbers <= 0, or 0 for results that are no normal numbers.

    Each stage is computed for all vectors, because the processor looks for work only among so many instructions.
    """
    if _IN_PARTS:
        rests = [_on_lanes(builder, "reduce", x, ir.Constant(_I32, _TO_NEAREST)) for x in numbers]
        wholes = [builder.fsub(*pair) for pair in zip(numbers, rests)]
    else:
        lowest = equal(FLOATS, _LEAST - 1)  # its exponent is 0, and so is the number
        numbers = [builder.select(builder.fcmp_ordered("<", x, lowest), lowest, x) for x in numbers]
        wholes = [builder.fadd(x, equal(FLOATS, _ROUNDING)) for x in numbers]  # with 127 more
        rests = [builder.fsub(x, builder.fsub(whole, equal(FLOATS, _ROUNDING))) for x, whole in zip(numbers, wholes)]
    powers: list[ir.Value] = [equal(FLOATS, _POWERS[0])] * len(rests)
    for coefficient in _POWERS[1:]:
        powers = [fused(builder, power, rest, equal(FLOATS, coefficient)) for power, rest in zip(powers, rests)]
    if _IN_PARTS:
        shown = [builder.fcmp_unordered(">=", whole, equal(FLOATS, _LEAST)) for whole in wholes]  # NaN stays
        return [_on_lanes(builder, "scalef", *three[:2], mask=three[2]) for three in zip(powers, wholes, shown)]
    exponents = [builder.shl(builder.bitcast(whole, INTS), equal(INTS, 23)) for whole in wholes]
    return [builder.fmul(power, builder.bitcast(exponent, FLOATS)) for power, exponent in zip(powers, exponents)]


_TO_NEAREST: Final = 8
"""Has ``reduce`` find what a number differs from the next whole one."""


def _on_lanes(builder: Any, name: str, *arguments: ir.Value, mask: ir.Value | None = None) -> ir.Value:
    """Return what an instruction of AVX-512 gives for the lanes in a mask, rounded to the nearest number, else 0."""
    lanes = ir.IntType(VECTOR)
    shown = ir.Constant(lanes, -1) if mask is None else builder.bitcast(mask, lanes)
    name = f"llvm.x86.avx512.mask.{name}.ps.{32 * VECTOR}"
    return called(builder, name, FLOATS, *arguments, equal(FLOATS, 0.0), shown, ir.Constant(_I32, 4))


TOGETHER: Final = VECTORS
"""The rows of scores that become weights at once. One row alone leaves the processor waiting: each number needs twelve
instructions in turn."""


def _weigh_rows(
    context: Any, rows: Any, form: Any, row: Any, apart: Any, mask: Any, step: Any, scale: Any, groups: Any,
    factors: Any,
) -> Any:  # fmt: skip
    """Replace ``groups`` groups of scores of each row by weights, and store one divided by their sum.

    The weights are the exponentials of what ``score * scale + mask`` is less than the largest one of the row. ``rows``
    is a literal. ``row``, ``mask`` and ``factors`` are addresses of f32: the rows are ``apart`` bytes apart, those of
    the mask ``step``. Only the dtype of ``form`` matters: with pairs, the weights are rounded to bf16, so is what is
    summed up, and pairs take the first half of a row.
    """
    count, is_paired = literal(rows), form.dtype.name == "uint32"

    def generate(context: Any, builder: Any, signature: Any, arguments: Sequence[ir.Value]) -> ir.Value:
        row, apart, mask, step, scale, groups, factors = arguments[2:]
        factor = repeated(builder, scale)
        begins, masks = (
            [builder.add(begin, builder.mul(by, int64(n))) for n in range(count)]
            for begin, by in ((row, apart), (mask, step))
        )

        def scaled(index: ir.Value) -> list[ir.Value]:
            offset, found = builder.mul(index, int64(4 * GROUP)), []
            for addresses in zip(begins, masks):
                for n in (0, VECTOR):
                    score, added = (
                        builder.load(at(builder, address, builder.add(offset, int64(4 * n)), FLOATS), align=4)
                        for address in addresses
                    )
                    found.append(fused(builder, score, factor, added))
            return found

        def larger(index: ir.Value, most: Sequence[ir.Value]) -> list[ir.Value]:
            return [_larger(builder, score, before) for score, before in zip(scaled(index), most)]

        def weighed(index: ir.Value, totals: Sequence[ir.Value]) -> list[ir.Value]:
            # to compute a score twice takes less time than to store it
            weights: list[Any] = _exponentials(builder, scaled(index), [most for most in greatest for _ in range(2)])
            if is_paired:
                weights = [neighbours(builder, *weights[n : n + 2]) for n in range(0, len(weights), 2)]
            each = len(weights) // count
            for n, weight in enumerate(weights):
                begin = builder.add(begins[n // each], builder.mul(index, int64(4 * VECTOR * each)))
                builder.store(weight, at(builder, begin, int64(4 * VECTOR * (n % each)), weight.type), align=4)
            if is_paired:
                return [_plus_pairs(builder, *pair) for pair in zip(totals, weights)]
            return [builder.fadd(*pair) for pair in zip(totals, weights)]

        found = looped(builder, groups, 1, [equal(FLOATS, -math.inf)] * (2 * count), larger)
        greatest = _greatest(builder, [found[2 * n : 2 * n + 2] for n in range(count)])
        each = 1 if is_paired else 2
        totals = looped(builder, groups, 1, [equal(FLOATS, 0.0)] * (each * count), weighed)
        sums = [reduce(builder.fadd, totals[each * n : each * n + each]) for n in range(count)]
        _store_factors(builder, sums, factors)
        return context.get_dummy_value()

    return types.void(rows, form, row, apart, mask, step, scale, groups, factors), generate


weigh_rows: Final[Callable[..., None]] = emitted(_weigh_rows, prefer_literal=True)


def _greatest(builder: Any, rows: Sequence[Sequence[ir.Value]]) -> list[ir.Value]:
    """Return the largest of the scores of each row, in each lane of a vector."""
    largest = [reduce(partial(_larger, builder), scores) for scores in rows]
    return [repeated(builder, _across(builder, "fmax", vector, None, "nnan")) for vector in largest]


def _exponentials(builder: Any, scores: Sequence[ir.Value], most: Sequence[ir.Value]) -> list[ir.Value]:
    """Return the exponentials of what each vector of scores is less than ``most``."""
    differences = [builder.fsub(*pair) for pair in zip(scores, most)]
    return _powers_of_two(builder, [builder.fmul(difference, equal(FLOATS, _PER_E)) for difference in differences])


def _store_factors(builder: Any, totals: Sequence[ir.Value], factors: ir.Value) -> None:
    """Store one divided by the sum of each vector at an address."""
    for row, total in enumerate(totals):
        inverse = builder.fdiv(ir.Constant(_F32, 1.0), _across(builder, "fadd", total, -0.0, "reassoc"))
        builder.store(inverse, at(builder, factors, int64(4 * row), _F32), align=4)


def _plus_pairs(builder: Any, total: ir.Value, pairs: ir.Value) -> ir.Value:
    """Return the sum of a vector of f32 and both numbers of a vector of pairs."""
    ones = equal(INTS, 0x3F803F80)
    return FORMS["uint32"].add(builder, [ones], [pairs], [[total]])[0][0]


def _larger(builder: Any, x: ir.Value, other: ir.Value) -> ir.Value:
    """Return the larger numbers of two vectors, or ``other`` where x is NaN."""
    return builder.select(builder.fcmp_ordered(">", x, other), x, other)


def _weigh_block(
    context: Any, rows: Any, vectors: Any, form: Any, a: Any, lda: Any, b: Any, depth: Any, mask: Any, step: Any,
    seen: Any, more: Any, keys: Any, scale: Any, c: Any, ldc: Any, factors: Any,
) -> Any:  # fmt: skip
    """Store the weights of ``rows`` queries and of as many keys as the first vectors of a panel hold.

    ``rows`` and ``vectors`` are literals. ``a``, ``b`` and ``c`` are the addresses of the queries, of the panel and of
    the weights: see ``block.multiply_block``. ``mask`` is that of f32 [rows, keys], whose rows are ``step`` floats
    apart, and ``factors`` that of one divided by the sum of each row of weights. The first query sees ``seen`` keys,
    each other one ``more`` than the one before it, and none more than ``keys``. See ``weigh_rows`` for the weights.
    """
    shape, words = (literal(rows), literal(vectors)), FORMS[form.dtype.name]
    is_paired = form.dtype.name == "uint32"

    def generate(context: Any, builder: Any, signature: Any, arguments: Sequence[ir.Value]) -> ir.Value:
        a, lda, b, depth, mask, step, seen, more, keys, scale, c, ldc, factors = arguments[3:]
        factor, every = repeated(builder, scale), list[list[ir.Value]]()
        # each stage for all rows, so that the processor has several rows at work
        for row, found in enumerate(multiplied(builder, shape, words, a, lda, b, int64(0), depth)):
            visible = builder.add(seen, builder.mul(more, int64(row)))
            visible = builder.select(builder.icmp_signed("<", visible, keys), visible, keys)
            begin = builder.add(mask, builder.mul(step, int64(4 * row)))
            places = [builder.add(begin, int64(4 * VECTOR * n)) for n in range(len(found))]
            every.append([_shown(builder, n, found[n], factor, places[n], visible) for n in range(len(found))])
        totals = list[ir.Value]()
        for row, (scores, most) in enumerate(zip(every, _greatest(builder, every))):
            weights: list[Any] = _exponentials(builder, scores, [most] * len(scores))
            total = equal(FLOATS, 0.0)
            if is_paired:
                weights = [neighbours(builder, *weights[n : n + 2]) for n in range(0, len(weights), 2)]
            place = builder.add(c, builder.mul(ldc, int64(4 * row)))
            for n, weight in enumerate(weights):
                builder.store(weight, at(builder, place, int64(4 * VECTOR * n), weight.type), align=4)
                total = _plus_pairs(builder, total, weight) if is_paired else builder.fadd(total, weight)
            totals.append(total)
        _store_factors(builder, totals, factors)
        return context.get_dummy_value()

    given = rows, vectors, form, a, lda, b, depth, mask, step, seen, more, keys, scale, c, ldc, factors
    return types.void(*given), generate


weigh_block: Final[Callable[..., None]] = emitted(_weigh_block, prefer_literal=True)


def _shown(
    builder: Any, number: int, score: ir.Value, factor: ir.Value, mask: ir.Value, visible: ir.Value
) -> ir.Value:  # fmt: skip
    """Return what the scores of vector ``number`` of a row are with the mask at an address; -Inf for hidden keys."""
    count = builder.trunc(builder.sub(visible, int64(number * VECTOR)), ir.IntType(32))
    shown, place = mask_of(builder, count), at(builder, mask, int64(0), FLOATS)
    added = load_lanes(builder, place, shown, 4, -math.inf)
    return builder.select(shown, fused(builder, score, factor, added), equal(FLOATS, -math.inf))
