"""Search strings with a compiled pattern and say where the matches are, in bytes."""

from __future__ import annotations

import itertools
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from irrun.diagnostics import Refused
from irrun.extensions.tokenizers._packages import PackageMissing, package
from irrun.extensions.tokenizers._patterns import Pattern, compiled, try_compile
from irrun.extensions.tokenizers._strings import known_bytes
from irrun.extensions.tokenizers._translation import DoesNotCompile, shown
from irrun.opdef import Value

__all__ = [
    "Joint", "byte_offsets", "byte_parts", "characters", "check_pattern", "doubtful_pattern", "is_utf8", "joint",
    "parts", "tiles",
]  # fmt: skip


def check_pattern(pattern: Value) -> None:
    """Refuse (IR201) a known pattern that irrun cannot express. Without the package ``regex``, accept any."""
    source = known_bytes(pattern)
    if source is not None:
        with suppress(PackageMissing):  # a check does without the package, a run does not
            try_compile(source)


def doubtful_pattern(pattern: Value, then: str, label: str) -> Iterator[Refused]:
    """Yield the warning for a known pattern that PCRE2 does not compile. ``then`` says what OpenVINO does."""
    source = known_bytes(pattern)
    try:
        if source is not None:
            compiled(source)
    except DoesNotCompile as error:
        text = source.decode("utf-8", "replace") if source else ""
        message = f"the pattern {shown(text)} does not compile (position {error.position}: {error}), so that {then}"
        yield Refused(message, label, "correct the pattern", code="IR406")
    except Refused:
        return


_ONE: Final = r"(?:\[(?:[^\[\]\\]|\\[pP]\{[^}]*\}|\\.)+\]|\\[pP]\{[^}]*\}|\\U[0-9a-f]{8})"
_RUN: Final = re.compile(rf"(\(?)({_ONE}(?:\+|\{{\d+,\}})?)(\)?)")
_FIRST: Final = re.compile(rf"(\(\^\)|\^)(\(?)({_ONE})(\)?)")
"""A pattern of one class of characters, repeated or not, and a pattern of one such character at the beginning."""
_MARKS: Final = "\0\n~a"


@dataclass(frozen=True, slots=True)
class Joint:
    """A pattern that finds in strings joined by ``mark`` what another pattern finds in each of them."""

    mark: str
    compiled: Any


def joint(pattern: Pattern) -> Joint | None:
    """Return a pattern for joined strings, with the same groups, or None if there is none."""
    if run := _RUN.fullmatch(pattern.translated):
        mark = next((mark for mark in _MARKS if pattern.compiled.search(mark) is None), None)
        return Joint(mark, pattern.compiled) if mark and len(run[1]) == len(run[3]) else None
    if (first := _FIRST.fullmatch(pattern.translated)) and len(first[2]) == len(first[4]):
        begin = r"(?<![^\x00])(?!\x00)"
        begin = f"({begin})" if first[1] == "(^)" else begin
        return Joint("\0", package("regex").compile(f"{begin}{first[2]}{first[3]}{first[4]}", pattern.compiled.flags))
    return None


def parts(pattern: Pattern, text: str) -> list[str]:
    """Return a gap of ``text``, a match, a gap, …, a gap. Gaps may be empty; an empty match ends the search."""
    with pattern.searching(text):
        if pattern.separating is not None:
            found = pattern.separating.split(text, timeout=pattern.patience(text))
            if "" not in found[1::2]:
                return found
        found, at = [], 0
        for match in pattern.compiled.finditer(text, timeout=pattern.patience(text)):
            if match.end() <= match.start():
                break
            found += (text[at : match.start()], match[0])
            at = match.end()
    return [*found, text[at:]]


def byte_parts(pattern: Pattern, data: bytes) -> list[bytes]:
    """Return what ``parts`` does of bytes."""
    text, offsets = byte_offsets(data)
    ends = list(itertools.accumulate(map(len, parts(pattern, text))))
    edges = [0, *(ends if offsets is None else (int(offsets[end]) for end in ends))]
    return [data[begin:end] for begin, end in itertools.pairwise(edges)]


def tiles(pattern: Pattern, text: str) -> list[str] | None:
    """Return the matches in ``text`` if they follow each other without gaps. This is cheaper than ``parts``."""
    if pattern.compiled.groups:
        return None
    with pattern.searching(text):
        found = pattern.compiled.findall(text, timeout=pattern.patience(text))
    return found if sum(map(len, found)) == len(text) and "" not in found else None


def is_utf8(data: bytes) -> bool:
    """Return whether bytes are UTF-8."""
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


_BEYOND: Final = "\uffff"
"""What stands for a character above 10FFFF: it belongs to no category either."""


def characters(data: bytes) -> tuple[str, list[int]]:
    """Return the characters that PCRE2 sees in any bytes, and their offsets, with that of the end.

    PCRE2 does not check the bytes. The first byte of a sequence gives its length, and each byte behind it six bits,
    whatever it is; a byte 80 to BF that follows no such byte is the character of this number. PCRE2 looks for the rest
    of a sequence that the end breaks off behind the string; here, that rest is zeros.
    """
    found: list[str] = []
    offsets = [0]
    at = 0
    while at < len(data):
        lead = data[at]
        width = 1 if lead < 0xC0 else 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4
        code = lead if width == 1 else lead & (0x7F >> width)
        for byte in data[at + 1 : at + width].ljust(width - 1, b"\0"):
            code = code << 6 | byte & 0x3F
        found.append(chr(code) if code <= sys.maxunicode else _BEYOND)
        at += width
        offsets.append(min(at, len(data)))
    return "".join(found), offsets


def byte_offsets(data: bytes) -> tuple[str, Sequence[int] | np.ndarray | None]:
    """Return the characters of bytes, and their offsets, with that of the end; None for offsets that are the places."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return characters(data)
    if len(text) == len(data):
        return text, None
    codes = np.frombuffer(text.encode("utf-32-le"), np.uint32)
    lengths = 1 + (codes >= 0x80) + (codes >= 0x800) + (codes >= 0x10000)
    return text, np.concatenate(([0], np.cumsum(lengths)))
