"""What OpenVINO reads where the attributes of a file are missing or have no valid text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from irrun.inference.bind import bind, declaration
from irrun.inference.propagate import Values
from irrun.model import Layer, Model
from irrun.opdef import Attribute, Op, Value
from irrun.targets.kernels import SPATIAL

__all__ = ["as_compiled", "as_read", "of_attributes"]

_NUMBER: Final = ("int", "size", "float")  # the kinds of attributes that hold a number
_LIST: Final = ("ints", "floats")  # the kinds of attributes that hold several numbers
_BEGIN: Final = re.compile(r"\s*[+-]?\d+")  # a number at the begin of a text
_SIGNS: Final = re.compile("--+")  # signs of a dim that a release takes for one
_STEPS: Final = {"strides": "1", "dilations": "1", "pads_begin": "0", "pads_end": "0", "kernel": ""}
"""What a missing list of a sliding window has for each spatial axis; a missing kernel is refused."""
_STORED: Final = ("Const", "Constant")  # no release reads such a layer without all attributes
_PADS: Final = ("pads_begin", "pads_end")
_MAX_TEXT: Final = 24  # the most characters of an attribute in a fact. Longer texts are lists and formulas
_UNTOLD: Final = ("offset", "size", "variable_id", "shape", "element_type")  # they say little, or what ports say
_NEEDED: Final = {("AvgPool", "strides"), ("MaxPool", "strides"), ("ExtractImagePatches", "auto_pad")}  # to read it
_FIRST: Final = {("TopK", "sort"): "none", ("AvgPool", "exclude-pad"): "true", ("GRN", "bias"): "1"}
"""What OpenVINO takes for missing attributes other than 0, false, the first of the choices and an empty list."""
_UNSET: Final = {("ExperimentalDetectronPriorGridGenerator", "flatten"), ("RegionYolo", "do_softmax")}
"""Flags that are false if they are missing, although their default is true."""


def as_read(model: Model, ops: Mapping[int, Op | None]) -> dict[int, Op | None]:
    """Return the operations as OpenVINO reads them.

    A Parameter without the attribute shape is a scalar. A flag without a valid text keeps its default. Of a text that
    is no number, the number at its begin counts, or else 0. A required attribute that is missing has the value with
    which OpenVINO makes the layer, and so have a few optional ones. The first Interpolate has no pads,
    and the axes of the first Broadcast count if it has no mode.
    """
    read = dict(ops)
    for id, layer in model.layers.items():
        if (attributes := _texts(layer)) != layer.attributes:
            read[id] = bind(model, replace(layer, attributes=attributes))[0]
    return read


def as_compiled(model: Model, ops: Mapping[int, Op | None], values: Values) -> dict[int, Op | None]:
    """Return the operations that differ where the plugin infers outputs again: each Interpolate with pads.

    The plugin moves the axes to the end if they are few and not all spatial, but not their pads.
    """
    compiled: dict[int, Op | None] = {}
    for id, layer in model.layers.items():
        op, inputs = ops[id], [None if feed is None else values.get(feed) for feed in model.feeds[id]]
        if layer.type == "Interpolate" and any(any(getattr(op, name, ())) for name in _PADS):
            attributes = {**layer.attributes, **_moved_pads(op, inputs)}
            compiled[id] = bind(model, replace(layer, attributes=attributes))[0]
    return compiled


def _moved_pads(op: Any, inputs: Sequence[Value | None]) -> dict[str, str]:
    """Return the pads of an Interpolate by the axes that the plugin gives them, or nothing if they stay."""
    rank = inputs[0].shape.rank if inputs and inputs[0] is not None else None
    axes = inputs[-1].exact if type(op).since > 1 and len(inputs) > 2 and inputs[-1] is not None else None
    named = sorted(op.axes) if type(op).since == 1 else None if axes is None else axes.ravel().tolist()
    if not rank or named is None or op.mode.endswith("_pillow"):
        return {}
    chosen = [axis % rank for axis in named]
    if not chosen or len(chosen) > rank - SPATIAL or min(chosen) >= SPATIAL:
        return {}
    order = [*(axis for axis in range(rank) if axis not in chosen), *chosen]
    moved = {name: dict(zip(order, [*getattr(op, name), *[0] * rank])) for name in _PADS}
    return {name: ",".join(str(of[axis]) for axis in range(rank)) for name, of in moved.items()}


def _texts(layer: Layer) -> dict[str, str]:
    """Return the texts of the attributes of a layer as OpenVINO reads them."""
    attributes, cls = dict(layer.attributes), declaration(layer)
    if layer.type.lower() == "parameter":
        attributes.setdefault("shape", "")
    for name, attribute in _declared(cls).items():
        if name not in attributes or _is_valid(attribute, attributes[name]):
            continue
        if attribute.kind == "bool":
            del attributes[name]
        elif attribute.kind in _NUMBER and layer.type not in _STORED:
            attributes[name] = _number(attributes[name])
        elif attribute.kind in _LIST:
            attributes[name] = ",".join(map(_number, attributes[name].split(",")))
        elif attribute.kind == "shape":
            attributes[name] = _SIGNS.sub("-", attributes[name])
    if layer.type == "Interpolate" and re.fullmatch(r"[\d, ]+", attributes.get("axes", "")):  # a set
        attributes["axes"] = ",".join(sorted(re.findall(r"\d+", attributes["axes"]), key=int))
    if cls is not None and (cls.type, cls.since, len(layer.inputs)) == ("Broadcast", 1, 3):
        attributes.setdefault("mode", "explicit")
    if cls is not None and (cls.type, cls.since) == ("Interpolate", 1):
        attributes = {name: text for name, text in attributes.items() if not name.startswith("pads_")}
    for attribute in cls.attributes.values() if cls and cls.type not in _STORED else ():
        is_read = attribute.required or (layer.type, attribute.name) in _UNSET
        if is_read and not attributes.keys() & {attribute.name, *attribute.aliases}:
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
    if attribute.kind in _NUMBER:
        return "0"
    if attribute.kind == "choice":
        return attribute.words[0]
    return {"bool": "false", "ints": "", "floats": ""}.get(attribute.kind)


def _declared(cls: type[Op] | None) -> dict[str, Attribute]:
    """Return the attributes of an operation by each name that a file may give them."""
    return {name: a for a in cls.attributes.values() for name in (a.name, *a.aliases)} if cls else {}


def _is_valid(attribute: Attribute, text: str) -> bool:
    try:
        attribute.parse(text)
    except (ValueError, OverflowError):
        return False
    return True


def _number(text: str) -> str:
    """Return the number at the begin of a text, or 0."""
    match = _BEGIN.match(text)
    return match[0] if match else "0"


def of_attributes(layer: Layer, cls: type[Op] | None, op: Op | None) -> Iterator[str]:
    """Yield the sentences about the attributes of a layer: texts, errors, and what is missing or particular."""
    declared = _declared(cls)
    for name, text in layer.attributes.items():
        if name in declared and not _is_valid(declared[name], text):
            yield f"{declared[name].name} has no valid text"
            if declared[name].kind in _LIST or (declared[name].kind in _NUMBER and not _BEGIN.match(text)):
                yield "a number has no valid text"
            if _SIGNS.search(text):
                yield "a number has several signs"
        elif (name in declared or cls is None) and len(text) <= _MAX_TEXT and name not in _UNTOLD:
            yield f'{name}="{text.lower()}"'
    taken = _texts(layer)
    for attribute in cls.attributes.values() if cls else ():
        if not layer.attributes.keys() & {attribute.name, *attribute.aliases}:
            yield f"it has no attribute {attribute.name}"
            if attribute.name in taken and attribute.name not in _UNTOLD:
                yield f'{attribute.name}="{taken[attribute.name]}"'
    if op is not None:
        values = {attribute.name: getattr(op, field, None) for field, attribute in type(op).attributes.items()}
        if len({len(value) for value in values.values() if isinstance(value, tuple) and value}) > 1:
            yield "its attributes differ in length"
        for name, value in values.items():
            yield from _of_numbers(name, value)
        for attribute in type(op).attributes.values():
            is_optional = attribute.default is not None and not attribute.required
            if is_optional and values[attribute.name] != attribute.default:
                yield f"{attribute.name} is not its default"


def _of_numbers(name: str, value: Any) -> Iterator[str]:
    """Yield what is particular about an attribute that holds a number or several."""
    numbers = value if isinstance(value, tuple) else (value,)
    if not numbers or not all(isinstance(n, (int, float)) and not isinstance(n, bool) for n in numbers):
        return
    if any(n < 0 for n in numbers):
        yield f"{name} has a negative number"
    if isinstance(value, tuple):
        yield f"{name} has {len(numbers)} numbers"
        if any(n == 0 for n in numbers):
            yield f"{name} has a zero"
        if any(n > 1 for n in numbers):
            yield f"{name} has a number above 1"
