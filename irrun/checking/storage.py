"""List how the weights of a model are stored: element types, groups that share a scale, and bytes."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass
from typing import Any, Final

from irrun.inference.compressed import compressed_weights, weight_form
from irrun.model import Layer, Model, is_constant
from irrun.types import ElementType, PartialShape

__all__ = ["Storage", "storage", "stored_bytes"]


@dataclass(frozen=True, slots=True)
class Storage:
    """How a part of the weights is stored, such as ``u4, groups of 128``. ``bytes`` counts shared bytes once.

    ``unpacked`` is whether a run unpacks these weights to floats, because their layers or consumers need it.
    """

    form: str
    constants: int
    parameters: int
    bytes: int
    unpacked: bool = False

    def record(self) -> dict[str, Any]:
        return {
            "stored_as": self.form, "constants": self.constants, "parameters": self.parameters, "bytes": self.bytes,
            "unpacked": self.unpacked,
        }  # fmt: skip


Packed = Callable[[Model], Container[int]]
"""A function that returns the Const layers of a model or body whose codes a run keeps as the file has them."""


def storage(model: Model, packed: Packed | None = None) -> list[Storage]:
    """Return how the weights of a model and its bodies are stored, the most bytes first.

    ``packed`` says what a run keeps. Without it, nothing is reported as unpacked.
    """
    rows: dict[tuple[str, bool], list[tuple[Layer, int]]] = {}
    for layer, form, count, unpacked in _forms(model, packed):
        rows.setdefault((form, unpacked), []).append((layer, count))
    seen: set[tuple[str | None, str | None]] = set()
    found: list[Storage] = []
    for (form, unpacked), layers in rows.items():
        total = 0
        for layer, _ in layers:
            place, size = (layer.attributes.get("offset"), layer.attributes.get("size")), stored_bytes(layer)
            total += 0 if place in seen else size
            seen.add(place)
        found.append(Storage(form, len(layers), sum(count for _, count in layers), total, unpacked))
    return sorted(found, key=lambda row: (-row.bytes, row.form, row.unpacked))


_SCALES: Final = "scales and zero points"


def _forms(model: Model, packed: Packed | None) -> Iterator[tuple[Layer, str, int, bool]]:
    """Yield each Const of a model with its form, the number of its elements, and whether a run unpacks it."""
    forms: dict[int, str] = {}
    unpacked: set[int] = set()
    for weights in compressed_weights(model):
        numbers = [id for id in (weights.zeros, weights.scales) if id is not None]
        if numbers or weights.quantized:
            forms |= {weights.codes: weight_form(model, weights), **dict.fromkeys(numbers, _SCALES)}
            if packed is not None and weights.codes not in packed(model):
                unpacked.add(weights.codes)
    for id, layer in model.layers.items():
        if is_constant(layer):
            type = ElementType.parse(layer.attributes.get("element_type", ""))
            yield layer, forms.get(id) or (str(type) if type else "unknown"), _count(layer), id in unpacked
    for layer in model.layers.values():
        for body in layer.bodies.values():
            yield from _forms(body, packed)


def stored_bytes(layer: Layer) -> int:
    """Return the size of a Const in the .bin, in bytes; 0 if it cannot be read."""
    text = layer.attributes.get("size", "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 20 else 0


def _count(constant: Layer) -> int:
    """Return the number of elements of a Const; 0 if its shape cannot be read."""
    shape = PartialShape.parse(constant.attributes.get("shape", ""))
    return 0 if shape is None else shape.least
