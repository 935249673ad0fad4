"""Find the layer that goes wrong: compare engines or models, cut out the smallest wrong part, lower the precision."""

from irrun.debug.bisection import Bisection, Culprit, Wrong, anonymized, bisect, write_reproduction
from irrun.debug.comparison import Comparator, compare
from irrun.debug.difference import diff, match
from irrun.debug.difference.content import Content
from irrun.debug.inputs import Feeds, Inputs
from irrun.debug.low_precision.results import Kept, Precision, Quantizer, Sensitivity, Twin, WeightForm
from irrun.debug.low_precision.simulate import precision
from irrun.debug.metrics import Budget, Measurement, measure
from irrun.debug.pairing import InputPair, Pairing, by_name, by_name_or_structure
from irrun.debug.results import Comparison, Conduct, First, InputError, Layer, SideFailure, Step, Storage, record
from irrun.debug.subjects import Subject
from irrun.debug.tokens import compare_tokens
from irrun.debug.tolerances import Limit, Tolerances, read_tolerances

__all__ = [
    "Bisection",
    "Budget",
    "Comparator",
    "Comparison",
    "Conduct",
    "Content",
    "Culprit",
    "Feeds",
    "First",
    "InputError",
    "InputPair",
    "Inputs",
    "Kept",
    "Layer",
    "Limit",
    "Measurement",
    "Pairing",
    "Precision",
    "Quantizer",
    "Sensitivity",
    "SideFailure",
    "Step",
    "Storage",
    "Subject",
    "Tolerances",
    "Twin",
    "WeightForm",
    "Wrong",
    "anonymized",
    "bisect",
    "by_name",
    "by_name_or_structure",
    "compare",
    "compare_tokens",
    "diff",
    "match",
    "measure",
    "precision",
    "read_tolerances",
    "record",
    "write_reproduction",
]
