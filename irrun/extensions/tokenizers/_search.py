"""Search strings with a compiled pattern and say where the matches are, in bytes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

import numpy as np

from irrun.diagnostics import Refused
from irrun.extensions.tokenizers._packages import PackageMissing
from irrun.extensions.tokenizers._patterns import DoesNotCompile, Pattern, compiled, shown, try_compile
from irrun.extensions.tokenizers._strings import known_bytes
from irrun.opdef import Value

__all__ = ["byte_offsets", "check_pattern", "doubtful_pattern", "parts", "separator", "tiles"]


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


_CLASS: Final = re.compile(r"""
    (?:\[(?:[^\[\]\\]|\\[pP]\{[^}]*\}|\\.)+\]      # a class
    |\\[pP]\{[^}]*\}                              # a property
    |\\U[0-9a-f]{8})                              # a character
    (?:\+|\{\d+,\})?                             # often
""", re.VERBOSE)  # fmt: skip
"""One character of a class, or a run of such characters."""
_MARKS: Final = "\0\n~a"


def separator(pattern: Pattern) -> str | None:
    """Return a character that may join strings without a change of the matches of ``pattern`` in them, or None.

    The pattern is a single class of characters, repeated or not, that lacks this character.
    """
    source = pattern.translated
    if pattern.compiled.groups == 1 and source.startswith("(") and source.endswith(")"):
        source = source[1:-1]
    if not _CLASS.fullmatch(source):
        return None
    return next((mark for mark in _MARKS if pattern.compiled.search(mark) is None), None)


def parts(pattern: Pattern, text: str) -> list[str]:
    """Return a gap of ``text``, a match, a gap, …, a gap. Gaps may be empty; an empty match ends the search."""
    try:
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
    except TimeoutError:
        raise pattern.too_slow(text) from None
    return [*found, text[at:]]


def tiles(pattern: Pattern, text: str) -> list[str] | None:
    """Return the matches in ``text`` if they follow each other without gaps. This is cheaper than ``parts``."""
    if pattern.compiled.groups:
        return None
    try:
        found = pattern.compiled.findall(text, timeout=pattern.patience(text))
    except TimeoutError:
        raise pattern.too_slow(text) from None
    return found if sum(map(len, found)) == len(text) and "" not in found else None


def byte_offsets(text: str, size: int) -> np.ndarray | None:
    """Return the offset of each character of ``text`` in its ``size`` bytes, and ``size``; None if they are equal."""
    if size == len(text):
        return None
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
    lengths = 1 + (codes >= 0x80) + (codes >= 0x800) + (codes >= 0x10000)
    lengths[(codes >= 0xDC80) & (codes <= 0xDCFF)] = 1  # a byte that is not UTF-8
    return np.concatenate(([0], np.cumsum(lengths)))
