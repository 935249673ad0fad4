"""Prove a cause: correct the paged model or its calls, run the calls again, and see whether the token then agrees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from irrun.api import compile as compiled
from irrun.debug.paged.calls import Plan
from irrun.debug.paged.sides import Paged, Stateful
from irrun.model import Layer, Model

__all__ = ["RELATIVE", "allowed", "with_attribute", "with_constant", "with_source"]

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
    attributes = {"element_type": constant.attributes["element_type"], "shape": ",".join(map(str, array.shape))}
    name = f"{_NAME} {constant.id}"
    layer = replace(constant, name=name, type="Parameter", version="opset1", attributes=attributes)
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
    return _compiled(paged, replace(model, feeds=feeding, edges=tuple(edges)), {})


def _changed(paged: Paged, layers: dict[int, Layer], given: dict[str, np.ndarray] | None = None) -> Paged:
    model = paged.model.model
    return _compiled(paged, replace(model, layers={**model.layers, **layers}), given or {})


def _compiled(paged: Paged, model: Model, given: dict[str, np.ndarray]) -> Paged:
    made = Paged(compiled(model))
    made.unread = {**paged.unread, **given}
    return made
