"""Layers that follow from constants and shapes, where the files of both sides differ in what feeds them."""

from __future__ import annotations

import math
from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from irrun.debug.budget.own import compared, rms
from irrun.debug.budget.precisions import InEffect
from irrun.debug.difference.content import computes_otherwise
from irrun.debug.difference.decompression import weights_of
from irrun.debug.difference.diff import LayerDifference
from irrun.debug.low_precision.formats import FORMATS, is_float
from irrun.debug.metrics import Budget
from irrun.engines import computing_layers
from irrun.model import Model, is_constant

__all__ = ["changed_layers", "own_error_of_fixed"]

_ROUNDINGS: Final = 4.0
"""The roundings that such a value may have, relative to its own size or the root mean square, whichever is larger."""


def changed_layers(model: Model, found: Sequence[LayerDifference], fixed: Container[str]) -> Mapping[str, bool]:
    """Return the ``fixed`` layers of a model that depend on what differs between two files, by name.

    A layer causes it (True) if it reads another constant, or differs itself. The others pass on what such a layer has
    computed. A constant counts with the layers that decompress it, which are left out.
    """
    differing = {(id(layer.matching.a), layer.a.id) for layer in found if layer.a and computes_otherwise(layer)}
    causes: dict[str, bool] = {}
    passed: set[tuple[int, int]] = set()
    weights = {}
    for name, own, layer in computing_layers(model) if differing else ():
        if id(own) not in weights:
            weights[id(own)] = weights_of(own)
            for weight in weights[id(own)].values():
                parts = {(id(own), part) for part in (*weight.hidden, weight.output)}
                differing |= parts if differing & parts else set()
        inside = {part for weight in weights[id(own)].values() for part in (*weight.hidden, weight.output)}
        if name not in fixed or layer.id in inside:
            continue
        feeds = [feed[0] for feed in own.feeds[layer.id] if feed is not None]
        follows = any((id(own), feed) in passed for feed in feeds)
        constants = [feed for feed in feeds if is_constant(own.layers[feed]) or feed in inside]
        if follows or any((id(own), source) in differing for source in (layer.id, *constants)):
            causes[name] = not follows
            passed.add((id(own), layer.id))
    return causes


def own_error_of_fixed(first: np.ndarray, second: np.ndarray, side: InEffect) -> Budget:
    """Return the error of a value that a ``side`` has shown, beside the roundings of its precision."""
    if first.shape != second.shape or first.dtype == object or second.dtype == object:
        return Budget(math.inf, math.inf, 0.0, None, "")
    true, format = first.astype(np.float64), side.of_layer("")
    roundoff = 2.0**-22
    if format is not None and is_float(first):
        roundoff = 2.0**-11 if format is FORMATS["f16"] else 2.0**-8
    with np.errstate(all="ignore"):
        allowed = (
            _ROUNDINGS * roundoff * np.maximum(np.abs(true), rms(true)) if is_float(first) else np.zeros(true.shape)
        )
        budget = compared(side.type, true, true, second, np.where(np.isfinite(allowed), allowed, 0))
    is_exact = budget.worst is not None and allowed[budget.worst] == 0 and not budget.is_explained
    return replace(budget, excess=math.inf) if is_exact else budget
