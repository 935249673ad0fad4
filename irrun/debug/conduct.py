"""How a side that differs behaves when it runs again: the same inputs may give other outputs."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from irrun.debug.metrics import measure
from irrun.debug.results import Comparison, Conduct, Layer
from irrun.debug.subjects import Subject
from irrun.engines import Engine, Loaded, Outputs, Place, Recording, Value

__all__ = ["conduct_of"]

Feeds = Mapping[Any, np.ndarray]
"""Inputs by position."""
_RUNS: Final = 3
_REPEATABLE: Final = ("irrun", "exact")
"""Engines that give the same bits in each run."""


def conduct_of(subjects: Mapping[str, Subject], feeds: Mapping[str, Feeds], comparison: Comparison) -> Conduct | None:
    """Return what is odd about the sides of a comparison that differs, or None: both are the same in each run.

    Each side runs its model as it is three times. If budgets say that no layer is wrong while inner values are shown,
    the fault vanishes when it is observed.
    """
    for role, subject in subjects.items():
        if isinstance(subject.engine, Recording) or subject.side.kind in _REPEATABLE:
            continue
        runs = _runs(subject.engine, subject, feeds[role])
        if len(runs) < _RUNS:
            continue
        if _differ(runs[1], runs[2], comparison.outputs):
            return Conduct(role, "not deterministic", _first_that_changes(subject, feeds[role]))
        if _differ(runs[0], runs[1], comparison.outputs):
            return Conduct(role, "changes with repetition", "")
    is_judged = any(layer.budget is not None for layer in comparison.layers)
    if comparison.first is None and is_judged and not comparison.unseen:
        return Conduct("candidate", "vanishes when observed", "")
    return None


def _runs(engine: Engine, subject: Subject, feeds: Feeds) -> list[Outputs]:
    """Return the outputs of several runs from the initial state, or of those before one that fails."""
    done: list[Outputs] = []
    if isinstance(engine.load(subject.side.path, inner=False), Loaded):
        while len(done) < _RUNS and engine.reset() is None and isinstance(outputs := engine.infer(feeds), Outputs):
            done.append(outputs)
    return done


def _differ(first: Outputs, second: Outputs, limits: Sequence[Layer]) -> bool:
    """Return whether two runs differ by more than a tenth of what the outputs may be wrong."""
    rtol = min((limit.rtol for limit in limits), default=0.0) / 10
    pairs = zip(first.outputs, second.outputs)
    return not all(measure(one.array, other.array, rtol, 0.0).agrees for one, other in pairs)


def _first_that_changes(subject: Subject, feeds: Feeds) -> str:
    """Return the first layer whose value has other bits in a second run, or an empty text."""
    engine = subject.engine
    if not isinstance(engine.load(subject.side.path, inner=True), Loaded):
        return ""
    seen: list[dict[tuple[Place, int], bytes]] = []
    for _ in range(2):
        values: dict[tuple[Place, int], bytes] = {}

        def keep(value: Value, values: dict[tuple[Place, int], bytes] = values) -> None:
            values[value.place, value.iteration] = hashlib.sha256(value.array().tobytes()).digest()
            value.drop()

        engine.reset()
        if not isinstance(engine.infer(feeds, list(subject.loaded.places), keep), Outputs):
            return ""
        seen.append(values)
    changed = (place for (place, at), digest in seen[0].items() if seen[1].get((place, at)) != digest)
    place = next(changed, None)
    return "" if place is None else subject.shown(place)
