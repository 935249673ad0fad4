"""Prove a cause: correct the paged model or its calls, run the calls again, and see whether the token then agrees."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from irrun.api import compile as compiled
from irrun.debug.paged.calls import Plan
from irrun.debug.paged.sides import Paged, Stateful
from irrun.model import Layer, Model
from irrun.types import ElementType

__all__ = [
    "RELATIVE", "Correction", "allowed", "every", "with_attribute", "with_caches", "with_constant", "with_source",
]  # fmt: skip

Correction = Callable[[Paged], Paged]
"""Returns another paged model, in which something is corrected. Raises the errors of compile."""

RELATIVE: Final = 1e-4
"""The largest difference that is no fault, as a part of the largest expected value."""
_NAME: Final = "irrun: the right constant"


def allowed(stateful: Stateful, plans: Sequence[Plan]) -> float:
    """Return the largest difference of a logit that is no fault, in units of a logit.

    It is ``RELATIVE`` times the largest absolute logit that the stateful model has for a token of the plans.
    """
    pieces = [(plan.prompts[piece.sequence], piece) for plan in plans for call in plan.calls for piece in call.pieces]
    return RELATIVE * max(float(np.abs(stateful.logits(*piece)).max()) for piece in pieces)


def with_constant(paged: Paged, constant: Layer, array: np.ndarray) -> Paged:
    """Return the paged model with other contents of a Const, which becomes an input. Raises the errors of compile."""
    type = "f32" if array.dtype == np.float32 else constant.attributes["element_type"]
    attributes = {"element_type": type, "shape": ",".join(map(str, array.shape))}
    name = f"{_NAME} {constant.id}"
    outputs = tuple(replace(port, type=ElementType.parse(type)) for port in constant.outputs)
    layer = replace(constant, name=name, type="Parameter", version="opset1", attributes=attributes, outputs=outputs)
    return _changed(paged, {constant.id: layer}, {name: array})


def with_attribute(paged: Paged, layer: Layer, name: str, value: str) -> Paged:
    """Return the paged model with another attribute of a layer. Raises the errors of compile."""
    return _changed(paged, {layer.id: replace(layer, attributes={**layer.attributes, name: value})})


def with_source(paged: Paged, layer: Layer, position: int, source: tuple[int, int]) -> Paged:
    """Return the paged model with an input of a layer fed by another output.

    Raises the errors of compile: IR106 if the layers then form a cycle.
    """
    model = paged.model.model
    feeds = list(model.feeds[layer.id])
    feeds[position] = source
    to_port, from_port = layer.inputs[position].id, model.layers[source[0]].outputs[source[1]].id
    edges = [
        replace(edge, from_layer=source[0], from_port=from_port)
        if (edge.to_layer, edge.to_port) == (layer.id, to_port)
        else edge
        for edge in model.edges
    ]
    feeding = {**model.feeds, layer.id: tuple(feeds)}
    made = _compiled(paged, replace(model, feeds=feeding, edges=tuple(edges)), {})
    name = model.layers[source[0]].name
    if name in made.unread:  # a cache that the layer now reads: the model keeps it from call to call
        made.blank = {**made.blank, name: made.unread.pop(name)}
    return made


def with_caches(paged: Paged, caches: Mapping[str, np.ndarray]) -> Paged:
    """Return the paged model with these caches before the first call, in f32, by the names of their Parameters.

    Raises the errors of compile.
    """
    f32 = ElementType.parse("f32")
    layers = {
        layer.id: replace(
            layer,
            attributes={**layer.attributes, "element_type": "f32"},
            outputs=tuple(replace(port, type=f32) for port in layer.outputs),
        )
        for layer in paged.model.model.parameters
        if layer.name in caches
    }
    made = _changed(paged, layers)
    made.blank = {**paged.blank, **caches}
    return made


def every(corrections: Sequence[Correction], paged: Paged) -> Paged:
    """Return the paged model after several corrections."""
    for correct in corrections:
        paged = correct(paged)
    return paged


def _changed(paged: Paged, layers: dict[int, Layer], given: dict[str, np.ndarray] | None = None) -> Paged:
    model = paged.model.model
    return _compiled(paged, replace(model, layers={**model.layers, **layers}), given or {})


def _compiled(paged: Paged, model: Model, given: dict[str, np.ndarray]) -> Paged:
    made = Paged(compiled(model))
    made.unread, made.blank = {**paged.unread, **given}, paged.blank
    return made
