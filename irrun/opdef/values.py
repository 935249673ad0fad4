"""Value: the element type, shape and contents of a tensor, as far as they are known before a run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from irrun.opdef.stored import Stored
from irrun.types import INF, UNKNOWN_RANK, Dim, ElementType, PartialShape, as_dim

__all__ = ["CHANNELS_LAST", "CONTENTS_LIMIT", "ORDER", "Value", "array_of", "few"]

CHANNELS_LAST: Final = {0: 0, 1: 3, 2: 1, 3: 2, -4: 0, -3: 3, -2: 1, -1: 2}
"""The place of each axis of a value of rank 4 in channels-last layout (batch, rows, columns, channels)."""
ORDER: Final = (0, 2, 3, 1)
"""The axes of a value of rank 4 in the order of the channels-last layout."""


@dataclass(frozen=True, slots=True, eq=False)
class Value:
    """A tensor in inference: its element type, its shape, and its contents if they are known.

    ``data`` holds the contents, or None. They are a numpy array or, for integers that are only partly known, an object
    array of ``Dim``. Thus inference follows ``[?,3,224]`` through ShapeOf, Gather and Concat.
    """

    type: ElementType
    shape: PartialShape
    data: np.ndarray | None = None
    stored: Stored | None = None
    """The contents of a constant that the planner leaves as the file has them. ``data`` is then None."""

    @staticmethod
    def of(array: np.ndarray, element_type: ElementType | None = None) -> Value:
        """Return a tensor with known contents. Raises TypeError if no element type has the dtype of ``array``."""
        element_type = element_type or ElementType.of(array.dtype)
        if element_type is None:
            raise TypeError(f"no element type has dtype {array.dtype}")
        return Value(element_type, PartialShape.of(array.shape), array)

    @staticmethod
    def of_dims(dims: Iterable[Dim | int], element_type: ElementType) -> Value:
        """Return a 1D tensor with the elements ``dims``. Its contents are an array of numbers if all dims are known."""
        items = [as_dim(d) for d in dims]
        return Value(element_type, PartialShape((Dim(len(items)),)), array_of(items, (len(items),), element_type))

    @property
    def rank(self) -> int | None:
        return self.shape.rank

    @property
    def exact(self) -> np.ndarray | None:
        """The contents as an array of numbers, or None if an element is not known."""
        if self.data is None or self.data.dtype != object or self.type.kind == "string":
            return self.data
        if not all(isinstance(n, Dim) and n.is_static for n in self.data.flat):
            return None
        return np.array([n.lo for n in self.data.flat], dtype=self.type.dtype).reshape(self.data.shape)

    def fits(self, array: np.ndarray) -> bool:
        """Return whether an array may be this tensor, as far as its dtype and shape say."""
        return (self.type.kind == "dynamic" or self.type.dtype == array.dtype) and self.shape.fits(array.shape)

    def reshaped(self, shape: PartialShape | Sequence[Dim | int]) -> Value:
        """Return a value with the same element type and another shape, without contents."""
        return Value(self.type, shape if isinstance(shape, PartialShape) else PartialShape.of(shape))

    def channels_last(self) -> Value:
        """The same value of rank 4 in channels-last layout; contents are not carried over."""
        dims = tuple(self.shape)
        return self.reshaped([dims[axis] for axis in ORDER])

    def typed(self, element_type: ElementType) -> Value:
        """Return a value with the same shape and another element type, without contents."""
        return Value(element_type, self.shape)

    def ints(self) -> tuple[int, ...] | None:
        """Return the contents as a flat tuple of ints, or None if an element is not known, or is no number."""
        data = self.exact
        if data is None or (self.type.kind == "float" and not np.isfinite(data.astype(np.float64)).all()):
            return None
        return tuple(int(n) for n in data.ravel())

    def scalar(self) -> int | None:
        """Return the only element as an int, or None if it is not known or the tensor has not exactly one element."""
        elements = self.ints()
        return elements[0] if elements is not None and len(elements) == 1 else None

    def dims(self) -> tuple[Dim, ...] | None:
        """Return the contents as Dims: each with the bounds that are known.

        Return None if the number of elements is unknown, or if they are unknown and more than ``CONTENTS_LIMIT``.
        """
        if self.data is not None:
            return tuple(as_dim(n) for n in self.data.ravel())
        count = few(self.shape.count())
        return None if count is None else (Dim(-INF, INF),) * count

    def as_shape(self) -> PartialShape:
        """Return the contents as a shape, with unknown dims for unknown elements."""
        dims = self.dims()
        if dims is None:
            return UNKNOWN_RANK
        return PartialShape(tuple(d if d.lo >= 0 or d.is_static else d.max(0) for d in dims))


def few(count: Dim) -> int | None:
    """Return a number of entries, or None if it is not known, or too large for inference to look at each of them."""
    return count.value if count.hi <= CONTENTS_LIMIT else None


CONTENTS_LIMIT: Final = 1 << 12
"""The most elements of a tensor whose contents inference computes: shapes, axes and indices have far fewer."""


def array_of(items: Sequence[Dim], shape: tuple[int, ...], element_type: ElementType) -> np.ndarray:
    """Return dims as an array of ``shape``: of numbers if all are known and have no term, otherwise of Dim objects."""
    if all(d.lo == d.hi and d.term is None for d in items):
        return np.array([d.lo for d in items], dtype=element_type.dtype).reshape(shape)
    data = np.empty(len(items), dtype=object)
    data[:] = items
    return data.reshape(shape)
