"""A change of Python code, and the source that it is made of."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from functools import cached_property

__all__ = ["Change", "Source"]


@dataclass(frozen=True)
class Change:
    """A replacement of the bytes ``start`` to ``end`` of a module's source."""

    kind: str
    start: int
    end: int
    text: str
    line: int
    """The line that ``start`` is in, counted from 1."""
    scope: tuple[int, int]
    """The first and the last line of the innermost function around it, or of the module."""
    at_import: bool
    """Whether the code runs when the module is imported."""

    def apply(self, source: bytes) -> bytes:
        return source[: self.start] + self.text.encode() + source[self.end :]

    def lines(self, source: bytes) -> tuple[str, str]:
        """The lines that change, before and after, without their common indentation."""
        first = source.rfind(b"\n", 0, self.start) + 1
        last = source.find(b"\n", self.end)
        last = len(source) if last < 0 else last
        after = source[first : self.start] + self.text.encode() + source[self.end : last]
        return _stripped(source[first:last]), _stripped(after)


def _stripped(text: bytes) -> str:
    return "\n".join(line.strip() for line in text.decode().split("\n"))


class Source:
    """The code of a module, and the places of its expressions and statements."""

    def __init__(self, source: bytes) -> None:
        self.source = source
        self.tree = ast.parse(source)
        self.scope: tuple[int, int] = (1, source.count(b"\n") + 1)
        self.at_import = True

    @cached_property
    def starts(self) -> list[int]:
        """The offset of each line."""
        return [0, *(match.end() for match in re.finditer(rb"\n", self.source))]

    def span(self, node: ast.AST) -> tuple[int, int]:
        place: ast.expr = node  # pyright: ignore[reportAssignmentType]  # statements have the same fields
        assert place.end_lineno is not None
        assert place.end_col_offset is not None
        return self.starts[place.lineno - 1] + place.col_offset, self.starts[
            place.end_lineno - 1
        ] + place.end_col_offset

    def text(self, node: ast.AST) -> str:
        start, end = self.span(node)
        return self.source[start:end].decode()

    def change(self, kind: str, start: int, end: int, text: str) -> Change:
        line = self.source.count(b"\n", 0, start) + 1
        return Change(kind, start, end, text, line, self.scope, self.at_import)

    def replace(self, kind: str, node: ast.AST, text: str) -> Change:
        return self.change(kind, *self.span(node), text)

    def between(self, kind: str, left: ast.AST, right: ast.AST, old: str, new: str) -> Change:
        """Replace the operator between two operands; parentheses and comments stay."""
        start, end = self.span(left)[1], self.span(right)[0]
        gap = self.without_comments(start, end)
        pattern = r"\b" + old.replace(" ", r"\s+") + r"\b" if old[0].isalpha() else re.escape(old)
        found = re.search(pattern.encode(), gap)
        assert found is not None, (old, gap)
        return self.change(kind, start + found.start(), start + found.end(), new)

    def without_comments(self, start: int, end: int) -> bytes:
        """What stands between two expressions, with spaces for comments."""
        return re.sub(rb"#[^\n]*", lambda match: b" " * len(match[0]), self.source[start:end])
