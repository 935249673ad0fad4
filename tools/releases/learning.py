"""Learn rules from what releases refused: the fewest sentences about a layer that hardly a loaded model contradicts.

The method is sequential covering. A rule names the operations that it is about, up to three sentences of
``irrun.targets.facts``, and the releases in which it holds. General rules come before particular ones: those of all
operations, of the operations of a class, of a type, of a version. Of the general ones, the rule that explains the most
refusals comes first; it lists the types of operations that contradict it. The particular ones (``releases.seeds``)
explain one refused layer after the other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import prod
from typing import Any, Final, NamedTuple

import numpy as np

from releases.evidence import BESIDE, NOISE, Found, chance, is_about_attributes, least, names_attribute, trust
from releases.pruning import Rules, merged, pruned
from releases.seeds import MOST_WORDS, explain

__all__ = ["Row", "Sample", "learn"]

_CANDIDATES: Final = 20_000
"""The most conjunctions that are weighed for one operation at a time."""
_DOUBT: Final[Mapping[bool, float]] = {False: 1.0, True: 0.3}
"""The most answers against a known rule, as a share of those that it explains; against one about errors (True), fewer."""
_EXCEPTIONS: Final = 0.25
"""The most types of operations that may contradict a general rule, as a share of the types that follow it."""

_Rows = list[tuple[int, str, frozenset[str], int]]
_ENDS: Final = ("Parameter", "Const", "Result")
"""Operations of layers that a model of one operation has beside it."""
_PARTICULAR: Final = 2
"""The first level whose rules are about one type of operation."""
_RIGHT: Final = 2
"""The fewest models in which a known rule must be right, so that a sentence is added to it. The table's models count for
as many as these at most."""
_SURE: Final = 0.85
"""A sentence that is trusted less is not added to a known rule."""
_ROUNDS: Final = ((1, (0, 1)), (1, (2,)), (2, (1,)))
"""The general rules: how many sentences they have, and the levels of the operations that they are about, in order."""


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

    ``lacking`` is true for the releases that lack an operation of the model, and ``asked`` for those that answered
    themselves: other answers are assumed.
    """

    layers: Sequence[Row]
    answers: np.ndarray
    lacking: np.ndarray
    asked: np.ndarray

    @cached_property
    def blocking(self) -> int:
        """The number of layers that irrun reports an error for."""
        return sum(row.blocks for row in self.layers)


def learn(
    samples: Sequence[Sample], releases: Sequence[str], known: Sequence[Mapping[str, Any]] = ()
) -> list[dict[str, Any]]:
    """Return the rules as rows of ``refusals`` in the table, in the order in which they were found.

    The rules with ``loads`` come first: the errors that irrun reports and releases do not. The same method finds them,
    with refused and loaded models exchanged. A refusal that a rule explains says nothing about an error. The ``known``
    rules, rows of an earlier table, come before new ones, in the releases whose answers follow them. Rules that differ
    in the releases alone become one. At last, a rule is dropped where it does harm.
    """
    answers = np.stack([s.answers for s in samples])
    blocking = np.array([s.blocking for s in samples])[:, None]
    answers[np.stack([s.lacking for s in samples]) & (answers == 1)] = -1
    refused, loaded = answers == 1, answers == 0
    asked = np.stack([s.asked for s in samples])
    asked |= ~asked.any(axis=0)  # a release that was never asked answers as those beside it do
    excuses = [{**rule, "loads": True} for rule in known if rule.get("loads")]
    others = [rule for rule in known if not rule.get("loads")]
    refusals = [*_cover(samples, refused & (blocking == 0), loaded, asked, releases, others, blocks=False)]
    against = refused & (blocking == 1) & ~_known_reasons(samples, refusals, releases)
    found = _cover(samples, loaded & (blocking > 0), against, asked, releases, excuses, blocks=True)
    rules = merged([*({**rule, "loads": True} for rule in found), *refusals], releases)
    return pruned(samples, rules, releases, asked)


