"""The reductions, one row each.  Spec: reduction/reduce-*."""

import math
import re
from collections.abc import Callable, Sequence
from functools import reduce
from typing import ClassVar

import ml_dtypes
import numpy as np

from irrun.kernels.elementwise import copied, native
from irrun.kernels.means import floor_means
from irrun.opdef import Kernel, Op, Request, Site, Value, attr, op, ports
from irrun.ops._accumulate import kind, wide
from irrun.types import UNKNOWN_RANK, Dim, PartialShape

Fold = Callable[[np.ndarray, tuple[int, ...]], np.ndarray]
"""Reduces an array over some axes, which stay with length 1. The result may have a wider element type."""

_CLAUSES = """
    C1  ``axes`` is a scalar or 1D.
    C2  Each entry of ``axes`` is at least -rank and less than the rank of ``data``.
    C3  ``axes`` has no duplicates.
"""


class _Reduce(Op):
    keep_dims = attr.bool(False)
    inputs = ports(data="T", axes="T_IND")
    channels_last = {"axes": "axes"}
    fold: ClassVar[Fold]
    ufunc: ClassVar[np.ufunc | None] = None
    """The numpy function whose ``reduce`` computes this reduction of f32 and f64, or None."""
    mean: ClassVar[bool] = False

    def flops(self, inputs: Sequence[Value | None], outputs: Sequence[Value], /) -> Dim:
        return Dim.unknown() if inputs[0] is None else inputs[0].shape.count()

    def infer(self, at: Site, data: Value, axes: Value) -> Value:
        at.require(axes.rank in (None, 0, 1), "C1", f"axes is {axes.shape}, not a scalar or 1D")
        count, known, room = axes.shape.count(), axes.ints(), None
        if data.rank is not None:
            room = max(data.rank, 1)  # OpenVINO reduces axis 0 of a scalar
            at.require(count.lo <= room, "C3", f"axes has length {count}, but data has rank {data.rank}")
        if known is not None:
            known = tuple(at.axis(axis, room, "C2") for axis in known)
            at.require(len(set(known)) == len(known), "C3", f"axes {list(known)} names an axis more than once")
        if data.shape.dims is None:
            return data.reshaped(UNKNOWN_RANK)
        if known is None:
            return data.reshaped(self._blurred(data.shape.dims, count.value))
        if self.keep_dims:
            return data.reshaped([Dim(1) if axis in known else dim for axis, dim in enumerate(data.shape)])
        return data.reshaped([dim for axis, dim in enumerate(data.shape) if axis not in known])

    def _blurred(self, dims: tuple[Dim, ...], count: int | None) -> PartialShape:
        """Return the output shape where the axes are unknown. ``count`` is their number, or None where unknown, too."""
        if self.keep_dims:
            return PartialShape(tuple(Dim(1) if count == len(dims) else dim.union(Dim(1)) for dim in dims))
        if count is None:
            return UNKNOWN_RANK
        windows = (dims[i : i + count + 1] for i in range(len(dims) - count))  # the candidates for axis i
        return PartialShape(tuple(reduce(Dim.union, window) for window in windows))

    def prepare(self, request: Request) -> Kernel | None:
        data, axes = request.inputs
        ufunc, numbers = self.ufunc, None if axes is None else axes.exact
        if ufunc is None or data is None or not native(data) or numbers is None or not data.rank or not numbers.size:
            return None
        places = tuple(sorted({int(axis) % data.rank for axis in numbers.flat}))
        if len(places) == data.rank and not self.keep_dims:
            return None
        rows = ufunc is np.add and places == tuple(range(data.rank - len(places), data.rank))

        def call(x: np.ndarray, axes: np.ndarray, *, out: np.ndarray | None = None) -> np.ndarray:
            if not x.size:
                return copied(self.run(x, axes), out)
            count = math.prod([x.shape[axis] for axis in places])
            if rows and count <= _ROW and x.flags.c_contiguous:
                kept = x.shape[: -len(places)]
                shape = (*kept, *(1,) * len(places)) if self.keep_dims else kept
                reduced = np.empty(shape, x.dtype) if out is None else out
                np.vecdot(x.reshape(-1, count), np.ones(count, x.dtype), out=reduced.reshape(-1))  # by BLAS: faster
            else:
                if ufunc is np.add and not (rows and x.flags.c_contiguous):
                    for axis in places[:0:-1]:  # numpy adds sequentially here: one axis at a time rounds less
                        x = ufunc.reduce(x, axis=axis, keepdims=True)
                reduced = np.asarray(ufunc.reduce(x, axis=places, out=out, keepdims=self.keep_dims))
            return np.divide(reduced, count, reduced) if self.mean else reduced

        return Kernel(call, out="whole")

    def run(self, data: np.ndarray, axes: np.ndarray) -> np.ndarray:
        if axes.size == 0:
            return data
        places = {int(axis) % max(data.ndim, 1) for axis in axes.flat}
        folded = type(self).fold(np.atleast_1d(data), tuple(places))
        kept = [n for axis, n in enumerate(data.shape) if axis not in places]
        return folded.reshape(folded.shape[: data.ndim] if self.keep_dims else kept).astype(data.dtype, copy=False)


