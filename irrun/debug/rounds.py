"""Run the two sides of a comparison, one after the other, while values wait on disk."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

import numpy as np

from irrun.debug.budget import Judge
from irrun.debug.budget.shown import Shown
from irrun.debug.metrics import Budget
from irrun.debug.results import SideFailure
from irrun.debug.shelf import Kept, Shelf
from irrun.debug.subjects import Subject
from irrun.debug.tallies import Tallies
from irrun.engines import Failure, Loaded, Outputs, Place, Recording, Timeout, Value

__all__ = ["OnValue", "Role", "Rounds"]

Role = Literal["reference", "candidate"]
OnValue = Callable[[Role, int, int, int], None]
"""A function that is called for each inner value: the role of the side, the number of the sample, how many values of
the sample the side has computed, and how many places there are. In a loop, a place has several values."""

_MAX_WAITING_BYTES: Final = 1 << 30
"""The bytes of values of the reference that wait on disk until the candidate runs. A single layer may take more."""


class _Side:
    """A side, and what its engine has loaded: the model as it is, or one that shows its inner values."""

    def __init__(self, role: Role, subject: Subject) -> None:
        self.role, self.subject = role, subject
        self.is_neutral = subject.loaded.neutral
        self._inner: bool | None = True

    def prepare(self, *, inner: bool) -> Failure | None:
        """Load the model, unless it is loaded in this way already."""
        if self._inner is inner:
            return None
        path = None if isinstance(self.subject.engine, Recording) else self.subject.side.path
        answer = self.subject.engine.load(path, inner=inner)
        self._inner = inner if isinstance(answer, Loaded) else None
        return None if isinstance(answer, Loaded) else answer

    def release(self) -> None:
        """End the process of the engine."""
        self.subject.engine.release()
        self._inner = None


@dataclass
class _Sample:
    """A sample, or a part of its inner values.

    ``taps`` are the places in the reference that have not been compared. ``ordinals`` are those of the values that had
    no room in an earlier round: the number of each value in a whole run, by place and iteration.
    """

    number: int
    feeds: Mapping[int, Kept]
    taps: list[Place]
    is_first: bool = True
    """Whether the outputs have not been compared yet."""
    ordinals: Mapping[tuple[Place, int], int] = field(default_factory=dict)
    waiting: dict[tuple[Place, int], tuple[int, Kept]] = field(default_factory=dict)
    """Ordinal and inner value of the reference by place and iteration."""
    outputs: dict[int, tuple[str, Kept]] = field(default_factory=dict)
    """Element type and array of the reference's outputs by position."""
    left: dict[tuple[Place, int], int] = field(default_factory=dict)
    """The ordinals of the values that have no room in this round."""
    shown: Shown = field(default_factory=Shown)
    """The inner values of the candidate, for the judge."""
    reread: set[Place] = field(default_factory=set)
    """The places of the values that are not compared in this round, but which the judge needs."""
    seen: int = 0
    last: int = 0
    """The ordinal of the value that was compared last."""

    def arrays(self) -> dict[int, np.ndarray]:
        """Return the inputs by position."""
        return {position: kept.array() for position, kept in self.feeds.items()}

    def rest(self) -> _Sample | None:
        """Remove the values that wait, and return what is left of the sample. If nothing is, remove the inputs, too."""
        done = [kept for _, kept in (*self.waiting.values(), *self.outputs.values())]
        self.shown.drop()
        for kept in done if self.left else (*done, *self.feeds.values()):
            kept.drop()
        places = list(dict.fromkeys(place for place, _ in self.left))
        return _Sample(self.number, self.feeds, places, False, self.left) if places else None


