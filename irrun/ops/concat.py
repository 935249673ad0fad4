"""Concat: tensors concatenated along one axis.  Spec: movement/concat-1."""

from functools import partial

import numpy as np

from irrun.opdef import Kernel, Op, Request, Site, Value, attr, op, ports, variadic
from irrun.opdef.columns import in_columns
from irrun.types import INF, UNKNOWN_RANK, Dim


@op("Concat", since=1, spec="movement/concat-1")
class Concat(Op):
    """Concatenate the inputs along ``axis``, in order.

    C1  All inputs have the same rank, which is at least 1.
    C2  ``axis`` is at least -rank and less than the rank.
    C3  The inputs have the same dims, except at ``axis``.
    """

    axis = attr.int()
    checked = False
    inputs = ports(data=variadic("T"))
    types = {"T": "any"}
    carries = True
    gathers = True
    channels_last = {"axis": "axes"}

    def infer(self, at: Site, *inputs: Value) -> Value:
        known = [(i, v.shape) for i, v in enumerate(inputs) if v.rank is not None]
        if not known:
            return inputs[0].reshaped(UNKNOWN_RANK)
        rank = len(known[0][1])
        for i, shape in known:
            at.require(len(shape) == rank, "C1", f"input {i} is {shape}, but input {known[0][0]} has rank {rank}")
        at.require(rank > 0, "C1", "the inputs are scalars, which have no axis to concatenate along")
        axis = at.axis(self.axis, rank, "C2")
        total = sum((shape[axis] for _, shape in known), Dim(0))
        if len(known) < len(inputs):
            total = Dim(total.lo, INF)
        merged = known[0][1]
        for i, shape in known[1:]:
            both = merged.meet(shape.replace(axis, merged[axis]))
            if both is None:
                pairs = [(k - rank, pair) for k, pair in enumerate(zip(merged, shape)) if k != axis]
                wrong = {k: pair for k, pair in pairs if pair[0].meet(pair[1]) is None}
                drawn = in_columns({"before it": tuple(merged), f"input {i}": tuple(shape)}, wrong)
                message = f"input {i} is {shape}, but the inputs before it are {merged}"
                at.refuse("C3", message, notes=drawn, dims=tuple(d for pair in wrong.values() for d in pair))
            merged = both
        return inputs[0].reshaped(merged.replace(axis, total))

    def prepare(self, request: Request) -> Kernel | None:
        return Kernel(partial(_concatenated, self.axis), out="whole")

    def run(self, *inputs: np.ndarray) -> np.ndarray:
        return np.concatenate(inputs, self.axis)


def _concatenated(axis: int, *inputs: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    return np.concatenate(inputs, axis, out)
