"""Reverse: a tensor in reverse order along some axes.  Spec: movement/reverse-1."""

import numpy as np

from irrun.opdef import Op, Site, Value, attr, op, ports


@op("Reverse", since=1, spec="movement/reverse-1")
class Reverse(Op):
    """Reverse ``data`` along the axes that ``axis`` lists (mode index) or marks (mode mask).

    C1  ``axis`` is 1D and holds integers in mode index, booleans in mode mask.
    C2  Mode index: each of ``axis`` is at least -rank and less than the rank of ``data``.
    C3  Mode mask: ``axis`` has one entry for each axis of ``data``.
    C4  Mode index: ``axis`` has at most as many entries as ``data`` has axes.
    """

    mode = attr.choice("index", "mask")
    inputs = ports(data="T", axis="T_AXIS")
    types = {"T": "any", "T_AXIS": "int boolean"}
    carries = True

    def infer(self, at: Site, data: Value, axis: Value) -> Value:
        expected = "booleans" if self.mode == "mask" else "integers"
        is_mask = axis.type.kind == "boolean"
        at.require(axis.rank in (None, 1), "C1", f"axis is {axis.shape}, not 1D")
        at.require(
            axis.type.kind == "dynamic" or is_mask == (self.mode == "mask"),
            "C1",
            f"axis is {axis.type}, but mode {self.mode} takes {expected}",
        )
        if data.rank is not None and self.mode == "mask":
            count = axis.shape.count()
            at.require(count.fits(data.rank), "C3", f"axis has length {count}, but data has rank {data.rank}")
        if data.rank is not None and self.mode == "index":
            count = axis.shape.count()
            at.require(count.lo <= data.rank, "C4", f"axis has length {count}, but data has rank {data.rank}")
            for a in axis.ints() or ():
                at.axis(a, data.rank, "C2")
        return data.reshaped(data.shape)

    def run(self, data: np.ndarray, axis: np.ndarray) -> np.ndarray:
        if self.mode == "mask":
            axes = set(np.flatnonzero(axis).tolist())
        else:
            axes = {Site().axis(int(a), data.ndim, "C2") for a in axis}
        # the ellipsis keeps a scalar an array
        return data[(*[slice(None, None, -1 if a in axes else None) for a in range(data.ndim)], ...)]
