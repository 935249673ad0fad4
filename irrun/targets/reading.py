"""What OpenVINO reads where the attributes of a file are missing or have no valid text."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from irrun.inference.bind import bind, declaration
from irrun.model import Layer, Model
from irrun.opdef import Attribute, Op

__all__ = ["BEGIN", "LIST", "NUMBER", "SIGNS", "as_read", "declared_attributes", "is_valid", "texts"]

NUMBER: Final = ("int", "size", "float")
"""The kinds of attributes that hold a number."""
LIST: Final = ("ints", "floats")
"""The kinds of attributes that hold several numbers."""
BEGIN: Final = re.compile(r"\s*[+-]?\d+")
"""A number at the begin of a text."""
SIGNS: Final = re.compile("--+")
"""Signs of a dim that a release takes for one."""
_STEPS: Final = {"strides": "1", "dilations": "1", "pads_begin": "0", "pads_end": "0", "kernel": ""}
"""What a missing list of a sliding window has for each spatial axis; a missing kernel is refused."""
_STORED: Final = ("Const", "Constant")
"""Layers whose attributes say where numbers are: no release reads such a layer without them."""
_NEEDED: Final = {("AvgPool", "strides"), ("MaxPool", "strides"), ("ExtractImagePatches", "auto_pad")}
"""Attributes without which no release, or none since 2023, reads a layer."""
_FIRST: Final = {("TopK", "sort"): "none", ("AvgPool", "exclude-pad"): "true", ("GRN", "bias"): "1"}
"""What OpenVINO takes for missing attributes other than 0, false, the first of the choices and an empty list."""


def as_read(model: Model, ops: Mapping[int, Op | None]) -> dict[int, Op | None]:
    """Return the operations as OpenVINO reads them.

    A Parameter without the attribute shape is a scalar. A flag without a valid text keeps its default. Of a text that
    is no number, the number at its begin counts, or else 0. A required attribute that is missing has the value with
    which OpenVINO makes the layer.
    """
    read = dict(ops)
    for id, layer in model.layers.items():
        if (attributes := texts(layer)) != layer.attributes:
            read[id] = bind(model, replace(layer, attributes=attributes))[0]
    return read


def texts(layer: Layer) -> dict[str, str]:
    """Return the texts of the attributes of a layer as OpenVINO reads them."""
    attributes, cls = dict(layer.attributes), declaration(layer)
    if layer.type.lower() == "parameter":
        attributes.setdefault("shape", "")
    for name, attribute in declared_attributes(cls).items():
        if name not in attributes or is_valid(attribute, attributes[name]):
            continue
        if attribute.kind == "bool":
            del attributes[name]
        elif attribute.kind in NUMBER and layer.type not in _STORED:
            attributes[name] = _number(attributes[name])
        elif attribute.kind in LIST:
            attributes[name] = ",".join(map(_number, attributes[name].split(",")))
        elif attribute.kind == "shape":
            attributes[name] = SIGNS.sub("-", attributes[name])
    if layer.type == "Interpolate" and re.fullmatch(r"[\d, ]+", attributes.get("axes", "")):  # a set
        attributes["axes"] = ",".join(sorted(re.findall(r"\d+", attributes["axes"]), key=int))
    for attribute in cls.attributes.values() if cls and cls.type not in _STORED else ():
        if attribute.required and not attributes.keys() & {attribute.name, *attribute.aliases}:
            text = _missing(layer.type, attribute, attributes)
            if text is not None:
                attributes[attribute.name] = text
    return attributes


def _missing(type: str, attribute: Attribute, attributes: Mapping[str, str]) -> str | None:
    """Return the text that stands for a missing attribute, or None if there is none."""
    if (type, attribute.name) in _NEEDED:
        return None
    if (type, attribute.name) in _FIRST:
        return _FIRST[type, attribute.name]
    if attribute.name in _STEPS:
        axes = max((len(attributes[name].split(",")) for name in _STEPS if attributes.get(name)), default=0)
        return ",".join([_STEPS[attribute.name]] * axes) if axes else None
    if attribute.kind in NUMBER:
        return "0"
    if attribute.kind == "choice":
        return attribute.words[0]
    return {"bool": "false", "ints": "", "floats": ""}.get(attribute.kind)


def declared_attributes(cls: type[Op] | None) -> dict[str, Attribute]:
    """Return the attributes of an operation by each name that a file may give them."""
    return {name: a for a in cls.attributes.values() for name in (a.name, *a.aliases)} if cls else {}


def is_valid(attribute: Attribute, text: str) -> bool:
    """Return whether a text is a value of an attribute."""
    try:
        attribute.parse(text)
    except (ValueError, OverflowError):
        return False
    return True


def _number(text: str) -> str:
    """Return the number at the begin of a text, or 0."""
    match = BEGIN.match(text)
    return match[0] if match else "0"
