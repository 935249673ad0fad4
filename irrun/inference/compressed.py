"""Recognise compressed weights: constant codes from which a few layers compute a matrix.

The layers are ``Const - Convert - Subtract zero points - Multiply scales - Reshape``. All but Const and Convert are
optional, and each may be followed by another Convert. The planner leaves such constants as the file has them, and
``irrun show`` says how they are stored. ``irrun diff`` compares the matrices, and not their codes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from irrun.model import Layer, Model, is_constant
from irrun.types import ElementType, PartialShape

__all__ = ["Compressed", "compressed_weights", "decompression", "number_path", "weight_form"]

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
    whole: bool
    """Whether the only layer that reads the matrix does not go on computing it, in an order that has no other name."""

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
        if is_constant(layer) and (type := _type(layer)) is not None and type.bits <= 16:
            found = decompression(model, id)
            if found.whole and len(found.layers) > 1:
                yield found


def decompression(model: Model, codes: int) -> Compressed:
    """Return a Const with the layers that decompress it, as far as they do nothing else; the Const alone if none do.

    The codes may also be f32, which layers scale.
    """
    types = _computed_in(_type(model.layers[codes]))
    layers = [codes]
    zeros: int | None = None
    scales: int | None = None
    is_reshaped, is_whole = False, True
    while types and (reader := _only_reader(model, layers[-1])) is not None:
        id, position = reader
        layer = model.layers[id]
        if layer.type == "Convert":
            is_whole = position == 0 and _destination(layer) in types
        elif layer.type in ("Subtract", "Multiply"):
            path = number_path(model, id, 1 - position)
            is_wide = types == ("f32",)
            is_whole = bool(path) and (len(layers) > 1 or is_wide) and not is_reshaped and scales is None
            is_whole = is_whole and _count(model.layers[path[-1]]) <= _count(
                model.layers[codes]
            )  # those of other codes
            if is_whole and layer.type == "Multiply":
                scales = path[-1]
            elif is_whole := is_whole and position == 0 and zeros is None:
                zeros = path[-1]
        elif layer.type == "Reshape" and position == 0:
            is_reshaped = True
        else:
            break
        if not is_whole:
            break
        layers.append(id)
    reader = _only_reader(model, layers[-1])
    is_plain = len(layers) > 1 and zeros is None and scales is None
    is_quantized = is_plain and reader is not None and reader[1] == 0 and model.layers[reader[0]].type == "FakeQuantize"
    return Compressed(tuple(layers), zeros, scales, is_quantized, is_whole)


def weight_form(model: Model, weights: Compressed) -> str:
    """Return the form of compressed weights; that of a constant alone is its element type."""
    codes = model.layers[weights.codes]
    type = _type(codes)
    if weights.quantized:
        return f"{type}, FakeQuantize"
    if (weights.zeros is None and weights.scales is None) or (type is not None and type.name == "f32"):
        return str(type) if type else "unknown"
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


def _computed_in(codes: ElementType | None) -> tuple[str, ...]:
    """Return the element types in which layers may compute with codes of a type; none if they cannot be weights."""
    if codes is None or codes.kind not in ("int", "uint", "float"):
        return ()
    if codes.name in _HALVES:
        return "f32", codes.name
    return ("f32", "f16") if codes.bits <= 8 else ("f32",) if codes.name == "f32" else ()


def _only_reader(model: Model, id: int) -> tuple[int, int] | None:
    """Return the only input that reads a layer's first output: a layer id and a position. None if there are others."""
    readers = model.readers.get((id, 0), ())
    return readers[0] if len(readers) == 1 else None


def number_path(model: Model, id: int, position: int) -> list[int]:
    """Return the layers from the producer of an input up to the Const that it converts; none for another input."""
    path: list[int] = []
    while (feed := _feed(model, id, position)) is not None:
        layer = model.layers[feed[0]]
        if is_constant(layer):
            return [*path, layer.id]
        if layer.type != "Convert" or _destination(layer) not in ("f16", "f32") or layer.id in path:
            break
        path.append(layer.id)
        id, position = layer.id, 0
    return []


def _feed(model: Model, id: int, position: int) -> tuple[int, int] | None:
    """Return the output that feeds an input; None if no edge does, or the layer has no such input."""
    feeds = model.feeds[id]
    return feeds[position] if position < len(feeds) else None


def _type(constant: Layer) -> ElementType | None:
    return ElementType.parse(constant.attributes.get("element_type", ""))


def _destination(layer: Layer) -> str:
    """Return the element type to which a Convert converts, or an empty text if it cannot be parsed."""
    type = ElementType.parse(layer.attributes.get("destination_type", ""))
    return "" if type is None else type.name


def _shape(constant: Layer) -> PartialShape | None:
    return PartialShape.parse(constant.attributes.get("shape", ""))


def _count(constant: Layer) -> int:
    """Return the number of elements of a Const; 0 if its shape cannot be read."""
    shape = _shape(constant)
    return 0 if shape is None else shape.least
