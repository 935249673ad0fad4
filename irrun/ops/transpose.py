"""Transpose: the axes of a tensor in another order.  Spec: movement/transpose-1."""

from collections.abc import Sequence
from functools import reduce

import numpy as np

from irrun.opdef import Kernel, Op, Request, Site, Value, few, op, ports
from irrun.types import Dim, PartialShape


@op("Transpose", since=1, spec="movement/transpose-1")
class Transpose(Op):
    """Reorder the axes: axis ``i`` of the output is axis ``order[i]`` of ``data``. An empty ``order`` reverses them.

    C1  ``order`` is 1D and empty, or has one entry for each axis of ``data``.
    C2  ``order`` holds each axis of ``data`` once, counted from the front.
    """

    views = "strided"
    inputs = ports(data="T", order="T_AXIS")
    types = {"T": "any", "T_AXIS": "int"}
    carries = True

    def infer(self, at: Site, data: Value, order: Value) -> Value:
        at.require(order.rank in (None, 1), "C1", f"order is {order.shape}, not 1D")
        count = order.shape.count()
        axes = order.ints()
        if axes:
            _check(at, axes, len(axes))
        if data.shape.dims is None:
            rank = few(count)
            return data.reshaped(PartialShape.of_rank(rank) if rank else PartialShape(None))
        rank = len(data.shape)
        at.require(count.fits(rank) or count.fits(0), "C1", f"order has length {count}, but data has rank {rank}")
        if count == 0 or rank < 2:
            return data.reshaped(data.shape.dims[::-1])
        if axes is not None:
            return data.reshaped([data.shape[a] for a in axes])
        return data.reshaped([reduce(Dim.union, data.shape)] * rank)  # the axes are in an unknown order

    def prepare(self, request: Request) -> Kernel | None:
        data, order = request.inputs
        axes = None if order is None else order.exact
        if data is None or axes is None or data.rank != axes.size or not axes.size:
            return None
        known = tuple(axes.tolist())
        return Kernel(lambda data, order: data.transpose(known))

    def run(self, data: np.ndarray, order: np.ndarray) -> np.ndarray:
        axes = [int(a) for a in order]
        if axes:
            _check(Site(), axes, data.ndim)
        return data.transpose(axes or None)


def _check(at: Site, axes: Sequence[int], rank: int) -> None:
    at.require(
        sorted(axes) == list(range(rank)),
        "C2",
        f"order {list(axes)} does not name each of the axes 0 to {rank - 1} once",
    )
