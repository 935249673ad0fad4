"""Explain what releases refused of one operation: the fewest sentences of a refused layer that no loaded layer has.

One refused layer after the other is the seed of a rule. A loaded layer that differs from the seed in one subject, such
as the element type of its inputs, shows that the subject is the reason; the rule then needs no second model.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Sequence
from itertools import combinations
from typing import Final

import numpy as np

from releases.evidence import BESIDE, NOISE, Found, chance, is_about_attributes, least, names_attribute, trust

__all__ = ["MOST_WORDS", "explain"]

MOST_WORDS: Final = 3
"""The most sentences of a rule."""
_MOST_ROWS: Final = 3_000
"""Above this many different layers, an operation gets rules of two sentences at most: Parameter is in every model."""
_SUBJECTS: Final = (
    (re.compile(r"^(an? |output|its |inputs |it has \d+ inputs|no input of the model|IR version)"), ""),
    (
        re.compile(r"^(input) \d+ is (?:\w+ of \d+ bits|decompressed from \w+|[a-z]+\d+\w*|boolean|string|dynamic)$"),
        "type",
    ),
    (re.compile(r"^(input \d+) (?:is (?:not )?(?:constant|connected)|has unknown contents)$"), "kind"),
    (re.compile(r"^(input \d+) (?:is -?[\d.]|is -?inf|is nan|has a negative|has a zero)"), "contents"),
    (re.compile(r"^(input) \d+ "), "shape"),
    (re.compile(r"^(?:it has (?:no|the) attribute )?(\w+)(?:=| has | no | is not its |$)"), "attribute"),
)
"""What a sentence is about. The first kind follows from the others."""


def explain(
    rows: Sequence[tuple[int, frozenset[str], int]],
    explained: np.ndarray,
    against: np.ndarray,
    left: np.ndarray,
    *,
    blocks: bool,
) -> Iterator[Found]:
    """Yield rules that explain answers about the layers of one operation, and change ``left`` accordingly.

    A row is the number of a model, the sentences of a layer, and how far the layer may be the reason of a refusal: not
    at all (0), as one of several (1), or as the only one (2).
    ``explained``, ``against`` and ``left`` have a line for each model and a column for each release.
    """
    models: dict[frozenset[str], list[int]] = {}
    blamed: dict[frozenset[str], list[int]] = {}
    alone = {words for _, words, blame in rows if blame > 1}
    for number, words, blame in rows:
        models.setdefault(words, []).append(number)
        if blame:
            blamed.setdefault(words, []).append(number)
    if any(left[numbers].any() for numbers in blamed.values()):
        yield from _Layers(models, blamed, alone, explained, against, left, blocks=blocks).rules()


class _Layers:
    """The different layers of one operation, each with the answers that releases gave for models with it."""

    def __init__(
        self,
        models: dict[frozenset[str], list[int]],
        blamed: dict[frozenset[str], list[int]],
        alone: Container[frozenset[str]],
        explained: np.ndarray,
        against: np.ndarray,
        left: np.ndarray,
        *,
        blocks: bool,
    ) -> None:
        self.blocks, self.all_left = blocks, left
        self.alone = np.array([words in alone for words in models])
        self.blamed = [np.array(blamed.get(words, []), int) for words in models]
        self.words = sorted({word for words in models for word in words})
        word = {word: at for at, word in enumerate(self.words)}
        self.has = np.zeros((len(models), len(self.words)), bool)
        for at, words in enumerate(models):
            self.has[at, [word[w] for w in words]] = True
        self.explained = np.array([explained[numbers].sum(axis=0) for numbers in self.blamed], np.float32)
        self.against = np.array([against[numbers].sum(axis=0) for numbers in models.values()], np.float32)
        self.left = np.array([left[numbers].sum(axis=0) for numbers in self.blamed], np.float32)
        self.chance = chance(self.explained, self.against)
        self.trust = np.array([trust(word, blocks=blocks) for word in self.words])
        self.names_attribute = np.array([*map(names_attribute, self.words)])
        self.is_about_attributes = np.array([*map(is_about_attributes, self.words)])
        self.follows = np.array([word.startswith(("output ", "an output ")) for word in self.words])
        """Which sentences are about outputs, and thus follow from others: a layer that differs shows no reason in them."""
        subjects = {subject: at for at, subject in enumerate(sorted({_subject(word) for word in self.words}))}
        self.about = np.zeros((len(self.words), len(subjects)), np.float32)
        """Which sentence is about which subject."""
        for at, w in enumerate(self.words):
            if subject := _subject(w):
                self.about[at, subjects[subject]] = 1

    def rules(self) -> Iterator[Found]:
        """Yield a rule for each seed that one explains, those with the most answers first."""
        for seed in np.argsort(-self.left.sum(axis=1), kind="stable"):
            if not self.left[seed].any() or (rule := self._rule(seed)) is None:
                continue
            words, found = rule
            yield found
            holds = np.flatnonzero(found.holds)
            for at in np.flatnonzero(self.has[:, words].all(axis=1)):
                self.all_left[np.ix_(self.blamed[at], holds)] = False
                self.left[at, holds] = 0

    def _rule(self, seed: int) -> tuple[list[int], Found] | None:
        """Return the best rule with the fewest sentences that explains a layer: their places, and the rule."""
        words = self._different(seed)
        is_sharp = self._is_sharp(seed)
        most = MOST_WORDS if len(self.has) <= _MOST_ROWS else MOST_WORDS - 1
        for size in range(1, most + 1):
            tuples = np.array([*combinations(words, size)], int).reshape(-1, size)
            if self.blocks:  # such a rule names the error
                names = np.array(["irrun reports" in self.words[w] for w in words])
                tuples = tuples[np.isin(tuples, np.array(words)[names]).any(axis=1)]
            if not len(tuples):
                continue
            fits = self.has[:, tuples].all(axis=2).T.astype(np.float32)
            explained, against, left = (fits @ of for of in (self.explained, self.against, self.left))
            holds = (against <= NOISE * explained) & (explained > 0)
            is_beside = self.names_attribute[tuples].any(axis=1) & ~self.is_about_attributes[tuples].all(axis=1)
            quality = self.trust[tuples].prod(axis=1) * np.where(is_beside, BESIDE, 1)
            evidence = (explained * holds).max(axis=1)
            is_cause = np.logical_and(is_sharp, ~self.follows[tuples].all(axis=1)).tolist()
            needed = np.array([self._least(float(q), size, is_sharp=sharp) for q, sharp in zip(quality, is_cause)])
            gain = (left * holds).sum(axis=1) * quality
            gain[(evidence < needed) | ~(holds & (self.left[seed] > 0)).any(axis=1)] = 0
            best = int(gain.argmax())
            if gain[best] > 0:
                chosen = tuples[best].tolist()
                seen = explained[best] + against[best] > 0
                texts = [self.words[w] for w in chosen]
                return chosen, Found(texts, (), holds[best], seen, int(evidence[best]))
        return None

    def _least(self, quality: float, size: int, *, is_sharp: bool) -> int:
        usual = least(quality, self.chance, blocks=self.blocks)
        return min(usual, size) if is_sharp and not self.blocks else usual

    def _different(self, seed: int) -> list[int]:
        """Return the sentences of a layer, of those that always occur together only the most trusted."""
        of = np.flatnonzero(self.has[seed])
        chosen: dict[bytes, int] = {}
        for word in sorted(of.tolist(), key=lambda w: (-self.trust[w], len(self.words[w]), self.words[w])):
            chosen.setdefault(self.has[:, word].tobytes(), word)
        return sorted(chosen.values())

    def _is_sharp(self, seed: int) -> bool:
        """Return whether a layer that differs in one subject at most was loaded where the seed was refused.

        Both are the only layers of their models that can be the reason.
        """
        if not self.alone[seed]:
            return False
        loaded = self.alone & (self.against * (self.left[seed] > 0)).any(axis=1)
        differ = self.has[seed] & ~self.has[loaded]
        return bool(((differ.astype(np.float32) @ self.about > 0).sum(axis=1) <= 1).any())


def _subject(word: str) -> str:
    """Return what a sentence is about; empty if it follows from other sentences."""
    if word.startswith("irrun reports"):
        return "error"
    for pattern, kind in _SUBJECTS:
        if match := pattern.search(word):
            return f"{match[1]} {kind}" if kind else ""
    return word
