"""ScatterNDUpdate: put elements or slices into a tensor by tuples of indices.

Spec: movement/scatter-nd-update-{3,15}.
"""

import numpy as np

from irrun.opdef import Op, Site, Value, attr, op, ports
from irrun.ops._indices import check_indices, from_front, scatter
from irrun.types import PartialShape


@op("ScatterNDUpdate", since=15, spec="movement/scatter-nd-update-15")
class ScatterNDUpdate15(Op):
    """Put each of ``updates`` into ``data`` where the tuple along the last axis of ``indices`` points.

    C1  ``data`` and ``indices`` have at least one axis.
    C2  A tuple has at most as many indices as ``data`` has axes.
    C3  The shape of ``updates`` is that of ``indices`` without the last dim, followed by the dims of ``data`` that the
        tuples do not index.
    C4  Each index is within its axis.
    """

    # OpenVINO's CPU plugin can crash for negative indices, and its XOR of repeated booleans (sub) is wrong

    reduction = attr.choice("none", "sum", "sub", "prod", "min", "max", default="none")
    inputs = ports(data="T", indices="T_IND", updates="T")
    types = {"T": "numeric boolean", "T_IND": "i32 i64"}
    carries = True

    def infer(self, at: Site, data: Value, indices: Value, updates: Value) -> Value:
        for name, value in (("data", data), ("indices", indices)):
            at.require(value.rank != 0, "C1", f"{name} is a scalar")
        if data.shape.dims is None or indices.shape.dims is None:
            return data.reshaped(data.shape)
        length = indices.shape[-1]
        at.require(
            length.lo <= len(data.shape),
            "C2",
            f"tuples have {length} indices, but data {data.shape} has {data.rank} axes",
        )
        count = length.value
        if count is None:
            return data.reshaped(data.shape)
        for i in range(count):
            column = None if indices.exact is None else indices.exact[..., i]
            check_indices(at, "C4", column, data.shape[i])
        expected = PartialShape((*indices.shape.dims[:-1], *data.shape.dims[count:]))
        single = len(expected) == 0 and updates.shape.count().fits(1)  # a single element may have any rank
        fits = single or updates.shape.meet(expected) is not None
        at.require(fits, "C3", f"updates is {updates.shape}, not {expected}")
        return data.reshaped(data.shape)

    def run(self, data: np.ndarray, indices: np.ndarray, updates: np.ndarray) -> np.ndarray:
        count = indices.shape[-1]
        columns = [from_front(indices[..., i], n, "C4") for i, n in enumerate(data.shape[:count])]
        # the added axis of length 1, indexed with zeros, makes tuples of no indices work
        place = (np.zeros(indices.shape[:-1], np.int64), *columns)
        updates = updates.reshape(indices.shape[:-1] + data.shape[count:])
        return scatter(data[None], place, updates, self.reduction)[0]


@op("ScatterNDUpdate", since=4, spec="movement/scatter-nd-update-3")
class ScatterNDUpdate4(ScatterNDUpdate15):
    """Compute the same as ScatterNDUpdate-15, without reductions.

    C1  ``data`` and ``indices`` have at least one axis.
    C2  A tuple has at most as many indices as ``data`` has axes.
    C3  The shape of ``updates`` is that of ``indices`` without the last dim, followed by the dims of ``data`` that the
        tuples do not index.
    C4  Each index is within its axis.
    """

    attributes = {}
    reduction = "none"
