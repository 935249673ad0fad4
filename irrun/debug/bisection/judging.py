"""Judge a model: run it on true inputs, and compare its outputs with the true ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from irrun.debug.metrics import measure
from irrun.debug.results import VERDICTS, Verdict
from irrun.engines import Crash, Engine, Failure, Loaded, Outputs, Refusal

__all__ = ["Wrong", "judge", "said"]


@dataclass(frozen=True, slots=True)
class Wrong:
    """What is wrong with a part: a failure of the candidate, or the positions of the outputs that differ."""

    verdict: Verdict
    outputs: tuple[int, ...] = ()
    excess: float = 0.0
    """The greatest error of an output, in units of its tolerance."""
    message: str = ""
    """What a candidate that fails says, or why an output cannot be compared."""


def judge(
    engine: Engine,
    path: str,
    names: Sequence[str],
    feeds: Sequence[Sequence[np.ndarray]],
    expected: Sequence[Sequence[np.ndarray]],
    tolerance: Callable[[str, str], tuple[float, float]],
    values: Sequence[str],
) -> Wrong | None:
    """Run a model with an engine, and return what is wrong with it, or None.

    ``feeds`` and ``expected`` hold the values of each input and output, for one run after the other; an output without
    an expected value is not judged. ``names`` are those of the inputs. ``tolerance`` returns (rtol, atol) for one of
    the ``values``, which name the outputs, and an element type.
    """
    loaded = engine.load(path)
    if not isinstance(loaded, Loaded):
        return _failed(loaded)
    engine.reset()
    outside: dict[int, float] = {}
    problem = ""
    for run in range(max((len(runs) for runs in (*feeds, *expected)), default=0)):
        outcome = engine.infer({name: runs[run] for name, runs in zip(names, feeds)})
        if not isinstance(outcome, Outputs):
            return _failed(outcome)
        for at, (output, runs) in enumerate(zip(outcome.outputs, expected)):
            if run < len(runs):
                measurement = measure(runs[run], output.array, *tolerance(values[at], output.type))
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
