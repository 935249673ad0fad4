"""The accumulated budget of the outputs of a model: what all roundings of a run together may do to them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from irrun.debug.budget.noise import pooled
from irrun.debug.budget.own import compared, rms
from irrun.debug.budget.precisions import InEffect, cache_step, decompressed_in_f16, is_kept, reads_compressed
from irrun.debug.budget.saturation import SATURATING, Saturation
from irrun.debug.low_precision.formats import is_float
from irrun.debug.low_precision.simulation import Arrays, Behaviour, Deployed, Run, Simulation, Style, run_true
from irrun.debug.low_precision.units import Output, Unit
from irrun.debug.metrics import Budget, tolerated
from irrun.diagnostics import IrrunError
from irrun.model import Model
from irrun.running.live import default_max_memory

__all__ = ["Accumulated", "allowed_around", "roundings"]

_FACTOR: Final = 8.0
"""The most that an error may be, in units of the root mean square of simulated ones. It is far, because
the layers, whose budgets are close, find faults; the outputs show those that vanish when inner values are observed."""
_DRAWS: Final = 2
"""The runs with random roundings, beside the run in the precision itself."""
_F32: Final = 2.0**-22
_GROUPS: Final = 2.0**-8
"""The roundoff of products whose activations are quantized in groups, relative to the greatest of a row."""
_MOVING: Final = frozenset(
    """Concat Convert Gather Reshape ScatterElementsUpdate ScatterNDUpdate ScatterUpdate Slice Squeeze StridedSlice
    Transpose Unsqueeze""".split()  # noqa: SIM905
)
"""Operations between a ReadValue and its Assign that compute nothing: a cache grows, or a slot of it is filled."""


@dataclass
class Accumulated:
    """Simulates the model of the reference as a whole, in the precisions of both sides.

    A run with other roundings does not give the outputs of the candidate, but errors of the same size. With
    ``keep_state``, the runs go on from sample to sample.
    """

    model: Model
    sides: Sequence[InEffect]
    keep_state: bool
    unstored: Model | None = None
    """The model with its own constants, if a file stores the constants of ``model`` rounded to another type."""
    storage: float = 0.0
    """The most that this rounding has moved an element of an output, relative to the output's root mean square."""
    _flips: bool = False
    """Whether the model quantizes values: a rounding that flips a step does so elsewhere in each run."""
    _runs: list[tuple[Behaviour, Simulation]] = field(default_factory=list)
    _true: list[np.ndarray] = field(default_factory=list)
    _saturated: list[np.ndarray] = field(default_factory=list)
    """The outputs of a candidate whose sums of products saturate."""
    _draws: list[list[np.ndarray]] = field(default_factory=list)
    _moves: list[np.ndarray] = field(default_factory=list)
    """How far other constants move each output."""

    def __post_init__(self) -> None:
        behaviours: list[Behaviour] = [run_true, *roundings(self.sides)]
        self._flips = any(layer.type == "FakeQuantize" for layer in self.model.layers.values())
        shared = None if self.keep_state else self._simulation()
        if self._flips and self.sides[-1].saturates:
            behaviours.append(_Saturating())
        self._runs = [(behaviour, shared or self._simulation()) for behaviour in behaviours]
        self._plain = None if self.unstored is None else Simulation(self.unstored, default_max_memory())

    def _simulation(self) -> Simulation:
        return Simulation(self.model, default_max_memory())

    def run(self, arrays: Mapping[int, np.ndarray]) -> None:
        """Simulate a sample, given by position."""
        results: list[list[np.ndarray]] = []
        self._saturated = []
        for behaviour, simulation in self._runs:
            try:
                outputs = simulation(behaviour, arrays, keep_state=self.keep_state)
            except IrrunError:  # a rounded value is refused: the roundings of this run are not known
                continue
            if isinstance(behaviour, _Saturating):
                self._saturated = outputs
            else:
                results.append(outputs)
        self._true, self._draws = results[0] if results else [], results[1:]
        self._moves = []
        if self._plain is not None and self._true:
            with suppress(IrrunError):
                plain = self._plain(run_true, arrays, keep_state=self.keep_state)
                self._moves = [_moved(first, second) for first, second in zip(plain, self._true)]
        for move, true in zip(self._moves, self._true):
            if is_float(true) and move.size and (scale := rms(true)):
                self.storage = max(self.storage, float(move.max()) / scale)

    def allowed(
        self, position: int, first: np.ndarray, second: np.ndarray, rtol: float, atol: float
    ) -> np.ndarray | None:
        """Return how far each element of an output of the candidate may be from the reference's, None if not known.

        What ``rtol`` and ``atol`` allow is explained in any precision.
        """
        if not self._draws or first.shape != second.shape or first.dtype == object or second.dtype == object:
            return None
        true = self._true[position]
        draws = [outputs[position] for outputs in self._draws]
        if any(draw.shape != true.shape or true.shape != first.shape for draw in draws):
            return None
        with np.errstate(all="ignore"):
            allowed = allowed_around(true, draws, self._flips) + tolerated(first, rtol, atol)
            return allowed + self._moves[position] if self._moves else allowed

    def judged(self, position: int, first: np.ndarray, second: np.ndarray, allowed: np.ndarray) -> Budget | None:
        """Return the error of an output of the candidate beside its budget, or None if the output has no element."""
        form = next((form for form in map(str, self.sides) if form != "f32"), "f32")
        wide, true = first.astype(np.float64), self._true[position]
        if not wide.size:
            return None
        with np.errstate(all="ignore"):
            budget = compared(form, wide, wide, second, allowed)
            if budget.is_explained or not self._saturated or not is_float(true):
                return budget
            saturated = compared(SATURATING, wide + (self._saturated[position] - true), wide, second, allowed)
            return min(budget, saturated, key=lambda one: one.excess)


