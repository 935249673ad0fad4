"""Nodes, their outputs, and graphs of nodes: the form of a model while it is being built."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from irrun.build._errors import bad_call
from irrun.model import Layer
from irrun.opdef import Value
from irrun.types import ElementType, PartialShape

__all__ = ["Graph", "Node", "Output", "new_layer"]


@dataclass(frozen=True, eq=False)
class Output:
    """One output of a node. Pass it to other operations as an input."""

    node: Node
    index: int

    @property
    def value(self) -> Value:
        """What is known of the output: element type, shape and, if they can be inferred, contents."""
        return self.node.values[self.index]

    @property
    def type(self) -> ElementType:
        """The element type."""
        return self.value.type

    @property
    def shape(self) -> PartialShape:
        """The inferred shape."""
        return self.value.shape

    def __repr__(self) -> str:
        return f"{self.node.layer.type}: {self.type}{self.shape}"


@dataclass(eq=False)
class Node(Sequence[Output]):
    """A layer that is being built: a sequence of its outputs. A node with one output can be used as this output."""

    layer: Layer
    """The layer without ports and id, and without a name if the caller chose none: ``model`` adds them."""
    inputs: tuple[Output, ...]
    values: tuple[Value, ...] = ()
    """The inferred outputs."""
    data: np.ndarray | None = None
    """The contents of a constant; None for any other node."""
    bodies: Mapping[str, Graph] = field(default_factory=dict)
    """The bodies of an If, Loop or TensorIterator, by the name of their element in the IR."""
    serial: int = field(default_factory=itertools.count().__next__)
    """A number that grows with each node. The producers of its inputs have smaller numbers."""

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, index: Any) -> Any:
        return [Output(self, i) for i in range(len(self))][index]

    @property
    def output(self) -> Output:
        """The only output. Raises BuildError if there are several."""
        if len(self) != 1:
            raise bad_call(f"{self.layer.type} has {len(self)} outputs; choose one by its index")
        return Output(self, 0)

    @property
    def type(self) -> ElementType:
        """The element type of the only output."""
        return self.output.type

    @property
    def shape(self) -> PartialShape:
        """The inferred shape of the only output."""
        return self.output.shape

    def __repr__(self) -> str:
        return f"{self.layer.type}({', '.join(f'{v.type}{v.shape}' for v in self.values)})"


@dataclass(frozen=True, eq=False)
class Graph:
    """The nodes that compute the results of a model or of a body.

    The id of a layer is the position of its node in ``nodes``, where the parameters come first. The ids of the Results
    follow.
    """

    nodes: tuple[Node, ...]
    results: tuple[Output, ...]

    @staticmethod
    def of(
        parameters: Sequence[Node] | None, results: Sequence[Output], owner: str | None, sinks: Sequence[Node] = ()
    ) -> Graph:
        """Return the graph of all nodes on which ``results`` and ``sinks`` depend.

        ``parameters`` are its parameters in order; if None, all that it uses, in the order of their creation. ``owner``
        is the type of the layer to which a body belongs, and None for the graph of a model. Raises BuildError if the
        graph uses a parameter that is not among ``parameters``.
        """
        nodes = _ancestors([*(result.node for result in results), *sinks])
        used = [node for node in nodes if node.layer.type == "Parameter"]
        own = used if parameters is None else list(parameters)
        _require_parameters(used, own, owner)
        return Graph((*own, *(node for node in nodes if node.layer.type != "Parameter")), tuple(results))

    @cached_property
    def ids(self) -> dict[int, int]:
        """The layer id of each node, by the ``id()`` of the node."""
        return {id(node): number for number, node in enumerate(self.nodes)}

    def result(self, position: int) -> int:
        """Return the id of the Result at ``position``."""
        return len(self.nodes) + position


def new_layer(type: str, name: str | None, attributes: Mapping[str, str], since: int | None = 1, **more: Any) -> Layer:
    """Return a layer without ports and id.

    ``since`` is the opset of the operation, or None for a custom operation. ``more`` holds further fields of Layer.
    """
    version = "extension" if since is None else f"opset{since}"
    return Layer(-1, name or "", type, version, attributes, (), (), -1, **more)


def _ancestors(ends: Sequence[Node]) -> list[Node]:
    """Return ``ends`` and all nodes on which they depend, in the order of their creation."""
    nodes: dict[int, Node] = {}
    stack = list(ends)
    while stack:
        node = stack.pop()
        if id(node) not in nodes:
            nodes[id(node)] = node
            stack += (output.node for output in node.inputs)
    return sorted(nodes.values(), key=lambda node: node.serial)


def _require_parameters(used: Sequence[Node], parameters: Sequence[Node], owner: str | None) -> None:
    """Raise ValueError if a parameter that a graph uses is not among ``parameters``."""
    for node in used:
        if any(node is parameter for parameter in parameters):
            continue
        which = f'parameter "{node.layer.name}"' if node.layer.name else "a parameter"
        if owner is None:
            raise bad_call(f"the outputs depend on {which}, which is not among the inputs; add it to inputs")
        raise bad_call(
            f"the body of {owner} uses {which} of the model around it; pass it to {owner} as an input, and use the "
            "parameter of the body instead"
        )
