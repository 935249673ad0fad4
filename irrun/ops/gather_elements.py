"""GatherElements: elements of a tensor by their index along one axis.  Spec: movement/gather-elements-6."""

import numpy as np

from irrun.opdef import Op, Site, Value, attr, op, ports
from irrun.ops._indices import check_indices, from_front
from irrun.types import Dim


@op("GatherElements", since=6, spec="movement/gather-elements-6")
class GatherElements(Op):
    """Take an element of ``data`` for each index.

    The position of the element is that of the index, except along ``axis``, where it is the index itself.

    C1  ``data`` and ``indices`` have the same rank, which is at least 1.
    C2  ``axis`` is at least -rank and less than the rank.
    C3  ``data`` and ``indices`` have the same dims, except at ``axis``.
    C4  Each index is within ``axis`` of ``data``.
    """

    # OpenVINO's CPU plugin counts negative indices from the end; the specification has no negative indices

    axis = attr.int()
    inputs = ports(data="T", indices="T_IND")

    def infer(self, at: Site, data: Value, indices: Value) -> Value:
        rank = indices.rank if data.rank is None else data.rank
        at.require(
            indices.rank in (None, rank), "C1", f"data {data.shape} and indices {indices.shape} have different ranks"
        )
        at.require(rank != 0, "C1", "data is a scalar")
        axis = at.axis(self.axis, rank, "C2")
        if rank is None:
            return data.reshaped(indices.shape)
        check_indices(at, "C4", indices.exact, data.shape[axis])
        pairs = zip(data.shape.dims or [Dim.unknown()] * rank, indices.shape.dims or [Dim.unknown()] * rank)
        dims = [b if i == axis else a.meet(b) for i, (a, b) in enumerate(pairs)]
        known = [d for d in dims if d is not None]
        message = f"data {data.shape} and indices {indices.shape} differ in a dim other than axis {axis}"
        at.require(len(known) == rank, "C3", message)
        return data.reshaped(known)

    def run(self, data: np.ndarray, indices: np.ndarray) -> np.ndarray:
        places = from_front(indices, data.shape[self.axis], "C4")
        return np.take_along_axis(data, places, self.axis)
