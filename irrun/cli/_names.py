"""Shorten names so that they fit a column, and no two names become equal."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from rich.cells import cell_len

__all__ = ["cut", "readable_width", "shortened"]

_TOKEN: Final = re.compile(r"[\W_]*(?:\d+|[^\W\d_]{1,12}|$)")
"""A part of a name: a whole number or up to 12 letters, with the characters before it that are neither."""
_LEAST_LETTERS: Final = 3
"""The letters that a part of a name keeps at least, if it is abbreviated."""

Tokens = tuple[str, ...]


def _width(text: str) -> int:
    """Return the columns that a text takes. rich is slow, and most names are ASCII."""
    return len(text) if text.replace("…", "").isascii() else cell_len(text)


def shortened(names: Sequence[str], width: int) -> list[str]:
    """Return the names in at most ``width`` columns each, with … for each part that is left out.

    Different names stay different. A part by which a name differs from others is kept, or abbreviated so that it still
    differs, and a number is never broken. A name is longer than ``width`` if it cannot be told from others otherwise.
    """
    long = [name for name in dict.fromkeys(names) if _width(name) > width]
    if not long:
        return list(names)
    tree = _Tree(names)
    short = {name: tree.shorten(name, width) for name in long}
    counts = Counter(short.values())
    number = 0
    for name in long:
        if counts[short[name]] > 1:
            number += 1
            short[name] = f"{short[name]}#{number}"
    return [short.get(name, name) for name in names]


def readable_width(names: Sequence[str]) -> int:
    """Return the width that shows every part by which a name differs from others, without abbreviations."""
    tree = _Tree(names)
    return max((min(_width(name), tree.needed(name)) for name in names), default=0)


class _Tree:
    """The prefixes of all names, as sequences of tokens, with the tokens that follow each."""

    def __init__(self, names: Iterable[str]) -> None:
        self._tokens: dict[str, Tokens] = {name: (*_TOKEN.findall(name)[:-1],) for name in names}
        self._next: dict[Tokens, set[str]] = {}
        for tokens in self._tokens.values():
            for end in range(len(tokens)):
                self._next.setdefault(tokens[:end], set()).add(tokens[end])
            self._next.setdefault(tokens, set()).add("")

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
        for position in _outermost(len(tokens)):
            if position not in kept and _width(_joined(tokens, kept | {position})) <= width:
                kept |= {position}
        return _joined(tokens, kept)

    def _telling(self, tokens: Tokens) -> set[int]:
        """Return the positions of the tokens at which another name goes on differently."""
        return {end for end in range(len(tokens)) if len(self._next[tokens[:end]]) > 1}

    def _abbreviated(self, tokens: Tokens, kept: set[int], width: int) -> str:
        """Return a name whose longest tokens are abbreviated as far as needed, but still differ from others."""
        short = list(tokens)
        for position in sorted(kept, key=lambda p: -len(tokens[p])):
            others = self._next[tokens[:position]] - {tokens[position]}
            short[position] = _abbreviation(tokens[position], others)
            if _width(text := _joined(short, kept)) <= width:
                return text
        return _joined(short, kept)


def _abbreviation(token: str, others: set[str]) -> str:
    """Return the shortest beginning of a token with which no other token begins, and …; the token if there is none."""
    if token[-1:].isdigit():
        return token
    start = len(token) - len(token.lstrip("/._:-"))
    least = start + _LEAST_LETTERS
    ends = range(least, len(token) - 1)
    return next((f"{token[:n]}…" for n in ends if not any(other.startswith(token[:n]) for other in others)), token)


def _outermost(count: int) -> list[int]:
    """Return the positions of tokens in the order in which they say most: the last, the first, the last but one …"""
    order = [position for pair in zip(range(count - 1, -1, -1), range(count)) for position in pair]
    return list(dict.fromkeys(order))


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
