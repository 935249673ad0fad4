"""The processor of this machine."""

from __future__ import annotations

import platform
from contextlib import suppress
from functools import cache
from pathlib import Path

__all__ = ["processor"]


@cache
def processor() -> str:
    """Return the name of the processor, or of its architecture if the system does not tell the name."""
    with suppress(OSError, UnicodeDecodeError):
        for line in Path("/proc/cpuinfo").read_text("utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
