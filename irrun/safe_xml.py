"""XML, locked down: no DOCTYPE, no entities, no network, bounded nesting and size; errors say where and why."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, Protocol, TypeVar
from xml.parsers import expat

from lxml import etree  # pyright: ignore[reportAttributeAccessIssue]  (no stubs)

from irrun.diagnostics import Diagnostic, ReadError
from irrun.source import Source, Span

__all__ = ["Target", "read_xml"]

T = TypeVar("T", covariant=True)


class Target(Protocol[T]):
    """Takes the elements of a document in their order, as lxml's target interface hands them out."""

    def start(self, tag: str, attributes: Mapping[str, str]) -> None: ...

    def end(self, tag: str) -> None: ...

    def data(self, text: str) -> None: ...

    def close(self) -> T: ...


def read_xml(source: Source, target: Target[T]) -> T:
    """Hand the elements of a well-formed document to ``target``; what its ``close`` returns.

    Raises ReadError (IR001, IR002, IR005, IR006).
    """
    if not source.data.strip(b"\x00 \t\r\n\xef\xbb\xbf"):
        raise ReadError(
            Diagnostic("IR001", "error", "the file is empty", file=source.path, source=source, span=Span(1, 1, 2))
        )
    data = _utf8(source)
    _refuse_doctype(source, data)
    parser = etree.XMLParser(
        target=target,
        encoding="utf-8",
        resolve_entities="internal",  # without a DOCTYPE: those of XML itself (False makes &amp; a "&#38;")
        no_network=True,
        load_dtd=False,
        huge_tree=False,  # at most 256 elements deep, 10 MB in one text or attribute
    )
    try:
        found = etree.fromstring(data, parser)
        if not data.isascii():  # expat, which finds the places of diagnostics, allows fewer characters in names
            expat.ParserCreate("utf-8").Parse(data, True)
    except etree.XMLSyntaxError as error:
        raise ReadError(_why_not_xml(source, data, error.msg or "", error.position)) from None
    except expat.ExpatError:
        raise ReadError(_why_not_xml(source, data)) from None
    return found


def _utf8(source: Source) -> bytes:
    try:
        return source.utf8
    except LookupError as error:
        message, line, column = f'the encoding "{error.args[0]}" is not one that irrun reads', 1, 1
    except UnicodeDecodeError as error:
        line, column = _place(source.data[: error.start].decode(error.encoding, "replace").removeprefix("\ufeff"))
        message = f"the bytes are not valid {error.encoding}: {error.reason}"
    span = source.stretch(line, column, column + 1)
    raise ReadError(
        Diagnostic(
            "IR006", "error", message, file=source.path, source=source, span=span, help="save the file as UTF-8"
        )
    )  # fmt: skip


def _place(before: str) -> tuple[int, int]:
    """The line and column, from 1, that follow a text."""
    lines = re.split(r"\r\n?|\n", before)
    return len(lines), len(lines[-1]) + 1


class _Stop(Exception):  # noqa: N818
    pass


def _refuse_doctype(source: Source, data: bytes) -> None:
    parser = expat.ParserCreate("utf-8")
    found: list[int] = []

    def doctype(*_: object) -> None:
        found.append(parser.CurrentByteIndex)
        raise _Stop

    def stop(*_: object) -> None:
        raise _Stop

    parser.StartDoctypeDeclHandler = doctype
    parser.StartElementHandler = stop
    start, size = 0, 1 << 16
    try:
        while start < len(data):  # the root element is mostly in the first block
            parser.Parse(data[start : start + size], False)
            start, size = start + size, size * 2
    except (_Stop, expat.ExpatError):
        pass  # what is not well-formed is told by the real parser
    if found:
        line, column = _place(data[: data.rfind(b"<!DOCTYPE", 0, found[0] + 9)].decode())
        raise ReadError(
            Diagnostic(
                "IR002", "error", "the file has a DOCTYPE, which irrun refuses", file=source.path, source=source,
                span=source.stretch(line, column, column + 9),
                help="remove the declaration; OpenVINO IR never needs one",
            )
        )  # fmt: skip


def _why_not_xml(source: Source, data: bytes, said: str = "", position: tuple[int, int] = (1, 1)) -> Diagnostic:
    """The exact place and a plain reason, from expat; libxml2's line numbers stop at 65,535.

    ``said`` and ``position`` are those of libxml2, which knows limits that expat does not.
    """
    parser = expat.ParserCreate("utf-8")
    opened: list[tuple[str, int, int]] = []
    too_deep: list[tuple[int, int]] = []

    def start(tag: str, _: dict[str, str]) -> None:
        opened.append((tag, parser.CurrentLineNumber, parser.CurrentColumnNumber))
        if len(opened) > 256 and not too_deep:
            too_deep.append(opened[-1][1:])

    def end(_: str) -> None:
        opened.pop()

    parser.StartElementHandler, parser.EndElementHandler = start, end
    first = source.first_line - 1

    def found(code: str, message: str, line: int, column: int, help: str | None = None, width: int = 1) -> Diagnostic:
        span = source.stretch(line, column + 1, column + 1 + width)
        return Diagnostic(code, "error", message, file=source.path, span=span, source=source, help=help)

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
                return found(
                    "IR001", f"<{tag}> is not closed: {typo[0]!r} lacks a <", at_line, at_column,
                    f"write {right}", len(typo[0]),
                )  # fmt: skip
            if error.code != _MISMATCH:
                what = "file" if source.whole is None else "example"
                message = f"the {what} ends inside <{tag}>, opened at line {first + at_line}"
                help = "the file is cut short; write or copy it again" if what == "file" else f"close it with </{tag}>"
                return found("IR001", message, line, column, help)
            message = f"the closing tag does not match <{tag}>, opened at line {first + at_line}"
            return found("IR001", message, line, column, f"close it with </{tag}>")
        if error.code == _NO_ELEMENTS:
            return found("IR001", "the file holds no element at all", line, column, "give the model's .xml file")
        return found("IR001", f"not well-formed XML: {reason}", line, column)
    if too_deep:
        return found("IR005", "more than 256 elements stand within each other", *too_deep[0])
    line, column = position if position[0] < 65535 else (1, 1)
    reason = said.split(", line")[0].strip() or "refused by the parser"
    code = "IR005" if re.search("limit|too (big|long|large)|huge", reason, re.IGNORECASE) else "IR001"
    return found(code, reason[:1].lower() + reason[1:], line, max(column, 1) - 1)


_codes = expat.errors.codes
_MISMATCH: Final = _codes[expat.errors.XML_ERROR_TAG_MISMATCH]
_UNCLOSED: Final = _codes[expat.errors.XML_ERROR_UNCLOSED_TOKEN]
_NO_ELEMENTS: Final = _codes[expat.errors.XML_ERROR_NO_ELEMENTS]
