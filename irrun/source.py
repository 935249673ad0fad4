"""Where things stand in a file: exact lines and columns for any element, found when first asked for.

Elements are named by their ordinal among all start tags of the file, in document order. The index of their places
is made lazily, at the first diagnostic: most files have none.
"""

from __future__ import annotations

import bisect
import codecs
import re
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final
from xml.parsers import expat

__all__ = ["STDIN", "Source", "Span", "encoding_of"]

STDIN: Final = "<stdin>"
"""The path of a document that was read from standard input."""


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of one line: ``line`` and ``column`` count from 1; ``end`` is the column past it."""

    line: int
    column: int
    end: int


@dataclass(eq=False)
class Source:
    """The bytes of a document and the positions of its elements.

    ``first_line`` places a fragment in the document that it was cut from.
    """

    path: str
    data: bytes = field(repr=False)
    first_line: int = 1
    whole: bytes | None = field(default=None, repr=False)
    """The document around a fragment; its lines are what an excerpt shows."""
    columns: tuple[Sequence[int], ...] = field(default=(), repr=False)
    """Of a fragment that is written otherwise in its document (HTML): for each line of it, the document's
    column of every character, and of the line's end."""

    def __reduce__(self) -> tuple[object, ...]:
        return Source, (self.path, self.data, self.first_line, self.whole, self.columns)

    @cached_property
    def utf8(self) -> bytes:
        """The document in UTF-8 without a byte order mark, for parsers that read few encodings.

        Raises LookupError where its encoding is not one that is read, UnicodeDecodeError where the bytes
        are no text in it.
        """
        encoding = encoding_of(self.data)
        if _ENCODINGS.fullmatch(encoding) is None:
            raise LookupError(encoding)
        if encoding == "utf-8" and self.data.isascii():
            return self.data
        text = self.data.decode(encoding)
        return self.data if encoding == "utf-8" else text.encode()

    @cached_property
    def _own_lines(self) -> list[str]:
        return re.split(r"\r\n?|\n", _decode(self.data))

    @cached_property
    def _lines(self) -> list[str]:
        return self._own_lines if self.whole is None else re.split(r"\r\n?|\n", _decode(self.whole))

    def line(self, number: int) -> str:
        """The text of one line of the file, without its end; empty past the last one."""
        return self._lines[number - 1] if 1 <= number <= len(self._lines) else ""

    def own_line(self, number: int) -> str:
        """The text of one line of ``data``, counted from 1: in a fragment, not that of the file."""
        return self._own_lines[number - 1] if 1 <= number <= len(self._own_lines) else ""

    def stretch(self, line: int, column: int, end: int) -> Span:
        """Where a stretch of an own line stands in the file. All count from 1."""
        if self.columns:
            columns = self.columns[line - 1]
            column, end = (columns[min(at, len(columns)) - 1] for at in (column, end))
        return Span(self.first_line - 1 + line, column, max(end, column + 1))

    def span(self, node: int, attribute: str | None = None) -> Span:
        """Where element ``node`` stands: its start tag, or one of its attributes. (A tab is one column.)"""
        line, column = self._index.line[node], self._index.column[node]
        tag = self._tag(line, column)
        start, end = 0, len(tag)
        if attribute is not None:
            start, end = next((m.span() for m in _ATTRIBUTE.finditer(tag) if m[1] == attribute), (0, end))
        elif content := _CONTENT.match(self.own_line(line), column):
            end = content.end() - column  # <dim>48</dim> is marked whole
            tag = self.own_line(line)[column:]
        if above := tag.count("\n", 0, start):
            line, column = line + above, -tag.rindex("\n", 0, start) - 1
        width = len(tag[start:end].split("\n")[0].rstrip())
        return self.stretch(line, column + 1 + start, column + 1 + start + max(width, 1))

    def _tag(self, line: int, column: int) -> str:
        """The start tag that stands there; it may go on over many lines."""
        lines = self._own_lines
        text, more = self.own_line(line)[column:], 1
        while (found := _TAG.match(text)) is None and line + more // 2 < len(lines):
            text = "\n".join([self.own_line(line)[column:], *lines[line : line + more]])
            more *= 2
        return found[0] if found else text.split("\n")[0]

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

    def parent(self, node: int) -> int:
        """The ordinal of the element around ``node``; -1 for the root."""
        return self._index.parent[node]

    def begun_on(self, line: int) -> range:
        """The ordinals of the elements whose start tags begin on a line of the file."""
        lines, own = self._index.line, line - self.first_line + 1
        return range(bisect.bisect_left(lines, own), bisect.bisect_right(lines, own))

    def around(self, line: int, column: int | None = None) -> list[int]:
        """The ordinals of the element at a place of the file and of those around it, innermost first.

        Without a column it is the first one that begins on the line. Empty for a line outside of the document.
        """
        begun = self.begun_on(line)
        if not 1 <= line - self.first_line + 1 <= len(self._own_lines):
            return []
        if column is not None and not self.columns:
            last = begun.start + bisect.bisect_right(self._index.column[begun.start : begun.stop], column - 1) - 1
        else:
            last = begun.start if begun else begun.start - 1
        found: list[int] = []
        while last >= 0:
            found.append(last)
            last = self.parent(last)
        return found

    def offset(self, node: int) -> int:
        """Where the start tag of ``node`` begins in ``utf8``, in bytes."""
        return self._index.offset[node]

    def place(self, offset: int) -> tuple[int, int]:
        """The line and column, counted from 1, of a byte of ``utf8``."""
        line = bisect.bisect_right(self._line_offsets, offset)
        return line, len(self.utf8[self._line_offsets[line - 1] : offset].decode()) + 1

    @cached_property
    def _line_offsets(self) -> list[int]:
        return [0, *(end.end() for end in re.finditer(rb"\r\n?|\n", self.utf8))]

    @cached_property
    def _index(self) -> _Index:
        return _Index(self.utf8)


