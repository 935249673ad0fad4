"""Learn rules from what releases refused: the fewest sentences about a layer that hardly a loaded model contradicts.

The method is sequential covering. A rule names the operations that it is about, up to three sentences of
``irrun.targets.facts``, and the releases in which it holds. General rules come before particular ones: those of all
operations, of the operations of a class, of a type, of a version. In each step, the rule that explains the most
refusals comes first. A general rule lists the types of operations that contradict it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any, Final

import numpy as np

__all__ = ["Sample", "learn"]

_WIDE: Final = 400
"""Above this many models, an operation gets rules of two sentences at most: Parameter and Result are in every model."""
_CANDIDATES: Final = 20_000
"""The most conjunctions that are weighed for one operation at a time."""
_EXCEPTIONS: Final = 0.25
"""The most types of operations that may contradict a general rule, as a share of the types that follow it."""

_CHANCE: Final = 0.1
"""The probability at which a rule may seem right by chance, if its sentences do not speak of types or unknown shapes."""

Row = tuple[tuple[str, ...], frozenset[str], bool]
"""The operations that a layer is one of, its sentences, and whether irrun reports an error that blocks a run."""


@dataclass(frozen=True)
class Sample:
    """A model: its layers, and for each release 1 (refused), 0 (loaded) or -1 (unknown).

    ``lacking`` is true for the releases that lack an operation of the model.
    """

    layers: Sequence[Row]
    answers: np.ndarray
    lacking: np.ndarray

    @cached_property
    def blocks(self) -> bool:
        return any(blocks for _, _, blocks in self.layers)


def learn(samples: Sequence[Sample], releases: Sequence[str]) -> list[dict[str, Any]]:
    """Return the rules as rows of ``refusals`` in the table, in the order in which they were found."""
    answers = np.stack([s.answers for s in samples])
    lacking = np.stack([s.lacking for s in samples])
    blocked = np.array([s.blocks for s in samples])[:, None]
    rules = list(_excuses(samples, answers, lacking, releases))
    refused = (answers == 1) & ~lacking & ~blocked
    left = refused.copy()
    for level, name, rows in _groups(samples):
        rules += _Group(level, name, rows, refused, answers == 0, left, releases).rules()
    return rules


def _excuses(
    samples: Sequence[Sample], answers: np.ndarray, lacking: np.ndarray, releases: Sequence[str]
) -> Iterator[dict[str, Any]]:
    """Yield the errors that irrun reports and most releases do not: rows with ``loads``."""
    seen: dict[tuple[str, str], np.ndarray] = {}
    for number, sample in enumerate(samples):
        blocking = [row for row in sample.layers if row[2]]
        if len(blocking) != 1:
            continue
        operations, sentences, _ = blocking[0]
        code = max((s for s in sentences if s.startswith("irrun reports")), key=len, default="")
        for operation in (operations[-1] if operations else "", ""):
            count = seen.setdefault((operation, code), np.zeros((2, len(releases)), int))
            known = (answers[number] >= 0) & ~lacking[number]
            count[0] += known & (answers[number] == 1)
            count[1] += known & (answers[number] == 0)
    for (operation, code), (refused, loaded) in seen.items():
        if code and (operation or loaded.sum() > 20):
            holds = loaded > refused
            if holds.any():
                row = _row(operation, (code,), (), holds, refused + loaded > 0, releases, int(loaded.max()))
                yield row | {"loads": True}


def _groups(samples: Sequence[Sample]) -> Iterator[tuple[int, str, list[tuple[int, str, frozenset[str]]]]]:
    """Yield the layers of all operations (0), of each class (1), type (2) and version (3).

    A layer is the number of its model, its type and its sentences.
    """
    every: dict[tuple[int, str], dict[tuple[int, str, frozenset[str]], None]] = {}
    for number, sample in enumerate(samples):
        for operations, sentences, blocks in sample.layers:
            if blocks:
                continue
            type = operations[-2] if operations else ""
            names = [(2, "")]  # the file as a whole
            if operations:
                names = [(0, "")] + [(1, name) for name in operations[:-2]] + [(2, type), (3, operations[-1])]
            for name in names:
                every.setdefault(name, {})[number, type, sentences] = None
    for (level, name), rows in sorted(every.items(), key=lambda item: (item[0][0], -len(item[1]))):
        yield level, name, list(rows)


class _Group:
    """The layers of one operation, or of several, and the refusals that no rule explains yet (``left``, changed here)."""

    def __init__(
        self,
        level: int,
        name: str,
        rows: Sequence[tuple[int, str, frozenset[str]]],
        refused: np.ndarray,
        loaded: np.ndarray,
        left: np.ndarray,
        releases: Sequence[str],
    ) -> None:
        self.level, self.name, self.releases, self.rows, self.all_left = level, name, releases, rows, left
        numbers = sorted({number for number, _, _ in rows})
        self.numbers = np.array(numbers)
        place = {number: at for at, number in enumerate(numbers)}
        self.owner = np.array([place[number] for number, _, _ in rows])
        self.types = sorted({type for _, type, _ in rows})
        self.type = np.array([self.types.index(type) for _, type, _ in rows])
        wanted: Callable[[str], bool] = _is_general if level == 0 else lambda _: True
        self.words = sorted({word for _, _, sentences in rows for word in sentences if wanted(word)})
        self.word = {word: at for at, word in enumerate(self.words)}
        self.has = np.zeros((len(rows), len(self.words)), bool)
        for at, (_, _, sentences) in enumerate(rows):
            self.has[at, [self.word[s] for s in sentences if s in self.word]] = True
        self.refused = refused[self.numbers].astype(np.float32)
        self.loaded = loaded[self.numbers].astype(np.float32)

    def rules(self) -> Iterator[dict[str, Any]]:
        """Yield the rules of the group, those of one sentence first."""
        most = 1 if self.level == 0 else 2 if self.level == 1 or len(self.numbers) > _WIDE else 3
        for size in range(1, most + 1):
            if self.all_left[self.numbers].any():
                yield from self._of_size(size)

    def _of_size(self, size: int) -> Iterator[dict[str, Any]]:
        candidates = self._candidates(size)
        if not candidates:
            return
        where = np.zeros((len(candidates), len(self.numbers)), bool)
        allowed = np.ones_like(where) if self.level < 2 else None
        exceptions: list[tuple[str, ...]] = [()] * len(candidates)
        for at, words in enumerate(candidates):
            rows = np.flatnonzero(self.has[:, words].all(axis=1))
            if allowed is not None:
                rows, exceptions[at] = self._without_exceptions(rows)
            where[at, self.owner[rows]] = True
        weights = where.astype(np.float32)
        refused, loaded = weights @ self.refused, weights @ self.loaded
        quality = np.array([_quality([self.words[w] for w in words]) for words in candidates])
        least = self._least(quality)[:, None]
        holds = (loaded == 0) & (refused > 0) & (refused.max(axis=1, keepdims=True) >= least)
        while True:
            left = self.all_left[self.numbers].astype(np.float32)
            gain = ((weights @ left) * holds).sum(axis=1) * quality
            best = int(gain.argmax())
            if gain[best] <= 0:
                return
            self.all_left[self.numbers] &= ~(where[best][:, None] & holds[best][None, :])
            words = [self.words[w] for w in candidates[best]]
            seen = refused[best] + loaded[best] > 0
            models = int(refused[best].max())
            yield _row(self.name, words, exceptions[best], holds[best], seen, self.releases, models)

    def _least(self, quality: np.ndarray) -> np.ndarray:
        """Return how many refused models a rule needs: more if its sentences say little, or if most layers are refused."""
        share = self.refused.sum() / max(1.0, self.refused.sum() + self.loaded.sum())
        chance = np.log(_CHANCE) / np.log(min(share, 0.9) if share > 0 else 0.01)
        least = np.select([quality > 0.85, quality > 0.7, quality > 0.5], [1, 2, 3], 4)
        return np.where(quality > 0.85, least, np.maximum(least, np.ceil(chance)))

    def _without_exceptions(self, rows: np.ndarray) -> tuple[np.ndarray, tuple[str, ...]]:
        """Return the rows that a general rule is about, and the types of operations that contradict it.

        No rows are returned if too many types contradict it, or too few follow it.
        """
        owners, types = self.owner[rows], self.type[rows]
        loading = self.loaded[owners].any(axis=1)
        refusing = self.refused[owners].any(axis=1)
        against = np.unique(types[loading])
        follow = np.setdiff1d(np.unique(types[refusing]), against)
        if len(follow) < (6 if self.level == 0 else 2) or len(against) > _EXCEPTIONS * len(follow):
            return rows[:0], ()
        return rows[~np.isin(types, against)], tuple(self.types[at] for at in against)

    def _candidates(self, size: int) -> list[tuple[int, ...]]:
        """Return the conjunctions of ``size`` sentences that layers of unexplained models have, the frequent first."""
        open: np.ndarray = np.any(self.all_left[self.numbers], axis=1)
        found: Counter[tuple[int, ...]] = Counter()
        for at in np.flatnonzero(open[self.owner]):
            words = np.flatnonzero(self.has[at]).tolist()
            found.update(combinations(words, size))
            if len(found) > 10 * _CANDIDATES:
                break
        return [words for words, _ in found.most_common(_CANDIDATES)]


def _row(
    name: str,
    words: Sequence[str],
    exceptions: Sequence[str],
    holds: np.ndarray,
    seen: np.ndarray,
    releases: Sequence[str],
    models: int,
) -> dict[str, Any]:
    """Return a rule. It also holds in releases of which nothing is known, between and beside those where it does."""
    spans: list[list[str]] = []
    last = -1
    for at in np.flatnonzero(holds).tolist():
        if spans and not seen[last + 1 : at].any():
            spans[-1][1] = releases[at]
        else:
            first = at if seen[:at].any() else 0
            spans.append([releases[first], releases[at]])
        last = at
    if not seen[last + 1 :].any():
        spans[-1][1] = releases[-1]
    rule: dict[str, Any] = {"operation": name, "facts": list(words)}
    if exceptions:
        rule["except"] = list(exceptions)
    return rule | {"releases": spans, "models": models}


def _is_general(word: str) -> bool:
    return word.startswith(("an ", "irrun reports", "the file", "IR version"))


_USUAL: Final = (
    " f32",
    " f16",
    " bf16",
    " i32",
    " i64",
    " i8",
    " u8",
    " float of 16 bits",
    " float of 32 bits",
    " int of 32 bits",
    " int of 64 bits",
    " boolean",
)
_NUMBER: Final = re.compile(r" is -?\d\S*$|=.*\d\"$")
_TRUSTED: Final[Mapping[str, float]] = {
    "unknown rank": 1.0, "no precision": 1.0, "unknown": 0.8, "irrun reports": 1.0, " is empty": 1.0, "an input is": 1.0, "an output is": 1.0, "the file": 1.0,
    " constant": 0.8, "differ in type": 0.8, "differ in length": 0.9, "differ in": 0.7, "not connected": 0.8, "has a dim 1": 0.5, "more than": 0.9, " has rank": 0.6, " numbers": 0.6, " inputs": 0.6,
    "=": 0.8, "no input of the model": 0.7, " is ": 0.9,
}  # fmt: skip


def _quality(words: Sequence[str]) -> float:
    """Return how far a rule can be trusted beyond its models: types and unknown shapes more than numbers."""
    quality = 1.0
    for word in words:
        if word.endswith(_USUAL) or _NUMBER.search(word):  # most layers have these types, and any has some number
            quality *= 0.6
            continue
        quality *= next((value for part, value in _TRUSTED.items() if part in word), 0.7)
    return quality
