"""Models put right for ``irrun check --fix``, and what that changes for ``--diff``."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rich.text import Text

from irrun.checking.checker import check
from irrun.checking.fix import fix, rewrite
from irrun.checking.render import printable
from irrun.cli import _models, _terminal
from irrun.cli._errors import exit_status
from irrun.diagnostics import Diagnostic, IrrunError, ReadError, counted
from irrun.ir.parse import Parsed
from irrun.source import encoding_of

__all__ = ["Outcome", "fixed", "show_diff", "summarize_diff", "write"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """A file before and after its fixes, how many findings they put right, what is left, and its examples."""

    before: bytes
    after: bytes
    count: int
    left: list[Diagnostic]
    examples: int = 0


def fixed(file: str, weights: str | None, wanted: Callable[[Diagnostic], bool], *, unsafe: bool) -> Outcome:
    """Fix what is wanted of a model. A page with examples is only checked."""
    try:
        items = _models.load(file, weights, may_be_empty=True)
    except IrrunError as error:
        return Outcome(b"", b"", 0, [d for d in error.diagnostics if wanted(d)])
    first = items[0] if len(items) == 1 else None
    if isinstance(first, Parsed) and not first.model.is_fragment:
        found = fix(first, wanted, unsafe=unsafe)
        return Outcome(first.model.source.data, found.data, found.count, [d for d in found.left if wanted(d)])
    left = [d for item in items for d in (item.diagnostics if isinstance(item, ReadError) else check(item))]
    return Outcome(b"", b"", 0, [d for d in left if wanted(d)], sum(map(_models.is_example, items)))


def write(file: str, outcome: Outcome) -> None:
    """Put the fixed model in the place of the other; that of standard input goes to standard output."""
    if file == "-":
        sys.stdout.flush()
        sys.stdout.buffer.write(outcome.after)
        sys.stdout.buffer.flush()
    elif outcome.after != outcome.before:
        rewrite(file, outcome.after)


# ---------------------------------------------------------------------------------------------
# differences

_CONTEXT: Final = 3


def show_diff(file: str, outcome: Outcome) -> None:
    """Print what fixing changes as a unified diff: in colours on a terminal, elsewhere just the bytes in UTF-8."""
    if outcome.after == outcome.before:
        return
    lines = list(_unified("<stdin>" if file == "-" else Path(file).as_posix(), outcome.before, outcome.after))
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
    """Print how many findings would be put right and left; the exit status, 1 where there are some of the former."""
    _terminal.console(stderr=True).print(f"would fix {counted(count, 'finding')}; {len(left)} would be left")
    return 2 if exit_status(left) == 2 else int(count > 0)


def _unified(name: str, before: bytes, after: bytes) -> Iterator[str]:
    a, b = (_lines(data) for data in (before, after))
    yield f"--- {name}\n"
    yield f"+++ {name}\n"
    hunks: list[list[tuple[int, int, int, int]]] = []
    for change in _changes(a, b):
        if hunks and change[0] - hunks[-1][-1][1] <= 2 * _CONTEXT:
            hunks[-1].append(change)
        else:
            hunks.append([change])
    for hunk in hunks:
        above = min(_CONTEXT, hunk[0][0])
        end = min(len(a), hunk[-1][1] + _CONTEXT)
        start, to = hunk[0][0] - above, hunk[0][2] - above
        written = [*_hunk(a, b, hunk, start, end)]
        old, new = (sum(line[0] in signs for line in written) for signs in (" -", " +"))
        yield f"@@ -{start + bool(old)},{old} +{to + bool(new)},{new} @@\n"
        for line in written:
            yield line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"


def _hunk(
    a: Sequence[str], b: Sequence[str], changes: Sequence[tuple[int, int, int, int]], start: int, end: int
) -> Iterator[str]:
    at = start
    for first, last, to, until in changes:
        yield from (f" {line}" for line in a[at:first])
        yield from (f"-{line}" for line in a[first:last])
        yield from (f"+{line}" for line in b[to:until])
        at = last
    yield from (f" {line}" for line in a[at:end])


def _changes(a: Sequence[str], b: Sequence[str]) -> Iterator[tuple[int, int, int, int]]:
    """The stretches of lines that differ, as (start, end) in ``a`` and in ``b``.

    In time linear in the file, since fixes change few lines in one place: difflib is not, where most lines repeat.
    """
    i = j = 0
    while i < len(a) or j < len(b):
        if i < len(a) and j < len(b) and a[i] == b[j]:
            i, j = i + 1, j + 1
            continue
        di, dj = next(
            (di, distance - di)
            for distance in range(1, len(a) + len(b) - i - j + 1)
            for di in range(distance + 1)
            if i + di <= len(a)
            and j + distance - di <= len(b)
            and a[i + di : i + di + _CONTEXT] == b[j + distance - di : j + distance - di + _CONTEXT]
        )
        yield i, i + di, j, j + dj
        i, j = i + di, j + dj


def _lines(data: bytes) -> list[str]:
    text = data.decode(encoding_of(data), "replace")
    return [line for line in text.replace("\n", "\n\0").split("\0") if line]
