"""Judge each layer of a candidate on the values that it has read itself.

The reference's model runs once more, in irrun. Each layer gets the values that the candidate has shown in place of its
own, so that an error which is passed on is no error of the layer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

import ml_dtypes
import numpy as np

from irrun.debug.budget.fixed import changed_layers, own_error_of_fixed
from irrun.debug.budget.outputs import Accumulated
from irrun.debug.budget.own import Reading, own_error
from irrun.debug.budget.precisions import InEffect
from irrun.debug.budget.saturation import Saturation
from irrun.debug.budget.shown import Shown
from irrun.debug.difference.diff import LayerDifference
from irrun.debug.difference.storage import Stored
from irrun.debug.low_precision.formats import is_float
from irrun.debug.low_precision.simulation import Arrays, Run, Simulation
from irrun.debug.low_precision.units import Output, Unit
from irrun.debug.metrics import Budget
from irrun.diagnostics import IrrunError
from irrun.engines import Place
from irrun.model import Model
from irrun.running.live import default_max_memory

__all__ = ["Judge"]

_ROUNDOFF: Final = {np.dtype(np.float16): 2.0**-11, np.dtype(ml_dtypes.bfloat16): 2.0**-8}
"""The roundoff of the types in which a value may be handed over, although it was computed in a wider one."""
_UNSEEN: Final = 2.0**-6
"""The roundoff of a value that the candidate does not show, and that irrun has computed from those before it."""

_INTEGERS: Final = 2.0**-18
"""The roundoff of a value that an engine may hold as an integer and a scale, which it multiplies in another order."""

OnOwn = Callable[[Place, int, Budget], None]


class Judge:
    """Judges the layers of a candidate by the model of the reference, for the precision in effect on each side."""

    def __init__(
        self, model: Model, reference: InEffect, candidate: InEffect, *, keep_state: bool,
        found: Sequence[LayerDifference] = (), stored: Stored | None = None,
    ) -> None:  # fmt: skip
        self.candidate, self.keep_state = candidate, keep_state
        own = model if stored is None else stored.model
        self._simulation = Simulation(own, default_max_memory())
        self.changed = changed_layers(model, found, self._simulation.fixed)
        """The fixed layers that have other values in the candidate's file, and whether they cause that."""
        is_quantized = any(unit.op.type == "FakeQuantize" for unit in self._simulation.units.values())
        self._least = _INTEGERS if candidate.integers and is_quantized else 0.0
        self.outputs = Accumulated(own, (reference, candidate), keep_state, None if stored is None else model)

    @staticmethod
    def of(
        model: Model | None, reference: InEffect, candidate: InEffect, *, keep_state: bool,
        found: Sequence[LayerDifference] = (), stored: Stored | None = None,
    ) -> Judge | None:  # fmt: skip
        """Return a judge, or None if irrun cannot run the model of the reference.

        ``found`` are the layers in which the files of both sides differ. The candidate's values of the constants that
        it has ``stored`` in another type take the place of the reference's.
        """
        if model is None:
            return None
        try:
            return Judge(model, reference, candidate, keep_state=keep_state, found=found, stored=stored)
        except IrrunError:
            return None

    @property
    def fixed(self) -> Collection[str]:
        """The layers that follow from constants and shapes: those that read them are judged with them.

        Only those that are ``changed`` are judged themselves.
        """
        return self._simulation.fixed

    def read_by(self, places: Iterable[Place]) -> set[Place]:
        """Return the places of the values that some layers read. A layer in a body may read any value of the body."""
        units = [self._simulation.units.get(place.layer) for place in places]
        bodies = {unit.name.rpartition("/")[0] for unit in units if unit is not None and unit.is_inner}
        every = self._simulation.units.items()
        units += [unit for name, unit in every if unit.is_inner and name.rpartition("/")[0] in bodies]
        origins = (origin for unit in units if unit is not None for origin in unit.inputs if origin is not None)
        within = {Place(unit.name) for unit in units if unit is not None and unit.is_inner}
        return {Place(*output) for origin in origins for output in origin.outputs} | within

    def of_changed(self, first: np.ndarray, second: np.ndarray) -> Budget:
        """Return the error of a value that follows from constants and shapes, as both sides have shown it."""
        return own_error_of_fixed(first, second, self.candidate)

    def run(self, arrays: Mapping[int, np.ndarray], shown: Shown, on_own: OnOwn) -> None:
        """Judge all layers in a run on inputs by position.

        The run ends early if a value of the candidate has a shape with which the next layer cannot go on.
        """
        with suppress(IrrunError):
            self._simulation(_Judging(self.candidate, shown, on_own, self._least), arrays, keep_state=self.keep_state)


