"""UnigramTokenizer: the most probable sequence of tokens."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from irrun.extensions.tokenizers._merging import split_at_separators
from irrun.extensions.tokenizers._strings import RAGGED, check_ragged, check_strings, pieces, rows_of
from irrun.extensions.tokenizers._vocabulary import CAPACITY, LongestMatch, cached, known_arrays, tokenized, vocabulary
from irrun.extensions.tokenizers.bpe_tokenizer import ids_outputs
from irrun.opdef import Kernel, Op, Request, Site, Value, attr, op, ports

_PENALTY: Final = np.float32(10)
"""How much worse an unknown character is than the worst token."""
_SEPARATOR: Final = "▁".encode()


@dataclass(frozen=True, slots=True)
class Best:
    """The best ids of a string, their score, and by how little another choice anywhere in the string was worse."""

    ids: tuple[int, ...]
    score: float
    margin: float


Node = tuple[float | None, int, dict[str, Any]]
"""A node of a trie of characters: the score of the token that ends here, or None, its id, and the nodes below."""


class Trie:
    """The tokens by their characters. The nodes below a first character are made when a text first holds it."""

    def __init__(self, entries: Mapping[bytes, int], scores: Sequence[float], unknown: int, penalty: float) -> None:
        self.roots: dict[str, Node] = {}
        self.longest = 1
        self._scores, self._unknown = scores, (penalty, unknown)
        self._waiting: dict[str, list[tuple[str, int]]] = {}
        for key, id in entries.items():
            try:
                text = key.decode()
            except UnicodeDecodeError:  # no text of whole characters holds it
                continue
            self._waiting.setdefault(text[0], []).append((text, id))
            self.longest = max(self.longest, len(text))

    def prepare(self, text: str) -> None:
        """Make the nodes that a text needs. A character that is no token counts as an unknown one."""
        for char in set(text).difference(self.roots):
            self.roots[char] = (*self._unknown, {})
            for token, id in sorted(self._waiting.pop(char, ())):  # the shorter ones first
                children = self.roots
                for inner in token[:-1]:
                    children = children.setdefault(inner, (None, -1, {}))[2]
                below = children[token[-1]][2] if token[-1] in children else {}
                children[token[-1]] = self._scores[id], id, below


class Lattice:
    """The tables of one UnigramTokenizer, and the best ids of one string.

    Scores add up in f32, as in SentencePiece: ties and rounding decide between sequences. ``of_word`` adds in f64,
    which Python does quickly, and says by which margin it decided; ``best`` adds in f32.
    """

    def __init__(self, tokens: Sequence[bytes], scores: np.ndarray, unknown: int) -> None:
        entries: dict[bytes, int] = {}
        for id, text in enumerate(tokens):
            if text:
                entries.setdefault(text, id)
        flat = scores.ravel().astype(np.float32)
        self.entries, self.lengths = entries, [own[::-1] for own in LongestMatch(entries).lengths]
        self.scores = list(flat)
        self.unknown = unknown
        self.unknown_score = np.float32(np.float32(flat.min() if flat.size else 0) - _PENALTY)
        self.trie = Trie(entries, flat.tolist(), unknown, float(self.unknown_score))
        self.worst = float(max(np.abs(flat).max(initial=0), abs(self.unknown_score)))
        """The most that a character adds to the size of a score."""
        self.is_cut = not any(_SEPARATOR in _behind(text) for text in entries)
        grains = [n for n in range(_FINEST + 1) if not np.any(np.ldexp(scores.astype(np.float64), n) % 1)]
        self.exact = float(2 ** (_MANTISSA - grains[0])) if grains else 0.0
        """Sums of scores below this are exact in f32, so that parts of a string may be scored one by one."""

    def best(self, text: bytes) -> list[int]:
        """Return the ids of the best sequence. A run of unknown characters is one unknown token."""
        size = len(text)
        best: list[np.float32 | None] = [None] * (size + 1)
        best[0] = np.float32(0)
        how: list[tuple[int, int]] = [(0, 0)] * (size + 1)  # where the last token begins, and its id
        entries, scores = self.entries, self.scores
        at = 0
        while at < size:
            lead = text[at]
            width = min(4 if lead >= 0xF0 else 3 if lead >= 0xE0 else 2 if lead >= 0xC0 else 1, size - at)
            score, is_known = best[at], False
            assert score is not None  # each place has a token or an unknown character that ends there
            ends = [at + length for length in self.lengths[lead]]
            found = [(end, id) for end in ends if end <= size and (id := entries.get(text[at:end])) is not None]
            for end, id in found:
                candidate, old = scores[id] + score, best[end]
                if old is None or candidate > old:
                    best[end], how[end] = candidate, (at, id)
                is_known |= end == at + width
            if not is_known:
                end = at + width
                candidate, old = self.unknown_score + score, best[end]
                if old is None or candidate > old:
                    best[end], how[end] = candidate, (at, self.unknown)
            at += width
        return self._back(how)

    def _back(self, how: Sequence[tuple[int, int]]) -> list[int]:
        """Return the ids on the way to the last place. ``how`` says where the token before a place begins, and its id.

        A run of unknown characters is one unknown token.
        """
        out: list[int] = []
        at = len(how) - 1
        while at > 0:
            at, id = how[at]
            if id != self.unknown or not out or out[-1] != self.unknown:
                out.append(id)
        return out[::-1]

    def of_word(self, text: str) -> Best:
        """Return the best sequence of a text by sums in f64."""
        self.trie.prepare(text)
        size, roots, longest, margin = len(text), self.trie.roots, self.trie.longest, math.inf
        best, how = [0.0, *[-math.inf] * size], [(0, self.unknown)] * (size + 1)
        for at in range(size):
            score, end, children = best[at], at, roots
            for char in text[at : at + longest]:
                node = children.get(char)
                if node is None:
                    break
                gain, id, children = node
                end += 1
                if gain is not None:
                    candidate = score + gain
                    better = candidate - best[end]
                    if better > 0:
                        best[end], how[end] = candidate, (at, id)
                    else:
                        better = -better
                    if better < margin:
                        margin = better
        return Best(tuple(self._back(how)), best[size], margin)

    def by_words(self, text: bytes, memo: dict[bytes, Best]) -> list[int] | None:
        """Return the best ids of a string from those of its words, by sums in f64; None if f32 might give others.

        No token crosses the place before a separator, so that the words are independent, but for rounding: it differs
        where sums are not exact, and matters if it is larger than the margin of a word.
        """
        words = split_at_separators(text, _SEPARATOR) if self.is_cut else [text]
        is_exact = (len(text) + 1) * self.worst < self.exact
        out: list[int] = []
        total = 0.0
        for word in words:
            known = memo.get(word)
            if known is None:
                try:
                    known = self.of_word(word.decode())
                except UnicodeDecodeError:
                    return None
                if len(memo) < CAPACITY:
                    memo[word] = known
            if not is_exact:
                most = abs(total) + (len(word) + 1) * self.worst
                if most >= self.exact and known.margin <= (len(word) + 1) * most * _ROUNDING:
                    return None
                total += known.score
            ids = known.ids
            out += ids[1:] if out and ids and ids[0] == out[-1] == self.unknown else ids
        return out


_MANTISSA: Final = 24
_FINEST: Final = 16
_ROUNDING: Final = 2.0**-22
"""The bits of an f32, the finest grain of scores for which sums are looked at, and twice the error of a rounding."""


def _behind(text: bytes) -> bytes:
    """Return a text without the separators at its start."""
    while text.startswith(_SEPARATOR):
        text = text[len(_SEPARATOR) :]
    return text


@op("UnigramTokenizer")
class UnigramTokenizer(Op):
    """Return the ids of each row: the sequence of tokens that makes up a string with the best sum of scores.

    A character that is no token costs 10 more than the worst token; a run of such characters is one ``unk_token_id``.
    ``byte_fallback``, ``fuse_unk`` and ``min_score`` have no influence.

    C1  The begins and ends of the strings have one shape, and each string lies within ``chars``, which is 1D.
    C2  The row begins and row ends have one shape, and each row lies within the strings.
    C3  The vocabulary is a string tensor: begins and ends have one shape, and each token lies within its chars.
    C4  There is one score for each token.
    C5  ``unk_token_id`` is the id of a token.
    """

    byte_fallback = attr.bool(default=False)
    unk_token_id = attr.int(default=0)
    fuse_unk = attr.bool(default=False)
    min_score = attr.float(default=float("inf"))
    inputs = ports(**RAGGED, vocab_begins="i32", vocab_ends="i32", vocab_chars="u8", scores="f32")
    outputs = 3
    checked = False

    def infer(self, at: Site, *ports: Value) -> tuple[Value, ...]:
        rows = check_ragged(at, ports)
        tokens, scores = check_strings(at, *ports[5:8], label="C3", what="vocab_"), ports[8].shape
        at.require(tokens.meet(scores) is not None, "C4", f"vocab_begins is {tokens}, but scores is {scores}")
        inside = 0 <= self.unk_token_id < tokens.count().hi
        at.require(inside, "C5", f"unk_token_id is {self.unk_token_id}, the vocabulary has {tokens.count()} tokens")
        return ids_outputs(rows)

    def prepare(self, request: Request) -> Kernel | None:
        arrays = known_arrays(request, 5)
        if arrays is None:
            return None
        lattice, memo, words = self._lattice(arrays), {}, {}
        return Kernel(lambda *inputs: self._run(lattice, memo, words, *inputs[:5]))

    def run(self, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        return self._run(self._lattice(arrays[5:]), {}, {}, *arrays[:5])

    def _lattice(self, arrays: Sequence[np.ndarray]) -> Lattice:
        def build() -> Lattice:
            tokens = vocabulary(*arrays[:3])
            Site().require(arrays[3].size == len(tokens), "C4", f"{len(tokens)} tokens have {arrays[3].size} scores")
            return Lattice(tokens, arrays[3], self.unk_token_id)

        return cached(build, ("unigram", self.unk_token_id), arrays)

    def _run(
        self,
        lattice: Lattice,
        memo: dict[bytes, tuple[int, ...]],
        words: dict[bytes, Best],
        row_begins: np.ndarray,
        row_ends: np.ndarray,
        begins: np.ndarray,
        ends: np.ndarray,
        chars: np.ndarray,
    ) -> tuple[np.ndarray, ...]:
        def ids(text: bytes) -> Sequence[int]:
            known = lattice.by_words(text, words)
            return lattice.best(text) if known is None else known

        strings = pieces(begins, ends, chars)
        rows_of(row_begins, row_ends, len(strings))
        return tokenized(row_begins, row_ends, strings, ids, memo)
