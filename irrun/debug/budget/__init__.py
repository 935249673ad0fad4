"""The budget of error: how far a candidate may be from the reference in the precision that it computes in."""

from irrun.debug.budget.expected import Expected, expect, expect_in
from irrun.debug.budget.judge import Judge
from irrun.debug.budget.outputs import Accumulated
from irrun.debug.budget.precisions import InEffect
from irrun.debug.budget.saturation import SATURATING

__all__ = ["SATURATING", "Accumulated", "Expected", "InEffect", "Judge", "expect", "expect_in"]
