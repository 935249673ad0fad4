"""Dims and shapes, static and dynamic."""

from __future__ import annotations

import operator
import sys
from collections.abc import Iterable, Iterator
from typing import Any, SupportsIndex, TypeVar

import numpy as np

import irrun.types as types
from irrun.compat.openvino._errors import Covered, OpenVINOError
from irrun.types import INF

__all__ = ["Dimension", "PartialShape", "Shape", "partial_shape_of"]

_C = TypeVar("_C")


class Dimension(Covered):
    """A dim: ``Dimension()`` is any size, ``Dimension(2)`` is 2, ``Dimension(2, 5)`` is 2 to 5 (-1: no upper bound)."""

    def __init__(self, *bounds: Any) -> None:
        self._own = _bounded(*bounds) if bounds else types.Dim.unknown()

    is_static = property(lambda self: self._own.is_static)
    is_dynamic = property(lambda self: not self._own.is_static)

    @staticmethod
    def dynamic() -> Dimension:
        return Dimension()

    def get_length(self) -> int:
        if not self._own.is_static:
            raise OpenVINOError(f"dimension {self} is dynamic and has no length; ask is_static first")
        return self._own.lo

    def get_min_length(self) -> int:
        return self._own.lo

    def get_max_length(self) -> int:
        return -1 if self._own.hi == INF else self._own.hi

    min_length, max_length = property(get_min_length), property(get_max_length)

    def compatible(self, other: Dimension) -> bool:
        return self._own.meet(_required(other, Dimension)._own) is not None

    def to_string(self) -> str:
        return str(self._own)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, (int, np.integer, Dimension)) and self._own == _dimension(other)._own

    __hash__ = None  # type: ignore[assignment]
    __str__ = to_string

    def __repr__(self) -> str:
        return f"<Dimension: {self}>"


def _bounded(least: SupportsIndex | str, most: SupportsIndex | None = None) -> types.Dim:
    """Return the dim that the arguments of ``Dimension`` describe. Raises TypeError unless they are integers."""
    if isinstance(least, str) and most is None:
        return _parsed(least)[0]._own
    if isinstance(least, str):
        raise TypeError(f"the bounds of a Dimension are integers, not {least!r}; write a range as one text: '2..5'")
    low = operator.index(least)
    if most is None:
        return types.Dim.unknown() if low == -1 else types.Dim(max(low, 0), max(low, 0))
    high = operator.index(most)
    return types.Dim(max(low, 0), INF if high == -1 else high)


def _dimension(item: Any) -> Dimension:
    """Return an element of a shape as a Dimension: an int, a pair of bounds, text, or a Dimension itself."""
    if isinstance(item, Dimension):
        return item
    return Dimension(*item) if isinstance(item, (tuple, list)) else Dimension(item)


