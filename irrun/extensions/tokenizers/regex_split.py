"""RegexSplit: cut strings where a regular expression matches."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any, Final, cast

import numpy as np

from irrun.base.deadline import in_time
from irrun.diagnostics import Refused
from irrun.extensions.tokenizers._patterns import Pattern, try_compile
from irrun.extensions.tokenizers._search import characters, check_pattern, doubtful_pattern, parts, tiles
from irrun.extensions.tokenizers._strings import (
    RAGGED,
    check_ragged,
    gathered,
    is_range,
    known_bytes,
    pieces,
    ragged_outputs,
    rows_of,
    skip_flags,
)
from irrun.opdef import Kernel, Op, Request, Site, Value, attr, op, opt, ports
from irrun.types import ELEMENT_TYPES

_BEHAVIOURS: Final = ("remove", "isolate", "contiguous", "mergedwithprevious", "mergedwithnext")

Pieces = tuple[list[int], list[int]]
"""Where the pieces of one string begin and end, in bytes."""
_WORD: Final = 64
_WORDS: Final = 100_000
"""The most bytes of a string whose pieces are kept, and how many such strings are."""


class Cutter:
    """Cuts strings. It keeps the pieces of short strings, since words repeat."""

    def __init__(self, source: bytes, behaviour: str, invert: bool, max_splits: int) -> None:
        try_compile(source)  # before the first run
        self.source, self.behaviour, self.invert, self.max_splits = source, behaviour, invert, max_splits
        self.keeps_gaps = behaviour in ("isolate", "contiguous") or (behaviour == "remove" and not invert)
        self.keeps_matches = behaviour in ("isolate", "contiguous") or (behaviour == "remove" and invert)
        self.memo: dict[bytes, Pieces] = {}
        self.tiled = True
        """Whether the matches in the last string had no gaps: those of most patterns always do, or never do."""

    def __call__(self, strings: Sequence[bytes]) -> list[Pieces]:
        pattern, memo = try_compile(self.source), self.memo
        if pattern is None:
            return list(map(_whole, strings))
        found = list(map(memo.get, strings))
        for index in in_time([index for index, own in enumerate(found) if own is None]):
            data = strings[index]
            own = found[index] = memo.get(data) or self._cut(pattern, data)
            if len(data) <= _WORD and len(memo) < _WORDS:
                memo[data] = own
        return cast("list[Pieces]", found)

    def _cut(self, pattern: Pattern, data: bytes) -> Pieces:
        try:
            found = self._kept(pattern, data.decode(), len(data))
        except UnicodeDecodeError:
            text, offsets = characters(data)
            firsts, lasts = self._kept(pattern, text, len(text))
            found = [offsets[place] for place in firsts], [offsets[place] for place in lasts]
        if 0 < self.max_splits < len(found[0]):
            return found[0][: self.max_splits + 1], [*found[1][: self.max_splits], len(data)]
        return found

    def _kept(self, pattern: Pattern, text: str, size: int) -> Pieces:
        """Return the pieces that the matches leave of a text of ``size`` bytes, or of as many characters."""
        is_ascii = len(text) == size
        if self.keeps_matches and self.tiled:
            matches = tiles(pattern, text)
            if matches is not None:
                ends = list(itertools.accumulate(_sizes(matches, is_ascii)))
                return [0, *ends[:-1]] if ends else [], ends
        found = parts(pattern, text)
        self.tiled = not any(found[::2])
        if len(found) == 1 and size and self.keeps_gaps:
            return [0], [size]
        sizes = _sizes(found, is_ascii)
        ends = list(itertools.accumulate(sizes))
        begins = [0, *ends[:-1]]
        if self.behaviour == "remove":
            begins, ends = begins[self.invert :: 2], ends[self.invert :: 2]
        elif self.behaviour not in ("isolate", "contiguous"):
            return self._merged(sizes, begins, ends)
        if 0 in sizes:
            filled = [(begin, end) for begin, end in zip(begins, ends) if begin < end]
            return [begin for begin, _ in filled], [end for _, end in filled]
        return begins, ends

    def _merged(self, sizes: list[int], begins: list[int], ends: list[int]) -> Pieces:
        """Return the pieces with each match added to one neighbour. Gaps and matches alternate.

        A match directly after another one yields a piece that starts where the previous piece started.
        """
        if not self.invert and 0 not in sizes[2:-1:2]:
            if self.behaviour == "mergedwithnext" and sizes[-1] and sizes[0]:
                return [0, *begins[1::2]], [ends[0], *ends[2::2]]
            if self.behaviour == "mergedwithprevious" and sizes[-1]:
                return begins[::2], [*ends[1::2], ends[-1]]
        length, last = ends[-1], -1
        kept: list[tuple[int, int]] = []
        delimits = not self.invert
        for begin, end in zip(begins, ends):
            delimits = not delimits
            if begin == end:
                continue
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
        if (
            self.behaviour == "mergedwithnext" and not self.invert and not sizes[-1]
        ):  # nothing is left behind the last match
            kept.append((max(last, 0), length))
        return [begin for begin, _ in kept], [end for _, end in kept]


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
    C4  ``pattern`` is the last input of a layer with 6 or 7, and input 5 of one with 9, before the begins, ends and
        chars of the strings to keep; it is 1D, of type u8.
    C5  ``max_splits`` is -1 or positive.
    C6  The pattern compiles.
    """

    behaviour = attr.choice(*_BEHAVIOURS, default="remove")
    invert = attr.bool(default=False)
    max_splits = attr.int(default=-1)
    inputs = ports(**RAGGED, skips=opt("boolean u8"), pattern=opt("u8 i32"), keep_ends=opt("i32"), keep_chars=opt("u8"))
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
        cut = self._cutter(source)
        return Kernel(lambda *arrays: self._run(cut, arrays))

    def run(self, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        _, source, _ = self._roles(Site(), arrays)
        return self._run(self._cutter(source.tobytes()), arrays)

    def _cutter(self, source: bytes) -> Cutter:
        if self.behaviour == "contiguous" and not source.endswith(b"+"):
            source = (b"(" if b"(" in source else b"(?:") + source + b")+"
        return Cutter(source, self.behaviour, self.invert, self.max_splits)

    def _run(self, cut: Cutter, arrays: Any) -> tuple[np.ndarray, ...]:
        row_begins, row_ends, begins, ends, chars = arrays[:5]
        skips, _, kept = self._roles(Site(), arrays)
        strings = pieces(begins, ends, chars)
        rows_of(row_begins, row_ends, len(strings))
        if skips is not None and skips.size != len(strings):
            Site().refuse("C3", f"there are {skips.size} flags, but {len(strings)} strings")
        alone = set(pieces(*kept)) if kept is not None else ()
        if alone or (skips is not None and skips.any()):
            flags = [text in alone for text in strings] if skips is None else skips.ravel().tolist()
            own = iter(cut([text for text, skip in zip(strings, flags) if not skip]))
            found = [_whole(text) if skip else next(own) for text, skip in zip(strings, flags)]
        else:
            found = cut(strings)
        firsts, lasts = zip(*found) if found else ((), ())
        counts = np.fromiter(map(len, firsts), np.int64, len(found))
        offsets = np.concatenate(([0], np.cumsum(counts)))
        total = int(offsets[-1])
        first, last = (np.fromiter(itertools.chain.from_iterable(side), np.int32, total) for side in (firsts, lasts))
        starts = np.repeat(begins.ravel(), counts)
        first += starts
        last += starts
        order, bounds = gathered(row_begins, row_ends)  # the strings of the rows, one row after the other
        row_offsets = offsets
        if not is_range(order, len(found)):
            chosen, row_offsets = gathered(offsets[order], offsets[order + 1])
            first, last = first[chosen], last[chosen]
            counts, skips_of = counts[order], None if skips is None else skips.ravel()[order]
        else:
            skips_of = None if skips is None else skips.ravel()
        edges = row_offsets[bounds].astype(np.int32)
        outputs = edges[:-1].reshape(row_begins.shape), edges[1:].reshape(row_begins.shape), first, last, chars
        return outputs if skips_of is None else (*outputs, np.repeat(skips_of, counts))


def _whole(data: bytes) -> Pieces:
    return [0], [len(data)]


def _sizes(texts: Sequence[str], is_ascii: bool) -> list[int]:
    """Return the number of bytes of each text."""
    return list(map(len, texts if is_ascii else map(str.encode, texts)))
