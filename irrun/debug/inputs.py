"""The inputs of a comparison: samples, each with the values of all inputs, and what each side takes of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np

from irrun.debug.pairing import InputPair, Renames, pair_by_readers, pair_inputs
from irrun.debug.subjects import Subject, stand_in
from irrun.diagnostics import FeedError, diagnostic
from irrun.engines import Place, Recording
from irrun.model import Model
from irrun.model.lookup import bad_feed
from irrun.running.generate import draw

__all__ = ["Feeding", "Feeds", "Inputs", "own_positions", "samples_of"]

Feeds = Mapping[Any, np.ndarray]
"""The inputs of one sample, by name or position."""
Inputs = Feeds | Iterable[Feeds] | Callable[[Model], Iterable[Feeds]] | None
"""The inputs of one sample or of several, or a function that returns samples for a model. None means random inputs."""


def samples_of(model: Model, inputs: Inputs, count: int, seed: int) -> Iterator[dict[int, np.ndarray]]:
    """Yield the inputs of each sample by position, with random arrays for those that were not passed."""
    if callable(inputs):
        inputs = inputs(model)
    if inputs is None or isinstance(inputs, Mapping):
        given: Iterable[Mapping[Any, np.ndarray]] = [inputs or {}] * count
    else:
        given = cast("Iterable[Mapping[Any, np.ndarray]]", inputs)
    for number, feeds in enumerate(given):
        arrays = {key: np.asarray(array) for key, array in feeds.items()}
        own = {model.known_input(key): array for key, array in arrays.items()}
        yield {**draw(model, seed + number, given=arrays), **own}


@dataclass(frozen=True)
class Feeding:
    """Which values the inputs of both sides get.

    ``model`` has the inputs that a user passes: those of the reference if it is an IR file, else those of the
    candidate. The inputs of the other side get the values of their pairs. Inputs that a dump holds are passed to the
    other side.
    """

    reference: Subject
    candidate: Subject
    model: Model
    pairs: tuple[InputPair, ...]
    positions: Mapping[str, Mapping[int, int]]
    """The position in ``model`` of each input of a side, by role."""
    recorded: Mapping[int, np.ndarray] = field(default_factory=dict)
    """The values that a dump holds, by position in ``model``."""
    dump: str = ""
    """The side that is the dump."""

    @staticmethod
    def of(reference: Subject, candidate: Subject, renames: Renames) -> Feeding:
        """Return how two sides are fed. Raises EngineError (IR707) if their inputs cannot be paired."""
        pairs = pair_inputs(reference, candidate, renames)
        owner = next((side for side in (reference, candidate) if side.model is not None), None)
        if owner is None:
            owner = max((reference, candidate), key=lambda side: len(side.loaded.inputs))
        model = owner.model or stand_in(owner.loaded)
        own = own_positions(owner, model)
        other: dict[int, int] = {}
        for pair in pairs:
            first, second = pair.positions if owner is reference else pair.positions[::-1]
            if first is not None and second is not None:
                other[second] = own[first]
        by_role = (own, other) if owner is reference else (other, own)
        positions = dict(zip(("reference", "candidate"), by_role))
        feeding = Feeding(reference, candidate, model, pairs, cast("Any", positions))
        return feeding._with_recorded()

    def samples(self, inputs: Inputs, count: int, seed: int) -> Iterator[dict[int, np.ndarray]]:
        """Yield the inputs of each sample by position in ``model``: those of the dump, and those of ``samples_of``.

        Raises FeedError (IR601) for an input that contradicts the dump, and for a second sample.
        """
        if not self.recorded:
            yield from samples_of(self.model, inputs, count, seed)
            return
        known = {self.model.parameters[number].id: (array, 0) for number, array in self.recorded.items()}
        model = replace(self.model, contents={**self.model.contents, **known})
        for number, arrays in enumerate(samples_of(model, inputs, count, seed)):
            if number:
                message = f"{self.dump} holds the values of a single run, but there is more than one sample"
                raise FeedError(diagnostic("IR601", message, help="pass one sample, or no inputs at all"))
            for position, recorded in self.recorded.items():
                if position in arrays and not _is_equal(arrays[position], recorded):
                    problem = f"has other values in {self.dump}, which was recorded with its own inputs"
                    help = "leave out -i, or record a dump with these inputs: irrun run model.xml -i ... --dump DIR"
                    raise bad_feed(self.model, self.model.parameters[position], problem, help)
            yield {**arrays, **self.recorded}

    def feeds(self, role: str, arrays: Mapping[int, np.ndarray]) -> dict[str | int, np.ndarray]:
        """Return the inputs of a side by position, from those by position in ``model``."""
        return {at: arrays[number] for at, number in self.positions[role].items() if number in arrays}

    @property
    def is_replayed(self) -> bool:
        """Whether both sides are dumps, so that each has inputs of its own."""
        return bool(_recorded(self.reference) and _recorded(self.candidate))

    def doubtful(self, pairs: Mapping[Place, Place]) -> dict[Place, Place]:
        """Return the pairs of places of inputs that may have other data.

        Two dumps have inputs of their own. An input that was paired by position may belong to another one: the one that
        feeds the same layer, as ``pairs`` of inner values say.
        """
        places = [{at: place for place, at in side.inputs.items()} for side in (self.reference, self.candidate)]
        found: dict[Place, Place] = {}
        for pair in self.pairs:
            first, second = pair.positions
            if first is None or second is None:
                continue
            place, other = places[0][first], places[1][second]
            if self.is_replayed:
                found[place] = other
            elif pair.by == "position":
                read = pair_by_readers(self.reference, self.candidate, place, pairs)
                if read is not None and read != other:
                    found[place] = read
        return found

    def shown(self, role: str, arrays: Mapping[int, np.ndarray]) -> dict[str | int, np.ndarray]:
        """Return what ``feeds`` returns or, for a dump, its own inputs."""
        subject = self.reference if role == "reference" else self.candidate
        recorded = _recorded(subject)
        return {**recorded} if recorded else self.feeds(role, arrays)

    def _with_recorded(self) -> Feeding:
        """Return the feeding with the inputs of a dump whose other side runs."""
        for role, side, other in (
            ("reference", self.reference, self.candidate),
            ("candidate", self.candidate, self.reference),
        ):
            if not isinstance(other.engine, Recording) and (recorded := _recorded(side)):
                own = self.positions[role]
                values = {own[at]: array for at, array in recorded.items() if at in own}
                pairs = tuple(replace(pair, is_recorded=None not in pair.positions) for pair in self.pairs)
                return replace(self, recorded=values, dump=str(side.side), pairs=pairs)
        return self


def _recorded(subject: Subject) -> dict[int, np.ndarray]:
    engine = subject.engine
    return {at: value.array() for at, value in enumerate(engine.inputs)} if isinstance(engine, Recording) else {}


def own_positions(owner: Subject, model: Model) -> dict[int, int]:
    """Return the position in the model of a side of each input that its engine has."""
    if owner.model is None:
        return {position: position for position in range(len(owner.loaded.inputs))}
    own = [set(model.input_names(parameter)) for parameter in model.parameters]
    positions: dict[int, int] = {}
    for position, input in enumerate(owner.loaded.inputs):
        named = [number for number, names in enumerate(own) if names & set(input.names)]
        positions[position] = named[0] if named else position
    return positions


def _is_equal(first: np.ndarray, second: np.ndarray) -> bool:
    if first.shape != second.shape:
        return False
    if "O" in (first.dtype.kind, second.dtype.kind):
        return first.astype(str).tolist() == second.astype(str).tolist()
    return np.array_equal(first.astype(second.dtype), second, equal_nan=second.dtype.kind == "f")
