"""SpecialTokensSplit: cut special tokens out of strings."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, Final

import numpy as np

from irrun.base.deadline import in_time, require_time
from irrun.diagnostics import Refused
from irrun.extensions.tokenizers._patterns import KEPT, try_compile
from irrun.extensions.tokenizers._search import byte_offsets, check_pattern, doubtful_pattern
from irrun.extensions.tokenizers._strings import (
    RAGGED,
    check_pieces,
    check_ragged,
    gathered,
    known_bytes,
    pieces,
    ragged_outputs,
    rows_of,
    skip_flags,
)
from irrun.opdef import Kernel, Op, Request, Site, Value, op, opt, ports
from irrun.types import ELEMENT_TYPES


@op("SpecialTokensSplit")
class SpecialTokensSplit(Op):
    """Make each special token a piece of its own, whose flag in the last output is true.

    A match of ``pattern`` ends the piece before it. Its first group that is not empty is the token; what the match
    holds beside the group, such as spaces, vanishes. Without a group, the whole match is the token. Strings whose flag
    in ``skips`` is true stay whole. An empty match ends the search, and an empty string gives no piece.

    C1  The begins and ends of the strings have one shape, and each string lies within ``chars``, which is 1D.
    C2  The row begins and row ends have one shape, and each row lies within the strings.
    C3  There is one skip flag for each string.
    C4  ``pattern`` is the last input; it is 1D, of type u8.
    C5  The pattern compiles.
    """

    inputs = ports(**RAGGED, skips=opt("boolean u8"), pattern=opt("u8"))
    outputs = 6
    checked = False

    def infer(
        self,
        at: Site,
        row_begins: Value,
        row_ends: Value,
        begins: Value,
        ends: Value,
        chars: Value,
        skips: Value | None = None,
        pattern: Value | None = None,
    ) -> tuple[Value, ...]:
        skips, pattern = self._roles(at, skips, pattern)
        rows = check_ragged(at, [row_begins, row_ends, begins, ends, chars])
        skip_flags(at, skips, begins.shape, "C3")
        assert pattern is not None
        at.require(pattern.rank in (None, 1), "C4", f"pattern is {pattern.shape}, not 1D")
        at.require(pattern.type.name in ("u8", "dynamic"), "C4", f"pattern is {pattern.type}, not u8")
        check_pattern(pattern)
        outputs = ragged_outputs(rows, chars)
        return (*outputs, Value(ELEMENT_TYPES["boolean"], outputs[2].shape))

    def _roles(self, at: Site, skips: Any, pattern: Any) -> tuple[Any, Any]:
        """Return the skip flags and the pattern, which is the last input."""
        at.require(skips is not None or pattern is not None, "C4", "the layer has no pattern")
        return (None, skips) if pattern is None else (skips, pattern)

    def doubts(self, at: Site, *ports: Value | None) -> Iterator[Refused]:
        pattern = [port for port in ports if port is not None][-1]
        yield from doubtful_pattern(pattern, "no token is found", "C5")

    def prepare(self, request: Request) -> Kernel | None:
        source = known_bytes(request.inputs[-1])
        if source is None:
            return None
        _finder(source)  # before the first run
        return Kernel(lambda *arrays: self._run(_finder(source), arrays))

    def run(self, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        given = [array for array in arrays if array is not None]
        return self._run(_finder(given[-1].tobytes()), arrays)

    def _run(self, finder: Finder, arrays: Any) -> tuple[np.ndarray, ...]:
        row_begins, row_ends, begins, ends, chars = arrays[:5]
        skips, _ = self._roles(Site(), *(*arrays, None)[5:7])
        check_pieces(Site(), begins, ends, chars.size, "C1")
        count = begins.size if skips is None else skips.size
        Site().require(count == begins.size, "C3", f"there are {count} flags, but {begins.size} strings")
        if finder.absent(chars):
            rows_of(row_begins, row_ends, begins.size)
            special = np.zeros(begins.size, bool) if skips is None else skips.ravel().astype(bool)
            order, offsets = gathered(row_begins, row_ends)
            is_kept = (special | (ends > begins))[order]
            chosen = order[is_kept]
            edges = np.concatenate(([0], np.cumsum(is_kept)))[offsets].astype(np.int32)
            return (
                edges[:-1].reshape(row_begins.shape), edges[1:].reshape(row_begins.shape), begins[chosen], ends[chosen],
                chars, special[chosen],
            )  # fmt: skip
        strings = pieces(begins, ends, chars)
        rows = rows_of(row_begins, row_ends, len(strings))
        flags = [False] * len(strings) if skips is None else skips.ravel().tolist()
        out: list[tuple[int, int, bool]] = []
        bounds: list[tuple[int, int]] = []
        starts = begins.ravel().tolist()
        for row in zip(*rows):
            first = len(out)
            for index in in_time(range(*row)):
                text, start = strings[index], starts[index]
                if flags[index]:
                    out.append((start, start + len(text), True))
                else:
                    out += [(start + a, start + b, special) for a, b, special in _cut(finder.matches, text)]
            bounds.append((first, len(out)))
        spans = np.array(bounds, np.int32).reshape(-1, 2)
        places = np.array([piece[:2] for piece in out], np.int32).reshape(-1, 2)
        return (
            spans[:, 0].reshape(row_begins.shape), spans[:, 1].reshape(row_begins.shape), places[:, 0], places[:, 1],
            chars, np.array([piece[2] for piece in out], bool),
        )  # fmt: skip


_LOOKS_BETWEEN_TIMES: Final = 10_000_000
"""How often a token is compared with a place in the text between two looks at the clock: some 50 ms."""
Found = tuple[int, int, int, int]
"""A match: where it begins and ends, and where its token begins and ends, in characters."""


def _cut(find: Callable[[str], Iterator[Found]], data: bytes) -> list[tuple[int, int, bool]]:
    """Return the pieces of a string: begin and end in bytes, and whether the piece is a special token."""
    text, offsets = byte_offsets(data)
    cut: list[tuple[int, int, bool]] = []
    at = 0
    for begin, end, first, last in find(text):
        if at < begin:
            cut.append((at, begin, False))
        if first < last:
            cut.append((first, last, True))
        at = end
    if at < len(text):
        cut.append((at, len(text), False))
    return cut if offsets is None else [(int(offsets[a]), int(offsets[b]), special) for a, b, special in cut]


class Finder:
    """Finds the special tokens of texts. ``hint`` finds what a match must contain, if the pattern says it."""

    def __init__(self, source: bytes) -> None:
        self.pattern = try_compile(source)
        tokens = sorted(_tokens(source.decode("utf-8", "replace")), key=len, reverse=True)
        self.hint = re.compile("|".join(map(re.escape, tokens))) if tokens else None
        self.hint_bytes = re.compile(b"|".join(re.escape(token.encode()) for token in tokens)) if tokens else None
        self.longest = max((len(token.encode()) for token in tokens), default=0)
        self.stride = max(self.longest, _LOOKS_BETWEEN_TIMES // max(len(tokens), 1))

    def absent(self, chars: np.ndarray) -> bool:
        """Return whether there is no special token in any string: one search for all of them."""
        if self.hint_bytes is None:
            return self.pattern is None
        return self._near(self.hint_bytes, chars.tobytes(), 0) is None

    def _near(self, hint: re.Pattern[Any], text: Any, at: int) -> re.Match[Any] | None:
        """Return the first match of ``hint`` from ``at`` on. A search compares each token at each place."""
        for first in in_time(range(at, len(text), self.stride)):
            match = hint.search(text, first, first + self.stride + self.longest)
            if match is not None and match.start() < first + self.stride:
                return match
        return None

    def matches(self, text: str) -> Iterator[Found]:
        """Yield the matches of a pattern.

        A search begins at the spaces before what ``hint`` finds: from each place of a long run of spaces,
        ``(?:\\s*)(token)`` would read the rest of the run in vain.
        """
        pattern, hint = self.pattern, self.hint
        if pattern is None:
            return
        at, first, compiled = 0, 0, pattern.compiled
        while at <= len(text):
            start = at
            if hint is not None:
                near = self._near(hint, text, at)
                if near is None:
                    return
                first = start = near.start()
                while start > at and (text[start - 1].isspace() or text[start - 1] == "\u180e"):
                    start -= 1
            require_time()
            with pattern.searching(text):
                match = compiled.search(text, start, timeout=pattern.patience(text))
            if match is None:
                if hint is None:
                    return
                at = first + 1
                continue
            if match.end() <= match.start():
                return
            spans = [match.span(group) for group in range(1, compiled.groups + 1)]
            first, last = next((span for span in spans if span[0] < span[1]), match.span())
            yield match.start(), match.end(), first, last
            at = match.end()


@lru_cache(maxsize=KEPT)
def _finder(source: bytes) -> Finder:
    return Finder(source)


_FORM = re.compile(r"(?:\(\?:\\s\*\))?\(((?:[^()\\]|\\.)+)\)(?:\(\?:\\s\*\))?(?:\||\Z)", re.DOTALL)
_TOKEN = re.compile(r"(?:[^\\|]|\\[^a-zA-Z0-9])+", re.DOTALL)


def _tokens(pattern: str) -> list[str]:
    """Return the tokens of a pattern as the converter writes it: alternatives of groups of escaped tokens.

    Return ``[]`` for any other pattern.
    """
    tokens: list[str] = []
    at = 0
    while at < len(pattern):
        match = _FORM.match(pattern, at)
        if match is None:
            return []
        parts = re.findall(r"(?:[^\\|]|\\.)+", match[1], re.DOTALL)
        if not all(_TOKEN.fullmatch(part) for part in parts) or re.search(r"(?<!\\)(?:\\\\)*[.^$*+?\[\]{}]", match[1]):
            return []
        tokens += [re.sub(r"\\(.)", r"\1", part, flags=re.DOTALL) for part in parts]
        at = match.end()
    return tokens
