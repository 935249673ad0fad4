"""Lines of text that show the user why shapes do not fit together. They become the notes of a diagnostic."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from irrun.types import Dim, product

__all__ = ["clashing", "elements", "in_columns"]


def in_columns(shapes: Mapping[str, Sequence[Dim]], wrong: Collection[int]) -> tuple[str, ...]:
    """Return the shapes, one per line and aligned on their last dims, and a line of ``^`` below the wrong columns.

    ``shapes`` maps a name to its dims. ``wrong`` holds the columns to mark, counted from the end (-1 is the last)::

        a  [8, 3, 32]
        b     [4, 32]
               ^
    """
    rank = max(map(len, shapes.values()))
    rows = {name: [""] * (rank - len(dims)) + [str(d) for d in dims] for name, dims in shapes.items()}
    widths = [max(len(row[i]) for row in rows.values()) for i in range(rank)]
    longest = max(map(len, rows))
    lines = [f"{name:<{longest}}  {_row(row, widths)}" for name, row in rows.items()]
    marks = ["^" * width if i - rank in wrong else " " * width for i, width in enumerate(widths)]
    return (*lines, (" " * (longest + 3) + "  ".join(marks)).rstrip())


def _row(cells: Sequence[str], widths: Sequence[int]) -> str:
    first = next((i for i, cell in enumerate(cells) if cell), len(cells))
    before = sum(width + 2 for width in widths[:first])
    return " " * before + "[" + ", ".join(f"{c:>{w}}" for c, w in zip(cells[first:], widths[first:])) + "]"


def clashing(a: Sequence[Dim], b: Sequence[Dim]) -> dict[int, tuple[Dim, Dim]]:
    """Return the pairs of dims of two shapes that cannot be broadcast, by column (-1 is the last)."""
    pairs = enumerate(zip(reversed(a), reversed(b)), 1)
    return {-i: (x, y) for i, (x, y) in pairs if x.broadcast(y) is None}


def elements(shapes: Mapping[str, Sequence[Dim]]) -> tuple[str, ...]:
    """Return one line per shape that computes its number of elements: ``data  2 * 3 * 4 = 24``."""
    products = {name: " * ".join(map(str, dims)) or "1" for name, dims in shapes.items()}
    name_width, width = max(map(len, products)), max(map(len, products.values()))
    return tuple(f"{name:<{name_width}}  {text:<{width}} = {product(shapes[name])}" for name, text in products.items())
