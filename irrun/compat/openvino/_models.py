"""Models as they were read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import irrun.api as api
import irrun.build as build
from irrun.compat.openvino._building.layouts import Layout, axis_of
from irrun.compat.openvino._building.nodes import BuiltNode, BuiltOutput, LayerNode, unwrapped
from irrun.compat.openvino._building.opsets import Result
from irrun.compat.openvino._errors import NotCovered, OpenVINOError, say_once, translated
from irrun.compat.openvino._ports import ModelOutput, Ports, printed
from irrun.compat.openvino._shapes import Dimension, PartialShape
from irrun.diagnostics import IrrunError
from irrun.ir.write import save_model as ir_save_model
from irrun.model import Layer
from irrun.model import Model as Graph

__all__ = ["Model", "get_batch", "save_model", "serialize", "set_batch"]


class Model(Ports):
    """A model: read from a file, or built as ``Model(results, parameters, name)``, also with ``sinks`` (Assign).

    ``reshape`` changes the shapes of its inputs.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._layouts: dict[int, Layout] = {}
        if args and isinstance(args[0], Graph):
            graph = args[0]
        else:
            graph, self._layouts = _built(**_arguments(args, kwargs))
        self._name = self._friendly_name = graph.name
        self._take(graph)

    def _take(self, graph: Graph) -> None:
        try:
            self._executable = api.compile(graph)
        except IrrunError as error:
            raise translated(error) from error
        self._take_ports(self._executable, ModelOutput)
        for port in self.inputs:
            port._model = self

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

    def get_ops(self) -> list[LayerNode]:
        return [LayerNode(self._executable, layer) for layer in self._executable.model.layers.values()]

    def get_ordered_ops(self) -> list[LayerNode]:
        graph = self._executable.model
        return [LayerNode(self._executable, graph.layers[id]) for id in graph.order]

    def get_parameters(self) -> list[LayerNode]:
        return [
            ModelParameter(self, position, LayerNode(self._executable, layer))
            for position, layer in enumerate(self._executable.model.parameters)
        ]

    def get_results(self) -> list[LayerNode]:
        return [LayerNode(self._executable, layer) for layer in self._executable.model.results]

    parameters, results = property(get_parameters), property(get_results)

    def clone(self) -> Model:
        copy = Model(self._executable.model)
        copy.friendly_name = self.friendly_name
        copy._layouts = dict(self._layouts)
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

    def _port(self, key: Any) -> ModelOutput:
        """Return the input that a key of ``reshape`` denotes: a port, a name or a position."""
        if isinstance(key, ModelOutput):
            return key
        if not isinstance(key, (str, int)):
            raise TypeError(f"reshape finds an input by its port, name or position, not by {key!r}")
        return self.input(key)

    def __repr__(self) -> str:
        return printed(f"Model: '{self._friendly_name}'", self.inputs, self.outputs)


class ModelParameter(LayerNode):
    """A Parameter of a model. It also has a layout, which openvino keeps with the model."""

    def __init__(self, model: Model, position: int, node: LayerNode) -> None:
        super().__init__(node._executable, node._layer)
        self._model, self._position = model, position

    def get_layout(self) -> Layout:
        return self._model._layouts.get(self._position, Layout())

    def set_layout(self, layout: Layout) -> None:
        self._model._layouts[self._position] = layout

    layout = property(get_layout, set_layout)


