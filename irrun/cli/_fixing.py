"""Fix models for ``irrun check --fix``, and show the changes for ``--diff``."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rich.text import Text

from irrun.base.source import encoding_of
from irrun.base.text import counted, printable
from irrun.checking.checker import check
from irrun.checking.fix import fix, rewrite
from irrun.cli import _models, _terminal
from irrun.cli._errors import exit_status
from irrun.diagnostics import Diagnostic, IrrunError, ReadError
from irrun.ir.parse import Parsed

__all__ = ["Outcome", "fixed", "show_diff", "summarize_diff", "write"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of fixing a file.

    ``before`` and ``after`` are its bytes, both empty if the file cannot be fixed (unreadable, or a page). ``count``
    is the number of fixed findings, ``left`` the findings that remain, and ``examples`` the number of examples if
    the file is a page. ``unchecked`` says why no run shows that the model computes what it did, None if one does.
    """

    before: bytes
    after: bytes
    count: int
    left: list[Diagnostic]
    examples: int = 0
    unchecked: str | None = None


_UNDEFINED: Final = ("IR502", "IR503", "IR508")
"""The codes of constants that do not fit their bytes. OpenVINO refuses them, so that their values are not defined."""


def fixed(file: str, weights: str | None, wanted: Callable[[Diagnostic], bool], *, unsafe: bool) -> Outcome:
    """Fix the ``wanted`` findings of a model, and return the result without writing it.

    Fixes that change the meaning of the model are applied only if ``unsafe``. A model that runs is run before and after
    each round of fixes, and keeps only fixes after which it gives the same. A page with examples is only checked.
    """
    try:
        items = _models.load(file, weights, may_be_empty=True)
    except IrrunError as error:
        return Outcome(b"", b"", 0, [d for d in error.diagnostics if wanted(d)])
    first = items[0] if len(items) == 1 else None
    if isinstance(first, Parsed) and not first.model.is_fragment:
        from irrun.running.unchanged import Unchanged  # imported late: without fixes, no model is run

        is_defined = not any(d.code in _UNDEFINED for d in check(first))
        unchanged = Unchanged(first.runnable, values=is_defined)
        result = fix(first, wanted, unsafe=unsafe, is_unchanged=lambda parsed: unchanged(parsed.runnable))
        left = [d for d in result.left if wanted(d)]
        return Outcome(first.model.source.data, result.data, result.count, left, unchecked=unchanged.unchecked)
    left = [d for item in items for d in (item.diagnostics if isinstance(item, ReadError) else check(item))]
    return Outcome(b"", b"", 0, [d for d in left if wanted(d)], sum(map(_models.is_example, items)))


def write(file: str, outcome: Outcome) -> None:
    """Replace the file by the fixed model if it has changed. Write a model from standard input to standard output."""
    _tell_unchecked(file, outcome)
    if file == "-":
        sys.stdout.flush()
        sys.stdout.buffer.write(outcome.after)
        sys.stdout.buffer.flush()
    elif outcome.after != outcome.before:
        rewrite(file, outcome.after)


def _tell_unchecked(file: str, outcome: Outcome) -> None:
    """Print why no run shows that the fixed model computes what it did."""
    if outcome.unchecked is not None and outcome.count:
        message = f"{file}: no run shows that the fixed model gives what it gave: {outcome.unchecked}"
        _terminal.console(stderr=True).print(Text(printable(message)))


# ---------------------------------------------------------------------------------------------
# differences

_CONTEXT_LINES: Final = 3
"""The number of unchanged lines shown before and after each change."""


def show_diff(file: str, outcome: Outcome) -> None:
    """Print the changes as a unified diff: coloured on a terminal, otherwise as plain UTF-8."""
    _tell_unchecked(file, outcome)
    if outcome.after == outcome.before:
        return
    lines = list(
        _unified("<stdin>" if file == "-" else printable(Path(file).as_posix()), outcome.before, outcome.after)
    )
    out = _terminal.console()
    if out.is_terminal:
        for line in lines:
            colour = {"+": "green", "-": "red", "@": "cyan"}.get(line[0], "")
            out.print(Text(printable(line.rstrip("\r\n").replace("\t", "    ")), colour))
        return
    sys.stdout.flush()
    sys.stdout.buffer.write("".join(lines).encode("utf-8", "replace"))
    sys.stdout.buffer.flush()


