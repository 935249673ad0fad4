"""Suppress diagnostics by comments in the file, such as ``<!-- irrun: ignore IR401 -->``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Final

from irrun.base.source import Source
from irrun.diagnostics import Diagnostic

__all__ = ["without_ignored"]

# Both patterns take linear time on any line.
_COMMENT: Final = re.compile(r"<!--[^<]*?-->")
_IGNORE: Final = re.compile(
    r"<!--\s*+irrun:\s*+ignore\b(?P<codes>(?:[\s,]*+\bIR\d++\b)*+)(?P<reason>[^<]*?)-->", re.IGNORECASE
)


def without_ignored(source: Source, diagnostics: Iterable[Diagnostic]) -> Iterator[Diagnostic]:
    """Drop diagnostics that a comment suppresses, on the same line or alone on the line before."""
    codes: dict[int, tuple[str, ...]] = {}  # cached by line, because one line may hold a whole model
    for diagnostic in diagnostics:
        line = diagnostic.line
        if line is not None:
            if line not in codes:
                codes[line] = _suppressed_codes(source.line(line - 1), source.line(line))
            if diagnostic.code.startswith(codes[line]):
                continue
        yield diagnostic


@lru_cache(maxsize=1)
def _suppressed_codes(before: str, line: str) -> tuple[str, ...]:
    """Return the codes that are suppressed on a line. A line of a page may hold all its examples: hence the cache."""
    alone = not _COMMENT.sub("", before).strip()
    return _ignored_codes(line) + (_ignored_codes(before) if alone else ())


def _ignored_codes(line: str) -> tuple[str, ...]:
    """Return the codes, or prefixes of codes, in comments such as ``<!-- irrun: ignore IR401, IR303 reason -->``.

    A comment with neither a code nor a reason suppresses every diagnostic: it gives ``IR``, the prefix of all codes.
    """
    codes: list[str] = []
    for comment in _IGNORE.finditer(line):
        codes += re.findall(r"IR\d+", comment["codes"].upper()) or ([] if comment["reason"].strip() else ["IR"])
    return tuple(codes)
