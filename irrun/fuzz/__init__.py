"""The fuzzer: let engines disagree about random models.

``irrun.growing`` grows the models. ``judge`` compares what irrun and an engine do with one, ``explain`` finds a
departure that explains a disagreement, or makes the graph small, and a ``Campaign`` does all of this for a while.
"""

from __future__ import annotations

from irrun.fuzz.campaigns import Campaign, Figures, Finding, summary
from irrun.fuzz.compiled import compiled, forms
from irrun.fuzz.explaining import Verdict, explain
from irrun.fuzz.jobs import Job, run_jobs
from irrun.fuzz.judging import Disagreement, Invalid, judge
from irrun.fuzz.known import described, explained, explanations
from irrun.fuzz.reached import unreached
from irrun.fuzz.reducing import reduced, single_layers

__all__ = [
    "Campaign", "Disagreement", "Figures", "Finding", "Invalid", "Job", "Verdict", "compiled", "described", "explain",
    "explained", "explanations", "forms", "judge", "reduced", "run_jobs", "single_layers", "summary", "unreached",
]  # fmt: skip
