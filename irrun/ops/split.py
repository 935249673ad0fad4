"""Split: a tensor cut into equal parts along one axis.  Spec: movement/split-1."""

from typing import Final

import numpy as np

from irrun.opdef import Op, Site, Value, attr, op, ports
from irrun.ops._equal_parts import part


@op("Split", since=1, spec="movement/split-1")
class Split(Op):
    """Cut ``data`` along ``axis`` into ``num_splits`` parts of equal length.

    C1  ``num_splits`` is positive. irrun has a limit of 2^24 outputs.
    C2  ``axis`` is a scalar.
    C3  ``axis`` is at least -rank and less than the rank of ``data``.
    C4  The dim of ``axis`` is a multiple of ``num_splits``.
    """

    num_splits = attr.int()
    views = "strided"
    inputs = ports(data="T", axis="T_AXIS")
    types = {"T": "any", "T_AXIS": "int"}
    channels_last = {"axis": "axes"}
    outputs = None
    carries = True

    def infer(self, at: Site, data: Value, axis: Value) -> tuple[Value, ...]:
        count = self.num_splits
        at.require(count > 0, "C1", f"num_splits is {count}, not positive")
        at.require(count <= _MOST_OUTPUTS, "C1", f"num_splits is {count}, more than {_MOST_OUTPUTS} outputs")
        at.require(axis.rank in (None, 0), "C2", f"axis is {axis.shape}, not a scalar")
        if data.shape.dims is None:
            return (data.reshaped(data.shape),) * count
        rank, place = data.rank, axis.scalar()
        if rank == 1:
            place = 0 if place is None else place
        if place is None:
            return (data.reshaped([d.union(d // count) for d in data.shape]),) * count
        place = at.axis(place, rank, "C3")
        length = part(at, data.shape[place], count, "C4", f"dim {place} of data {data.shape}")
        return (data.reshaped(data.shape.replace(place, length)),) * count

    def run(self, data: np.ndarray, axis: np.ndarray) -> tuple[np.ndarray, ...]:
        return tuple(np.split(data, self.num_splits, Site().axis(int(axis.item()), data.ndim, "C3")))


_MOST_OUTPUTS: Final = 1 << 24
"""The most outputs of a layer: the list of their values takes 128 MiB."""