def _moved(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return how far each element of an output has moved: infinitely far for an index or a class that is another."""
    if first.shape != second.shape or first.dtype == object:
        return np.zeros(second.shape)
    if not is_float(first):
        return np.where(first == second, 0.0, np.inf)
    return np.nan_to_num(np.abs(first.astype(np.float64) - second), posinf=0.0)


@dataclass
class _Saturating:
    """The behaviour of a model whose sums of products of 8 bits saturate."""

    saturation: Saturation = field(default_factory=Saturation)

    def __call__(self, unit: Unit, inputs: Arrays, run: Run) -> tuple[np.ndarray, ...]:
        first, *rest = run(*inputs)
        lost = self.saturation.lost(unit, inputs)
        return (first if lost is None else (first + lost).astype(first.dtype), *rest)


def roundings(sides: Sequence[InEffect]) -> Iterator[Behaviour]:
    """Yield the behaviours that simulate the roundings of the precisions in effect."""
    for side in dict.fromkeys(sides):
        if (format := side.of_layer("")) is not None:
            yield Deployed(Style(format, False, {}), frozenset())
    for seed in range(_DRAWS):
        yield _Rounding(sides, np.random.default_rng(seed))


def allowed_around(true: np.ndarray, draws: Sequence[np.ndarray], flips: bool) -> np.ndarray:
    """Return how far each element of an output may be from ``true``, from the errors of the runs in ``draws``.

    ``flips`` says whether the model quantizes values: then a rounding may flip a step.
    """
    with np.errstate(all="ignore"):
        errors = [np.nan_to_num(np.abs(draw.astype(np.float64) - true), posinf=0.0) for draw in draws]
        square = np.mean([np.square(error) for error in errors], axis=0)
        most = np.maximum(pooled(square, true.ndim > 3), np.max(errors, axis=0))
    if flips:
        most = np.maximum(most, max(float(error.max(initial=0)) for error in errors) * 2 / _FACTOR)
    if not is_float(true) and any(error.any() for error in errors):
        return np.full(true.shape, np.inf)  # an index or a class flips where it flips in a simulation
    return _FACTOR * most


@dataclass
class _Rounding:
    """The behaviour of a model whose layers round their outputs at random, by the roundoff of the precisions."""

    sides: Sequence[InEffect]
    rng: np.random.Generator
    _held: set[Output] = field(default_factory=set)
    """The outputs that move what variables hold. Earlier runs have rounded these values: they are not rounded again."""

    def __call__(self, unit: Unit, inputs: Arrays, run: Run) -> tuple[np.ndarray, ...]:
        held = [origin is not None and origin.outputs and origin.outputs <= self._held for origin in unit.inputs]
        if unit.op.type != "ReadValue" and not (unit.op.type in _MOVING and any(held)):
            outputs = self._inside(unit, inputs) if unit.op.rounds_inside else run(*inputs)
            return tuple(self._rounded(unit, output, is_new=is_kept(unit)) for output in outputs)
        self._held.update((unit.name, port) for port in range(len(unit.layer.outputs)))
        arrays = [
            array if array is None or is_held else self._rounded(unit, array, is_new=True)
            for array, is_held in zip(inputs, held, strict=True)
        ]
        return run(*arrays)

    def _inside(self, unit: Unit, inputs: Arrays) -> Sequence[np.ndarray]:
        """Return the outputs of a recurrent layer: the same roundings of its weights act on all elements."""

        def rounded(array: np.ndarray) -> np.ndarray:
            return self._rounded(unit, array, is_new=False)

        own = [a if a is None or not constant else rounded(a) for a, constant in zip(inputs, unit.constant)]
        return unit.op.run_rounding(rounded, *own)

    def _rounded(self, unit: Unit, output: np.ndarray, *, is_new: bool) -> np.ndarray:
        """Return a value with roundings at random. One that ``is_new`` in a variable also has those of the cache."""
        if not is_float(output) or not output.size:
            return output
        roundoff = _F32
        for side in self.sides:
            format = side.of_layer(unit.name)
            if format is not None:
                roundoff = max(roundoff, 2.0**-11 if format.name == "f16" else 2.0**-8)
        if decompressed_in_f16(unit):
            roundoff = max(roundoff, 2.0**-11)
        sign = self.rng.uniform(-1, 1, output.shape).astype(output.dtype)
        moved = output * (1 + roundoff * sign)
        step = 0.0
        if any(side.group for side in self.sides) and reads_compressed(unit):
            step = np.abs(output).max(axis=-1, keepdims=True) * _GROUPS
        if is_new and (steps := [side.steps for side in self.sides if side.steps]):
            step = step + cache_step(output, min(steps))
        moved = moved + step * self.rng.uniform(-1, 1, output.shape)
        return moved.astype(output.dtype)