class Shape(list[int]):
    """A shape whose dims are all known, as a list of ints."""

    def __init__(self, dims: Iterable[int] | str = ()) -> None:
        if isinstance(dims, str):
            dims = PartialShape(dims).to_shape()
        super().__init__(map(_size, dims))

    def __getitem__(self, key: Any) -> Any:
        selected = super().__getitem__(key)
        return Shape(selected) if isinstance(key, slice) else selected

    def __eq__(self, other: object) -> bool:
        if isinstance(other, PartialShape):
            return other == self
        return isinstance(other, (list, tuple)) and list(self) == list(other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def to_string(self) -> str:
        return f"[{','.join(map(str, self))}]"

    __str__ = to_string

    def __repr__(self) -> str:
        return f"<Shape: {self}>"


def _size(dim: Any) -> int:
    """Return a static dim as an int. Raises TypeError if it is negative or no integer."""
    size = operator.index(dim)
    if size < 0:
        raise TypeError(f"a Shape cannot hold the dim {size}; use PartialShape for dims that are not known")
    return size


class PartialShape(Covered):
    """A shape whose dims may be unknown.

    It is made from a list of ints, pairs and Dimensions, or from text such as ``"?,3,1..8"``.
    """

    _dims: list[Dimension] | None

    def __init__(self, dims: Any) -> None:
        if isinstance(dims, PartialShape):
            self._dims = None if dims._dims is None else list(dims._dims)
        elif isinstance(dims, str):
            self._dims = _parsed(dims)._dims
        elif isinstance(dims, (list, tuple)):
            self._dims = [_dimension(d) for d in dims]
        else:
            raise TypeError(f"a PartialShape is made from a list, a tuple or a text, not from {type(dims).__name__}")

    @staticmethod
    def dynamic(rank: int | Dimension | None = None) -> PartialShape:
        dim = Dimension() if rank is None else _dimension(rank)
        return partial_shape_of(types.PartialShape.of_rank(dim.get_length()) if dim.is_static else types.UNKNOWN_RANK)

    @property
    def _own(self) -> types.PartialShape:
        return types.UNKNOWN_RANK if self._dims is None else types.PartialShape.of(d._own for d in self._dims)

    is_static = property(lambda self: self._own.is_static)
    is_dynamic = property(lambda self: not self._own.is_static)
    rank = property(lambda self: Dimension() if self._dims is None else Dimension(len(self._dims)))

    def to_shape(self) -> Shape:
        static = self._own.static
        if static is None:
            raise OpenVINOError(f"shape {self} is dynamic, so it cannot become a Shape; ask is_static first")
        return Shape(static)

    get_shape = to_shape

    def get_min_shape(self) -> Shape:
        return Shape(d.get_min_length() for d in self)

    def get_max_shape(self) -> Shape:
        return Shape(sys.maxsize if d.get_max_length() == -1 else d.get_max_length() for d in self)

    def get_dimension(self, axis: int) -> Dimension:
        return self[axis]

    def compatible(self, other: PartialShape) -> bool:
        return self._own.meet(_required(other, PartialShape)._own) is not None

    def to_string(self) -> str:
        return str(self._own)

    def _known(self) -> list[Dimension]:
        if self._dims is None:
            raise OpenVINOError("the rank of the shape is dynamic, so the shape has no dims to read or to set")
        return self._dims

    def __len__(self) -> int:
        return len(self._known())

    def __iter__(self) -> Iterator[Dimension]:
        return iter(self._known())

    def __getitem__(self, key: Any) -> Any:
        try:
            selected = self._known()[key]
        except IndexError as error:
            raise OpenVINOError(f"shape {self} has no axis {key}") from error
        return PartialShape(selected) if isinstance(key, slice) else selected

    def __setitem__(self, axis: int, dim: Any) -> None:
        self._known()[axis] = _dimension(dim)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, PartialShape):
            return self._own == other._own
        if not isinstance(other, (list, tuple)):
            return False
        static = self._own.static
        if static is None and not isinstance(other, Shape):
            raise TypeError(f"shape {self} is dynamic, so no list equals it; compare it with a PartialShape")
        try:
            return static == tuple(map(operator.index, other))
        except TypeError as error:
            raise OpenVINOError(f"shape {self} is compared with {other!r}: {error}") from error

    __hash__ = None  # type: ignore[assignment]
    __str__ = to_string

    def __repr__(self) -> str:
        return f"<PartialShape: {self}>"


def partial_shape_of(own: types.PartialShape) -> PartialShape:
    """Return one of irrun's shapes as a PartialShape."""
    shape = PartialShape([])
    shape._dims = None if own.dims is None else [_dimension_of(d) for d in own.dims]
    return shape


def _dimension_of(own: types.Dim) -> Dimension:
    dimension = Dimension()
    dimension._own = types.Dim(own.lo, own.hi)  # without the formula that irrun's dim came from
    return dimension


def _parsed(text: str) -> PartialShape:
    own = types.PartialShape.parse(text.strip().removeprefix("[").removesuffix("]"))
    if own is None:
        raise OpenVINOError(f"{text!r} is not a shape; write it as '1,3,?,8..16'")
    return partial_shape_of(own)


def _required(item: Any, kind: type[_C]) -> _C:
    """Return the item. Raises TypeError if it is not of this class: openvino does not convert it."""
    if not isinstance(item, kind):
        raise TypeError(f"{kind.__name__}.compatible takes a {kind.__name__}, not {type(item).__name__}")
    return item