def _arguments(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of ``Model`` by name. With three lists, the second one holds the sinks."""
    lists = [item for item in args if isinstance(item, (list, tuple))]
    parts = ("results", "sinks", "parameters") if len(lists) == 3 else ("results", "parameters")
    arguments = dict(zip((*parts, "name"), args)) | dict(kwargs)
    if not {"results", "parameters"} <= arguments.keys() <= {"results", "sinks", "parameters", "name"}:
        raise TypeError("a Model is made as Model(results, parameters, name), or with sinks after the results")
    return arguments


def _built(
    results: Any, parameters: Sequence[BuiltNode], sinks: Sequence[BuiltNode] = (), name: str = ""
) -> tuple[Graph, dict[int, Layout]]:
    """Return the model that nodes make up, and the layouts of its parameters."""
    items = list(results) if isinstance(results, (list, tuple)) else [results]
    outputs = [item._of if isinstance(item, Result) else unwrapped(item) for item in items]
    try:
        inputs, ends = [unwrapped(p) for p in parameters], [unwrapped(s) for s in sinks]
        graph = build.model(outputs, inputs=inputs, sinks=ends, name=name or "Model0")
    except IrrunError as error:
        raise translated(error) from error
    except ValueError as error:
        raise OpenVINOError(str(error)) from error
    layers = dict(graph.layers)
    for layer, node in zip(graph.parameters, parameters):
        layers[layer.id] = _named(layer, 0, BuiltOutput(node, 0).get_names() or {layer.name})
    for result, output in zip(graph.results, outputs):
        output = output.output if isinstance(output, build.Node) else output
        feed = graph.feeds[result.id][0]
        assert feed is not None
        names = BuiltNode(output.node).output(output.index).get_names() or {result.name}
        layers[feed[0]] = _named(layers[feed[0]], feed[1], names | set(layers[feed[0]].outputs[feed[1]].names))
    layouts = {i: node.get_layout() for i, node in enumerate(parameters) if not node.get_layout().empty}
    return replace(graph, layers=layers), layouts


def _named(layer: Layer, position: int, names: set[str]) -> Layer:
    """Return a layer whose output has other tensor names."""
    ports = list(layer.outputs)
    ports[position] = replace(ports[position], names=tuple(sorted(names)))
    return replace(layer, outputs=tuple(ports))


def get_batch(model: Model) -> Dimension:
    """Return the size of the dim N of the first input whose layout has one. Raises OpenVINOError if none has."""
    for position, port in enumerate(model.inputs):
        axis = axis_of(model._layouts.get(position, Layout()), "N", len(port.partial_shape))
        if axis is not None:
            return port.partial_shape[axis]
    help = "set one: model.get_parameters()[0].set_layout(Layout('NCHW'))"
    raise OpenVINOError(f"no input has a layout with the dim N; {help}")


def set_batch(model: Model, size: Any) -> None:
    """Reshape a model: the dim N of each input whose layout has one becomes ``size``."""
    get_batch(model)
    shapes: dict[Any, PartialShape] = {}
    for position, port in enumerate(model.inputs):
        shape = port.partial_shape
        axis = axis_of(model._layouts.get(position, Layout()), "N", len(shape))
        if axis is not None:
            shapes[position] = PartialShape([size if i == axis else shape[i] for i in range(len(shape))])
    model.reshape(shapes)


def serialize(model: Model, xml_path: Any, bin_path: Any = "", version: str = "UNSPECIFIED") -> None:
    """Write a model as .xml and .bin. ``version`` may be ``UNSPECIFIED`` or ``IR_V11``, which are the same."""
    if version not in ("UNSPECIFIED", "IR_V11"):
        raise NotCovered(f"serialize(version={version!r})", "IR_V11")
    graph = replace(model._executable.model, name=model.friendly_name)
    try:
        Path(xml_path).parent.mkdir(parents=True, exist_ok=True)  # as openvino does
        ir_save_model(graph, xml_path, bin_path or None)
    except IrrunError as error:
        raise translated(error) from error
    except OSError as error:
        raise OpenVINOError(f"cannot write {xml_path}: {error.strerror}") from error


def save_model(model: Model, output_model: Any, compress_to_fp16: bool = True) -> None:
    """Write a model as .xml and .bin. The weights stay as they are, where openvino stores f32 as f16 by default."""
    if compress_to_fp16:
        say_once("save_model(compress_to_fp16=True)", "irrun writes the weights as they are")
    serialize(model, output_model)


def _reshaped(parameter: Layer, shape: PartialShape) -> Layer:
    """Return a Parameter that declares another shape."""
    own = shape._own
    output = replace(parameter.outputs[0], shape=own)
    return replace(parameter, attributes={**parameter.attributes, "shape": str(own)[1:-1]}, outputs=(output,))
