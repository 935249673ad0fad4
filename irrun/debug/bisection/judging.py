"""Judge a model: run it on true inputs, and compare its outputs with the true ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from irrun.debug.metrics import measure
from irrun.debug.results import VERDICTS, Verdict
from irrun.engines import Crash, Engine, Failure, Loaded, Outputs, Refusal

__all__ = ["Question", "Wrong", "judge", "said"]


@dataclass(frozen=True, slots=True)
class Wrong:
    """What is wrong with a part: a failure of the candidate, or the positions of the outputs that differ."""

    verdict: Verdict
    outputs: tuple[int, ...] = ()
    excess: float = 0.0
    """The greatest error of an output, in units of its tolerance."""
    message: str = ""
    """What a candidate that fails says, or why an output cannot be compared."""


@dataclass(frozen=True)
class Question:
    """A model to run, with the true values of its inputs and outputs, of one run after the other.

    An output without an expected value is not judged. ``tolerance`` returns (rtol, atol) for the name of an output and
    its element type.
    """

    path: str
    inputs: Sequence[str]
    """The names of the inputs."""
    feeds: Sequence[Sequence[np.ndarray]]
    outputs: Sequence[str]
    """The names of the outputs, as ``tolerance`` takes them."""
    expected: Sequence[Sequence[np.ndarray]]
    tolerance: Callable[[str, str], tuple[float, float]]


def judge(engine: Engine, question: Question) -> Wrong | None:
    """Run a model with an engine, and return what is wrong with it, or None."""
    loaded = engine.load(question.path)
    if not isinstance(loaded, Loaded):
        return _failed(loaded)
    engine.reset()
    outside: dict[int, float] = {}
    problem = ""
    for run in range(max((len(runs) for runs in (*question.feeds, *question.expected)), default=0)):
        outcome = engine.infer({name: runs[run] for name, runs in zip(question.inputs, question.feeds)})
        if not isinstance(outcome, Outputs):
            return _failed(outcome)
        for at, (output, runs) in enumerate(zip(outcome.outputs, question.expected)):
            if run < len(runs):
                measurement = measure(runs[run], output.array, *question.tolerance(question.outputs[at], output.type))
                if not measurement.agrees:
                    outside[at] = max(outside.get(at, 0), measurement.excess)
                    problem = problem or measurement.problem
    return Wrong("differ", tuple(sorted(outside)), max(outside.values()), problem) if outside else None


def _failed(failure: Failure) -> Wrong:
    return Wrong(VERDICTS[type(failure).__name__], message=said(failure))


def said(failure: Failure) -> str:
    """Return what a failure says, in words."""
    if isinstance(failure, Refusal):
        return failure.message
    return failure.cause if isinstance(failure, Crash) else f"no answer within {failure.seconds:g} s"
