"""The transforms of Winograd's method for one tile, as LLVM code: a vector of channels at a time, no part of one.

F(2×2, 3×3) evaluates at 0, ±1 and infinity, F(4×4, 3×3) at 0, ±√½, ±√2 and infinity. Such points make the rounding
errors half as large as 0, ±1, ±2 and infinity do.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

from irrun.fast.machine.emitting import FLOATS, at, equal, fused, int64, repeated
from irrun.fast.machine.late import cgutils, emitted, ir, literal, types
from irrun.fast.machine.processor import VECTOR

__all__ = ["FILTERS", "evaluate_tile", "interpolate_tile"]

_ROOT: Final = math.sqrt(2)
FILTERS: Final = {
    2: [[1, 0, 0], [0.5, 0.5, 0.5], [0.5, -0.5, 0.5], [0, 0, 1]],
    4: [
        [1, 0, 0], [-2 / 3, -_ROOT / 3, -1 / 3], [-2 / 3, _ROOT / 3, -1 / 3],
        [1 / 6, _ROOT / 6, 1 / 3], [1 / 6, -_ROOT / 6, 1 / 3], [0, 0, 1],
    ],
}  # fmt: skip
"""The filter transform by outputs of a tile along an axis: rows evaluate a polynomial of three coefficients."""

_I64: Final = ir.IntType(64)


def _evaluate_tile(context: Any, tile: Any, table: Any, channels: Any, out: Any, distance: Any) -> Any:
    """Transform the elements that a tile of ``tile`` (a literal) times ``tile`` outputs sees.

    ``table`` is the address of i64 [values, values], with ``values = tile + 2``: the address of the channels of each
    element. The channels of the transformed values are stored at ``out``, ``distance`` bytes apart.
    """
    count = literal(tile) + 2

    def generate(context: Any, builder: Any, signature: Any, arguments: Sequence[ir.Value]) -> ir.Value:
        _, table, channels, out, distance = arguments
        places = _places(builder, table, count * count)

        def transform(vectors: _Vectors) -> None:
            lines = [
                _EVALUATE[count](vectors, [vectors.load(places[count * y + x]) for y in range(count)])
                for x in range(count)
            ]
            for y in range(count):
                for x, value in enumerate(_EVALUATE[count](vectors, [line[y] for line in lines])):
                    vectors.store(value, builder.add(out, builder.mul(distance, int64(count * y + x))))

        with cgutils.for_range(builder, builder.sdiv(channels, int64(VECTOR))) as loop:
            transform(_Vectors(builder, builder.mul(loop.index, int64(4 * VECTOR))))
        return context.get_dummy_value()

    return types.void(tile, table, channels, out, distance), generate


def _interpolate_tile(
    context: Any, tile: Any, products: Any, distance: Any, targets: Any, channels: Any, bias: Any, adds: Any,
    clamps: Any, low: Any, high: Any, faults: Any,
) -> Any:  # fmt: skip
    """Compute the outputs of a tile from the products at the address ``products``, ``distance`` bytes apart.

    ``targets`` is the address of i64 [tile, tile, 2]: the addresses of each result and of its residual. See
    ``window_block`` for the other arguments. ``faults`` is the address of a vector that becomes NaN in some element if
    a result without its epilogue is not finite.
    """
    size = literal(tile)
    count = size + 2

    def generate(context: Any, builder: Any, signature: Any, arguments: Sequence[ir.Value]) -> ir.Value:
        _, products, distance, targets, channels, bias, adds, clamps, low, high, faults = arguments
        places = _places(builder, targets, 2 * size * size)
        biased = builder.icmp_signed("!=", bias, int64(0))
        adds, clamps = (builder.trunc(flag, ir.IntType(1)) for flag in (adds, clamps))
        results = [cgutils.alloca_once(builder, FLOATS) for _ in range(size * size)]

        def transform(vectors: _Vectors) -> None:
            numbers = [
                [vectors.load(builder.add(products, builder.mul(distance, int64(count * y + x)))) for y in range(count)]
                for x in range(count)
            ]
            lines = [_INTERPOLATE[count](vectors, column) for column in numbers]
            fault = at(builder, faults, int64(0), FLOATS)
            sum = builder.load(fault, align=4)
            for y in range(size):
                for x, value in enumerate(_INTERPOLATE[count](vectors, [line[y] for line in lines])):
                    builder.store(value, results[size * y + x])
                    sum = fused(builder, value, equal(FLOATS, 0.0), sum)
            builder.store(sum, fault, align=4)
            with builder.if_then(biased):
                more = vectors.load(bias)
                for result in results:
                    builder.store(builder.fadd(builder.load(result), more), result)
            with builder.if_then(adds):
                for n, result in enumerate(results):
                    builder.store(builder.fadd(builder.load(result), vectors.load(places[2 * n + 1])), result)
            with builder.if_then(clamps):
                for limit, sign in ((low, "<"), (high, ">")):
                    bound = repeated(builder, limit)
                    for result in results:
                        value = builder.load(result)
                        builder.store(builder.select(builder.fcmp_ordered(sign, value, bound), bound, value), result)
            for n, result in enumerate(results):
                vectors.store(builder.load(result), places[2 * n])

        with cgutils.for_range(builder, builder.sdiv(channels, int64(VECTOR))) as loop:
            transform(_Vectors(builder, builder.mul(loop.index, int64(4 * VECTOR))))
        return context.get_dummy_value()

    arguments = (tile, products, distance, targets, channels, bias, adds, clamps, low, high, faults)
    return types.void(*arguments), generate


evaluate_tile: Final[Callable[..., None]] = emitted(_evaluate_tile, prefer_literal=True)
interpolate_tile: Final[Callable[..., None]] = emitted(_interpolate_tile, prefer_literal=True)


def _places(builder: Any, table: ir.Value, count: int) -> list[ir.Value]:
    return [builder.load(at(builder, table, int64(8 * n), _I64)) for n in range(count)]


class _Vectors:
    """Loads, stores and computes the vector of channels that is ``offset`` bytes from the first channel."""

    def __init__(self, builder: Any, offset: ir.Value) -> None:
        self.builder, self.offset = builder, offset

    def load(self, address: ir.Value) -> ir.Value:
        return self.builder.load(at(self.builder, address, self.offset, FLOATS), align=4)

    def store(self, value: ir.Value, address: ir.Value) -> None:
        self.builder.store(value, at(self.builder, address, self.offset, FLOATS), align=4)

    def plus(self, a: ir.Value, b: ir.Value, factor: float = 1) -> ir.Value:
        """Return ``a + factor * b``."""
        if factor == 1:
            return self.builder.fadd(a, b)
        return self.builder.fsub(a, b) if factor == -1 else fused(self.builder, b, equal(FLOATS, factor), a)

    def times(self, a: ir.Value, factor: float) -> ir.Value:
        return self.builder.fmul(a, equal(FLOATS, factor))


def _evaluate_four(v: _Vectors, d: list[ir.Value]) -> list[ir.Value]:
    a, b, c, e = d
    return [v.plus(a, c, -1), v.plus(b, c), v.plus(c, b, -1), v.plus(e, b, -1)]


def _interpolate_four(v: _Vectors, m: list[ir.Value]) -> list[ir.Value]:
    a, b, c, e = m
    return [v.plus(v.plus(a, b), c), v.plus(v.plus(b, c, -1), e)]


def _evaluate_six(v: _Vectors, d: list[ir.Value]) -> list[ir.Value]:
    a, b, c, e, f, g = d
    near, far = (v.plus(f, c, -2), v.plus(e, b, -2)), (v.plus(f, c, -0.5), v.plus(e, b, -0.5))
    pairs = [(v.plus(even, odd, factor)) for (even, odd), p in ((near, _ROOT / 2), (far, _ROOT)) for factor in (p, -p)]
    return [v.plus(v.plus(a, f), c, -2.5), *pairs, v.plus(v.plus(b, g), e, -2.5)]


def _interpolate_six(v: _Vectors, m: list[ir.Value]) -> list[ir.Value]:
    a, b, c, d, e, f = m
    (near, odd_near), (far, odd_far) = ((v.plus(x, y), v.plus(x, y, -1)) for x, y in ((b, c), (d, e)))
    return [
        v.plus(v.plus(near, far), a),
        v.plus(v.times(odd_near, _ROOT / 2), odd_far, _ROOT),
        v.plus(v.times(near, 0.5), far, 2),
        v.plus(v.plus(f, odd_near, _ROOT / 4), odd_far, 2 * _ROOT),
    ]


_EVALUATE: Final = {4: _evaluate_four, 6: _evaluate_six}
"""From the elements that a tile sees along an axis to the values at the points."""
_INTERPOLATE: Final = {4: _interpolate_four, 6: _interpolate_six}
"""From the products of values to the outputs of a tile along an axis."""