class _Index:
    """Line, column, byte, parent and tag of each element, by its ordinal."""

    def __init__(self, data: bytes) -> None:
        self.line, self.column, self.offset = array("l"), array("l"), array("l")
        self.parent, self.tag = array("l"), array("l")
        self.tags: list[str] = []
        numbers: dict[str, int] = {}
        open_elements = [-1]
        parser = expat.ParserCreate("utf-8")

        def start(tag: str, _attributes: dict[str, str]) -> None:
            self.parent.append(open_elements[-1])
            open_elements.append(len(self.line))
            self.line.append(parser.CurrentLineNumber)
            self.column.append(parser.CurrentColumnNumber)
            self.offset.append(parser.CurrentByteIndex)
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


_TAG = re.compile(r"""<[^"'>]*(?:"[^"]*"[^"'>]*|'[^']*'[^"'>]*)*>""")
_ATTRIBUTE = re.compile(r"""([^\s=<>"'/]+)\s*=\s*(?:"[^"]*"|'[^']*')""")
_CONTENT = re.compile(r"<([^\s<>/]+)[^<>]*(?<!/)>[^<>]*</\1\s*>")

_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF32_LE, "utf-32"), (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"),
    (b"<\0\0\0", "utf-32-le"), (b"\0\0\0<", "utf-32-be"), (b"<\0", "utf-16-le"), (b"\0<", "utf-16-be"),
)  # fmt: skip

_ENCODINGS = re.compile(
    r"utf-8(-sig)?|utf-(16|32)(-[lb]e)?|(us-)?ascii|latin-?1|iso-8859-\d+|windows-125\d|cp125\d|koi8-[ru]"
    r"|gb2312|gbk|gb18030|big5|shift_jis|euc-(jp|kr)"
)


def encoding_of(data: bytes) -> str:
    """The encoding of an XML document: what its first bytes show, else what it declares, else UTF-8."""
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return encoding
    declared = re.match(rb"<\?xml[^>]*?\sencoding\s*=\s*[\"']([\w.-]+)", data)
    encoding = declared[1].decode("ascii").lower() if declared else "utf-8"
    # the declaration could be read, so that units of two or four bytes are not what it is written in
    return "utf-8" if re.match(r"utf8$|utf-?16|utf-?32|ucs-?[24]|iso-10646", encoding) else encoding


def _decode(data: bytes) -> str:
    encoding = encoding_of(data)
    return data.decode(encoding if _ENCODINGS.fullmatch(encoding) else "utf-8", "replace")
