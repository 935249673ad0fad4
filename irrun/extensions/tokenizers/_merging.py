"""Byte pair encoding: the longest known pieces, then the merges of neighbours by rank."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterable, Sequence
from typing import Final

from irrun.extensions.tokenizers._vocabulary import LongestMatch
from irrun.opdef import Site

__all__ = ["PairEncoding", "split_at_separators"]

_SHIFT: Final = 32
"""A pair of ids is one integer: the left id shifted by so many bits, plus the right one. So are the rank of a merge and
the time when its pair arose."""
_NEVER: Final = 1 << 58
"""The rank of a pair that no merge joins: larger than those of all merges, and still two digits of an ``int``."""
_SHORT: Final = 100
"""Up to this many pieces, ``min`` over all pairs, which is C, is faster than a heap."""
_SEPARATORS: Final = ("▁".encode(), b" ")


class PairEncoding:
    """The tables of one BPETokenizer, and the ids of one string.

    The tokens that some merge makes are left out of the search for the longest pieces: only merges lead to them.
    """

    def __init__(
        self,
        tokens: Sequence[bytes],
        merges: Sequence[tuple[bytes, bytes]],
        added: Sequence[tuple[bytes, int]],
        *,
        unknown: bytes,
        suffix: bytes,
        byte_fallback: bool,
    ) -> None:
        ids = {text: id for id, text in enumerate(tokens)}  # of equal texts, the last one counts
        for text, id in added:
            ids.setdefault(text, id)
        self.unknown = ids.get(unknown)
        self.suffix = suffix
        self.bytes_ids = [ids.get(b"<0x%02X>" % byte) for byte in range(256)] if byte_fallback else [None] * 256
        self.ranks: dict[int, int] = {}
        self.results: list[int] = []
        made: set[bytes] = set()
        for rank, (left, right) in enumerate(merges):
            text = left + right
            first, second, result = ids.get(left), ids.get(right), ids.get(text)
            if first is None or second is None or result is None:
                missing = left if first is None else right if second is None else text
                Site().refuse("C4", f"merge {rank} needs the token {missing!r}, which the vocabulary lacks")
            self.ranks[(first << _SHIFT) + second] = rank << _SHIFT
            self.results.append(result)
            made.add(text)
        self.search = LongestMatch({text: id for text, id in ids.items() if text not in made})
        self._index()
        self.separator = None if suffix else _separator(merges, self.search.entries)

    def _index(self) -> None:
        """Index the entries that are one byte or one character: most strings hold no other."""
        entries = self.search.entries
        self.of_byte = [entries.get(bytes((byte,))) for byte in range(256)]
        self.alone = bytes(byte for byte in range(256) if self.search.lengths[byte] == [1])
        """The bytes that are entries and begin no longer ones."""
        self.of_char: dict[str, int] = {}
        others: set[int] = set()
        for text, id in entries.items():
            char = text.decode("utf-8", "replace")
            if len(char) == 1 and char.encode() == text:
                self.of_char[char] = id
            elif text:
                others.add(text[0])
        self.others = bytes(others)
        """The bytes that begin an entry which is not one character."""

    def ids(self, text: bytes) -> list[int]:
        """Return the ids of a string."""
        return self.merged(self.pieces(text + self.suffix))

    def words(self, text: bytes) -> list[bytes] | None:
        """Return parts of a string that can be encoded one by one, or None if there are no such parts.

        If no token holds the separator behind another character, no merge crosses the place before it.
        """
        if self.separator is None or self.separator not in text[1:]:
            return None
        return split_at_separators(text, self.separator)

    def pieces(self, text: bytes) -> list[int]:
        """Return the ids of the longest known pieces from left to right."""
        if not text.translate(None, self.alone):  # nothing is left without these bytes
            return [id for id in map(self.of_byte.__getitem__, text) if id is not None]
        if len(text.translate(None, self.others)) == len(text):
            try:
                found = list(map(self.of_char.get, text.decode()))
            except UnicodeDecodeError:
                return self._longest(text)
            known = [id for id in found if id is not None]
            if len(known) == len(found):
                return known
        return self._longest(text)

    def _longest(self, text: bytes) -> list[int]:
        entries, lengths, size = self.search.entries, self.search.lengths, len(text)
        out: list[int] = []
        at = 0
        while at < size:
            for length in lengths[text[at]]:
                if at + length <= size and (id := entries.get(text[at : at + length])) is not None:
                    out.append(id)
                    at += length
                    break
            else:
                fallback = self.bytes_ids[text[at]]
                if fallback is None:
                    fallback = self.unknown
                if fallback is not None:
                    out.append(fallback)
                at += 1
        return out

    def merged(self, ids: list[int]) -> list[int]:
        """Merge neighbours, the pair of the lowest rank first, of equal ones the pair that arose first."""
        return self._merge_few(ids) if len(ids) <= _SHORT else self._merge_many(ids)

    def _merge_few(self, ids: list[int]) -> list[int]:
        """Merge in ``ids``. A pair is the number ``rank << _SHIFT`` plus the time when it arose: the least is next."""
        get, results, clock = self.ranks.get, self.results, len(ids)
        found = [get((a << _SHIFT) + b, _NEVER) + n for n, (a, b) in enumerate(itertools.pairwise(ids))]
        while found and (best := min(found)) < _NEVER:
            place = found.index(best)
            id = ids[place] = results[best >> _SHIFT]
            del ids[place + 1], found[place]
            if place:
                found[place - 1] = get((ids[place - 1] << _SHIFT) + id, _NEVER) + clock
            if place < len(found):
                found[place] = get((id << _SHIFT) + ids[place + 1], _NEVER) + clock
            clock += 1
        return ids

    def _merge_many(self, ids: list[int]) -> list[int]:
        """Merge with a heap of pairs and a doubly linked list of ids."""
        get, results, count = self.ranks.get, self.results, len(ids)
        before, after = list(range(-1, count - 1)), list(range(1, count + 1))
        heap: list[tuple[int, int, int]] = []  # rank and time, place, the two ids
        for place in range(count - 1):
            key = (ids[place] << _SHIFT) + ids[place + 1]
            if (rank := get(key)) is not None:
                heap.append((rank + place, place, key))
        heapq.heapify(heap)
        clock = count
        while heap:
            rank, place, key = heapq.heappop(heap)
            right = after[place] if ids[place] >= 0 else count
            if right >= count or (ids[place] << _SHIFT) + ids[right] != key:
                continue  # one of the two was merged in the meantime
            ids[place] = results[rank >> _SHIFT]
            ids[right] = -1
            behind = after[place] = after[right]
            if behind < count:
                before[behind] = place
            for left, other in ((before[place], place), (place, behind)):
                if left >= 0 and other < count:
                    key = (ids[left] << _SHIFT) + ids[other]
                    if (rank := get(key)) is not None:
                        heapq.heappush(heap, (rank + clock, left, key))
            clock += 1
        return [id for id in ids if id >= 0]


def _separator(merges: Sequence[tuple[bytes, bytes]], entries: dict[bytes, int]) -> bytes | None:
    """Return the separator that no merge and no entry has behind anything but separators, or None."""
    for separator in _SEPARATORS:
        crossing = any(right.startswith(separator) and _behind(left, separator) for left, right in merges)
        if crossing or not any(text.startswith(separator) for text in entries):
            continue
        if any(separator in _behind(text, separator) for text in entries):
            continue
        if len(separator) == 1 or _is_text(entries):  # otherwise an entry might hold a part of the separator
            return separator
    return None


def _is_text(entries: Iterable[bytes]) -> bool:
    try:
        b"\0".join(entries).decode()
    except UnicodeDecodeError:
        return False
    return True


def _behind(text: bytes, separator: bytes) -> bytes:
    """Return a text without the separators at its start."""
    while text.startswith(separator):
        text = text[len(separator) :]
    return text


def split_at_separators(text: bytes, separator: bytes) -> list[bytes]:
    """Return the parts of a text that begin with a run of separators and hold no other."""
    if text.find(separator, 1) < 0:
        return [text] if text else []
    first, *others = text.split(separator)
    if b"" not in others:
        words = [separator + part for part in others]
        return [first, *words] if first else words
    words, pending = [first] if first else [], b""
    for part in others:
        pending += separator
        if part:
            words.append(pending + part)
            pending = b""
    return [*words, pending] if pending else words
