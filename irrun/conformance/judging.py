"""Judge what an engine does with a case of the suite."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from irrun.conformance.suite import Case
from irrun.engines.engine import Engine
from irrun.engines.outcomes import Crash, Failure, Loaded, Outputs, Refusal, Timeout
from irrun.engines.values import read_tensor

__all__ = ["STATUSES", "Result", "difference", "judge", "judged"]

STATUSES: Final = ("passed", "failed", "recorded", "skipped")
"""``recorded`` is what an engine does with an open case, and ``skipped`` a case that it was not asked. Neither counts
as passed."""

_MAX_DETAIL_CHARS: Final = 1000
"""The most characters of a detail."""


@dataclass(frozen=True, slots=True)
class Result:
    """What an engine did with a case.

    ``status`` is one of ``STATUSES``. ``outcome`` is ``values``, ``unstable`` (values that change from run to run),
    ``refusal``, ``crash`` or ``timeout``, and ``detail``
    says in words what is wrong, or what an engine does with an open case. ``seconds`` is the time for the case, and
    ``case`` the digest of the case.
    """

    name: str
    status: str
    outcome: str
    detail: str = ""
    seconds: float = 0.0
    case: str = ""


def judge(case: Case, engine: Engine, folder: Path) -> Result:
    """Let an engine do a case, and compare what it does with the verdict. The model is written to ``folder``.

    An engine that gives wrong values does the case again, and once more in a new process: values that change depend on
    memory that nobody has written.
    """
    begin = time.monotonic()
    path = case.write(folder)
    status, outcome, detail = judged(case, engine, path)
    if status == "failed" and outcome == "values" and case.verdict == "values":
        again = judged(case, engine, path)
        engine.release()
        if not (status, outcome, detail) == again == judged(case, engine, path):
            outcome, detail = "unstable", f"{detail}, and other values in another run"
    return Result(case.name, status, outcome, _short(detail), round(time.monotonic() - begin, 4), case.digest)


def judged(case: Case, engine: Engine, path: Path) -> tuple[str, str, str]:
    """Let an engine do a case whose model it loads from ``path``. Return status, outcome and detail of the result."""
    loaded = engine.load(path)
    if not isinstance(loaded, Loaded):
        return _of_failure(case, loaded)
    found: list[str] = []
    for number, step in enumerate(case.steps):
        if (number == 0 or step.reset) and (failure := engine.reset()) is not None:
            return _of_failure(case, failure)
        outputs = engine.infer(dict(enumerate(step.feeds())))
        if not isinstance(outputs, Outputs):
            return _of_failure(case, outputs)
        if case.verdict == "values" and (wrong := _wrong(case, step.outputs, outputs)):
            where = f"inference {number + 1}: " if len(case.steps) > 1 else ""
            return "failed", "values", where + wrong
        found += [f"{output.type} {output.array.tolist()}" for output in outputs.outputs if case.verdict == "open"]
    if case.verdict == "refuse":
        return "failed", "values", f"the model breaks {case.clause or 'the specification'}, but is accepted"
    return ("recorded" if case.verdict == "open" else "passed"), "values", "; ".join(found)


def _of_failure(case: Case, failure: Failure) -> tuple[str, str, str]:
    if isinstance(failure, Refusal):
        if failure.reason == "unavailable":
            return "skipped", "refusal", failure.message
        status = {"refuse": "passed", "open": "recorded", "values": "failed"}[case.verdict]
        return status, "refusal", failure.message
    status = "recorded" if case.verdict == "open" else "failed"
    if isinstance(failure, Timeout):
        return status, "timeout", f"no answer within {failure.seconds:g} s"
    assert isinstance(failure, Crash)
    return status, "crash", failure.cause


def _wrong(case: Case, expected: Sequence[Mapping[str, Any]], outputs: Outputs) -> str:
    """Return how outputs differ from the expected ones, or an empty text."""
    if len(outputs.outputs) != len(expected):
        return f"{len(outputs.outputs)} outputs instead of {len(expected)}"
    for position, (output, record) in enumerate(zip(outputs.outputs, expected)):
        wrong = "" if output.type == record["type"] else f"{output.type} instead of {record['type']}"
        if wrong := wrong or difference(output.array, read_tensor(record), case.rtol, case.atol):
            return f"output {position}: {wrong}" if len(expected) > 1 else wrong
    return ""


def difference(got: np.ndarray, want: np.ndarray, rtol: float, atol: float) -> str:
    """Return how an array differs from the expected one, or an empty text.

    An element is right if it is equal, if both are NaN, or if it is at most ``atol + rtol * |want|`` away. Strings,
    booleans and, without tolerances, integers are compared exactly.
    """
    if got.shape != want.shape:
        return f"shape {list(got.shape)} instead of {list(want.shape)}"
    if not got.size:
        return ""
    if want.dtype.kind in "OUSb" or (rtol == atol == 0 and want.dtype.kind in "iu"):
        wrong = np.asarray(got != want, bool)
    else:
        wrong = _distant(_number(got), _number(want), rtol, atol)
    count = int(np.count_nonzero(wrong))
    if not count:
        return ""
    worst = tuple(int(i) for i in np.argwhere(wrong)[0]) if want.ndim else ()
    return f"{count} of {want.size} elements differ, first {list(worst)}: {got[worst]} instead of {want[worst]}"


def _number(array: np.ndarray) -> np.ndarray:
    return array if array.dtype.kind in "iu" and array.dtype.isbuiltin == 1 else array.astype(np.float64)


def _distant(got: np.ndarray, want: np.ndarray, rtol: float, atol: float) -> np.ndarray:
    """Return where an element is further away than the tolerance."""
    with np.errstate(all="ignore"):
        near = np.abs(got.astype(np.float64) - want.astype(np.float64)) <= atol + rtol * np.abs(want.astype(np.float64))
        near &= np.isfinite(got) & np.isfinite(want)
        both = (got != got) & (want != want)
        return ~(near | both | (got == want))


def _short(text: str) -> str:
    """Return a text in one line, cut where it is long."""
    line = " ".join(text.split())
    return line if len(line) <= _MAX_DETAIL_CHARS else line[: _MAX_DETAIL_CHARS - 1] + "…"
