"""ScatterElementsUpdate: put elements into a tensor by their index along one axis.

Spec: movement/scatter-elements-update-{3,12}.
"""

import numpy as np

from irrun.opdef import Op, Site, Value, attr, op, ports
from irrun.ops._indices import along, check_indices, from_front, one_number, scatter


@op("ScatterElementsUpdate", since=12, spec="movement/scatter-elements-update-12")
class ScatterElementsUpdate12(Op):
    """Put each of ``updates`` into ``data`` at its own position, except along ``axis``, where it is at its index.

    ``indices`` holds an index for each of ``updates``.

    C1  ``axis`` has one element.
    C2  ``axis`` is at least -rank and less than the rank of ``data``.
    C3  ``indices`` has the rank of ``data``, and ``updates`` the shape of ``indices``.
    C4  No dim of ``indices`` is greater than that of ``data``, except at ``axis``.
    C5  Each index is within ``axis``.
    C6  ``reduction`` is not mean if ``data`` is boolean.
    """

    reduction = attr.choice("none", "sum", "prod", "min", "max", "mean", default="none")
    use_init_val = attr.bool(True)
    inputs = ports(data="T", indices="T_IND", updates="T", axis="T_AXIS")
    types = {"T": "numeric boolean", "T_IND": "int", "T_AXIS": "int"}
    carries = True

    def infer(self, at: Site, data: Value, indices: Value, updates: Value, axis: Value) -> Value:
        at.require(
            self.reduction != "mean" or data.type.kind != "boolean", "C6", "reduction is mean, but data is boolean"
        )
        one_number(at, "C1", axis)
        place = axis.scalar()
        if place is not None:
            place = at.axis(place, data.rank, "C2")
        both = indices.shape.meet(updates.shape)
        at.require(both is not None, "C3", f"indices is {indices.shape}, but updates is {updates.shape}")
        assert both is not None
        if data.shape.dims is None or both.dims is None:
            return data.reshaped(data.shape)
        at.require(len(both) == len(data.shape), "C3", f"indices {both} and data {data.shape} have different ranks")
        if place is not None:
            check_indices(at, "C5", indices.exact, data.shape[place])
            fits = all(a.lo <= b.hi for i, (a, b) in enumerate(zip(both, data.shape)) if i != place)
            at.require(fits, "C4", f"indices {both} is larger than data {data.shape} in a dim other than axis {place}")
        return data.reshaped(data.shape)

    def run(self, data: np.ndarray, indices: np.ndarray, updates: np.ndarray, axis: np.ndarray) -> np.ndarray:
        place = along(indices.shape, data.ndim)
        at = int(axis.item()) % data.ndim
        place[at] = from_front(indices, data.shape[at], "C5")
        return scatter(data, tuple(place), updates, self.reduction, self.use_init_val)


@op("ScatterElementsUpdate", since=3, spec="movement/scatter-elements-update-3")
class ScatterElementsUpdate3(ScatterElementsUpdate12):
    """Compute the same as ScatterElementsUpdate-12, without reductions.

    C1  ``axis`` has one element.
    C2  ``axis`` is at least -rank and less than the rank of ``data``.
    C3  ``indices`` has the rank of ``data``, and ``updates`` the shape of ``indices``.
    C4  No dim of ``indices`` is greater than that of ``data``, except at ``axis``.
    C5  Each index is within ``axis``.
    """

    # OpenVINO takes negative indices, which the specification of this version does not allow

    attributes = {}
    reduction = "none"
    use_init_val = True