class Rounds:
    """Runs both sides on samples, and adds up in ``tallies`` how far their values are from each other.

    In each round, the reference computes the values of some samples, which wait on ``shelf``, and its process ends;
    then the candidate computes its own. So the memory of two models is never needed at once, and the disk holds a
    limited number of bytes. A sample whose values have no room there is run again for the others. A side computes its
    outputs with the model as it is, and inner values with one that shows them, unless that makes no difference. Then
    the ``judge``, if there is one, judges each layer on the values that the candidate has shown.

    With ``keep_state``, which is for samples that depend on the ones before, both engines run all the time, and the
    values of a whole sample wait. With ``stay``, engines are not ended either.
    """

    def __init__(
        self, tallies: Tallies, shelf: Shelf, *, keep_state: bool, stay: bool, on_value: OnValue | None,
        judge: Judge | None = None,
    ) -> None:  # fmt: skip
        self.tallies, self.shelf, self.judge = tallies, shelf, judge
        self.reference, self.candidate = _Side("reference", tallies.reference), _Side("candidate", tallies.candidate)
        self.keep_state, self.stay = keep_state, stay
        self.on_value = on_value or (lambda role, sample, values, places: None)
        self.count = 0
        """The number of samples that were begun."""
        self._again: deque[_Sample] = deque()

    def run(self, samples: Iterable[Mapping[int, np.ndarray]]) -> SideFailure | None:
        """Compare the sides on all samples, or up to the failure of a side, which is returned."""
        source = self._samples(samples)
        if self.keep_state:
            return self._sequence(list(source))

        def following() -> _Sample | None:
            return self._again.popleft() if self._again else next(source, None)

        def with_room(first: _Sample) -> Iterator[_Sample]:
            yield first
            begun = 1
            while self.shelf.size * (begun + 1) < _MAX_WAITING_BYTES * begun and (sample := following()) is not None:
                yield sample
                begun += 1

        while (first := following()) is not None:
            batch, failed = self._reference(with_room(first))
            if not self.stay:
                self.reference.release()
            failed = self._candidate(batch) or failed
            self._again.extend(rest for sample in batch if (rest := sample.rest()) is not None)
            if failed is not None:
                return failed
            if not self.stay and self._again:
                self.candidate.release()
        return None

    def _samples(self, samples: Iterable[Mapping[int, np.ndarray]]) -> Iterator[_Sample]:
        for number, arrays in enumerate(samples):
            self.count = number + 1
            feeds = {position: self.shelf.keep_array(array) for position, array in arrays.items()}
            yield _Sample(number, feeds, list(self.tallies.pairs))

    def _sequence(self, samples: list[_Sample]) -> SideFailure | None:
        """Compare the outputs of all samples, and then the inner values of one sample after the other.

        The judge ends this with the first sample in which a layer is wrong: the values after it follow from that.
        """
        failures: list[SideFailure] = []
        for side in (self.reference, self.candidate):
            if not (self.tallies.pairs and side.is_neutral):
                _, failed = self._pass(side, samples, inner=False)
                failures += [failed] if failed else []
        for sample in samples if self.tallies.pairs else ():
            for side in (self.reference, self.candidate):
                _, failed = self._pass(side, [sample], inner=True)
                if failed is not None:
                    return failures[0] if failures else failed
            sample.rest()
            is_known = self.judge is not None and self.tallies.has_begun
            if is_known or any(failed.sample == sample.number for failed in failures):
                break
        return failures[0] if failures else None

    def _reference(self, samples: Iterable[_Sample]) -> tuple[list[_Sample], SideFailure | None]:
        """Compute the values of as many samples as have room, and return them, and the failure of the next one."""
        batch, failed = self._passes(self.reference, samples)
        if failed is not None:
            batch = [s for s in batch if failed.sample is not None and s.number < failed.sample]
        return batch, failed

    def _candidate(self, batch: list[_Sample]) -> SideFailure | None:
        """Compute the values of the candidate, and compare them."""
        return self._passes(self.candidate, batch)[1] if batch else None

    def _passes(self, side: _Side, samples: Iterable[_Sample]) -> tuple[list[_Sample], SideFailure | None]:
        """Compute inner values, and then outputs. Return the samples that were begun, and the failure of the last.

        If the side fails while it is observed, it also runs as it is: how the model itself fails is worth more.
        """
        if not self.tallies.pairs:
            return self._pass(side, samples, inner=False)
        batch, failed = self._pass(side, samples, inner=True)
        if side.is_neutral or (failed is not None and isinstance(failed.outcome, Timeout)):
            return batch, failed
        plain = [sample for sample in batch if sample.is_first]
        return batch, (self._pass(side, plain, inner=False)[1] if plain else None) or failed

    def _pass(
        self, side: _Side, samples: Iterable[_Sample], *, inner: bool
    ) -> tuple[list[_Sample], SideFailure | None]:
        """Run a side on samples, either for their inner values or for their outputs. See ``_passes``."""
        begun: list[_Sample] = []
        for sample in samples:
            begun.append(sample)
            if (failure := side.prepare(inner=inner)) is not None:
                return begun, SideFailure(side.role, failure, None)
            if not self.keep_state:
                side.subject.engine.reset()  # one that fails will fail again in the run
            failure = self._run(side, sample, inner=inner)
            if failure is not None:
                return begun, SideFailure(side.role, failure, sample.number)
        return begun, None

    def _run(self, side: _Side, sample: _Sample, *, inner: bool) -> Failure | None:
        """Run a side on a sample. Keep the values of the reference, and compare those of the candidate."""
        arrays = sample.arrays()
        feeds = self.tallies.feeding.feeds(side.role, arrays)
        without = {place for place, _ in sample.left}
        taps = [place for place in sample.taps if place not in without] if inner else []
        sample.seen = 0

        def keep(value: Value) -> None:
            self._keep(sample, value)

        def measure(value: Value) -> None:
            self._measure(sample, value)

        def repeat(value: Value) -> None:
            place = self.tallies.back.get(value.place)
            if place is None:
                value.drop()
            else:
                sample.shown.repeat(place, value.copy, self.shelf.keep(value))

        if side is self.reference:
            outcome = side.subject.engine.infer(feeds, taps, keep)
        else:
            self.tallies.begin(sample.number)
            if sample.is_first and inner:
                self.tallies.add_inputs(arrays, sample.number)
            sample.reread = self._reread(taps)
            every = [place for place in self.tallies.pairs if place in sample.reread or place in taps]
            paired = [self.tallies.pairs[place] for place in every]
            outcome = side.subject.engine.infer(feeds, paired, measure, None if self.judge is None else repeat)
        if not isinstance(outcome, Outputs):
            return outcome
        if outcome.unseen:
            self._leave_out(side, sample, outcome.unseen)
        if inner and side is self.candidate:
            for (place, iteration), (ordinal, kept) in sample.waiting.items():
                kept.drop()
                self.tallies.add_missing(place, "candidate", sample.number, ordinal, iteration)
            sample.waiting.clear()
            self._judge(sample, arrays)
        if sample.is_first and inner == (side.is_neutral and bool(self.tallies.pairs)):
            self._outputs(side, sample, outcome, arrays)
        return None

    def _leave_out(self, side: _Side, sample: _Sample, unseen: Sequence[Place]) -> None:
        """Compare no values at places that a side cannot show."""
        own = unseen if side is self.reference else [self.tallies.back[place] for place in unseen]
        self.tallies.unseen.update(dict.fromkeys(own, side.role))
        for key in [key for key in sample.waiting if key[0] in own]:
            sample.waiting.pop(key)[1].drop()

    def _reread(self, taps: Sequence[Place]) -> set[Place]:
        """Return the places whose values the judge needs for the layers at ``taps``, from other rounds."""
        if self.judge is None or len(taps) == len(self.tallies.pairs):
            return set()
        return (self.judge.read_by(taps) & self.tallies.pairs.keys()).difference(taps)

    def _judge(self, sample: _Sample, arrays: Mapping[int, np.ndarray]) -> None:
        """Judge the layers of the candidate on the values that it has shown."""
        if self.judge is None:
            return
        ordinals = sample.shown.ordinals

        def add(place: Place, iteration: int, budget: Budget) -> None:
            if (place, iteration) in ordinals:
                self.tallies.add_budget(place, budget, sample.number, ordinals[place, iteration], iteration)

        self.judge.run(arrays, sample.shown, add)
        sample.shown.drop()

    def _keep(self, sample: _Sample, value: Value) -> None:
        """Put an inner value of the reference on the shelf, or leave its place for another round."""
        place, key = value.place, (value.place, value.iteration)
        ordinal = sample.ordinals.get(key, sample.seen)
        sample.seen += 1
        self.on_value("reference", sample.number, sample.seen, len(sample.taps))
        if (place, 0) in sample.left:
            sample.left[key] = ordinal
            value.drop()
            return
        sample.waiting[key] = ordinal, self.shelf.keep(value)
        is_full = self.shelf.size > _MAX_WAITING_BYTES and any(other != place for other, _ in sample.waiting)
        if is_full and not self.keep_state:
            for iteration in range(value.iteration + 1):
                number, kept = sample.waiting.pop((place, iteration))
                kept.drop()
                sample.left[place, iteration] = number

    def _measure(self, sample: _Sample, value: Value) -> None:
        """Compare an inner value of the candidate with that of the reference."""
        sample.seen += 1
        self.on_value("candidate", sample.number, sample.seen, len(sample.taps))
        place = self.tallies.back[value.place]
        if place in sample.reread:
            sample.shown.add(place, value.iteration, value.copy, self.shelf.keep(value), None)
            return
        array = value.array()
        if (place, value.iteration) not in sample.waiting:
            value.drop()
            if place in self.tallies.unseen:
                return
            self.tallies.add_missing(place, "reference", sample.number, sample.last, value.iteration)
            return
        ordinal, kept = sample.waiting.pop((place, value.iteration))
        sample.last = ordinal
        first = kept.take()
        self.tallies.add(place, first, array, sample.number, ordinal, value.iteration)
        if self.judge is None:
            value.drop()
            return
        causes = self.judge.changed.get(place.layer)
        if causes is not None:
            budget = self.judge.of_changed(first, array)
            if causes:
                self.tallies.add_budget(place, budget, sample.number, ordinal, value.iteration)
            if not budget.is_explained:
                sample.shown.change(place, np.array(array))
        sample.shown.add(place, value.iteration, value.copy, self.shelf.keep(value), ordinal)

    def _outputs(self, side: _Side, sample: _Sample, outcome: Outputs, arrays: Mapping[int, np.ndarray]) -> None:
        """Keep the outputs of the reference, and compare those of the candidate."""
        budgets = self.judge.outputs if self.judge is not None and side is self.candidate else None
        if budgets is not None:
            budgets.run(arrays)
        for position, other in self.tallies.outputs.items():
            if side is self.reference:
                output = outcome.outputs[position]
                sample.outputs[position] = output.type, self.shelf.keep_array(output.array, output.type)
            else:
                output = outcome.outputs[other]
                type, kept = sample.outputs.pop(position)
                types = (type, output.type)
                self.tallies.add_output(position, kept.take(), output.array, types, sample.number, budgets)
