"""Mutate a document: bytes, lines, elements, attributes, dims, encodings, nesting and the .bin."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from file_fuzz.corpus import Document

__all__ = ["mutant"]

_TOKEN: Final = re.compile(rb"<(/?)([A-Za-z_][\w.-]*)([^<>]*?)(/?)>")
_ATTRIBUTE: Final = re.compile(rb"""([\w.-]+)=("[^"<]*"|'[^'<]*')""")
_EXTREMES: Final = tuple(
    text.encode()
    for text in (
        "-1", "0", "1", "2", "3", "7", "8", "64", "255", "256", "65536", "2147483647", "-2147483648", "4294967296",
        "9223372036854775807", "9223372036854775808", "-9223372036854775808", "18446744073709551615", "", " ", "?",
        "-", "+1", "1.5", "1e400", "-0.0", "nan", "NaN", "inf", "-inf", "1e-45", "0x10", "1_000", "٣", "²", "true",
        "false", "True", "1,1", "-1,-1", "0,0,0", "1,2,3,4", "1,,2", "...", "1..8", "..", "3..1", "?,?", "0,?",
        "9223372036854775807,9223372036854775807", "f32", "f16", "bf16", "f64", "i64", "i32", "i8", "u8", "u4", "i4",
        "u1", "nf4", "string", "boolean", "dynamic", "unspecified", "f8e4m3", "FP32", "I64", "BOOL", "opset1",
        "opset3", "opset8", "opset13", "opset17", "opset99", "extension", "explicit", "numpy", "none", "same_upper",
        "same_lower", "valid", "bidirectional", "é\u200b\u2028", "&amp;", "&#10;", "&#x1b;[2J", "%s", "../x", "a" * 300,
        "Parameter", "Const", "Result", "Loop", "If", "Add", "Reshape", "Convolution", "9" * 40, "-" + "9" * 400,
    )
)  # fmt: skip
_TEXTS: Final = (
    b"\0", b"\xff", b"\xfe\xff", b"\xef\xbb\xbf", b"&", b"&#0;", b"&lt;", b"<", b">", b"]]>", b"<![CDATA[x]]>",
    b"<!-- -->", b"<!--", b"-->", b"<?x y?>", b"<!DOCTYPE net>", b'"', b"'", b"\r", b"\x1b[31m", b"\xe2\x80\xa8",
    b"\xed\xa0\x80", b"<x:y/>", b'xmlns:x="y"', b"```", b"```xml\n", b"<pre>", b"</pre>", b"</net>", b"<layer>",
    b"</layer>", b"<!-- irrun: ignore -->", b".. code::\n\n",
)  # fmt: skip
_FEW_DIGITS: Final = re.compile(rb"-?\d+|\?")


def mutant(documents: Sequence[Document], seed: str, number: int) -> Document:
    """Return the mutant of this number: a document with one to five mutations, always the same for the same seed."""
    rng = random.Random(f"{seed}/{number}")
    document = rng.choice(documents)
    for _ in range(rng.choice((1, 1, 1, 1, 2, 2, 3, 5))):
        document = rng.choices(_MUTATIONS, _WEIGHTS)[0](document, rng, documents)
    return document


def _bytes(document: Document, rng: random.Random, _: Sequence[Document]) -> Document:
    """Flip, replace, remove, repeat or insert bytes, or cut the text short."""
    text = bytearray(document.text)
    at = rng.randrange(len(text) + 1)
    length = min(rng.choice((1, 1, 2, 4, 16, 100)), len(text) - at)
    match rng.randrange(6):
        case 0 if at < len(text):
            text[at] ^= 1 << rng.randrange(8)
        case 1 if at < len(text):
            text[at] = rng.randrange(256)
        case 2:
            del text[at : at + length]
        case 3:
            text[at:at] = text[at : at + length] * rng.choice((1, 2, 50))
        case 4:
            del text[at:]
        case _:
            text[at:at] = rng.choice(_TEXTS)
    return replace(document, text=bytes(text))


def _lines(document: Document, rng: random.Random, _: Sequence[Document]) -> Document:
    """Remove, repeat, swap or move lines."""
    lines = document.text.split(b"\n")
    a, c = rng.randrange(len(lines)), rng.randrange(len(lines))
    match rng.randrange(4):
        case 0:
            del lines[a : a + rng.choice((1, 1, 2, 5))]
        case 1:
            lines[a:a] = lines[a : a + rng.choice((1, 1, 3))] * rng.choice((1, 1, 40))
        case 2:
            lines[a], lines[c] = lines[c], lines[a]
        case _:
            lines.insert(c, lines.pop(a))
    return replace(document, text=b"\n".join(lines))


def _spans(text: bytes) -> list[tuple[int, int, bytes]]:
    """Return start, end and tag of each element, as far as the tags match."""
    spans: list[tuple[int, int, bytes]] = []
    open: list[tuple[int, bytes]] = []
    for token in _TOKEN.finditer(text):
        closing, tag, _, empty = token.groups()
        if empty:
            spans.append((token.start(), token.end(), tag))
        elif not closing:
            open.append((token.start(), tag))
        elif open and open[-1][1] == tag:
            spans.append((open.pop()[0], token.end(), tag))
    return spans


