"""Rewrite an IR file so that it says the same: other ids, another order, and another .bin."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from lxml import etree  # pyright: ignore[reportAttributeAccessIssue]

__all__ = ["scramble"]

BODIES = ("body", "then_body", "else_body")


def scramble(xml: Path, to: Path, seed: int) -> None:
    """Write the model of ``xml`` to ``to`` with other layer and port ids, in another order, with a repacked .bin."""
    rng = random.Random(seed)
    root = etree.parse(str(xml)).getroot()
    _net(root, rng)
    weights = xml.with_suffix(".bin")
    if weights.exists():
        to.with_suffix(".bin").write_bytes(_repack(root, weights.read_bytes(), rng))
    etree.ElementTree(root).write(str(to))


def _net(net: Any, rng: random.Random) -> dict[str, str]:
    """Scramble a net and its bodies, and return the new layer ids."""
    layers, edges = net.find("layers"), net.find("edges")
    ids = dict(zip([layer.get("id") for layer in layers], map(str, rng.sample(range(10 * len(layers)), len(layers)))))
    ports: dict[tuple[str, str], str] = {}
    for layer in layers:
        _layer(layer, ports, rng)
        layer.set("id", ids[layer.get("id")])
    for edge in edges:
        for end in ("from", "to"):
            layer, port = edge.get(f"{end}-layer"), edge.get(f"{end}-port")
            edge.set(f"{end}-port", ports[layer, port])
            edge.set(f"{end}-layer", ids[layer])
    for parent in (layers, edges):
        children = list(parent)
        rng.shuffle(children)
        parent[:] = children
    if rng.random() < 0.5:  # edges may stand before layers
        net.remove(edges)
        net.insert(0, edges)
    return ids


def _layer(layer: Any, ports: dict[tuple[str, str], str], rng: random.Random) -> None:
    own = [port for side in ("input", "output") for port in (layer.find(side) if layer.find(side) is not None else ())]
    numbers = sorted(rng.sample(range(10 * len(own)), len(own)))
    new = dict(zip([port.get("id") for port in own], map(str, numbers)))
    outputs = {port.get("id") for port in layer.findall("output/port")}
    for port in own:
        ports[layer.get("id"), port.get("id")] = new[port.get("id")]
        port.set("id", new[port.get("id")])
    for tag in BODIES:
        body = layer.find(tag)
        if body is None:
            continue
        ids = _net(body, rng)
        for entry in layer.find(tag.replace("body", "port_map")):
            external = entry.get("external_port_id")
            if entry.tag == "input" or external in outputs:  # files of 2021 number the outputs of If from 0
                entry.set("external_port_id", new.get(external, external))
            entry.set("internal_layer_id", ids[entry.get("internal_layer_id")])
        for edge in layer.find("back_edges") if tag == "body" and layer.find("back_edges") is not None else ():
            for end in ("from-layer", "to-layer"):
                edge.set(end, ids[edge.get(end)])


def _repack(root: Any, data: bytes, rng: random.Random) -> bytes:
    """Give each constant a place in a new .bin, and return its bytes."""
    constants = [data for layer in root.iter("layer") if layer.get("type") == "Const" for data in layer.findall("data")]
    rng.shuffle(constants)
    alignment, shares = rng.choice((1, 8, 64, 100)), rng.random() < 0.5
    new, places = bytearray(rng.randbytes(rng.randrange(9))), {}
    for constant in constants:
        offset, size = int(constant.get("offset")), int(constant.get("size"))
        raw = data[offset : offset + size]
        if not shares or raw not in places:
            new += rng.randbytes(-len(new) % alignment)
            places[raw] = len(new)
            new += raw
        constant.set("offset", str(places[raw]))
    return bytes(new)
