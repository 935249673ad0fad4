"""Operations with bodies: If, Loop and TensorIterator. A body is a Python function that builds nodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from irrun.base.source import Source
from irrun.build._arguments import listed, output_of
from irrun.build._assembly import Blob, assemble
from irrun.build._call_site import CallSite
from irrun.build._errors import bad_call
from irrun.build._nodes import Graph, Node, Output, new_layer
from irrun.build._operations import infer_node
from irrun.build._parameters import parameter_node
from irrun.build._slices import concatenated, invariant, map_fields, sliced, value_in_body
from irrun.build._text import element_type_of
from irrun.model import MapEntry, Model
from irrun.model.weights import Weights
from irrun.opdef import Value, resolve
from irrun.types import INF, UNKNOWN_RANK, Dim, PartialShape

__all__ = ["If", "Loop", "TensorIterator"]


def If(  # noqa: N802
    cond: Any, *inputs: Any, then: Callable[..., Any], otherwise: Callable[..., Any], name: str | None = None
) -> Node:
    """Return an If: ``then(*inputs)`` if ``cond`` is true, otherwise ``otherwise(*inputs)``.

    Raises BuildError if the two functions return different numbers of outputs.
    """
    source = CallSite()
    outer = [output_of(item) for item in (cond, *inputs)]
    graphs: dict[str, Graph] = {}
    maps: dict[str, tuple[MapEntry, ...]] = {}
    for branch, function in (("then", then), ("else", otherwise)):
        parameters = [parameter_node(Value(output.type, output.shape)) for output in outer[1:]]
        results = [output_of(item) for item in listed(function(*parameters))]
        graph = graphs[f"{branch}_body"] = Graph.of(parameters, results, "If")
        maps[f"{branch}_port_map"] = (
            *(MapEntry("input", 1 + i, i) for i in range(len(parameters))),
            *(MapEntry("output", i, graph.result(i)) for i in range(len(results))),
        )
    count, other = (len(graph.results) for graph in graphs.values())
    if count != other:
        raise bad_call(f"then returns {count} outputs, but otherwise returns {other}; return as many from both")
    return _node_with_bodies("If", name, outer, graphs, maps, (), count, source)


def Loop(  # noqa: N802
    trip_count: Any, condition: Any, *inputs: Any, body: Callable[..., Any], name: str | None = None
) -> Node:
    """Return a Loop that runs ``body(i, *inputs)`` at most ``trip_count`` times (-1: no limit) while a condition holds.

    ``condition`` is the condition of the first iteration. The body returns the condition of the next iteration, then
    the next value of each input that is neither ``sliced`` nor ``invariant``, then any further outputs. The outputs of
    the Loop are those of the body without the condition: the value of the last iteration, or the values of all
    iterations if the body returns it ``concatenated``.
    """
    source = CallSite()
    counter = parameter_node(Value(element_type_of("i64"), PartialShape(())))
    head = [output_of(trip_count), output_of(condition)]
    return _iterate("Loop", name, head, inputs, lambda *parameters: body(counter, *parameters), counter, source)


def TensorIterator(*inputs: Any, body: Callable[..., Any], name: str | None = None) -> Node:  # noqa: N802
    """Return a TensorIterator that runs ``body(*inputs)`` once for each slice of the ``sliced`` inputs.

    The body returns the next value of each input that is neither ``sliced`` nor ``invariant``, then any further
    outputs. Each output is the value of the last iteration, or the values of all iterations if the body returns it
    ``concatenated``.
    """
    return _iterate("TensorIterator", name, [], inputs, body, None, CallSite())


def _iterate(
    type: str,
    name: str | None,
    head: list[Output],
    inputs: Sequence[Any],
    body: Callable[..., Any],
    counter: Node | None,
    source: Source,
) -> Node:
    """Return a Loop or TensorIterator.

    ``head`` are the inputs before ``inputs`` that do not enter the body, and ``counter`` is the Parameter of a Loop
    for the number of the iteration.
    """
    outer = [output_of(item.value if isinstance(item, (sliced, invariant)) else item) for item in inputs]
    carried = [position for position, item in enumerate(inputs) if not isinstance(item, (sliced, invariant))]
    values = [value_in_body(item, output.value) for item, output in zip(inputs, outer)]
    first = 0 if counter is None else 1  # a Loop has one more parameter (counter) and one more result (condition)
    parameters, items = _trace(type, body, values, carried, first)
    counters = [] if counter is None else [counter]
    graph = Graph.of([*counters, *parameters], [_output_of_body(item) for item in items], type)
    entries: list[MapEntry] = []
    if counter is not None:
        entries.append(MapEntry("input", None, 0, purpose="current_iteration"))
    for position, item in enumerate(inputs):
        entries.append(MapEntry("input", len(head) + position, first + position, **map_fields(item)))
    for position, item in enumerate(items[first:]):
        entries.append(MapEntry("output", position, graph.result(first + position), **map_fields(item)))
    if counter is not None:
        entries.append(MapEntry("output", None, graph.result(0), purpose="execution_condition"))
    back_edges = tuple((graph.result(first + n), first + position) for n, position in enumerate(carried))
    maps = {"port_map": tuple(entries)}
    return _node_with_bodies(type, name, [*head, *outer], {"body": graph}, maps, back_edges, len(items) - first, source)


def _trace(
    type: str, body: Callable[..., Any], values: list[Value], carried: Sequence[int], first: int
) -> tuple[list[Node], list[Any]]:
    """Return the parameters of a body and what the body returns for them.

    ``values`` are the types and shapes of the parameters in the first iteration. ``carried`` are the positions of those
    that get a new value in each iteration: the results of the body from position ``first`` on. The body is called with
    wider and wider shapes for them, until they include the shapes of all iterations. Raises BuildError if the body
    returns too few results.
    """
    while True:
        parameters = [parameter_node(value) for value in values]
        items = listed(body(*parameters))
        results = [_output_of_body(item) for item in items]
        if len(results) < first + len(carried):
            condition = "the condition and " if first else ""
            raise bad_call(
                f"the body of {type} returns {len(results)} values, but it must return {condition}{len(carried)} "
                "values, one for each input that is neither sliced nor invariant"
            )
        wider = list(values)
        for position, result in zip(carried, results[first:]):
            wider[position] = _widened(values[position], result.shape)
        if all(after is before for after, before in zip(wider, values)):
            return parameters, items
        values = wider


def _output_of_body(item: Any) -> Output:
    return output_of(item.value if isinstance(item, concatenated) else item)


def _widened(value: Value, shape: PartialShape) -> Value:
    """Return ``value``, a value in one iteration, with a shape that includes ``shape``, its shape in the next.

    It is the object ``value`` if its shape includes ``shape`` already.
    """
    if value.shape.dims is None:
        return value
    if shape.dims is None or len(shape.dims) != len(value.shape.dims):
        return Value(value.type, UNKNOWN_RANK)
    included = [a.same(b) or (a.lo <= b.lo and b.hi <= a.hi) for a, b in zip(value.shape, shape)]
    if all(included):
        return value
    dims = tuple(dim if keep else Dim(0, INF) for dim, keep in zip(value.shape, included))
    return Value(value.type, PartialShape(dims))


def _node_with_bodies(
    type: str,
    name: str | None,
    inputs: Sequence[Output],
    graphs: Mapping[str, Graph],
    maps: Mapping[str, tuple[MapEntry, ...]],
    back_edges: tuple[tuple[int, int], ...],
    outputs: int,
    source: Source,
) -> Node:
    """Return the node of an If, Loop or TensorIterator. Its bodies are assembled here only to infer the node."""
    cls = resolve(type, None)
    assert cls is not None
    blob = Blob()
    bodies = {tag: assemble(graph, blob, source) for tag, graph in graphs.items()}
    weights = Weights(data=bytes(blob.data))
    bodies = {tag: _with_weights(body, weights) for tag, body in bodies.items()}
    layer = new_layer(type, name, {}, cls.since, bodies=bodies, maps=maps, back_edges=back_edges)
    return infer_node(cls, layer, inputs, source, outputs, graphs)


def _with_weights(model: Model, weights: Weights) -> Model:
    """Return a model and all its bodies with ``weights``."""
    layers = {
        id: replace(layer, bodies={tag: _with_weights(body, weights) for tag, body in layer.bodies.items()})
        for id, layer in model.layers.items()
    }
    return replace(model, layers=layers, weights=weights)
