"""LLVM's library, of which 40 MB stay in memory unless they are released."""

from __future__ import annotations

import ctypes
import mmap
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

__all__ = ["binding", "release_library"]


@cache
def binding() -> Any:
    """Return the module ``llvmlite.binding``."""
    import llvmlite.binding as llvm

    release_library()  # importing it has read most of the library
    return llvm


def release_library() -> None:
    """Release the pages of LLVM's library that only its own code needs: 40 MB, which the system reads again on demand.

    Does nothing but on Linux. Pages that differ from the file, such as relocated addresses, stay.
    """
    with suppress(OSError, AttributeError):
        regions = Path("/proc/self/smaps").read_text().split("\nVmFlags")
        for begin, end in _unchanged(regions, "libllvmlite"):
            ctypes.CDLL(None).madvise(ctypes.c_void_p(begin), ctypes.c_size_t(end - begin), mmap.MADV_DONTNEED)


def _unchanged(regions: Iterable[str], library: str) -> Iterator[tuple[int, int]]:
    """Yield the addresses of the regions of a library in which every page is as the file has it."""
    for region in regions:
        if library in region and re.search(r"^Anonymous: +0 kB", region, re.MULTILINE):
            found = re.search(r"^([0-9a-f]+)-([0-9a-f]+) r", region, re.MULTILINE)
            if found is not None:
                yield int(found[1], 16), int(found[2], 16)
