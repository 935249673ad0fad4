"""Explain a disagreement, or reduce it to the smallest graph that shows it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from irrun.diagnostics import IrrunError
from irrun.engines.engine import Engine
from irrun.fuzz.judging import Disagreement, Invalid, judge
from irrun.fuzz.known import NOT_REPEATED, described, explained
from irrun.fuzz.reducing import opened, reduced, single_layers
from irrun.growing.graphs import Graph

__all__ = ["Verdict", "explain"]


@dataclass(frozen=True)
class Verdict:
    """A disagreement with the names of what explains it; without names, with the smallest graph that shows it."""

    graph: Graph
    disagreement: Disagreement
    names: frozenset[str] = frozenset()


def explain(graph: Graph, found: Disagreement, engine: Engine | None) -> Verdict:
    """Return what explains a disagreement about a graph, or the smallest graph that nothing explains.

    Only an engine has departures. Of irrun, what is known about ``check`` explains.
    """
    again = _Again(found, engine)
    if found.judge != "engine":
        small = _reduce(graph, again)
        return _by_line(small) if small.disagreement.judge == "check" else small
    if found.kind == "refusal" and (name := explained(f"refusal | {found.detail}")):
        return Verdict(graph, found, frozenset([name]))
    return _explain_layers(graph, again) or _explain_whole(graph, again)


@dataclass(frozen=True)
class _Again:
    """Judges graphs, and looks for the disagreement that was found before."""

    found: Disagreement
    engine: Engine | None

    def judge(self, graph: Graph) -> Disagreement | None:
        """Return the disagreement about a graph if its judge and its kind are those of ``found``.

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


def _by_line(verdict: Verdict) -> Verdict:
    """Return a verdict with the explanation of its description, if there is one."""
    name = explained(described(verdict.graph, verdict.disagreement))
    return Verdict(verdict.graph, verdict.disagreement, frozenset([name] if name else []))


def _explain_layers(graph: Graph, again: _Again) -> Verdict | None:
    """Judge each layer alone, with static dims, then with open ones. Return None if none disagrees."""
    layers = list(single_layers(graph, again.found.call))
    return _explain_alone(graph, layers, again) or _explain_alone(graph, map(opened, layers), again)


def _explain_alone(graph: Graph, layers: Iterable[Graph], again: _Again) -> Verdict | None:
    """Return the first layer that disagrees without an explanation, or the explanations of all that disagree."""
    names: set[str] = set()
    for layer in layers:
        disagreement = again.judge(layer)
        if disagreement is None:
            continue
        verdict = _by_line(Verdict(layer, disagreement))
        if not verdict.names:
            return verdict
        names |= verdict.names
    return Verdict(graph, again.found, frozenset(names)) if names else None


def _explain_whole(graph: Graph, again: _Again) -> Verdict:
    """Return a verdict on layers that disagree only together."""
    small = _reduce(graph, again)
    if small.graph is graph and again.found.kind in ("crash", "hang"):
        repeated = judge(graph, again.engine)
        if repeated is None or repeated.kind != again.found.kind:
            return Verdict(graph, again.found, frozenset([NOT_REPEATED]))
    return _by_line(small)


def _reduce(graph: Graph, again: _Again) -> Verdict:
    """Return the smallest graph with the disagreement."""
    last = again.found

    def fails(candidate: Graph) -> bool:
        nonlocal last
        disagreement = again.judge(candidate)
        last = disagreement or last
        return disagreement is not None

    return Verdict(reduced(graph, fails), last)