def _elements(document: Document, rng: random.Random, documents: Sequence[Document]) -> Document:
    """Remove, repeat, swap, nest or replace an element, by one of another document, too."""
    text, spans = document.text, _spans(document.text)
    if not spans:
        return document
    tag = rng.choice(sorted({span[2] for span in spans}))  # else, most would be <dim>
    start, end, _ = rng.choice([span for span in spans if span[2] == tag] if rng.random() < 0.7 else spans)
    element = text[start:end]
    match rng.randrange(6):
        case 0:
            new = b""
        case 1:
            new = element * rng.choice((2, 2, 3, 30))
        case 2:
            new = b"<%b>" % tag + element + b"</%b>" % tag
        case 3:
            depth = rng.choice((2, 10, 200, 300))
            new = b"<layer>" * depth + element + b"</layer>" * depth
        case 4:
            other = rng.choice(documents)
            others = [span for span in _spans(other.text) if span[2] == tag]
            new = other.text[slice(*rng.choice(others)[:2])] if others else b""
        case _:
            first, last, _ = rng.choice([span for span in spans if span[2] == tag])
            new = text[first:last]
    return replace(document, text=text[:start] + new + text[end:])


def _attributes(document: Document, rng: random.Random, _: Sequence[Document]) -> Document:
    """Replace, remove, rename or repeat an attribute."""
    text = document.text
    names = sorted({match[1] for match in _ATTRIBUTE.finditer(text)})
    if not names:
        return document
    name = rng.choice(names)
    matches = [m for m in _ATTRIBUTE.finditer(text) if m[1] == name or rng.random() < 0.02]
    match = rng.choice(matches)
    value = match[2][1:-1]
    kind = rng.randrange(10)
    if kind == 0:
        new = b""
    elif kind == 1:
        new = b'%b="%b"' % (rng.choice(names), value)
    elif kind == 2:
        new = match[0] + b" " + match[0].replace(name, rng.choice((name, name + b"_", name.upper())))
    elif kind in (3, 4) and _FEW_DIGITS.search(value):
        numbers = list(_FEW_DIGITS.finditer(value))
        one = rng.choice(numbers)
        number = rng.choice((*_EXTREMES[:20], b"4", b"5", b"?", b"-2", one[0] + b"0", one[0] + b"," + one[0]))
        new = b'%b="%b"' % (match[1], value[: one.start()] + number + value[one.end() :])
    elif kind == 5:
        others = [m[2] for m in _ATTRIBUTE.finditer(text) if m[1] == match[1]]
        new = match[1] + b"=" + rng.choice(others)
    elif kind == 6 and rng.random() < 0.1:
        new = b'%b="%b"' % (match[1], rng.choice((b"9", b"0", b"1,", b"x", b"-1,")) * 5000)
    else:
        new = b'%b="%b"' % (match[1], rng.choice(_EXTREMES))
    return replace(document, text=text[: match.start()] + new + text[match.end() :])


def _dims(document: Document, rng: random.Random, _: Sequence[Document]) -> Document:
    """Replace the contents of an element that holds text, such as <dim>."""
    contents = list(re.finditer(rb">([^<>\n]{1,40})<", document.text))
    if not contents:
        return document
    at = rng.choice(contents)
    new = rng.choice(_EXTREMES[:30] if rng.random() < 0.9 else _EXTREMES)
    return replace(document, text=document.text[: at.start(1)] + new + document.text[at.end(1) :])


def _encoding(document: Document, rng: random.Random, _: Sequence[Document]) -> Document:
    """Declare another encoding, or encode the text in another one."""
    names = (b"utf-16", b"utf-32", b"latin-1", b"cp037", b"utf-7", b"idna", b"x-none", b"us-ascii", b"shift_jis", b"")
    name = rng.choice(names)
    text = re.sub(rb"^<\?xml[^>]*\?>", b"", document.text)
    declared = b'<?xml version="%b" encoding="%b"?>' % (rng.choice((b"1.0", b"1.0", b"1.1", b"")), name) + text
    if rng.random() < 0.5:
        declared = rng.choice((text, declared))
        codec = rng.choice(("utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-8-sig", "cp037", "utf-7"))
        declared = declared.decode("utf-8", "replace").encode(codec, "replace")
    return replace(document, text=declared)


def _weights(document: Document, rng: random.Random, _: Sequence[Document]) -> Document:
    """Truncate, extend, remove or overwrite the .bin."""
    data = bytearray(document.bin or b"")
    at = rng.randrange(len(data) + 1)
    match rng.randrange(7):
        case 0:
            return replace(document, bin=None)
        case 1:
            del data[at:]
        case 2:
            data += bytes(rng.choice((1, 7, 1000)))
        case 3:
            length = rng.choice((2, 4, 8, len(data) - at))
            data[at : at + length] = rng.choice((b"\xff", b"\x7f", b"\x80", b"\0")) * min(length, len(data) - at)
        case 4:
            del data[at : at + 1]
        case 5 if data:
            data = bytearray(rng.randbytes(len(data)))
        case _ if at < len(data):
            data[at] ^= 1 << rng.randrange(8)
    return replace(document, bin=bytes(data))


_Mutation = Callable[[Document, random.Random, Sequence[Document]], Document]
_MUTATIONS: Final[tuple[_Mutation, ...]] = (_bytes, _lines, _elements, _attributes, _dims, _encoding, _weights)
_WEIGHTS: Final = (1.5, 1.5, 5, 12, 4, 0.3, 2)
"""How often each mutation is drawn. Attributes have the most code behind them."""
