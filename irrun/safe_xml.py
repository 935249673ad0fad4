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
    _refuse_doctype(source)
    parser = etree.XMLParser(
        target=target,
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        huge_tree=False,  # at most 256 elements deep, 10 MB in one text or attribute
    )
    try:
        return etree.fromstring(source.data, parser)
    except (etree.XMLSyntaxError, ValueError) as error:
        raise ReadError(_why_not_xml(source, str(error))) from None


class _Stop(Exception):  # noqa: N818
    pass


def _refuse_doctype(source: Source) -> None:
    parser = expat.ParserCreate()
    found: list[tuple[int, int]] = []

    def doctype(*_: object) -> None:
        found.append((parser.CurrentLineNumber, parser.CurrentColumnNumber))
        raise _Stop

    def stop(*_: object) -> None:
        raise _Stop

    parser.StartDoctypeDeclHandler = doctype
    parser.StartElementHandler = stop
    try:
        for start in range(0, len(source.data), 1 << 16):  # the root element is mostly in the first block
            parser.Parse(source.data[start : start + (1 << 16)], False)
    except (_Stop, expat.ExpatError, ValueError, LookupError):
        pass  # what is not well-formed is told by the real parser
    if found:
        line, column = found[0][0] + source.first_line - 1, found[0][1]
        raise ReadError(
            Diagnostic(
                "IR002", "error", "the file has a DOCTYPE, which irrun refuses",
                file=source.path, source=source, span=Span(line, column + 1, column + 10),
                help="remove the declaration; OpenVINO IR never needs one",
            )
        )  # fmt: skip


def _why_not_xml(source: Source, said: str) -> Diagnostic:
    """The exact place and a plain reason, from expat; libxml2's line numbers stop at 65,535."""
    parser = expat.ParserCreate()
    opened: list[tuple[str, int, int]] = []

    def start(tag: str, _: dict[str, str]) -> None:
        opened.append((tag, parser.CurrentLineNumber, parser.CurrentColumnNumber))

    def end(_: str) -> None:
        opened.pop()

    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.StartDoctypeDeclHandler = None
    first = source.first_line - 1

    def found(code: str, message: str, line: int, column: int, help: str | None = None, width: int = 1) -> Diagnostic:
        span = Span(first + line, column + 1, column + 1 + width)
        return Diagnostic(code, "error", message, file=source.path, span=span, source=source, help=help)

    try:
        parser.Parse(source.data, True)
    except expat.ExpatError as error:
        reason = expat.ErrorString(error.code)
        line, column = error.lineno, error.offset
        if error.code in (_MISMATCH, _NO_ELEMENTS, _UNCLOSED) and opened:
            tag, at_line, at_column = opened[-1]
            text = source.line(first + at_line)[at_column:]
            typo = re.match(rf"(<{tag}(?:\s[^<>]*)?>)([^<>]*?)\s*/\s*{tag}\s*>", text)
            if typo:
                right = f"{typo[1]}{typo[2].strip()}</{tag}>"
                return found(
                    "IR001", f"<{tag}> is not closed: {typo[0]!r} lacks a <", at_line, at_column,
                    f"write {right}", len(typo[0]),
                )  # fmt: skip
            if error.code != _MISMATCH:
                message = f"the file ends inside <{tag}>, opened at line {first + at_line}"
                return found("IR001", message, line, column, "the file is cut short; write or copy it again")
            message = f"the closing tag does not match <{tag}>, opened at line {first + at_line}"
            return found("IR001", message, line, column, f"close it with </{tag}>")
        if error.code in (_BAD_TOKEN, _UNKNOWN_ENCODING, _WRONG_ENCODING) and _undecodable(source.data):
            return found("IR006", f"the bytes are not valid text: {reason}", line, column, "save the file as UTF-8")
        if error.code == _NO_ELEMENTS:
            return found("IR001", "the file holds no element at all", line, column, "give the model's .xml file")
        return found("IR001", f"not well-formed XML: {reason}", line, column)
    except ValueError as error:
        return found("IR006", f"the encoding cannot be read: {error}", 1, 0, "save the file as UTF-8")
    if "encod" in said.lower():
        return found("IR006", f"the bytes are not valid text: {said}", 1, 0, "save the file as UTF-8")
    return found("IR005", f"refused by the parser: {said}", 1, 0)


_codes = expat.errors.codes
_MISMATCH: Final = _codes[expat.errors.XML_ERROR_TAG_MISMATCH]
_UNCLOSED: Final = _codes[expat.errors.XML_ERROR_UNCLOSED_TOKEN]
_NO_ELEMENTS: Final = _codes[expat.errors.XML_ERROR_NO_ELEMENTS]
_BAD_TOKEN: Final = _codes[expat.errors.XML_ERROR_INVALID_TOKEN]
_UNKNOWN_ENCODING: Final = _codes[expat.errors.XML_ERROR_UNKNOWN_ENCODING]
_WRONG_ENCODING: Final = _codes[expat.errors.XML_ERROR_INCORRECT_ENCODING]


def _undecodable(data: bytes) -> bool:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return True
    return b"encoding=" in data[:200]
