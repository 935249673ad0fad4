"""Name the layers of a file by numbers, as converters do that know no better, anew in each file."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
from lxml import etree

__all__ = ["numbered"]


def numbered(source: Path, target: Path, rng: np.random.Generator) -> dict[str, str]:
    """Write a model whose layers have names such as ``matmul_17``, and return the names that they had.

    The numbers are in random order. Inputs keep their names, by which a server passes them; tensors have none.
    """
    tree = etree.parse(str(source))
    layers = [layer for layer in tree.getroot().find("layers") if layer.get("type") != "Parameter"]
    before: dict[str, str] = {}
    for number, layer in zip(rng.permutation(len(layers)), layers):
        name = f"{layer.get('type').lower()}_{number}"
        before[name] = layer.get("name")
        layer.set("name", name)
        for port in layer.iter("port"):
            port.attrib.pop("names", None)
    tree.write(str(target), xml_declaration=True)
    shutil.copy(source.with_suffix(".bin"), target.with_suffix(".bin"))
    return before
