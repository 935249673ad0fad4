"""Put an IR file right: apply the fixes of its findings, and write what came of it."""

from __future__ import annotations

import errno
import os
import stat
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from irrun.checking.checker import check
from irrun.diagnostics import Diagnostic
from irrun.edits import Edit, Fix, apply
from irrun.ir.parse import Parsed, parse
from irrun.source import Source

__all__ = ["Fixed", "fix", "rewrite"]


@dataclass(frozen=True, slots=True)
class Fixed:
    """A document with its fixes applied: the bytes, how many findings are gone, and those that are left."""

    data: bytes
    count: int
    left: tuple[Diagnostic, ...]


_ROUNDS: Final = 20


def fix(parsed: Parsed, wanted: Callable[[Diagnostic], bool] = lambda _: True, *, unsafe: bool = False) -> Fixed:
    """Apply the fixes of the findings that are ``wanted`` until none is left; ``unsafe`` ones only if asked to.

    A finding may come to light only when another is put right, so that this takes rounds.
    """
    count = 0
    seen: set[bytes] = set()
    while True:
        source = parsed.model.source
        report = check(parsed)
        offered = [d for d in report if d.fix and (d.fix.safe or unsafe) and wanted(d)]
        # two guesses about one layer may be two answers to one fault
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
    """Those that neither overlap nor touch another; equal ones are one. The others wait for the next round."""
    end, last = -1, ()
    for fix in sorted(fixes, key=lambda fix: _ends(fix.edits)):
        if fix.edits == last:
            yield fix
        elif fix.edits and _ends(fix.edits)[0] > end:
            end, last = _ends(fix.edits)[1], fix.edits
            yield fix


def _ends(edits: tuple[Edit, ...]) -> tuple[int, int]:
    return min((e.start for e in edits), default=0), max((e.end for e in edits), default=0)


def rewrite(path: str | os.PathLike[str], data: bytes) -> None:
    """Give a file other contents, whole or not at all. A link stays a link, and permissions stay.

    Raises OSError where it may not be written.
    """
    target = Path(path).resolve()
    if not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
    mode = stat.S_IMODE(target.stat().st_mode)
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".part", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.chmod(name, mode)
        os.replace(name, target)
    except BaseException:
        os.unlink(name)
        raise
