"""Tables in HTML, for notebooks."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

__all__ = ["table"]


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return a table with a title. Every text is escaped."""
    head = "".join(f"<th>{escape(column)}</th>" for column in columns)
    body = "".join(f"<tr>{''.join(f'<td>{escape(str(cell))}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><caption>{escape(title)}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
