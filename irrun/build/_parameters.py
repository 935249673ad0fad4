"""Parameters: the inputs of a model or of a body."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from irrun.build._nodes import Node, new_layer
from irrun.build._text import element_type_of, shape_of, shape_text
from irrun.opdef import Value
from irrun.types import Dim, PartialShape

__all__ = ["parameter", "parameter_node"]


def parameter(
    shape: str | PartialShape | Iterable[Any] = (), element_type: Any = "f32", *, name: str | None = None
) -> Node:
    """Return an input of the model (a Parameter).

    A dim is a number; None, -1 or ``"?"`` if it is unknown; ``"1..8"`` or ``(1, 8)`` for an interval. The shape may
    also be one text, as in a file: ``"1,3,?"``, or ``"..."`` for an unknown rank. Raises BuildError if the shape or the
    element type is invalid.
    """
    value = Value(element_type_of(element_type), shape_of(shape))
    node = parameter_node(value, name)
    if value.shape.dims is not None:
        prefix = f"{name or 'parameter'}@{node.serial}"  # unique, so that dims of two parameters never look equal
        dims = (Dim(d.lo, d.hi, Dim.unknown(f"{prefix}[{i}]").term) for i, d in enumerate(value.shape.dims))
        node.values = (Value(value.type, PartialShape(tuple(dims))),)
    return node


def parameter_node(value: Value, name: str | None = None) -> Node:
    """Return a Parameter with the element type and the shape of ``value``. Its dims keep their formulas."""
    attributes = {"shape": shape_text(value.shape), "element_type": value.type.name}
    return Node(new_layer("Parameter", name, attributes), (), (value,))
