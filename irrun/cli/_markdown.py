"""The result of ``irrun diff`` with files as Markdown: a comment for a pull request or a merge request."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape
from typing import Final

from irrun.base.text import counted, printable
from irrun.cli import _difference, _mermaid
from irrun.debug.difference import Change, Difference, LayerDifference

__all__ = ["comment"]

_MAX_BYTES: Final = 60_000
"""The most bytes of a comment. GitHub refuses more than 65,536 characters; a workflow may add a heading and links."""
_MAX_SUMMARY_BYTES: Final = 4_000
_MAX_TYPES: Final = 12
"""The most types that a line of the summary names."""
_MAX_TEXT_CHARS: Final = 120
"""The most characters of a name."""
_MAX_CHANGES: Final = 12
"""The most changes that the row of a layer lists."""
_HEAD: Final = ["| | layer | line | difference |", "| --- | --- | --- | --- |"]


def comment(difference: Difference, *, everything: bool) -> str:
    """Return a difference as Markdown of at most ``_MAX_BYTES``: verdict, summary, picture and tables of the layers.

    Layers that differ like three others are folded. ``everything`` also lists the layers that follow from others. The
    text says what is left out.
    """
    verdict = "is the same model as" if difference.same else "differs from"
    page = _Page([f"**{_code(difference.b)} {verdict} {_code(difference.a)}.**", ""])
    if difference.same and not difference.uncompared:
        return page.lines[0]
    lines = (
        f"- {line}" for line in _difference.summary(difference, everything=everything, shown=_code, most=_MAX_TYPES)
    )
    if left := page.fill(lines, page.size + _MAX_SUMMARY_BYTES):
        page.add(f"- … and {counted(left, 'more line')}")
    layers = [layer for layer in difference.layers if everything or not layer.follows]
    shown, others = _difference.folded(layers)
    if shown:
        page.add("", *_mermaid.flowchart(shown, layers))
    rows = [_row("", "model", "", difference.model)] if difference.model else []
    page.table([*rows, *map(_layer_row, shown)])
    for kind, folded in sorted(others.items(), key=lambda item: len(item[1])):
        page.table(map(_layer_row, folded), f"{len(folded):,} more: <code>{escape(_cut(kind))}</code>")
    if page.left:
        verb = "does" if page.left == 1 else "do"
        page.lines += ["", f"{counted(page.left, 'layer')} {verb} not fit; `irrun diff --all` lists them."]
    return "\n".join(page.lines)


class _Page:
    """The lines of a comment, their size in bytes, and how many rows did not fit."""

    def __init__(self, lines: list[str]) -> None:
        self.lines = lines
        self.size = _size(lines)
        self.left = 0

    def add(self, *lines: str) -> None:
        self.lines += lines
        self.size += _size(lines)

    def fill(self, lines: Iterable[str], most: int) -> int:
        """Add the lines as long as the page has at most ``most`` bytes, and return how many are left out."""
        left = 0
        for line in lines:
            if left or self.size + _size([line]) > most:
                left += 1
            else:
                self.add(line)
        return left

    def table(self, rows: Iterable[str], title: str = "") -> None:
        """Add a table, or a part of it, folded under its title if it has one."""
        rows = list(rows)
        begin = ["", f"<details><summary>{title}</summary>"] if title else []
        end = ["", "</details>"] if title else []
        frame = [*begin, "", *_HEAD, *end]
        if not rows or self.size + _size([*frame, rows[0]]) > _MAX_BYTES:
            self.left += len(rows)
            return
        self.add(*begin, "", *_HEAD)
        self.left += self.fill(rows, _MAX_BYTES - _size(end))
        self.add(*end)


def _size(lines: Iterable[str]) -> int:
    return sum(len(line.encode()) + 1 for line in lines)


def _layer_row(layer: LayerDifference) -> str:
    places = [place for place in (layer.a, layer.b) if place is not None]
    first = places[0]
    inside = f" in {_code(first.inside)}" if first.inside else ""
    lines = dict.fromkeys(str(place.line) for place in places if place.line is not None)
    note = "paired by order" if layer.changes and layer.by == "order" else ""
    return _row(
        layer.status, f"{_code(first.type)} {_code(first.name)}{inside}", " → ".join(lines), layer.changes, note
    )


def _row(status: str, title: str, line: str, changes: Sequence[Change], note: str = "") -> str:
    texts = [_change(change) for change in changes[:_MAX_CHANGES]]
    if len(changes) > _MAX_CHANGES:
        texts.append(f"… and {len(changes) - _MAX_CHANGES} more")
    return f"| {status} | {title} | {line} | {'<br>'.join([*texts, *([note] if note else [])])} |"


def _change(change: Change) -> str:
    name = _code(_difference.change_name(change))
    if change.error is not None:
        return f"{name}: {_difference.figures(change)}"
    sides = ("nothing" if text is None else _code(text or '""') for text in (change.a, change.b))
    return f"{name}: {' → '.join(sides)}"


def _code(text: str) -> str:
    """Return a text from a file as code, so that nothing in it is Markdown, HTML, a mention or a reference."""
    text = _cut(text)
    if re.search(r"[`|]|^\s|\s$|^$", text):  # in a table, a bar ends the cell
        return f"<code>{re.sub(r'[^0-9A-Za-z ]', lambda match: f'&#{ord(match[0])};', text)}</code>"
    return f"`{text}`"


def _cut(text: str) -> str:
    return printable(text if len(text) <= _MAX_TEXT_CHARS else f"{text[:_MAX_TEXT_CHARS]}…")
