"""What the compiler has to know of the processor: the width of its vectors and how many of them it holds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar, cast

from irrun.fast.machine.entries import architecture, processor
from irrun.fast.machine.machine_code import MachineCode

__all__ = ["HALVES", "ROWS", "VECTOR", "VECTORS", "compiled", "has"]

_FEATURES: Final = frozenset(processor()[1].split(","))


def has(feature: str) -> bool:
    """Return whether the processor has a feature, by the name that LLVM gives it."""
    return f"+{feature}" in _FEATURES


VECTOR: Final = 16 if has("avx512f") else 8 if has("avx") else 4
"""Floats (f32) in a vector."""
ROWS: Final = 6
"""Rows of a block of results that stays in registers. Such a block takes ``ROWS * VECTORS`` vectors, the row of weights
``VECTORS`` more, and the repeated element of the other matrix one."""
VECTORS: Final = 4 if has("avx512f") or architecture() == "aarch64" else 2
"""Vectors of a row of that block: with AVX-512 and NEON, 32 registers hold 24 + 4 + 1, with AVX 16 hold 12 + 2 + 1."""
HALVES: Final = has("f16c") or has("avx512f") or architecture() == "aarch64"
"""Whether one instruction widens a vector of f16 to f32."""

_F = TypeVar("_F", bound=Callable[..., Any])


def compiled(function: _F) -> _F:
    """Compile a function at its first call for each combination of argument types, without the interpreter's lock.

    The machine code is kept on disk (see ``machine_code``), if a folder can be written to.
    """
    return cast(_F, MachineCode(function))
