"""A pattern of layers that plugins compute as one node: how to find it, and the conditions that it must meet."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from irrun.debug.runtime.layers import FileGraph, FileLayer
from irrun.debug.runtime.placing import LayerRun
from irrun.engines import RunNode

__all__ = ["Condition", "Match", "Pattern", "Runs", "named_as", "names", "shown"]


@dataclass(frozen=True, slots=True)
class Match:
    """A part of a file that resembles a pattern: its layers by their roles. ``last`` computes the result."""

    last: FileLayer
    roles: Mapping[str, FileLayer]


@dataclass(frozen=True, slots=True)
class Condition:
    """What a file must meet, as a sentence. ``broken`` returns what the file has instead, or an empty text."""

    text: str
    broken: Callable[[FileGraph, Match], str]


@dataclass(frozen=True)
class Runs:
    """What has become of each layer, by id, and the nodes of the runtime graph by name."""

    layers: Mapping[int, LayerRun]
    nodes: Mapping[str, RunNode]

    def of(self, layer: FileLayer) -> tuple[RunNode, ...]:
        """Return the nodes that compute a layer."""
        run = self.layers.get(layer.layer.id)
        return () if run is None else run.nodes

    def is_named(self, layer: FileLayer) -> bool:
        """Return whether the engine names a node after a layer."""
        run = self.layers.get(layer.layer.id)
        return run is not None and run.state == "named"


@dataclass(frozen=True, slots=True)
class Pattern:
    """A pattern: how to find what resembles it, the conditions in order, and whether a match runs as one node.

    ``becomes`` describes the fused node in words.
    """

    name: str
    becomes: str
    find: Callable[[FileGraph, FileLayer], Match | None]
    conditions: tuple[Condition, ...]
    is_fused: Callable[[Match, Runs], bool]

    anchor: str = "last"
    """The role of a layer that belongs to one match. Of several matches, one that meets the conditions counts."""

    def matches(self, graph: FileGraph) -> list[Match]:
        """Return each part of a file that resembles the pattern, in the order of a run."""
        found: dict[int, Match] = {}
        for layer in graph:
            match = self.find(graph, layer)
            if match is None:
                continue
            key = match.roles[self.anchor].layer.id
            if key not in found or self.unmet(graph, found[key]) is not None:
                found[key] = match
        return list(found.values())

    def unmet(self, graph: FileGraph, match: Match) -> tuple[Condition, str] | None:
        """Return the first condition that a match does not meet, and what the file has instead."""
        for condition in self.conditions:
            if found := condition.broken(graph, match):
                return condition, found
        return None


def shown(number: float | None) -> str:
    return "no constant" if number is None else f"{number:g}"


def named_as(type: str) -> Callable[[Match, Runs], bool]:
    """Return the test whether a node of a type computes the last layer."""
    return lambda match, runs: any(node.type == type for node in runs.of(match.last))


def names(graph: FileGraph, slots: Sequence[int]) -> str:
    """Return the names of the layers that fill slots."""
    return ", ".join(map(graph.called, slots)) or "a constant"
