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
from irrun.fast.machine.processor import VECTOR
from irrun.fast.precision.pairs import GROUP, neighbours

__all__ = ["as_columns", "fetch_row", "weigh_block", "weigh_pairs", "weigh_vectors"]

_F32: Final = ir.FloatType()


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


_LEAST: Final = -88.0  # the exponential is 0 from here on
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


def _exponential(builder: Any, x: ir.Value) -> ir.Value:
    """Return e to the power of vectors of numbers <= 0, or 0 for results that are no normal numbers."""
    x = builder.select(builder.fcmp_ordered("<", x, equal(FLOATS, _LEAST)), equal(FLOATS, _LEAST), x)
    biased = fused(builder, x, equal(FLOATS, _PER_E), equal(FLOATS, _ROUNDING))
    whole = builder.fsub(biased, equal(FLOATS, _ROUNDING))
    rest = fused(builder, x, equal(FLOATS, _PER_E), builder.fneg(whole))
    power = equal(FLOATS, _POWERS[0])
    for coefficient in _POWERS[1:]:
        power = fused(builder, power, rest, equal(FLOATS, coefficient))
    exponent = builder.shl(builder.bitcast(biased, INTS), equal(INTS, 23))
    return builder.fmul(power, builder.bitcast(exponent, FLOATS))


def _weigh(paired: bool) -> Callable[..., Any]:
    def weigh(context: Any, row: Any, mask: Any, scale: Any, groups: Any) -> Any:
        """Replace ``groups`` groups of scores by weights, and return their sum.

        These are the exponentials of what ``score * scale + mask`` is less than the largest one. ``row`` and ``mask``
        are addresses of f32. With pairs, the weights are rounded to bf16, and so is what is summed up.
        """

        def generate(context: Any, builder: Any, signature: Any, arguments: Sequence[ir.Value]) -> ir.Value:
            row, mask, scale, groups = arguments
            factor = repeated(builder, scale)

            def scaled(index: ir.Value) -> list[ir.Value]:
                offset, found = builder.mul(index, int64(4 * GROUP)), []
                for n in (0, VECTOR):
                    score, added = (
                        builder.load(at(builder, address, builder.add(offset, int64(4 * n)), FLOATS), align=4)
                        for address in (row, mask)
                    )
                    found.append(fused(builder, score, factor, added))
                return found

            def larger(index: ir.Value, most: Sequence[ir.Value]) -> list[ir.Value]:
                return [_larger(builder, score, before) for score, before in zip(scaled(index), most)]

            def weighed(index: ir.Value, totals: Sequence[ir.Value]) -> list[ir.Value]:
                begin = builder.add(row, builder.mul(index, int64(4 * GROUP)))
                places = [at(builder, begin, int64(4 * n), FLOATS) for n in (0, VECTOR)]
                # to compute a score twice takes less time than to store it
                weights = [_exponential(builder, builder.fsub(score, greatest)) for score in scaled(index)]
                if not paired:
                    for weight, place in zip(weights, places):
                        builder.store(weight, place, align=4)
                    return [builder.fadd(*pair) for pair in zip(totals, weights)]
                pairs = neighbours(builder, *weights)
                builder.store(pairs, at(builder, row, builder.mul(index, int64(4 * VECTOR)), INTS), align=4)
                return [_plus_pairs(builder, totals[0], pairs), totals[1]]

            found = _larger(builder, *looped(builder, groups, 1, [equal(FLOATS, -math.inf)] * 2, larger))
            greatest = repeated(builder, _across(builder, "fmax", found, None, "nnan"))
            total = builder.fadd(*looped(builder, groups, 1, [equal(FLOATS, 0.0)] * 2, weighed))
            return _across(builder, "fadd", total, -0.0, "reassoc")

        return types.float32(row, mask, scale, groups), generate

    return emitted(weigh)


def _plus_pairs(builder: Any, total: ir.Value, pairs: ir.Value) -> ir.Value:
    """Return the sum of a vector of f32 and both numbers of a vector of pairs."""
    ones = equal(INTS, 0x3F803F80)
    return FORMS["uint32"].add(builder, [ones], [pairs], [[total]])[0][0]


def _larger(builder: Any, x: ir.Value, other: ir.Value) -> ir.Value:
    """Return the larger numbers of two vectors, or ``other`` where x is NaN."""
    return builder.select(builder.fcmp_ordered(">", x, other), x, other)


weigh_vectors: Final[Callable[[int, int, Any, int], Any]] = _weigh(False)
weigh_pairs: Final[Callable[[int, int, Any, int], Any]] = _weigh(True)
"""Pairs take the first half of the row."""


def _weigh_block(
    context: Any, rows: Any, vectors: Any, form: Any, a: Any, lda: Any, b: Any, depth: Any, mask: Any, step: Any,
    seen: Any, more: Any, keys: Any, scale: Any, c: Any, ldc: Any, factors: Any,
) -> Any:  # fmt: skip
    """Store the weights of ``rows`` queries and of as many keys as the first vectors of a panel hold.

    ``rows`` and ``vectors`` are literals. ``a``, ``b`` and ``c`` are the addresses of the queries, of the panel and of
    the weights: see ``block.multiply_block``. ``mask`` is that of f32 [rows, keys], whose rows are ``step`` floats
    apart, and ``factors`` that of one divided by the sum of each row of weights. The first query sees ``seen`` keys,
    each other one ``more`` than the one before it, and none more than ``keys``. See ``weigh`` for the weights.
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
        largest = [reduce(partial(_larger, builder), scores, equal(FLOATS, -math.inf)) for scores in every]
        largest = [repeated(builder, _across(builder, "fmax", vector, None, "nnan")) for vector in largest]
        totals = list[ir.Value]()
        for row, (scores, most) in enumerate(zip(every, largest)):
            weights: list[Any] = [_exponential(builder, builder.fsub(score, most)) for score in scores]
            total = equal(FLOATS, 0.0)
            if is_paired:
                weights = [neighbours(builder, *weights[n : n + 2]) for n in range(0, len(weights), 2)]
            place = builder.add(c, builder.mul(ldc, int64(4 * row)))
            for n, weight in enumerate(weights):
                builder.store(weight, at(builder, place, int64(4 * VECTOR * n), weight.type), align=4)
                total = _plus_pairs(builder, total, weight) if is_paired else builder.fadd(total, weight)
            totals.append(total)
        for row, total in enumerate(totals):
            inverse = builder.fdiv(ir.Constant(_F32, 1.0), _across(builder, "fadd", total, -0.0, "reassoc"))
            builder.store(inverse, at(builder, factors, int64(4 * row), _F32), align=4)
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
