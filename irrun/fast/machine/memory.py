"""Memory by its address: rows of f32, and integers that several threads read and change at the same time."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from math import prod
from typing import Any, Final, cast

import numpy as np

from irrun.fast.machine.emitting import called
from irrun.fast.machine.entries import architecture
from irrun.fast.machine.late import array_at, emitted, inlined, ir, types
from irrun.fast.machine.structures import DATA

__all__ = [
    "add_to", "address_of", "bytes_at", "data_address", "exchange", "floats_at", "halves_at", "lent", "longs_at",
    "look_at", "lower", "pause", "row_at", "ticks", "words_at",
]  # fmt: skip

_I64: Final = ir.IntType(64)


def data_address(array: np.ndarray) -> int:
    """Return the address of an array. Compiled code calls ``address_of``, which takes longer from Python.

    It is read where ``structures`` says: numpy's own attributes take a microsecond, seven times as long.
    """
    return _number_at(id(array) + DATA).value


def lent(address: int, shape: tuple[int, ...]) -> np.ndarray:
    """Return the array of f32 at an address, which others hold."""
    memory = (ctypes.c_char * (4 * prod(shape))).from_address(address)
    return np.ndarray(shape, np.float32, cast(Any, memory))


_number_at: Final = ctypes.c_int64.from_address


def _address_of(context: Any, array: Any) -> Any:
    """Return the address of an array."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Sequence[ir.Value]) -> ir.Value:
        known = context.make_array(signature.args[0])(context, builder, arguments[0])
        return builder.ptrtoint(known.data, _I64)

    return types.intp(array), generate


address_of: Final = cast(Callable[[np.ndarray], int], emitted(_address_of))


def _pointer(element: str) -> Callable[[int], Any]:
    """Return the function that returns an address as a pointer to elements of a type of numba."""

    def pointer(context: Any, address: Any) -> Any:
        type = types.CPointer(getattr(types, element))

        def generate(context: Any, builder: Any, signature: Any, arguments: Sequence[ir.Value]) -> ir.Value:
            return builder.inttoptr(arguments[0], context.get_value_type(type))

        return type(types.intp), generate

    return cast(Callable[[int], Any], emitted(pointer))


bytes_at: Final = _pointer("uint8")
floats_at: Final = _pointer("float32")
longs_at: Final = _pointer("int64")
halves_at: Final = _pointer("uint16")
"""The bits of f16."""
words_at: Final = _pointer("uint32")
"""The bits of f32."""


@inlined
def row_at(address: int, count: int) -> np.ndarray:
    """Return ``count`` numbers of f32 from an address on as an array. The compiler knows that they are contiguous."""
    return array_at(floats_at(address), count)


# ---------------------------------------------------------------------------------------------
# integers (i64) that threads share

_ORDER: Final = "seq_cst"
"""All threads see all changes in the same order."""


def _change(operation: str) -> Callable[[int, int], int]:
    """Return the function that changes the integer at an address with a number, and returns what was there before."""

    def change(context: Any, address: Any, number: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Sequence[ir.Value]) -> ir.Value:
            pointer = builder.inttoptr(arguments[0], _I64.as_pointer())
            return builder.atomic_rmw(operation, pointer, arguments[1], _ORDER)

        return types.int64(types.int64, types.int64), generate

    return cast(Callable[[int, int], int], emitted(change))


add_to: Final = _change("add")
exchange: Final = _change("xchg")
lower: Final = _change("min")
"""Replaces the integer if the number is less."""


def _look(context: Any, address: Any) -> Any:
    """Return the integer at an address."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Sequence[ir.Value]) -> ir.Value:
        return builder.load_atomic(builder.inttoptr(arguments[0], _I64.as_pointer()), _ORDER, 8)

    return types.int64(types.int64), generate


look_at: Final = cast(Callable[[int], int], emitted(_look))


def _ticks(context: Any) -> Any:
    """Return the time in units of the processor, or 0 where programs may not read it."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Sequence[ir.Value]) -> ir.Value:
        return called(builder, "llvm.readcyclecounter", _I64) if architecture() == "x86_64" else ir.Constant(_I64, 0)

    return types.int64(), generate


ticks: Final = cast(Callable[[], int], emitted(_ticks))


_PAUSES: Final = {"x86_64": ("llvm.x86.sse2.pause", ()), "aarch64": ("llvm.aarch64.hint", (1,))}
"""The instruction by which a waiting loop leaves the core to another thread on it."""
_PAUSE: Final = _PAUSES.get(architecture())


def _pause(context: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Sequence[ir.Value]) -> ir.Value:
        if _PAUSE is not None:
            name, numbers = _PAUSE
            called(builder, name, ir.VoidType(), *(ir.Constant(ir.IntType(32), number) for number in numbers))
        return context.get_dummy_value()

    return types.none(), generate


pause: Final = cast(Callable[[], None], emitted(_pause))
