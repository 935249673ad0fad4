"""Run two sides on the same inputs, and compare their outputs and inner values as they come."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from irrun.debug.divergence import first_divergence
from irrun.debug.inputs import Inputs, feeds_of, samples_of
from irrun.debug.metrics import Measurement, measure
from irrun.debug.pairing import Pairing, by_name_or_structure, pair_outputs
from irrun.debug.results import VERDICTS, Comparison, Layer, SideFailure, verdict
from irrun.debug.subjects import Subject, model_of, stand_in
from irrun.debug.tolerances import TOLERANCES, Tolerances
from irrun.diagnostics import Diagnostic, EngineError
from irrun.engines import Engine, Limits, Loaded, Output, Outputs, Place, Recording, Side, Value, parse_side
from irrun.engines import open as open_engine
from irrun.model import Model
from irrun.types import ElementType

__all__ = ["Comparator", "compare"]

Comparator = Callable[[np.ndarray, np.ndarray, str], bool | str]
"""A function of a reference, a candidate and the name of the value: True, or what differs (False or a text)."""


def compare(
    reference: str | Side,
    candidate: str | Side,
    inputs: Inputs = None,
    *,
    samples: int = 1,
    seed: int = 0,
    layers: bool = True,
    keep_state: bool = False,
    tolerances: Tolerances | None = None,
    comparator: Comparator | None = None,
    limits: Limits | None = None,
    pairing: Pairing = by_name_or_structure,
    frontier: bool = False,
    running: tuple[Engine, Engine] | None = None,
) -> Comparison:
    """Run two sides on the same inputs, and return how far the candidate is from the reference.

    - ``reference`` and ``candidate`` are sides, such as ``model.xml`` or ``openvino[precision=f16]:model.xml``.
    - ``inputs`` are those of one sample, or of several; or a function that returns the samples for a model with the
      inputs of the reference. An input that is not passed is random, drawn with ``seed``, and with the next number for
      each further sample. ``samples`` is their number if ``inputs`` does not say it.
    - ``layers`` compares inner values as well, paired by ``pairing``. A value of the reference stays in a file until
      the candidate has computed its own, so that memory is needed for one pair at a time.
    - ``keep_state`` keeps the state of a model from sample to sample. Otherwise each sample begins with a reset.
    - ``tolerances`` are those of each value. ``comparator`` decides instead of them.
    - ``limits`` are those of each engine. A side that refuses the model, crashes or takes too long gives a verdict.
    - ``frontier`` keeps what is needed to apply other tolerances to the result.
    - ``running`` are engines of both sides that are open already, to save the time of their start.

    Raises EngineError: IR701 for a text that is no side, IR702 for an engine that does not start, IR704 if the sides
    have nothing in common, IR705 for a comparator that fails. Raises ReadError for a file that cannot be read, and
    FeedError for inputs that do not fit.
    """
    sides = [parse_side(side) if isinstance(side, str) else side for side in (reference, candidate)]
    models = [model_of(side) for side in sides]
    settings = _Settings(tolerances or Tolerances(), comparator, frontier)
    with ExitStack() as stack:
        opened = running or _opened(sides, limits, stack)
        loaded = [
            engine.load(None if isinstance(engine, Recording) else side.path, inner=layers)
            for engine, side in zip(opened, sides)
        ]
        for role, answer in zip(_ROLES, loaded):
            if not isinstance(answer, Loaded):
                return _failed(sides, opened, SideFailure(role, answer, None))
        subjects = [
            Subject(side, engine, answer, model)
            for side, engine, answer, model in zip(sides, opened, loaded, models)
            if isinstance(answer, Loaded)
        ]
        run = _Run(subjects[0], subjects[1], settings, pairing)
        model = run.model_of_inputs()
        count = 0
        for sample in samples_of(model, inputs, samples, seed):
            if not keep_state:
                run.reset()
            failure = run.sample(count, model, sample)
            count += 1
            if failure is not None:
                return run.comparison(count, failure)
        return run.comparison(count)


def _opened(sides: Sequence[Side], limits: Limits | None, stack: ExitStack) -> list[Engine]:
    """Return the engines of both sides, which start at the same time and end with ``stack``."""
    with ThreadPoolExecutor(len(sides)) as pool:
        entered = [pool.submit(stack.enter_context, open_engine(side, limits)) for side in sides]
    return [future.result() for future in entered]


_ROLES: Final = ("reference", "candidate")


@dataclass(frozen=True)
class _Settings:
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
    return EngineError(Diagnostic("IR705", "error", message, help=help))


@dataclass
class _Tally:
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


class _Run:
    """The runs of both sides, and the measurements so far."""

    def __init__(self, reference: Subject, candidate: Subject, settings: _Settings, pairing: Pairing) -> None:
        self.reference, self.candidate, self.settings = reference, candidate, settings
        origins = reference.loaded.places
        # the inputs of bodies, which other uses of the engines need, err only where the layers before them do
        self.pairs = {
            place: other for place, other in pairing(reference, candidate).items() if origins[place].type != "Parameter"
        }
        self.back = {place: other for other, place in self.pairs.items()}
        self.outputs = pair_outputs(reference.loaded.outputs, candidate.loaded.outputs)
        self.tallies: dict[Place, _Tally] = {}
        self.output_tallies: dict[int, _Tally] = {}
        self.current: dict[tuple[Place, int], Measurement] = {}
        """The measurements of the last sample or, once one has differed, of the first that did."""
        if not self.pairs and not self.outputs:
            help = "pass two forms of the same model; outputs and layers are matched by name"
            message = f"{reference.side} and {candidate.side} have no output and no layer in common"
            raise EngineError(Diagnostic("IR704", "error", message, help=help))

    def model_of_inputs(self) -> Model:
        """Return a model that has the inputs of the sides."""
        for subject in (self.reference, self.candidate):
            if subject.model is not None:
                return subject.model
        return stand_in(max(self.reference.loaded, self.candidate.loaded, key=lambda loaded: len(loaded.inputs)))

    def reset(self) -> None:
        """Reset the state of both sides. One that fails will fail again in the next run."""
        for subject in (self.reference, self.candidate):
            subject.engine.reset()

    def sample(self, number: int, model: Model, arrays: Mapping[int, np.ndarray]) -> SideFailure | None:
        """Run both sides on the inputs of a sample, and compare their values. Return the failure of a side."""
        waiting: dict[tuple[Place, int], tuple[int, Value]] = {}
        is_first = not any(tally.first for tally in self.tallies.values())
        if is_first:
            self.current.clear()

        def keep(value: Value) -> None:
            waiting[value.place, value.iteration] = len(waiting), value

        def compare(value: Value) -> None:
            place = self.back[value.place]
            if (place, value.iteration) not in waiting:
                value.drop()
                self.add_missing(place, "reference", number, len(self.tallies), value.iteration)
                return
            ordinal, other = waiting.pop((place, value.iteration))
            measurement = self.add(place, _read(other), _read(value), number, ordinal, value.iteration)
            if is_first:
                self.current[place, value.iteration] = measurement

        outcomes: list[Outputs] = []
        try:
            for role, subject, taps, receive in (
                ("reference", self.reference, list(self.pairs), keep),
                ("candidate", self.candidate, list(self.back), compare),
            ):
                feeds = feeds_of(model, subject.loaded, arrays)
                outcome = subject.engine.infer(feeds, taps, receive)
                if not isinstance(outcome, Outputs):
                    return SideFailure(role, outcome, number)
                outcomes.append(outcome)
        finally:
            for _, value in waiting.values():
                value.drop()
        for (place, iteration), (ordinal, _) in waiting.items():
            self.add_missing(place, "candidate", number, ordinal, iteration)
        for position, other in self.outputs.items():
            self.add_output(position, outcomes[0].outputs[position], outcomes[1].outputs[other], number)
        return None

    def add(
        self, place: Place, first: np.ndarray, second: np.ndarray, sample: int, ordinal: int, iteration: int
    ) -> Measurement:
        """Measure a pair of inner values."""
        tally = self.tallies.get(place)
        if tally is None:
            type = _coarser(_type(first), _type(second))
            limit = self.settings.tolerances.of_layer(place.layer, type)
            tally = self.tallies[place] = _Tally(limit, type, ordinal)
        measurement = self.settings.measured(first, second, str(place), tally.limit)
        tally.add(measurement, sample, ordinal, iteration)
        return measurement

    def add_missing(self, place: Place, role: str, sample: int, ordinal: int, iteration: int) -> None:
        """Report a value that one side did not compute: its loop ended earlier, or it took another branch."""
        missing = replace(_NOTHING, problem=f"the {role} did not compute the value")
        limit = self.settings.tolerances.of_layer(place.layer, "f32")
        self.tallies.setdefault(place, _Tally(limit, "", ordinal)).add(missing, sample, ordinal, iteration)

    def add_output(self, position: int, first: Output, second: Output, sample: int) -> None:
        """Measure a pair of outputs."""
        name = _output_name(first.names, position)
        tally = self.output_tallies.get(position)
        if tally is None:
            type = _coarser(first.type, second.type)
            limit = self.settings.tolerances.of_output(name, type)
            tally = self.output_tallies[position] = _Tally(limit, type, position)
        tally.add(self.settings.measured(first.array, second.array, name, tally.limit), sample, position, 0)

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
                layers[place], measurement=measurement, sample=sample,
                iteration=None if layers[place].iteration is None else iteration,
            )  # fmt: skip
            measured = {
                other: self.current.get((other, iteration)) or self.current.get((other, 0)) for other in self.pairs
            }
            first = first_divergence(self.reference, self.candidate, place, self.pairs, at, measured)
        own = verdict(outputs, list(layers.values()))
        sides = [(str(subject.side), subject.engine.name) for subject in (self.reference, self.candidate)]
        return Comparison(
            sides[0], sides[1], own if failure is None else VERDICTS[type(failure.outcome).__name__],
            first, tuple(outputs), tuple(layers.values()), samples, failure,
        )  # fmt: skip

    def layer(self, place: Place, tally: _Tally) -> Layer:
        """Return what was measured of an inner value. Its place is that in the candidate's file, if that is IR."""
        other = self.pairs[place]
        subject, own = (self.candidate, other) if other.layer in self.candidate.nodes else (self.reference, place)
        node = subject.nodes.get(own.layer)
        in_loop = tally.iterations > 1 or (node is not None and node.model is not subject.model)
        return Layer(
            place.layer, node.layer.type if node else self.reference.loaded.places[place].type, subject.port(own),
            place.port == 0, str(subject.side.path) if node else None, node.line if node else None,
            self.candidate.shown(other), tally.element_type, *tally.limit, _merged(tally), tally.at[0],
            tally.at[1] if in_loop else None,
        )  # fmt: skip

    def output(self, position: int, tally: _Tally) -> Layer:
        """Return what was measured of an output. Its line is that of the Result in the candidate's file."""
        names, other = self.reference.loaded.outputs[position], self.outputs[position]
        subject, own = (self.candidate, other) if self.candidate.model is not None else (self.reference, position)
        model = subject.model
        line = None if model is None else model.source.span(model.results[own].node).line
        return Layer(
            _output_name(names, position), "", position, True, str(subject.side.path) if model else None, line,
            _output_name(self.candidate.loaded.outputs[other], other), tally.element_type, *tally.limit,
            _merged(tally), tally.at[0], None,
        )  # fmt: skip


_NOTHING: Final = Measurement(0, 0, math.inf, None, math.inf, math.inf, None, None, math.inf, (0, 0), (0, 0))


def _merged(tally: _Tally) -> Measurement:
    assert tally.worst is not None
    return replace(tally.worst, frontier=tuple(sorted(tally.frontiers)))


def _read(value: Value) -> np.ndarray:
    array = value.array()
    value.drop()
    return array


def _type(array: np.ndarray) -> str:
    return str(ElementType.of(array.dtype) or array.dtype)


def _coarser(first: str, second: str) -> str:
    """Return the element type with the wider tolerances."""
    return max(first, second, key=lambda name: TOLERANCES.get(name, (0, 0)))


def _output_name(names: Sequence[str], position: int) -> str:
    return names[0] if names else f"output {position}"


def _failed(sides: Sequence[Side], running: Sequence[Engine], failure: SideFailure) -> Comparison:
    reference, candidate = ((str(side), engine.name) for side, engine in zip(sides, running))
    return Comparison(reference, candidate, VERDICTS[type(failure.outcome).__name__], None, (), (), 0, failure)
