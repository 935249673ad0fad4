"""Join two IR models into one document."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from lxml import etree  # pyright: ignore[reportAttributeAccessIssue]  (no stubs)

from irrun.ir.write import to_xml
from irrun.model import Model
from irrun.model.weights import Weights

__all__ = ["join"]

_ALIGNMENT = 64
"""The offset of the second model's weights is a multiple of this many bytes."""


def join(a: Model, b: Model, links: Mapping[int, tuple[int, int]], closed: set[int]) -> tuple[bytes, Weights | None]:
    """Return the XML of a model with the layers of ``a`` and then of ``b``, and its weights.

    ``links`` holds, for each Parameter of ``b`` to remove, the output of ``a`` that its consumers read: a layer id and
    a port id. ``closed`` are the Results of ``a`` to remove. The ids of the layers of ``b`` follow those of ``a``. The
    weights of both are copied into memory. Elements around the layers of ``b``, such as its ``rt_info``, are dropped.
    """
    root, other = etree.fromstring(to_xml(a)), etree.fromstring(to_xml(b))
    size = 0 if a.weights is None else -(-len(a.weights) // _ALIGNMENT) * _ALIGNMENT
    fresh = max(a.layers) + 1
    layers, edges = root.find("layers"), root.find("edges")
    for layer in [layer for layer in layers if int(layer.get("id")) in closed]:
        layers.remove(layer)
    for edge in [edge for edge in edges if int(edge.get("to-layer")) in closed]:
        edges.remove(edge)
    for layer in other.iter("layer"):
        if layer.get("type").lower() in ("const", "constant"):
            data = layer.find("data")
            data.set("offset", str(int(data.get("offset")) + size))
    for layer in list(other.find("layers")):
        id = int(layer.get("id"))
        if id not in links:
            layer.set("id", str(id + fresh))
            layers.append(layer)
    for edge in list(other.find("edges")):
        start = int(edge.get("from-layer"))
        if start in links:
            edge.set("from-layer", str(links[start][0]))
            edge.set("from-port", str(links[start][1]))
        else:
            edge.set("from-layer", str(start + fresh))
        edge.set("to-layer", str(int(edge.get("to-layer")) + fresh))
        edges.append(edge)
    return etree.tostring(root, encoding="utf-8", xml_declaration=True), _joined(a.weights, b.weights, size)


def _joined(a: Weights | None, b: Weights | None, size: int) -> Weights | None:
    """Return the bytes of ``a``, padded to ``size``, and then those of ``b``."""
    if a is None and b is None:
        return None
    parts = [w.data if w is not None else np.empty(0, np.uint8) for w in (a, b)]
    return Weights(data=b"".join([parts[0].tobytes().ljust(size, b"\0"), parts[1].tobytes()]))
