"""If, Loop and TensorIterator."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import onnx

from irrun.export.call import Call
from irrun.export.graph import Graph, onnx_type
from irrun.export.registry import converts
from irrun.model import MapEntry
from irrun.types import ELEMENT_TYPES, ElementType

__all__: list[str] = []

_ENDLESS: Final = (1 << 63) - 1
"""The trip count of a Loop without a limit."""


def _info(name: str, type: ElementType, opset: int, shape: list[int] | None = None) -> Any:
    return onnx.helper.make_tensor_value_info(name, onnx_type(type, opset), shape)


def _own(graph: Graph, name: str, wish: str) -> str:
    """Return a tensor under a name of its own, as an output of a graph needs it."""
    return graph.add("Identity", [name], wish)[0]


@converts("If")
def if_(call: Call) -> list[str]:
    """If. The inputs of a branch are tensors of the outer graph."""
    call.require(not any(output.type.kind == "dynamic" for output in call.outputs), "an output has no known type")
    branches = {}
    for branch in ("then", "else"):
        graph = Graph(call.opset, call.graph)
        entries = call.layer.maps.get(f"{branch}_port_map", ())
        given = {e.internal: call.input(e.external) for e in entries if e.kind == "input" and e.external is not None}
        results = call.body(f"{branch}_body", given, graph)
        places = {e.external: results[e.internal] for e in entries if e.kind == "output" and e.external is not None}
        call.require(len(places) == len(call.outputs), f"the {branch} branch lacks an output")
        outputs = [
            _info(_own(graph, places[n], f"{call.name}/{branch}:{n}"), value.type, call.opset)
            for n, value in enumerate(call.outputs)
        ]
        branches[f"{branch}_branch"] = call.subgraph(f"{call.name}/{branch}", graph, [], outputs)
    condition = call.input(0) if call.value(0).rank == 0 else call("Reshape", call.input(0), [])
    return call.many("If", condition, outputs=len(call.outputs), **branches)


@converts("Loop")
def loop(call: Call) -> list[str]:
    """Loop."""
    trips = call.value(0).scalar()
    limit: str | None = None
    if trips is None:
        count = call("Reshape", call.cast(call.input(0), "i64"), [])
        negative = call("Less", count, call.scalar(0, "i64"))
        limit = call("Where", negative, call.scalar(_ENDLESS, "i64"), count)
    elif trips >= 0:
        limit = call.scalar(trips, "i64")
    begins = call.value(1).exact
    condition = None if begins is not None and begins.all() else call("Reshape", call.input(1), [])
    return _Iterations(call).node(limit, condition)


@converts("TensorIterator")
def tensor_iterator(call: Call) -> list[str]:
    """Loop over the slices."""
    iterations = _Iterations(call)
    return iterations.node(None if iterations.sliced else call.scalar(1, "i64"), None)


class _Iterations:
    """A Loop of ONNX for the port map of a layer."""

    def __init__(self, call: Call) -> None:
        self.call, self.graph = call, Graph(call.opset, call.graph)
        entries = call.layer.maps.get("port_map", ())
        inputs = [entry for entry in entries if entry.kind == "input"]
        outputs = [entry for entry in entries if entry.kind == "output"]
        self.sliced = [entry for entry in inputs if entry.axis is not None]
        self.whole = [entry for entry in inputs if entry.axis is None and entry.external is not None]
        self.counter = next((e.internal for e in inputs if e.purpose == "current_iteration"), None)
        self.condition = next((e.internal for e in outputs if e.purpose == "execution_condition"), None)
        self.collected = [e for e in outputs if e.axis is not None and e.external is not None]
        self.last = [e for e in outputs if e.axis is None and e.external is not None]
        self.carried = {parameter: result for result, parameter in call.layer.back_edges}
        self.model = call.layer.bodies["body"]

    def node(self, limit: str | None, condition: str | None) -> list[str]:
        """Add the Loop, and return the outputs of the layer."""
        call, graph = self.call, self.graph
        for entry in self.sliced:
            count = self._slices(entry)
            limit = count if limit is None else call("Min", limit, count)
        number, before = graph.fresh(f"{call.name}/iteration"), graph.fresh(f"{call.name}/condition")
        scope = _Scope(call, graph)
        given = {entry.internal: self._slice(scope, entry, number) for entry in self.sliced}
        infos = [
            _info(number, ELEMENT_TYPES["i64"], call.opset, []),
            _info(before, ELEMENT_TYPES["boolean"], call.opset, []),
        ]
        starts: list[str] = []
        states: list[int] = []
        for entry in self.whole:
            name = call.input(entry.external or 0)
            if entry.internal in self.carried:
                starts.append(name)
                states.append(self.carried[entry.internal])
                name = graph.fresh(f"{call.name}/{entry.internal}")
                infos.append(_info(name, call.value(entry.external or 0).type, call.opset))
            given[entry.internal] = name
        if self.counter is not None:
            given[self.counter] = self._number(scope, number)
        results = call.body("body", given, graph)
        for entry in self.last:
            if entry.internal not in states:
                starts.append(self._placeholder(entry))
                states.append(entry.internal)
                name = graph.fresh(f"{call.name}/last/{entry.internal}")
                infos.append(_info(name, call.outputs[entry.external or 0].type, call.opset))
        go_on = before if self.condition is None else scope("Reshape", results[self.condition], [])
        outs = [_info(_own(graph, go_on, f"{call.name}/continue"), ELEMENT_TYPES["boolean"], call.opset, [])]
        types = [self._type(result) for result in states]
        for result, type in zip(states, types):
            outs.append(_info(_own(graph, results[result], f"{call.name}/next/{result}"), type, call.opset))
        for entry in self.collected:
            type = call.outputs[entry.external or 0].type
            call.require(type.kind != "string", "onnxruntime loses strings that a loop collects")
            outs.append(_info(_own(graph, results[entry.internal], f"{call.name}/piece"), type, call.opset))
        body = call.subgraph(f"{call.name}/body", graph, infos, outs)
        condition = condition or call.scalar(True, "boolean")
        made = call.many("Loop", limit, condition, *starts, outputs=len(starts) + len(self.collected), body=body)
        places: dict[int, str] = {}
        for entry in self.last:
            places[entry.external or 0] = made[states.index(entry.internal)]
        for entry, name in zip(self.collected, made[len(starts) :]):
            places[entry.external or 0] = self._concatenated(entry, name)
        return [places[position] for position in range(len(call.outputs))]

    def _type(self, result: int) -> ElementType:
        """Return the element type of a Result of the body."""
        for entry in self.last:
            if entry.internal == result:
                return self.call.outputs[entry.external or 0].type
        parameter = next(parameter for parameter, id in self.carried.items() if id == result)
        external = next(entry.external for entry in self.whole if entry.internal == parameter)
        return self.call.value(external or 0).type

    def _slices(self, entry: MapEntry) -> str:
        """Return the number of slices of an input, as i64 without axes."""
        call, position = self.call, entry.external or 0
        axis = call.axis(entry.axis or 0, position)
        length = call("Squeeze", call.shape_of(call.input(position), axis, axis + 1), [0])
        ends = []
        for n in (entry.start, entry.end):
            number = call.scalar(n, "i64")
            ends.append(call("Add", length, number) if n < 0 else number)
        span = call("Abs", call("Sub", ends[1], ends[0]))
        if entry.end < 0 or entry.stride < 0:
            span = call("Add", span, call.scalar(1, "i64"))
        rounded = call("Add", span, call.scalar(entry.part_size - 1, "i64"))
        return call("Div", rounded, call.scalar(entry.part_size, "i64"))

    def _slice(self, scope: _Scope, entry: MapEntry, number: str) -> str:
        """Return the slice of an input in an iteration."""
        call, position = self.call, entry.external or 0
        axis, name = call.axis(entry.axis or 0, position), call.input(position)
        start = scope("Mul", scope("Unsqueeze", number, [0]), [entry.stride])
        if entry.start < 0:
            start = scope("Add", start, scope("Shape", name, start=axis, end=axis + 1))
        back = entry.part_size - 1 if entry.stride < 0 else 0
        start = scope("Add", start, [entry.start - back])
        return scope("Slice", name, start, scope("Add", start, [entry.part_size]), [axis])

    def _number(self, scope: _Scope, number: str) -> str:
        """Return the number of the iteration, as the body declares it."""
        port = self.model.layers[self.counter or 0]
        type = ElementType.parse(port.attributes.get("element_type", "i64"))
        assert type is not None
        shape = port.attributes.get("shape", "").strip()
        cast = scope("Cast", number, to=onnx_type(type, self.call.opset))
        return scope("Reshape", cast, [1]) if shape else cast

    def _placeholder(self, entry: MapEntry) -> str:
        """Return an empty tensor, which stands for a value before the first iteration."""
        value = self.call.outputs[entry.external or 0]
        rank = value.rank
        if rank is None:
            self.call.refuse(f"the rank of output {entry.external} is not known")
        return self.call.graph.constant(np.zeros((0,) * rank if rank else (), value.type.dtype), value.type)

    def _concatenated(self, entry: MapEntry, name: str) -> str:
        """Return the pieces of all iterations along their axis. A Loop of ONNX stacks them along a new first axis."""
        call = self.call
        value = call.outputs[entry.external or 0]
        if value.shape.dims is None:
            call.refuse(f"the rank of output {entry.external} is not known")
        rank = len(value.shape.dims)
        axis = (entry.axis or 0) % rank
        if entry.stride < 0:
            name = call("Slice", name, [_ENDLESS], [-_ENDLESS], [0], [-1])
        order = [*range(1, axis + 1), 0, *range(axis + 1, rank + 1)]
        moved = call("Transpose", name, perm=order) if axis else name
        if value.shape.static is not None:
            return call("Reshape", moved, list(value.shape.static))
        before, after = call.shape_of(moved, 0, axis), call.shape_of(moved, axis + 2)
        return call("Reshape", moved, call("Concat", before, [-1], after, axis=0))


class _Scope:
    """Adds the nodes of a body that are no layers of it."""

    def __init__(self, call: Call, graph: Graph) -> None:
        self.inner = Call(**{**vars(call), "graph": graph})

    def __call__(self, type: str, *inputs: Any, **attributes: Any) -> str:
        return self.inner(type, *inputs, **attributes)
