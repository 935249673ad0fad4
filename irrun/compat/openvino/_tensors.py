"""Tensors: arrays with an element type."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import numpy as np

from irrun.compat.openvino._errors import Covered, NotCovered, OpenVINOError
from irrun.compat.openvino._shapes import PartialShape, Shape
from irrun.compat.openvino._types import STRING, Type, type_of
from irrun.types import ElementType, array_from, as_text, blank, encoded

__all__ = ["Tensor", "tensor_of"]

_KEYWORDS: Final = {"array": "array", "shape": "shape", "type": "type", "element_type": "type"}
"""The argument that each keyword of ``Tensor`` sets."""


class Tensor(Covered):
    """An array with an element type.

    It is made from an array (copied unless ``shared_memory``), from a list, or from a Type and a shape, which give
    zeros. With a shape and a Type, the bytes of an array are reinterpreted as that type.
    """

    def __init__(self, *args: Any, shared_memory: bool = False, **kwargs: Any) -> None:
        if len(args) == 2 and isinstance(args[1], bool):
            args, shared_memory = args[:1], args[1]
        arguments = _arguments(args, kwargs)
        array, shape, element_type = (arguments.get(name) for name in ("array", "shape", "type"))
        if element_type is not None and not isinstance(element_type, Type):
            element_type = Type(element_type)
        dims = None if shape is None else _dims(shape)
        if array is None:
            self.element_type, self._data = _zeros(element_type, dims)
        else:
            self.element_type, self._data = _contents(array, dims, element_type, shared_memory)

    @property
    def data(self) -> np.ndarray:
        """The tensor's own memory. For strings, a new array of bytes."""
        return self.bytes_data if self.element_type is STRING else self._data

    @property
    def str_data(self) -> np.ndarray:
        strings = self._text().ravel().tolist()
        readable = [encoded(text).decode(errors="replace") for text in strings]  # as OpenVINO does
        return np.array(readable, np.str_).reshape(self._data.shape)

    @str_data.setter
    def str_data(self, words: Any) -> None:
        self._text()
        self._data = _strings(array_from(words)).reshape(self._data.shape)

    @property
    def bytes_data(self) -> np.ndarray:
        strings = [encoded(text) for text in self._text().ravel().tolist()]
        return np.array(strings, np.bytes_).reshape(self._data.shape)

    def _text(self) -> np.ndarray:
        if self.element_type is not STRING:
            raise OpenVINOError(f"the tensor holds {self.element_type.type_name}, not strings; read its data instead")
        return self._data

    def get_shape(self) -> Shape:
        return Shape(self._data.shape)

    def set_shape(self, shape: Iterable[int]) -> None:
        wanted = tuple(shape)
        if wanted != self._data.shape:
            self._data = np.resize(self._data, wanted) if self._data.size else blank(wanted, self._data)

    shape = property(get_shape, set_shape)
    size = property(lambda self: self._data.size)
    byte_size = property(lambda self: self._data.nbytes)
    strides = property(lambda self: self._data.strides)

    def get_element_type(self) -> Type:
        return self.element_type

    def get_size(self) -> int:
        return self._data.size

    def get_byte_size(self) -> int:
        return self._data.nbytes

    def get_strides(self) -> tuple[int, ...]:
        return self._data.strides

    def is_continuous(self) -> bool:
        return self._data.flags.c_contiguous

    def copy_to(self, other: Tensor) -> None:
        other.set_shape(self._data.shape)
        other._write(self._data)

    def copy_from(self, other: Tensor) -> None:
        other.copy_to(self)

    def _array(self) -> np.ndarray:
        """Return the values in irrun's dtype: bf16 and f8 as views in their ml_dtypes types."""
        own = self.element_type._own
        return self._data.view(own.dtype) if own.dtype.isbuiltin == 2 else self._data

    def _write(self, array: np.ndarray) -> None:
        """Copy the values of an array into the tensor's memory, cast to its type. The tensor gets the array's shape."""
        self.set_shape(array.shape)
        if self.element_type is STRING:
            self._data = _strings(array)
        elif array.dtype.isbuiltin == 2:  # bf16 and f8 are stored as raw bits
            self._data[...] = array.view(self._data.dtype)
        else:
            with np.errstate(all="ignore"):
                np.copyto(self._data, array, casting="unsafe")

    def __repr__(self) -> str:
        return f"<Tensor: shape{self.shape} type: {self.element_type.type_name}>"


