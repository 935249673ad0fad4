"""Store the floating-point constants of a model in another type, and decompress them where they are read."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

import ml_dtypes
import numpy as np

from irrun.api import PathLike, as_model
from irrun.inference.settled import settled
from irrun.ir.write import to_xml
from irrun.model import Edge, Layer, Model, Port, is_constant
from irrun.model.weights import Weights, pack
from irrun.surgery._models import reread
from irrun.surgery._unused import drop_unused
from irrun.types import ELEMENT_TYPES, PartialShape

__all__ = ["STORED", "storage_limit", "store"]

STORED: Final = ("f32", "f16", "bf16")
"""The types in which constants can be stored."""
_MIN_ELEMENTS: Final = 16
"""The least elements of a constant that is compressed: a Convert for a smaller one takes more than it saves."""
_EXACT: Final = ("fakequantize", "fakeconvert", "readvalue", "result")
"""Layers, in lower case, whose constants are not compressed: ranges of a quantisation, initial values, and outputs."""
_ATTRIBUTE: Final = "irrun-decompression"
"""An attribute that stands for ``_MARK`` in a layer, which has no place for ``rt_info``."""
_MARKED: Final = f' {_ATTRIBUTE}="" />'.encode()
_MARK: Final = b' /><rt_info><attribute name="decompression" version="0" /></rt_info>'
"""The end of ``<data>`` and the entry by which OpenVINO knows that a Convert decompresses a constant."""
_ALIGNMENT: Final = 64


def store(model: Model | PathLike, stored: str) -> Model:
    """Return the model whose f32 constants are stored as ``stored``: f32, f16 or bf16, bodies included.

    A compressed constant is read through a Convert to f32 with the name of the constant and the mark with which
    OpenVINO writes it. A constant stays in f32 if it has less than 16 elements or a number that the type cannot hold,
    and if it is a range of a quantisation, an initial value or an output. Constants that such a Convert decompresses
    become f32 first. Offsets in the new ``.bin`` are multiples of 64, and equal bytes are stored once.
    """
    model = as_model(model)
    blob = _Blob()
    layers, edges = _stored(model, stored, blob)
    text = to_xml(replace(model, layers=layers, edges=tuple(edges))).replace(_MARKED, _MARK)
    return drop_unused(reread(model, text, Weights(data=bytes(blob.data))))


def storage_limit(stored: str) -> float:
    """Return by how much outputs may differ with constants of another type, relative to the largest number of each."""
    return 0.0 if stored == "f32" else float(np.sqrt(float(ml_dtypes.finfo(ELEMENT_TYPES[stored].dtype).eps)) / 8)


@dataclass(slots=True)
class _Blob:
    """A ``.bin`` in the making."""

    data: bytearray = field(default_factory=bytearray)
    offsets: dict[bytes, int] = field(default_factory=dict)

    def place(self, raw: bytes) -> dict[str, str]:
        """Return the attributes ``offset`` and ``size`` of bytes, which are added unless they are there already."""
        key = hashlib.blake2b(raw).digest()
        if key not in self.offsets:
            self.data += bytes(-len(self.data) % _ALIGNMENT)
            self.offsets[key] = len(self.data)
            self.data += raw
        return {"offset": str(self.offsets[key]), "size": str(len(raw))}


def _stored(model: Model, stored: str, blob: _Blob) -> tuple[Mapping[int, Layer], list[Edge]]:
    """Return the layers and edges of a model or body with its constants in ``blob``."""
    values = settled(model)
    layers: dict[int, Layer] = {}
    edges = list(model.edges)
    fresh = max(model.layers, default=0) + 1
    for id, layer in model.layers.items():
        bodies: dict[str, Model] = {}
        for tag, body in layer.bodies.items():
            inside, own = _stored(body, stored, blob)
            bodies[tag] = replace(body, layers=inside, edges=tuple(own))
        source = _decompressed(model, layer)
        array = values[(id if source is None else source), 0].data if is_constant(layer) or source is not None else None
        if array is None or layer.outputs[0].type is None:
            layers[id] = replace(layer, bodies=bodies) if bodies else _placed(model, layer, blob)
            continue
        edges = [edge for edge in edges if source is None or edge.to_layer != id]
        name = layer.outputs[0].type.name
        readers = {model.layers[reader].type.lower() for reader in model.consumers.get(id, ())}
        narrow = None if name != "f32" or stored == "f32" or readers & {*_EXACT} else _narrowed(array, stored)
        if narrow is None and source is None:
            layers[id] = _placed(model, layer, blob)
            continue
        port = replace(layer.outputs[0], id=0)
        if narrow is None:
            layers[id] = _constant(replace(layer, outputs=(port,), node=-1), array.astype(np.float32), "f32", blob)
        else:
            own_type = ELEMENT_TYPES[stored]
            inner = Port(0, own_type, PartialShape.of(array.shape), (), -1)
            compressed = Layer(fresh, f"{layer.name}_compressed", "Const", "opset1", {}, (), (inner,), -1)
            layers[fresh] = _constant(compressed, narrow, stored, blob)
            attributes = {"destination_type": "f32", _ATTRIBUTE: ""}
            outputs = (replace(port, id=1),)
            layers[id] = Layer(id, layer.name, "Convert", "opset1", attributes, (inner,), outputs, -1)
            edges.append(Edge(fresh, 0, id, 0, -1))
            fresh += 1
        last = layers[id].outputs[0].id
        edges = [replace(e, from_port=last) if e.from_layer == id else e for e in edges]
    return layers, edges


def _decompressed(model: Model, layer: Layer) -> int | None:
    """Return the id of the Const that a Convert decompresses to f32, or None."""
    feed = model.feeds[layer.id][0] if layer.type.lower() == "convert" and layer.inputs else None
    source = None if feed is None else model.layers[feed[0]]
    if source is None or not is_constant(source) or layer.outputs[0].type is not ELEMENT_TYPES["f32"]:
        return None
    return source.id if source.outputs[0].type in (ELEMENT_TYPES["f16"], ELEMENT_TYPES["bf16"]) else None


def _narrowed(array: np.ndarray, stored: str) -> np.ndarray | None:
    """Return the array in a type of two bytes, or None if it is small or if that makes a number infinite."""
    if array.size < _MIN_ELEMENTS:
        return None
    with np.errstate(over="ignore"):
        narrow = array.astype(ELEMENT_TYPES[stored].dtype)
    is_kept = np.array_equal(np.isfinite(narrow.astype(np.float32)), np.isfinite(array))
    return narrow if is_kept else None


def _constant(layer: Layer, array: np.ndarray, name: str, blob: _Blob) -> Layer:
    """Return a Const with the id, the name and the output of ``layer``, whose value is ``array``."""
    raw = pack(array, ELEMENT_TYPES[name])
    attributes = {"element_type": name, "shape": ",".join(map(str, array.shape)), **blob.place(raw)}
    return Layer(layer.id, layer.name, "Const", "opset1", attributes, (), layer.outputs, layer.node)


def _placed(model: Model, layer: Layer, blob: _Blob) -> Layer:
    """Return a layer; a Const has its bytes in ``blob``."""
    if not is_constant(layer) or model.weights is None:
        return layer
    raw = model.weights.bytes_at(int(layer.attributes["offset"]), int(layer.attributes["size"])).tobytes()
    return replace(layer, attributes={**layer.attributes, **blob.place(raw)})
