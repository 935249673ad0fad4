"""Convert a model to an ONNX graph, layer by layer. This module knows no operation but Parameter, Const and Result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import onnx

from irrun.diagnostics import ModelError, Refused, UnsupportedError
from irrun.export import operations
from irrun.export.call import Call, State
from irrun.export.functions import Function, attributes_of, domain_of
from irrun.export.fusing import fuse
from irrun.export.graph import Constant, Graph, onnx_type
from irrun.export.operations.quantization import dequantized
from irrun.export.registry import Converter, converter_of
from irrun.inference.bind import bind_all
from irrun.inference.compressed import compressed_weights
from irrun.inference.layer import input_at
from irrun.inference.propagate import Values, propagate, refusal
from irrun.model import Layer, Model, is_constant
from irrun.model.weights import Weights
from irrun.opdef import Op, Value
from irrun.types import ELEMENT_TYPES, ElementType, PartialShape, Term

__all__ = ["Exported", "convert"]

assert operations  # importing it registers the converters

Output = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Exported:
    """A model of ONNX without its constants, which are read when the file is written.

    ``tensors`` are the names of the tensors that hold the outputs of layers. ``states`` are the variables of the model,
    and ``functions`` the layers that ONNX cannot say.
    """

    proto: onnx.ModelProto
    constants: Mapping[str, Constant]
    tensors: Mapping[Output, str]
    states: Mapping[str, State]
    functions: tuple[Function, ...] = ()


def convert(model: Model, opset: int, *, functions: bool = False) -> Exported:
    """Return the ONNX model that computes what ``model`` computes.

    With ``functions``, a layer that ONNX cannot say becomes a node of a domain of its own, unless it is in a body or
    has state. Otherwise, raises ModelError (IR610) for the first such layer. Raises UnsupportedError for an unknown
    operation.
    """
    graph = Graph(opset)
    exporter = _Exporter(model, graph, "", {}, functions=functions)
    dims = _Dims()
    inputs: list[Any] = []
    for parameter in model.parameters:
        value = exporter.values[parameter.id, 0]
        exporter.tensors[parameter.id, 0] = name = graph.fresh(parameter.name)
        with exporter.at(parameter):
            inputs.append(_info(name, value, opset, dims))
    exporter.layers()
    outputs: list[Any] = []
    for result in model.results:
        with exporter.at(result):
            outputs.append(_info(exporter.result(result), exporter.fed(result), opset, dims))
    for variable, state in exporter.states.items():
        with exporter.at(state.reader):
            inputs.append(_info(state.input, state.value, opset, dims))
            after = graph.add("Identity", [exporter.assigned.get(variable, state.input)], state.output)[0]
            outputs.append(_info(after, state.value, opset, dims))
    graph.drop_unused([output.name for output in outputs])
    fuse(graph, {output.name for output in outputs})
    foreign = exporter.foreign(dims, {output.name for output in outputs})
    body = onnx.helper.make_graph(graph.nodes, model.name or "model", inputs, outputs)
    domains = {"": opset} | {domain_of(function.layer): 1 for function in foreign}
    imports = [onnx.helper.make_opsetid(domain, version) for domain, version in domains.items()]
    proto = onnx.helper.make_model(body, producer_name="irrun", opset_imports=imports)
    proto.ir_version = onnx.helper.find_min_ir_version_for(imports[:1])
    used = _names(body)
    constants = {name: constant for name, constant in graph.shared.constants.items() if name in used}
    return Exported(proto, constants, exporter.tensors, exporter.states, foreign)


def _names(graph: onnx.GraphProto) -> set[str]:
    """Return all names that nodes read, bodies included, and those of outputs."""
    names = {output.name for output in graph.output}
    for node in graph.node:
        names.update(node.input)
        for attribute in node.attribute:
            names |= _names(attribute.g)
    return names


_NO_COUNTERPART: Final = "cut the layer out (irrun extract), or export it as a function (--functions)"


class _Dims:
    """Names of unknown dims: equal dims have one name."""

    def __init__(self) -> None:
        self.names: dict[Term, str] = {}

    def of(self, shape: PartialShape, name: str) -> list[int | str | None] | None:
        """Return the dims of a tensor: numbers, and names for the unknown ones. None for an unknown rank."""
        if shape.dims is None:
            return None
        dims: list[int | str | None] = []
        for axis, dim in enumerate(shape.dims):
            text = f"{name}[{axis}]"
            if dim.value is None and dim.term is not None:
                text = self.names.setdefault(dim.term, text)
            dims.append(text if dim.value is None else dim.value)
        return dims


def _info(name: str, value: Value, opset: int, dims: _Dims) -> Any:
    """Return the declaration of an input or output. Raises Refused (IR610) if ONNX cannot say it."""
    if value.shape.dims is None:
        message = f"the rank of {name} is not known, and ONNX wants it of inputs and outputs"
        raise Refused(message, code="IR610", help="export with a shape: --shape NAME=SHAPE")
    return onnx.helper.make_tensor_value_info(name, onnx_type(value.type, opset), dims.of(value.shape, name))


class _Exporter:
    """Converts the layers of a model, or of a body, into a graph.

    ``path`` is the path of the body, such as ``loop/``. ``tensors`` holds the name of the tensor of each output.
    """

    def __init__(
        self, model: Model, graph: Graph, path: str, states: dict[str, State], *, functions: bool = False
    ) -> None:
        self.model, self.graph, self.path, self.states = model, graph, path, states
        self.functions = functions
        self.calls: list[tuple[Layer, list[str]]] = []
        """The layers that are functions, with the tensors of their outputs."""
        self.assigned: dict[str, str] = {}
        self.ops: dict[int, Op] = {}
        for layer, op, problems in bind_all(model):
            if op is None:
                kind = UnsupportedError if any(p.code == "IR201" for p in problems) else ModelError
                raise kind(problems)
            self.ops[layer.id] = op
        self.values: Values = {}
        propagate(model, self.ops, self._settle, self.values, {})
        self.tensors: dict[Output, str] = {}
        self.unsayable: dict[Output, tuple[Layer, Refused]] = {}
        """Constants of types that ONNX does not have. Compressed weights are stored in other ways."""
        self.compressed = {w.output[0]: w for w in compressed_weights(model) if not w.quantized}

    def _settle(self, layer: Layer, inferred: tuple[Value, ...] | Exception) -> Sequence[Value]:
        """Return the inferred outputs of a layer. Raises ModelError if a layer refuses its inputs."""
        if isinstance(inferred, Refused):
            raise ModelError(refusal(self.model, layer, self.ops[layer.id], inferred))
        if isinstance(inferred, Exception):
            raise inferred
        return inferred

    def at(self, layer: Layer) -> _At:
        """Turn a Refused within the ``with`` block to an error at a layer."""
        return _At(self.model, layer, self.ops[layer.id])

    def layers(self) -> None:
        """Convert all layers but Parameters, for which ``tensors`` has names, and Results."""
        for id in self.model.order:
            layer = self.model.layers[id]
            if layer.type.lower() in ("parameter", "result"):
                continue
            with self.at(layer):
                self._layer(layer)

    def fed(self, result: Layer) -> Value:
        """Return what is known of the value that a Result reads."""
        feed = self.model.feeds[result.id][0]
        assert feed is not None
        return self.values[feed]

    def result(self, result: Layer) -> str:
        """Return the name of an output of the graph: a tensor of its own, named after the Result."""
        feed = self.model.feeds[result.id][0]
        assert feed is not None
        self._require(feed)
        tensor, name = self.tensors[feed], self.model.result_name(result)
        made = self.graph.producer(tensor) is not None
        first = next(r for r in self.model.results if self.model.feeds[r.id][0] == feed)
        if made and tensor == name and first is result:
            return tensor
        return self.graph.add("Identity", [tensor], name)[0]

    def _layer(self, layer: Layer) -> None:
        wishes = [self._wish(layer, position) for position in range(len(layer.outputs))]
        outputs = [self.values[layer.id, position] for position in range(len(layer.outputs))]
        if is_constant(layer):
            op, weights = self.ops[layer.id], self.model.weights
            try:
                self.tensors[layer.id, 0] = _stored(self.graph, op, outputs[0], weights, wishes[0])
            except Refused as refused:
                self.unsayable[layer.id, 0] = layer, refused
            return
        start = len(self.graph.nodes)
        if made := self._dequantized(layer, outputs):
            self.tensors[layer.id, 0] = self.graph.rename(start, made, wishes[0])
            return
        known = [value.exact for value in outputs]
        if outputs and all(data is not None for data in known):
            for position, (data, value) in enumerate(zip(known, outputs)):
                assert data is not None
                self.tensors[layer.id, position] = self.graph.constant(data, value.type, wishes[position])
            return
        if outputs and all(value.shape.count().hi == 0 and value.shape.is_static for value in outputs):
            for position, value in enumerate(outputs):
                empty = np.empty(value.shape.static or (), value.type.dtype)
                self.tensors[layer.id, position] = self.graph.constant(empty, value.type, wishes[position])
            return
        try:
            made = self._converted(layer, outputs)
        except Refused:
            self.graph.forget(start)
            if not self.functions or layer.bodies or not self.ops[layer.id].pure:
                raise
            for position, name in enumerate(self._function(layer, outputs)):
                self.tensors[layer.id, position] = name
            return
        produced = {name for node in self.graph.nodes[start:] for name in node.output}
        for position, name in enumerate(made[: len(layer.outputs)]):
            if name in produced:
                produced.discard(name)
                name = self.graph.rename(start, name, wishes[position])
            self.tensors[layer.id, position] = name

    def _wish(self, layer: Layer, position: int) -> str:
        """Return the name that the tensor of an output should have: that of the model's output, of the port, or of the
        layer."""
        for id, _ in self.model.readers.get((layer.id, position), ()):
            if self.model.layers[id].type.lower() == "result" and not self.path:
                return self.model.result_name(self.model.layers[id])
        names = layer.outputs[position].names
        return self.path + (names[0] if names else self.model.output_name(layer.id, position))

    def _require(self, feed: Output) -> None:
        """Raise ModelError (IR610) for a constant that ONNX cannot say."""
        if feed in self.unsayable:
            constant, refused = self.unsayable[feed]
            raise ModelError(refusal(self.model, constant, self.ops[constant.id], refused))

    def _tensor(self, feed: Output) -> str | None:
        """Return the tensor of an output; None for a constant that ONNX cannot say."""
        return None if feed in self.unsayable else self.tensors[feed]

    def _call(self, layer: Layer, outputs: list[Value], type: ElementType) -> Call:
        """Return a layer as its converter sees it."""
        feeds = self.model.feeds[layer.id]
        read = frozenset(n for n in range(len(outputs)) if (layer.id, n) in self.model.readers)
        return Call(
            layer, self.ops[layer.id], self.graph, self.path + self.model.unique_names[layer.id],
            [None if feed is None else self._tensor(feed) for feed in feeds],
            [None if feed is None else self.values[feed] for feed in feeds], outputs, type, self._body(layer),
            self.states, self.assigned, read, bool(self.path),
            [feed is not None and len(self.model.readers[feed]) == 1 for feed in feeds],
        )  # fmt: skip

    def _dequantized(self, layer: Layer, outputs: list[Value]) -> str | None:
        """Return the tensor of compressed weights that end with a layer; None for another layer."""
        weights = self.compressed.get(layer.id)
        if weights is None:
            return None
        return dequantized(self._call(layer, outputs, outputs[0].type), weights, self.model)

    def _function(self, layer: Layer, outputs: list[Value]) -> list[str]:
        """Add the node of a layer that is a function, and return the names of its outputs."""
        for feed in filter(None, self.model.feeds[layer.id]):
            self._require(feed)
        feeds = [None if feed is None else self.tensors[feed] for feed in self.model.feeds[layer.id]]
        op, name = self.ops[layer.id], f"{self.model.unique_names[layer.id]}/{layer.type}"
        given = attributes_of(op)
        made = self.graph.add(
            op.type, [feed or "" for feed in feeds], name, len(outputs), domain=domain_of(layer), **given
        )
        self.calls.append((layer, made))
        return made

    def foreign(self, dims: _Dims, shown: set[str]) -> tuple[Function, ...]:
        """Return the functions that the graph calls, whose outputs have the names ``shown``.

        Raises ModelError (IR610) for a tensor whose rank is unknown.
        """
        functions: list[Function] = []
        shown |= {name for _, names in self.calls for name in names}
        for layer, names in self.calls:
            if not any(self.graph.producer(name) in self.graph.nodes for name in names):
                continue  # nobody reads it
            inputs: list[tuple[Output, Any]] = []
            with self.at(layer):
                for feed in filter(None, self.model.feeds[layer.id]):
                    tensor = self.tensors[feed]
                    if self.graph.producer(tensor) is not None and tensor not in shown:
                        shown.add(tensor)
                        inputs.append((feed, _info(tensor, self.values[feed], self.graph.opset, dims)))
                outputs = [
                    _info(name, self.values[layer.id, position], self.graph.opset, dims)
                    for position, name in enumerate(names)
                ]
            functions.append(Function(layer, tuple(inputs), tuple(outputs)))
        return tuple(functions)

    def _converted(self, layer: Layer, outputs: list[Value]) -> list[str]:
        """Add the nodes of a layer, and return the names of its outputs."""
        converter = converter_of(self.ops[layer.id].type)
        if converter is None:
            raise Refused("has no counterpart in ONNX", code="IR610", help=_NO_COUNTERPART)
        feeds = self.model.feeds[layer.id]
        for feed in filter(None, feeds):
            self._require(feed)
        feed = feeds[converter.carrier] if converter.carrier < len(feeds) else None
        own = self.values[feed].type if feed is not None else outputs[0].type if outputs else ELEMENT_TYPES["dynamic"]
        wide = converter.computed_in(own)
        call = self._call(layer, outputs, wide or own)
        if wide is None:
            call.refuse(f"ONNX runtimes have no kernel for {own}, and none that holds its values")
        if wide is own:
            made = converter.function(call)
            return [made] if isinstance(made, str) else made
        return self._widened(call, converter, own, wide)

    def _widened(self, call: Call, converter: Converter, own: ElementType, wide: ElementType) -> list[str]:
        """Convert a layer that computes in a wider type than its own."""
        variable = input_at(call.op.inputs, converter.carrier)
        for position, value in enumerate(call.values):
            port = input_at(call.op.inputs, position)
            if value is not None and port and variable and port.type == variable.type and value.type is own:
                data = value.data
                call.values[position] = Value(wide, value.shape, None if data is None else data.astype(wide.dtype))
                if data is not None and data.dtype != object:
                    call.inputs[position] = self.graph.constant(data.astype(wide.dtype), wide)
                else:
                    call.inputs[position] = call.cast(call.input(position), wide)
        made = converter.function(call)
        names = [made] if isinstance(made, str) else made
        return [call.cast(name, own) if value.type is own else name for name, value in zip(names, call.outputs)]

    def _body(self, layer: Layer) -> Any:
        """Return a function that converts a body of ``layer`` into a graph.

        It takes the name of the body's element, the tensor of each Parameter by layer id, and the graph. It returns the
        tensor of each Result by layer id.
        """

        def body(tag: str, given: Mapping[int, str], graph: Graph) -> dict[int, str]:
            model = layer.bodies[tag]
            inner = _Exporter(model, graph, f"{self.path}{self.model.unique_names[layer.id]}/", self.states)
            inner.tensors |= {(id, 0): name for id, name in given.items()}
            inner.layers()
            results: dict[int, str] = {}
            for result in model.results:
                feed = model.feeds[result.id][0]
                assert feed is not None
                inner._require(feed)
                results[result.id] = inner.tensors[feed]
            return results

        return body


class _At:
    """The place of a layer: a Refused within its ``with`` block becomes an error there."""

    def __init__(self, model: Model, layer: Layer, op: Op) -> None:
        self.model, self.layer, self.op = model, layer, op

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: object, error: BaseException | None, *__: object) -> None:
        if isinstance(error, Refused):
            raise ModelError(refusal(self.model, self.layer, self.op, error)) from None


def _stored(graph: Graph, op: Any, value: Value, weights: Weights | None, wish: str) -> str:
    """Return the name of a constant whose bytes are those of the .bin."""
    type, shape = value.type, value.shape.static or ()
    if weights is None or type.kind == "string" or type.kind == "boolean" or value.shape.count().value == 0:
        return graph.constant(op.run(weights=weights, element_type=type), type, wish)
    count = int(np.prod(shape, dtype=np.int64))
    raw = weights.require(op.offset, op.size, type, shape)
    return graph.lazy(Constant(type, shape, type.nbytes(count), lambda: raw), wish)
