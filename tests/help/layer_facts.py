"""What ``irrun.targets.facts`` says of a layer."""

from __future__ import annotations

from pathlib import Path

from irrun.api import load
from irrun.checking.checker import examine
from irrun.targets.facts import Facts, facts


def sentences(path: Path) -> frozenset[str]:
    """Return the sentences about the layer ``layer`` of a model."""
    return by_layer(path)["layer"].sentences


def by_layer(path: Path) -> dict[str, Facts]:
    """Return the facts of a model by the names of its layers."""
    parsed = load(path)
    return {fact.layer.name: fact for fact in facts(parsed, *examine(parsed)) if fact.layer is not None}
