"""What a side runs of a file: the result of ``irrun.debug.runtime``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from irrun.debug.runtime.placing import Inserted, LayerRun
from irrun.engines import RunNode, RuntimeGraph
from irrun.model import Model

__all__ = ["Fusion", "Runtime"]


@dataclass(frozen=True, slots=True)
class Fusion:
    """A part of a file that resembles a pattern which plugins fuse.

    ``layer`` is the name of its last layer, on ``line``, and ``layers`` are those of all. ``condition`` is the first
    condition of the pattern that the file does not meet, and ``found`` what it has instead; both are empty if it meets
    all that irrun knows. ``becomes`` says what a plugin makes of the pattern.
    """

    pattern: str
    becomes: str
    layer: str
    line: int
    layers: tuple[str, ...]
    fused: bool
    condition: str = ""
    found: str = ""

    def record(self) -> dict[str, Any]:
        """Return the fusion as a dict for JSON."""
        return {
            "pattern": self.pattern, "becomes": self.becomes, "layer": self.layer, "line": self.line,
            "layers": list(self.layers), "fused": self.fused, "condition": self.condition, "found": self.found,
        }  # fmt: skip


@dataclass(frozen=True)
class Runtime:
    """The graph that a side runs, beside the file.

    ``layers`` are those of the file but constants, ``inserted`` the nodes that compute no layer of the file.
    """

    side: str
    engine: str
    model: Model
    graph: RuntimeGraph
    layers: tuple[LayerRun, ...]
    inserted: tuple[Inserted, ...]
    fusions: tuple[Fusion, ...]

    @property
    def path(self) -> str:
        """The path of the file, or the name of a model without one."""
        return self.model.source.path or self.model.name

    @cached_property
    def by_name(self) -> Mapping[str, LayerRun]:
        """The layers by their unique names."""
        return {layer.name: layer for layer in self.layers}

    @cached_property
    def microseconds(self) -> float:
        """The sum of the times of all nodes."""
        return sum(node.time for node in self.graph.nodes)

    def share(self, node: RunNode) -> float:
        """Return the share of a node in the time of all nodes."""
        return node.time / self.microseconds if self.microseconds else 0.0

    @cached_property
    def executed(self) -> tuple[RunNode, ...]:
        """The nodes that a run executes. A node that only renames memory, such as Reshape, is not executed."""
        return tuple(node for node in self.graph.nodes if node.microseconds)

    def counts(self, of: str) -> dict[str, int]:
        """Return how many layers of the file are in each state, or run in each precision (``of``)."""
        found: dict[str, int] = {}
        for layer in self.layers:
            texts = (layer.state,) if of == "state" else layer.precisions[-1:] if layer.computes else ()
            for text in texts:
                found[text] = found.get(text, 0) + 1
        return dict(sorted(found.items(), key=lambda row: -row[1]))

    def record(self) -> dict[str, Any]:
        """Return the result as a dict for JSON."""
        return {
            "side": self.side,
            "engine": self.engine,
            "model": self.path,
            "properties": dict(self.graph.properties),
            "runs": self.graph.runs,
            "microseconds": self.microseconds,
            "summary": {
                "layers": len(self.layers),
                "nodes": len(self.executed),
                "states": self.counts("state"),
                "precisions": self.counts("precision"),
            },
            "layers": [layer.record() for layer in self.layers],
            "inserted": [item.record() for item in self.inserted],
            "fusions": [fusion.record() for fusion in self.fusions],
            "nodes": [{**node.record(), "share": self.share(node)} for node in self.graph.nodes],
        }
