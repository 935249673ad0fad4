"""Merge two models: outputs of one become inputs of the other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from irrun.api import PathLike, as_model
from irrun.inference.settled import settled
from irrun.ir.join import join
from irrun.model import Layer, Model
from irrun.surgery._models import rebuilt, refused, reread
from irrun.surgery._names import find_output

__all__ = ["links", "merge"]


def merge(
    a: Model | PathLike, b: Model | PathLike, connect: Mapping[str, str] | None = None, *, keep: bool = False
) -> Model:
    """Return one model that runs ``a`` and then ``b`` on outputs of ``a``.

    ``connect`` maps outputs of ``a`` to the inputs of ``b`` that they become; by default, those of equal names. Inputs
    are those of ``a`` and then the other ones of ``b``. Outputs are those of ``a`` that are not connected, or all with
    ``keep``, and then those of ``b``. Names in ``b`` that already occur in ``a`` get a numeric suffix. The
    weights of both are copied into memory. Raises ModelError if an output does not exist (IR606) or does not fit its
    input (IR608), and FeedError (IR601) if an input does not exist.
    """
    a, b = as_model(a), as_model(b)
    pairs = links(a, b, connect)
    if a.version != b.version:
        message = f"the IR versions {a.version} and {b.version} differ"
        raise refused(b, message, "write both models with one OpenVINO")
    values, wanted = settled(a), settled(b)
    feeds: dict[int, tuple[int, int]] = {}
    for result, parameter in pairs:
        feed = a.feeds[result.id][0]
        value, target = values.get(feed) if feed else None, wanted.get((parameter.id, 0))
        if feed is None or value is None or target is None:
            raise refused(a, f'output "{a.result_name(result)}" has no value', "connect another output", result)
        unknown = "dynamic" in (value.type.kind, target.type.kind)
        if (value.type is not target.type and not unknown) or value.shape.meet(target.shape) is None:
            message = (
                f'output "{a.result_name(result)}" is {value.type} {value.shape}, but input "{parameter.name}" of '
            )
            message += f"{b.source.path} is {target.type} {target.shape}"
            raise refused(a, message, "connect another output, or insert a Convert or Reshape", result)
        feeds[parameter.id] = (feed[0], a.layers[feed[0]].outputs[feed[1]].id)
    closed = set() if keep else {result.id for result, _ in pairs}
    return reread(a, *join(a, _apart(a, b, set(feeds)), feeds, closed))


def links(a: Model, b: Model, connect: Mapping[str, str] | None) -> list[tuple[Layer, Layer]]:
    """Return the Results of ``a`` and the Parameters of ``b`` that are connected."""
    if connect is None:
        outputs = {name: result for result in reversed(a.results) for name in reversed(a.result_names(result))}
        pairs = [
            (outputs[name], parameter)
            for parameter in b.parameters
            if (name := next((n for n in b.input_names(parameter) if n in outputs), None)) is not None
        ]
    else:
        pairs = [(find_output(a, output), b.parameters[b.known_input(input)]) for output, input in connect.items()]
    if not pairs:
        names = ", ".join(f'"{a.result_name(result)}"' for result in a.results)
        message = f"no input of {b.source.path} is named after an output"
        raise refused(a, message, f"say which output becomes which input; the outputs are {names}")
    return pairs


def _apart(a: Model, b: Model, dropped: set[int]) -> Model:
    """Return ``b`` with other names for layers, tensors and variables whose names ``a`` has."""
    layers = {layer.name for layer in a.layers.values()}
    tensors = {name for layer in a.layers.values() for port in layer.outputs for name in port.names}
    variables = {name for name in map(_variable, a.layers.values()) if name}
    renamed: dict[int, Layer] = {}
    for id, layer in b.layers.items():
        if id in dropped:
            renamed[id] = layer
            continue
        attributes = dict(layer.attributes)
        if _variable(layer):
            attributes["variable_id"] = _free(attributes["variable_id"], variables)
        renamed[id] = replace(
            layer,
            name=_free(layer.name, layers),
            attributes=attributes,
            outputs=tuple(replace(p, names=tuple(_free(n, tensors) for n in p.names)) for p in layer.outputs),
        )
    return rebuilt(b, renamed)


def _variable(layer: Layer) -> str | None:
    return layer.attributes.get("variable_id") if layer.type.lower() in ("readvalue", "assign") else None


def _free(name: str, taken: set[str]) -> str:
    """Return the name, or the name with the first number that makes it free."""
    free, number = name, 1
    while free in taken:
        number += 1
        free = f"{name}_{number}"
    return free
