"""The fuzzer: grow random models from the declarations of the operations, and let engines disagree about them.

``Solver`` finds attributes, shapes and contents that an operation accepts, ``Grower`` puts layers together to graphs,
``judge`` compares what irrun and an engine do with a graph, ``reduced`` makes a graph small, and a ``Campaign`` does
all of this for a while.
"""

from __future__ import annotations

from irrun.fuzz.campaigns import Campaign, Figures, Finding, summary
from irrun.fuzz.graphs import Graph
from irrun.fuzz.growing import Grower
from irrun.fuzz.jobs import Job, run_jobs
from irrun.fuzz.judging import Disagreement, Invalid, judge
from irrun.fuzz.known import described, explained, explanations
from irrun.fuzz.reducing import reduced, single_layers
from irrun.fuzz.solving import Draft, Port, Solver, versions

__all__ = [
    "Campaign", "Disagreement", "Draft", "Figures", "Finding", "Graph", "Grower", "Invalid", "Job", "Port", "Solver",
    "described", "explained", "explanations", "judge", "reduced", "run_jobs", "single_layers", "summary", "versions",
]  # fmt: skip
