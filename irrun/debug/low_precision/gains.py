"""Estimate how much of an error in the output of each layer arrives at the outputs of the model, from a single run.

The run measures each layer by itself: how much an error of one of its inputs grows or shrinks on the way to its
outputs. The gain from a layer to the outputs of the model follows from these factors, from the last layer to the first:
it is the sum over all layers that read the value, as if errors that arrive on several ways were independent. Rounding
errors nearly are.

Rounded weights make another kind of error: it is much the same at all places of a channel, so that no sum or mean over
the places cancels it. An error is therefore split in two parts, its means over each channel and the rest. Each part
has a gain of its own, and a factor for each part that it becomes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from irrun.debug.low_precision.errors import parts
from irrun.debug.low_precision.formats import is_float
from irrun.debug.low_precision.simulation import Arrays, Run, Simulation
from irrun.debug.low_precision.units import Origin, Output, Unit

__all__ = ["Gains"]

_NOISE: Final = 2.0**-5
"""The size of the errors that the run adds, relative to a value: small enough to be nearly linear, and far above the
rounding of float32."""


@dataclass
class Gains:
    """The behaviour that runs in full precision and measures how errors pass through each layer.

    ``is_relative`` says that an element has an error in proportion to itself, as floats have, and not to the root mean
    square of its array, as quantized arrays have.
    """

    is_relative: bool
    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))
    factors: dict[tuple[Output, Output], np.ndarray] = field(default_factory=dict)
    """For an output of a layer and one of a layer that reads it, float64 [2, 3], summed over all samples and
    iterations: for an error of either part, the power of both parts of the error that it becomes, and its own."""

    def __call__(self, unit: Unit, inputs: Arrays, run: Run) -> tuple[np.ndarray, ...]:
        true = run(*inputs)
        for origin, positions in _sources(unit).items():
            array = inputs[positions[0]]
            if array is None or not is_float(array) or not array.size:
                continue
            for kind, error in enumerate(self._errors(array)):
                arrays = list(inputs)
                for position in positions:
                    arrays[position] = array + error
                power = float(np.square(error, dtype=np.float64).sum())
                try:
                    outputs = run(*arrays)
                except Exception:  # the kernel refuses other values: nothing is known of the errors that it passes on
                    continue
                for number, (first, second) in enumerate(zip(true, outputs)):
                    if first.dtype == object or first.shape != second.shape:
                        continue
                    passed = parts(second.astype(np.float64) - first.astype(np.float64), unit.is_image)
                    for output in origin.outputs:
                        sums = self.factors.setdefault((output, (unit.name, number)), np.zeros((2, 3)))
                        sums[kind] += (*passed, power)
        return true

    def _errors(self, array: np.ndarray) -> Iterator[np.ndarray]:
        """Yield an error that is the same over each channel, and one that is independent in all elements."""
        finite = np.where(np.isfinite(array), array, 0)
        mean_square = float(np.mean(np.square(finite, dtype=np.float64)))
        shape = [length if axis == 1 else 1 for axis, length in enumerate(array.shape)]
        common = self.rng.standard_normal(shape) * (_NOISE * math.sqrt(mean_square))
        yield np.broadcast_to(common, array.shape).astype(array.dtype)
        scale = np.abs(finite) if self.is_relative else math.sqrt(mean_square)
        yield (self.rng.standard_normal(array.shape) * (_NOISE * scale)).astype(array.dtype)

    def of_outputs(self, simulation: Simulation, true: Sequence[Sequence[np.ndarray]]) -> dict[str, np.ndarray]:
        """Return the gains of each layer, float64 [2]: the squared relative error of the outputs of the model that an
        error of power 1 causes, for both parts of an error.

        ``true`` are the outputs of each sample. A layer with several outputs has the greatest gains of them.
        """
        gains: dict[Output, np.ndarray] = {}
        for position, outputs in enumerate(simulation.results):
            power = sum(sum(parts(sample[position], False)) for sample in true if sample[position].dtype.kind in "fiub")
            for output in outputs:
                gains[output] = gains.get(output, 0.0) + np.full(2, 1 / power if power else 0.0)
        readers: dict[Output, list[tuple[Output, np.ndarray]]] = {}
        for (producer, reader), sums in self.factors.items():
            powers = np.where(sums[:, 2:] > 0, sums[:, 2:], np.inf)
            readers.setdefault(producer, []).append((reader, sums[:, :2] / powers))
        greatest: dict[str, np.ndarray] = {}
        for name in reversed(simulation.units):
            for position in range(len(simulation.units[name].layer.outputs)):
                output = name, position
                passed = [factors @ gains[reader] for reader, factors in readers.get(output, ()) if reader in gains]
                gains[output] = sum(passed, gains.get(output, np.zeros(2)))
                greatest[name] = np.maximum(greatest.get(name, 0.0), gains[output])
        return greatest


def _sources(unit: Unit) -> Mapping[Origin, list[int]]:
    """Return the positions of the inputs that are the same value of another layer, by their origin."""
    sources: dict[Origin, list[int]] = {}
    for position, origin in enumerate(unit.inputs):
        if origin is not None and origin.outputs:
            sources.setdefault(origin, []).append(position)
    return sources
