"""Build the fixes of findings: byte-exact edits that declare other dims or another precision, or write an attribute."""

from __future__ import annotations

from irrun.base.edits import Edits, Fix, add_attribute, set_attribute, set_dims, set_items
from irrun.base.source import Source
from irrun.model import Layer, Port
from irrun.types import Dim, ElementType, PartialShape

__all__ = [
    "declarable",
    "declare_dims",
    "declare_type",
    "declare_value",
    "fix",
    "items",
    "write_attribute",
    "wrong_dim",
]


def fix(title: str, edits: Edits | None, *, is_safe: bool = True) -> Fix | None:
    """Return a fix with these edits, or None if there are none because the file cannot be edited in place."""
    return Fix(title, edits, is_safe) if edits else None


def declarable(shape: PartialShape) -> PartialShape:
    """Return a shape as ports can declare it: each dim is a number or unknown, and intervals become unknown."""
    if shape.dims is None:
        return shape
    return PartialShape(tuple(dim if dim.is_static else Dim.unknown() for dim in shape.dims))


def items(shape: PartialShape) -> str:
    """Return a shape as the attribute ``shape`` spells it: ``1,3,?``."""
    return str(shape).strip("[]")


def declare_dims(source: Source, port: Port, shape: PartialShape, *, is_safe: bool = True) -> Fix | None:
    """Return the fix that makes a port declare ``shape``; None if its rank is unknown."""
    return None if shape.rank is None else fix(f"declare {shape}", _dims(source, port, shape), is_safe=is_safe)


def declare_type(source: Source, port: Port, type: ElementType, *, is_safe: bool = True) -> Fix | None:
    """Return the fix that makes a port with a ``precision`` declare ``type``."""
    name = type.port_name
    return fix(f'declare precision="{name}"', set_attribute(source, port.node, "precision", name), is_safe=is_safe)


def declare_value(source: Source, port: Port, type: ElementType, shape: PartialShape) -> Edits | None:
    """Return the edits that make a port declare a type and a shape, as far as it declares any; None if one fails.

    A dynamic type changes no precision.
    """
    written: Edits = ()
    if port.shape is not None and port.shape != shape:
        edits = _dims(source, port, shape)
        if edits is None:
            return None
        written += edits
    if port.type is not None and type.kind != "dynamic" and port.type is not type:
        edits = set_attribute(source, port.node, "precision", type.port_name)
        if edits is None:
            return None
        written += edits
    return written


def write_attribute(source: Source, layer: Layer, node: int, name: str, due: ElementType | PartialShape) -> Fix | None:
    """Return the fix that sets attribute ``name`` of ``<data>`` (element ``node``) to a type or shape.

    The fix is not safe, because it changes what the model computes.
    """
    text = due.name if isinstance(due, ElementType) else items(due)
    if name not in layer.attributes:
        edits = add_attribute(source, node, name, text)
    elif isinstance(due, ElementType):
        edits = set_attribute(source, node, name, text)
    else:
        edits = set_items(source, node, name, _changed_items(layer.attributes[name], due))
    return fix(f'write {name}="{text}"', edits, is_safe=False)


def wrong_dim(source: Source, port: Port, due: PartialShape) -> int:
    """Return the node of the first dim of a port that differs from ``due``.

    If the ranks differ, that is the first dim; if the port has no dims, the port itself.
    """
    dims = source.children(port.node, "dim")
    shape = port.shape
    if shape is None or not dims:
        return port.node
    if shape.rank != due.rank:
        return dims[0]
    return dims[next((i for i, (a, b) in enumerate(zip(shape, due)) if a != b), 0)]


def _dims(source: Source, port: Port, shape: PartialShape) -> Edits | None:
    return set_dims(source, port.node, [-1 if dim.value is None else dim.value for dim in shape])


def _changed_items(text: str, due: PartialShape) -> list[str]:
    """Return the items of a ``shape`` attribute changed to ``due``; items that already agree keep their text."""
    said = PartialShape.parse(text)
    wanted = items(due).split(",")
    if said is None or said.rank != due.rank:
        return wanted
    parts = [part.strip() for part in text.split(",")]
    return [
        part if declarable(PartialShape((old,))) == PartialShape((new,)) else item
        for part, old, new, item in zip(parts, said, due, wanted)
    ]
