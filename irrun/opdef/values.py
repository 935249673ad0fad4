"""What is known of a tensor before the model runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from irrun.types import INF, UNKNOWN_RANK, Dim, ElementType, PartialShape, as_dim

__all__ = ["CHANNELS_LAST", "CONTENTS_LIMIT", "ORDER", "Value", "pack"]

CHANNELS_LAST: Final = {0: 0, 1: 3, 2: 1, 3: 2, -4: 0, -3: 3, -2: 1, -1: 2}
"""The place of each axis of a value of rank 4 in channels-last layout (batch, rows, columns, channels)."""
ORDER: Final = (0, 2, 3, 1)
"""The axes of a value of rank 4 in the order of the channels-last layout."""


@dataclass(frozen=True, slots=True, eq=False)
class Value:
    """What is known of a tensor before the model runs.

    ``data`` is its contents where they are known: a numpy array, or for integers known only in part an
    object array of ``Dim``s (so that ``[?,3,224]`` is followed through ShapeOf, Gather and Concat).
    """

    type: ElementType
    shape: PartialShape
    data: np.ndarray | None = None

    @staticmethod
    def of(array: np.ndarray, element_type: ElementType | None = None) -> Value:
        """A fully known tensor."""
        element_type = element_type or ElementType.of(array.dtype)
        if element_type is None:
            raise TypeError(f"no element type has dtype {array.dtype}")
        return Value(element_type, PartialShape.of(array.shape), array)

    @staticmethod
    def of_dims(dims: Iterable[Dim | int], element_type: ElementType) -> Value:
        """A 1D tensor whose elements are ``dims``: exact where all are known."""
        items = [as_dim(d) for d in dims]
        return Value(element_type, PartialShape((Dim(len(items)),)), pack(items, (len(items),), element_type))

    @property
    def rank(self) -> int | None:
        return self.shape.rank

    @property
    def exact(self) -> np.ndarray | None:
        """The contents, or None unless every element is known."""
        if self.data is None or self.data.dtype != object:
            return self.data
        if not all(isinstance(n, Dim) and n.is_static for n in self.data.flat):
            return None
        return np.array([n.lo for n in self.data.flat], dtype=self.type.dtype).reshape(self.data.shape)

    def reshaped(self, shape: PartialShape | Sequence[Dim | int]) -> Value:
        """The same element type, another shape; contents are not carried over."""
        return Value(self.type, shape if isinstance(shape, PartialShape) else PartialShape.of(shape))

    def channels_last(self) -> Value:
        """The same value of rank 4 in channels-last layout; contents are not carried over."""
        dims = tuple(self.shape)
        return self.reshaped([dims[axis] for axis in ORDER])

    def typed(self, element_type: ElementType) -> Value:
        """The same shape, another element type; contents are not carried over."""
        return Value(element_type, self.shape)

    def ints(self) -> tuple[int, ...] | None:
        """The contents as a flat tuple of ints, or None unless all are known."""
        data = self.exact
        return None if data is None else tuple(int(n) for n in data.ravel())

    def scalar(self) -> int | None:
        """The one int that the tensor holds, or None where it is not known."""
        numbers = self.ints()
        return numbers[0] if numbers is not None and len(numbers) == 1 else None

    def dims(self) -> tuple[Dim, ...] | None:
        """The contents as Dims, each as far as it is known; None where not even their number is."""
        if self.data is not None:
            return tuple(as_dim(n) for n in self.data.ravel())
        count = self.shape.count().value
        return None if count is None or count > CONTENTS_LIMIT else (Dim(-INF, INF),) * count

    def as_shape(self) -> PartialShape:
        """The contents as a shape, each entry as far as it is known."""
        dims = self.dims()
        if dims is None:
            return UNKNOWN_RANK
        return PartialShape(tuple(d if d.lo >= 0 or d.is_static else d.max(0) for d in dims))


CONTENTS_LIMIT: Final = 1 << 12
"""Tensors of more elements than this are not followed by content."""


def pack(items: Sequence[Dim], shape: tuple[int, ...], element_type: ElementType) -> np.ndarray:
    if all(d.lo == d.hi and d.term is None for d in items):
        return np.array([d.lo for d in items], dtype=element_type.dtype).reshape(shape)
    data = np.empty(len(items), dtype=object)
    data[:] = items
    return data.reshape(shape)
