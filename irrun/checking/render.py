"""Render one diagnostic: as text with its source line, as a single line, or as a dict for JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Final

from rich.cells import cell_len
from rich.text import Text

from irrun.base.edits import Fix
from irrun.base.text import printable
from irrun.diagnostics import Diagnostic

__all__ = ["concise", "record", "text"]

_MAX_LINE_CHARS: Final = 120
"""The most characters shown of a source line, because an IR may be written on one line of megabytes."""

_COLOURS: Final = {"error": "bold red", "warning": "bold yellow"}


def text(diagnostic: Diagnostic) -> Text:
    """Return a diagnostic with its place, source line and notes, as a compiler shows it.

    The text has colours; its attribute ``plain`` is the same text without them.
    """
    colour = _COLOURS[diagnostic.severity]
    out = Text()
    out.append(f"{diagnostic.severity}[{diagnostic.code} {diagnostic.name}]", colour)
    out.append(f": {printable(diagnostic.message)}\n", "bold")
    gutter = len(str(diagnostic.line)) if diagnostic.line else 1
    if diagnostic.file and diagnostic.code not in ("IR000", "IR011"):  # these messages name the file
        out.append(" " * gutter + "--> ", "blue").append(f"{_place(diagnostic)}\n")
    if diagnostic.span and diagnostic.source:
        line, before, marked = _excerpt(
            diagnostic.source.line(diagnostic.span.line), diagnostic.span.column, diagnostic.span.end
        )
        out.append(" " * gutter + " |\n", "blue")
        out.append(f"{diagnostic.span.line} | ", "blue").append(f"{line}\n")
        out.append(" " * gutter + " | ", "blue").append(" " * before).append("^" * marked + "\n", colour)
    for note in filter(None, diagnostic.notes):
        out.append(" " * gutter + " = ", "blue").append(f"{printable(note)}\n")
    if diagnostic.help:
        out.append(" " * gutter + " = ", "blue").append("help: ", "green").append(f"{printable(diagnostic.help)}\n")
    return out


def concise(diagnostic: Diagnostic) -> str:
    """Return a diagnostic on one line: ``net.xml:57:12: IR401 message``."""
    place = _place(diagnostic)
    return f"{place}{': ' if place else ''}{diagnostic.code} {printable(diagnostic.message)}"


def record(diagnostic: Diagnostic) -> dict[str, Any]:
    """Return a diagnostic as a dict for JSON."""
    return {
        "code": diagnostic.code,
        "name": diagnostic.name,
        "severity": diagnostic.severity,
        "message": diagnostic.message,
        "layer": diagnostic.layer,
        "port": diagnostic.port,
        "file": diagnostic.file,
        "line": diagnostic.line,
        "column": diagnostic.column,
        "end_column": diagnostic.span.end if diagnostic.span else None,
        "label": diagnostic.label,
        "notes": [note for note in diagnostic.notes if note],
        "help": diagnostic.help,
        "fix": _fix(diagnostic.fix) if diagnostic.fix else None,
    }


def _fix(fix: Fix) -> dict[str, Any]:
    return {"title": fix.title, "edits": [asdict(edit) for edit in fix.edits], "safe": fix.safe}


def _place(diagnostic: Diagnostic) -> str:
    place = printable(diagnostic.file or "")
    return f"{place}:{diagnostic.span.line}:{diagnostic.span.column}" if diagnostic.span else place


def _excerpt(line: str, column: int, end: int) -> tuple[str, int, int]:
    """Return the part of a source line to show, and the widths of the text before the mark and of the marked text.

    ``column`` and ``end`` count from 1, and ``end`` is the column past the mark. Widths are in terminal cells.
    """
    start, stop = column - 1, max(end - 1, column)
    first = 0 if len(line) <= _MAX_LINE_CHARS else max(0, start - _MAX_LINE_CHARS // 3)
    stop = min(stop, first + _MAX_LINE_CHARS)
    head = ("..." if first else "") + _flat(line[first:start])
    marked = _flat(line[start:stop])
    tail = _flat(line[stop : first + _MAX_LINE_CHARS]) + ("..." if len(line) > first + _MAX_LINE_CHARS else "")
    return (head + marked + tail).rstrip(), cell_len(head), max(cell_len(marked), 1)


def _flat(text: str) -> str:
    return printable(text.replace("\t", "    "))