def _arguments(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of ``Tensor`` by name: array, shape and type. Raises NotCovered for any other keyword."""
    names = ("type", "shape") if args and isinstance(args[0], (Type, type, np.dtype)) else ("array", "shape", "type")
    if unknown := kwargs.keys() - _KEYWORDS.keys():
        raise NotCovered(f"Tensor({', '.join(sorted(unknown))}=…)")
    return dict(zip(names, args)) | {_KEYWORDS[keyword]: value for keyword, value in kwargs.items()}


def _dims(shape: Any) -> tuple[int, ...]:
    if isinstance(shape, (str, PartialShape)):
        raise TypeError(f"the shape of a Tensor is a Shape or a list of ints, not a {type(shape).__name__}")
    return tuple(Shape(shape))


def _zeros(element_type: Type | None, dims: tuple[int, ...] | None) -> tuple[Type, np.ndarray]:
    """Return the type and the memory of a tensor that is made from a type and a shape."""
    if element_type is None or dims is None:
        raise TypeError("a Tensor is made from an array, or from a Type and a shape; pass both")
    if _storable(element_type) is STRING:
        return element_type, np.full(dims, "", object)
    return element_type, np.zeros(dims, element_type.to_dtype())


def _contents(
    array: Any, dims: tuple[int, ...] | None, element_type: Type | None, shared: bool
) -> tuple[Type, np.ndarray]:
    """Return the type and the memory of a tensor that is made from an array or a list.

    With ``dims``, the memory gets these dims, and its bytes are reinterpreted as ``element_type`` if that is another
    type. ``shared`` uses the memory of an array itself.
    """
    if not isinstance(array, (np.ndarray, list)):
        raise TypeError(f"a Tensor is made from an array, a list or a Type, not from {type(array).__name__}")
    data = array_from(array)
    actual_type = _storable(element_type or Type(data.dtype))
    if shared and not data.flags.c_contiguous:
        raise OpenVINOError("a Tensor can share only a C-contiguous array; pass numpy.ascontiguousarray(array)")
    if actual_type is STRING:
        return actual_type, _strings(data)
    if not shared or not isinstance(array, np.ndarray):
        data = np.array(data, order="C")
    dtype = actual_type.to_dtype()
    if data.dtype != dtype:
        if element_type is None and data.dtype.isbuiltin != 2:
            raise OpenVINOError(f"{data.dtype} has a foreign byte order; convert it with array.astype({dtype.name!r})")
        data = data.reshape(-1).view(dtype).reshape(data.shape if dims is None else dims)
    return actual_type, data if dims is None else data.reshape(-1)[: int(np.prod(dims))].reshape(dims)


def _strings(array: np.ndarray) -> np.ndarray:
    """Return an array of strings, bytes or anything else as a string tensor, with the text of each element."""
    text = as_text(array)
    return as_text(array.astype(np.str_)) if text is None else text.copy()  # type: ignore[return-value]


def _storable(element_type: Type) -> Type:
    """Return the element type. Raises NotCovered for types of less than 8 bits, whose elements share bytes."""
    if 0 < element_type._own.bits < 8:
        raise NotCovered(f"tensors of {element_type.type_name}")
    return element_type


def tensor_of(array: np.ndarray) -> Tensor:
    """Return a Tensor with a copy of one of irrun's arrays."""
    own = ElementType.of(array.dtype)
    assert own is not None
    tensor = Tensor(type_of(own), array.shape)
    tensor._write(array)
    return tensor
