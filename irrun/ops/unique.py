"""Unique: each element, or each slice along an axis, once.  Spec: movement/unique-10."""

import math

import numpy as np

from irrun.kernels.cast import plain
from irrun.opdef import Op, Site, Value, attr, op, opt, ports
from irrun.ops._indices import one_number
from irrun.types import Dim, PartialShape


@op("Unique", since=10, spec="movement/unique-10")
class Unique(Op):
    """Find the unique elements.

    The outputs are the unique elements, the index at which each of them first occurs, for each element the index of its
    unique element, and how often each unique element occurs.

    With ``axis``, the operation compares slices along it instead of elements. With ``sorted``, the unique elements are
    sorted, otherwise in the order of their first occurrence.

    C1  ``axis`` has one element, as a scalar or 1D.
    C2  ``axis`` is at least -rank and less than the rank of ``data``.
    C3  ``index_element_type`` and ``count_element_type`` are i32 or i64.
    """

    sorted = attr.bool(default=True)
    index_element_type = attr.element_type(default="i64")
    count_element_type = attr.element_type(default="i64")
    inputs = ports(data="T", axis=opt("T_AXIS"))
    types = {"T": "any", "T_AXIS": "i32 i64"}
    outputs = 4

    def infer(self, at: Site, data: Value, axis: Value | None = None) -> tuple[Value, Value, Value, Value]:
        index, count = self.index_element_type, self.count_element_type
        for name, element_type in ("index_element_type", index), ("count_element_type", count):
            at.require(element_type.name in ("i32", "i64"), "C3", f"{name} is {element_type}, not i32 or i64")
        if axis is None:
            total = data.shape.count()
            shape = PartialShape((_unique(total),))
        else:
            one_number(at, "C1", axis)
            total, shape = Dim.unknown(), data.shape
            if data.rank is not None:
                number = axis.scalar()
                shape = PartialShape.of_rank(data.rank)
                if number is not None:
                    number = at.axis(number, data.rank, "C2")
                    total = data.shape[number]
                    shape = data.shape.replace(number, _unique(total))
        unique_shape = [_unique(total)]
        return (
            data.reshaped(shape),
            Value(index, data.shape).reshaped(unique_shape),
            Value(index, data.shape).reshaped([total]),
            Value(count, data.shape).reshaped(unique_shape),
        )

    def run(
        self, data: np.ndarray, axis: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        at = 0 if axis is None else int(axis.item())
        slices = data.reshape(-1) if axis is None else np.moveaxis(data, at, 0)
        rows = plain(slices).reshape(len(slices), math.prod(slices.shape[1:]))
        order = np.lexsort(rows.T[::-1]) if rows.shape[1] else np.arange(len(rows))
        ranked = rows[order]
        starts = np.ones(len(rows), bool)
        starts[1:] = (ranked[1:] != ranked[:-1]).any(axis=1)
        first = order[starts]
        which = np.empty_like(order)
        which[order] = np.cumsum(starts) - 1
        if not self.sorted:
            by_position = np.argsort(first)
            first, which = first[by_position], np.argsort(by_position)[which]
        counts = np.bincount(which, minlength=len(first))
        index = self.index_element_type.dtype
        return (
            np.moveaxis(slices[first], 0, at),
            first.astype(index),
            which.astype(index),
            counts.astype(self.count_element_type.dtype),
        )


def _unique(total: Dim) -> Dim:
    """Return the number of unique elements among ``total`` elements, as far as it is known."""
    return total if total.is_static and total.lo <= 1 else Dim(min(total.lo, 1), total.hi)
