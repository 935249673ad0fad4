"""Findings with the bytes of the text that they and their fixes mean."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final, NamedTuple, Protocol

from irrun.base.edits import Fix
from irrun.diagnostics import Diagnostic

__all__ = ["MOST_FINDINGS", "Change", "Finding", "Remedy", "moved", "moved_remedies", "placed"]

MOST_FINDINGS: Final = 1000
"""The most findings of a file that an editor gets: it shows them all at each edit, and nobody reads more."""


class Change(NamedTuple):
    """A replacement of bytes ``start`` to ``end`` (exclusive) of a text."""

    start: int
    end: int
    text: str


class Remedy(NamedTuple):
    """A fix of a finding as changes of the text. ``is_safe`` is as in ``Fix.safe``."""

    title: str
    changes: tuple[Change, ...]
    is_safe: bool


@dataclass(frozen=True, slots=True)
class Finding:
    """A diagnostic at bytes ``start`` to ``end`` (exclusive) of a text; at its beginning if it has no position."""

    diagnostic: Diagnostic
    start: int
    end: int
    remedies: tuple[Remedy, ...] = ()


class Text(Protocol):
    """A text in which the lines and columns of diagnostics mean bytes: a Source, or a Buffer."""

    def byte(self, line: int, column: int) -> int: ...


def placed(diagnostics: Iterable[Diagnostic], text: Text) -> Iterator[Finding]:
    """Yield findings for diagnostics, whose spans are those of ``text``, and whose edits are bytes of their source."""
    for diagnostic in diagnostics:
        span = diagnostic.span
        start, end = (text.byte(span.line, at) for at in (span.column, span.end)) if span else (0, 0)
        yield Finding(diagnostic, start, end, tuple(_remedies(diagnostic)))


def _remedies(diagnostic: Diagnostic) -> Iterator[Remedy]:
    """Yield the fix of a diagnostic, then those to apply otherwise."""
    source, fix = diagnostic.source, diagnostic.fix
    mark = len(source.data) - len(source.utf8) if source is not None else 0  # a byte order mark
    while fix is not None:
        changes = [Change(edit.start - mark, edit.end - mark, edit.text) for edit in fix.edits]
        yield Remedy(_title(fix), tuple(changes), fix.safe)
        fix = fix.otherwise


def _title(fix: Fix) -> str:
    return fix.title if fix.safe else f"{fix.title} (changes what the model means)"


def moved(finding: Finding, where: Callable[[int], int | None]) -> Finding | None:
    """Return a finding in another text, or None if its bytes are not in it.

    ``where`` returns the place of a byte there, or None. A remedy whose bytes are not there is left out.
    """
    now = _extent(finding.start, finding.end, where)
    return now and replace(finding, start=now[0], end=now[1], remedies=moved_remedies(finding.remedies, where))


def moved_remedies(remedies: Iterable[Remedy], where: Callable[[int], int | None]) -> tuple[Remedy, ...]:
    """Return the remedies whose bytes are in another text, with their places there, as in ``moved``."""
    return tuple(remedy for remedy in (_moved(one, where) for one in remedies) if remedy is not None)


def _moved(remedy: Remedy, where: Callable[[int], int | None]) -> Remedy | None:
    changes: list[Change] = []
    for change in remedy.changes:
        now = _extent(change.start, change.end, where)
        if now is None or now[1] - now[0] != change.end - change.start:
            return None
        changes.append(Change(*now, change.text))
    return remedy._replace(changes=tuple(changes))


def _extent(start: int, end: int, where: Callable[[int], int | None]) -> tuple[int, int] | None:
    """Return where bytes ``start`` to ``end`` (exclusive) are in another text, or None."""
    first, last = where(start), where(end - 1) if end > start else None
    if first is None or (last is None and end > start):
        return None
    return first, first if last is None else last + 1
