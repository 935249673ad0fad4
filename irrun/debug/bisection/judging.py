"""Judge a model: run it on true inputs, and compare its outputs with the true ones."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from irrun.debug.metrics import measure
from irrun.debug.results import VERDICTS, Verdict
from irrun.engines import Crash, Engine, Failure, Loaded, Outputs, Refusal

__all__ = ["Question", "Wrong", "is_alike", "judge", "said"]


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


_SOURCE_PLACE: Final = re.compile(r"[\w./-]+\.(?:c|cc|cpp|h|hpp|py|rs):\d+")
"""A line of the source of an engine, which says where a check has failed."""
_QUOTED: Final = re.compile(r"""'([^'\n]*)'|"([^"\n]*)\"""")
_FILE_PLACE: Final = re.compile(r"^.*?:\d+:\d+: ", re.MULTILINE)
"""A place in the file of a model, in front of a message. It is another one in each part."""
_DIMS: Final = re.compile(r"[\[({][\d?., -]*[\])}]")


def is_alike(whole: Wrong, part: Wrong | None) -> bool:
    """Return whether a part fails as the whole model does: in the same way and, unless values differ, for one cause.

    Messages have one cause if they name the same line of the engine's source and quote the same names. Without such a
    line, the first line of the part's message is one of the whole's. Dims and places in files are left out.
    """
    if part is None or part.verdict != whole.verdict:
        return False
    if whole.verdict == "differ":
        return True
    sources = [_SOURCE_PLACE.findall(wrong.message) for wrong in (whole, part)]
    if all(sources):
        first, second = (
            (places[-1], {"".join(quoted) for quoted in _QUOTED.findall(wrong.message)})
            for places, wrong in zip(sources, (whole, part))
        )
        return first == second
    lines = _lines(part.message)
    return not any(sources) and (lines[0] in _lines(whole.message) if lines else not whole.message)


def _lines(message: str) -> list[str]:
    """Return the lines of a message without dims, and without places in files."""
    plain = _DIMS.sub("[]", _FILE_PLACE.sub("", message))
    return [line.strip() for line in plain.splitlines() if line.strip()]


def _failed(failure: Failure) -> Wrong:
    return Wrong(VERDICTS[type(failure).__name__], message=said(failure))


def said(failure: Failure) -> str:
    """Return what a failure says, in words."""
    if isinstance(failure, Refusal):
        return failure.message
    return failure.cause if isinstance(failure, Crash) else f"no answer within {failure.seconds:g} s"
