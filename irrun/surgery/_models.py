"""Make edited layers into a model, and report edits that cannot be made."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from irrun.base.source import Source
from irrun.diagnostics import ModelError, diagnostic
from irrun.ir.parse import parse
from irrun.ir.write import to_xml
from irrun.model import Edge, Layer, Model
from irrun.model.lookup import find_layers, no_such_layer
from irrun.model.weights import Weights

__all__ = ["layer_of", "rebuilt", "refused", "reread"]


def rebuilt(
    model: Model,
    layers: Mapping[int, Layer] | None = None,
    edges: Iterable[Edge] | None = None,
    weights: Weights | None = None,
) -> Model:
    """Return the model with other layers, edges or weights, as it would be read from a file."""
    edited = replace(
        model,
        layers=model.layers if layers is None else layers,
        edges=model.edges if edges is None else tuple(edges),
    )
    return reread(model, to_xml(edited), weights or model.weights)


def reread(model: Model, text: bytes, weights: Weights | None) -> Model:
    """Return the model that the XML ``text``, an edit of ``model``, describes."""
    parsed = parse(Source(f"edit of {model.source.path.removeprefix('edit of ')}", text), weights)
    return parsed.runnable()


def refused(model: Model, message: str, help: str, layer: Layer | None = None) -> ModelError:
    """Return the error (IR608) for an edit that cannot be made, at ``layer`` if it concerns one."""
    place = {} if layer is None or layer.node < 0 else {"node": layer.node, "layer": layer.name}
    return ModelError(diagnostic("IR608", message, source=model.source, help=help, **place))  # type: ignore[arg-type]


def layer_of(model: Model, name: str) -> Layer:
    """Return the only layer with a name. Raises ModelError: IR606 if there is none, IR608 if there are several."""
    layers = [layer for layer in find_layers(model, name) if name in (layer.name, model.unique_names[layer.id])]
    if not layers:
        raise ModelError(no_such_layer(model, name))
    if len(layers) > 1:
        names = ", ".join(model.unique_names[layer.id] for layer in layers)
        raise refused(model, f'{len(layers)} layers are called "{name}"', f"name one of them: {names}", layers[0])
    return layers[0]
