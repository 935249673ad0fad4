"""Give a model other input shapes, to check whether it can be reshaped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from irrun.ir.parse import Parsed
from irrun.lookup import bad_feed, known
from irrun.model import Model, Port
from irrun.types import Dim, PartialShape

__all__ = ["Shapes", "reshaped"]

Shape = str | PartialShape | Sequence[Dim | int | str]
Shapes = Mapping[str, Shape] | Mapping[int, Shape] | Mapping[str | int, Shape]
"""Shapes by the name or position of an input: ``[1, 3, 224, 224]``, ``"?,3,64..512"``, or ``"..."`` for any rank."""


def reshaped(parsed: Parsed, shapes: Shapes) -> Parsed:
    """Return a copy of the model whose inputs have other shapes, as ``openvino.Model.reshape`` would make it.

    Inputs that ``shapes`` does not name keep their shapes. The ports of the copy declare no dims, so that inference
    alone determines them. Raises FeedError (IR601) if the model has no such input or a shape cannot be parsed.
    """
    model = parsed.model
    wanted: dict[int, str] = {}
    for key, shape in shapes.items():
        parameter = model.parameters[known(model, key)]
        text = _unbracketed(shape.strip()) if isinstance(shape, str) else _text(shape)
        if PartialShape.parse(text) is None:
            help = "write a shape as [1,3,224,224]: ? is an unknown dim, 1..8 an interval, and ... an unknown rank"
            given = shape if isinstance(shape, str) else text
            raise bad_feed(model, parameter, f'cannot have the shape "{given}"', help)
        wanted[parameter.id] = text
    return replace(parsed, model=_undeclared(model, wanted))


def _unbracketed(text: str) -> str:
    """Return a shape without the brackets around it. A bracket without its counterpart stays, and does not parse."""
    return text[1:-1] if text.startswith("[") and text.endswith("]") else text


def _text(shape: PartialShape | Sequence[Dim | int | str]) -> str:
    if isinstance(shape, PartialShape) and shape.dims is None:
        return "..."
    return ",".join(map(str, shape))


def _undeclared(model: Model, wanted: Mapping[int, str]) -> Model:
    """Return the model without the dims that its ports declare, bodies included.

    ``wanted`` holds new ``shape`` attributes by layer id. Known contents of these layers are dropped.
    """
    layers = {
        id: replace(
            layer,
            attributes={**layer.attributes, "shape": wanted[id]} if id in wanted else layer.attributes,
            inputs=_ports(layer.inputs),
            outputs=_ports(layer.outputs),
            bodies={tag: _undeclared(body, {}) for tag, body in layer.bodies.items()},
        )
        for id, layer in model.layers.items()
    }
    contents = {id: stated for id, stated in model.contents.items() if id not in wanted}
    return replace(model, layers=layers, contents=contents)


def _ports(ports: Sequence[Port]) -> tuple[Port, ...]:
    return tuple(replace(port, shape=None) for port in ports)