def _known_reasons(
    samples: Sequence[Sample], refusals: Sequence[Mapping[str, Any]], releases: Sequence[str]
) -> np.ndarray:
    """Return which refusals a rule explains, so that they are no reason to believe an error of irrun."""
    rules = Rules(refusals, releases)
    found = np.zeros((len(samples), len(releases)), bool)
    for at, sample in enumerate(samples):
        for row in sample.layers if sample.blocking == 1 else ():
            for place in rules.about(row):
                found[at] |= rules.holds[place]
    return found


def _cover(
    samples: Sequence[Sample],
    explained: np.ndarray,
    against: np.ndarray,
    asked: np.ndarray,
    releases: Sequence[str],
    known: Sequence[Mapping[str, Any]],
    *,
    blocks: bool,
) -> Iterator[dict[str, Any]]:
    """Yield rules that explain answers, and that hardly an answer is against: known ones, then general ones first.

    Known rules are kept or dropped by answers that a release gave itself (``asked``), not by assumed ones.
    """
    left = explained.copy()
    groups = list(_groups(samples, blocks=blocks))
    of: dict[str, _Rows] = {}
    for _, name, rows in groups:
        of.setdefault(name, []).extend(rows)
    surely, surely_not = explained & asked, against & asked
    kept = [_kept(rule, of.get(rule["operation"], []), surely, surely_not, left, releases) for rule in known]
    for rule in kept:
        _extend(rule, surely_not, left, _DOUBT[blocks])
        if rule.found.holds.any():
            yield _row(rule.operation, rule.found, releases)
    for size, levels in _ROUNDS:
        for level, name, rows in groups:
            if level not in levels:
                continue
            for rule in _Group(level, rows, explained, against, left, blocks=blocks).rules(size):
                yield _row(name, rule, releases)
    for level, name, rows in groups:
        if level >= _PARTICULAR:
            every = [(n, words, may) for n, _, words, may in rows]
            for rule in explain(every, explained, against, left, blocks=blocks):
                yield _row(name, rule, releases)


def _kept(
    rule: Mapping[str, Any],
    rows: _Rows,
    explained: np.ndarray,
    against: np.ndarray,
    left: np.ndarray,
    releases: Sequence[str],
) -> _Known:
    """Return a known rule in the releases that follow it more often than they contradict it. It explains their answers.

    Its exceptions are those that answers confirm, and those about which there are none.
    """
    rule = _narrowed(rule, rows, explained, against, releases)
    words = set(rule["facts"])
    every = [(n, may, type) for n, type, of, may in rows if words <= of]
    followed = {type for n, may, type in every if may and explained[n].any()}
    followed -= {type for n, _, type in every if against[n].any()}
    exceptions = set(rule.get("except", ())) - followed
    fitting = [(n, may) for n, may, type in every if type not in exceptions]
    numbers = sorted({n for n, _ in fitting})
    blamed = sorted({n for n, may in fitting if may})
    for_it, against_it = explained[numbers].sum(axis=0), against[numbers].sum(axis=0)
    holds = np.zeros(len(releases), bool)
    for first, last in rule["releases"]:
        span = slice(releases.index(first), releases.index(last) + 1)
        doubt = _DOUBT["loads" in rule]
        holds[span] = _followed(against_it[span] <= doubt * for_it[span], for_it[span] + against_it[span] > 0)
    left[np.array(blamed, int)[:, None], np.flatnonzero(holds)] = False
    evidence = max(int(for_it.max(initial=0)), rule["models"])
    found = Found(rule["facts"], sorted(exceptions), holds, np.ones_like(holds), evidence)
    return _Known(rule["operation"], found, numbers, blamed)


class _Known(NamedTuple):
    """A known rule, the numbers of the models with its sentences, and of those whose layer may be the reason."""

    operation: str
    found: Found
    numbers: Sequence[int]
    blamed: Sequence[int]


