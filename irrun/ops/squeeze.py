"""Squeeze: a tensor without some of its axes of length 1.  Spec: shape/squeeze-{1,15}."""

import numpy as np

from irrun.opdef import Kernel, Op, Request, Site, Value, attr, op, opt, ports
from irrun.ops._reshaping import reshaping
from irrun.types import UNKNOWN_RANK


@op("Squeeze", since=15, spec="shape/squeeze-15")
class Squeeze15(Op):
    """Remove those of ``axes`` whose dim is 1. If ``axes`` is empty or absent, remove every axis whose dim is 1.

    Shape inference assumes that an unknown dim at one of ``axes`` is 1. With ``allow_axis_skip``, or where it must be
    certain, it does not: the rank of the output is then unknown.

    C1  ``axes`` is a scalar or 1D.
    C2  Each entry of ``axes`` is at least -rank and less than the rank of ``data``.
    """

    allow_axis_skip = attr.bool(False)
    views = "reshaped"
    inputs = ports(data="T", axes=opt("T_AXIS"))
    types = {"T": "any", "T_AXIS": "int"}
    carries = True

    def infer(self, at: Site, data: Value, axes: Value | None = None) -> Value:
        if axes is not None:
            at.require(axes.rank in (None, 0, 1), "C1", f"axes is {axes.shape}, not a scalar or 1D")
        if data.shape.dims is None:
            return data.reshaped(UNKNOWN_RANK)
        dims = data.shape.dims
        known_axes = () if axes is None else axes.ints()
        if known_axes is None:
            return data.reshaped(UNKNOWN_RANK if any(d.fits(1) for d in dims) else dims)
        rank = max(len(dims), 1)  # as in OpenVINO, axis 0 of a scalar is allowed and removes nothing
        squeezed = {at.axis(a, rank, "C2") for a in known_axes} or set(range(rank))
        uncertain = [d for i, d in enumerate(dims) if i in squeezed and d.fits(1) and d != 1]
        if uncertain and (self.allow_axis_skip or at.certain or not known_axes):
            return data.reshaped(UNKNOWN_RANK)
        return data.reshaped([d for i, d in enumerate(dims) if i not in squeezed or not d.fits(1)])

    def prepare(self, request: Request) -> Kernel | None:
        return reshaping(self, request.inputs)

    def run(self, data: np.ndarray, axes: np.ndarray | None = None) -> np.ndarray:
        rank = data.ndim
        squeezed = {int(a) % max(rank, 1) for a in np.ravel(() if axes is None else axes)} or range(rank)
        return data.reshape([n for i, n in enumerate(data.shape) if i not in squeezed or n != 1])


@op("Squeeze", since=1, spec="shape/squeeze-1")
class Squeeze1(Squeeze15):
    """Compute the same as Squeeze-15, without ``allow_axis_skip``.

    C1  ``axes`` is a scalar or 1D.
    C2  Each entry of ``axes`` is at least -rank and less than the rank of ``data``.
    """

    attributes = {}
    allow_axis_skip = False
