"""The processor of this machine."""

from __future__ import annotations

import ctypes
import os
import platform
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Final

__all__ = ["adds_bytes_exactly", "has_flag", "may_use_tiles", "processor"]

_EXACT: Final = {"avx512_vnni", "avx_vnni", "avx_vnni_int8", "amx_int8"}
"""The flags of x86 instructions that add products of 8 bits in 32 bits."""
_INEXACT: Final = {"SSE41", "AVX", "AVX2", "AVX512_CORE"}
"""The values of oneDNN's variable ``ONEDNN_MAX_CPU_ISA`` that forbid these instructions."""

_ARCH_PRCTL: Final = 158
"""The number of this call of Linux on x86-64."""
_REQUEST_PERMISSION: Final = 0x1023
_TILE_DATA: Final = 18
"""The part of the state of a thread that the tiles of AMX are."""


def processor() -> str:
    """Return the name of the processor, or of its architecture if the system does not tell the name."""
    return _fact("model name") or platform.processor() or platform.machine()


def adds_bytes_exactly() -> bool:
    """Return whether the processor has instructions that add products of 8 bits in 32 bits, and oneDNN may use them.

    Other processors add pairs of products in 16 bits first, which may saturate. A system that does not list the
    instructions counts as one of these, unless it is no x86.
    """
    is_x86 = platform.machine().lower() in ("x86_64", "amd64", "i386", "i686")
    is_allowed = os.environ.get("ONEDNN_MAX_CPU_ISA", "").upper() not in _INEXACT
    return not is_x86 or (is_allowed and any(map(has_flag, _EXACT)))


def has_flag(name: str) -> bool:
    """Return whether the system lists an instruction set of the processor, such as ``avx512f``: only Linux does."""
    return name in _fact("flags").split()


@cache
def may_use_tiles() -> bool:
    """Ask Linux for AMX, the registers of Intel's processors that hold tiles of matrices, and return whether it agrees.

    Linux lets all threads of a process use them at once. Other systems, and Linux before 5.16, have no such call.
    """
    if not sys.platform.startswith("linux") or not has_flag("amx_tile"):
        return False
    return ctypes.CDLL(None).syscall(_ARCH_PRCTL, _REQUEST_PERMISSION, _TILE_DATA) == 0


@cache
def _fact(name: str) -> str:
    """Return a line of /proc/cpuinfo, which only Linux has; otherwise an empty text."""
    with suppress(OSError, UnicodeDecodeError):
        for line in Path("/proc/cpuinfo").read_text("utf-8").splitlines():
            if line.startswith(name):
                return line.partition(":")[2].strip()
    return ""
