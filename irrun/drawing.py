"""Shapes that do not go together, drawn as lines of text."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from irrun.types import Dim, product

__all__ = ["clashing", "elements", "in_columns"]


def in_columns(shapes: Mapping[str, Sequence[Dim]], wrong: Collection[int]) -> tuple[str, ...]:
    """Shapes below each other, aligned to the right, with the columns in ``wrong`` (-1 is the last) marked.

    ::

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
    """The columns, -1 the last, in which the dims of two shapes cannot be broadcast."""
    pairs = enumerate(zip(reversed(a), reversed(b)), 1)
    return {-i: (x, y) for i, (x, y) in pairs if x.broadcast(y) is None}


def elements(shapes: Mapping[str, Sequence[Dim]]) -> tuple[str, ...]:
    """How many elements shapes have: ``data  2 * 3 * 4 = 24``."""
    products = {name: " * ".join(map(str, dims)) or "1" for name, dims in shapes.items()}
    name_width, width = max(map(len, products)), max(map(len, products.values()))
    return tuple(f"{name:<{name_width}}  {text:<{width}} = {product(shapes[name])}" for name, text in products.items())
