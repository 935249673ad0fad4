"""The true outputs of all samples, and how far other outputs are from them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from irrun.debug.low_precision.formats import Format, is_float
from irrun.debug.low_precision.simulation import Behaviour, Simulation, run_true
from irrun.debug.metrics import Measurement, measure
from irrun.debug.results import Layer, nothing_to_compare
from irrun.debug.tolerances import Tolerances
from irrun.diagnostics import EngineError, ExecutionError, diagnostic
from irrun.types import ELEMENT_TYPES, ElementType

__all__ = ["Outputs", "Sample", "effect_of"]

Sample = Mapping[int, np.ndarray]
"""The inputs of a run, by position."""


class Outputs:
    """The true outputs of all samples. They stay in memory, and nothing else of a run does.

    With ``text``, outputs [batch, positions, vocabulary] are judged by the greedy token at each position, and other
    outputs are not compared. Raises EngineError (IR704) if no output can be compared.
    """

    def __init__(
        self, simulation: Simulation, samples: Sequence[Sample], format: Format, limits: Tolerances, *, text: bool
    ) -> None:
        self.simulation, self.samples, self.text = simulation, samples, text
        self.true = [simulation(run_true, sample) for sample in samples]
        model = simulation.model
        self.compared = [n for n, array in enumerate(self.true[0]) if not text or _has_tokens(array)]
        if not self.compared:
            message = f"no output of {model.source.path} is [batch, positions, vocabulary], and no text was compared"
            raise EngineError(diagnostic("IR704", message, help="leave out --text to judge by tolerances"))
        if not any(measure(run[n], run[n], 0, 0).numbers for run in self.true for n in self.compared):
            raise nothing_to_compare(model.source.path)
        self.names = [model.result_name(result) for result in model.results]
        self.types = [_type(array, format) for array in self.true[0]]
        self.limits = [limits.of_output(name, type) for name, type in zip(self.names, self.types)]

    def compare(self, behaviour: Behaviour) -> tuple[Layer, ...]:
        """Run the model with a behaviour on all samples, and return its outputs with the figures of the worst one."""
        return self.compare_runs(lambda sample: self.simulation(behaviour, sample))

    def compare_runs(self, run: Callable[[Sample], Sequence[np.ndarray]]) -> tuple[Layer, ...]:
        """Return the outputs of ``run`` on all samples, with the figures of the worst one."""
        worst: dict[int, tuple[Measurement, int]] = {}
        for number, (sample, true) in enumerate(zip(self.samples, self.true)):
            for position, found in self._measured(run, sample, true).items():
                known = worst.get(position)
                if known is None or _badness(found) > _badness(known[0]):
                    worst[position] = found, number
        return tuple(
            Layer(self.names[n], "", 0, True, None, None, self.names[n], self.types[n], *self.limits[n], *item, None)
            for n, item in sorted(worst.items())
        )

    def _measured(
        self, run: Callable[[Sample], Sequence[np.ndarray]], sample: Sample, true: Sequence[np.ndarray]
    ) -> dict[int, Measurement]:
        """Run the model on a sample, and measure its outputs. A run that fails is a problem of each output.

        Raises ExecutionError if it fails because it needs too much memory (IR604).
        """
        problem, others = "", true
        try:
            others = run(sample)
        except ExecutionError as error:
            if any(diagnostic.code == "IR604" for diagnostic in error.diagnostics):
                raise
            problem = f"the run fails: {error.diagnostics[0].message}"
        measured = {n: measure(true[n], others[n], *self.limits[n]) for n in self.compared}
        if problem:
            return {n: replace(found, problem=problem) for n, found in measured.items()}
        if self.text:
            return {n: _judged_as_text(found, true[n], others[n], self.limits[n]) for n, found in measured.items()}
        return measured


def _has_tokens(array: np.ndarray) -> bool:
    return array.ndim == 3 and is_float(array) and array.shape[-1] > 1


def _judged_as_text(found: Measurement, true: np.ndarray, other: np.ndarray, limit: tuple[float, float]) -> Measurement:
    """Return a measurement of logits that counts positions instead of elements.

    A position is outside if the true logit of its greedy token is less than the greatest by more than the tolerance:
    ``atol`` plus ``rtol`` times the standard deviation of the true logits there. Less is a near tie.
    """
    if found.problem:
        return found
    first, second = (np.where(np.isnan(array), -np.inf, array) for array in (true, other))
    tokens = second.argmax(-1)[..., None]
    finite = np.isfinite(true)
    spread = np.std(np.where(finite, true, 0), axis=-1, where=finite | ~finite.any(-1, keepdims=True))
    gap = first.max(-1) - np.take_along_axis(first, tokens, -1)[..., 0]
    is_outside = gap > limit[1] + limit[0] * spread
    places = np.argwhere(is_outside)
    worst = tuple(int(n) for n in places[0]) if len(places) else None
    return replace(found, outside=len(places), size=is_outside.size, worst=worst)


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