@dataclass
class _Judging:
    """The behaviour that judges each layer, and passes the candidate's value on."""

    candidate: InEffect
    shown: Shown
    on_own: OnOwn
    least: float
    """The least roundoff of a value."""
    roundoff: dict[Output, float] = field(default_factory=dict)
    """The roundoff of each value that was passed on, if it is not exact."""
    iterations: Counter[str] = field(default_factory=Counter)
    saturation: Saturation = field(default_factory=Saturation)

    def __call__(self, unit: Unit, inputs: Arrays, run: Run) -> tuple[np.ndarray, ...]:
        iteration = self.iterations[unit.name]
        self.iterations[unit.name] += 1
        roundoff = [*self._roundoff(unit)]
        # constants that were folded have the type of the values beside them
        folded = max((amount for amount in roundoff if amount < _UNSEEN), default=0.0)
        roundoff = [folded if is_fixed else r for r, is_fixed in zip(roundoff, unit.constant)]
        copies: dict[int, tuple[Reading, tuple[np.ndarray, ...]]] = {}
        first = self.shown.copy(Place(unit.name))
        for copy in (first, *(self.shown.copy(Place(unit.name, port)) for port in range(len(unit.layer.outputs)))):
            if copy not in copies:
                read = [self._read(unit, copy, at, array) for at, array in enumerate(inputs)]
                lost = self.saturation.lost(unit, read) if self.candidate.saturates else None
                copies[copy] = Reading(read, roundoff, lost), run(*read)
        outputs = list(copies[first][1])
        for port in range(len(unit.layer.outputs)):
            place = Place(unit.name, port)
            reading, right = copies[self.shown.copy(place)]
            value = self.shown.value(place, iteration)
            if value is None:
                self.roundoff[unit.name, port] = _UNSEEN
                continue
            if right[port].dtype != object and value.dtype != object:
                own = own_error(unit, reading, run, port, right[port], value, self.candidate)
                self.on_own(place, iteration, own)
            self.roundoff[unit.name, port] = _ROUNDOFF.get(value.dtype, self.least)
            outputs[port] = value.astype(outputs[port].dtype) if is_float(outputs[port]) else value
        return tuple(outputs)

    def _read(self, unit: Unit, copy: int, at: int, array: np.ndarray | None) -> np.ndarray | None:
        """Return an input of a layer, as the layer has read it in a copy of the model."""
        origin = unit.inputs[at] if at < len(unit.inputs) else None
        if array is None or origin is None:
            return array
        if origin.kind in ("constant", "shape") and (place := _producer(unit, at)) is not None:
            changed = self.shown.changed(place)
            return array if changed is None or changed.shape != array.shape else changed.astype(array.dtype)
        if len(origin.outputs) != 1:
            return array
        own = self.shown.read(copy, Place(*next(iter(origin.outputs))))
        return array if own is None or own.shape != array.shape else own.astype(array.dtype)

    def _roundoff(self, unit: Unit) -> Iterator[float]:
        for origin in unit.inputs:
            known: Sequence[float] = [] if origin is None else [self.roundoff.get(o, 0.0) for o in origin.outputs]
            yield max(known, default=0.0)


def _producer(unit: Unit, at: int) -> Place | None:
    """Return the place of the value that feeds an input."""
    feed = unit.model.feeds[unit.layer.id][at]
    if feed is None:
        return None
    prefix = unit.name.removesuffix(unit.model.unique_names[unit.layer.id])
    return Place(prefix + unit.model.unique_names[feed[0]], feed[1])
