"""Simulate lower precisions: which layers overflow, which lose most, and which to keep in full precision."""

from irrun.debug.low_precision.formats import FORMATS
from irrun.debug.low_precision.results import Kept, Precision, Sensitivity
from irrun.debug.low_precision.simulate import ACCUMULATORS, precision

__all__ = ["ACCUMULATORS", "FORMATS", "Kept", "Precision", "Sensitivity", "precision"]
