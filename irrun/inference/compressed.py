"""Recognise compressed weights: constant codes from which a few layers compute a matrix.

The layers are ``Const - Convert - Subtract zero points - Multiply scales - Reshape``. All but Const and Convert are
optional, and each may be followed by another Convert. The planner leaves such constants as the file has them, and
``irrun show`` says how they are stored.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from irrun.model import Layer, Model, is_constant
from irrun.types import ElementType, PartialShape

__all__ = ["Compressed", "compressed_weights"]

_HALVES: Final = ("f16", "bf16")


@dataclass(frozen=True, slots=True)
class Compressed:
    """A matrix that layers compute as ``(codes - zeros) * scales``. Only the next layer reads each one's output."""

    layers: tuple[int, ...]
    """The ids of the layers, from the Const that holds the codes to the one whose output is the matrix."""
    zeros: int | None
    """The id of the Const that holds the zero points, or None."""
    scales: int | None
    """The id of the Const that holds the scales, or None."""
    quantized: bool
    """Whether a FakeQuantize, and nothing else, reads converted codes. It computes the matrix, in another way."""

    @property
    def codes(self) -> int:
        """The id of the Const that holds the codes."""
        return self.layers[0]

    @property
    def output(self) -> tuple[int, int]:
        """The output that is the matrix."""
        return self.layers[-1], 0


def compressed_weights(model: Model) -> Iterator[Compressed]:
    """Yield the compressed weights of a model, without those of its bodies.

    Their codes are integers or narrow floats. Layers that compute something else of the codes, or in a type that rounds
    otherwise than f16, make no compressed weights.
    """
    for id, layer in model.layers.items():
        type = ElementType.parse(layer.attributes.get("element_type", "")) if is_constant(layer) else None
        if type is not None and (type.bits <= 8 or type.name in _HALVES) and type.kind in ("int", "uint", "float"):
            found = _compressed(model, id, ("f32", type.name) if type.name in _HALVES else ("f32", "f16"))
            if found is not None and len(found.layers) > 1:
                yield found


def _compressed(model: Model, codes: int, types: tuple[str, ...]) -> Compressed | None:
    """Return the compressed weights of a Const, or None. ``types`` are those that the layers may compute in."""
    layers = [codes]
    zeros: int | None = None
    scales: int | None = None
    is_reshaped = False
    while (reader := _only_reader(model, layers[-1])) is not None:
        id, position = reader
        layer = model.layers[id]
        if layer.type == "Convert":
            if _destination(layer) not in types:
                return None
        elif layer.type in ("Subtract", "Multiply"):
            number = _number(model, id, 1 - position)
            if number is None or len(layers) == 1 or is_reshaped or scales is not None:
                return None
            if _count(model.layers[number]) > _count(model.layers[codes]):
                return None  # these are the zero points or scales of other codes
            if layer.type == "Multiply":
                scales = number
            elif position == 0 and zeros is None:
                zeros = number
            else:
                return None
        elif layer.type == "Reshape" and position == 0:
            is_reshaped = True
        else:
            break
        layers.append(id)
    is_plain = len(layers) > 1 and zeros is None and scales is None
    is_quantized = is_plain and reader is not None and reader[1] == 0 and model.layers[reader[0]].type == "FakeQuantize"
    return Compressed(tuple(layers), zeros, scales, is_quantized)


def _only_reader(model: Model, id: int) -> tuple[int, int] | None:
    """Return the only input that reads a layer's first output: a layer id and a position. None if there are others."""
    readers = model.readers.get((id, 0), ())
    return readers[0] if len(readers) == 1 else None


def _number(model: Model, id: int, position: int) -> int | None:
    """Return the id of the Const that a layer reads, directly or through Convert, or None for another input."""
    feed = model.feeds[id][position] if position < len(model.feeds[id]) else None
    while feed is not None and model.layers[feed[0]].type == "Convert":
        if _destination(model.layers[feed[0]]) not in ("f16", "f32"):
            return None
        feed = model.feeds[feed[0]][0]
    return None if feed is None or not is_constant(model.layers[feed[0]]) else feed[0]


def _destination(layer: Layer) -> str:
    """Return the element type to which a Convert converts, or an empty text if it cannot be parsed."""
    type = ElementType.parse(layer.attributes.get("destination_type", ""))
    return "" if type is None else type.name


def _count(constant: Layer) -> int:
    """Return the number of elements of a Const; 0 if its shape cannot be read."""
    shape = PartialShape.parse(constant.attributes.get("shape", ""))
    return 0 if shape is None else shape.least
