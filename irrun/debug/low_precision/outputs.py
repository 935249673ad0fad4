"""The true outputs of all samples, and how far other outputs are from them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from irrun.debug.low_precision.formats import Format, is_float
from irrun.debug.low_precision.simulation import Behaviour, Simulation, run_true
from irrun.debug.metrics import Measurement, measure
from irrun.debug.results import Layer
from irrun.debug.tolerances import Tolerances
from irrun.diagnostics import ExecutionError
from irrun.types import ELEMENT_TYPES, ElementType

__all__ = ["Outputs", "effect_of"]


class Outputs:
    """The true outputs of all samples. They stay in memory, and nothing else of a run does."""

    def __init__(
        self, simulation: Simulation, samples: Sequence[Mapping[int, np.ndarray]], format: Format, limits: Tolerances
    ) -> None:
        self.simulation, self.samples = simulation, samples
        self.true = [simulation(run_true, sample) for sample in samples]
        model = simulation.model
        self.names = [model.result_name(result) for result in model.results]
        self.types = [_type(array, format) for array in self.true[0]]
        self.limits = [limits.of_output(name, type) for name, type in zip(self.names, self.types)]

    def compare(self, behaviour: Behaviour) -> tuple[Layer, ...]:
        """Run the model with a behaviour on all samples, and return its outputs with the figures of the worst one."""
        worst: list[tuple[Measurement, int] | None] = [None] * len(self.names)
        for number, (sample, true) in enumerate(zip(self.samples, self.true)):
            for position, found in enumerate(self._measured(behaviour, sample, true)):
                known = worst[position]
                if known is None or _badness(found) > _badness(known[0]):
                    worst[position] = found, number
        return tuple(
            Layer(name, "", 0, True, None, None, name, type, *limit, item[0], item[1], None)
            for name, type, limit, item in zip(self.names, self.types, self.limits, worst)
            if item is not None
        )

    def _measured(
        self, behaviour: Behaviour, sample: Mapping[int, np.ndarray], true: Sequence[np.ndarray]
    ) -> list[Measurement]:
        """Run the model on a sample, and measure its outputs. A run that fails is a problem of each output.

        Raises ExecutionError if it fails because it needs too much memory (IR604).
        """
        try:
            others = self.simulation(behaviour, sample)
        except ExecutionError as error:
            if any(diagnostic.code == "IR604" for diagnostic in error.diagnostics):
                raise
            problem = f"the run fails: {error.diagnostics[0].message}"
            return [replace(measure(array, array, *limit), problem=problem) for array, limit in zip(true, self.limits)]
        return [measure(first, second, *limit) for first, second, limit in zip(true, others, self.limits)]


def effect_of(outputs: Sequence[Layer]) -> float:
    """Return the relative error of the worst output: infinite if one side alone is not finite."""
    return max((_error(output.measurement) for output in outputs), default=0.0)


def _error(measurement: Measurement) -> float:
    return math.inf if measurement.problem else measurement.error


def _badness(measurement: Measurement) -> tuple[bool, float, float]:
    return not measurement.agrees, _error(measurement), measurement.excess


def _type(array: np.ndarray, format: Format) -> str:
    """Return the element type whose tolerance an output has: that of the precision, unless it holds no floats."""
    if is_float(array):
        return format.tolerance
    return str(ElementType.of(array.dtype) or ELEMENT_TYPES["dynamic"])
