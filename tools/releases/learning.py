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
from math import prod
from typing import Any, Final, NamedTuple

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
_NOISE: Final = 0.04
"""The most answers against a rule, as a share of those that it explains: a release may run out of time."""


class Row(NamedTuple):
    """A layer of a model."""

    operations: tuple[str, ...]
    """The operations that the layer is one of, from the general to the particular."""
    sentences: frozenset[str]
    blocks: bool
    """Whether irrun reports an error that blocks a run."""
    blamed: bool = True
    """Whether the layer may be the reason of a refusal: false if the message of a release names another layer."""


@dataclass(frozen=True)
class Sample:
    """A model: its layers, and for each release 1 (refused), 0 (loaded) or -1 (unknown).

    ``lacking`` is true for the releases that lack an operation of the model.
    """

    layers: Sequence[Row]
    answers: np.ndarray
    lacking: np.ndarray

    @cached_property
    def blocking(self) -> int:
        """The number of layers that irrun reports an error for."""
        return sum(row.blocks for row in self.layers)


def learn(samples: Sequence[Sample], releases: Sequence[str]) -> list[dict[str, Any]]:
    """Return the rules as rows of ``refusals`` in the table, in the order in which they were found.

    The rules with ``loads`` come first: the errors that irrun reports and releases do not. The same method finds them,
    with refused and loaded models exchanged.
    """
    answers = np.stack([s.answers for s in samples])
    blocking = np.array([s.blocking for s in samples])[:, None]
    answers[np.stack([s.lacking for s in samples]) & (answers == 1)] = -1
    refused, loaded = answers == 1, answers == 0
    excuses = _cover(samples, loaded & (blocking > 0), refused & (blocking == 1), releases, blocks=True)
    return [
        *({**rule, "loads": True} for rule in excuses),
        *_cover(samples, refused & (blocking == 0), loaded, releases, blocks=False),
    ]


def _cover(
    samples: Sequence[Sample], explained: np.ndarray, against: np.ndarray, releases: Sequence[str], *, blocks: bool
) -> Iterator[dict[str, Any]]:
    """Yield rules that explain answers, and that hardly an answer is against, general ones first."""
    left = explained.copy()
    for level, name, rows in _groups(samples, blocks=blocks):
        yield from _Group(level, name, rows, explained, against, left, releases, blocks=blocks).rules()


_Rows = list[tuple[int, str, frozenset[str], bool]]


def _groups(samples: Sequence[Sample], *, blocks: bool) -> Iterator[tuple[int, str, _Rows]]:
    """Yield the layers of all operations (0), of each class (1), type (2) and version (3).

    A layer is the number of its model, its type, its sentences, and whether it may be the reason of a refusal.
    """
    every: dict[tuple[int, str], dict[tuple[int, str, frozenset[str], bool], None]] = {}
    for number, sample in enumerate(samples):
        for row in sample.layers:
            if row.blocks is not blocks:
                continue
            operations = row.operations
            type = operations[-2] if operations else ""
            names = [(2, "")]  # the file as a whole
            if operations:
                names = [(0, "")] + [(1, name) for name in operations[:-2]] + [(2, type), (3, operations[-1])]
            for name in names:
                every.setdefault(name, {})[number, type, row.sentences, row.blamed or blocks] = None
    for (level, name), rows in sorted(every.items(), key=lambda item: (item[0][0], -len(item[1]))):
        yield level, name, list(rows)


