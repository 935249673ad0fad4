"""Texts for people: counted nouns, sizes, names that a terminal can print, and tables for notebooks."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

__all__ = ["apart", "counted", "human", "printable", "table"]


def apart(first: float, second: float, digits: int = 2) -> tuple[str, str]:
    """Return two numbers as text, with at least so many ``digits`` that different numbers have different texts."""
    while True:
        texts = f"{first:.{digits}g}", f"{second:.{digits}g}"
        if texts[0] != texts[1] or first == second or digits > 17:
            return texts
        digits += 1


def counted(number: int, what: str) -> str:
    """Return a number with its noun in the singular or plural: ``1 input``, ``2 inputs``."""
    return f"{number} {what}{'' if number == 1 else 's'}"


def printable(text: str) -> str:
    """Return the text with control and other unprintable characters escaped, so that a terminal shows them.

    Every name from a file, and every file name, passes through this function before it is printed: a line break would
    forge a line of the report, and an escape sequence would control the terminal.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def human(size: float) -> str:
    """Return a number of bytes in a readable unit: ``1.5 GiB``."""
    for unit in ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB"):
        if size < 1024 or unit == "PiB":
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1024
    return ""


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return a table with a title. Every text is escaped."""
    head = "".join(f"<th>{escape(column)}</th>" for column in columns)
    body = "".join(f"<tr>{''.join(f'<td>{escape(str(cell))}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><caption>{escape(title)}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
