"""The graph that an engine runs: the nodes that its compiler has made of the layers of a model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import median
from typing import Any, Final

__all__ = ["RunNode", "RunOutput", "RuntimeGraph"]

_FLOATS: Final = ("f16", "bf16", "f32", "f64")


@dataclass(frozen=True, slots=True)
class RunOutput:
    """An output of a node: its element type, and its layout as the engine writes it (``abcd``, ``acdb``)."""

    type: str
    layout: str


@dataclass(frozen=True, slots=True)
class RunNode:
    """A node of a runtime graph.

    ``type`` is that of the engine, such as ``FullyConnected``. ``layers`` are the names of the layers that the engine
    says the node computes; an engine also invents names, and does not name all layers. ``inputs`` are the producers:
    the name of a node, and the position of its output. ``precision`` is the element type in which the node computes,
    ``primitive`` the kernel, and ``order`` the position in the order of a run. ``microseconds`` are the times of the
    runs. They are empty if the engine measures none: it does not execute the node, or the node takes too little time.
    """

    name: str
    type: str
    layers: tuple[str, ...]
    inputs: tuple[tuple[str, int], ...]
    outputs: tuple[RunOutput, ...]
    precision: str
    primitive: str
    order: int
    microseconds: tuple[float, ...] = ()

    @property
    def computes_in(self) -> str:
        """The element type of the arithmetic. A mask in u8 makes OpenVINO call a node u8 whose kernel computes in f32,
        and so do weights in u8 that the kernel decompresses."""
        suffix = self.primitive.rpartition("_")[2]
        return suffix if self.precision not in _FLOATS and suffix in _FLOATS else self.precision

    @property
    def time(self) -> float:
        """The median of the times of the runs in microseconds, 0 for a node of which no time is measured."""
        return median(self.microseconds) if self.microseconds else 0.0

    def record(self) -> dict[str, Any]:
        """Return the node as a dict for JSON, as a harness sends it."""
        return {
            "name": self.name, "type": self.type, "layers": list(self.layers),
            "inputs": [list(input) for input in self.inputs],
            "outputs": [{"type": output.type, "layout": output.layout} for output in self.outputs],
            "precision": self.precision, "primitive": self.primitive, "order": self.order,
            "microseconds": list(self.microseconds),
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class RuntimeGraph:
    """The nodes that an engine runs, in the order of a run, and how many runs were timed.

    ``properties`` are those in effect for this model, which may set some itself (``rt_info/runtime_options``).
    """

    nodes: tuple[RunNode, ...]
    runs: int
    properties: Mapping[str, str] = field(default_factory=dict)

    @staticmethod
    def of(answer: Mapping[str, Any], runs: int) -> RuntimeGraph:
        """Return the graph in the answer of a harness. Raises KeyError, TypeError, ValueError or AttributeError."""
        nodes = sorted(map(_node, answer["nodes"]), key=lambda node: node.order)
        properties = {str(name): str(text) for name, text in dict(answer.get("properties", {})).items()}
        return RuntimeGraph(tuple(nodes), runs, properties)


def _node(record: Mapping[str, Any]) -> RunNode:
    return RunNode(
        str(record["name"]),
        str(record["type"]),
        tuple(map(str, record["layers"])),
        tuple((str(name), int(position)) for name, position in record["inputs"]),
        tuple(RunOutput(str(output["type"]), str(output["layout"])) for output in record["outputs"]),
        str(record["precision"]),
        str(record["primitive"]),
        int(record["order"]),
        tuple(map(float, record["microseconds"])),
    )
