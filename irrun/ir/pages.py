"""Find the ``<layer>`` examples in a document, such as a page of the specification.

A page may hold several examples between its paragraphs: in the code blocks of reStructuredText, the fences of Markdown,
the ``<pre>`` elements of HTML, or plain text.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

__all__ = ["Example", "examples", "has_examples", "is_document", "is_prose"]

MARKUP: Final = {".rst": "rst", ".md": "md", ".markdown": "md", ".html": "html", ".htm": "html"}
"""The markup language of a document, by the ending of its file name; all other documents are plain text."""

_OPENING: Final = re.compile(r"<layer(?:\s|>\s*<)", re.IGNORECASE)  # not the word <layer> in a sentence
_TAG: Final = re.compile(r"<layer\b[^<>]*?(/?)>|</layer\s*>", re.IGNORECASE)
_END_OF_NET: Final = re.compile(r"</net\s*>\s*\Z", re.IGNORECASE)
_FIRST: Final = re.compile(r"<!--.*?(?:-->|\Z)|<\s*([\w.-]+)", re.DOTALL)


def is_document(path: str) -> bool:
    """Return whether a file name has the ending of a page, with or without examples in it."""
    return Path(path).suffix.lower() in MARKUP


def is_prose(path: str, text: str) -> bool:
    """Return whether a file is a plain-text page: a ``.txt`` file that is not blank and does not begin with ``<``."""
    start = text.lstrip("\ufeff \t\r\n")[:1]
    return Path(path).suffix.lower() == ".txt" and start not in ("", "<")


def has_examples(path: str, text: str) -> bool:
    """Return whether a document holds ``<layer>`` examples and is not an IR file itself."""
    if _markup(path, text) == "text":
        first = next((match[1] for match in _FIRST.finditer(text) if match[1]), "net")
        layer = re.search(r"<(layers?)\b", text, re.IGNORECASE)
        # <layers> before any <layer>, or a </net>: an IR file with a broken root element
        if first.lower() == "net" or layer is None or layer[1].lower() == "layers" or _END_OF_NET.search(text):
            return False
    return next(examples(path, text), None) is not None


@dataclass(frozen=True, slots=True)
class Example:
    """An example, or a block of a document that may hold examples, with its first line in the document.

    ``columns`` maps its characters to columns of the document where the two texts differ, as ``Source.columns`` does.
    """

    text: str
    line: int
    columns: tuple[Sequence[int], ...] = ()


def _markup(path: str, text: str) -> str:
    markup = MARKUP.get(Path(path).suffix.lower(), "text")
    if markup == "text" and re.match(r"\s*<(!doctype\s+html|html)\b", text, re.IGNORECASE):
        return "html"
    return markup


def examples(path: str, text: str) -> Iterator[Example]:
    """Yield the examples of a document in order."""
    if not _OPENING.search(text) and "&lt;" not in text:
        return
    for block in _BLOCKS[_markup(path, text)](text):
        at = before = line_start = counted = 0
        ends = _Ends(block.text)
        while first := _OPENING.search(block.text, at):
            start, (at, is_closed) = first.start(), ends.of(first)
            if not is_closed and block.text[start:at].rstrip().endswith(("...", "…")):
                continue  # the page shows only the beginning of a layer
            before += block.text.count("\n", counted, start)
            line_start = max(line_start, block.text.rfind("\n", counted, start) + 1)
            counted = start
            yield _example(block, before, start - line_start, block.text[start:at])


_WIDE: Final = 1000
"""The most columns of indentation that an example keeps as spaces. An example further right keeps them as numbers."""


def _example(block: Example, before: int, column: int, text: str) -> Example:
    """Return the example ``text``, which begins in ``block`` after ``before`` lines and ``column`` characters."""
    columns = block.columns[before : before + text.count("\n") + 1]
    if column <= _WIDE:  # leading spaces keep the columns of the document
        return Example(" " * column + text, block.line + before, columns)
    head, *rest = text.split("\n")
    if columns:
        columns = (columns[0][column : column + len(head) + 1], *columns[1:])
    else:
        columns = (range(column + 1, column + len(head) + 2), *(range(1, len(line) + 2) for line in rest))
    return Example(text, block.line + before, columns)


class _Ends:
    """Finds the ends of the examples of a text, in time that grows with the length of the text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._starts: list[int] = []
        """The positions of all ``<layer>`` and ``</layer>`` tags."""
        self._ends: list[int | None] = []
        """For each tag, where the layer ends that it opens, or the tag itself if it opens none; None if never."""
        opened: list[int] = []
        for number, tag in enumerate(_TAG.finditer(text)):
            is_opening = not tag[0].startswith("</") and not tag[1]
            self._starts.append(tag.start())
            self._ends.append(None if is_opening else tag.end())
            if is_opening:
                opened.append(number)
            elif opened and not tag[1]:
                self._ends[opened.pop()] = tag.end()

    def of(self, first: re.Match[str]) -> tuple[int, bool]:
        """Return the position where the example that opens at ``first`` ends, and whether a closing tag ends it."""
        number = bisect.bisect_left(self._starts, first.start())
        end = self._ends[number] if number < len(self._ends) else None
        if end is not None:
            return end, True
        # never closed: up to the next example that is not indented deeper; the parser reports the missing tag
        column = first.start() - (self._text.rfind("\n", 0, first.start()) + 1)
        lines, indents, shallower = self._lines
        number = bisect.bisect_left(lines, first.end())
        while number < len(lines) and indents[number] > column:
            number = shallower[number]
        return (lines[number] if number < len(lines) else len(self._text)), False

    @cached_property
    def _lines(self) -> tuple[list[int], list[int], list[int]]:
        """The lines that begin with a ``<layer>``: their positions, their indentation, and the next shallower line."""
        matches = list(_OPENING_LINE.finditer(self._text))
        indents = [match.end() - match.start() for match in matches]
        shallower = [len(matches)] * len(matches)
        waiting: list[int] = []
        for number, indent in enumerate(indents):
            while waiting and indents[waiting[-1]] > indent:
                shallower[waiting.pop()] = number
            waiting.append(number)
        return [match.start() for match in matches], indents, shallower


