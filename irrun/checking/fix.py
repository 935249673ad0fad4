"""Fix an IR file: apply the fixes of its diagnostics, and write the result."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from irrun.checking.checker import check
from irrun.diagnostics import Diagnostic
from irrun.edits import Edit, Fix, apply
from irrun.files import NewFile
from irrun.ir.parse import Parsed, parse
from irrun.source import Source

__all__ = ["Fixed", "fix", "rewrite"]


@dataclass(frozen=True, slots=True)
class Fixed:
    """A document with fixes applied: its bytes, the number of fixes applied, and the diagnostics that remain."""

    data: bytes
    count: int
    left: tuple[Diagnostic, ...]


_ROUNDS: Final = 20
"""The most rounds of fixing. It bounds the time if fixes keep revealing new findings."""


def fix(parsed: Parsed, wanted: Callable[[Diagnostic], bool] = lambda _: True, *, unsafe: bool = False) -> Fixed:
    """Apply the fixes of the diagnostics that are ``wanted`` until none is left, and return the result in memory.

    Unsafe fixes are applied only if ``unsafe`` is true. Fixes are applied in rounds with a check after each, because
    a fix may reveal a new diagnostic.
    """
    count = 0
    seen: set[bytes] = set()
    while True:
        source = parsed.model.source
        report = check(parsed)
        offered = [d for d in report if d.fix and (d.fix.safe or unsafe) and wanted(d)]
        # two unsafe fixes of one layer may be alternatives for the same fault: apply only the first
        guesses = {d.layer: d for d in reversed(offered) if d.fix and not d.fix.safe}
        fixes = list(_apart(d.fix for d in offered if d.fix and (d.fix.safe or d is guesses[d.layer])))
        edits = {edit for fix in fixes for edit in fix.edits}
        data = apply(source, edits)
        if data == source.data or data in seen or len(seen) == _ROUNDS:
            return Fixed(source.data, count, report.diagnostics)
        seen.add(source.data)
        count += len(fixes)
        parsed = parse(Source(source.path, data), parsed.model.weights)


def _apart(fixes: Iterable[Fix]) -> Iterator[Fix]:
    """Yield the fixes that neither overlap nor touch an earlier fix, and those with the same edits as the one before.

    The next round offers the other fixes again.
    """
    end, last = -1, ()
    for fix in sorted(fixes, key=lambda fix: _ends(fix.edits)):
        if fix.edits == last:
            yield fix
        elif fix.edits and _ends(fix.edits)[0] > end:
            end, last = _ends(fix.edits)[1], fix.edits
            yield fix


def _ends(edits: tuple[Edit, ...]) -> tuple[int, int]:
    """Return the first byte of the edits, and the byte past their last one."""
    return min((e.start for e in edits), default=0), max((e.end for e in edits), default=0)


def rewrite(path: str | os.PathLike[str], data: bytes) -> None:
    """Replace the contents of a file, completely or not at all, and keep its permissions.

    If ``path`` is a symbolic link, its target is replaced. Raises OSError if the file cannot be written.
    """
    target = Path(path).resolve()
    if not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
    mode = stat.S_IMODE(target.stat().st_mode)
    with NewFile(target) as new:
        new.file.write(data)
        os.chmod(new.partial, mode)
        new.finish()