def _extend(rule: _Known, against: np.ndarray, left: np.ndarray, doubt: float) -> None:
    """Let a rule hold in the releases beside its own in which it explains answers, and few answers contradict it."""
    holds, blamed = rule.found.holds, np.array(rule.blamed, int)
    explained = left[blamed].sum(axis=0)
    able = (explained > 0) & (against[rule.numbers].sum(axis=0) <= doubt * explained)
    while (beside := able & ~holds & (np.append(holds[1:], False) | np.append(False, holds[:-1]))).any():
        holds |= beside
    left[blamed[:, None], np.flatnonzero(holds)] = False


def _narrowed(
    rule: Mapping[str, Any], rows: _Rows, explained: np.ndarray, against: np.ndarray, releases: Sequence[str]
) -> Mapping[str, Any]:
    """Return a known rule with one sentence more if that ends all contradictions, and holds where the rule is right."""
    words, at = set(rule["facts"]), np.zeros(len(releases), bool)
    for first, last in rule["releases"]:
        at[releases.index(first) : releases.index(last) + 1] = True
    fitting = [(n, of, may) for n, type, of, may in rows if words <= of and type not in rule.get("except", ())]
    wrong = [of for n, of, _ in fitting if against[n][at].any()]
    right = [of for n, of, may in fitting if may and explained[n][at].any()]
    if not wrong or len(right) < max(_RIGHT, rule["models"] / _RIGHT) or len(words) >= MOST_WORDS:
        return rule
    added = set.intersection(*map(set, right)) - set().union(*wrong)
    best = max(sorted(added), key=lambda word: trust(word, blocks=rule.get("loads", False)), default="")
    is_sure = trust(best, blocks=rule.get("loads", False)) > _SURE
    return {**rule, "facts": [*rule["facts"], best]} if is_sure else rule


def _followed(follows: np.ndarray, seen: np.ndarray) -> np.ndarray:
    """Return in which neighbouring releases a known rule holds: in one without answers if in one of those beside it."""
    at = np.flatnonzero(seen)
    if not len(at):
        return follows
    places = np.arange(len(seen))
    before = at[np.maximum(np.searchsorted(at, places, side="right") - 1, 0)]
    after = at[np.minimum(np.searchsorted(at, places), len(at) - 1)]
    return follows[before] | follows[after]


def _groups(samples: Sequence[Sample], *, blocks: bool) -> Iterator[tuple[int, str, _Rows]]:
    """Yield the layers of all operations (0), of each class (1), type (2) and version (3).

    A layer is the number of its model, its type, its sentences, and how far it may be the reason of a refusal: not at
    all (0), as one of several (1), or as the only one (2).
    """
    every: dict[tuple[int, str], dict[tuple[int, str, frozenset[str], int], None]] = {}
    for number, sample in enumerate(samples):
        others = [row for row in sample.layers if row.operations and row.operations[-2] not in _ENDS]
        is_unclear = len(others) > 1 and all(row.blamed for row in others) and not blocks
        for row in sample.layers:
            if row.blocks is not blocks:
                continue
            operations = row.operations
            type = operations[-2] if operations else ""
            blame = int(row.blamed or blocks) * (2 if len(others) == 1 and type not in _ENDS else 1)
            names = [(2, "")]  # the file as a whole
            if operations:
                names = [(0, "")] + [(1, name) for name in operations[:-2]] + [(2, type), (3, operations[-1])]
            for level, name in names:
                is_idle = is_unclear and level >= _PARTICULAR and type not in _ENDS
                every.setdefault((level, name), {})[number, type, row.sentences, 0 if is_idle else blame] = None
    for (level, name), rows in sorted(every.items(), key=lambda item: (item[0][0], -len(item[1]))):
        yield level, name, list(rows)


