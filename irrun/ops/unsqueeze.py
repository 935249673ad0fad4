"""Unsqueeze: a tensor with additional axes of length 1.  Spec: shape/unsqueeze-1."""

from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from irrun.opdef import Kernel, Op, Request, Site, Value, op, ports
from irrun.ops._reshaping import reshaping
from irrun.types import UNKNOWN_RANK, Dim, PartialShape

_D = TypeVar("_D")


@op("Unsqueeze", since=1, spec="shape/unsqueeze-1")
class Unsqueeze(Op):
    """Insert an axis of length 1 at each of ``axes``, which are positions in the output.

    C1  ``axes`` is a scalar or 1D.
    C2  Each entry of ``axes`` is at least -rank and less than the rank of the output.
    """

    checked = False
    views = "reshaped"
    inputs = ports(data="T", axes="T_AXIS")
    types = {"T": "any", "T_AXIS": "int"}
    carries = True

    def infer(self, at: Site, data: Value, axes: Value) -> Value:
        at.require(axes.rank in (None, 0, 1), "C1", f"axes is {axes.shape}, not a scalar or 1D")
        count = axes.shape.count()
        if data.shape.dims is None:
            return data.reshaped(UNKNOWN_RANK)
        known = axes.ints()
        if known is None:  # several unknown axes may be the same axis
            return data.reshaped(PartialShape.of_rank(len(data.shape) + 1) if count == 1 else UNKNOWN_RANK)
        rank = len(data.shape) + len(set(known))
        for axis in known:
            at.axis(axis, rank, "C2")
        return data.reshaped(_inserted(data.shape.dims, known, Dim(1)))

    def prepare(self, request: Request) -> Kernel | None:
        return reshaping(self, request.inputs)

    def run(self, data: np.ndarray, axes: np.ndarray) -> np.ndarray:
        return data.reshape(_inserted(data.shape, [int(a) for a in axes.ravel()], 1))


def _inserted(shape: Sequence[_D], axes: Sequence[int], one: _D) -> list[_D]:
    """Return ``shape`` with ``one`` inserted at each of ``axes``, which are axes of the result."""
    # OpenVINO inserts a single axis for one that is named twice
    rank = len(shape) + len(set(axes))
    dims = list(shape)
    for axis in sorted({a % rank for a in axes}):
        dims.insert(axis, one)
    return dims
