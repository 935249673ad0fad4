"""Change a saved graph: constants, wires and attributes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from lxml import etree

import irrun
from irrun.debug.paged.sides import contents
from irrun.model import Layer

__all__ = ["Graph"]


class Graph:
    """A paged model in a file, with its layers, and the changes to it.

    ``exported`` holds the names that exporters gave to layers that have other names in the file.
    """

    def __init__(self, path: Path, exported: Mapping[str, str] | None = None) -> None:
        self._exported = exported or {}
        self.executable = irrun.compile(path)
        self.model = self.executable.model
        self.tree = etree.parse(str(path))
        self.data = path.with_suffix(".bin").read_bytes()
        self.layers = [self.model.layers[id] for id in self.model.order]

    def of(self, *types: str) -> list[Layer]:
        return [layer for layer in self.layers if layer.type in types]

    def exported(self, layer: Layer) -> str:
        """Return the name that an exporter gave to a layer."""
        return self._exported.get(layer.name, layer.name)

    def source(self, layer: Layer, position: int) -> Layer:
        feed = self.model.feeds[layer.id][position]
        assert feed is not None
        return self.model.layers[feed[0]]

    def value(self, layer: Layer, position: int) -> np.ndarray | None:
        feed = self.model.feeds[layer.id][position]
        return contents(self.executable, feed)

    def change(self, constant: Layer, change: Callable[[np.ndarray], np.ndarray]) -> None:
        """Replace the contents of a Const. OpenVINO stores equal constants once, so the new ones go to the end."""
        array = contents(self.executable, (constant.id, constant.outputs[0].id))
        assert array is not None
        new = np.ascontiguousarray(change(array.copy()).astype(array.dtype))
        assert new.shape == array.shape
        self.data += bytes(-len(self.data) % 64)
        element = self._element(constant).find("data")
        assert element is not None
        element.set("offset", str(len(self.data)))
        element.set("size", str(new.nbytes))
        self.data += new.tobytes()

    def feed(self, layer: Layer, position: int, array: np.ndarray) -> None:
        """Connect an input of a layer to a new Const."""
        self.data += bytes(-len(self.data) % 64)
        number = str(max(self.model.layers) + 1)
        kind = {"float32": "f32", "int32": "i32"}[str(array.dtype)]
        attributes = {
            "element_type": kind,
            "shape": ",".join(map(str, array.shape)),
            "offset": str(len(self.data)),
            "size": str(array.nbytes),
        }
        self.data += np.ascontiguousarray(array).tobytes()
        layers = self.tree.getroot().find("layers")
        assert layers is not None
        made = etree.SubElement(layers, "layer", id=number, name="planted", type="Const", version="opset1")
        etree.SubElement(made, "data", attributes)
        port = etree.SubElement(etree.SubElement(made, "output"), "port", id="0", precision=kind.upper())
        for dim in array.shape:
            etree.SubElement(port, "dim").text = str(dim)
        layers.insert(0, made)
        self._wire(layer, position, number, "0")

    def rewire(self, layer: Layer, position: int, source: Layer) -> None:
        """Connect an input of a layer to the first output of another layer."""
        self._wire(layer, position, str(source.id), str(source.outputs[0].id))

    def set(self, layer: Layer, name: str, value: str) -> None:
        element = self._element(layer).find("data")
        assert element is not None
        element.set(name, value)

    def save(self, path: Path) -> None:
        self.tree.write(str(path), xml_declaration=True)
        path.with_suffix(".bin").write_bytes(self.data)

    def _element(self, layer: Layer) -> Any:
        return self.tree.find(f".//layers/layer[@id='{layer.id}']")

    def _wire(self, layer: Layer, position: int, source: str, port: str) -> None:
        wanted = str(layer.inputs[position].id)
        for edge in self.tree.iter("edge"):
            if edge.get("to-layer") == str(layer.id) and edge.get("to-port") == wanted:
                edge.set("from-layer", source)
                edge.set("from-port", port)
                return
        raise AssertionError(f"no edge to input {position} of {layer.name}")
