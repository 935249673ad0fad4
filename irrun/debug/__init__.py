"""Find out where two models, or two runs of them, differ."""

from irrun.debug.diff import diff
from irrun.debug.matching import match

__all__ = ["diff", "match"]