class _Group:
    """The layers of one operation, or of several, and the answers that no rule explains yet (``left``, changed here)."""

    def __init__(
        self,
        level: int,
        rows: _Rows,
        explained: np.ndarray,
        against: np.ndarray,
        left: np.ndarray,
        *,
        blocks: bool,
    ) -> None:
        self.level, self.all_left, self.blocks = level, left, blocks
        self.numbers = np.unique([row[0] for row in rows])
        self.owner = np.searchsorted(self.numbers, [row[0] for row in rows])
        self.types = sorted({row[1] for row in rows})
        self.type = np.array([self.types.index(row[1]) for row in rows])
        self.blamed = np.array([row[3] > 0 for row in rows])
        wanted: Callable[[str], bool] = _is_general if level == 0 else lambda _: True
        self.words = sorted({word for row in rows for word in row[2] if wanted(word)})
        self.word = {word: at for at, word in enumerate(self.words)}
        self.has = np.zeros((len(self.words), len(rows)), bool)
        for at, row in enumerate(rows):
            self.has[[self.word[s] for s in row[2] if s in self.word], at] = True
        self.explained = explained[self.numbers].astype(np.float32)
        self.against = against[self.numbers].astype(np.float32)
        self.chance = chance(self.explained, self.against)
        self.trust = [trust(word, blocks=blocks) for word in self.words]

    def rules(self, size: int) -> Iterator[Found]:
        """Yield the rules of ``size`` sentences, those that explain the most first."""
        if not self.all_left[self.numbers].any():
            return
        found = [c for words in self._candidates(size) if (c := self._weighed(words)) is not None]
        if not found:
            return
        where = np.zeros((len(found), len(self.numbers)), np.float32)
        for at, candidate in enumerate(found):
            where[at, candidate.models] = 1
        holds = np.stack([candidate.found.holds for candidate in found])
        quality = np.array([candidate.quality for candidate in found])
        while True:
            left = self.all_left[self.numbers].astype(np.float32)
            gain = ((where @ left) * holds).sum(axis=1) * quality
            best = int(gain.argmax())
            if gain[best] <= 0:
                return
            rule = found[best]
            self.all_left[np.ix_(self.numbers[rule.models], np.flatnonzero(rule.found.holds))] = False
            yield rule.found

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
        quality = self._quality(at)
        holds = (against <= NOISE * explained) & (explained > 0)
        if not holds.any() or explained[holds].max() < least(quality, self.chance, blocks=self.blocks):
            return None
        found = Found(words, exceptions, holds, explained + against > 0, int(explained.max()))
        return _Candidate(found, models, quality)

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
        frequent = [(at, rows) for at, rows in found.most_common(_CANDIDATES) if rows >= 2]
        return [at for at, rows in frequent if rows >= least(self._quality(at), self.chance, blocks=self.blocks)]

    def _quality(self, at: tuple[int, ...]) -> float:
        """Return how far a conjunction is trusted beyond its models."""
        words = [self.words[word] for word in at]
        is_beside = any(map(names_attribute, words)) and not all(map(is_about_attributes, words))
        return prod(self.trust[word] for word in at) * (BESIDE if is_beside else 1)


class _Candidate(NamedTuple):
    """A conjunction of sentences, the models that it explains, by place in the group, and how far it is trusted."""

    found: Found
    models: np.ndarray
    quality: float


def _row(name: str, rule: Found, releases: Sequence[str]) -> dict[str, Any]:
    """Return a rule. It also holds in releases of which nothing is known, between and beside those where it does."""
    spans: list[list[str]] = []
    last = -1
    for at in np.flatnonzero(rule.holds).tolist():
        if spans and not rule.seen[last + 1 : at].any():
            spans[-1][1] = releases[at]
        else:
            first = at if rule.seen[:at].any() else 0
            spans.append([releases[first], releases[at]])
        last = at
    if not rule.seen[last + 1 :].any():
        spans[-1][1] = releases[-1]
    row: dict[str, Any] = {"operation": name, "facts": list(rule.words)}
    if rule.exceptions:
        row["except"] = list(rule.exceptions)
    return row | {"releases": spans, "models": rule.evidence}


def _is_general(word: str) -> bool:
    return word.startswith(("an ", "irrun reports", "the file", "IR version"))
