"""Constants, and the choice of an element type for Python values."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import numpy as np

from irrun.build._errors import bad_call
from irrun.build._nodes import Node, new_layer
from irrun.build._text import element_type_of
from irrun.opdef import Value
from irrun.types import ElementType, array_from, as_text, text_array, type_set

__all__ = ["constant", "constant_of", "preferred_type"]

_ANY: Final = type_set("any")
_PREFERRED: Final = {
    "i": ("i64", "i32", "f32", "f16", "bf16", "f64"), "u": ("i64", "u64", "i32"), "b": ("boolean", "u8"),
    "f": ("f32", "f16", "bf16", "f64"), "U": ("string",), "S": ("string",),
}  # fmt: skip
"""Element types for Python values, best first, by the kind of their numpy dtype."""


def constant(data: Any, element_type: Any = None, *, name: str | None = None) -> Node:
    """Return a constant (a Const) with the values ``data``.

    Without ``element_type``, an array keeps its own type, and Python values become i64, f32, boolean or string. Raises
    BuildError if a value does not fit ``element_type``, and BuildError if ``data`` has no matching element type.
    """
    array = array_from(data)
    if element_type is not None:
        return constant_of(array, element_type_of(element_type), name)
    if not isinstance(data, (np.ndarray, np.generic)):
        return constant_of(array, preferred_type(array, _ANY), name)
    array = array.astype(array.dtype.newbyteorder("="), copy=False)
    own = ElementType.of(array.dtype)
    if own is not None and own.kind == "string":
        return constant_of(array, own, name)
    if own is None:
        raise bad_call(f"no element type has the dtype {array.dtype}; convert the array, for example to float32")
    return _node(array, own, name)


def constant_of(array: np.ndarray, element_type: ElementType, name: str | None = None) -> Node:
    """Return a constant of a certain element type. Raises BuildError if the element type cannot hold a value."""
    return _node(_cast(array, element_type), element_type, name)


def preferred_type(array: np.ndarray, allowed: Iterable[ElementType]) -> ElementType:
    """Return the best element type for Python values among ``allowed``. Raises BuildError if none can hold them."""
    kind = "i" if not array.size else "U" if array.dtype == object and as_text(array) is not None else array.dtype.kind
    # numpy makes an empty list float64
    types = {element_type.name: element_type for element_type in allowed}
    for name in (*_PREFERRED.get(kind, ()), *(sorted(types) if kind in "iu" else ())):
        if name in types:
            return types[name]
    names = ", ".join(sorted(types))
    raise bad_call(f"{array.tolist()!r} cannot be of type {names}; pass values that fit one of these types")


def _cast(array: np.ndarray, element_type: ElementType) -> np.ndarray:
    """Return an array in another element type. Raises BuildError if an integer type cannot hold its values."""
    if element_type.kind == "string":
        text = as_text(array)
        return text_array(map(str, array.ravel().tolist()), array.shape) if text is None else text
    cast = array.astype(element_type.dtype)
    if element_type.is_integer and array.dtype.kind in "iuf":
        bits = element_type.bits
        lowest, highest = (-1 << bits - 1, (1 << bits - 1) - 1) if element_type.kind == "int" else (0, (1 << bits) - 1)
        fits = array.size == 0 or (array.min() >= lowest and array.max() <= highest)
        if not fits or (array.dtype.kind == "f" and (cast != array).any()):
            range = f"integers from {lowest} to {highest}"
            raise bad_call(f"{array.tolist()!r} does not fit {element_type}; pass {range}")
    return cast


def _node(array: np.ndarray, element_type: ElementType, name: str | None) -> Node:
    return Node(new_layer("Const", name, {}), (), (Value.of(array, element_type),), data=array)
