"""Maps of characters, as SentencePiece normalises with them: the longest key at each place becomes its value.

``CharsMap`` holds such a map as a ``dict``. ``read_charsmap`` reads the double array that SentencePiece compiles, and
``normal_form`` makes the maps of the four Unicode normal forms.
"""

from __future__ import annotations

import hashlib
import itertools
import re
import sys
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from typing import Final, Literal

import numpy as np

__all__ = ["CharsMap", "Form", "normal_form", "read_charsmap"]

Form = Literal["NFC", "NFD", "NFKC", "NFKD"]


class CharsMap:
    """A map of strings to strings. ``normalise`` applies it from left to right, and never to its own results."""

    def __init__(self, entries: dict[str, str]) -> None:
        self.single = {ord(key): value for key, value in entries.items() if len(key) == 1}
        self.longer = {key: value for key, value in entries.items() if len(key) > 1}
        self.longest = max(map(len, self.longer), default=1)
        later = {char for key in self.longer for char in key[1:]}
        self.clusters = re.compile(f"(?s:.)[{_ranges(later)}]+") if later else None
        """Where keys of more than one character may match: a character, then those that continue such keys."""
        changing = later | {key for key in entries if len(key) == 1}
        self.changing = re.compile(f"[{_ranges(changing)}]") if changing else None
        """What a text must hold for a key to match."""

    def normalise(self, data: bytes) -> str:
        """Return a text with each longest key replaced by its value, and each invalid byte by U+FFFD."""
        try:
            text = data.decode()
        except UnicodeDecodeError:
            text = _INVALID.sub("\ufffd", data.decode("utf-8", "surrogateescape"))
        if self.changing is None or self.changing.search(text) is None:
            return text
        if self.clusters is None:
            return text.translate(self.single)
        parts: list[str] = []
        last = 0
        for match in self.clusters.finditer(text):
            parts += (text[last : match.start()].translate(self.single), self._cluster(match[0]))
            last = match.end()
        parts.append(text[last:].translate(self.single))
        return "".join(parts)

    def normalise_all(self, strings: Sequence[bytes]) -> list[str]:
        """Return each text as ``normalise`` does. They are joined by NUL, which no key and no value holds."""
        joined = _MARK.join(strings)
        if joined.count(_MARK) != len(strings) - 1:
            return list(map(self.normalise, strings))
        return self.normalise(joined).split("\0")

    def _cluster(self, text: str) -> str:
        parts: list[str] = []
        at = 0
        while at < len(text):
            for length in range(min(self.longest, len(text) - at), 1, -1):
                if (value := self.longer.get(text[at : at + length])) is not None:
                    break
            else:
                length, value = 1, self.single.get(ord(text[at]), text[at])
            parts.append(value)
            at += length
        return "".join(parts)


_MARK: Final = b"\0"
_INVALID: Final = re.compile("[\ud800-\udfff]")
"""The surrogates that stand for bytes that are not UTF-8."""


def _ranges(chars: set[str]) -> str:
    """Return characters as the items of a class of ``re``."""
    codes = np.array(sorted(map(ord, chars)))
    cuts = np.flatnonzero(np.diff(codes) != 1) + 1
    return "".join(f"\\U{part[0]:08x}-\\U{part[-1]:08x}" for part in np.split(codes, cuts))


# ---------------------------------------------------------------------------------------------
# Unicode


@lru_cache(maxsize=16)
def normal_form(form: Form | None, case_fold: bool) -> CharsMap:
    """Return the map of a normal form, with or without case folding; of case folding alone for None.

    Characters are those of the Unicode version of Python (``unicodedata.unidata_version``).
    """
    entries = _form_entries(form) if form else {}
    if case_fold:
        entries = {key: "".join(map(_folded, value)) for key, value in entries.items()}
        for code in _codes():
            char = chr(code)
            if char not in entries and (folded := _folded(char)) != char:
                entries[char] = folded
    return CharsMap(entries)


def _codes() -> itertools.chain[int]:
    """Return all code points but NUL and the surrogates."""
    return itertools.chain(range(1, 0xD800), range(0xE000, sys.maxunicode + 1))


