"""Models as they were read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import irrun.api as api
from irrun.compat.openvino._errors import NotCovered, translated
from irrun.compat.openvino._ports import Node, Output, Ports
from irrun.compat.openvino._shapes import PartialShape
from irrun.diagnostics import IrrunError
from irrun.model import Layer
from irrun.model import Model as Graph

__all__ = ["Model"]


class Model(Ports):
    """A model as it was read. ``reshape`` changes the shapes of its inputs."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        graph = args[0] if args else None
        if not isinstance(graph, Graph):
            raise NotCovered("building a Model")
        self._name = self._friendly_name = graph.name
        self._take(graph)

    def _take(self, graph: Graph) -> None:
        try:
            self._executable = api.compile(graph)
        except IrrunError as error:
            raise translated(error) from error
        self._take_ports(self._executable, Output)

    name = property(lambda self: self._name)
    dynamic = property(lambda self: self.is_dynamic())

    def get_name(self) -> str:
        return self._name

    def get_friendly_name(self) -> str:
        return self._friendly_name

    def set_friendly_name(self, name: str) -> None:
        if not isinstance(name, str):
            raise TypeError(f"the name of a model is a str, not {type(name).__name__}")
        self._friendly_name = name

    friendly_name = property(get_friendly_name, set_friendly_name)

    def is_dynamic(self) -> bool:
        return any(not v.shape.is_static for v in self._executable.plan.values.values())

    def get_ops(self) -> list[Node]:
        return [Node(layer) for layer in self._executable.model.layers.values()]

    def get_ordered_ops(self) -> list[Node]:
        graph = self._executable.model
        return [Node(graph.layers[id]) for id in graph.order]

    def get_parameters(self) -> list[Node]:
        return [Node(layer) for layer in self._executable.model.parameters]

    def get_results(self) -> list[Node]:
        return [Node(layer) for layer in self._executable.model.results]

    parameters, results = property(get_parameters), property(get_results)

    def clone(self) -> Model:
        copy = Model(self._executable.model)
        copy.friendly_name = self.friendly_name
        return copy

    def reshape(self, shapes: Any, variables_shapes: Any = None) -> None:
        """Change the shapes of inputs and infer the model again.

        ``shapes`` is the shape of the only input, or a mapping from names, positions or ports to shapes. Raises
        OpenVINOError if the model cannot take the shapes.
        """
        if variables_shapes:
            raise NotCovered("Model.reshape(variables_shapes=…)")
        by_port = (
            {self._port(k): s for k, s in shapes.items()} if isinstance(shapes, Mapping) else {self.input(): shapes}
        )
        graph = self._executable.model
        layers = dict(graph.layers)
        for port, shape in by_port.items():
            layers[port._layer.id] = _reshaped(layers[port._layer.id], PartialShape(shape))
        self._take(replace(graph, layers=layers))

    def _port(self, key: Any) -> Output:
        """Return the input that a key of ``reshape`` denotes: a port, a name or a position."""
        if isinstance(key, Output):
            return key
        if not isinstance(key, (str, int)):
            raise TypeError(f"reshape finds an input by its port, name or position, not by {key!r}")
        return self.input(key)


def _reshaped(parameter: Layer, shape: PartialShape) -> Layer:
    """Return a Parameter that declares another shape."""
    own = shape._own
    output = replace(parameter.outputs[0], shape=own)
    return replace(parameter, attributes={**parameter.attributes, "shape": str(own)[1:-1]}, outputs=(output,))
