"""RegexSplit: cut strings where a regular expression matches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from irrun.diagnostics import Refused
from irrun.extensions.tokenizers._patterns import Pattern, try_compile
from irrun.extensions.tokenizers._search import byte_offsets, check_pattern, doubtful_pattern, spans
from irrun.extensions.tokenizers._strings import (
    RAGGED,
    ZERO,
    check_ragged,
    known_bytes,
    pieces,
    ragged_outputs,
    rows_of,
    skip_flags,
)
from irrun.opdef import Kernel, Op, Request, Site, Value, attr, op, opt, ports
from irrun.types import ELEMENT_TYPES

_BEHAVIOURS: Final = ("remove", "isolate", "contiguous", "mergedwithprevious", "mergedwithnext")

Spans = tuple[np.ndarray, np.ndarray]
"""Begins and ends of pieces of one string."""


@op("RegexSplit")
class RegexSplit(Op):
    """Cut each string where ``pattern`` matches, and let its row hold the pieces.

    ``behaviour`` says what becomes of the matches: ``remove`` drops them (with ``invert``, everything else),
    ``isolate`` makes each a piece, ``contiguous`` makes a run of them one piece, ``mergedwithprevious`` and
    ``mergedwithnext`` add each to the piece before or after it. After ``max_splits`` pieces, the last one reaches up to
    the end of the string. An empty match ends the search. Strings whose flag in ``skips`` is true stay whole, and so do
    those in the list of strings that files of 2023 have as inputs 6 to 8. A pattern that does not compile cuts nothing.

    The flags are an output if they are an input.

    C1  The begins and ends of the strings have one shape, and each string lies within ``chars``, which is 1D.
    C2  The row begins and row ends have one shape, and each row lies within the strings.
    C3  There is one skip flag for each string.
    C4  ``pattern`` is the last input of a layer with 6 or 7, and input 5 of one with 9; it is 1D, of type u8.
    C5  ``max_splits`` is -1 or positive.
    C6  The pattern compiles.
    """

    behaviour = attr.choice(*_BEHAVIOURS, default="remove")
    invert = attr.bool(default=False)
    max_splits = attr.int(default=-1)
    inputs = ports(
        **RAGGED, skips=opt("boolean u8"), pattern=opt("u8 i32"), keep_begins=opt("i32 u8"), keep_ends=opt("i32"),
        keep_chars=opt("u8"),
    )  # fmt: skip
    outputs = None
    checked = False

    def infer(self, at: Site, *ports: Value | None) -> tuple[Value, ...]:
        skips, pattern, _ = self._roles(at, ports)
        ragged = [port for port in ports[:5] if port is not None]
        rows = check_ragged(at, ragged)
        skip_flags(at, skips, ragged[2].shape, "C3")
        at.require(pattern.rank in (None, 1), "C4", f"pattern is {pattern.shape}, not 1D")
        at.require(pattern.type.name in ("u8", "dynamic"), "C4", f"pattern is {pattern.type}, not u8")
        at.require(self.max_splits == -1 or self.max_splits > 0, "C5", f"max_splits is {self.max_splits}")
        check_pattern(pattern)
        outputs = ragged_outputs(rows, ragged[4])
        return outputs if skips is None else (*outputs, Value(ELEMENT_TYPES["boolean"], outputs[2].shape))

    def _roles(self, at: Site, ports: Any) -> tuple[Any, Any, Any]:
        """Return the skip flags, the pattern, and the strings to keep, which depend on the number of inputs."""
        given = [port for port in ports[5:] if port is not None]
        at.require(len(given) in (1, 2, 4), "C4", f"the layer has {5 + len(given)} inputs, not 6, 7 or 9")
        if len(given) == 4:
            return None, given[0], given[1:]
        return (None, given[0], None) if len(given) == 1 else (given[0], given[1], None)

    def doubts(self, at: Site, *ports: Value | None) -> Iterator[Refused]:
        _, pattern, _ = self._roles(at, ports)
        yield from doubtful_pattern(pattern, "no string is cut", "C6")

    def prepare(self, request: Request) -> Kernel | None:
        number = 5 if len(request.inputs) in (6, 9) else 6
        source = known_bytes(request.inputs[number])
        if source is None:
            return None
        pattern = self._compiled(source)
        return Kernel(lambda *arrays: self._run(pattern, arrays))

    def _compiled(self, source: bytes) -> Pattern | None:
        if self.behaviour == "contiguous" and not source.endswith(b"+"):
            source = b"(" + source + b")+"
        return try_compile(source)

    def run(self, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        _, source, _ = self._roles(Site(), arrays)
        return self._run(self._compiled(source.tobytes()), arrays)

    def _run(self, pattern: Pattern | None, arrays: Any) -> tuple[np.ndarray, ...]:
        row_begins, row_ends, begins, ends, chars = arrays[:5]
        skips, _, kept = self._roles(Site(), arrays)
        row_begins, row_ends = np.asarray(row_begins), np.asarray(row_ends)
        strings = pieces(begins, ends, chars)
        rows = rows_of(row_begins, row_ends, len(strings))
        flags = [False] * len(strings) if skips is None else skips.ravel().tolist()
        Site().require(len(flags) == len(strings), "C3", f"there are {len(flags)} flags, but {len(strings)} strings")
        if kept is not None:
            whole = set(pieces(*kept))
            flags = [text in whole for text in strings]
        starts = begins.ravel().tolist()
        cut: list[Spans] = []  # of each string of the input
        for text, start, skip in zip(strings, starts, flags):
            if skip or pattern is None:
                cut.append((np.array([start]), np.array([start + len(text)])))
            else:
                first, last = self.cut(pattern, text)
                cut.append((first + start, last + start))
        order = [index for begin, end in zip(*rows) for index in range(begin, end)]
        counts = np.array([len(cut[index][0]) for index in order], np.int32)
        totals = np.concatenate((ZERO, [0], np.cumsum(counts)))
        bounds = np.concatenate((ZERO, [0], np.cumsum(np.subtract(rows[1], rows[0]))), dtype=np.int32)
        outputs = (
            totals[bounds[:-1]].astype(np.int32).reshape(row_begins.shape),
            totals[bounds[1:]].astype(np.int32).reshape(row_begins.shape),
            np.concatenate([ZERO, *(cut[index][0] for index in order)]).astype(np.int32),
            np.concatenate([ZERO, *(cut[index][1] for index in order)]).astype(np.int32),
            chars,
        )
        if skips is None:
            return outputs
        return (*outputs, np.repeat(np.array([bool(flags[index]) for index in order], bool), counts))

    def cut(self, pattern: Pattern, data: bytes) -> Spans:
        """Return the pieces of one string, in bytes."""
        text = data.decode("utf-8", "surrogateescape")
        begins, ends = self._kept(*spans(pattern, text), len(text))
        if self.max_splits > 0 and len(ends) > self.max_splits:
            begins, ends = begins[: self.max_splits + 1], ends[: self.max_splits + 1].copy()
            ends[-1] = len(text)
        offsets = byte_offsets(text, len(data))
        return (begins, ends) if offsets is None else (offsets[begins], offsets[ends])

    def _kept(self, begins: np.ndarray, ends: np.ndarray, length: int) -> Spans:
        """Return the pieces that the matches from ``begins`` to ``ends`` leave of a text, in characters."""
        if not length:
            return begins, ends
        if self.behaviour == "remove" and self.invert:
            return begins, ends
        before = np.concatenate(([0], ends))
        after = np.concatenate((begins, [length]))
        if self.behaviour == "remove":
            kept = before < after
            return before[kept], after[kept]
        if self.behaviour in ("isolate", "contiguous"):
            edges = np.unique(np.concatenate((before, after)))
            return edges[:-1], edges[1:]
        return self._merged(begins, ends, length)

    def _merged(self, begins: np.ndarray, ends: np.ndarray, length: int) -> Spans:
        """Return the pieces with each match added to one neighbour.

        The start of a piece is never reset, so that a match that follows another one at once gives a piece that begins
        where the one before it begins.
        """
        fed: list[tuple[int, int, bool]] = []
        at = 0
        for begin, end in zip(begins.tolist(), ends.tolist()):
            if at < begin:
                fed.append((at, begin, self.invert))
            fed.append((begin, end, not self.invert))
            at = end
        if at < length:
            fed.append((at, length, self.invert))
        kept: list[tuple[int, int]] = []
        last = -1
        for begin, end, delimits in fed:
            if self.behaviour == "mergedwithprevious":
                if delimits:
                    kept.append((max(last, 0), end))
                elif end != length:
                    last = begin
                else:
                    kept.append((begin, end))
            elif delimits:
                last = begin
            else:
                kept.append((last if last >= 0 else begin, end))
        if self.behaviour == "mergedwithnext" and fed and at == length and fed[-1][2]:
            kept.append((max(last, 0), length))
        spans = np.array(kept, np.int64).reshape(-1, 2)
        return spans[:, 0], spans[:, 1]