# ---------------------------------------------------------------------------------------------
# kernels


def _empty(x: np.ndarray, axes: tuple[int, ...], end: str) -> np.ndarray:
    """Return the maximum of no elements (``end`` is min) or their minimum (max): that end of the type's range.

    ONNX and numpy define it so; the specification leaves it undefined.
    """
    # OpenVINO's CPU plugin gives the least or largest finite float
    shape = [1 if axis in axes else n for axis, n in enumerate(x.shape)]
    if kind(x) == "float":
        return np.full(shape, -np.inf if end == "min" else np.inf, x.dtype)
    return np.full(shape, getattr(ml_dtypes.iinfo(x.dtype), end), x.dtype)


def _sum(x: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    return np.add.reduce(wide(x), axes, keepdims=True)


def _mean(x: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    """Return the mean; that of integers is rounded towards 0."""
    count = max(math.prod(x.shape[axis] for axis in axes), 1)  # OpenVINO gives 0 for no elements
    if kind(x) == "float":
        return _sum(x, axes) / count
    mean, rest = floor_means(x, lambda elements: np.add.reduce(elements, axes, keepdims=True), count)
    if x.dtype.kind == "u":
        return mean
    return mean + ((mean < 0) & (rest != 0))  # towards 0, as C does


def _prod(x: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    return np.multiply.reduce(wide(x), axes, keepdims=True)


def _max(x: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    return np.maximum.reduce(x, axes, keepdims=True) if x.size else _empty(x, axes, "min")


def _min(x: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    return np.minimum.reduce(x, axes, keepdims=True) if x.size else _empty(x, axes, "max")


def _l1(x: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    return np.add.reduce(np.abs(wide(x)), axes, keepdims=True)


def _l2(x: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    """Return the root of the sum of squares. For integers, it is computed in f64 and truncated."""
    if kind(x) == "float":
        return np.sqrt(np.add.reduce(np.square(wide(x)), axes, keepdims=True))
    return np.sqrt(np.add.reduce(np.square(x.astype(np.float64)), axes, keepdims=True)).astype(np.int64)


def _and(x: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    return np.logical_and.reduce(x, axes, keepdims=True)


def _or(x: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    return np.logical_or.reduce(x, axes, keepdims=True)


# ---------------------------------------------------------------------------------------------
# the table


_UFUNCS: dict[Fold, np.ufunc] = {
    _sum: np.add, _mean: np.add, _prod: np.multiply, _max: np.maximum, _min: np.minimum,
}  # fmt: skip
_ROW = 1 << 16
"""The longest row, in elements, summed by a dot product. For longer rows, numpy's pairwise sums are more exact."""


def _row(
    name: str, does: str, fold: Fold, *, since: int = 1, over: str = "numeric", carries: bool = False
) -> type[_Reduce]:
    """Declare the reduction ``name``, computed by ``fold``. ``does`` describes it, ``over`` lists its element types."""
    cls = type(name, (_Reduce,), {
        "__doc__": f"{does} With empty ``axes``, the output is ``data``.\n{_CLAUSES}",
        "__module__": __name__,
        "types": {"T": over, "T_IND": "int"},
        "carries": carries,
        "fold": staticmethod(fold),
        "ufunc": _UFUNCS.get(fold),
        "mean": fold is _mean,
    })  # fmt: skip
    page = re.sub(r"(?<=[a-z])(?=[A-Z])", "-", name).lower()
    return op(name, since=since, spec=f"reduction/{page}-{since}")(cls)


ReduceSum = _row("ReduceSum", "Add up the elements along ``axes``.", _sum, carries=True)
ReduceMean = _row("ReduceMean", "Compute the mean along ``axes``. Means of integers are truncated.", _mean)
ReduceMax = _row("ReduceMax", "Find the maximum along ``axes``.", _max)
ReduceMin = _row("ReduceMin", "Find the minimum along ``axes``.", _min)
ReduceProd = _row("ReduceProd", "Multiply the elements along ``axes``.", _prod, carries=True)
ReduceL1 = _row("ReduceL1", "Add up the magnitudes along ``axes``.", _l1, since=4)
ReduceL2 = _row("ReduceL2", "Compute the root of the sum of squares along ``axes``.", _l2, since=4)
ReduceLogicalAnd = _row(
    "ReduceLogicalAnd", "Return whether all elements along ``axes`` are true.", _and, over="boolean"
)
ReduceLogicalOr = _row("ReduceLogicalOr", "Return whether any element along ``axes`` is true.", _or, over="boolean")
