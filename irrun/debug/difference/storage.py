"""Constants that one of two files stores in f16 or bf16, rounded from those of the other file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from irrun.base.source import Source
from irrun.debug.difference.constants import Numbers
from irrun.debug.difference.decompression import numbers
from irrun.debug.difference.diff import LayerDifference
from irrun.diagnostics import ModelError
from irrun.ir.parse import parse
from irrun.ir.write import to_xml
from irrun.model import Layer, Model
from irrun.model.weights import Weights, pack
from irrun.types import ELEMENT_TYPES

__all__ = ["Stored", "stored_constants"]

_NARROW: Final = ("f16", "bf16")
_ALIGNMENT: Final = 64


@dataclass(frozen=True)
class Stored:
    """The constants of a candidate that are those of a reference, rounded in one of both files to a narrower type.

    ``types`` are those of the candidate's and of the reference's file. ``model`` is that of the reference, with the
    candidate's values in f32.
    """

    count: int
    types: tuple[str, str]
    model: Model


def stored_constants(a: Model | None, b: Model | None, found: Sequence[LayerDifference]) -> Stored | None:
    """Return what the candidate ``b`` stores in another type than the reference ``a``; None without such constants.

    ``found`` are the layers in which both differ. A constant belongs to it if the narrower one is the other one rounded
    to nearest, ties to even. A number that overflows is another one.
    """
    if a is None or b is None or a.weights is None or b.weights is None:
        return None
    kept: dict[tuple[int, int], bytes] = {}
    types: list[tuple[str, str]] = []
    for layer in found:
        forms = next(((change.b, change.a) for change in layer.changes if change.kind == "stored"), None)
        is_other = any(change.kind == "weights" for change in layer.changes)
        if forms is None or not is_other or layer.a is None or layer.b is None:
            continue
        first, second = layer.matching.a, layer.matching.b
        output = _output(layer)
        with suppress(ModelError):
            own = numbers(first, first.layers[output[0]], layer.matching.weights_a.get(output[0]), a.weights)
            theirs = numbers(second, second.layers[output[1]], layer.matching.weights_b.get(output[1]), b.weights)
            if own is None or theirs is None or not _is_rounded(own, theirs, *forms):
                continue
            weight = layer.matching.weights_a.get(output[0])
            codes = output[0] if weight is None else weight.layers[0]
            kept[id(first), codes] = pack(theirs.elements(0, theirs.count), ELEMENT_TYPES["f32"])
            types.append((forms[0] or "", forms[1] or ""))
    if not kept:
        return None
    blob = bytearray(a.weights.data.tobytes())
    text = to_xml(_replaced(a, kept, blob))
    model = parse(Source(f"{a.source.path} with other constants", text), Weights(data=bytes(blob))).runnable()
    return Stored(len(kept), max(types, key=types.count), model)


def _output(layer: LayerDifference) -> tuple[int, int]:
    """Return the ids, in both models, of the layers whose outputs are the values of a constant that differs."""
    assert layer.a is not None
    assert layer.b is not None
    ids = []
    for at, weights in ((layer.a.id, layer.matching.weights_a), (layer.b.id, layer.matching.weights_b)):
        ids.append(next((output for output, weight in weights.items() if at in weight.layers), at))
    return ids[0], ids[1]


def _is_rounded(own: Numbers, theirs: Numbers, form: str | None, other: str | None) -> bool:
    """Return whether one of two constants is the other one in its narrower form."""
    if own.count != theirs.count or {form, other} - {"f32", *_NARROW} or form == other:
        return False
    narrow = next(name for name in (form, other) if name in _NARROW)
    first, second = (n.elements(0, n.count).astype(np.float32) for n in (own, theirs))
    if form != "f32" and other != "f32":
        return False
    wide, rounded = (first, second) if form == narrow else (second, first)
    with np.errstate(over="ignore"):
        return np.array_equal(wide.astype(ELEMENT_TYPES[narrow].dtype).astype(np.float32), rounded, equal_nan=True)


def _replaced(model: Model, kept: Mapping[tuple[int, int], bytes], blob: bytearray) -> Model:
    """Return a model whose constants in ``kept`` are stored at the end of ``blob``, in f32."""
    layers: dict[int, Layer] = {}
    for at, layer in model.layers.items():
        if (raw := kept.get((id(model), at))) is not None:
            blob += bytes(-len(blob) % _ALIGNMENT)
            place = {"element_type": "f32", "offset": str(len(blob)), "size": str(len(raw))}
            blob += raw
            ports = tuple(replace(port, type=ELEMENT_TYPES["f32"]) for port in layer.outputs)
            layer = replace(layer, attributes={**layer.attributes, **place}, outputs=ports)
        elif layer.bodies:
            layer = replace(layer, bodies={tag: _replaced(body, kept, blob) for tag, body in layer.bodies.items()})
        layers[at] = layer
    return replace(model, layers=layers)
