"""Conformance: judge engines of OpenVINO IR by a suite of models with verdicts.

``read_suite`` reads the suite, which docs/conformance.md describes. ``judge`` lets an engine do one case of it, and
``run`` lets it do all of them, whatever happens to its process.
"""

from irrun.conformance.judging import Result, judge
from irrun.conformance.report import write_report
from irrun.conformance.running import Run, harness, read_run, run, starter
from irrun.conformance.scoreboard import Score, Scoreboard, markdown, score, scoreboard
from irrun.conformance.suite import Case, Step, Suite, read_suite

__all__ = [
    "Case",
    "Result",
    "Run",
    "Score",
    "Scoreboard",
    "Step",
    "Suite",
    "harness",
    "judge",
    "markdown",
    "read_run",
    "read_suite",
    "run",
    "score",
    "scoreboard",
    "starter",
    "write_report",
]
