"""Shorten names so that they fit a column, and no two names become equal."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Final

from rich.cells import cell_len

__all__ = ["cut", "readable_width", "shortened"]

_TOKEN: Final = re.compile(r"[\W_]*(?:\d+|[^\W\d_]{1,12}|$)")
"""A part of a name: a whole number or up to 12 letters, with the characters before it that are neither."""
_COMMON_SHARE: Final = 0.75
"""The share of the names with a beginning from which on it need not be shown: it tells only the others apart."""
_LEAST_LETTERS: Final = 3
"""The letters that a part of a name keeps at least, if it is abbreviated."""

Tokens = tuple[str, ...]


def _width(text: str) -> int:
    """Return the columns that a text takes. rich is slow, and most names are ASCII."""
    return len(text) if text.replace("…", "").isascii() else cell_len(text)


def shortened(names: Sequence[str], width: int) -> list[str]:
    """Return the names in at most ``width`` columns each, with … for each part that is left out.

    Different names stay different. The beginning that most names share is left out first, then parts in the middle. A
    part by which a name differs from others is kept, or abbreviated so that it still differs, and a number is never
    broken. A name is longer than ``width`` if it cannot be told from others otherwise.
    """
    long = [name for name in dict.fromkeys(names) if _width(name) > width]
    if not long:
        return list(names)
    tree = _tree(tuple(names))
    short = {name: tree.shorten(name, width) for name in long}
    counts = Counter(short.get(name, name) for name in dict.fromkeys(names))
    number = 0
    for name in long:
        if counts[short[name]] > 1:
            number += 1
            short[name] = f"{short[name]}#{number}"
    return [short.get(name, name) for name in names]


def readable_width(names: Sequence[str]) -> int:
    """Return the width that shows every part by which a name differs from most others, without abbreviations."""
    tree = _tree(tuple(names))
    return max((min(_width(name), tree.needed(name)) for name in names), default=0)


class _Tree:
    """The prefixes of all names, as sequences of tokens, with the tokens that follow each."""

    def __init__(self, names: Iterable[str]) -> None:
        self._tokens: dict[str, Tokens] = {name: (*_TOKEN.findall(name)[:-1],) for name in names}
        self._next: dict[Tokens, dict[str, int]] = {}
        for tokens in self._tokens.values():
            for end in range(len(tokens) + 1):
                following = self._next.setdefault(tokens[:end], {})
                token = "".join(tokens[end : end + 1])
                following[token] = following.get(token, 0) + 1
        self._most = _COMMON_SHARE * len(self._tokens)

    def needed(self, name: str) -> int:
        """Return the width of a name of which only the tokens that tell it from others are kept."""
        tokens = self._tokens[name]
        return _width(_joined(tokens, self._telling(tokens)))

    def shorten(self, name: str, width: int) -> str:
        """Return a name in at most ``width`` columns, if this is enough to tell it from the others."""
        tokens = self._tokens[name]
        kept = self._telling(tokens)
        if _width(_joined(tokens, kept)) > width:
            return self._abbreviated(tokens, kept, width)
        counted = [position - 1 for position in sorted(kept) if tokens[position][-1].isdigit()]
        for position in (*counted, *range(len(tokens) - 1, -1, -1)):  # layer.3 says more than 3
            if position in kept:
                continue
            if _width(_joined(tokens, kept | {position})) <= width:
                kept |= {position}
            elif position < min(kept, default=0):
                break  # an end of the common beginning is shown, and no other part of it
        return _joined(tokens, kept)

    def _telling(self, tokens: Tokens) -> set[int]:
        """Return the positions of the tokens at which another name goes on differently, unless most names agree."""
        following = [self._next[tokens[:end]] for end in range(len(tokens))]
        return {
            end
            for end, (token, counts) in enumerate(zip(tokens, following))
            if len(counts) > 1 and counts[token] < self._most
        }

    def _abbreviated(self, tokens: Tokens, kept: set[int], width: int) -> str:
        """Return a name whose longest tokens are abbreviated as far as needed, but still differ from others."""
        short = list(tokens)
        for position in sorted(kept, key=lambda p: -len(tokens[p])):
            others = self._next[tokens[:position]].keys() - {tokens[position]}
            short[position] = _abbreviation(tokens[position], others)
            if _width(text := _joined(short, kept)) <= width:
                return text
        return _joined(short, kept)


@lru_cache(maxsize=2)
def _tree(names: tuple[str, ...]) -> _Tree:
    """Return the tree of the names of a column, which is asked first for a width and then for shorter names."""
    return _Tree(names)


def _abbreviation(token: str, others: set[str]) -> str:
    """Return the shortest beginning of a token with which no other token begins, and …; the token if there is none."""
    if token[-1:].isdigit():
        return token
    start = len(token) - len(token.lstrip("/._:-"))
    least = start + _LEAST_LETTERS
    ends = range(least, len(token) - 1)
    return next((f"{token[:n]}…" for n in ends if not any(other.startswith(token[:n]) for other in others)), token)


def _joined(tokens: Sequence[str], kept: set[int]) -> str:
    """Return the kept tokens, with … in place of each run of others."""
    text = ""
    for position, token in enumerate(tokens):
        if position in kept:
            text += token.lstrip("/._:-") if text.endswith("…") else token
        elif not text.endswith("…"):
            text += "…"
    return text


def cut(text: str, width: int) -> str:
    """Return a text of at most ``width`` columns, whose end is replaced by … if it is longer.

    A number in it stays whole or is left out.
    """
    if _width(text) <= width:
        return text
    kept = text
    while kept and _width(kept) > width - 1:
        kept = kept[:-1]
    if re.match(r"[\d.eE+-]", text[len(kept)]):
        kept = re.sub(r"[-+]?\.?\d[\d.eE+-]*$|[-+]$", "", kept)
    return f"{kept}…"
