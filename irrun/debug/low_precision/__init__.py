"""Simulate lower precisions: which layers overflow, which lose most, and which to keep in full precision."""

from irrun.debug.low_precision.formats import FORMATS
from irrun.debug.low_precision.results import Kept, Precision, Quantizer, Sensitivity, Twin, WeightForm
from irrun.debug.low_precision.simulate import ACCUMULATORS, precision

__all__ = [
    "ACCUMULATORS", "FORMATS", "Kept", "Precision", "Quantizer", "Sensitivity", "Twin", "WeightForm", "precision",
]  # fmt: skip
