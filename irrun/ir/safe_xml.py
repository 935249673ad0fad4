"""Parse XML safely: without DOCTYPE, entities or network access, and with limits on nesting and size.

Errors state the place and the reason.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NoReturn, Protocol, TypeVar
from xml.parsers import expat

from irrun.base.source import Source, Span
from irrun.diagnostics import Diagnostic, ReadError, diagnostic

__all__ = ["MOST_DEEP", "Elements", "Target", "read_xml"]

T = TypeVar("T", bound="Target")


class Target(Protocol):
    """Receives the elements of a document in their order.

    Namespaces are not resolved, because IR has none: a prefix is part of the tag.
    """

    def begin(self, elements: Elements) -> None: ...

    def start(self, tag: str, attributes: Mapping[str, str]) -> None: ...

    def end(self, tag: str) -> None: ...

    def data(self, text: str) -> None: ...

    def comment(self, text: str) -> None: ...


class Elements:
    """Parses a document and passes its elements to a target, one after another.

    Large models consist mostly of ports with equal contents. When a port starts, the target may therefore ask for its
    ``content`` and skip a content that it has read before (``pass_over``). To make this possible, the document is
    parsed in pieces that end with ``</port>``.
    """

    def __init__(self, data: bytes, target: Target) -> None:
        self._data, self._target = data, target
        self._parser = expat.ParserCreate("utf-8")
        self._parser.XmlDeclHandler = self._declaration
        self._parser.StartDoctypeDeclHandler = self._doctype
        self._parser.CommentHandler = self._comment
        self._end = self._content_end = 0
        self._asked = self._passing = False

    def read(self) -> None:
        """Parse the document. Raises ExpatError, _Refused or _Doctype."""
        data, parse = self._data, self._parser.Parse
        end = least = 0
        self._bound()
        self._listen()
        try:
            while end < len(data):
                start = end
                end = data.find(_CLOSE, start + least, start + least + _PIECE) + len(_CLOSE)
                if end < len(_CLOSE):
                    end = min(start + least + _PIECE, len(data))
                self._end, self._asked = end, False
                parse(data[start:end], False)
                if self._passing:
                    self._listen()
                # expat scans a comment that is still open from its start with each piece, and a comment may hold many
                # </port>: let the pieces grow while no port starts
                least = 0 if self._asked else min(2 * least + 64, _PIECE)
            parse(b"", True)
        finally:
            del self._parser, self._target  # break the reference cycle between target and parser

    def content(self) -> bytes:
        """Return the bytes inside the port that starts now, from the first ``<`` to the end tag, both included.

        Return no bytes if there are more than ``_LONG``. The bytes do not belong to the port if the port is an empty
        tag, or if ``</port>`` occurs in a comment. They do if ``is_at_end`` is true when the port ends.
        """
        self._asked = True
        self._content_end = self._end
        begin = self._data.find(b"<", self._parser.CurrentByteIndex + 1)
        return self._data[begin : self._end] if self._end - begin <= _LONG else b""

    def is_at_end(self) -> bool:
        """Return whether the current end tag is the end of the bytes that ``content`` last returned."""
        return self._parser.CurrentByteIndex == self._content_end - len(_CLOSE)

    def pass_over(self) -> None:
        """Skip the children and the end tag of the port that starts now: do not call the target for them."""
        self._passing = True
        self._parser.StartElementHandler = self._parser.EndElementHandler = None

    def text(self, wanted: bool) -> None:
        """Switch the delivery of text to the target on or off."""
        self._parser.CharacterDataHandler = self._target.data if wanted else None

    def refuse(self, code: str, message: str) -> NoReturn:
        """Stop reading, with a diagnostic at the current element. Raises _Refused."""
        raise _Refused(code, message, self._parser.CurrentByteIndex)

    def _listen(self) -> None:
        self._passing = False
        self._parser.StartElementHandler = self._target.start
        self._parser.EndElementHandler = self._target.end

    def _bound(self) -> None:
        """Refuse the document if more than ``_MOST_LONG`` bytes in a row hold no ``<``: too long a tag or text."""
        at = 0
        while len(self._data) - at > _MOST_LONG:
            after = self._data.rfind(b"<", at + 1, at + _MOST_LONG)
            if after < 0:
                raise _Refused("IR005", f"more than {_MOST_LONG:,} bytes in one tag or text", at)
            at = after

    def _comment(self, text: str) -> None:
        if len(text) > _MOST_LONG:
            self.refuse("IR005", f"a comment of more than {_MOST_LONG:,} characters")
        self._target.comment(text)

    def _declaration(self, version: str, *_: object) -> None:
        if not version.startswith("1."):
            self.refuse("IR001", f'unsupported XML version "{version}"')

    def _doctype(self, *_: object) -> None:
        raise _Doctype(self._parser.CurrentByteIndex)


class _Refused(Exception):  # noqa: N818
    """The document is well-formed but refused. The arguments are the code, the message and the byte offset."""


class _Doctype(Exception):  # noqa: N818
    """The document has a DOCTYPE. The argument is the byte offset."""


_CLOSE: Final = b"</port>"
_PIECE: Final = 1 << 20
"""The number of bytes that are searched for the ``</port>`` that ends a piece; without one, the piece ends there."""
_LONG: Final = 1 << 10
"""The most bytes of a port's content that are remembered; a port with longer contents is rarely repeated."""

