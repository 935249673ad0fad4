"""The graphs that Model Explorer shows of a model: one of the model itself, and one of each body."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from irrun.diagnostics import Refused
from irrun.inference.layer import input_name
from irrun.inference.trace import Trace
from irrun.model import Layer, Model
from irrun.opdef import Value

__all__ = ["graph_id", "graphs"]

_MAX_ELEMENTS: Final = 16
"""The most elements of a constant whose values are shown, as in Model Explorer's own adapters."""

Attributes = list[dict[str, str]]


def graph_id(model: Model) -> str:
    """Return the id of the graph of a model, without that of its bodies."""
    return model.name or "model"


def graphs(model: Model) -> list[dict[str, Any]]:
    """Return the graphs in the form of Model Explorer's JSON, first that of the model, then those of its bodies.

    A node is a layer. Its id is the unique name of the layer, its namespace the parts of the name between slashes and
    dots but the last one, and its label the type. Shapes and types are inferred; where the file declares others, the
    metadata of the output says so. A layer with bodies leads to their graphs.
    """
    names = {id(model): graph_id(model)}
    found: list[dict[str, Any]] = []
    for trace in Trace(model).all():
        own = names[id(trace.model)]
        for layer in trace.model.layers.values():
            names |= {
                id(body): f"{own}/{trace.model.unique_names[layer.id]}/{tag}" for tag, body in layer.bodies.items()
            }
        nodes = [_node(trace, layer, names) for layer in trace.model.layers.values()]
        found.append({"id": own, "nodes": nodes})
    return found


def _node(trace: Trace, layer: Layer, names: dict[int, str]) -> dict[str, Any]:
    model, op = trace.model, trace.ops.get(layer.id)
    feeds = model.feeds[layer.id]
    edges = [
        {
            "sourceNodeId": model.unique_names[feed[0]],
            "sourceNodeOutputId": str(feed[1]),
            "targetNodeInputId": str(position),
        }
        for position, feed in enumerate(feeds)
        if feed is not None
    ]
    inputs = [f"input {n}" if op is None else input_name(op, n) for n in range(len(feeds))]
    return {
        "id": model.unique_names[layer.id],
        "label": layer.type,
        "namespace": "/".join([part for part in re.split(r"[/.]+", layer.name) if part][:-1]),
        "subgraphIds": [names[id(body)] for body in layer.bodies.values()],
        "attrs": _pairs(_attributes(trace, layer)),
        "incomingEdges": edges,
        "outputsMetadata": [
            {"id": str(position), "attrs": _pairs(_output(trace, layer, position))}
            for position in range(len(layer.outputs))
        ],
        "inputsMetadata": [
            {"id": str(position), "attrs": _pairs([("__tensor_tag", name)])} for position, name in enumerate(inputs)
        ],
    }


def _pairs(items: Any) -> Attributes:
    return [{"key": key, "value": value} for key, value in items]


def _attributes(trace: Trace, layer: Layer) -> Iterator[tuple[str, str]]:
    """Yield what the side panel shows of a layer."""
    yield "name", layer.name
    if layer.version is not None:
        yield "version", layer.version
    yield from layer.attributes.items()
    if layer.node >= 0:
        yield "line", str(trace.model.source.line_of(layer.node))
    value = trace.values.get((layer.id, 0)) if layer.type.lower() == "const" else None
    if value is not None and (text := _contents(value)) is not None:
        yield "__value", text  # Model Explorer shows it on the node
    error = trace.refused.get(layer.id)
    if error is not None:
        yield "error", error.message if isinstance(error, Refused) else repr(error)


def _contents(value: Value) -> str | None:
    """Return the contents of a small constant as text, or None if they are many or not known."""
    exact = value.exact
    return None if exact is None or exact.size > _MAX_ELEMENTS else str(exact.tolist())


def _output(trace: Trace, layer: Layer, position: int) -> Iterator[tuple[str, str]]:
    port, value = layer.outputs[position], trace.values.get((layer.id, position))
    declared = f"{port.type or '?'}{'' if port.shape is None else port.shape}"
    shown = declared if value is None else f"{value.type}{value.shape}"
    yield "tensor_shape", shown
    if port.shape is not None and shown != declared:
        yield "declared", declared
    if port.names:
        yield "tensor_name", port.names[0]
    if port.names[1:]:
        yield "other names", ", ".join(port.names[1:])
