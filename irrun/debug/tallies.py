"""The measurements of all values of a comparison, and the result that follows from them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from irrun.debug.divergence import first_divergence
from irrun.debug.metrics import Measurement, measure
from irrun.debug.pairing import Pairing, pair_outputs
from irrun.debug.results import VERDICTS, Comparison, Layer, SideFailure, verdict
from irrun.debug.subjects import Subject
from irrun.debug.tolerances import TOLERANCES, Tolerances
from irrun.diagnostics import EngineError, diagnostic
from irrun.engines import Place
from irrun.types import ElementType

__all__ = ["Comparator", "Settings", "Tallies"]

Comparator = Callable[[np.ndarray, np.ndarray, str], bool | str]
"""A function of a reference, a candidate and the name of the value: True, or what differs (False or a text)."""


@dataclass(frozen=True)
class Settings:
    """How values are measured: the tolerances, a comparator in their place, and whether frontiers are kept."""

    tolerances: Tolerances
    comparator: Comparator | None
    frontier: bool

    def measured(
        self, reference: np.ndarray, candidate: np.ndarray, name: str, limit: tuple[float, float]
    ) -> Measurement:
        """Return the measurement of a value. Raises EngineError (IR705) if the comparator fails."""
        measurement = measure(reference, candidate, *limit, frontier=self.frontier)
        if self.comparator is None:
            return measurement
        try:
            answer = self.comparator(reference, candidate, name)
        except Exception as error:
            raise _bad_comparator(f"it raised {type(error).__name__}: {error}", name) from None
        if isinstance(answer, (bool, np.bool_)):
            problem = "" if answer else "the comparator returned False"
        elif isinstance(answer, str):
            problem = answer
        else:
            raise _bad_comparator(f"it returned {type(answer).__name__}", name)
        return replace(measurement, problem=problem, outside=0)


def _bad_comparator(why: str, name: str) -> EngineError:
    help = "return True if the values agree, and otherwise False or a text that says how they differ"
    message = f'the comparator failed on the value "{name}": {why}'
    return EngineError(diagnostic("IR705", message, help=help))


@dataclass
class Tally:
    """The measurements of one value so far: the worst one, and the first that was outside."""

    limit: tuple[float, float]
    element_type: str
    order: int
    worst: Measurement | None = None
    at: tuple[int, int] = (0, 0)
    """The sample and iteration of the worst."""
    first: tuple[int, int, int, Measurement] | None = None
    """Sample, ordinal in the run, iteration and measurement of the first value that was outside."""
    frontiers: set[tuple[float, float]] = field(default_factory=set)
    iterations: int = 0

    def add(self, measurement: Measurement, sample: int, ordinal: int, iteration: int) -> None:
        self.iterations = max(self.iterations, iteration + 1)
        self.frontiers.update(measurement.frontier)
        if self.worst is None or _badness(measurement) > _badness(self.worst):
            self.worst, self.at = measurement, (sample, iteration)
        if not measurement.agrees and self.first is None:
            self.first = sample, ordinal, iteration, measurement


def _badness(measurement: Measurement) -> tuple[bool, float, float]:
    return not measurement.agrees, measurement.excess, measurement.error


class Tallies:
    """The measurements of the pairs of values of two sides.

    ``pairs`` are the places in the candidate by those in the reference, ``outputs`` the positions of the outputs.
    Raises EngineError (IR704) if the sides have nothing in common.
    """

    def __init__(self, reference: Subject, candidate: Subject, settings: Settings, pairing: Pairing | None) -> None:
        self.reference, self.candidate, self.settings = reference, candidate, settings
        origins = reference.loaded.places
        # the inputs of bodies, which other uses of the engines need, err only where the layers before them do
        paired = {} if pairing is None else pairing(reference, candidate)
        self.pairs = {place: other for place, other in paired.items() if origins[place].type != "Parameter"}
        self.back = {place: other for other, place in self.pairs.items()}
        self.outputs = pair_outputs(reference.loaded.outputs, candidate.loaded.outputs)
        self.tallies: dict[Place, Tally] = {}
        self.output_tallies: dict[int, Tally] = {}
        self.current: dict[tuple[Place, int], Measurement] = {}
        """The measurements of the last sample or, once one has differed, of the first that did."""
        self._sample = -1
        """The sample of ``current``."""
        if not self.pairs and not self.outputs:
            help = "pass two forms of the same model; outputs and layers are matched by name"
            message = f"{reference.side} and {candidate.side} have no output and no layer in common"
            raise EngineError(diagnostic("IR704", message, help=help))

    def begin(self, sample: int) -> None:
        """Begin to measure the inner values of a sample."""
        if self._sample != sample and not any(tally.first for tally in self.tallies.values()):
            self.current.clear()
            self._sample = sample

    def add(
        self, place: Place, first: np.ndarray, second: np.ndarray, sample: int, ordinal: int, iteration: int
    ) -> None:
        """Measure a pair of inner values. ``ordinal`` counts the values of a run of the reference."""
        tally = self.tallies.get(place)
        if tally is None:
            type = _coarser(_type(first), _type(second))
            limit = self.settings.tolerances.of_layer(place.layer, type)
            tally = self.tallies[place] = Tally(limit, type, ordinal)
        measurement = self.settings.measured(first, second, str(place), tally.limit)
        tally.add(measurement, sample, ordinal, iteration)
        if sample == self._sample:
            self.current[place, iteration] = measurement

    def add_missing(self, place: Place, role: str, sample: int, ordinal: int, iteration: int) -> None:
        """Report a value that one side did not compute: its loop ended earlier, or it took another branch."""
        missing = replace(_NOTHING, problem=f"the {role} did not compute the value")
        limit = self.settings.tolerances.of_layer(place.layer, "f32")
        self.tallies.setdefault(place, Tally(limit, "", ordinal)).add(missing, sample, ordinal, iteration)

    def add_output(
        self, position: int, first: np.ndarray, second: np.ndarray, types: Sequence[str], sample: int
    ) -> None:
        """Measure a pair of outputs, whose element types on both sides are ``types``."""
        name = _output_name(self.reference.loaded.outputs[position], position)
        tally = self.output_tallies.get(position)
        if tally is None:
            type = _coarser(*types)
            limit = self.settings.tolerances.of_output(name, type)
            tally = self.output_tallies[position] = Tally(limit, type, position)
        tally.add(self.settings.measured(first, second, name, tally.limit), sample, position, 0)

    def comparison(self, samples: int, failure: SideFailure | None = None) -> Comparison:
        """Return the result of all samples."""
        layers = {p: self.layer(p, t) for p, t in sorted(self.tallies.items(), key=lambda item: item[1].order)}
        outputs = [self.output(position, tally) for position, tally in sorted(self.output_tallies.items())]
        beginnings = [(t.first[:2], place) for place, t in self.tallies.items() if t.first is not None]
        first = None
        if beginnings:
            _, place = min(beginnings, key=lambda item: item[0])
            tally = self.tallies[place]
            assert tally.first is not None
            sample, _, iteration, measurement = tally.first
            at = replace(
                layers[place],
                measurement=measurement,
                sample=sample,
                iteration=None if layers[place].iteration is None else iteration,
            )
            measured = {
                other: self.current.get((other, iteration)) or self.current.get((other, 0)) for other in self.pairs
            }
            first = first_divergence(self.reference, self.candidate, place, self.pairs, at, measured)
        own = verdict(outputs, list(layers.values()))
        sides = [(str(subject.side), subject.engine.name) for subject in (self.reference, self.candidate)]
        return Comparison(
            sides[0],
            sides[1],
            own if failure is None else VERDICTS[type(failure.outcome).__name__],
            first,
            tuple(outputs),
            tuple(layers.values()),
            samples,
            failure,
        )

    def layer(self, place: Place, tally: Tally) -> Layer:
        """Return what was measured of an inner value. Its place is that in the candidate's file, if that is IR."""
        other = self.pairs[place]
        subject, own = (self.candidate, other) if other.layer in self.candidate.nodes else (self.reference, place)
        node = subject.nodes.get(own.layer)
        in_loop = tally.iterations > 1 or (node is not None and node.model is not subject.model)
        return Layer(
            place.layer,
            node.layer.type if node else self.reference.loaded.places[place].type,
            subject.port(own),
            place.port == 0,
            str(subject.side.path) if node else None,
            node.line if node else None,
            self.candidate.shown(other),
            tally.element_type,
            *tally.limit,
            _merged(tally),
            tally.at[0],
            tally.at[1] if in_loop else None,
        )

    def output(self, position: int, tally: Tally) -> Layer:
        """Return what was measured of an output. Its line is that of the Result in the candidate's file."""
        names, other = self.reference.loaded.outputs[position], self.outputs[position]
        subject, own = (self.candidate, other) if self.candidate.model is not None else (self.reference, position)
        model = subject.model
        line = None if model is None else model.source.span(model.results[own].node).line
        return Layer(
            _output_name(names, position),
            "",
            position,
            True,
            str(subject.side.path) if model else None,
            line,
            _output_name(self.candidate.loaded.outputs[other], other),
            tally.element_type,
            *tally.limit,
            _merged(tally),
            tally.at[0],
            None,
        )


_NOTHING: Final = Measurement(0, 0, math.inf, None, math.inf, math.inf, None, None, math.inf, (0, 0), (0, 0))


def _merged(tally: Tally) -> Measurement:
    assert tally.worst is not None
    return replace(tally.worst, frontier=tuple(sorted(tally.frontiers)))


def _type(array: np.ndarray) -> str:
    return str(ElementType.of(array.dtype) or array.dtype)


def _coarser(first: str, second: str) -> str:
    """Return the element type with the wider tolerances."""
    return max(first, second, key=lambda name: TOLERANCES.get(name, (0, 0)))


def _output_name(names: Sequence[str], position: int) -> str:
    return names[0] if names else f"output {position}"
