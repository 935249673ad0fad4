"""ScatterUpdate: put slices into a tensor along one axis, by index.  Spec: movement/scatter-update-3."""

import numpy as np

from irrun.opdef import Op, Refused, Site, Value, op, ports
from irrun.ops._indices import check_indices, from_front, one_number, scatter
from irrun.types import PartialShape


@op("ScatterUpdate", since=3, spec="movement/scatter-update-3")
class ScatterUpdate(Op):
    """Replace the slices of ``data`` at ``indices`` along ``axis``. If an index repeats, the last update wins.

    C1  ``axis`` has one element.
    C2  ``axis`` is at least -rank and less than the rank of ``data``.
    C3  ``updates`` has the shape of ``data``, with the dims of ``indices`` in place of ``axis``.
    C4  Each index is at least 0 and less than the dim of ``axis``.
    """

    inputs = ports(data="T", indices="T_IND", updates="T", axis="T_AXIS")
    types = {"T": "numeric boolean", "T_IND": "int", "T_AXIS": "int"}
    carries = True

    def infer(self, at: Site, data: Value, indices: Value, updates: Value, axis: Value) -> Value:
        one_number(at, "C1", axis)
        place = axis.scalar()
        if place is not None:
            place = at.axis(place, data.rank, "C2")
        if data.shape.dims is None or indices.shape.dims is None:
            return data.reshaped(data.shape)
        if place is None:
            expected = PartialShape.of_rank(max(len(data.shape) + len(indices.shape) - 1, 0))
        else:
            check_indices(at, "C4", indices.exact, data.shape[place], negative=False)
            dims = data.shape.dims
            expected = PartialShape((*dims[:place], *indices.shape.dims, *dims[place + 1 :]))
        at.require(updates.shape.meet(expected) is not None, "C3", f"updates is {updates.shape}, not {expected}")
        return data.reshaped(data.shape)

    def run(self, data: np.ndarray, indices: np.ndarray, updates: np.ndarray, axis: np.ndarray) -> np.ndarray:
        place = int(axis.item()) % data.ndim
        expected = data.shape[:place] + indices.shape + data.shape[place + 1 :]
        if updates.shape != expected:
            raise Refused(f"updates is {list(updates.shape)}, not {list(expected)}", "C3")
        indices = from_front(indices, data.shape[place], "C4", negative=False)
        return scatter(data, (*(slice(None),) * place, indices), updates, "none")
