"""Fix an IR file: apply the fixes of its diagnostics, and write the result."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from irrun.base.edits import Edits, Fix, apply
from irrun.base.source import Source
from irrun.checking.checker import check
from irrun.diagnostics import Diagnostic, ReadError, Report
from irrun.files import NewFile
from irrun.ir.parse import Parsed, parse
from irrun.model import Model

__all__ = ["Fixed", "fix", "rewrite"]


@dataclass(frozen=True, slots=True)
class Fixed:
    """A document with fixes applied: its bytes, the number of fixes applied, and the diagnostics that remain.

    A diagnostic that remains because its fix would change what the model computes has a note that says so.
    """

    data: bytes
    count: int
    left: tuple[Diagnostic, ...]


_MAX_ROUNDS: Final = 20
"""The most rounds of fixing. It bounds the time if fixes keep revealing new findings."""
_MAX_CHECKS: Final = 200
"""The most checks of one call of ``fix``. It bounds the time if many fixes add errors."""
_MAX_CHECKED_BYTES: Final = 1 << 24
"""The bytes of a document that one call of ``fix`` may check in all, beyond ``_MIN_CHECKS`` checks."""
_MIN_CHECKS: Final = 4
"""The checks that ``fix`` may make of a document of any size. Fixes that add no errors need one for each round."""


def fix(
    parsed: Parsed,
    wanted: Callable[[Diagnostic], bool] = lambda _: True,
    *,
    unsafe: bool = False,
    is_unchanged: Callable[[Parsed], bool] = lambda _: True,
) -> Fixed:
    """Apply the fixes of the diagnostics that are ``wanted`` until none is left, and return the result in memory.

    Unsafe fixes are applied only if ``unsafe`` is true. Fixes are applied in rounds with a check after each, because
    a fix may reveal a new diagnostic. A fix that leaves more errors than before is not kept, and neither is a fix after
    which ``is_unchanged`` says that the model no longer computes what it did.
    """
    count = 0
    seen: set[bytes] = set()
    state = _State(parsed, check(parsed))
    trials = _Trials(len(state.data), is_unchanged)
    while len(seen) < _MAX_ROUNDS:
        offered = [
            replace(d, fix=chosen)
            for d in state.report
            if (chosen := trials.choose(d)) and (chosen.safe or unsafe) and wanted(d)
        ]
        # two unsafe fixes of one layer may be alternatives for the same fault: apply only the first
        guesses = {d.layer: d for d in reversed(offered) if d.fix and not d.fix.safe}
        fixes = list(_without_overlaps(d for d in offered if d.fix and (d.fix.safe or d is guesses[d.layer])))
        refused = len(trials.refused)
        kept, after = trials.keep(state, fixes)
        if not kept and len(trials.refused) > refused:
            continue  # another fix of the same layer may be an alternative
        seen.add(state.data)
        if not kept or after.data in seen:
            break
        count += len(kept)
        state = after
    left = [d if trials.choose(d) is d.fix else replace(d, notes=(*d.notes, _REFUSED)) for d in state.report]
    return Fixed(state.data, count, tuple(left))


_REFUSED: Final = "not fixed: the model runs, and would not give the same after this fix"
"""The note of a finding whose fix is not kept, because the model would no longer compute what it did."""


def _key(diagnostic: Diagnostic) -> tuple[str, str | None, str]:
    """Return what identifies a diagnostic before and after other fixes."""
    return diagnostic.code, diagnostic.layer, diagnostic.message


@dataclass(frozen=True, slots=True)
class _State:
    """A document while it is being fixed, with the report of its check."""

    parsed: Parsed
    report: Report

    @property
    def data(self) -> bytes:
        return self.parsed.model.source.data


class _Trials:
    """Applies fixes to a document of ``size`` bytes and checks the result, as often as the constants above allow.

    ``refused`` holds the diagnostics, each with the title of its fix, that alone add no error but change what the model
    computes.
    """

    def __init__(self, size: int, is_unchanged: Callable[[Parsed], bool]) -> None:
        self.refused: set[tuple[str, str | None, str, str]] = set()
        self._is_unchanged = is_unchanged
        self._left = max(min(_MAX_CHECKS, _MAX_CHECKED_BYTES // max(size, 1)), _MIN_CHECKS)

    def choose(self, diagnostic: Diagnostic) -> Fix | None:
        """Return the fix of a diagnostic to try next, or None if each would change what the model computes."""
        fix = diagnostic.fix
        while fix is not None and (*_key(diagnostic), fix.title) in self.refused:
            fix = fix.otherwise
        return fix

    def keep(self, before: _State, fixes: Sequence[Diagnostic]) -> tuple[list[Diagnostic], _State]:
        """Return the diagnostics whose fixes neither add an error nor change what the model computes.

        The second value is the document after these fixes.

        If some of the fixes add an error, the fixes of layers that follow one another are tried apart, because each
        may be made for what the other declares now. What still adds an error is halved until it is clear which.
        """
        kept: list[Diagnostic] = []
        after = before
        whole = list(fixes)
        waiting = [whole]
        while waiting:
            batch = waiting.pop()
            if after is not before:  # a kept fix may have fixed these as well
                left = {_key(d) for d in after.report}
                batch = [d for d in batch if _key(d) in left]
            if not batch:
                continue
            trial = self._apply(before, [*kept, *batch])
            removes = trial is not None and (
                len(trial.report.errors) <= len(after.report.errors) - _least_removed(batch)
            )
            if trial is not None and removes and self._is_unchanged(trial.parsed):
                kept, after = [*kept, *batch], trial
            elif batch is whole and (parts := _split_dependent(before.parsed.model, batch))[1]:
                waiting += reversed(parts)
            elif len(batch) > 1:
                middle = len(batch) // 2
                waiting += batch[middle:], batch[:middle]
            elif removes and batch[0].fix is not None:
                self.refused.add((*_key(batch[0]), batch[0].fix.title))
        return kept, after

    def _apply(self, before: _State, fixes: Sequence[Diagnostic]) -> _State | None:
        """Return the document with ``fixes`` applied; None if it cannot be read, or after too many checks."""
        if self._left == 0:
            return None
        self._left -= 1
        model = before.parsed.model
        # findings of one port share their edits, which may be many
        shared = {id(edits): edits for edits in map(_edits, fixes)}
        edits = {edit for edits in shared.values() for edit in edits}
        try:
            parsed = parse(Source(model.source.path, apply(model.source, edits)), model.weights)
        except ReadError:
            return None
        return _State(parsed, check(parsed))


def _split_dependent(model: Model, diagnostics: Sequence[Diagnostic]) -> tuple[list[Diagnostic], list[Diagnostic]]:
    """Part diagnostics in two, so that no layer of the first part reads an output of another layer of this part."""
    ids = {name: id for id, name in model.unique_names.items()}
    chosen: set[int] = set()
    parts: tuple[list[Diagnostic], list[Diagnostic]] = ([], [])
    for diagnostic in diagnostics:
        id = ids.get(diagnostic.layer or "", -1)
        follows = any(feed is not None and feed[0] in chosen for feed in model.feeds.get(id, ()))
        parts[follows].append(diagnostic)
        if not follows:
            chosen.add(id)
    return parts


def _least_removed(batch: Sequence[Diagnostic]) -> int:
    """Return how many errors must disappear for a batch to be kept as a whole.

    A single fix may reveal as many errors as it removes. In a batch, each fix of an error must remove it: otherwise
    one fix could hide the errors that another one adds.
    """
    return sum(diagnostic.severity == "error" for diagnostic in batch) if len(batch) > 1 else 0


def _without_overlaps(diagnostics: Iterable[Diagnostic]) -> Iterator[Diagnostic]:
    """Yield the diagnostics whose fixes neither overlap nor touch an earlier one, or have the edits of the one before.

    The next round offers the other fixes again.
    """
    end, last = -1, ()
    ends: dict[int, tuple[int, int]] = {}  # by id(): findings of one port share their edits, which may be many
    offered = list(diagnostics)
    for edits in map(_edits, offered):
        if id(edits) not in ends:
            ends[id(edits)] = _extent(edits)
    for diagnostic in sorted(offered, key=lambda d: ends[id(_edits(d))]):
        edits = _edits(diagnostic)
        if edits is last or edits == last:
            yield diagnostic
        elif edits and ends[id(edits)][0] > end:
            end, last = ends[id(edits)][1], edits
            yield diagnostic


def _edits(diagnostic: Diagnostic) -> Edits:
    return diagnostic.fix.edits if diagnostic.fix else ()


def _extent(edits: Edits) -> tuple[int, int]:
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
