"""IR files of one operation, for rows of the tables of operations: written by hand, or by OpenVINO with plain names."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from lxml import etree  # pyright: ignore[reportAttributeAccessIssue]  (no stubs)

from irrun.model.weights import pack
from irrun.opdef import Op, Value
from irrun.types import Dim, PartialShape
from nets import Net, Ref

__all__ = ["Writer", "plain"]

INTERNAL = ("RMS", "AUGRUCell", "AUGRUSequence")
"""Operations that OpenVINO writes with an operation set of its own."""


class Writer:
    """Writes a model of one layer, whose inputs are Parameters and constants.

    ``feeds`` are arrays for the Parameters, as far as the caller has any, and ``types`` their element types.
    """

    def __init__(self) -> None:
        self.net = Net()
        self.feeds: list[np.ndarray | None] = []
        self.types: list[str] = []

    def parameter(self, value: Value, position: int, feed: np.ndarray | None = None) -> Ref:
        """Add an input of the type and shape of ``value``."""
        text = str(value.shape)[1:-1]
        self.feeds.append(feed)
        self.types.append(value.type.name)
        return self.net.parameter(value.type.name, text, name=f"in{position}")

    def constant(self, value: Value) -> Ref:
        """Add a constant with the contents of ``value``."""
        assert value.data is not None
        shape = ",".join(map(str, value.data.shape))
        return self.net.const(value.type.name, shape, pack(value.data, value.type))

    def partly(self, value: Value, position: int) -> Ref:
        """Add a list of integers of which some are known: a Concat of constants, and of Parameters for the others."""
        dims: Sequence[Dim] = value.dims() or ()
        parts = [
            self.constant(Value.of_dims([dim], value.type))
            if dim.is_static
            else self.parameter(
                Value(value.type, PartialShape.of([1])), position * 100 + number, np.ones(1, value.type.dtype)
            )
            for number, dim in enumerate(dims)
        ]
        return self.net.add("Concat", parts, [(value.type.port_name, str(len(dims)))], axis=0)

    def layer(self, cls: type[Op], attributes: dict[str, Any], inputs: Sequence[Ref], outputs: Sequence[Value]) -> str:
        """Add the layer and a Result for each of its outputs, and return the text of the IR."""
        opset = "ie_internal_opset" if cls.type in INTERNAL else f"opset{cls.since}"
        ports = [(v.type.port_name, _declared(v.shape)) for v in outputs]
        first = self.net.add(cls.type, inputs, ports, opset=opset, name="layer", **attributes)
        for number, port in enumerate(ports):
            self.net.result(Ref(first.layer, first.port + number, port))
        return self.net.text


def _declared(shape: PartialShape) -> str:
    """Return a shape as ports declare it: unknown dims are -1; nothing for an unknown rank."""
    if shape.rank is None:
        return ""
    return ",".join(str(dim.value) if dim.is_static else "-1" for dim in shape)


def plain(xml: str) -> str:
    """Return an IR that OpenVINO has written, with names that do not depend on what it built before."""
    root = etree.fromstring(xml.encode(), etree.XMLParser(remove_blank_text=True))
    root.set("name", "net")
    for layer in root.iter("layer"):
        if not re.fullmatch(r"in\d+", layer.get("name")):
            layer.set("name", f"{layer.get('type').lower()}{layer.get('id')}")
    for element in root.iter("port", "layer"):  # tensor names of Results, which count what was built before
        for attribute in ("names", "output_names"):
            element.attrib.pop(attribute, None)
    for info in list(root.iter("rt_info")):
        info.getparent().remove(info)
    etree.SubElement(root, "rt_info")
    etree.indent(root, "\t")
    return '<?xml version="1.0"?>\n' + etree.tostring(root, encoding="unicode") + "\n"