def _form_entries(form: Form) -> dict[str, str]:
    """Return the keys of a normal form.

    These are the characters that it changes, and the sequences that it composes: for each decomposition of a character,
    any sequence of characters that have the same decomposition.
    """
    normal, decomposed = form, "NFKD" if "K" in form else "NFD"
    entries: dict[str, str] = {}
    sources: dict[str, list[str]] = {}
    sequences: set[str] = set()
    for code in _codes():
        char = chr(code)
        parts = unicodedata.normalize(decomposed, char)
        if parts == char and unicodedata.is_normalized(normal, char):
            continue
        if (changed := unicodedata.normalize(normal, char)) != char:
            entries[char] = changed
        if len(parts) == 1:
            sources.setdefault(parts, [parts]).append(char)
        else:
            sequences.add(parts)
    if form.endswith("C"):
        for parts in sequences:
            composed = unicodedata.normalize("NFC", parts)
            if composed == parts:
                continue
            for choice in itertools.product(*(sources.get(part, [part]) for part in parts)):
                key = "".join(choice)
                if key != composed:
                    entries[key] = composed
    return entries


def _folded(char: str) -> str:
    """Return the simple case folding of a character: one character."""
    folded = char.casefold()
    if len(folded) == 1:
        return folded
    lower = char.lower()
    return lower if len(lower) == 1 else char


# ---------------------------------------------------------------------------------------------
# the double array


_charsmaps: dict[bytes, CharsMap] = {}
"""The maps that were read, by the digest of their bytes."""
_MOST_MAPS: Final = 16


def read_charsmap(data: bytes) -> CharsMap:
    """Return the map that SentencePiece has compiled. Raises ValueError if the bytes are no such map."""
    digest = hashlib.sha256(data).digest()
    if digest not in _charsmaps:
        if len(_charsmaps) >= _MOST_MAPS:
            _charsmaps.clear()
        _charsmaps[digest] = CharsMap(_read(data))
    return _charsmaps[digest]


_CHILDREN: Final = 1 << 24
"""The most pairs of a node and a label that are looked at in one step: a bound on memory."""


def _read(data: bytes) -> dict[str, str]:
    """Read the keys of a double array of Darts-clone, level by level, with the texts that their values point to.

    The bytes are the length of the array (u32), the array (u32 each), and texts that end in NUL.
    """
    size = int.from_bytes(data[:4], "little")
    if len(data) < 4 or size % 4 or size < 4 or 4 + size > len(data):
        raise ValueError(f"the array of {size} bytes is not within the {len(data)} bytes of the map")
    units = np.frombuffer(data, "<u4", size // 4, 4).astype(np.int64)
    strings = data[4 + size :]
    offsets = (units >> 10) << ((units & 0x200) >> 6)
    labels = units & 0x800000FF
    leaves = (units >> 8) & 1 == 1
    entries: dict[str, str] = {}
    nodes, keys = np.array([offsets[0]]), [b""]
    seen = 0
    while len(nodes):
        seen += len(nodes)
        if seen > len(units) or len(nodes) * 256 > _CHILDREN:
            raise ValueError("the array has a cycle")
        children = nodes[:, None] ^ np.arange(256)
        inside = children < len(units)
        found = inside & (labels[np.where(inside, children, 0)] == np.arange(256))
        found[:, 0] = False  # label 0 is that of a leaf
        parents, bytes_ = np.nonzero(found)
        places = children[parents, bytes_]
        keys = [keys[parent] + bytes((byte,)) for parent, byte in zip(parents.tolist(), bytes_.tolist())]
        nodes = places ^ offsets[places]
        for key, node, is_key in zip(keys, nodes.tolist(), leaves[places].tolist()):
            if is_key:
                entries[key.decode("utf-8")] = _value(units, strings, node)
    return entries


def _value(units: np.ndarray, strings: bytes, node: int) -> str:
    at = int(units[node]) & 0x7FFFFFFF if node < len(units) else len(strings)
    if at >= len(strings):
        raise ValueError(f"the value at {at} is not within the {len(strings)} bytes of texts")
    return strings[at : strings.find(b"\0", at) if b"\0" in strings[at:] else len(strings)].decode("utf-8")
