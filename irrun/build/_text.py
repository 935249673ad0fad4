"""Convert Python values to element types, shapes and the text of attributes, as an IR writes it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from irrun.build._errors import bad_call
from irrun.types import ElementType, PartialShape

__all__ = ["attribute_text", "element_type_of", "shape_of", "shape_text"]


def element_type_of(value: Any) -> ElementType:
    """Return an element type, its name, or a numpy dtype as an element type. Raises BuildError if there is none."""
    if isinstance(value, ElementType):
        return value
    element_type = ElementType.parse(value) if isinstance(value, str) else _of_dtype(value)
    if element_type is None:
        known = _of_dtype(value) if isinstance(value, str) else None
        help = "pass a name such as f32 or i64" if known is None else f"did you mean {known}?"
        raise bad_call(f"{value!r} is not an element type; {help}", "IR305")
    return element_type


def _of_dtype(value: Any) -> ElementType | None:
    """Return the element type of a numpy dtype, or of what numpy takes for one."""
    try:
        return ElementType.of(np.dtype(value))
    except (TypeError, ValueError):
        return None


def shape_of(value: str | PartialShape | Iterable[Any]) -> PartialShape:
    """Return a shape, the text of one, or a sequence of dims as a shape. Raises BuildError if it is invalid."""
    if isinstance(value, PartialShape):
        return value
    text = value if isinstance(value, str) else ",".join(map(_dim_text, value))
    shape = PartialShape.parse(text)
    if shape is None:
        raise bad_call(f"{value!r} is not a shape; pass one such as [1, 3, None] or '1,3,?'", "IR404")
    return shape


def shape_text(shape: PartialShape) -> str:
    """Return a shape as text: ``1,3,?``, or ``...`` for an unknown rank."""
    return "..." if shape.dims is None else ",".join(map(str, shape.dims))


def attribute_text(value: Any) -> str:
    """Return the value of an attribute as text."""
    if isinstance(value, (np.generic, np.ndarray)) and not value.ndim:
        value = value.item()
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, PartialShape):
        return shape_text(value)
    if isinstance(value, np.dtype) or (isinstance(value, type) and issubclass(value, np.generic)):
        return element_type_of(value).name
    if isinstance(value, (list, tuple, np.ndarray)):
        return ",".join("?" if item is None else attribute_text(item) for item in value)
    return str(value)


def _dim_text(dim: Any) -> str:
    if isinstance(dim, (tuple, list)):
        return "..".join("" if bound is None else str(bound) for bound in dim)
    return "?" if dim is None else str(dim)
