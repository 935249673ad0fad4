"""Explain the first divergence: the errors of its inputs, and how the two layers differ."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from irrun.debug.difference.counterpart import differences
from irrun.debug.difference.decompression import numbers, weights_of
from irrun.debug.metrics import Measurement, measure
from irrun.debug.results import First, InputError, Layer
from irrun.debug.subjects import Node, Subject, constant
from irrun.diagnostics import ModelError
from irrun.engines import Place

__all__ = ["first_divergence"]


def first_divergence(
    reference: Subject,
    candidate: Subject,
    place: Place,
    pairs: Mapping[Place, Place],
    at: Layer,
    errors: Mapping[Place, Measurement | None],
) -> First:
    """Return the explanation of the divergence at ``place`` of the reference.

    ``pairs`` are the places in the candidate, ``at`` is what was measured there, and ``errors`` what was measured of
    all places of the reference in the same sample and iteration. Without an IR file, the inputs are not known.
    """
    theirs, ours = reference.nodes.get(place.layer), candidate.nodes.get(pairs[place].layer)
    node, measured = ours, {other: errors.get(own) for own, other in pairs.items()}
    if node is None:
        node, measured = theirs, {**errors}
    if node is None:
        return First(at, (), None, ())
    sides = (reference, theirs) if node is ours and theirs is not None else None
    owner = candidate if node is ours else reference
    inputs = [_input((owner, node), position, measured, sides) for position in _positions(node)]
    worst = max((i.measurement.error for i in inputs if i.measurement and i.kind != "constant"), default=0.0)
    finite = 0 < worst < math.inf and at.measurement.error < math.inf
    unlike = differences(reference, candidate, pairs, place)
    return First(at, tuple(inputs), at.measurement.error / worst if finite else None, unlike)


def _positions(node: Node) -> range:
    return range(len(node.model.feeds[node.layer.id]))


Owned = tuple[Subject, Node]
"""A layer, and the side that has it."""


def _input(
    owned: Owned, position: int, measured: Mapping[Place, Measurement | None], other: Owned | None
) -> InputError:
    """Return the error of an input of a layer. ``other`` is the layer of the reference, which has constants, too.

    Constants are compared after decompression.
    """
    side, node = owned
    producer = node.producer(position)
    if producer is None:
        return InputError("", "", "input", None, None)
    source, port = producer
    name = source.name if port == 0 else f"{source.name}:{source.layer.outputs[port].id}"
    head = name, source.layer.type
    if (error := measured.get(Place(source.name, port))) is not None:
        return InputError(*head, _kind(source), source.line, error)
    own = _constant(side, source)
    if own is None:
        return InputError(*head, _kind(source), source.line, None)
    measurement: Measurement | None = None
    if other is not None and position < len(_positions(other[1])):
        fed = other[1].producer(position)
        theirs = None if fed is None else _constant(other[0], fed[0])
        measurement = None if theirs is None else measure(theirs, own, 0, 0)
    return InputError(*head, "constant", source.line, measurement)


def _kind(source: Node) -> str:
    return "input" if source.layer.type.lower() == "parameter" else "layer"


def _constant(side: Subject, node: Node) -> np.ndarray | None:
    """Return the values of a constant, or of a weight that layers decompress; None for another layer."""
    weight = weights_of(node.model).get(node.layer.id)
    if weight is None or side.model is None or side.model.weights is None:
        return constant(node.model, node.layer)
    try:
        held = numbers(node.model, node.layer, weight, side.model.weights)
        return None if held is None else held.elements(0, held.count).reshape(held.shape)
    except ModelError:
        return None
