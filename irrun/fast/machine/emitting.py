"""Short forms of LLVM code: addresses, vectors, loops, and calls of functions that LLVM knows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from irrun.fast.machine.late import cgutils, ir
from irrun.fast.machine.processor import VECTOR, has

__all__ = [
    "CACHE_LINE_BYTES", "FLOATS", "INTS", "at", "called", "equal", "fetch", "fetch_on", "fused", "int64", "load_lanes",
    "looped", "mask_of", "nearest", "repeated", "store_lanes",
]  # fmt: skip

_I32: Final = ir.IntType(32)
_I64: Final = ir.IntType(64)
FLOATS: Final = ir.VectorType(ir.FloatType(), VECTOR)
"""A vector of f32."""
INTS: Final = ir.VectorType(_I32, VECTOR)
"""A vector of i32."""
CACHE_LINE_BYTES: Final = 64
_AHEAD_BYTES: Final = 8192
"""Bytes that a loop asks for before it reads them. With a quarter or four times as many, tokens take up to 1.4 times as
long."""
_ONCE, _SECOND_LEVEL = 0, 2
"""How LLVM numbers what is read once, and what goes into the second-level cache."""
_STREAMED: Final = _ONCE if has("avx512bf16") and not has("amx-tile") else _SECOND_LEVEL
"""How loops fetch what they read once. On a Zen 5, such lines stay out of the large caches, and do not replace what the
program needs again there: a token takes 5 to 13 % less time."""


def int64(number: int) -> ir.Constant:
    return ir.Constant(_I64, number)


def at(builder: Any, address: ir.Value, offset: ir.Value, type: ir.Type) -> ir.Value:
    """Return the pointer to a ``type`` at ``offset`` bytes from an address."""
    return builder.inttoptr(builder.add(address, offset), type.as_pointer())


def called(builder: Any, name: str, result: ir.Type, *arguments: Any, fastmath: Sequence[str] = ()) -> Any:
    """Return the result of a function that LLVM or the processor knows by its name."""
    kind = ir.FunctionType(result, [argument.type for argument in arguments])
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), arguments, fastmath=fastmath)


def equal(type: ir.VectorType, number: float) -> ir.Constant:
    """Return a vector with a constant number in each lane."""
    return ir.Constant(type, [number] * type.count)


def repeated(builder: Any, element: Any, lanes: int = VECTOR) -> ir.Value:
    """Return a vector with ``element`` in each lane."""
    first = builder.insert_element(
        ir.Constant(ir.VectorType(element.type, lanes), ir.Undefined), element, ir.Constant(_I32, 0)
    )
    return builder.shuffle_vector(first, first, ir.Constant(ir.VectorType(_I32, lanes), [0] * lanes))


def fused(builder: Any, a: Any, b: Any, c: Any) -> ir.Value:
    """Return ``a * b + c`` of vectors of f32, rounded once."""
    return called(builder, f"llvm.fma.v{a.type.count}f32", a.type, a, b, c)


def nearest(builder: Any, numbers: Any) -> ir.Value:
    """Return the next whole numbers of a vector of f32; a number in the middle between two becomes the even one."""
    return called(builder, f"llvm.rint.v{numbers.type.count}f32", numbers.type, numbers)


def looped(
    builder: Any, end: ir.Value, by: int, values: Sequence[Any], step: Callable[[ir.Value, Any], Sequence[ir.Value]]
) -> list[ir.Value]:
    """Emit ``values = step(index, values)`` for the indices 0, ``by``, … before ``end``, and return the last values.

    The values stay in registers, or where LLVM keeps what does not fit there.
    """
    before, head = builder.block, builder.append_basic_block("head")
    body, done = builder.append_basic_block("body"), builder.append_basic_block("done")
    builder.branch(head)
    builder.position_at_end(head)
    index, held = builder.phi(_I64), [builder.phi(value.type) for value in values]
    builder.cbranch(builder.icmp_signed("<", index, end), body, done)
    builder.position_at_end(body)
    following, last = step(index, held), builder.block
    for phi, first, next in zip((index, *held), (int64(0), *values), (builder.add(index, int64(by)), *following)):
        phi.add_incoming(first, before)
        phi.add_incoming(next, last)
    builder.branch(head)
    builder.position_at_end(done)
    return held


def fetch(builder: Any, address: ir.Value, into: int = _SECOND_LEVEL) -> None:
    """Have the processor fetch the line of memory at an address into its second-level cache, or as ``into`` says."""
    hints = (ir.Constant(_I32, number) for number in (0, into, 1))  # to read, into which caches, data
    called(builder, "llvm.prefetch.p0", ir.VoidType(), at(builder, address, int64(0), ir.IntType(8)), *hints)


def fetch_on(builder: Any, addresses: Sequence[ir.Value], bytes: int) -> None:
    """Have the processor fetch so many bytes ``_AHEAD_BYTES`` behind an address, or nearer to each of several.

    A loop that reads on from there finds them in the cache. Processors fetch by themselves, but some of them too late:
    on a Xeon with AMX, a token takes up to twice as long.
    """
    for address in addresses:
        for line in range(0, bytes, CACHE_LINE_BYTES):
            fetch(builder, builder.add(address, int64(_AHEAD_BYTES // len(addresses) + line)), _STREAMED)


def mask_of(builder: Any, count: Any, lanes: int = VECTOR) -> ir.Value:
    """Return the mask of the first ``count`` lanes."""
    places = ir.Constant(ir.VectorType(count.type, lanes), list(range(lanes)))
    return builder.icmp_signed("<", places, repeated(builder, count, lanes))


def load_lanes(builder: Any, place: Any, mask: Any, align: int, other: float = 0) -> ir.Value:
    """Return the vector at a pointer, with ``other`` in lanes outside of a mask, whose memory is not read."""
    type = place.type.pointee
    name = f"llvm.masked.load.v{type.count}{_short(type)}.p0"
    return called(builder, name, type, place, ir.Constant(_I32, align), mask, equal(type, other))


def store_lanes(builder: Any, value: Any, place: Any, mask: Any, align: int) -> None:
    """Store the lanes of a vector that are in a mask."""
    name = f"llvm.masked.store.v{value.type.count}{_short(value.type)}.p0"
    called(builder, name, ir.VoidType(), value, place, ir.Constant(_I32, align), mask)


def _short(type: Any) -> str:
    """Return the type of the lanes of a vector as names of functions have it."""
    return "f32" if type.element == ir.FloatType() else str(type.element)
