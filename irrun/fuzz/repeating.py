"""Whether a disagreement with an engine comes again from the file of its case, in which nothing of the campaign is."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Final

import numpy as np

from irrun.conformance.suite import Case, from_record, to_record
from irrun.engines.engine import Engine
from irrun.engines.outcomes import Crash, Loaded, Outputs, Refusal, Timeout
from irrun.fuzz.judging import Disagreement, differs

__all__ = ["UNREPEATED", "repeats"]

UNREPEATED: Final = "a disagreement that its file does not repeat"
"""Under which name the figures count a disagreement that is not reported."""
_MAX_TRIALS: Final = 3
"""How often the file is run: unrelated memory may hold the right numbers once."""
_KINDS: Final = {Refusal: "refusal", Crash: "crash", Timeout: "hang"}


def repeats(case: Case, found: Disagreement, engine: Engine) -> bool:
    """Return whether an engine disagrees about a case in the same way, read from what the file of findings holds.

    A crash must come in a new process: one that has run other models may have damaged its memory.
    """
    stored = from_record(to_record(case))
    with tempfile.TemporaryDirectory() as folder:
        path = stored.write(Path(folder))
        return any(_disagrees(stored, path, found, engine) for _ in range(_MAX_TRIALS))


def _disagrees(case: Case, path: Path, found: Disagreement, engine: Engine) -> bool:
    """Return whether an engine does with a file what was found, in the same call."""
    if found.kind == "crash":
        engine.release()
    outcome: object = engine.load(path)
    for call, step in enumerate(case.steps):
        if not isinstance(outcome, (Loaded, Outputs)) or call > found.call:
            break
        outcome = engine.infer(dict(enumerate(step.feeds())))
    if not isinstance(outcome, Outputs):
        return _KINDS.get(type(outcome)) == found.kind
    arrays = [np.asarray(output.array) for output in outcome.outputs]
    return found.kind == "values" and found.expected is not None and bool(differs(arrays, found.expected))
