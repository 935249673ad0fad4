"""TopK: the k largest or smallest elements along an axis.  Spec: sort/top-k-{1,3,11}."""

import numpy as np

from irrun.kernels.cast import is_float, plain
from irrun.opdef import Op, Refused, Site, Value, attr, op, ports
from irrun.types import Dim


class _TopK(Op):
    axis = attr.int()
    mode = attr.choice("max", "min")
    sort = attr.choice("value", "index", "none")
    index_element_type = attr.element_type(default="i32")
    inputs = ports(data="T", k="T_K")
    types = {"T": "numeric", "T_K": "int"}
    outputs = 2

    def infer(self, at: Site, data: Value, k: Value) -> tuple[Value, Value]:
        index = self.index_element_type
        at.require(index.name in ("i32", "i64"), "C4", f"index_element_type is {index}, not i32 or i64")
        at.require(data.rank != 0, "C1", "data is a scalar")
        at.require(k.rank in (None, 0), "C2", f"k is {k.shape}, not a scalar")
        axis = at.axis(self.axis, data.rank, "C1")
        length = data.shape[axis]
        count = (k.dims() or (Dim.unknown(),))[0].max(0).meet(Dim(0, length.hi))
        # the specification requires a k of at least 1; OpenVINO's shape rule allows 0
        fits = count is not None and (k.scalar() or 0) >= 0
        at.require(fits, "C3", f"k {k.scalar()} is outside 0 to {length}, the length of axis {axis} of data")
        assert count is not None
        shape = data.shape if data.shape.dims is None else data.shape.replace(axis, count)
        return data.reshaped(shape), Value(index, shape)

    # of equal elements, the first ones are taken and keep their order, even without ``stable``
    def run(self, data: np.ndarray, k: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        count, length = int(k), data.shape[self.axis]
        if not 0 <= count <= length:
            raise Refused(f"k {count} is outside 0 to {length}, the length of axis {self.axis} of data", "C3")
        x = np.moveaxis(plain(data), self.axis, -1)
        chosen = self._chosen(x, count)
        if self.sort != "index":
            order = self._order(np.take_along_axis(x, chosen, axis=-1))
            chosen = np.take_along_axis(chosen, order, axis=-1)
        indices = np.moveaxis(chosen, -1, self.axis)
        return np.take_along_axis(data, indices, self.axis), indices.astype(self.index_element_type.dtype)

    def _chosen(self, x: np.ndarray, count: int) -> np.ndarray:
        """Return the indices of the ``count`` elements that come first by value, in ascending order of index."""
        length = x.shape[-1]
        if count in (0, length) or _has_nan(x):
            return np.sort(self._order(x)[..., :count])
        last = count - 1 if self.mode == "min" else length - count
        bound = np.partition(x, last)[..., last : last + 1]
        better = x < bound if self.mode == "min" else x > bound
        equal = x == bound
        room = count - better.sum(axis=-1, keepdims=True)
        taken = better | equal & (np.cumsum(equal, axis=-1) <= room)
        return np.nonzero(taken)[-1].reshape(*x.shape[:-1], count)

    def _order(self, x: np.ndarray) -> np.ndarray:
        """Return the indices that sort the last axis by value: ascending for mode min, descending for max, stable."""
        if self.mode == "min":
            return _ascending(x)
        # sort the reversed input ascending and reverse the result: descending, and equal elements keep their order
        return x.shape[-1] - 1 - _ascending(x[..., ::-1])[..., ::-1]


def _ascending(x: np.ndarray) -> np.ndarray:
    """Return the indices that sort the last axis, stable and ascending."""
    # "NaN values are treated as smaller than any valid number"
    return np.lexsort((x, ~np.isnan(x)), axis=-1) if _has_nan(x) else np.argsort(x, axis=-1, kind="stable")


def _has_nan(x: np.ndarray) -> bool:
    return is_float(x) and bool(np.isnan(x).any())


@op("TopK", since=11, spec="sort/top-k-11")
class TopK11(_TopK):
    """Return the ``k`` largest or smallest elements along ``axis`` and their indices, sorted by value or by index.

    C1  ``data`` is not a scalar; ``axis`` is at least -rank and less than the rank of ``data``.
    C2  ``k`` is a scalar.
    C3  ``k`` is at least 0 and at most the dim of ``axis``.
    C4  ``index_element_type`` is i32 or i64.
    """

    stable = attr.bool(default=False)


@op("TopK", since=3, spec="sort/top-k-3")
class TopK3(_TopK):
    """Return the ``k`` largest or smallest elements along ``axis`` and their indices, sorted by value or by index.

    C1  ``data`` is not a scalar; ``axis`` is at least -rank and less than the rank of ``data``.
    C2  ``k`` is a scalar.
    C3  ``k`` is at least 0 and at most the dim of ``axis``.
    C4  ``index_element_type`` is i32 or i64.
    """


@op("TopK", since=1, spec="sort/top-k-1")
class TopK1(TopK3):
    """Compute the same as TopK-3.

    C1  ``data`` is not a scalar; ``axis`` is at least -rank and less than the rank of ``data``.
    C2  ``k`` is a scalar.
    C3  ``k`` is at least 0 and at most the dim of ``axis``.
    C4  ``index_element_type`` is i32 or i64.
    """
