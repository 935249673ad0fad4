"""Drop rules where they do harm: a refusal that several rules predict needs none of them alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from irrun.targets.rules import Rule, excused

if TYPE_CHECKING:
    from releases.learning import Row, Sample

__all__ = ["Rules", "merged", "pruned"]

_WORTH: Final = 2
"""How many wrong refusals weigh as much as one refusal that is missed."""


def pruned(
    samples: Sequence[Sample], rules: Sequence[Mapping[str, Any]], releases: Sequence[str], asked: np.ndarray
) -> list[dict[str, Any]]:
    """Return the rules, each without the releases in which it does more harm than good.

    A rule counts where it alone predicts a refusal: no other rule, error or missing operation does. Only answers count
    that a release gave itself (``asked``).
    """
    all_rules = Rules(rules, releases)
    made, holds = all_rules.made, all_rules.holds
    reasons = np.stack([sample.lacking for sample in samples]).astype(int)
    hits: dict[int, dict[int, int]] = {}
    for number, sample in enumerate(samples):
        for row in sample.layers:
            fitting = all_rules.about(row)
            if row.blocks:
                loads = excused(row.sentences, [made[at] for at in fitting])
                reasons[number] += [release not in loads for release in releases]
            for at in fitting:
                if not made[at].loads:
                    reasons[number] += holds[at]
                    of_rule = hits.setdefault(at, {})
                    of_rule[number] = of_rule.get(number, 0) + 1
    answers = np.stack([sample.answers for sample in samples])
    refused, loaded = (answers == 1) & asked, (answers == 0) & asked
    while sum(_prune(reasons, holds[at], found, refused, loaded) for at, found in hits.items()):
        pass
    return [_within(row, at, releases) for row, at in zip(rules, holds) if at.any()]


def _prune(
    reasons: np.ndarray, holds: np.ndarray, hits: Mapping[int, int], refused: np.ndarray, loaded: np.ndarray
) -> bool:
    """Drop a rule in the releases in which it does harm, and return whether there are any."""
    numbers, counts = np.array([*hits]), np.array([*hits.values()])[:, None]
    alone = (reasons[numbers] == counts) & holds
    harmful = (alone & loaded[numbers]).sum(axis=0) > _WORTH * (alone & refused[numbers]).sum(axis=0)
    reasons[numbers] -= counts * harmful
    holds &= ~harmful
    return bool(harmful.any())


class Rules:
    """Rows of the table as rules, and the releases in which each holds, as a line of truths."""

    def __init__(self, rows: Sequence[Mapping[str, Any]], releases: Sequence[str]) -> None:
        self.made = [_rule(row, releases) for row in rows]
        self.holds = np.array([[release in rule.releases for release in releases] for rule in self.made], bool)
        self.of: dict[str, list[int]] = {}
        for at, rule in enumerate(self.made):
            self.of.setdefault(rule.operation, []).append(at)

    def about(self, layer: Row) -> list[int]:
        """Return the places of the rules about a layer. Of one with an error, the outputs are unknown."""
        near = [at for name in ("", *layer.operations) for at in self.of.get(name, ())]
        rules = [(at, self.made[at]) for at in near if self.made[at].sentences <= layer.sentences]
        rules = [(at, rule) for at, rule in rules if not rule.exceptions.intersection(layer.operations)]
        return [at for at, rule in rules if rule.loads or not (layer.blocks and rule.speaks_of_outputs)]


def _rule(row: Mapping[str, Any], releases: Sequence[str]) -> Rule:
    spans = [releases[releases.index(first) : releases.index(last) + 1] for first, last in row["releases"]]
    holds = frozenset(release for span in spans for release in span)
    facts, exceptions = frozenset(row["facts"]), frozenset(row.get("except", ()))
    return Rule(row["operation"], facts, "", exceptions, holds, row["models"], row.get("loads", False))


def merged(rules: Sequence[dict[str, Any]], releases: Sequence[str]) -> list[dict[str, Any]]:
    """Return the rules, those that differ in nothing but the releases and models as one."""
    found: dict[tuple[str, frozenset[str], tuple[str, ...], bool], list[dict[str, Any]]] = {}
    for row in rules:
        key = (row["operation"], frozenset(row["facts"]), tuple(row.get("except", ())), row.get("loads", False))
        found.setdefault(key, []).append(row)
    return [
        _within(same[0] | {"models": max(row["models"] for row in same)}, _where(same, releases), releases)
        for same in found.values()
    ]


def _where(rows: Sequence[Mapping[str, Any]], releases: Sequence[str]) -> np.ndarray:
    holds = [_rule(row, releases).releases for row in rows]
    return np.array([any(release in of for of in holds) for release in releases])


def _within(row: Mapping[str, Any], holds: np.ndarray, releases: Sequence[str]) -> dict[str, Any]:
    """Return a rule that holds in the given releases."""
    edges = np.flatnonzero(np.diff([False, *holds.tolist(), False]))
    return {**row, "releases": [[releases[first], releases[last - 1]] for first, last in zip(edges[::2], edges[1::2])]}
