"""Positions in a file: the exact line and column of any element or attribute.

An element is identified by its ordinal: the number of start tags before its own, in document order. The index of
positions is built at the first diagnostic, because most files have no diagnostic.
"""

from __future__ import annotations

import bisect
import codecs
import re
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import accumulate, pairwise
from typing import ClassVar, Final
from xml.parsers import expat

import numpy as np

__all__ = ["STDIN", "Source", "Span", "codec_of", "encoding_of"]

STDIN: Final = "<stdin>"
"""The ``path`` of a document that was read from standard input."""


@dataclass(frozen=True, slots=True)
class Span:
    """A part of one line, to be marked in a diagnostic.

    ``line`` and ``column`` count from 1. ``end`` is the column after the last character.
    """

    line: int
    column: int
    end: int


@dataclass(eq=False)
class Source:
    """The bytes of a document and the positions of its elements.

    The document may be a fragment: an example that was cut out of a larger document, such as a page of documentation.
    ``first_line`` is then the line of the larger document on which the fragment begins.
    """

    path: str
    data: bytes = field(repr=False)
    first_line: int = 1
    whole: bytes | None = field(default=None, repr=False)
    """The larger document, if this one is a fragment. Excerpts in diagnostics show its lines."""
    columns: tuple[Sequence[int], ...] = field(default=(), repr=False)
    """The columns of a fragment whose text differs from that of the larger document (in HTML, ``<`` is ``&lt;``).

    For each line of the fragment: the column in the larger document of every character, and of the end of the line.
    """

    is_script: ClassVar[bool] = False
    """Whether the source is a Python script that builds a model, so that messages speak of arguments, not of XML."""
    _last_tag: tuple[int, _Tag] | None = field(default=None, init=False, repr=False)

    def __reduce__(self) -> tuple[object, ...]:
        return Source, (self.path, self.data, self.first_line, self.whole, self.columns)

    @cached_property
    def utf8(self) -> bytes:
        """The document in UTF-8 without a byte order mark, for parsers that support few encodings.

        Raises LookupError if irrun does not support the encoding of the document, and UnicodeDecodeError if the
        bytes are not text in that encoding.
        """
        encoding = encoding_of(self.data)
        if _ENCODINGS.fullmatch(encoding) is None:
            raise LookupError(encoding)
        if encoding == "utf-8" and self.data.isascii():
            return self.data
        text = self.data.decode(encoding)
        return self.data if encoding == "utf-8" else text.encode()

    @cached_property
    def _own_lines(self) -> _Lines:
        return _Lines(_decode(self.data))

    @cached_property
    def _lines(self) -> _Lines:
        return self._own_lines if self.whole is None else _lines_of(self.whole)

    def line(self, number: int) -> str:
        """Return the text of a line of the file (of the larger document, for a fragment), without the line end.

        The result is empty if the file has no such line.
        """
        return self._lines[number - 1] if 1 <= number <= len(self._lines) else ""

    def own_line(self, number: int) -> str:
        """Return the text of a line of ``data``, without the line end.

        Lines count from 1; in a fragment, from its own first line. The result is empty if there is no such line.
        """
        return self._own_lines[number - 1] if 1 <= number <= len(self._own_lines) else ""

    def stretch(self, line: int, column: int, end: int) -> Span:
        """Return the position in the file of columns ``column`` to ``end`` (exclusive) of a line of ``data``.

        All numbers count from 1. The span covers at least one column.
        """
        if self.columns:
            columns = self.columns[line - 1]
            column, end = (columns[min(at, len(columns)) - 1] for at in (column, end))
        return Span(self.first_line - 1 + line, column, max(end, column + 1))

    def span(self, node: int, attribute: str | None = None) -> Span:
        """Return the position of an attribute of element ``node``, or of the element if it has no such attribute.

        The span of an element is its start tag, or all of it if it holds only text on one line (``<dim>48</dim>``).
        A span that goes on over several lines ends with its first line. A tab is one column.
        """
        line, column = self._index.line[node], self._index.column[node]
        if attribute is None and (content := _CONTENT.match(self.own_line(line), column)):
            return self.stretch(line, column + 1, content.end() + 1)  # mark all of <dim>48</dim>
        tag = self._tag(node)
        start, end = tag.attributes.get(attribute, (0, len(tag.text))) if attribute else (0, len(tag.text))
        row = bisect.bisect_left(tag.breaks, start)
        if row:
            line, column = line + row, -tag.breaks[row - 1] - 1
        end = min(end, tag.breaks[row]) if row < len(tag.breaks) else end
        width = len(tag.text[start:end].rstrip())
        return self.stretch(line, column + 1 + start, column + 1 + start + max(width, 1))

    def line_of(self, node: int) -> int:
        """Return the line of the file on which element ``node`` begins: that of ``span(node)``, without its columns."""
        return self.first_line - 1 + self._index.line[node]

    def _tag(self, node: int) -> _Tag:
        """Return the start tag of element ``node``. The last tag is kept, because it may hold many attributes."""
        if self._last_tag is None or self._last_tag[0] != node:
            self._last_tag = node, _Tag(self._tag_text(self._index.line[node], self._index.column[node]))
        return self._last_tag[1]

    def _tag_text(self, line: int, column: int) -> str:
        """Return the start tag at a line (from 1) and column (from 0) of ``data``. It may extend over many lines."""
        count = len(self._own_lines)
        text, begin, more = self.own_line(line), column, 1
        while (tag := _TAG.match(text, begin)) is None and line + more // 2 < count:
            following = map(self.own_line, range(line + 1, min(line + more, count) + 1))
            text, begin = "\n".join([self.own_line(line)[column:], *following]), 0
            more *= 2
        return tag[0] if tag else text[begin:].split("\n")[0]

    def children(self, node: int, tag: str) -> list[int]:
        """Return the ordinals of the children of ``node`` with the name ``tag``, which must be in lower case.

        The file may write the name in upper or lower case.
        """
        index = self._index
        nodes: list[int] = []
        child = node + 1
        while child < len(index.parent) and index.parent[child] >= node:
            if index.parent[child] == node and index.tags[index.tag[child]] == tag:
                nodes.append(child)
            child += 1
        return nodes

    def parent(self, node: int) -> int:
        """Return the ordinal of the parent of ``node``, or -1 for the root."""
        return self._index.parent[node]

    def begun_on(self, line: int) -> range:
        """Return the ordinals of the elements whose start tags begin on a line of the file."""
        lines, own = self._index.line, line - self.first_line + 1
        return range(bisect.bisect_left(lines, own), bisect.bisect_right(lines, own))

    def around(self, line: int, column: int | None = None) -> list[int]:
        """Return the ordinals of the element at a position of the file and of its ancestors, innermost first.

        This is the last element that begins at or before the column. Without a column (or if the source has
        ``columns``) it is the first element that begins on the line, or the last one before the line if none begins
        there. The result is empty for a line outside the document.
        """
        begun = self.begun_on(line)
        if not 1 <= line - self.first_line + 1 <= len(self._own_lines):
            return []
        if column is not None and not self.columns:
            last = begun.start + bisect.bisect_right(self._index.column[begun.start : begun.stop], column - 1) - 1
        else:
            last = begun.start if begun else begun.start - 1
        return self._lineage(last)

    def at(self, offset: int) -> list[int]:
        """Return the ordinals of the element that holds a byte of ``utf8`` and of its ancestors, innermost first."""
        nodes = self._lineage(bisect.bisect_right(self._index.offset, offset) - 1)
        return [node for node in nodes if offset < self.end(node)]

    def _lineage(self, node: int) -> list[int]:
        nodes: list[int] = []
        while node >= 0:
            nodes.append(node)
            node = self.parent(node)
        return nodes

    def tagged(self, tag: str) -> Iterator[int]:
        """Yield the ordinals of all elements with the name ``tag``, which must be in lower case."""
        index = self._index
        number = index.tags.index(tag) if tag in index.tags else -1
        return map(int, np.flatnonzero(np.frombuffer(index.tag, index.tag.typecode) == number))

    def offset(self, node: int) -> int:
        """Return the byte of ``utf8`` at which the start tag of ``node`` begins."""
        return self._index.offset[node]

    def end(self, node: int) -> int:
        """Return the byte of ``utf8`` after the end tag of ``node``, or after the tag of an empty element."""
        end, text = self._index.end[node], self.utf8
        is_empty_tag = text.endswith(b"/>", 0, end) and text.rfind(b"<", 0, end) == self.offset(node)
        return end if is_empty_tag else text.find(b">", end) + 1

    def byte(self, line: int, column: int) -> int:
        """Return the byte of ``utf8`` at a line and column, which count from 1: the reverse of ``place``."""
        start = self._line_offsets[line - 1]
        return start + len(self.own_line(line)[: column - 1].encode())

    def place(self, offset: int) -> tuple[int, int]:
        """Return the line and column of a byte of ``utf8``. Both count from 1, columns in characters."""
        line = bisect.bisect_right(self._line_offsets, offset)
        return line, self._characters(offset) - self._characters(self._line_offsets[line - 1]) + 1

    @cached_property
    def _line_offsets(self) -> array[int]:
        return array("l", [0, *(end.end() for end in re.finditer(rb"\r\n?|\n", self.utf8))])

    def _characters(self, offset: int) -> int:
        """Return the number of characters before a byte of ``utf8``."""
        block = offset // _BLOCK
        return self._characters_before[block] + _starts(self.utf8[block * _BLOCK : offset])

    @cached_property
    def _characters_before(self) -> list[int]:
        """The number of characters that begin before each block of ``utf8``: a whole model may be on one line."""
        blocks = (self.utf8[at : at + _BLOCK] for at in range(0, len(self.utf8), _BLOCK))
        return [0, *accumulate(map(_starts, blocks))]

    def place_in_data(self, offset: int) -> int:
        """Return the byte of ``data`` at which the character begins that begins at a byte of ``utf8``.

        Raises UnicodeEncodeError if a character cannot be written in the encoding of the file.
        """
        block = offset // _BLOCK
        before = self.utf8[self._block_start(block) : offset]
        return self._data_before[block] + len(before.decode().encode(codec_of(self.data)[1]))

    @cached_property
    def _data_before(self) -> list[int]:
        """The number of bytes of ``data`` before the first character that begins in each block of ``utf8``."""
        mark, codec = codec_of(self.data)
        starts = [self._block_start(block) for block in range(len(self.utf8) // _BLOCK + 1)]
        blocks = (self.utf8[start:end] for start, end in pairwise(starts))
        return [*accumulate((len(block.decode().encode(codec)) for block in blocks), initial=mark)]

    def _block_start(self, block: int) -> int:
        """Return the byte of ``utf8`` at which the first character that begins in a block begins."""
        start = block * _BLOCK
        while start < len(self.utf8) and self.utf8[start] in _CONTINUED:
            start += 1
        return start

    @cached_property
    def _index(self) -> _Index:
        return _Index(self.utf8)


class _Lines:
    """The lines of a text, without their ends. Only where they begin is stored: a model may have millions of lines."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._starts = array("l", [0])
        self._starts.extend(end.end() for end in _LINE_END.finditer(text))

    def __len__(self) -> int:
        return len(self._starts)

    def __getitem__(self, position: int) -> str:
        end = self._starts[position + 1] if position + 1 < len(self._starts) else len(self._text)
        return self._text[self._starts[position] : end].rstrip("\r\n")


_BLOCK: Final = 1 << 12
"""Bytes of a block. The characters of each block are counted once, so that finding a column stays fast."""
_CONTINUED: Final = bytes(range(0x80, 0xC0))
"""The bytes of UTF-8 that continue a character."""


def _starts(text: bytes) -> int:
    """Return the number of characters that begin in a part of a text in UTF-8."""
    return len(text.translate(None, _CONTINUED))


class _Tag:
    """A start tag: its text, and the positions in it of its attributes (by name) and of its line breaks."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.attributes: dict[str, tuple[int, int]] = {}
        for attribute in _ATTRIBUTE.finditer(text):
            self.attributes.setdefault(attribute[1], attribute.span())
        self.breaks = [end.start() for end in re.finditer("\n", text)]


class _Index:
    """The positions of all elements of a document: arrays with one entry per element, in the order of the ordinals.

    ``line`` counts from 1 and ``column`` from 0, ``offset`` is in bytes, as is ``end``, at which the end tag begins, or
    the tag of an empty element ends. ``parent`` is an ordinal (-1 for the root), and ``tag`` is an index into ``tags``,
    the names of elements in lower case.
    """

    def __init__(self, data: bytes) -> None:
        code = "i" if len(data) < 1 << 31 else "q"
        self.line, self.column, self.offset, self.end = array(code), array(code), array(code), array(code)
        self.parent, self.tag = array(code), array(code)
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
            self.end.append(-1)
            tag = tag.lower()
            if tag not in numbers:
                numbers[tag] = len(self.tags)
                self.tags.append(tag)
            self.tag.append(numbers[tag])

        def end(_tag: str) -> None:
            self.end[open_elements.pop()] = parser.CurrentByteIndex

        parser.StartElementHandler = start
        parser.EndElementHandler = end
        parser.Parse(data, True)


_LINE_END = re.compile(r"\r\n?|\n")
_TAG = re.compile(r"""<[^"'>]*(?:"[^"]*"[^"'>]*|'[^']*'[^"'>]*)*>""")
_ATTRIBUTE = re.compile(r"""([^\s=<>"'/]+)\s*=\s*(?:"[^"]*"|'[^']*')""")
_CONTENT = re.compile(r"<([^\s<>/]+)[^<>]*(?<!/)>[^<>]*</\1\s*>")

_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF32_LE, "utf-32"), (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"),
)  # fmt: skip
"""The byte order marks."""
_WIDE = (
    (re.compile(rb"[<\s]\0\0\0"), "utf-32-le"), (re.compile(rb"\0\0\0[<\s]"), "utf-32-be"),
    (re.compile(rb"[<\s]\0"), "utf-16-le"), (re.compile(rb"\0[<\s]"), "utf-16-be"),
)  # fmt: skip
"""The first bytes of a document by encoding: ``<`` or white space in units of two or four bytes. expat
takes both for UTF-16."""

_ENCODINGS = re.compile(
    r"utf-8(-sig)?|utf-(16|32)(-[lb]e)?|(us-)?ascii|latin-?1|iso-8859-\d+|windows-125\d|cp125\d|koi8-[ru]"
    r"|gb2312|gbk|gb18030|big5|shift_jis|euc-(jp|kr)"
)


_CODECS: Final = {
    codecs.BOM_UTF8: "utf-8", codecs.BOM_UTF32_LE: "utf-32-le", codecs.BOM_UTF32_BE: "utf-32-be",
    codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be",
}  # fmt: skip
"""Byte order marks, with the codec of the text after the mark (a codec that itself adds no mark)."""


def codec_of(data: bytes) -> tuple[int, str]:
    """Return the length of the byte order mark in bytes (0 if there is none) and the codec of the text after it."""
    for mark, codec in _CODECS.items():
        if data.startswith(mark):
            return len(mark), codec
    return 0, encoding_of(data).removesuffix("-sig")


def encoding_of(data: bytes) -> str:
    """Return the encoding of an XML document: the one that its first bytes show, else the declared one, else UTF-8."""
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return encoding
    for first, encoding in _WIDE:
        if first.match(data):
            return encoding
    declared = re.match(rb"<\?xml[^>]*?\sencoding\s*=\s*[\"']([\w.-]+)", data)
    encoding = declared[1].decode("ascii").lower() if declared else "utf-8"
    # The declaration was readable byte by byte, so a declared UTF-16 or UTF-32 is wrong: read the document as UTF-8.
    return "utf-8" if re.match(r"utf8$|utf-?16|utf-?32|ucs-?[24]|iso-10646", encoding) else encoding


def _decode(data: bytes) -> str:
    encoding = encoding_of(data)
    return data.decode(encoding if _ENCODINGS.fullmatch(encoding) else "utf-8", "replace")


@lru_cache(maxsize=1)
def _lines_of(page: bytes) -> _Lines:
    """Return the lines of a page. They are kept for the next call, because a page may hold many examples."""
    return _Lines(_decode(page))
