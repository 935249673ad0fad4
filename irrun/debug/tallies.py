"""The measurements of all values of a comparison, and the result that follows from them."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from irrun.base.processor import processor
from irrun.base.text import counted
from irrun.debug.budget import Accumulated, InEffect
from irrun.debug.divergence import first_divergence
from irrun.debug.inputs import Feeding
from irrun.debug.metrics import Budget, Measurement, measure, tolerated
from irrun.debug.results import VERDICTS, Comparison, First, Layer, SideFailure, verdict
from irrun.debug.subjects import Node
from irrun.debug.tolerances import TOLERANCES, Tolerances
from irrun.diagnostics import EngineError, diagnostic
from irrun.engines import Place
from irrun.ir.extract import constant_layers
from irrun.types import ELEMENT_TYPES, ElementType

__all__ = ["Comparator", "OnOutput", "Settings", "Tallies"]

Comparator = Callable[[np.ndarray, np.ndarray, str], bool | str]
"""A function of a reference, a candidate and the name of the value: True, or what differs (False or a text)."""

OnOutput = Callable[[int, int, np.ndarray, np.ndarray, np.ndarray | None], None]
"""A function that is called for each output: the number of the sample, the position of the output in the reference,
the arrays of the reference and of the candidate, and how far each element may be off, None if that is not known."""


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


@dataclass(frozen=True, slots=True)
class _Beginning:
    """The first value of a place that was outside. ``ordinal`` counts the values of a run."""

    sample: int
    ordinal: int
    iteration: int
    measurement: Measurement
    missing: str
    """The role of the side that did not compute the value, or empty."""


@dataclass
class Tally:
    """The measurements of one value so far: the worst one, and the first that was outside."""

    limit: tuple[float, float]
    element_type: str
    order: int
    worst: Measurement | None = None
    at: tuple[int, int] = (0, 0)
    """The sample and iteration of the worst."""
    first: _Beginning | None = None
    """The first value that was outside."""
    frontiers: set[tuple[float, float]] = field(default_factory=set)
    iterations: int = 0
    numbers: int = 0
    """The elements of all samples and iterations that are not NaN on both sides."""
    budget: Budget | None = None
    """The worst error beside what the precision explains."""
    unexplained: _Beginning | None = None
    """The first value whose error is not explained."""

    def add(self, measurement: Measurement, sample: int, ordinal: int, iteration: int, missing: str = "") -> None:
        self.iterations = max(self.iterations, iteration + 1)
        self.frontiers.update(measurement.frontier)
        self.numbers += measurement.numbers
        if self.worst is None or _badness(measurement) > _badness(self.worst):
            self.worst, self.at = measurement, (sample, iteration)
        if not measurement.agrees and self.first is None:
            self.first = _Beginning(sample, ordinal, iteration, measurement, missing)

    def add_budget(self, budget: Budget, sample: int, ordinal: int, iteration: int, measured: Measurement) -> None:
        """Report the error of a value beside its budget."""
        if self.budget is None or budget.excess > self.budget.excess:
            self.budget = budget
        if not budget.is_explained and self.unexplained is None:
            self.unexplained = _Beginning(sample, ordinal, iteration, measured, "")

    @property
    def beginning(self) -> _Beginning | None:
        """The first value that is not explained or, without a budget, outside its tolerance."""
        if self.budget is None or (self.first is not None and self.first.missing):
            return self.first
        return self.unexplained


def _badness(measurement: Measurement) -> tuple[bool, float, float]:
    return not measurement.agrees, measurement.excess, measurement.error


class Tallies:
    """The measurements of the pairs of values of two sides.

    ``pairs`` are the places in the candidate by those in the reference, ``inputs`` those of inputs that may have other
    data, and ``outputs`` the positions of the outputs.
    """

    def __init__(
        self, feeding: Feeding, settings: Settings, pairs: Mapping[Place, Place], outputs: Mapping[int, int]
    ) -> None:
        self.feeding, self.settings = feeding, settings
        self.reference, self.candidate = feeding.reference, feeding.candidate
        self.pairs, self.outputs = pairs, outputs
        self.inputs = feeding.doubtful(pairs) if pairs else {}
        self.back = {place: other for other, place in pairs.items()}
        self.tallies: dict[Place, Tally] = {}
        self.output_tallies: dict[int, Tally] = {}
        self.fixed: Collection[str] = ()
        """The layers that the judge leaves to their readers, for they follow from constants and shapes."""
        self.unseen: dict[Place, str] = {}
        """The places that are not compared, and the side that does not run the model while it shows them."""
        self.current: dict[tuple[Place, int], Measurement] = {}
        """The measurements of the last sample or, once one has differed, of the first that did."""
        self._visits: dict[tuple[int, Place], int] = {}
        """How often one side computes a value that the other side does not compute, by sample and place."""
        self.on_output: OnOutput = lambda *_: None
        self._sample = -1
        """The sample of ``current``."""

    def begin(self, sample: int) -> None:
        """Begin to measure the inner values of a sample."""
        if self._sample != sample and not self.has_begun:
            self.current.clear()
            self._sample = sample

    @property
    def has_begun(self) -> bool:
        """Whether an inner value has differed."""
        return any(tally.beginning for tally in self.tallies.values())

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

    def add_budget(self, place: Place, budget: Budget, sample: int, ordinal: int, iteration: int) -> None:
        """Report the own error of a layer."""
        tally = self.tallies[place]
        measured = self.current.get((place, iteration)) or tally.worst
        assert measured is not None
        tally.add_budget(budget, sample, ordinal, iteration, measured)

    def add_missing(self, place: Place, role: str, sample: int, ordinal: int, iteration: int) -> None:
        """Report a value that one side did not compute: its loop ended earlier, or it took another branch."""
        missing = replace(_NOTHING, problem=f"the {role} did not compute the value")
        limit = self.settings.tolerances.of_layer(place.layer, "f32")
        self.tallies.setdefault(place, Tally(limit, "", ordinal)).add(missing, sample, ordinal, iteration, role)
        self._visits[sample, place] = max(self._visits.get((sample, place), 0), iteration + 1)

    def add_inputs(self, arrays: Mapping[int, np.ndarray], sample: int) -> None:
        """Measure the inputs that may have other data, from the inputs by position in the model of the feeding."""
        first, second = (self.feeding.shown(role, arrays) for role in ("reference", "candidate"))
        for place, other in self.inputs.items():
            at, at_other = self.reference.inputs[place], self.candidate.inputs[other]
            if at in first and at_other in second:
                self.add(place, first[at], second[at_other], sample, -1, 0)

    def add_output(
        self, position: int, first: np.ndarray, second: np.ndarray, types: Sequence[str], sample: int,
        outputs: Accumulated | None,
    ) -> None:  # fmt: skip
        """Measure a pair of outputs, whose element types on both sides are ``types``. ``outputs`` has their budgets."""
        name = _output_name(self.reference.loaded.outputs[position], position)
        tally = self.output_tallies.get(position)
        if tally is None:
            type = _coarser(*types)
            limit = self.settings.tolerances.of_output(name, type)
            tally = self.output_tallies[position] = Tally(limit, type, position)
        measured = self.settings.measured(first, second, name, tally.limit)
        tally.add(measured, sample, position, 0)
        allowed = None if outputs is None else outputs.allowed(position, first, second, *tally.limit)
        if outputs is not None and allowed is not None:
            if (budget := outputs.judged(position, first, second, allowed)) is not None:
                tally.add_budget(budget, sample, position, 0, measured)
        elif self.settings.comparator is None and not measured.problem and first.dtype != object:
            allowed = tolerated(first, *tally.limit)
        self.on_output(sample, position, first, second, allowed)

    @property
    def has_numbers(self) -> bool:
        """Whether the outputs or, without any, the inner values have an element that is not NaN on both sides."""
        return any(tally.numbers for tally in (self.output_tallies or self.tallies).values())

    def comparison(self, samples: int, failure: SideFailure | None = None) -> Comparison:
        """Return the result of all samples."""
        self._settle()
        guessed = self.inputs.keys() if self._is_right_but_for_inputs() else ()
        tallies = {place: tally for place, tally in self.tallies.items() if place not in guessed}
        layers = {p: self.layer(p, t) for p, t in sorted(tallies.items(), key=lambda item: item[1].order)}
        outputs = [self.output(position, tally) for position, tally in sorted(self.output_tallies.items())]
        beginnings = [(begun, place) for place, tally in tallies.items() if (begun := tally.beginning) is not None]
        first = None
        if beginnings:
            begun, place = min(beginnings, key=lambda item: (item[0].sample, item[0].ordinal, item[0].missing))
            first = self._first(begun, place, layers)
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
            self.feeding.pairs,
            (self.reference.engine.properties, self.candidate.engine.properties),
            processor(),
            tuple((role, self.reference.shown(place)) for place, role in self.unseen.items()),
        )

    def _settle(self) -> None:
        """Take as explained what the judge leaves to others: loops to their bodies, constants to their readers.

        A candidate that computes in less than f32, and shows no bodies, leaves loops to the budgets of the outputs.
        """
        outputs = self.output_tallies.values()
        is_lower = InEffect.of(self.candidate.engine.properties).type != "f32"
        is_whole = is_lower and bool(outputs) and all(t.budget and t.budget.is_explained for t in outputs)
        judged = [place.layer for place, tally in self.tallies.items() if tally.budget is not None]
        models = {id(node.model): node.model for node in self.reference.nodes.values()}
        constants = {key: constant_layers(model) for key, model in models.items()}
        bodies = {name[:at] for name in judged for at, char in enumerate(name) if char == "/"}
        for place, tally in self.tallies.items():
            node = self.reference.nodes.get(place.layer)
            is_constant = node is not None and node.layer.id in constants[id(node.model)]
            if place.layer in self.fixed and tally.element_type in ELEMENT_TYPES:
                is_constant = is_constant or ELEMENT_TYPES[tally.element_type].kind == "float"
            is_left = judged and (place.layer in bodies or is_constant)
            if tally.budget is None and (is_left or (is_whole and node is not None and node.layer.bodies)):
                tally.budget = _UNJUDGED

    def _is_right_but_for_inputs(self) -> bool:
        """Return whether all values agree but inputs that were paired by position, which were then paired rightly."""
        inner = (tally for place, tally in self.tallies.items() if place not in self.inputs)
        is_guess = not self.feeding.is_replayed
        return is_guess and all(tally.beginning is None for tally in (*inner, *self.output_tallies.values()))

    def _first(self, begun: _Beginning, place: Place, layers: Mapping[Place, Layer]) -> First:
        """Return the explanation of a divergence.

        If one side does not compute the value, the loop or If around it is the first divergence: it runs its body less
        often.
        """
        pairs, iteration = {**self.pairs, **self.inputs}, begun.iteration
        at = replace(layers[place], measurement=begun.measurement, sample=begun.sample)
        at = replace(at, iteration=None if at.iteration is None else iteration)
        around = self._around(place, begun.sample) if begun.missing else None
        if around is not None:
            place, inner = around
            problem = self._runs_otherwise(place, inner, begun)
            at = replace(layers[place], measurement=replace(_NOTHING, problem=problem), sample=begun.sample)
            at, iteration = replace(at, iteration=None), 0
        measured = {other: self.current.get((other, iteration)) or self.current.get((other, 0)) for other in pairs}
        return first_divergence(self.reference, self.candidate, place, pairs, at, measured)

    def _around(self, place: Place, sample: int) -> tuple[Place, Place] | None:
        """Return the outermost loop or If whose body one side runs less often, and a value in it; None if unknown."""
        found, origins = None, self.reference.loaded.places
        parts = place.layer.split("/")
        for length in range(len(parts) - 1, 0, -1):
            outer = next((p for p in self.tallies if p.layer == "/".join(parts[:length])), None)
            if outer is None or outer not in origins or origins[outer].type.lower() not in _WITH_BODIES:
                continue
            found = outer, place
            begun = self.tallies[outer].first
            if begun is None or not begun.missing or begun.sample != sample:
                break
            place = outer
        return found

    def _runs_otherwise(self, place: Place, inner: Place, begun: _Beginning) -> str:
        """Return how often both sides run the body of a layer, or which branch they do not run."""
        subject = self.reference if self.reference.nodes else self.candidate
        names = (
            (place.layer, inner.layer)
            if subject is self.reference
            else (self.pairs[place].layer, self.pairs[inner].layer)
        )
        outer, node = (subject.nodes.get(name) for name in names)
        is_missing = begun.missing == "candidate"
        if self.reference.loaded.places[place].type.lower() == "if":
            bodies = {} if outer is None or node is None else outer.layer.bodies
            branch = next((tag for tag, body in bodies.items() if node is not None and body is node.model), "branch")
            if is_missing:
                return f"it does not run its {branch}, which the reference runs"
            return f"it runs its {branch}, which the reference does not run"
        first = self.tallies[inner].first
        least = begun.iteration if first is None else first.iteration
        counts = least, self._visits[begun.sample, inner]
        own, theirs = counts if is_missing else counts[::-1]
        return f"its body runs {counted(own, 'time')}, in the reference {counted(theirs, 'time')}"

    def layer(self, place: Place, tally: Tally) -> Layer:
        """Return what was measured of an inner value. Its place is that in the candidate's file, if that is IR."""
        other = self.inputs.get(place) or self.pairs[place]
        subject, own = (self.candidate, other) if other.layer in self.candidate.nodes else (self.reference, place)
        node = subject.nodes.get(own.layer)
        in_loop = tally.iterations > 1 or (node is not None and node.model is not subject.model)
        return Layer(
            place.layer,
            node.layer.type if node else self._type(place),
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
            _budget(tally),
        )

    def _paired_node(self, place: Place) -> Node | None:
        return self.candidate.nodes.get(self.pairs[place].layer)

    def _type(self, place: Place) -> str:
        return "Parameter" if place in self.inputs else self.reference.loaded.places[place].type

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
            _budget(tally),
        )


_UNJUDGED: Final = Budget(0.0, 0.0, 0.0, None, "")
_WITH_BODIES: Final = ("loop", "tensoriterator", "if")
_NOTHING: Final = Measurement(0, 0, math.inf, None, math.inf, math.inf, None, None, math.inf, (0, 0), (0, 0))


def _merged(tally: Tally) -> Measurement:
    assert tally.worst is not None
    return replace(tally.worst, frontier=tuple(sorted(tally.frontiers)))


def _budget(tally: Tally) -> Budget | None:
    """Return the budget of a value, unless a side did not compute the value in all samples and iterations."""
    return None if tally.first is not None and tally.first.missing else tally.budget


def _type(array: np.ndarray) -> str:
    return str(ElementType.of(array.dtype) or array.dtype)


def _coarser(first: str, second: str) -> str:
    """Return the element type with the wider tolerances."""
    return max(first, second, key=lambda name: TOLERANCES.get(name, (0, 0)))


def _output_name(names: Sequence[str], position: int) -> str:
    return names[0] if names else f"output {position}"
