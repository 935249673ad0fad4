"""What a side runs of a file: the result of ``irrun.debug.runtime``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from irrun.debug.runtime.placing import Inserted, LayerRun, running
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
        """The nodes that a run executes: all but inputs, outputs, constants and nodes that only read constants."""
        return running(self.graph)

    @cached_property
    def added(self) -> tuple[Inserted, ...]:
        """The executed nodes that compute no layer of the file."""
        return tuple(item for item in self.inserted if not item.before_run)

    @cached_property
    def summary(self) -> Mapping[str, Any]:
        """Numbers of layers and nodes that add up.

        ``layers``, all of the file, are the ``constants``, the ``ports`` (inputs and outputs) and those of all
        ``states``. Nodes compute ``computed`` layers, which are those of all ``precisions``: a layer in several nodes
        counts in the precision of the last. A run executes ``nodes``: ``of_layers`` compute layers of the file, and
        those of all types in ``inserted`` compute none.
        """
        inner = [layer for layer in self.layers if not layer.is_port]
        computed = [layer for layer in inner if layer.computes]
        return {
            "layers": len(self.model.layers),
            "constants": len(self.model.layers) - len(self.layers),
            "ports": len(self.layers) - len(inner),
            "states": _counts(layer.state for layer in inner),
            "computed": len(computed),
            "precisions": _counts(layer.precisions[-1] for layer in computed),
            "nodes": len(self.executed),
            "of_layers": len(self.executed) - len(self.added),
            "inserted": _counts(item.node.type for item in self.added),
        }

    def record(self) -> dict[str, Any]:
        """Return the result as a dict for JSON."""
        return {
            "side": self.side,
            "engine": self.engine,
            "model": self.path,
            "properties": dict(self.graph.properties),
            "runs": self.graph.runs,
            "microseconds": self.microseconds,
            "summary": dict(self.summary),
            "layers": [layer.record() for layer in self.layers],
            "inserted": [item.record() for item in self.inserted],
            "fusions": [fusion.record() for fusion in self.fusions],
            "nodes": [{**node.record(), "share": self.share(node)} for node in self.graph.nodes],
        }


def _counts(texts: Iterable[str]) -> dict[str, int]:
    """Return how often each text occurs, the most frequent first."""
    return dict(Counter(texts).most_common())
