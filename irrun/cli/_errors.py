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

__all__ = ["UNREADABLE", "exit_status", "failed", "print_json", "show"]

UNREADABLE: Final = ("IR000", "IR001", "IR002", "IR003", "IR004", "IR005", "IR006")
"""The codes of files that cannot be read, so that there is no model to check."""
_UNUSABLE: Final = ("IR701", "IR702", "IR703", "IR704", "IR705", "IR706")
"""The codes of comparisons that cannot be made: the fault is in the command, not in a model."""
_NO_LANGUAGE_MODEL: Final = ("IR801", "IR802")
"""The codes of folders that hold no language model, and of its configuration and settings if they cannot be read."""
_UNSUPPORTED: Final = ("IR201", "IR207")
"""The codes of operations and operation sets that irrun does not know."""
_MOST: Final = 10
"""The most diagnostics that ``show`` prints: they fill a screen. `irrun check` prints all."""


def exit_status(diagnostics: Iterable[Diagnostic]) -> int:
    """Return the exit status for diagnostics. Warnings do not count.

    It is 2 if a file cannot be read, an input or a selected layer does not fit the model, or two sides cannot be
    compared; 3 if irrun does not support an operation and there is no other error, 1 for any other error, and 0 without
    errors.
    """
    codes = {d.code for d in diagnostics if d.severity == "error"}
    if not codes:
        return 0
    if codes & {*UNREADABLE, *_UNUSABLE, *_NO_LANGUAGE_MODEL, "IR011", "IR601", "IR606", "IR609"}:
        return 2
    return 3 if codes <= {*_UNSUPPORTED} else 1


def show(diagnostics: Sequence[Diagnostic]) -> None:
    """Print the first ``_MOST`` diagnostics to standard error, and the number of the others."""
    sys.stdout.flush()
    err = _terminal.console(stderr=True)
    for number, diagnostic in enumerate(diagnostics[:_MOST]):
        if number:
            err.print()
        err.print(text(diagnostic), end="")
    if len(diagnostics) > _MOST:
        err.print(f"\nand {len(diagnostics) - _MOST} more; `irrun check` lists them")


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
