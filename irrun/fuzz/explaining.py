"""Explain a disagreement, or reduce it to the smallest graph that shows it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from irrun.diagnostics import IrrunError
from irrun.engines.engine import Engine
from irrun.fuzz.judging import Disagreement, Invalid, judge
from irrun.fuzz.known import NOT_REPEATED, described, explained
from irrun.fuzz.predicting import predicted
from irrun.fuzz.reducing import opened, reduced, single_layers, without
from irrun.growing.graphs import Graph

__all__ = ["Verdict", "explain"]

_MAX_ROUNDS: Final = 4
"""The most times that explained layers are taken out of a graph, whose rest is judged again."""


@dataclass(frozen=True)
class Verdict:
    """A disagreement with the names of what explains it; without names, with the smallest graph that shows it."""

    graph: Graph
    disagreement: Disagreement
    names: frozenset[str] = frozenset()


def explain(graph: Graph, found: Disagreement, engine: Engine | None) -> Verdict:
    """Return what explains a disagreement about a graph, or the smallest graph that nothing explains.

    Only an engine has departures: nothing explains a disagreement within irrun. A layer that is explained is taken out
    of the graph, and the engine's values take its place: what disagrees then needs an explanation of its own.
    """
    if found.judge != "engine":
        return _reduce(graph, _Again(found, engine))
    names: set[str] = set()
    first = Verdict(graph, found)
    for _ in range(_MAX_ROUNDS):
        layers = _explain_layers(graph, _Again(found, engine))
        if isinstance(layers, Verdict):
            return layers
        if not layers:
            whole = _explain_whole(graph, _Again(found, engine))
            return Verdict(first.graph, first.disagreement, whole.names | names) if whole.names else whole
        names |= {name for name, _ in layers.values()}
        rest = _rest(graph, found.call, {number: values for number, (_, values) in layers.items()}, engine)
        if rest is None:
            break
        graph, found = rest
    return Verdict(first.graph, first.disagreement, frozenset(names))


def _rest(
    graph: Graph, call: int, layers: Mapping[int, Sequence[np.ndarray] | None], engine: Engine | None
) -> tuple[Graph, Disagreement] | None:
    """Return the graph without some layers and the disagreement about it, or None if there is none.

    The engine's outputs of the layers take their place or, where the other layers refuse those, irrun's own.
    """
    for values in (layers, dict.fromkeys(layers)):
        rest = without(graph, call, values)
        try:
            found = None if rest is None else _judged(rest, engine)
        except Invalid:
            continue
        return None if rest is None or found is None else (rest, found)
    return None


def _judged(graph: Graph, engine: Engine | None) -> Disagreement | None:
    """Return the disagreement of an engine about a static graph, or about its dynamic form.

    Raises Invalid if irrun refuses both.
    """
    refusals = 0
    for form in (graph, opened(graph)):
        try:
            found = judge(form, engine)
        except (Invalid, IrrunError, ValueError, KeyError):
            refusals += 1
            continue
        if found is not None and found.judge == "engine":
            return found
    if refusals == 2:
        raise Invalid("irrun refuses what is left of a graph")
    return None


@dataclass(frozen=True)
class _Again:
    """Judges graphs, and looks for the disagreement that was found before."""

    found: Disagreement
    engine: Engine | None

    def judge(self, graph: Graph) -> Disagreement | None:
        """Return the disagreement about a graph if its judge is that of ``found``, and its kind is alike.

        A crash must come twice: for the first one, memory may be responsible that the graph before has overwritten.
        """
        found, engine = self.found, self.engine if self.found.judge == "engine" else None
        try:
            again = judge(graph, engine)
            if engine is not None and again is not None and again.kind == "crash":
                again = judge(graph, engine)
        except (Invalid, IrrunError, ValueError, KeyError):
            return None
        return again if again is not None and (again.judge, again.kind) == (found.judge, found.kind) else None


def _named(verdict: Verdict) -> Verdict:
    """Return a verdict with its explanation, if there is one."""
    graph, found = verdict.graph, verdict.disagreement
    name = predicted(graph, found) if found.kind == "values" else explained(described(graph, found))
    return Verdict(graph, found, frozenset([name] if name else []))


_Layers = Mapping[int, "tuple[str, Sequence[np.ndarray] | None]"]
"""The explanations of layers by number, with the outputs of the engine; None if it gives none."""


def _explain_layers(graph: Graph, again: _Again) -> _Layers | Verdict:
    """Judge each layer alone, with static dims, then with open ones.

    Return the explanations of all layers that disagree, or the verdict on the first one that nothing explains.
    """
    known: dict[int, tuple[str, Sequence[np.ndarray] | None]] = {}
    layers = list(single_layers(graph, again.found.call))
    for number, layer in [*layers, *((number, opened(layer)) for number, layer in layers)]:
        found = None if number in known else again.judge(layer)
        if found is None:
            continue
        verdict = _named(Verdict(layer, found))
        if not verdict.names:
            return verdict
        known[number] = next(iter(verdict.names)), found.outputs or None
    return known


def _explain_whole(graph: Graph, again: _Again) -> Verdict:
    """Return a verdict on layers that disagree only together."""
    if again.found.kind == "refusal" and (name := explained(f"refusal | {again.found.detail}")):
        return Verdict(graph, again.found, frozenset([name]))
    small = _reduce(graph, again)
    if small.graph is graph and again.found.kind in ("crash", "hang"):
        repeated = judge(graph, again.engine)
        if repeated is None or repeated.kind != again.found.kind:
            return Verdict(graph, again.found, frozenset([NOT_REPEATED]))
    return _named(small)


def _reduce(graph: Graph, again: _Again) -> Verdict:
    """Return the smallest graph with the disagreement."""
    last = again.found

    def fails(candidate: Graph) -> bool:
        nonlocal last
        disagreement = again.judge(candidate)
        last = disagreement or last
        return disagreement is not None

    return Verdict(reduced(graph, fails), last)