class _Group:
    """The layers of one operation, or of several, and the answers that no rule explains yet (``left``, changed here)."""

    def __init__(
        self,
        level: int,
        name: str,
        rows: _Rows,
        explained: np.ndarray,
        against: np.ndarray,
        left: np.ndarray,
        releases: Sequence[str],
        *,
        blocks: bool,
    ) -> None:
        self.level, self.name, self.releases, self.all_left, self.blocks = level, name, releases, left, blocks
        self.numbers = np.unique([row[0] for row in rows])
        self.owner = np.searchsorted(self.numbers, [row[0] for row in rows])
        self.types = sorted({row[1] for row in rows})
        self.type = np.array([self.types.index(row[1]) for row in rows])
        self.blamed = np.array([row[3] for row in rows])
        wanted: Callable[[str], bool] = _is_general if level == 0 else lambda _: True
        self.words = sorted({word for row in rows for word in row[2] if wanted(word)})
        self.word = {word: at for at, word in enumerate(self.words)}
        self.has = np.zeros((len(self.words), len(rows)), bool)
        for at, row in enumerate(rows):
            self.has[[self.word[s] for s in row[2] if s in self.word], at] = True
        self.explained = explained[self.numbers].astype(np.float32)
        self.against = against[self.numbers].astype(np.float32)
        share = float(self.explained.sum() / max(1.0, self.explained.sum() + self.against.sum()))
        self.chance = int(np.ceil(np.log(_CHANCE) / np.log(min(share, 0.9) if share > 0 else 0.01)))
        """How many refused models make a rule that is right by chance improbable."""
        self.trust = [1.0 if blocks and word.startswith("it has no attribute") else _trust(word) for word in self.words]

    def rules(self) -> Iterator[dict[str, Any]]:
        """Yield the rules of the group, those of one sentence first."""
        most = 1 if self.level == 0 else 2 if self.level == 1 or len(self.numbers) > _WIDE else 3
        for size in range(1, most + 1):
            if self.all_left[self.numbers].any():
                yield from self._of_size(size)

    def _of_size(self, size: int) -> Iterator[dict[str, Any]]:
        found = [c for words in self._candidates(size) if (c := self._weighed(words)) is not None]
        if not found:
            return
        where = np.zeros((len(found), len(self.numbers)), np.float32)
        for at, candidate in enumerate(found):
            where[at, candidate.models] = 1
        holds = np.stack([candidate.holds for candidate in found])
        quality = np.array([candidate.quality for candidate in found])
        while True:
            left = self.all_left[self.numbers].astype(np.float32)
            gain = ((where @ left) * holds).sum(axis=1) * quality
            best = int(gain.argmax())
            if gain[best] <= 0:
                return
            rule = found[best]
            self.all_left[np.ix_(self.numbers[rule.models], np.flatnonzero(rule.holds))] = False
            yield _row(self.name, rule.words, rule.exceptions, rule.holds, rule.seen, self.releases, rule.evidence)

    def _weighed(self, at: tuple[int, ...]) -> _Candidate | None:
        """Return a conjunction of sentences with the releases in which it holds, or None if it holds in none."""
        rows = np.flatnonzero(self.has[list(at)].all(axis=0))
        exceptions: tuple[str, ...] = ()
        if self.level < 2:
            rows, exceptions = self._without_exceptions(rows)
        models = np.unique(self.owner[rows[self.blamed[rows]]])
        explained = self.explained[models].sum(axis=0)
        against = self.against[np.unique(self.owner[rows])].sum(axis=0)
        words = [self.words[word] for word in at]
        quality = prod(self.trust[word] for word in at)
        holds = (against <= _NOISE * explained) & (explained > 0)
        if not holds.any() or explained[holds].max() < self._least(quality):
            return None
        return _Candidate(words, exceptions, models, holds, explained + against > 0, int(explained.max()), quality)

    def _least(self, quality: float) -> int:
        """Return how many models a rule needs: more if its sentences say little, or if most layers are refused."""
        if quality > 0.85:
            return 1 if self.blocks else 2
        least = 3 if quality > 0.7 else 6 if quality > 0.5 else 8
        return least if self.blocks else max(least, self.chance)

    def _without_exceptions(self, rows: np.ndarray) -> tuple[np.ndarray, tuple[str, ...]]:
        """Return the rows that a general rule is about, and the types of operations that contradict it.

        No rows are returned if too many types contradict it, or too few follow it.
        """
        owners, types = self.owner[rows], self.type[rows]
        against = np.unique(types[self.against[owners].any(axis=1)])
        explains = self.explained[owners].any(axis=1) & self.blamed[rows]
        follow = np.setdiff1d(np.unique(types[explains]), against)
        if len(follow) < (6 if self.level == 0 else 2) or len(against) > _EXCEPTIONS * len(follow):
            return rows[:0], ()
        return rows[~np.isin(types, against)], tuple(self.types[at] for at in against)

    def _candidates(self, size: int) -> list[tuple[int, ...]]:
        """Return the conjunctions of ``size`` sentences that layers of unexplained models have, the frequent first."""
        open: np.ndarray = np.any(self.all_left[self.numbers], axis=1)
        found: Counter[tuple[int, ...]] = Counter()
        for at in np.flatnonzero(open[self.owner] & self.blamed):
            words = np.flatnonzero(self.has[:, at]).tolist()
            found.update(combinations(words, size))
            if len(found) > 10 * _CANDIDATES:
                break
        if self.blocks:  # such a rule names the error
            found = Counter({at: n for at, n in found.items() if any("irrun reports" in self.words[w] for w in at)})
        trust = self.trust
        least = 1 if self.blocks else 2
        frequent = [(at, rows) for at, rows in found.most_common(_CANDIDATES) if rows >= least]
        return [at for at, rows in frequent if rows >= self._least(prod(trust[word] for word in at))]


class _Candidate(NamedTuple):
    """A conjunction of sentences: the models that it explains, by place in the group, and where it holds."""

    words: Sequence[str]
    exceptions: tuple[str, ...]
    models: np.ndarray
    holds: np.ndarray
    """By release."""
    seen: np.ndarray
    """The releases that answered for a model with these sentences."""
    evidence: int
    """The most models that a release refused."""
    quality: float


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
    "unknown rank": 1.0, "no precision": 1.0, "unknown": 0.8, "irrun reports": 1.0, " is empty": 1.0, "an input is": 1.0, "an output is": 1.0, "the file": 1.0, "no valid text": 1.0,
    " constant": 0.8, "differ in length": 0.9, "differ in": 0.86, "not connected": 0.8, "has a dim 1": 0.5, "more than": 0.9, " has rank": 0.6, " numbers": 0.6, " inputs": 0.6,
    "=": 0.8, "no input of the model": 0.7, " is ": 0.9,
}  # fmt: skip


def _trust(word: str) -> float:
    """Return how far a sentence can be trusted beyond its models: types and unknown shapes more than numbers."""
    if word.endswith(_USUAL) or _NUMBER.search(word):  # most layers have these types, and any has some number
        return 0.6
    return next((value for part, value in _TRUSTED.items() if part in word), 0.7)
