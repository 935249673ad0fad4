"""Print errors, and choose the exit status for them."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterable, Sequence
from typing import Final

from irrun.base.text import printable
from irrun.checking.render import record, text
from irrun.cli import _terminal
from irrun.diagnostics import Diagnostic, IrrunError

__all__ = ["exit_status", "failed", "print_json", "show"]

_MAX_SHOWN: Final = 10
"""The most diagnostics that ``show`` prints: they fill a screen. `irrun check` prints all."""


def exit_status(diagnostics: Iterable[Diagnostic]) -> int:
    """Return the exit status for diagnostics: the first of 2, 1, 3 and 0 that one of their kinds has.

    It is 3 only if irrun lacks an operation and there is no other error, and 0 without errors.
    """
    statuses = {d.kind.exit_status for d in diagnostics}
    return next((status for status in (2, 1, 3) if status in statuses), 0)


def show(diagnostics: Sequence[Diagnostic]) -> None:
    """Print the first ``_MAX_SHOWN`` diagnostics to standard error, and the number of the others."""
    sys.stdout.flush()
    err = _terminal.console(stderr=True)
    for number, diagnostic in enumerate(diagnostics[:_MAX_SHOWN]):
        if number:
            err.print()
        err.print(text(diagnostic), end="")
    if len(diagnostics) > _MAX_SHOWN:
        err.print(f"\nand {len(diagnostics) - _MAX_SHOWN} more; `irrun check` lists them")


def print_json(command: str | None, status: int, message: str, error: BaseException | None) -> None:
    """Print the error that ends a command as JSON, with its diagnostics if it is an IrrunError."""
    diagnostics = [record(d) for d in error.diagnostics] if isinstance(error, IrrunError) else []
    first = diagnostics[0]["message"] if diagnostics else (message or type(error).__name__).splitlines()[0]
    _terminal.print_json({"error": {"status": status, "message": first, "diagnostics": diagnostics}}, command or "")


def failed(error: Exception) -> int:
    """Print an exception to standard error, and return the exit status for it.

    The status is that of the diagnostics of an IrrunError, 2 for an OSError, 1 for a MemoryError, and 70 for any
    other exception, which is a bug in irrun.
    """
    if isinstance(error, IrrunError):
        show(error.diagnostics)
        return exit_status(error.diagnostics)
    sys.stdout.flush()
    err = _terminal.console(stderr=True)
    if isinstance(error, OSError):
        place = f"{error.filename}: " if error.filename else ""
        err.print(printable(f"irrun: {place}{(error.strerror or str(error)).lower()}"))
        return 2
    if isinstance(error, MemoryError):
        err.print(printable(f"irrun: out of memory: {error}"))
        return 1
    err.print("this is a bug in irrun; please report it with the following text:")
    err.print("".join(traceback.format_exception(error)), end="")
    return 70
