"""A document in an editor: its text, the version that was checked last, and the findings to show."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Final

from irrun.diagnostics import IrrunError, ReadError, diagnostic
from irrun.ir.parse import no_garbage
from irrun.server.buffer import Buffer, Changes
from irrun.server.findings import MOST_FINDINGS, Finding, moved, placed
from irrun.server.neighbourhood import recheck
from irrun.server.snapshot import Place, Snapshot, is_ir

__all__ = ["Document", "Range"]

Range = tuple[tuple[int, int], tuple[int, int]]
"""A start and an end (exclusive), each a line from 0 and a character, in the unit of the editor."""

_AT_ONCE: Final = 1 << 17
"""The bytes of a document up to which each edit checks all of it: some 200 layers, which take less than 0.1 s."""


class Document:
    """A document that is open in an editor.

    ``findings`` are those of the text as it is now. Requests look at ``snapshot``, the version that was checked last,
    and follow ``changes`` from there to the text. It is None until a version could be read.
    """

    def __init__(self, uri: str, path: Path | None, text: str, encoding: str) -> None:
        """``path`` is None for a text that is no file; ``encoding`` is that of positions, as in ``Buffer``."""
        self.uri, self.path = uri, path
        self.text = Buffer(text, encoding)
        self.version: int | None = None
        self.snapshot: Snapshot | None = None
        self.changes = Changes()
        self.findings: list[Finding] = []
        self._pending: Changes | None = None
        """The edits since ``begin``, if a version is being checked."""
        self._encoding = encoding

    @property
    def is_ir(self) -> bool:
        """Whether the text is an IR, or becomes one."""
        return is_ir(self.text.data)

    @property
    def is_small(self) -> bool:
        """Whether all of the text is checked at each edit."""
        return len(self.text.data) <= _AT_ONCE

    # -- edits ------------------------------------------------------------------------------------

    def edit(self, range: Range | None, text: str) -> None:
        """Replace a range of the text; all of it if the range is None."""
        if range is None:
            start, end = 0, len(self.text.data)
        else:
            start, end = (self.text.offset(*position) for position in range)
        if start == 0 and end == len(self.text.data):
            self.text = Buffer(text, self._encoding)
            length = len(self.text.data)
        else:
            length = self.text.replace(start, max(end, start), text)
        for changes in (self.changes, self._pending):
            if changes is not None:
                changes.add(start, max(end, start), length)

    def answer(self) -> None:
        """Find what is wrong as far as it is known at once: all of a small text, or the surroundings of the edits."""
        if not self.is_ir:
            self.findings = []
        elif self.is_small:
            self.settle(self.begin().check())
        elif self.snapshot is not None:
            local = recheck(self.snapshot, self.text, self.changes) if self.changes.parts else None
            replaced = local.replaced if local else []
            self.findings = [*self._known(replaced), *(local.findings if local else ())][:MOST_FINDINGS]

    def _known(self, replaced: Iterable[tuple[int, int]] = ()) -> Iterator[Finding]:
        """Yield the findings of the snapshot where they are now, without those within ``replaced`` bytes of it."""
        extents = list(replaced)
        for finding in self.snapshot.findings if self.snapshot is not None else ():
            if any(start <= finding.start < end for start, end in extents):
                continue
            if (now := moved(finding, self.changes.new)) is not None:
                yield now

    # -- checks -----------------------------------------------------------------------------------

    def begin(self) -> Version:
        """Return the text as it is now, to be checked as a whole. Edits may follow before ``settle``."""
        self._pending = Changes()
        return Version(str(self.path or self.uri), bytes(self.text.data))

    def settle(self, checked: Snapshot | IrrunError | None) -> None:
        """Take the result of the check that began last. An unreadable text keeps the snapshot before it."""
        assert self._pending is not None
        if isinstance(checked, Snapshot):
            if self.snapshot is not None:
                self.snapshot.release()
            self.snapshot, self.changes = checked, self._pending
            self._pending = None
            self.findings = list(self._known())
            if self.changes.parts:
                self.answer()
            return
        since, self._pending = self._pending, None
        if checked is not None and not since.parts:  # else the text is another one
            first = list(islice(placed(checked.diagnostics, self.text), MOST_FINDINGS))
            self.findings = [*first, *self._known()][:MOST_FINDINGS]

    # -- positions --------------------------------------------------------------------------------

    def at(self, position: tuple[int, int]) -> Place | None:
        """Return what a position means in the version that was checked last."""
        if self.snapshot is None:
            return None
        return self.snapshot.at(self.changes.old(self.text.offset(*position)))

    def range(self, start: int, end: int) -> Range:
        """Return the positions of bytes ``start`` to ``end`` (exclusive) of the text."""
        return self.text.position(start), self.text.position(end)

    def tag(self, node: int) -> tuple[int, int] | None:
        """Return the bytes of the start tag of an element of the snapshot in the text; None if it was edited."""
        assert self.snapshot is not None
        source = self.snapshot.source
        start = source.offset(node)
        return self._now(start, source.utf8.find(b">", start) + 1)

    def element(self, node: int, *, whole: bool = False) -> Range | None:
        """Return where the start tag of an element of the snapshot is now (``whole``: the element); None if edited."""
        assert self.snapshot is not None
        source = self.snapshot.source
        now = self._now(source.offset(node), source.end(node)) if whole else self.tag(node)
        return None if now is None else self.range(*now)

    def _now(self, start: int, end: int) -> tuple[int, int] | None:
        new = self.changes.new(start), self.changes.new(end - 1)
        return None if new[0] is None or new[1] is None else (new[0], new[1] + 1)


class Version:
    """A version of a document that is to be checked as a whole, perhaps in another thread."""

    def __init__(self, path: str, text: bytes) -> None:
        self._path, self._text = path, text

    def check(self) -> Snapshot | IrrunError | None:
        """Return the checked version, or the error that leaves it without a model; None if it is no IR."""
        if not is_ir(self._text):
            return None
        try:
            with no_garbage():
                snapshot = Snapshot(self._path, self._text)
                snapshot.prepare()
                if len(self._text) > _AT_ONCE:
                    gc.freeze()
        except IrrunError as error:
            return error
        except (MemoryError, RecursionError) as error:
            return ReadError(diagnostic("IR000", f"cannot check the file: {error}", file=self._path))
        return snapshot
