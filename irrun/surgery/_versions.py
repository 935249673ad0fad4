"""Write a model in another version of the IR."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from irrun.api import PathLike, as_model
from irrun.inference.settled import settled
from irrun.model import Layer, Model
from irrun.surgery._models import rebuilt, refused

__all__ = ["with_version"]

_SAME_INPUT: Final = "f16"
"""The only element type of inputs that OpenVINO changes in a model of version 10."""
_SAME_OUTPUTS: Final = ("f32", "i32")
"""The only element types of outputs that OpenVINO does not change in a model of version 10."""


def with_version(model: Model | PathLike, version: int) -> Model:
    """Return the model in a version of the IR, 10 or 11, with the same interface in OpenVINO.

    In version 10, OpenVINO names inputs and outputs after layers, too, so that a model of version 11 gets these names.
    It also reads outputs of most types as f32 or i32, and inputs of f16 as f32. Raises ModelError (IR608) for an input
    or output that has another type in the other version.
    """
    model = as_model(model)
    if version == model.version:
        return model
    values = settled(model)
    for layer in (*model.parameters, *model.results):
        is_input = layer in model.parameters
        feed = (layer.id, 0) if is_input else model.feeds[layer.id][0]
        value = values.get(feed) if feed is not None else None
        name = "" if value is None else value.type.name
        if name == _SAME_INPUT if is_input else name not in _SAME_OUTPUTS:
            kind = "input" if is_input else "output"
            message = f'{kind} "{layer.name}" is {name}, which OpenVINO changes in IR version 10'
            better = "f32" if is_input or name not in ("i64", "u64") else "i32"
            raise refused(model, message, f"insert a Convert to {better}, and keep the version until then", layer)
    layers = model.layers if version == min(version, model.version) else _named(model)
    return rebuilt(replace(model, version=version, layers=layers))


def _named(model: Model) -> dict[int, Layer]:
    """Return the layers, with the names that OpenVINO gives to the tensors of inputs and outputs in version 10."""
    layers = dict(model.layers)
    shown = {(parameter.id, 0): parameter.name for parameter in model.parameters}
    for result in model.results:
        feed = model.feeds[result.id][0]
        if feed is not None:
            source = model.layers[feed[0]]
            shown[feed] = source.name if len(source.outputs) == 1 else f"{source.name}.{feed[1]}"
            if result.output_names:
                names = tuple(dict.fromkeys((*result.output_names, shown[feed])))
                layers[result.id] = replace(result, output_names=names)
    for (id, position), name in shown.items():
        ports = list(layers[id].outputs)
        ports[position] = replace(ports[position], names=tuple(dict.fromkeys((*ports[position].names, name))))
        layers[id] = replace(layers[id], outputs=tuple(ports))
    return layers
