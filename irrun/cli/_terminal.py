"""Print to the terminal: consoles, tables and JSON."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from typing import Any, Final, NoReturn

from rich.console import Console
from rich.table import Table
from rich.text import Text

from irrun.diagnostics import printable

__all__ = ["console", "print_json", "print_table", "title"]

_UNBOUNDED: Final = 1_000_000
"""The width in columns of an output that is no terminal: so large that no table is wrapped."""


class _Console(Console):
    def print(self, *objects: Any, **options: Any) -> None:
        super().print(*(_escaped(item) if isinstance(item, str) else item for item in objects), **options)

    def on_broken_pipe(self) -> NoReturn:
        raise BrokenPipeError


def _escaped(text: str) -> str:
    """Return text whose lines are printable. The caller escapes names itself, because they may hold line breaks."""
    return "\n".join(printable(line) for line in text.split("\n"))


def console(*, stderr: bool = False) -> Console:
    """Return a console on standard output, or on standard error if ``stderr``.

    It prints text unchanged: no markup, no highlighting, no line breaks. Styles are printed only on a terminal.
    """
    stream = sys.stderr if stderr else sys.stdout
    return _Console(
        stderr=stderr,
        width=None if stream.isatty() else _UNBOUNDED,
        color_system=None if os.environ.get("NO_COLOR") else "auto",
        markup=False,
        highlight=False,
        emoji=False,
        soft_wrap=True,
    )


def title(out: Console, text: str) -> None:
    """Print a heading."""
    out.print(Text(text, "bold"))


def print_table(
    out: Console, columns: Sequence[str], rows: Sequence[Sequence[str | Text]], *, right: Sequence[str] = ()
) -> None:
    """Print an indented table. The columns named in ``right`` are aligned to the right."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for column in columns:
        number = column in right
        table.add_column(column, justify="right" if number else "left", no_wrap=number, overflow="fold")
    for row in rows:
        table.add_row(*(Text(printable(cell)) if isinstance(cell, str) else cell for cell in row))
    with out.capture() as captured:
        out.print(table, soft_wrap=False, width=out.width - 2)
    for line in captured.get().splitlines():
        out.file.write(f"  {line.rstrip()}\n")


def print_json(data: Any) -> None:
    """Print JSON in ASCII, which every terminal and encoding can show."""
    sys.stdout.write(json.dumps(data, indent=2, allow_nan=False) + "\n")
