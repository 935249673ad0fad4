"""What goes to the terminal: consoles, tables and JSON."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from typing import Any, Final, NoReturn

from rich.console import Console
from rich.table import Table
from rich.text import Text

from irrun.checking.render import printable

__all__ = ["console", "print_json", "print_table", "title"]

_UNBOUNDED: Final = 1_000_000


class _Console(Console):
    def on_broken_pipe(self) -> NoReturn:
        raise BrokenPipeError


def console(*, stderr: bool = False) -> Console:
    """A console that prints text as it is: no markup, no guesses, styles on a terminal only, lines of any length."""
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
    out.print(Text(text, "bold"))


def print_table(
    out: Console, columns: Sequence[str], rows: Sequence[Sequence[str | Text]], *, right: Sequence[str] = ()
) -> None:
    """Print rows under their column names, indented; the columns in ``right`` flush right."""
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
    """JSON in ASCII, which every terminal and encoding can carry."""
    sys.stdout.write(json.dumps(data, indent=2, allow_nan=False) + "\n")
