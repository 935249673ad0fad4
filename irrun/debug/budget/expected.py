"""The errors to expect of a model in a precision, known before a candidate runs: irrun simulates the precision."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from irrun.debug.budget.outputs import allowed_around, roundings
from irrun.debug.budget.precisions import InEffect, is_kept, reads_compressed
from irrun.debug.low_precision.formats import is_float
from irrun.debug.low_precision.simulation import Arrays, Behaviour, Run, Simulation, run_true
from irrun.debug.low_precision.units import Output, Unit
from irrun.diagnostics import IrrunError
from irrun.model import Model

__all__ = ["Expected", "ExpectedOutput", "expect", "expect_in"]

_KEPT: Final = 4096
"""The elements of a value whose errors stand for those of all: enough to know their root mean square up to 3 %."""
_ITERATIONS: Final = 8
"""The iterations of a loop whose values are kept."""


@dataclass(frozen=True, slots=True)
class ExpectedOutput:
    """The ``error`` to expect of an output, and the greatest error of an element that its budget ``allowed``.

    Both are divided by the root mean square of the output. The error is infinite if a simulation overflows; the budget
    leaves elements that overflow out.
    """

    error: float
    allowed: float


@dataclass(frozen=True, slots=True)
class Expected:
    """The errors to expect in a precision, all roundings before a value included.

    ``precision`` names it: ``bf16, u8 cache``. ``errors`` are those of the outputs of layers: the root mean square of
    the errors divided by that of the values. ``outputs`` are the outputs of the model, by position. What holds no
    floats has no error to expect.
    """

    precision: str
    errors: Mapping[Output, float]
    outputs: Mapping[int, ExpectedOutput]

    def of_layer(self, name: str) -> float | None:
        """Return the greatest error to expect of an output of a layer; None if none is known."""
        return max((error for (own, _), error in self.errors.items() if own == name), default=None)


def expect_in(model: Model, effect: InEffect, samples: Iterable[Mapping[int, np.ndarray]], max_memory: int) -> Expected:
    """Return the errors to expect of a candidate with the precision ``effect``, beside a reference in f32.

    ``samples`` are inputs by position. Raises the errors of ``irrun.compile`` and of a run in full precision.
    """
    simulation = Simulation(model, max_memory)
    units = simulation.units.values()
    cache = [f"{effect.cache} cache"] if effect.cache != "f32" and any(map(is_kept, units)) else []
    groups = [f"groups of {effect.group}"] if effect.group and any(map(reads_compressed, units)) else []
    text = ", ".join([effect.type, *cache, *groups])
    return expect(simulation, text, [*roundings((InEffect(), effect))], samples)


def expect(
    simulation: Simulation, precision: str, behaviours: Sequence[Behaviour], samples: Iterable[Mapping[int, np.ndarray]]
) -> Expected:
    """Return the errors of the runs with some behaviours, beside the run in full precision.

    Raises the errors of a run in full precision. A run with another behaviour that fails does not count.
    """
    flips = any(unit.op.type == "FakeQuantize" for unit in simulation.units.values())
    watch, worst = _Watch(), dict[int, ExpectedOutput]()
    for sample in samples:
        watch.true.clear()
        true, draws = simulation(watch.around(run_true, watch.keep), sample), list[list[np.ndarray]]()
        for behaviour in behaviours:
            try:
                draws.append(simulation(watch.around(behaviour, watch.measure), sample))
            except IrrunError:
                continue
        for position, (output, *others) in enumerate(zip(true, *draws)):
            if draws and is_float(output) and output.size and all(other.shape == output.shape for other in others):
                found, known = _expected(output, others, flips), worst.get(position, ExpectedOutput(0, 0))
                worst[position] = ExpectedOutput(max(found.error, known.error), max(found.allowed, known.allowed))
    return Expected(precision, {place: _ratio(*sums) for place, sums in watch.sums.items()}, worst)


def _expected(true: np.ndarray, draws: Sequence[np.ndarray], flips: bool) -> ExpectedOutput:
    squares = [_squares(true, draw) for draw in draws]
    scale = math.sqrt(squares[0][1] / true.size)
    allowed = float(np.max(allowed_around(true, draws, flips)))
    return ExpectedOutput(_ratio(*map(sum, zip(*squares))), allowed / scale if scale else 0.0)


def _squares(true: np.ndarray, other: np.ndarray) -> tuple[float, float]:
    """Return the sums of the squares of the errors, and of the finite values."""
    is_finite = np.isfinite(true)
    wide = np.where(is_finite, true, 0).astype(np.float64)
    error = np.where(is_finite, other - wide, 0)
    square = float(np.square(error).sum()) if np.isfinite(error).all() else math.inf
    return square, float(np.square(wide).sum())


def _ratio(error: float, value: float) -> float:
    return math.sqrt(error / value) if value else (math.inf if error else 0.0)


class _Watch:
    """Adds up the errors of some elements of each value, over the runs of a sample and over all samples."""

    def __init__(self) -> None:
        self.true: dict[tuple[Output, int], np.ndarray] = {}
        self.sums: dict[Output, tuple[float, float]] = {}

    def around(self, behaviour: Behaviour, on_value: Callable[[Output, int, np.ndarray], None]) -> Behaviour:
        """Return a behaviour that passes each output on, with the number of the iteration."""
        iterations: Counter[str] = Counter()

        def watched(unit: Unit, inputs: Arrays, run: Run) -> tuple[np.ndarray, ...]:
            outputs = behaviour(unit, inputs, run)
            for port, output in self._watched(outputs) if iterations[unit.name] < _ITERATIONS else ():
                on_value((unit.name, port), iterations[unit.name], output)
            iterations[unit.name] += 1
            return outputs

        return watched

    @staticmethod
    def _watched(outputs: Sequence[np.ndarray]) -> Iterator[tuple[int, np.ndarray]]:
        for port, output in enumerate(outputs):
            if is_float(output) and output.size:
                flat = output.reshape(-1)
                some = np.random.default_rng(output.size).integers(0, output.size, _KEPT)
                yield port, flat[some] if output.size > 2 * _KEPT else flat.copy()

    def keep(self, place: Output, iteration: int, value: np.ndarray) -> None:
        """Keep a value of the run in full precision."""
        self.true[place, iteration] = value

    def measure(self, place: Output, iteration: int, value: np.ndarray) -> None:
        """Add the error of a value of another run."""
        true = self.true.get((place, iteration))
        if true is not None and true.shape == value.shape:
            error, square = _squares(true, value)
            known = self.sums.get(place, (0.0, 0.0))
            self.sums[place] = known[0] + error, known[1] + square
