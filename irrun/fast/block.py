"""The block of a matrix product that stays in registers, as LLVM code.

numba compiles most loops well, but it does not keep a block of results in vector registers, and on this the speed of a
matrix product depends. So ``multiply_block`` emits this one loop itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from llvmlite import ir

from irrun.fast.machine.late import cgutils, emitted, literal, types
from irrun.fast.machine.processor import VECTOR, VECTORS

__all__ = ["FORMS", "Form", "at", "int64", "multiply_block", "repeated", "unpack_block", "widened"]

_F32: Final = ir.FloatType()
_I64: Final = ir.IntType(64)
_I32: Final = ir.IntType(32)
_FLOATS: Final = ir.VectorType(_F32, VECTOR)
_INTS: Final = ir.VectorType(_I32, VECTOR)
_FMA: Final = f"llvm.fma.v{VECTOR}f32"


@dataclass(frozen=True)
class Form:
    """How the numbers of a panel are stored, and how they become f32 in registers."""

    element: ir.Type
    bytes: int
    """Bytes of an element."""
    widen: Callable[[Any, list[ir.Value]], list[ir.Value]]
    """From the vectors of a row of a panel to those in f32."""
    share: int = 1
    """How many numbers an element holds."""

    @property
    def stored(self) -> ir.VectorType:
        return ir.VectorType(self.element, VECTOR)


def _from_bf16(builder: Any, loads: list[ir.Value]) -> list[ir.Value]:
    """bf16 is the upper half of f32."""
    wide = [builder.shl(builder.zext(load, _INTS), ir.Constant(_INTS, [16] * VECTOR)) for load in loads]
    return [builder.bitcast(vector, _FLOATS) for vector in wide]


def _from_nibbles(builder: Any, loads: list[ir.Value]) -> list[ir.Value]:
    """The low four bits of all bytes are the first half of the row, the high four bits the second half."""
    wide = [builder.zext(load, _INTS) for load in loads]
    low = [builder.and_(vector, ir.Constant(_INTS, [15] * VECTOR)) for vector in wide]
    high = [builder.lshr(vector, ir.Constant(_INTS, [4] * VECTOR)) for vector in wide]
    return [builder.sitofp(vector, _FLOATS) for vector in low + high]


FORMS: Final = {
    "float32": Form(_F32, 4, lambda builder, loads: loads),
    "uint16": Form(ir.HalfType(), 2, lambda builder, loads: [builder.fpext(n, _FLOATS) for n in loads]),
    "int16": Form(ir.IntType(16), 2, _from_bf16),
    "int8": Form(
        ir.IntType(8), 1, lambda builder, loads: [builder.sitofp(builder.sext(n, _INTS), _FLOATS) for n in loads]
    ),
    "uint8": Form(ir.IntType(8), 1, _from_nibbles, share=2),
}
"""The forms of panels: f32, f16 (uint16), bf16 (int16), i8, and two unsigned numbers of four bits in a byte (uint8).
The keys are names of dtypes."""


def _multiply_block(
    context: Any, rows: Any, panels: Any, weights: Any, a: Any, lda: Any, b: Any, ldb: Any, c: Any, ldc: Any,
    depth: Any, adds: Any,
) -> Any:  # fmt: skip
    """Multiply ``rows`` rows of ``a`` by ``panels`` panels of ``b``, and store the results in ``c`` or add them to it.

    ``rows`` and ``panels`` are literals. ``a``, ``b`` and ``c`` are addresses. The rows of ``a`` and ``c`` are ``lda``
    and ``ldc`` floats apart. A panel has ``depth`` > 0 rows of ``VECTORS`` vectors, and the next panel begins ``ldb``
    bytes further. The dtype of the array ``weights``, of which nothing else matters, says how a panel is stored: see
    ``FORMS``.
    """
    shape = literal(rows), literal(panels)
    form = FORMS[weights.dtype.name]

    def generate(context: Any, builder: Any, signature: Any, arguments: Sequence[ir.Value]) -> ir.Value:
        _block(builder, shape, form, *arguments[3:])
        return context.get_dummy_value()

    return types.void(rows, panels, weights, a, lda, b, ldb, c, ldc, depth, adds), generate


multiply_block: Final[Callable[..., None]] = emitted(_multiply_block, prefer_literal=True)


def _block(
    builder: Any, shape: tuple[int, int], form: Form, a: ir.Value, lda: ir.Value, b: ir.Value,
    ldb: ir.Value, c: ir.Value, ldc: ir.Value, depth: ir.Value, adds: ir.Value,
) -> None:  # fmt: skip
    rows, panels = shape
    fma = cgutils.get_or_insert_function(builder.module, ir.FunctionType(_FLOATS, [_FLOATS] * 3), _FMA)
    begins = [at(builder, a, builder.mul(lda, int64(4 * row)), _F32) for row in range(rows)]
    before, loop, done = builder.block, builder.append_basic_block("depth"), builder.append_basic_block("done")
    builder.branch(loop)
    builder.position_at_end(loop)
    k, address = builder.phi(_I64), builder.phi(_I64)
    sums = [[builder.phi(_FLOATS) for _ in range(panels * VECTORS)] for _ in range(rows)]
    places = [builder.add(address, builder.mul(ldb, int64(panel))) for panel in range(panels)]
    vectors = [vector for place in places for vector in widened(builder, form, place)]
    added: list[list[ir.Value]] = []
    for begin, row in zip(begins, sums):
        element = repeated(builder, builder.load(builder.gep(begin, [k]), align=4))
        added.append([builder.call(fma, [element, vector, sum]) for vector, sum in zip(vectors, row)])
    following = builder.add(k, int64(1)), builder.add(address, int64(VECTORS // form.share * VECTOR * form.bytes))
    for phi, first, next in ((k, int64(0), following[0]), (address, b, following[1])):
        phi.add_incoming(first, before)
        phi.add_incoming(next, loop)
    for phis, values in zip(sums, added):
        for phi, value in zip(phis, values):
            phi.add_incoming(ir.Constant(_FLOATS, [0.0] * VECTOR), before)
            phi.add_incoming(value, loop)
    builder.cbranch(builder.icmp_signed("<", following[0], depth), loop, done)
    builder.position_at_end(done)
    for row, values in enumerate(added):
        line = builder.add(c, builder.mul(ldc, int64(4 * row)))
        with builder.if_else(builder.trunc(adds, ir.IntType(1))) as (if_adds, if_stores):
            with if_adds:
                for n, value in enumerate(values):
                    place = at(builder, line, int64(4 * VECTOR * n), _FLOATS)
                    builder.store(builder.fadd(value, builder.load(place, align=4)), place, align=4)
            with if_stores:
                for n, value in enumerate(values):
                    builder.store(value, at(builder, line, int64(4 * VECTOR * n), _FLOATS), align=4)


def _unpack_block(
    context: Any, weights: Any, b: Any, zeros: Any, scales: Any, c: Any, depth: Any,
) -> Any:  # fmt: skip
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
    shifts = [builder.load(at(builder, zeros, place, _FLOATS), align=4) for place in places]
    factors = [builder.load(at(builder, scales, place, _FLOATS), align=4) for place in places]
    step = int64(VECTORS // form.share * VECTOR * form.bytes)
    with cgutils.for_range(builder, depth) as loop:
        vectors = widened(builder, form, builder.add(b, builder.mul(loop.index, step)))
        row = builder.add(c, builder.mul(loop.index, int64(4 * VECTOR * VECTORS)))
        for place, vector, shift, factor in zip(places, vectors, shifts, factors):
            number = builder.fmul(builder.fsub(vector, shift), factor)
            builder.store(number, at(builder, row, place, _FLOATS), align=4)


def widened(builder: Any, form: Form, address: ir.Value) -> list[ir.Value]:
    """Return the vectors, in f32, of the row of a panel at an address."""
    step = VECTOR * form.bytes
    places = (at(builder, address, int64(n * step), form.stored) for n in range(VECTORS // form.share))
    return form.widen(builder, [builder.load(place, align=form.bytes) for place in places])


def int64(number: int) -> ir.Constant:
    return ir.Constant(_I64, number)


def at(builder: Any, address: ir.Value, offset: ir.Value, type: ir.Type) -> ir.Value:
    """Return the pointer to a ``type`` at ``offset`` bytes from an address."""
    return builder.inttoptr(builder.add(address, offset), type.as_pointer())


def repeated(builder: Any, element: ir.Value) -> ir.Value:
    """Return a vector with ``element`` in each place."""
    undefined = ir.Constant(_FLOATS, ir.Undefined)
    first = builder.insert_element(undefined, element, ir.Constant(_I32, 0))
    return builder.shuffle_vector(first, undefined, ir.Constant(ir.VectorType(_I32, VECTOR), [0] * VECTOR))
