"""Where things stand in a file: exact lines and columns for any element, found when first asked for.

Elements are named by their ordinal among all start tags of the file, in document order: lxml's own
``sourceline`` is wrong past line 65,535. The index is made by expat, lazily, at the first diagnostic.
"""

from __future__ import annotations

import re
from array import array
from dataclasses import dataclass, field
from functools import cached_property
from xml.parsers import expat

__all__ = ["Source", "Span"]


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of one line: ``line`` and ``column`` count from 1; ``end`` is the column past it."""

    line: int
    column: int
    end: int


@dataclass(eq=False)
class Source:
    """The bytes of a document and the positions of its elements.

    ``first_line`` and ``first_column`` place a fragment in the document that it was cut from.
    """

    path: str
    data: bytes = field(repr=False)
    first_line: int = 1
    whole: bytes | None = field(default=None, repr=False)
    """The document around a fragment; its lines are what an excerpt shows."""

    @cached_property
    def _lines(self) -> list[str]:
        data = self.whole if self.whole is not None else self.data
        return _decode(data).split("\n")

    def line(self, number: int) -> str:
        """The text of one line of the file, without its end; empty past the last one."""
        return self._lines[number - 1].rstrip("\r") if 1 <= number <= len(self._lines) else ""

    def span(self, node: int, attribute: str | None = None) -> Span:
        """Where element ``node`` stands: its start tag, or the value of one of its attributes."""
        line, column = self._index.line[node], self._index.column[node]
        text = self.line(self.first_line - 1 + line)[column:]
        start, end = 0, _tag_end(text)
        if attribute is not None:
            found = re.search(rf"(?<![\w.:-]){re.escape(attribute)}\s*=\s*(\"[^\"]*\"|'[^']*')", text)
            if found:
                start, end = found.span()
        elif (content := re.match(r"<(\w+)[^<>]*>[^<]*</\1\s*>", text)) is not None:
            end = content.end()  # <dim>48</dim> is marked whole
        return Span(self.first_line - 1 + line, column + 1 + start, column + 1 + max(end, start + 1))

    def children(self, node: int, tag: str) -> list[int]:
        """The ordinals of the children of ``node`` called ``tag``, in any case of letters."""
        index = self._index
        found: list[int] = []
        child = node + 1
        while child < len(index.parent) and index.parent[child] >= node:
            if index.parent[child] == node and index.tags[index.tag[child]] == tag:
                found.append(child)
            child += 1
        return found

    @cached_property
    def _index(self) -> _Index:
        return _Index(self.data)


class _Index:
    """Line, column, parent and tag of each element, by its ordinal."""

    def __init__(self, data: bytes) -> None:
        self.line, self.column = array("l"), array("l")
        self.parent, self.tag = array("l"), array("l")
        self.tags: list[str] = []
        numbers: dict[str, int] = {}
        open_elements = [-1]
        parser = expat.ParserCreate()

        def start(tag: str, _attributes: dict[str, str]) -> None:
            self.parent.append(open_elements[-1])
            open_elements.append(len(self.line))
            self.line.append(parser.CurrentLineNumber)
            self.column.append(parser.CurrentColumnNumber)
            tag = tag.lower()
            if tag not in numbers:
                numbers[tag] = len(self.tags)
                self.tags.append(tag)
            self.tag.append(numbers[tag])

        def end(_tag: str) -> None:
            open_elements.pop()

        parser.StartElementHandler = start
        parser.EndElementHandler = end
        parser.Parse(data, True)


def _tag_end(text: str) -> int:
    """The length of the start tag that ``text`` begins with, or of the line where it goes on below."""
    quote = ""
    for i, c in enumerate(text):
        if quote:
            quote = "" if c == quote else quote
        elif c in "\"'":
            quote = c
        elif c == ">":
            return i + 1
    return len(text.rstrip())


def _decode(data: bytes) -> str:
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return data.decode("utf-16", "replace")
    declared = re.match(rb"(?:\xef\xbb\xbf)?<\?xml[^>]*?encoding=[\"']([\w.-]+)", data)
    encoding = declared[1].decode("ascii") if declared else "utf-8"
    try:
        return data.decode(encoding, "replace").removeprefix("\ufeff")
    except LookupError:
        return data.decode("utf-8", "replace")
