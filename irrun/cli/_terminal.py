"""Print to the terminal: consoles, tables and JSON."""

from __future__ import annotations

import json
import os
import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NoReturn

import click
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from irrun.base.text import printable
from irrun.cli._names import cut, readable_width, shortened

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
    whole: Sequence[str] = (),
    spare: Sequence[str] | None = None,
    is_prose: bool = False,
) -> None:
    """Print an indented table. The columns named in ``right`` are aligned to the right.

    On a terminal that is too narrow, each row stays one line: names are shortened so that none becomes equal to
    another, other texts lose their end, and the columns in ``spare`` are left out, the first one first, by default the
    last column first. The last line says which. The columns in ``right``, which hold numbers, and those in ``whole``
    are never cut. A table that ``is_prose`` is wrapped instead.
    """
    cells = [[Text(printable(cell)) if isinstance(cell, str) else cell for cell in row] for row in rows]
    if not out.is_terminal:
        lines: Iterable[str] = _unbounded(columns, cells, right)
    elif is_prose:
        lines = _wrapped(out, columns, cells, right)
    else:
        _print_fitted(out, columns, cells, (*right, *whole), columns[:0:-1] if spare is None else spare)
        return
    for line in lines:
        out.file.write(f"  {line.rstrip()}\n")


_NAMES: Final = (
    *("name", "layer", "model", "node", "place", "operation", "runs in", "between", "and"),
    *("also called", "consumers"),
)
"""The titles of columns that hold names, and are shortened so that no two names become equal."""
_MIN_COLUMN_CHARS: Final = 10
"""The least width to which a column of text or names is cut."""

_GOOD_NAME_CHARS: Final = 28
"""The least width of names for which columns are left out: it shows two or three parts of most names."""
_GOOD_NAME_SHARE: Final = 0.4
"""The share of a terminal that names get before columns are left out, if this is more."""
_GOOD_TEXT_CHARS: Final = 14
"""The width of other texts for which columns are left out: it shows a shape of four small dims."""
_GOOD_TYPE_CHARS: Final = 22
"""The width of types for which columns are left out: it shows ``2 layers, MatMul … Add``."""


def _print_fitted(
    out: Console, columns: Sequence[str], rows: Sequence[Sequence[Text]], whole: Sequence[str], spare: Sequence[str]
) -> None:
    """Print a table with a line for each row, as ``print_table`` describes. The columns in ``whole`` are never cut."""
    texts = {title: [printable(row[number].plain) for row in rows] for number, title in enumerate(columns)}
    room = out.width - 2
    last = [title for title in columns[:0:-1] if title not in spare]
    left_out: list[str] = []
    while True:
        kept, more = _fit(texts, whole, spare, room)
        left_out += more
        shown = {
            title: shortened(texts[title], width) if title in _NAMES else [cut(cell, width) for cell in texts[title]]
            for title, width in kept.items()
        }
        for title, column in shown.items():  # a name that cannot be told from others otherwise is longer
            kept[title] = max(map(cell_len, (title, *column)))
        texts = {title: texts[title] for title in kept}
        if _needed(kept) <= room or len(texts) == 1:
            break
        left_out.append(next(title for title in (*spare, *last) if title in texts))
        del texts[left_out[-1]]
    head = "  ".join(_aligned(title, width, is_right=title in whole) for title, width in kept.items())
    out.print(Text(f"  {head}".rstrip(), "dim"))
    for number, row in enumerate(rows):
        line = Text("  ")
        for title, width in kept.items():
            cell = _aligned(shown[title][number], width, is_right=title in whole)
            line.append(f"{'  ' if len(line) > 2 else ''}{cell}", row[columns.index(title)].style)
        line.rstrip()
        out.print(line)
    if left_out:
        note = f"columns left out: {', '.join(left_out)}; use a wider terminal or --format json"
        for text in textwrap.wrap(note, room, break_on_hyphens=False):
            out.print(Text(f"  {text}", "dim"))


def _fit(
    texts: Mapping[str, Sequence[str]], whole: Sequence[str], spare: Sequence[str], room: int
) -> tuple[dict[str, int], list[str]]:
    """Return the width of each column that is shown in ``room``, and the titles of the columns that are not.

    The columns in ``whole`` keep their width. First texts give up room, and names but those of the first column, then
    columns are left out until each name can be read, then names are abbreviated.
    """
    widths = {title: max(map(cell_len, (title, *column))) for title, column in texts.items()}
    first = next((title for title in widths if title in _NAMES), "")
    good = max(_GOOD_NAME_CHARS, int(_GOOD_NAME_SHARE * room))
    least = {
        title: min(width, max(readable_width(texts[title]), good))
        if title in _NAMES
        else width
        if title in whole
        else min(width, max(_GOOD_TYPE_CHARS if title == "type" else _GOOD_TEXT_CHARS, len(title)))
        for title, width in widths.items()
    }
    left_out: list[str] = []
    for title in spare:
        if _needed(least) <= room:
            break
        if title in least:
            del least[title], widths[title]
            left_out.append(title)
    for floor, titles in (
        (least, [title for title in widths if title != first]),
        (least, list(widths)),
        (dict.fromkeys(widths, _MIN_COLUMN_CHARS), [title for title in widths if title not in whole]),
    ):
        while _needed(widths) > room and (wide := [title for title in titles if widths[title] > floor[title]]):
            widths[max(wide, key=lambda title: widths[title])] -= 1
    return widths, left_out


def _needed(widths: Mapping[str, int]) -> int:
    """Return the width of a table, with two columns between each two of its own."""
    return sum(widths.values()) + 2 * (len(widths) - 1)


def _aligned(text: str, width: int, *, is_right: bool) -> str:
    gap = " " * (width - cell_len(text))
    return gap + text if is_right else text + gap


def _wrapped(out: Console, columns: Sequence[str], rows: Sequence[Sequence[Text]], right: Sequence[str]) -> list[str]:
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
