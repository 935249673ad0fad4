"""Print to the terminal: consoles, tables and JSON."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Literal, NoReturn

import click
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from irrun.base.text import printable

__all__ = ["VERSION", "console", "print_json", "print_table", "title"]

_UNBOUNDED: Final = 1_000_000
"""The width in columns of an output that is no terminal: so large that no table is wrapped."""


class _Console(Console):
    def print(self, *objects: Any, **options: Any) -> None:
        texts = [_escaped(item) if isinstance(item, str) else item for item in objects]
        if self.is_terminal or options or not all(isinstance(item, (str, Text)) for item in texts):
            super().print(*texts, **options)
        else:  # without styles: rich would take a millisecond for each finding
            self.file.write(" ".join(item.plain if isinstance(item, Text) else item for item in texts) + "\n")
            self.file.flush()

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
    out: Console,
    columns: Sequence[str],
    rows: Sequence[Sequence[str | Text]],
    *,
    right: Sequence[str] = (),
    cut: Mapping[str, Literal["start", "end"]] | None = None,
    spare: Sequence[str] = (),
) -> None:
    """Print an indented table. The columns named in ``right`` are aligned to the right.

    On a terminal that is too narrow, cells are wrapped. With ``cut``, each row stays one line instead: the cells of the
    columns in ``cut`` lose their start or end, marked with …, and if this is not enough, the columns in ``spare`` are
    left out, the first one first. A number is never broken.
    """
    if cut is not None and out.is_terminal:
        _print_cut(out, columns, rows, right, cut, spare)
        return
    cells = [[Text(printable(cell)) if isinstance(cell, str) else cell for cell in row] for row in rows]
    lines = _fitted(out, columns, cells, right) if out.is_terminal else _unbounded(columns, cells, right)
    for line in lines:
        out.file.write(f"  {line.rstrip()}\n")


_MIN_COLUMN_CHARS: Final = 10
"""The least width to which a column of text is cut: enough to tell most names apart."""


def _print_cut(
    out: Console,
    columns: Sequence[str],
    rows: Sequence[Sequence[str | Text]],
    right: Sequence[str],
    cut: Mapping[str, Literal["start", "end"]],
    spare: Sequence[str],
) -> None:
    """Print a table with a line for each row, as ``print_table`` describes."""
    texts = [[printable(c) if isinstance(c, str) else printable(c.plain) for c in row] for row in (columns, *rows)]
    widths = {name: max(map(cell_len, column)) for name, column in zip(columns, zip(*texts))}
    kept, left_out, room = list(columns), [], out.width - 2

    def needed(least: bool) -> int:
        return sum(min(widths[n], _MIN_COLUMN_CHARS) if least and n in cut else widths[n] for n in kept) + 2 * (
            len(kept) - 1
        )

    for name in spare:
        if needed(least=True) <= room:
            break
        if name in kept:
            kept.remove(name)
            left_out.append(name)
    while needed(least=False) > room:
        widest = max((n for n in kept if n in cut), key=lambda n: widths[n], default=None)
        if widest is None or widths[widest] <= _MIN_COLUMN_CHARS:
            break
        widths[widest] -= 1
    for number, row in enumerate(texts):
        cells = [
            _aligned(_cut(cell, widths[name], cut.get(name, "end")), widths[name], is_right=name in right)
            for name, cell in zip(columns, row)
            if name in kept
        ]
        line = f"  {'  '.join(cells)}".rstrip()
        out.print(Text(line, "dim") if number == 0 else Text(line))
    if left_out:
        out.print(Text(f"  (a wider terminal also shows {', '.join(left_out)})", "dim"))


def _cut(text: str, width: int, end: Literal["start", "end"]) -> str:
    """Return a text of at most ``width`` columns, whose start or end is replaced by … if it is longer.

    A number in it stays whole or is left out.
    """
    if cell_len(text) <= width:
        return text
    if end == "start":
        return _cut(text[::-1], width, "end")[::-1]
    kept = text
    while kept and cell_len(kept) > width - 1:
        kept = kept[:-1]
    if text[len(kept)].isdigit():
        kept = kept.rstrip("0123456789")
    return f"{kept}…"


def _aligned(text: str, width: int, *, is_right: bool) -> str:
    gap = " " * (width - cell_len(text))
    return gap + text if is_right else text + gap


def _fitted(out: Console, columns: Sequence[str], rows: Sequence[Sequence[Text]], right: Sequence[str]) -> list[str]:
    """Return the lines of a table with styles, wrapped to the width of a terminal."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for column in columns:
        number = column in right
        table.add_column(column, justify="right" if number else "left", no_wrap=number, overflow="fold")
    for row in rows:
        table.add_row(*row)
    with out.capture() as captured:
        out.print(table, soft_wrap=False, width=out.width - 2)
    return captured.get().splitlines()


def _unbounded(columns: Sequence[str], rows: Sequence[Sequence[Text]], right: Sequence[str]) -> Iterator[str]:
    """Yield the lines of a table without styles, as wide as its cells. rich takes a millisecond for each row."""
    texts = [columns, *([cell.plain for cell in row] for row in rows)]
    widths = [max(map(cell_len, column)) for column in zip(*texts)]
    for row in texts:
        spaces = (" " * (width - cell_len(cell)) for cell, width in zip(row, widths))
        padded = (gap + cell if name in right else cell + gap for name, cell, gap in zip(columns, row, spaces))
        yield "  ".join(padded)


VERSION: Final = 1
"""The version of the JSON of every command. It changes when a field changes its meaning or goes away."""


def print_json(data: Mapping[str, Any], command: str | None = None) -> None:
    """Print the result of a command as JSON, with its version and the name of the command, in ASCII.

    Every terminal and encoding can show it. The schemas are in ``irrun/cli/schemas``.
    """
    name = click.get_current_context().command_path.partition(" ")[2] if command is None else command
    document = {"version": VERSION, "command": name, **data}
    sys.stdout.write(json.dumps(document, indent=2, allow_nan=False) + "\n")
