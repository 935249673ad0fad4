"""What only compiling needs. Importing it imports nothing of numba, and works where numba is not installed."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

__all__ = ["Late", "array_at", "cgutils", "emitted", "inlined", "ir", "jitted", "literal", "types"]

_F = TypeVar("_F", bound=Callable[..., Any])


class Late:
    """A function that compiled code calls. ``make`` returns the function as numba knows it."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make
        self._made: Any = None

    def made(self) -> Any:
        """Return the function as numba knows it, always the same one."""
        if self._made is None:
            self._made = self._make()
        return self._made

    @property
    def _numba_type_(self) -> Any:
        """The type by which numba resolves calls of this function."""
        from numba.core.registry import cpu_target

        context: Any = cpu_target.typing_context
        made = self.made()
        context.refresh()  # registers the functions that were made since the last time
        return context.resolve_value_type(made)


def emitted(function: _F, *, prefer_literal: bool = False) -> _F:
    """Return the function whose LLVM code ``function`` emits: see ``numba.extending.intrinsic``."""
    return cast(_F, Late(partial(_intrinsic, function, prefer_literal)))


def inlined(function: _F, fastmath: frozenset[str] = frozenset()) -> _F:
    """Return a function that numba compiles into those that call it, with these flags of LLVM for f32."""
    return cast(_F, Late(partial(jitted, function, fastmath)))


def jitted(function: Callable[..., Any], fastmath: frozenset[str] = frozenset()) -> Any:
    """Return numba's dispatcher of a function."""
    from numba import njit

    return njit(nogil=True, error_model="numpy", fastmath=set(fastmath))(function)


def _intrinsic(function: Callable[..., Any], prefer_literal: bool) -> Any:
    from numba.extending import intrinsic

    return intrinsic(prefer_literal=prefer_literal)(function)


def literal(type: Any) -> int:
    """Return the number that an integer literal stands for. Raises numba's TypingError for another argument."""
    from numba.core.errors import TypingError

    if not isinstance(type, types.IntegerLiteral):
        raise TypingError("an argument that must be an integer literal is none")
    return type.literal_value


class _Module:
    """A module that is imported when something of it is first used."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(self._name), name)


class _Nothing:
    """Stands for ``llvmlite.ir`` and for the types that modules make of it, where llvmlite is not installed."""

    def __getattr__(self, name: str) -> _Nothing:
        return self

    def __call__(self, *arguments: Any, **named: Any) -> _Nothing:
        return self


if TYPE_CHECKING or find_spec("llvmlite") is not None:
    from llvmlite import ir
else:
    ir = _Nothing()

types: Final[Any] = _Module("numba.types")
cgutils: Final[Any] = _Module("numba.core.cgutils")


def _carray() -> Any:
    from numba.np.numpy_support import carray

    return carray


array_at: Final = cast(Callable[[Any, int | tuple[int, ...]], Any], Late(_carray))
"""``array_at(pointer, shape)`` is the contiguous array of a shape, or of so many elements, at a pointer."""
