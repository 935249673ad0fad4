"""Compare two sides: their outputs and inner values on the same inputs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from typing import Final

import numpy as np

from irrun.debug.budget import InEffect, Judge
from irrun.debug.conduct import conduct_of
from irrun.debug.difference.content import differing_content, differing_layers
from irrun.debug.difference.storage import stored_constants
from irrun.debug.inputs import Feeding, Inputs
from irrun.debug.pairing import Pairing, Renames, by_name_or_structure, in_common
from irrun.debug.results import VERDICTS, Comparison, SideFailure, Storage, nothing_to_compare
from irrun.debug.rounds import OnValue, Role, Rounds
from irrun.debug.shelf import Shelf
from irrun.debug.subjects import Subject, model_of
from irrun.debug.tallies import Comparator, OnOutput, Settings, Tallies
from irrun.debug.tolerances import Tolerances
from irrun.diagnostics import EngineError, diagnostic
from irrun.engines import (
    Engine,
    Failure,
    Limits,
    Loaded,
    Recording,
    Side,
    at_once,
    open_all,
    parse_sides,
    private_folder,
)

__all__ = ["Comparator", "compare"]


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
    renames: Renames | None = None,
    frontier: bool = False,
    running: tuple[Engine, Engine] | None = None,
    on_value: OnValue | None = None,
    on_output: OnOutput | None = None,
) -> Comparison:
    """Run two sides on the same inputs, and return how far the candidate is from the reference.

    - ``reference`` and ``candidate`` are sides, such as ``model.xml`` or ``openvino[precision=f16]:model.xml``.
    - ``inputs`` are those of one sample, or of several; or a function that returns the samples for a model with the
      inputs of the reference. An input that is not passed is random, drawn with ``seed``, and with the next number for
      each further sample. ``samples`` is their number if ``inputs`` does not say it. If a side is a dump that holds its
      inputs, the other side runs on them.
    - ``layers`` compares inner values as well, paired by ``pairing``. The values of the reference wait on disk, at most
      1 GiB of them. Its process ends before the candidate runs, so that memory is needed for one model at a time.
    - ``keep_state`` keeps the state of a model from sample to sample. Otherwise each sample begins with a reset. Inner
      values are then compared up to the first sample in which a budget finds a layer wrong.
    - ``tolerances`` are those of each value, and ``comparator`` decides instead of them. Without both, and if irrun
      runs the reference's model, budgets decide: what the precisions in effect explain on this input.
    - ``limits`` are those of each engine. A side that refuses the model, crashes or takes too long gives a verdict.
    - ``renames`` are the names in the candidate of inputs, outputs and layers of the reference. The other inputs are
      paired by a common name, and the rest by position.
    - ``frontier`` keeps what is needed to apply other tolerances to the result.
    - ``running`` are engines of both sides that are open already, to save the time of their start. They stay open.
    - ``on_value`` is called for each inner value that a side has computed, to show the progress: see ``OnValue``.
    - ``on_output`` is called for each output of each sample: see ``OnOutput``.

    Raises EngineError: IR701 for a text that is no side, IR702 for an engine that does not start, IR704 if the sides
    have nothing in common, or no number to compare, IR705 for a comparator that fails, IR707 if inputs cannot
    be paired. Raises ReadError for a file that cannot be read, and
    FeedError for inputs that do not fit.
    """
    sides = parse_sides(reference, candidate)
    models = [model_of(side) for side in sides]
    settings = Settings(tolerances or Tolerances(), comparator, frontier)
    with ExitStack() as stack:
        folder = stack.enter_context(private_folder())
        opened = running or stack.enter_context(open_all(sides, limits, folder))
        loaded = _loaded(opened, sides)
        for role, answer in zip(_ROLES, loaded):
            if not isinstance(answer, Loaded):
                return _failed(sides, opened, SideFailure(role, answer, None))
        subjects = [
            Subject(side, engine, answer, model)
            for side, engine, answer, model in zip(sides, opened, loaded, models)
            if isinstance(answer, Loaded)
        ]
        pairs, outputs = in_common(subjects[0], subjects[1], pairing if layers else None, renames or {})
        feeding = Feeding.of(subjects[0], subjects[1], renames or {})
        tallies = Tallies(feeding, settings, pairs, outputs)
        tallies.on_output = on_output or tallies.on_output
        shelf = stack.enter_context(closing(Shelf(folder)))
        effects = [InEffect.of(subject.engine.properties) for subject in subjects]
        by_budget = comparator is None and settings.tolerances == Tolerances()
        found = differing_layers(models)
        stored = stored_constants(subjects[0].model, subjects[1].model, found) if by_budget else None
        judge = None
        if by_budget:
            judge = Judge.of(subjects[0].model, *effects, keep_state=keep_state, found=found, stored=stored)
        tallies.fixed = judge.fixed if judge is not None else ()
        rounds = Rounds(tallies, shelf, keep_state=keep_state, stay=running is not None, on_value=on_value, judge=judge)
        begun: list[Mapping[int, np.ndarray]] = []
        failure = rounds.run(_remembered(feeding.samples(inputs, samples, seed), begun))
        comparison = tallies.comparison(rounds.count, failure)
        if failure is None and not comparison.outputs and not comparison.layers:
            message = f"{sides[0]} and {sides[1]} gave no value that both have: nothing was compared"
            help = "pass at least one sample, and two forms of the same model"
            raise EngineError(diagnostic("IR704", message, help=help))
        if comparison.verdict == "differ" and not keep_state:
            feeds = {role: feeding.feeds(role, begun[0]) for role in _ROLES}
            comparison = replace(comparison, conduct=conduct_of(dict(zip(_ROLES, subjects)), feeds, comparison))
        if comparison.agrees and comparator is None and not tallies.has_numbers:
            raise nothing_to_compare(f"{sides[0]} and {sides[1]}")
        if judge is not None and stored is not None:
            comparison = replace(comparison, storage=Storage(stored.count, *stored.types, judge.outputs.storage))
        return replace(comparison, content=differing_content(found) if comparison.agrees else None)


_ROLES: Final[tuple[Role, Role]] = ("reference", "candidate")


def _remembered(
    samples: Iterable[Mapping[int, np.ndarray]], begun: list[Mapping[int, np.ndarray]]
) -> Iterator[Mapping[int, np.ndarray]]:
    """Yield samples, and put the first one into ``begun``."""
    for arrays in samples:
        if not begun:
            begun.append(arrays)
        yield arrays


def _loaded(engines: Sequence[Engine], sides: Sequence[Side]) -> list[Loaded | Failure]:
    """Load the models of both sides at the same time, and return their interfaces."""

    def load(engine: Engine, side: Side) -> Loaded | Failure:
        return engine.load(None if isinstance(engine, Recording) else side.path, inner=True)

    return at_once(load, engines, sides)


def _failed(sides: Sequence[Side], running: Sequence[Engine], failure: SideFailure) -> Comparison:
    reference, candidate = ((str(side), engine.name) for side, engine in zip(sides, running))
    return Comparison(reference, candidate, VERDICTS[type(failure.outcome).__name__], None, (), (), 0, failure)
