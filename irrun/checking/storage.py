"""List how the weights of a model are stored: element types, groups that share a scale, and bytes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from irrun.inference.compressed import Compressed, compressed_weights
from irrun.model import Layer, Model, is_constant
from irrun.types import ElementType, PartialShape

__all__ = ["Storage", "storage", "stored_bytes"]


@dataclass(frozen=True, slots=True)
class Storage:
    """How a part of the weights is stored, such as ``u4, groups of 128``. ``bytes`` counts shared bytes once."""

    form: str
    constants: int
    parameters: int
    bytes: int

    def record(self) -> dict[str, Any]:
        return {"stored_as": self.form, "constants": self.constants, "parameters": self.parameters, "bytes": self.bytes}


def storage(model: Model) -> list[Storage]:
    """Return how the weights of a model and its bodies are stored, the most bytes first."""
    rows: dict[str, list[tuple[Layer, int]]] = {}
    for layer, form, count in _forms(model):
        rows.setdefault(form, []).append((layer, count))
    seen: set[tuple[str | None, str | None]] = set()
    found: list[Storage] = []
    for form, layers in rows.items():
        total = 0
        for layer, _ in layers:
            place, size = (layer.attributes.get("offset"), layer.attributes.get("size")), stored_bytes(layer)
            total += 0 if place in seen else size
            seen.add(place)
        found.append(Storage(form, len(layers), sum(count for _, count in layers), total))
    return sorted(found, key=lambda row: (-row.bytes, row.form))


_SCALES: Final = "scales and zero points"


def _forms(model: Model) -> Iterator[tuple[Layer, str, int]]:
    """Yield each Const of a model with the form in which it is stored and the number of its elements."""
    forms: dict[int, str] = {}
    for weights in compressed_weights(model):
        numbers = [id for id in (weights.zeros, weights.scales) if id is not None]
        if numbers or weights.quantized:
            forms |= {weights.codes: _form(model, weights), **dict.fromkeys(numbers, _SCALES)}
    for id, layer in model.layers.items():
        if is_constant(layer):
            type = ElementType.parse(layer.attributes.get("element_type", ""))
            yield layer, forms.get(id) or (str(type) if type else "unknown"), _count(layer)
    for layer in model.layers.values():
        for body in layer.bodies.values():
            yield from _forms(body)


def _form(model: Model, weights: Compressed) -> str:
    """Return the form of compressed weights."""
    codes = model.layers[weights.codes]
    type = ElementType.parse(codes.attributes.get("element_type", ""))
    if weights.quantized:
        return f"{type}, FakeQuantize"
    symmetry = "symmetric" if weights.zeros is None else "asymmetric"
    if weights.scales is None:
        return f"{type} {symmetry}, no scales"
    return f"{type} {symmetry}, {_groups(_shape(codes), _shape(model.layers[weights.scales]))}"


def _groups(codes: PartialShape | None, scales: PartialShape | None) -> str:
    """Return which weights share a scale, from the shape of the weights and that of the scales."""
    if codes is None or scales is None or codes.static is None or scales.static is None:
        return "scales of unknown shape"
    if math.prod(scales.static) == 1:
        return "one scale"
    if len(codes.static) != len(scales.static):
        return "scales of another rank"
    kept = [axis for axis, (n, of) in enumerate(zip(scales.static, codes.static)) if n == of and n > 1]
    size = math.prod(codes.static) // max(1, math.prod(scales.static))
    if len(kept) > 1 and len(codes.static) == 3:
        return f"groups of {size}"
    return "one scale per channel" if len(kept) == 1 else f"one scale per {size} weights"


def stored_bytes(layer: Layer) -> int:
    """Return the size of a Const in the .bin, in bytes; 0 if it cannot be read."""
    text = layer.attributes.get("size", "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 20 else 0


def _shape(layer: Layer) -> PartialShape | None:
    return PartialShape.parse(layer.attributes.get("shape", ""))


def _count(constant: Layer) -> int:
    """Return the number of elements of a Const; 0 if its shape cannot be read."""
    shape = _shape(constant)
    return 0 if shape is None else shape.least
