"""Run a model once or several times, and keep of each value its statistics, and of each layer its time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

from irrun.api import compile as compiled
from irrun.checking.listing import costs
from irrun.model import Model
from irrun.report.entries import Entries
from irrun.running.profile import Profile, Row
from irrun.running.statistics import Histogram, Statistics, histogram, statistics
from irrun.types import ElementType, PartialShape

if TYPE_CHECKING:
    from irrun.planning.steps import Step

__all__ = ["Observations", "Observed", "observe"]

_MAX_BINS: Final = 32
"""The most intervals of a histogram: as many bars as a panel of the page shows well."""
_MIN_BINS: Final = 8
"""The fewest intervals, for values with few elements."""


@dataclass(frozen=True, slots=True)
class Observed:
    """What a run showed of one output of a layer: its type and shape as text, and the figures of its elements.

    ``calls`` counts how often the output was computed: more than once in the body of a loop, where the figures are
    those of the last iteration.
    """

    type: str
    shape: str
    statistics: Statistics
    histogram: Histogram | None
    calls: int


@dataclass(slots=True)
class Observations:
    """What runs showed of a model.

    ``outputs`` is keyed by the number of a layer and the position of its output. ``steps`` are the rows of a profile
    with the number of calls in a run, and ``seconds`` is the time of a run.
    """

    outputs: dict[tuple[int, int], Observed] = field(default_factory=dict)
    steps: list[tuple[Row, float]] = field(default_factory=list)
    seconds: float = 0.0
    runs: int = 0
    costs: Mapping[int, float] = field(default_factory=dict[int, float])
    """The FLOPs and bytes of each layer at the shapes of the run, by ``Layer.node``."""


class _Watch:
    """A hook that computes the statistics of each value as soon as it is there. It keeps no array."""

    def __init__(self, entries: Entries, outputs: dict[tuple[int, int], Observed]) -> None:
        self.entries, self.outputs = entries, outputs

    def before(self, step: Step, inputs: Sequence[np.ndarray | None]) -> None:
        """Observe the constants and Parameters that the step reads: no step computes them."""
        number = self.entries.number(step.layer)
        if number is None:
            return
        for feed, array in zip(self.entries.feeds(self.entries[number]), inputs):
            if feed is not None and isinstance(array, np.ndarray):
                producer = self.entries[feed[0]]
                is_inner = producer.layer.type.lower() == "parameter" and producer.scope > 0
                if not producer.layer.inputs and (feed not in self.outputs or is_inner):
                    self.add(feed, array)

    def after(self, step: Step, inputs: Sequence[np.ndarray | None], outputs: Sequence[np.ndarray]) -> None:
        number = self.entries.number(step.layer)
        if number is not None:
            for position, array in enumerate(outputs[: len(step.layer.outputs)]):
                self.add((number, position), array)

    def add(self, place: tuple[int, int], array: np.ndarray) -> None:
        """Observe one value."""
        array = np.asarray(array)
        known = statistics(array)
        port = self.entries[place[0]].layer.outputs[place[1]]
        element_type = port.type if port.type is not None and port.type.dtype == array.dtype else None
        earlier = self.outputs.get(place)
        bins = min(_MAX_BINS, max(_MIN_BINS, array.size // 8))
        self.outputs[place] = Observed(
            str(element_type or ElementType.of(array.dtype) or array.dtype),
            str(PartialShape.of(array.shape)),
            known,
            histogram(array, known, bins),
            earlier.calls + 1 if earlier else 1,
        )


def observe(
    model: Model,
    arrays: Mapping[int, np.ndarray],
    entries: Entries,
    *,
    runs: int,
    max_memory: int,
    timeout: float | None,
) -> Observations:
    """Run a model on ``arrays``, its inputs by position, and return what the runs showed.

    The first run computes layer by layer, for the statistics. ``runs`` more are timed, as irrun runs the model without
    hooks, with fused layers. Raises the IrrunError of the run.
    """
    executable = compiled(model, max_memory=max_memory, timeout=timeout)
    shapes = {number: array.shape for number, array in arrays.items()}
    observations = Observations(runs=runs, costs=costs(model.reshape(shapes)))
    watch = _Watch(entries, observations.outputs)
    for number, parameter in enumerate(model.parameters):
        place = entries.number(parameter)
        if place is not None and parameter.outputs:
            watch.add((place, 0), np.asarray(arrays[number]))
    feeds = [arrays[number] for number in range(len(model.parameters))]
    executable(feeds, hooks=[watch])
    for _ in range(2):  # the second run with the same shapes makes the plan for them
        executable.restart()
        executable(feeds)
    profile = Profile()
    for _ in range(runs):
        executable.restart()
        executable(feeds, hooks=[profile])
    counted = profile.runs
    observations.steps = [(row, row.calls / counted) for row in profile.rows]
    observations.seconds = profile.seconds
    return observations
