"""Machine code that was made ahead of time: the libraries of the package ``irrun-fast``.

The package holds a shared library for each of ``TARGETS``. A library exports the entries of kernels under ``name_of``
(see ``entries``), and a symbol that names the source text it was made from. A process that finds a library needs
neither numba nor llvmlite, and waits for no compiler. ``python -m tools ahead`` makes the package.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import struct
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from irrun.base.processor import has_flag, may_use_tiles

__all__ = [
    "PACKAGE",
    "TARGETS",
    "Library",
    "Target",
    "digest",
    "is_installed",
    "library",
    "marker",
    "name_of",
    "source",
]

PACKAGE: Final = "irrun_fast"
"""The package that holds the libraries."""
_SSE: Final = "+sse3,+ssse3,+sse4.1,+sse4.2,+popcnt,+cx16"
_V3: Final = f"{_SSE},+avx,+avx2,+bmi,+bmi2,+f16c,+fma,+lzcnt,+movbe,+xsave"
_V4: Final = f"{_V3},+avx512f,+avx512bw,+avx512cd,+avx512dq,+avx512vl,-prefer-256-bit"
_V4_FLAGS: Final = ("avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl")
_BF16: Final = f"{_V4},+avx512vnni,+avx512bf16"
_BF16_FLAGS: Final = (*_V4_FLAGS, "avx512_vnni", "avx512_bf16")
_AMX_FLAGS: Final = ("amx_tile", "amx_bf16", "amx_int8")


@dataclass(frozen=True)
class Target:
    """A kind of processor: its name and features as LLVM writes them, and the flags by which Linux lists them."""

    cpu: str
    features: str
    flags: tuple[str, ...]

    def runs_here(self) -> bool:
        """Return whether this processor has the features, and this process may use them."""
        return all(map(has_flag, self.flags)) and ("amx_tile" not in self.flags or may_use_tiles())


TARGETS: Final[Mapping[str, Target]] = {
    "x86-64-v4-amx": Target("x86-64-v4", f"{_BF16},+amx-tile,+amx-bf16,+amx-int8", (*_BF16_FLAGS, *_AMX_FLAGS)),
    "x86-64-v4-bf16": Target("x86-64-v4", _BF16, _BF16_FLAGS),
    "x86-64-v4-vnni": Target("x86-64-v4", f"{_V4},+avx512vnni", (*_V4_FLAGS, "avx512_vnni")),
    "x86-64-v4": Target("x86-64-v4", _V4, _V4_FLAGS),
    "x86-64-v3": Target("x86-64-v3", _V3, ("avx2", "bmi2", "f16c", "fma")),
}
"""The kinds of processors that have a library, by its name; the best first."""


@dataclass(frozen=True)
class Library:
    """A library that this process has loaded."""

    target: Target
    code: Any

    def address(self, base: str, types: tuple[Any, ...]) -> int | None:
        """Return the address of the entry of a kernel for arguments of these types, or None if it has none."""
        with suppress(AttributeError):
            return ctypes.cast(getattr(self.code, name_of(base, types, self.target)), ctypes.c_void_p).value
        return None


@cache
def library() -> Library | None:
    """Return the best library that this processor runs, or None if none belongs to this source text.

    There is none if NUMBA_CPU_NAME or NUMBA_CPU_FEATURES name another processor to compile for.
    """
    if "NUMBA_CPU_NAME" in os.environ or "NUMBA_CPU_FEATURES" in os.environ:
        return None
    spec = find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations or platform.machine().lower() not in ("x86_64", "amd64"):
        return None
    for name, target in TARGETS.items():
        file = Path(spec.submodule_search_locations[0]) / f"{name}.so"
        if file.exists() and target.runs_here():
            code = ctypes.CDLL(str(file))
            return Library(target, code) if hasattr(code, marker()) else None
    return None


def is_installed() -> bool:
    """Return whether the package is installed, whatever source text it belongs to."""
    return find_spec(PACKAGE) is not None


def name_of(base: str, types: tuple[Any, ...], target: Target) -> str:
    """Return the symbol of an entry: that of the kernel ``base`` for arguments of these types."""
    abi = object.__basicsize__, struct.calcsize("P")
    return f"{base}.{digest(repr((target, abi, types)).encode()).hex()}"


def marker() -> str:
    """Return the symbol by which a library names the source text it was made from."""
    return f"irrun.source.{source()}"


@cache
def source() -> str:
    """Return a digest of the source text of all compiled kernels."""
    files = sorted(Path(__file__).parents[1].rglob("*.py"))
    return digest(b"".join(file.read_bytes() for file in files)).hex()


def digest(data: bytes) -> bytes:
    """Return a digest of 8 bytes."""
    return hashlib.blake2b(data, digest_size=8).digest()  # unlike sha256, it needs nothing of OpenSSL
