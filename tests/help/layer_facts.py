"""The sentences of ``irrun.targets.facts`` about one layer."""

from __future__ import annotations

from pathlib import Path

from irrun.api import load
from irrun.checking.checker import examine
from irrun.targets.facts import facts


def sentences(path: Path) -> frozenset[str]:
    """Return the sentences about the layer ``layer`` of a model."""
    parsed = load(path)
    (found,) = (f for f in facts(parsed, *examine(parsed)) if f.layer is not None and f.layer.name == "layer")
    return found.sentences
