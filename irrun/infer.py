"""Carry element types, shapes and contents through a whole model, layer by layer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from irrun.diagnostics import Refused
from irrun.model import Layer, Model
from irrun.opdef import Op, Site, Value, infer
from irrun.types import ELEMENT_TYPES, UNKNOWN_RANK

__all__ = ["Values", "declared", "needed", "propagate", "site"]

Values = dict[tuple[int, int], Value]
"""What is known of each output: by layer id and position among its outputs."""

Settle = Callable[[Layer, "tuple[Value, ...] | Exception"], Sequence[Value]]
"""Decides what a layer hands on, given what was inferred or why nothing was."""


def site(layer: Layer) -> Site:
    return Site(len(layer.outputs), tuple(p.type for p in layer.outputs), layer.name)


def declared(layer: Layer) -> tuple[Value, ...]:
    """The outputs as the file declares them."""
    return tuple(Value(p.type or ELEMENT_TYPES["dynamic"], p.shape or UNKNOWN_RANK) for p in layer.outputs)


def needed(op: Op, model: Model) -> dict[str, Any]:
    """What an operation asked for by ``needs``."""
    offers = {"weights": model.weights}
    return {name: offers[name] for name in op.needs}


def propagate(
    model: Model, ops: Mapping[int, Op | None], settle: Settle, values: Values, given: Mapping[int, np.ndarray]
) -> None:
    """Infer every layer in order, into ``values``. ``given`` are contents of Parameters, by layer id.

    A layer without an operation hands on what it declares. ``settle`` is asked about every other one;
    it gets the exception where the layer refuses (Refused) or its rule fails (anything else: a bug).
    """
    for id in model.order:
        layer, op = model.layers[id], ops[id]
        if op is None:
            outputs: Sequence[Value] = declared(layer)
        else:
            inputs = [None if feed is None else values.get(feed) for feed in model.feeds[id]]
            try:
                found: tuple[Value, ...] | Exception = infer(op, site(layer), inputs, needed(op, model))
            except Refused as refused:
                found = refused
            except Exception as error:  # a bug of ours, which must not hide the rest of the file
                found = error
            outputs = settle(layer, found)
        if id in given:
            outputs = [Value(outputs[0].type, outputs[0].shape, given[id])]
        for position, value in enumerate(outputs):
            values[id, position] = value