def summarize_diff(count: int, left: Sequence[Diagnostic]) -> int:
    """Print how many findings would be fixed and how many would be left, and return the exit status.

    It is 2 if a file cannot be read, 1 if a finding would be fixed, and otherwise 0.
    """
    _terminal.console(stderr=True).print(f"would fix {counted(count, 'finding')}; {len(left)} would be left")
    return 2 if exit_status(left) == 2 else int(count > 0)


def _unified(name: str, before: bytes, after: bytes) -> Iterator[str]:
    """Yield the lines of a unified diff, each with its line end."""
    a, b = (_lines(data) for data in (before, after))
    yield f"--- {name}\n"
    yield f"+++ {name}\n"
    hunks: list[list[tuple[int, int, int, int]]] = []
    for change in _changes(a, b):
        if hunks and change[0] - hunks[-1][-1][1] <= 2 * _CONTEXT_LINES:
            hunks[-1].append(change)
        else:
            hunks.append([change])
    for hunk in hunks:
        above = min(_CONTEXT_LINES, hunk[0][0])
        end = min(len(a), hunk[-1][1] + _CONTEXT_LINES)
        start, to = hunk[0][0] - above, hunk[0][2] - above
        written = [*_hunk(a, b, hunk, start, end)]
        old, new = (sum(line[0] in signs for line in written) for signs in (" -", " +"))
        yield f"@@ -{start + bool(old)},{old} +{to + bool(new)},{new} @@\n"
        for line in written:
            yield line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"


def _hunk(
    a: Sequence[str], b: Sequence[str], changes: Sequence[tuple[int, int, int, int]], start: int, end: int
) -> Iterator[str]:
    """Yield the lines of a hunk, which spans the lines ``start`` to ``end`` of ``a``, with their signs."""
    at = start
    for first, last, to, until in changes:
        yield from (f" {line}" for line in a[at:first])
        yield from (f"-{line}" for line in a[first:last])
        yield from (f"+{line}" for line in b[to:until])
        at = last
    yield from (f" {line}" for line in a[at:end])


def _changes(a: Sequence[str], b: Sequence[str]) -> Iterator[tuple[int, int, int, int]]:
    """Yield the ranges of lines that differ, as (start, end) in ``a`` followed by (start, end) in ``b``.

    difflib takes quadratic time if most lines repeat.
    """
    i = j = 0
    while i < len(a) or j < len(b):
        if i < len(a) and j < len(b) and a[i] == b[j]:
            i, j = i + 1, j + 1
            continue
        di, dj = _skipped(a, b, i, j)
        yield i, i + di, j, j + dj
        i, j = i + di, j + dj


def _skipped(a: Sequence[str], b: Sequence[str], i: int, j: int) -> tuple[int, int]:
    """Return how many lines of ``a`` from ``i`` on, and of ``b`` from ``j`` on, to skip until ``_CONTEXT_LINES`` agree.

    The sum is the least possible. The time is linear in it, so that a change of many lines takes no quadratic time.
    """
    window = 8
    while True:
        starts = {_following(a, i + di): di for di in reversed(range(min(window, len(a) - i) + 1))}
        pairs = (
            (starts[lines] + dj, starts[lines], dj)
            for dj in range(min(window, len(b) - j) + 1)
            if (lines := _following(b, j + dj)) in starts
        )
        distance, di, dj = min(pairs, default=(window + 1, 0, 0))
        if distance <= window or window >= max(len(a) - i, len(b) - j):  # a pair outside the window is farther
            return di, dj
        window *= 2


def _following(lines: Sequence[str], start: int) -> tuple[str, ...]:
    return tuple(lines[start : start + _CONTEXT_LINES])


def _lines(data: bytes) -> list[str]:
    """Return the lines of a file, each with its line end."""
    text = data.decode(encoding_of(data), "replace")
    return [line for line in text.replace("\n", "\n\0").split("\0") if line]
