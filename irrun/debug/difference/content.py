"""Whether two files hold other constants, attributes or layers, although their outputs agree."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from irrun.debug.difference.diff import LayerDifference, diff
from irrun.diagnostics import ModelError
from irrun.model import Model

__all__ = ["Content", "computes_otherwise", "differing_content", "differing_layers"]

_WITHOUT_EFFECT: Final = ("name", "tensor_names", "rt_info", "shape", "precision", "body")
"""The kinds of changes that change no result, or that follow from another change."""


@dataclass(frozen=True, slots=True)
class Content:
    """How the files of two sides differ in what they compute.

    ``constants`` is the number of constants with other values, ``layers`` that of other layers that differ. ``first``
    is the name of the first of them, and ``reader`` the layer that reads it, if it is a constant, as
    ``Convolution "conv"``.
    """

    constants: int
    layers: int
    first: str
    reader: str = ""


def differing_layers(models: Sequence[Model | None]) -> Sequence[LayerDifference]:
    """Return the layers in which two files differ. Without the IR of both sides, nothing is known."""
    a, b = models
    if a is None or b is None or (a.source.data == b.source.data and _bin(a) == _bin(b)):
        return ()
    with suppress(ModelError):
        return diff(a, b).layers
    return ()


def differing_content(layers: Sequence[LayerDifference]) -> Content | None:
    """Return how two files differ by the layers in which they do, or None if they compute the same."""
    found = [layer for layer in layers if computes_otherwise(layer)]
    if not found:
        return None
    constants = [layer for layer in found if _is_constant(layer)]
    place = found[0].a or found[0].b
    assert place is not None
    name = f"{place.inside}/{place.name}" if place.inside else place.name
    reader = _reader(found[0]) if _is_constant(found[0]) else ""
    return Content(len(constants), len(found) - len(constants), name, reader)


def _bin(model: Model) -> Path | None:
    return None if model.weights is None else model.weights.path


def computes_otherwise(layer: LayerDifference) -> bool:
    """Return whether a layer that differs computes something else, or is a constant with other values.

    Names, ``rt_info`` and declared shapes do not count, and neither does a weight that one file stores in another form.
    """
    if layer.follows or any(change.kind == "stored" for change in layer.changes):
        return False
    return layer.status != "changed" or any(change.kind not in _WITHOUT_EFFECT for change in layer.changes)


def _is_constant(layer: LayerDifference) -> bool:
    return any(change.kind == "weights" for change in layer.changes)


def _reader(layer: LayerDifference) -> str:
    """Return the first layer that reads a constant, after the layers that decompress it."""
    assert layer.a is not None
    model, weights = layer.matching.a, layer.matching.weights_a
    output = next((id for id, weight in weights.items() if layer.a.id in weight.layers), layer.a.id)
    readers = [model.layers[id] for id, _ in model.readers.get((output, 0), ())]
    return f'{readers[0].type} "{readers[0].name}"' if readers else ""
