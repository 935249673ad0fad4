"""Vocabularies: tables that are built once for each content, and the search for the longest entry."""

from __future__ import annotations

import hashlib
import itertools
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeVar, cast

import numpy as np

from irrun.extensions.tokenizers._strings import gathered, is_range, pieces
from irrun.opdef import Request, Value

__all__ = ["CAPACITY", "LongestMatch", "cached", "known_arrays", "tokenized", "vocabulary"]

_T = TypeVar("_T")

_tables: OrderedDict[object, Any] = OrderedDict()
"""The tables that were built, by what they were built from: models that share a vocabulary share its table."""
_MOST_TABLES: Final = 16


def cached(build: Callable[[], _T], key: object, arrays: Sequence[np.ndarray]) -> _T:
    """Return the table for the contents of these arrays, which ``build`` makes. ``key`` tells kinds of tables apart."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(f"{array.dtype}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).data)
    name = (key, digest.digest())
    if name not in _tables:
        _tables[name] = build()
        if len(_tables) > _MOST_TABLES:
            _tables.popitem(last=False)
    _tables.move_to_end(name)
    return _tables[name]


def known_arrays(request: Request, first: int) -> list[np.ndarray] | None:
    """Return the contents of the inputs from ``first`` on, or None if one of them is not constant."""
    arrays: list[np.ndarray] = []
    for value in request.inputs[first:]:
        data = _exact(value)
        if data is None:
            return None
        arrays.append(data)
    return arrays


def _exact(value: Value | None) -> np.ndarray | None:
    return None if value is None else value.exact


def vocabulary(begins: np.ndarray, ends: np.ndarray, chars: np.ndarray, *, label: str = "C3") -> list[bytes]:
    """Return the tokens of a vocabulary in the order of their ids. Raises Refused if one is not within ``chars``."""
    return pieces(begins, ends, chars, label=label, what="vocab_")


class LongestMatch:
    """Finds the longest entry that a text has at some place: a ``dict``, and the lengths of the entries by first byte.

    Vocabularies have few lengths for each first byte, so that this needs fewer steps than a trie of Python objects.
    """

    def __init__(self, entries: Mapping[bytes, int]) -> None:
        self.entries = dict(entries)
        lengths: list[set[int]] = [set() for _ in range(256)]
        for text in self.entries:
            if text:
                lengths[text[0]].add(len(text))
        self.lengths = [sorted(own, reverse=True) for own in lengths]

    def at(self, text: bytes, place: int) -> tuple[int, int] | None:
        """Return the id of the longest entry at ``place``, and where it ends; None if there is none."""
        entries, size = self.entries, len(text)
        for length in self.lengths[text[place]]:
            end = place + length
            if end <= size and (id := entries.get(text[place:end])) is not None:
                return id, end
        return None


def tokenized(
    row_begins: np.ndarray,
    row_ends: np.ndarray,
    strings: Sequence[bytes],
    ids: Callable[[bytes], Iterable[int]],
    memo: dict[bytes, tuple[int, ...]],
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the ids of the strings of each row, as a ragged tensor.

    ``memo`` keeps the ids of up to ``CAPACITY`` strings, since most words repeat. The loop over strings is one look-up
    for each of them; the rest is done by ``map`` and ``chain``, which are C.
    """
    order, bounds = gathered(row_begins, row_ends)
    if not is_range(order, len(strings)):
        strings = [strings[index] for index in order.tolist()]
    found = list(map(memo.get, strings))
    if None in found:
        for index, text in enumerate(strings):
            if found[index] is None:
                known = memo.get(text)
                if known is None:
                    known = tuple(ids(text))
                    if len(memo) < CAPACITY and len(text) <= _LONGEST_KEPT:
                        memo[text] = known
                found[index] = known
    known_ids = cast("list[tuple[int, ...]]", found)
    offsets = np.concatenate(([0], np.cumsum(np.fromiter(map(len, known_ids), np.int64, len(found)))))
    out = np.fromiter(itertools.chain.from_iterable(known_ids), np.int32, int(offsets[-1]))
    edges = offsets[bounds].astype(np.int32)
    return edges[:-1].reshape(row_begins.shape), edges[1:].reshape(row_begins.shape), out


CAPACITY: Final = 100_000
"""The most strings whose ids are kept."""
_LONGEST_KEPT: Final = 256
"""The most bytes of a string that the memo keeps: longer ones do not repeat."""
