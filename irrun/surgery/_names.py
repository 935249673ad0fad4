"""Rename inputs, outputs and layers, and make inner values outputs."""

from __future__ import annotations

from dataclasses import replace

from irrun.api import PathLike, as_model
from irrun.diagnostics import ModelError, diagnostic
from irrun.model import Edge, Layer, Model
from irrun.model.lookup import find_layers
from irrun.surgery._models import layer_of, rebuilt, refused

__all__ = ["expose", "find_output", "find_value", "rename_input", "rename_layer", "rename_output"]


def rename_layer(model: Model | PathLike, name: str, to: str) -> Model:
    """Return the model with another name for the layer ``name``. The names of tensors stay.

    A layer in a body is named with the path that leads there, such as ``loop/total``; ``to`` has no path. Raises
    ModelError if there is no such layer (IR606), or if ``to`` is the name of another layer of its model or body
    (IR608).
    """
    model = as_model(model)
    return rebuilt(model, _renamed(model, name, to).layers)


def _renamed(model: Model, name: str, to: str) -> Model:
    """Return a model, or a body, with another name for a layer."""
    inner = [] if find_layers(model, name) else _bodies(model, name)
    if not inner:
        layer = layer_of(model, name)
        _require_free(model, to, layer)
        return replace(model, layers={**model.layers, layer.id: replace(layer, name=to)})
    if len(inner) > 1:
        message = f'{len(inner)} layers are called "{name}", in several bodies'
        raise refused(model, message, "rename the layer with the bodies, so that only one matches", inner[0][0])
    layer, tag, rest = inner[0]
    bodies = {**layer.bodies, tag: _renamed(layer.bodies[tag], rest, to)}
    return replace(model, layers={**model.layers, layer.id: replace(layer, bodies=bodies)})


def _bodies(model: Model, path: str) -> list[tuple[Layer, str, str]]:
    """Return the layers and tags of the bodies in which a path leads to a layer, each with the rest of the path."""
    return [
        (layer, tag, rest)
        for id, layer in model.layers.items()
        if path.startswith(f"{model.unique_names[id]}/")
        for rest in [path.removeprefix(f"{model.unique_names[id]}/")]
        for tag, body in layer.bodies.items()
        if find_layers(body, rest) or _bodies(body, rest)
    ]


def rename_input(model: Model | PathLike, name: str, to: str) -> Model:
    """Return the model with another name for an input: that of its layer, and of its tensor where that is ``name``.

    ``name`` is any of the names of the input. Raises FeedError (IR601) if there is no such input, and ModelError
    (IR608) if ``to`` is the name of another layer.
    """
    model = as_model(model)
    parameter = model.parameters[model.known_input(name)]
    _require_free(model, to, parameter)
    old = {name, parameter.name}
    ports = tuple(
        replace(port, names=tuple(dict.fromkeys(to if tensor in old else tensor for tensor in port.names)))
        for port in parameter.outputs
    )
    return rebuilt(model, {**model.layers, parameter.id: replace(parameter, name=to, outputs=ports)})


def rename_output(model: Model | PathLike, name: str, to: str) -> Model:
    """Return the model with another name for an output. ``name`` is any of the names of the output.

    The name of the tensor that the output holds is changed, too, unless another output holds the same tensor. Raises
    ModelError if there is no such output (IR606), or if another output has the name ``to`` (IR608).
    """
    model = as_model(model)
    result = find_output(model, name)
    others = [r for r in model.results if r is not result]
    if any(to in model.result_names(other) for other in others):
        raise refused(model, f'another output is called "{to}"', "choose another name", result)
    old = {name, model.result_name(result)}
    names = tuple(dict.fromkeys([to, *(tensor for tensor in result.output_names if tensor not in old)]))
    layers = {**model.layers, result.id: replace(result, output_names=names)}
    feed = model.feeds[result.id][0] if result.inputs else None
    if feed is not None and all(model.feeds[other.id][:1] != (feed,) for other in others):
        layers[feed[0]] = _named(layers[feed[0]], feed[1], to, old)
    return rebuilt(model, layers)


def expose(model: Model | PathLike, value: str, name: str | None = None) -> Model:
    """Return the model with one more output, the last: the inner value ``value``.

    ``value`` is the name of a layer, for its first output; ``layer:port``; or the name of a tensor. ``name`` is the
    name of the output, by default the first name of the tensor or otherwise ``value``. Raises ModelError if there is no
    such value (IR606), or if another output has the name (IR608).
    """
    model = as_model(model)
    id, position = find_value(model, value)
    port = model.layers[id].outputs[position]
    called = name or next(iter(port.names), value)
    for result in model.results:
        if called in model.result_names(result):
            if model.feeds[result.id][:1] == ((id, position),):
                raise refused(model, f'"{value}" is an output already', "leave the option out", result)
            raise refused(model, f'another output is called "{called}"', "choose another name", result)
    fresh = max(model.layers) + 1
    own = f"{called}/result"
    while own in {layer.name for layer in model.layers.values()}:
        own += "_"
    layers = {**model.layers, id: _named(model.layers[id], position, called, set())}
    inputs = (replace(port, id=0, names=(), node=-1),)
    layers[fresh] = Layer(fresh, own, "Result", "opset1", {}, inputs, (), -1, output_names=(called,))
    return rebuilt(model, layers, (*model.edges, Edge(id, port.id, fresh, 0, -1)))


def _require_free(model: Model, name: str, layer: Layer) -> None:
    """Raise ModelError (IR608) if another layer has the name."""
    other = next((other for other in model.layers.values() if other.name == name and other is not layer), None)
    if other is not None:
        raise refused(model, f'{other.type} "{name}" has this name already', "choose another name", other)


def find_output(model: Model, name: str) -> Layer:
    """Return the output with a name. Raises ModelError (IR606) if there is none."""
    results = [r for r in model.results if model.result_name(r) == name] or [
        r for r in model.results if name in model.result_names(r)
    ]
    if not results:
        names = ", ".join(f'"{model.result_name(r)}"' for r in model.results) or "none"
        message = f'the model has no output "{name}"'
        help = f"its outputs are {names}"
        raise ModelError(diagnostic("IR606", message, file=model.source.path, help=help))
    return results[0]


def find_value(model: Model, value: str) -> tuple[int, int]:
    """Return the layer id and the position of an output. Raises ModelError (IR606) if there is no such value."""
    for id, layer in model.layers.items():
        for position, port in enumerate(layer.outputs):
            if value in port.names or value == model.output_name(id, position):
                return id, position
    name, colon, port_id = value.rpartition(":")
    layer = layer_of(model, name if colon and port_id.isdecimal() else value)
    for position, port in enumerate(layer.outputs):
        if not (colon and port_id.isdecimal()) or port.id == int(port_id):
            return layer.id, position
    ids = ", ".join(str(port.id) for port in layer.outputs) or "none"
    raise refused(model, f'{layer.type} "{layer.name}" has no such output', f"its output ports are {ids}", layer)


def _named(layer: Layer, position: int, name: str, old: set[str]) -> Layer:
    """Return a layer whose output has the tensor name ``name``, in the place of the names ``old``."""
    port = layer.outputs[position]
    names = dict.fromkeys(name if tensor in old else tensor for tensor in port.names)
    ports = list(layer.outputs)
    ports[position] = replace(port, names=tuple(dict.fromkeys([*names, name])))
    return replace(layer, outputs=tuple(ports))
