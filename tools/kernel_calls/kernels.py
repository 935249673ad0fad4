"""The compiled kernels of irrun, found in its modules, and which of them call which."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from types import CodeType
from typing import Any, Final

import irrun.fast
from irrun.fast.integers.dots import DOT
from irrun.fast.machine.late import Late
from irrun.fast.machine.machine_code import MachineCode
from irrun.fast.precision.tiles import TILES

__all__ = ["function_of", "kernels", "needed", "reached", "watched"]

_SHARING: Final = frozenset({"sharing._share", "sharing._take_parts", "sharing._watch", "windows.convolve_columns"})
"""What one thread alone does not call."""
_DIGITS: Final = frozenset({"digits._multiply_part", "digits.split_rows"})
"""What nothing calls on a processor that has no instruction for four products of bytes."""
_WIDENING: Final = frozenset({"windows.widen_bytes"})
"""What nothing calls on a processor that has one."""
_TILED: Final = frozenset({"rounded_codes._multiply_part"})
"""What nothing calls on a processor that has no tiles."""
_PADDING: Final = frozenset({"windows.pad_words"})
"""What nothing calls on a processor that has tiles."""


@cache
def kernels() -> Mapping[str, MachineCode]:
    """Return all functions of ``irrun.fast`` that are compiled, by the names of their files of machine code."""
    found: dict[str, MachineCode] = {}
    for module in pkgutil.walk_packages(irrun.fast.__path__, "irrun.fast."):
        for value in vars(import_module(module.name)).values():
            if isinstance(value, MachineCode):
                found[value.base] = value
    return found


def needed(threads: int) -> frozenset[str]:
    """Return the kernels that models reach on this processor, with so many threads."""
    others = _SHARING if threads == 1 else frozenset[str]()
    others |= _PADDING if TILES else _TILED
    return frozenset(kernels()) - others - (_DIGITS if DOT is None or DOT.wide else _WIDENING)


@contextmanager
def watched() -> Iterator[set[str]]:
    """Yield a set to which the names of the kernels that Python calls are added."""
    ran: set[str] = set()
    plain = MachineCode._call

    def noted(self: MachineCode, arguments: tuple[Any, ...], place: int | None) -> int:
        ran.add(self.base)
        return plain(self, arguments, place)

    MachineCode._call = noted
    try:
        yield ran
    finally:
        MachineCode._call = plain


def reached(called: Iterable[str]) -> frozenset[str]:
    """Return these kernels, and those whose code is in theirs because they call them."""
    return frozenset(name for one in called for name in _inside(one))


@cache
def _inside(name: str) -> frozenset[str]:
    found: set[str] = set()
    seen: set[int] = set()
    waiting: list[object] = [kernels()[name]]
    while waiting:
        value = waiting.pop()
        if id(value) in seen or not isinstance(value, Late):
            continue
        seen.add(id(value))
        if isinstance(value, MachineCode):
            found.add(value.base)
        function = function_of(value)
        names = {name for code in _codes(function.__code__) for name in code.co_names}
        waiting += [function.__globals__[name] for name in names if name in function.__globals__]
    return frozenset(found)


def function_of(late: Late) -> Callable[..., Any]:
    """Return the function that is compiled: the first argument of what compiles it."""
    return late._make.args[0] if hasattr(late._make, "args") else late._make  # type: ignore[attr-defined]


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)