_OPENING_LINE: Final = re.compile(r"^[ \t]*(?=<layer\s)", re.MULTILINE | re.IGNORECASE)


def _plain(text: str) -> Iterator[Example]:
    yield Example(text, 1)


_LITERAL: Final = re.compile(r"\.\.\s+(\S*code\S*|parsed-literal)::|(?!\.\.\s).*::$")


def _rst(text: str) -> Iterator[Example]:
    """Yield the blocks that are indented below a ``code-block`` or below a paragraph that ends in ``::``."""
    lines = text.split("\n")
    number = 0
    while number < len(lines):
        line = lines[number].expandtabs()
        number += 1
        if not _LITERAL.match(line.strip()):
            continue
        indent, start = _indent(line), number
        while number < len(lines) and (_indent(lines[number].expandtabs()) > indent or not lines[number].strip()):
            number += 1
        yield Example("\n".join(lines[start:number]), start + 1)


_FENCE: Final = re.compile(r"[ \t]*(?P<quote>(?:>[ \t]*)*)(?P<fence>`{3,}|~{3,})")


def _md(text: str) -> Iterator[Example]:
    """Yield the blocks between fences, and blocks outside of fences that are indented by at least four columns."""
    lines = text.split("\n")
    number = 0
    while number < len(lines):
        start = number
        if fence := _FENCE.match(lines[number]):
            number += 1
            start, close = number, re.compile(rf"[ \t>]*{re.escape(fence['fence'][0])}{{{len(fence['fence'])},}}[ \t]*")
            while number < len(lines) and not close.fullmatch(lines[number]):
                number += 1
            block = lines[start:number]
            if fence["quote"]:  # blank out the > of a block quotation
                block = [re.sub(r"^[ \t>]+", lambda marks: " " * len(marks[0]), line) for line in block]
            yield Example("\n".join(block), start + 1)
        else:
            while number < len(lines) and lines[number].strip() and _indent(lines[number].expandtabs()) >= 4:
                number += 1
            if number > start:
                yield Example("\n".join(lines[start:number]), start + 1)
        number = max(number, start + 1)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


_PRE: Final = re.compile(r"<(pre|textarea|xmp)\b[^>]*>(.*?)(?:</\1\s*>|\Z)", re.DOTALL | re.IGNORECASE)
_PIECE: Final = re.compile(
    # the tags that highlight code
    r"</?(?:a|b|br|code|del|div|em|font|i|ins|kbd|mark|p|samp|small|span|strong|tt|u|var|wbr)\b"
    r"""(?:[^>"']|"[^"\n]{0,500}"|'[^'\n]{0,500}'){0,500}>|&#?\w+;|.""",
    re.DOTALL | re.IGNORECASE,
)


def _html(text: str) -> Iterator[Example]:
    """Yield the text of each ``<pre>``, ``<textarea>`` and ``<xmp>``, with the columns of its characters."""
    import html  # imported here because most runs read no page

    line, counted = 1, 0
    for pre in _PRE.finditer(text):
        written: list[str] = []
        columns: list[list[int]] = [[]]
        begin = pre.start(2)
        column = begin - (text.rfind("\n", 0, begin) + 1) + 1
        for piece in _PIECE.finditer(text, begin, pre.end(2)):
            if piece[0] == "\n":
                columns[-1].append(column)
                columns.append([])
                column = 1
                written.append("\n")
                continue
            if len(piece[0]) == 1 or piece[0].startswith("&"):
                shown = html.unescape(piece[0]).replace("\n", " ")
                columns[-1] += [column] * len(shown)
                written.append(shown)
            breaks = piece[0].count("\n")  # line breaks within a tag
            for _ in range(breaks):
                columns[-1].append(column)
                columns.append([])
                written.append("\n")
            column = len(piece[0]) - piece[0].rfind("\n") if breaks else column + len(piece[0])
        columns[-1].append(column)
        line += text.count("\n", counted, begin)
        counted = begin
        yield Example("".join(written), line, tuple(columns))


_BLOCKS: Final[dict[str, Callable[[str], Iterator[Example]]]] = {
    "text": _plain, "rst": _rst, "md": _md, "html": _html,
}  # fmt: skip
