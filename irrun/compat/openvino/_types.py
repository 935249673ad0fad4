"""Element types."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from irrun.compat.openvino._errors import Covered, OpenVINOError
from irrun.types import ELEMENT_TYPES, ElementType

__all__ = ["STRING", "Type", "type_of"]


class Type(Covered):
    """An element type, such as ``Type.f32``. ``Type(np.float32)`` returns the one that a numpy type corresponds to."""

    _all: ClassVar[dict[str, Type]] = {}
    _own: ElementType

    def __new__(cls, dtype: Any) -> Type:
        element_type = ElementType.of(np.dtype("O") if np.dtype(dtype).kind == "S" else np.dtype(dtype))
        if element_type is None:
            raise OpenVINOError(f"no element type corresponds to the numpy type {dtype!r}; convert the array first")
        return type_of(element_type)

    def get_type_name(self) -> str:
        return self._own.name

    to_string = get_type_name
    type_name = property(get_type_name)

    def to_dtype(self) -> np.dtype:
        """Return the numpy dtype of a Tensor's data.

        Types that numpy lacks appear as raw bits: bf16 as float16, smaller types as int8 or uint8. Raises IndexError
        for the dynamic type.
        """
        own = self._own
        if own.kind == "dynamic":
            raise IndexError("the element type dynamic has no numpy type")
        if own.kind == "string":
            return np.dtype("S")
        if own.name == "bf16":
            return np.dtype(np.float16)
        if own.dtype.isbuiltin == 2 or own.name == "nf4":
            return np.dtype(np.int8 if own.kind == "int" else np.uint8)
        return own.dtype

    def get_bitwidth(self) -> int:
        return 256 if self._own.kind == "string" else self._own.bits

    def get_size(self) -> int:
        return (self.get_bitwidth() + 7) // 8

    bitwidth, size = property(get_bitwidth), property(get_size)

    def is_real(self) -> bool:
        return self._own.kind == "float" and self._own.name != "nf4"

    def is_integral(self) -> bool:
        return not self.is_real()

    def is_static(self) -> bool:
        return self._own.kind != "dynamic"

    def is_dynamic(self) -> bool:
        return not self.is_static()

    def __reduce__(self) -> str | tuple[Any, ...]:
        return getattr, (Type, self._own.name)

    def __repr__(self) -> str:
        own = self._own
        if own.name in ("nf4", "string", "dynamic", "boolean") or own.name.startswith(("f8", "f4")):
            name = {"nf4": "nfloat4", "boolean": "char"}.get(own.name, own.name)
        elif own.is_integer:
            name = f"{own.kind}{own.bits}_t"
        else:
            name = {"f64": "double64", "bf16": "bfloat16"}.get(own.name, f"float{own.bits}")
        return f"<Type: '{name}'>"


def type_of(own: ElementType) -> Type:
    """Return the Type of one of irrun's element types. Each exists once, so that ``is`` compares them."""
    return Type._all[own.name]


for _own in ELEMENT_TYPES.values():
    _made = Type._all[_own.name] = object.__new__(Type)
    _made._own = _own
    setattr(Type, _own.name, _made)

STRING = Type._all["string"]
