"""The block of a matrix product that stays in registers, as LLVM code.

numba compiles most loops well, but it does not keep a block of results in vector registers, and on this the speed of a
matrix product depends. So ``multiply_block`` emits this one loop itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.errors import TypingError
from numba.extending import intrinsic

from irrun.kernels.compiled.processor import VECTOR, VECTORS

__all__ = ["multiply_block"]

_F32: Final = ir.FloatType()
_I64: Final = ir.IntType(64)
_I32: Final = ir.IntType(32)
_FLOATS: Final = ir.VectorType(_F32, VECTOR)
_HALVES: Final = ir.VectorType(ir.HalfType(), VECTOR)
_FMA: Final = f"llvm.fma.v{VECTOR}f32"


def _multiply_block(
    context: Any, rows: Any, panels: Any, weights: Any, a: Any, lda: Any, b: Any, ldb: Any, c: Any, ldc: Any,
    depth: Any, adds: Any,
) -> Any:  # fmt: skip
    """Multiply ``rows`` rows of ``a`` by ``panels`` panels of ``b``, and store the results in ``c`` or add them to it.

    ``rows`` and ``panels`` are literals. ``a``, ``b`` and ``c`` are addresses. The rows of ``a`` and ``c`` are ``lda``
    and ``ldc`` floats apart. A panel has ``depth`` > 0 rows of ``VECTORS`` vectors, in f16 if the array ``weights``,
    whose type alone matters, holds uint16, else in f32. The next panel begins ``ldb`` bytes further.
    """
    if not (isinstance(rows, types.IntegerLiteral) and isinstance(panels, types.IntegerLiteral)):
        raise TypingError("the numbers of rows and panels must be literals")
    shape = rows.literal_value, panels.literal_value
    stored = _HALVES if weights.dtype == types.uint16 else _FLOATS

    def generate(context: Any, builder: Any, signature: Any, arguments: Sequence[ir.Value]) -> ir.Value:
        _block(builder, shape, stored, *arguments[3:])
        return context.get_dummy_value()

    return types.void(rows, panels, weights, a, lda, b, ldb, c, ldc, depth, adds), generate


multiply_block: Final[Callable[..., None]] = intrinsic(prefer_literal=True)(_multiply_block)


def _block(
    builder: Any, shape: tuple[int, int], stored: ir.VectorType, a: ir.Value, lda: ir.Value, b: ir.Value,
    ldb: ir.Value, c: ir.Value, ldc: ir.Value, depth: ir.Value, adds: ir.Value,
) -> None:  # fmt: skip
    rows, panels = shape
    step = VECTOR * (2 if stored is _HALVES else 4)  # bytes of a vector of weights
    fma = cgutils.get_or_insert_function(builder.module, ir.FunctionType(_FLOATS, [_FLOATS] * 3), _FMA)
    begins = [_at(builder, a, builder.mul(lda, _int(4 * row)), _F32) for row in range(rows)]
    before, loop, done = builder.block, builder.append_basic_block("depth"), builder.append_basic_block("done")
    builder.branch(loop)
    builder.position_at_end(loop)
    k, address = builder.phi(_I64), builder.phi(_I64)
    sums = [[builder.phi(_FLOATS) for _ in range(panels * VECTORS)] for _ in range(rows)]
    places = [builder.add(address, builder.mul(ldb, _int(panel))) for panel in range(panels)]
    loads = [builder.load(_at(builder, at, _int(n * step), stored), align=2) for at in places for n in range(VECTORS)]
    vectors = [builder.fpext(load, _FLOATS) for load in loads] if stored is _HALVES else loads
    added: list[list[ir.Value]] = []
    for begin, row in zip(begins, sums):
        element = _repeated(builder, builder.load(builder.gep(begin, [k]), align=4))
        added.append([builder.call(fma, [element, vector, sum]) for vector, sum in zip(vectors, row)])
    following = builder.add(k, _int(1)), builder.add(address, _int(VECTORS * step))
    for phi, first, next in ((k, _int(0), following[0]), (address, b, following[1])):
        phi.add_incoming(first, before)
        phi.add_incoming(next, loop)
    for phis, values in zip(sums, added):
        for phi, value in zip(phis, values):
            phi.add_incoming(ir.Constant(_FLOATS, [0.0] * VECTOR), before)
            phi.add_incoming(value, loop)
    builder.cbranch(builder.icmp_signed("<", following[0], depth), loop, done)
    builder.position_at_end(done)
    for row, values in enumerate(added):
        line = builder.add(c, builder.mul(ldc, _int(4 * row)))
        with builder.if_else(builder.trunc(adds, ir.IntType(1))) as (if_adds, if_stores):
            with if_adds:
                for n, value in enumerate(values):
                    place = _at(builder, line, _int(4 * VECTOR * n), _FLOATS)
                    builder.store(builder.fadd(value, builder.load(place, align=4)), place, align=4)
            with if_stores:
                for n, value in enumerate(values):
                    builder.store(value, _at(builder, line, _int(4 * VECTOR * n), _FLOATS), align=4)


def _int(number: int) -> ir.Constant:
    return ir.Constant(_I64, number)


def _at(builder: Any, address: ir.Value, offset: ir.Value, type: ir.Type) -> ir.Value:
    """Return the pointer to a ``type`` at ``offset`` bytes from an address."""
    return builder.inttoptr(builder.add(address, offset), type.as_pointer())


def _repeated(builder: Any, element: ir.Value) -> ir.Value:
    """Return a vector with ``element`` in each place."""
    undefined = ir.Constant(_FLOATS, ir.Undefined)
    first = builder.insert_element(undefined, element, ir.Constant(_I32, 0))
    return builder.shuffle_vector(first, undefined, ir.Constant(ir.VectorType(_I32, VECTOR), [0] * VECTOR))
