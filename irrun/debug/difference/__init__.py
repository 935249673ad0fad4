"""Pair the layers of two models, and say where the models differ, by structure."""

from irrun.debug.difference.diff import Change, Difference, LayerDifference, Place, diff
from irrun.debug.difference.matching import Matching, Pair, match
from irrun.debug.difference.summary import Summary, WeightsRow, badness

__all__ = [
    "Change", "Difference", "LayerDifference", "Matching", "Pair", "Place", "Summary", "WeightsRow", "badness", "diff",
    "match",
]  # fmt: skip
