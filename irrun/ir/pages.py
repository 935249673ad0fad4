"""Find the ``<layer>`` examples in a document, such as a page of the specification.

A page may hold several examples between its paragraphs: in the code blocks of reStructuredText, the fences of Markdown,
the ``<pre>`` elements of HTML, or plain text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
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
    columns: tuple[list[int], ...] = ()


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
        at = 0
        while first := _OPENING.search(block.text, at):
            start, (at, is_closed) = first.start(), _end(block.text, first)
            if not is_closed and block.text[start:at].rstrip().endswith(("...", "…")):
                continue  # the page shows only the beginning of a layer
            before = block.text.count("\n", 0, start)
            column = start - (block.text.rfind("\n", 0, start) + 1)
            columns = block.columns[before:]
            # leading spaces keep the columns of the document
            yield Example(" " * column + block.text[start:at], block.line + before, columns)


def _end(text: str, first: re.Match[str]) -> tuple[int, bool]:
    """Return the position where the example that opens at ``first`` ends, and whether a closing tag ends it."""
    depth = 0
    for tag in _TAG.finditer(text, first.start()):
        depth += -1 if tag[0].startswith("</") else not tag[1]
        if depth <= 0:
            return tag.end(), True
    # never closed: up to the next example that is not indented deeper; the parser reports the missing tag
    column = first.start() - (text.rfind("\n", 0, first.start()) + 1)
    following = re.compile(rf"^[ \t]{{0,{column}}}(?=<layer\s)", re.MULTILINE | re.IGNORECASE)
    next_example = following.search(text, first.end())
    return next_example.start() if next_example else len(text), False


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
        yield Example("".join(written), text.count("\n", 0, begin) + 1, tuple(columns))


_BLOCKS: Final[dict[str, Callable[[str], Iterator[Example]]]] = {
    "text": _plain, "rst": _rst, "md": _md, "html": _html,
}  # fmt: skip
