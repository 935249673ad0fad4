"""What went wrong, and the exit status for it."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterable, Sequence
from typing import Final

from irrun.checking.render import text
from irrun.cli import _terminal
from irrun.diagnostics import Diagnostic, IrrunError

__all__ = ["UNREADABLE", "exit_status", "failed", "show"]

UNREADABLE: Final = ("IR000", "IR001", "IR002", "IR003", "IR004", "IR005", "IR006")
"""Codes that mean: there is no model to speak about."""
_UNSUPPORTED: Final = ("IR201", "IR207")
_MOST: Final = 10


def exit_status(found: Iterable[Diagnostic]) -> int:
    """2 where an input cannot be read or does not fit, 3 where all errors are irrun's gaps, 1 for any other error."""
    codes = {d.code for d in found if d.severity == "error"}
    if not codes:
        return 0
    if codes & {*UNREADABLE, "IR601", "IR606"}:
        return 2
    return 3 if codes <= {*_UNSUPPORTED} else 1


def show(found: Sequence[Diagnostic]) -> None:
    """Print diagnostics to stderr, the first of many."""
    sys.stdout.flush()
    err = _terminal.console(stderr=True)
    for number, diagnostic in enumerate(found[:_MOST]):
        if number:
            err.print()
        err.print(text(diagnostic), end="")
    if len(found) > _MOST:
        err.print(f"\nand {len(found) - _MOST} more; `irrun check` lists them")


def failed(error: Exception) -> int:
    """Tell the user about an exception; the exit status for it."""
    if isinstance(error, IrrunError):
        show(error.diagnostics)
        return exit_status(error.diagnostics)
    sys.stdout.flush()
    err = _terminal.console(stderr=True)
    if isinstance(error, OSError):
        place = f"{error.filename}: " if error.filename else ""
        err.print(f"irrun: {place}{(error.strerror or str(error)).lower()}")
        return 2
    if isinstance(error, MemoryError):
        err.print(f"irrun: out of memory: {error}")
        return 1
    err.print("this is a bug in irrun; please report it with what follows:")
    err.print("".join(traceback.format_exception(error)), end="")
    return 70
