"""GroupedMatMul: a matrix product for each group of rows.  Spec: matrix/grouped-matmul-17."""

import itertools
from collections.abc import Sequence

import numpy as np

from irrun.kernels.matmul import matmul
from irrun.opdef import Op, Refused, Site, Value, op, opt, ports
from irrun.types import Dim, PartialShape


@op("GroupedMatMul", since=17, spec="matrix/grouped-matmul-17")
class GroupedMatMul(Op):
    """Multiply each group of rows of ``mat_a`` by its own matrix in ``mat_b`` (groups, columns, K), transposed.

    With ``offsets``, which holds the end of each group, ``mat_a`` is (rows, K), otherwise (groups, rows, K).

    C1  ``mat_b`` is 3D. ``mat_a`` is 2D if ``offsets`` is connected, otherwise 3D.
    C2  ``offsets`` is 1D and has one entry for each group of ``mat_b``.
    C3  The entries of ``offsets`` are in ascending order, and the last one is the number of rows.
    C4  K is the same in ``mat_a`` and ``mat_b``.
    C5  If both are 3D, ``mat_a`` and ``mat_b`` have the same number of groups.
    """

    # OpenVINO has mat_b as (G, N, K) and no product of 2D with 2D, unlike early drafts of the specification
    inputs = ports(mat_a="T", mat_b="T", offsets=opt("T_IND"))
    types = {"T": "numeric", "T_IND": "i32 i64"}

    def flops(self, inputs: Sequence[Value | None], outputs: Sequence[Value], /) -> Dim:
        a = inputs[0]
        return outputs[0].shape.count() * a.shape.dims[-1] * 2 if a is not None and a.shape.dims else Dim.unknown()

    def infer(self, at: Site, mat_a: Value, mat_b: Value, offsets: Value | None = None) -> Value:
        rank = 3 if offsets is None else 2
        case = f"if offsets is {'not ' if offsets is None else ''}connected"
        at.require(mat_a.rank in (None, rank), "C1", f"mat_a is {mat_a.shape}, but must be {rank}D {case}")
        at.require(mat_b.rank in (None, 3), "C1", f"mat_b is {mat_b.shape}, not 3D")
        *lead, rows, inner = mat_a.shape.dims or PartialShape.of_rank(rank)
        groups, columns, inner_b = mat_b.shape.dims or PartialShape.of_rank(3)
        at.require(inner.meet(inner_b) is not None, "C4", f"K is {inner} in mat_a, but {inner_b} in mat_b")
        if offsets is None:
            met = groups.meet(lead[0])
            at.require(met is not None, "C5", f"mat_a has {lead[0]} groups, but mat_b has {groups}")
            assert met is not None
            return mat_a.reshaped([met, rows, columns])
        at.require(offsets.rank in (None, 1), "C2", f"offsets is {offsets.shape}, not 1D")
        count = offsets.shape[0]
        at.require(count.meet(groups) is not None, "C2", f"offsets has length {count}, but there are {groups} groups")
        ends = offsets.ints()
        if ends is not None:
            fault = _fault(ends, rows)
            at.require(fault is None, "C3", fault or "")
        return mat_a.reshaped([rows, columns])

    def run(self, mat_a: np.ndarray, mat_b: np.ndarray, offsets: np.ndarray | None = None) -> np.ndarray:
        transposed = mat_b.swapaxes(1, 2)
        if offsets is None:
            return matmul(mat_a, transposed)
        ends = tuple(offsets.tolist())
        if fault := _fault(ends, Dim(len(mat_a))):
            raise Refused(fault, "C3")
        out = np.empty((len(mat_a), mat_b.shape[1]), mat_a.dtype)
        for group, (start, end) in enumerate(itertools.pairwise((0, *ends))):
            out[start:end] = matmul(mat_a[start:end], transposed[group])
        return out


def _fault(ends: tuple[int, ...], rows: Dim) -> str | None:
    """Return the message about wrong offsets, or None if they are right."""
    if list(ends) == sorted(ends) and min(ends, default=0) >= 0 and rows.fits(max(ends, default=0)):
        return None
    return f"offsets {list(ends)} does not ascend to {rows}, the number of rows"