MOST_DEEP: Final = 256
"""The most elements that may be nested, a limit that no real model reaches. The target counts them."""
_MOST_LONG: Final = 10_000_000
"""The most bytes of a tag, a text or a comment, so that a hostile file cannot fill the memory."""


def read_xml(source: Source, target: T) -> T:
    """Pass the elements of a document to ``target``, and return ``target``.

    Raises ReadError if the document is not well-formed XML 1 (IR001), has a DOCTYPE (IR002), exceeds a limit (IR005),
    or cannot be decoded (IR006).
    """
    if not source.data.strip(b"\x00 \t\r\n\xef\xbb\xbf"):
        raise ReadError(
            diagnostic(
                "IR001", "the file is empty", source=source, span=Span(1, 1, 2), help="pass the .xml file of a model"
            )
        )
    data = _utf8(source)
    elements = Elements(data, target)
    target.begin(elements)
    try:
        elements.read()
    except _Doctype as doctype:
        raise ReadError(_doctype(source, data, doctype.args[0])) from None
    except (expat.ExpatError, _Refused) as error:
        raise ReadError(_why_not_read(source, data, error)) from None
    return target


def _utf8(source: Source) -> bytes:
    """Return the document in UTF-8. Raises ReadError (IR006)."""
    try:
        text = source.utf8
        if b"\0" not in text[:4]:
            return text
        # expat takes it for UTF-16, while everything else reads UTF-8
        message, line, column = "the first bytes mark the file as UTF-8, but the text is UTF-16", 1, 1
    except LookupError as error:
        message, line, column = f'irrun does not support the encoding "{error.args[0]}"', 1, 1
    except UnicodeDecodeError as error:
        line, column = _place(source.data[: error.start].decode(error.encoding, "replace").removeprefix("\ufeff"))
        message = f"the bytes are not valid {error.encoding}: {error.reason}"
    span = source.stretch(line, column, column + 1)
    raise ReadError(diagnostic("IR006", message, source=source, span=span, help="save the file as UTF-8"))


def _place(before: str) -> tuple[int, int]:
    """Return the line and column, counted from 1, of the position after a text."""
    lines = re.split(r"\r\n?|\n", before)
    return len(lines), len(lines[-1]) + 1


def _doctype(source: Source, data: bytes, offset: int) -> Diagnostic:
    line, column = _place(data[: data.rfind(b"<!DOCTYPE", 0, offset + 9)].decode())
    return diagnostic(
        "IR002", "the file has a DOCTYPE, which irrun refuses", source=source,
        span=source.stretch(line, column, column + 9),
        help="remove the declaration; OpenVINO IR never needs one",
    )  # fmt: skip


def _why_not_read(source: Source, data: bytes, refused: Exception) -> Diagnostic:
    """Return the diagnostic of a document that cannot be read, with its place and a plain reason.

    The document is parsed again. If it is well-formed, the diagnostic says why it was ``refused``.
    """
    parser = expat.ParserCreate("utf-8")
    opened: list[tuple[str, int, int]] = []

    def start(tag: str, _: dict[str, str]) -> None:
        opened.append((tag, parser.CurrentLineNumber, parser.CurrentColumnNumber))

    def end(_: str) -> None:
        opened.pop()

    parser.StartElementHandler, parser.EndElementHandler = start, end
    first = source.first_line - 1

    def problem(code: str, message: str, line: int, column: int, help: str | None = None, width: int = 1) -> Diagnostic:
        span = source.stretch(line, column + 1, column + 1 + width)
        return diagnostic(code, message, span=span, source=source, help=help)

    try:
        parser.Parse(data, True)
    except expat.ExpatError as error:
        reason = expat.ErrorString(error.code)
        line, column = error.lineno, error.offset
        if error.code in (_MISMATCH, _NO_ELEMENTS, _UNCLOSED) and opened:
            tag, at_line, at_column = opened[-1]
            text = source.own_line(at_line)[at_column:]
            typo = re.match(rf"(<{re.escape(tag)}(?:\s[^<>]*)?>)([^<>/]*)/\s*{re.escape(tag)}\s*>", text)
            if typo:
                right = f"{typo[1]}{typo[2].strip()}</{tag}>"
                return problem(
                    "IR001", f"<{tag}> is not closed: {typo[0]!r} lacks a <", at_line, at_column,
                    f"write {right}", len(typo[0]),
                )  # fmt: skip
            if error.code != _MISMATCH:
                what = "file" if source.whole is None else "example"
                message = f"the {what} ends inside <{tag}>, opened at line {first + at_line}"
                help = "the file is cut short; write or copy it again" if what == "file" else f"close it with </{tag}>"
                return problem("IR001", message, line, column, help)
            message = f"the closing tag does not match <{tag}>, opened at line {first + at_line}"
            return problem("IR001", message, line, column, f"close it with </{tag}>")
        if error.code == _NO_ELEMENTS:
            return problem("IR001", "the file contains no element", line, column, "pass the .xml file of a model")
        return problem("IR001", f"not well-formed XML: {reason}", line, column)
    code, message, offset = refused.args
    line, column = _place(data[:offset].decode())
    return problem(code, message, line, column - 1)


_codes = expat.errors.codes
_MISMATCH: Final = _codes[expat.errors.XML_ERROR_TAG_MISMATCH]
_UNCLOSED: Final = _codes[expat.errors.XML_ERROR_UNCLOSED_TOKEN]
_NO_ELEMENTS: Final = _codes[expat.errors.XML_ERROR_NO_ELEMENTS]
