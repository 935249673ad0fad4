"""GatherMatmul and GatherMatmulCompressed: a matrix product with a matrix of its own for each row."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from irrun.extensions.internal._layouts import Layouts, widened
from irrun.opdef import Op, Revision, Site, Value, op, opt, ports
from irrun.types import Dim


class _GatherMatmul(Op):
    """What the two operations share: their shape rule, and the product."""

    revisions = (
        Revision("", "48325881bef5edd5ccdcaca20142f2c51838c4da", "the source that is stored: there is no page"),
    )

    def flops(self, inputs: Sequence[Value | None], outputs: Sequence[Value], /) -> Dim:
        rows = inputs[0]
        size = rows.shape.dims[-1] if rows is not None and rows.shape.dims else Dim.unknown()
        return outputs[0].shape.count() * size * 2

    def products(self, at: Site, a: Value, b: Value, indices: Value, bias: Value | None) -> Value:
        """Return the shape of the output (slots, rows, columns)."""
        dims = Layouts(at)
        dims.read("A", a, "row_slots rows inner")
        grouped = b.rank == 4
        dims.read("B", b, "experts columns groups group_size" if grouped else "experts columns inner")
        if grouped:
            dims.meet("inner", dims["groups"] * dims["group_size"], f"B {b.shape}")
        dims.read("indices", indices, "rows slots")
        if bias is not None and bias.rank != 1:
            dims.read("bias", bias, "experts 1 columns")
        elif bias is not None:
            at.require(
                bias.shape.count().fits(0), "C4", f"bias is {bias.shape}, not empty, and not (experts, 1, columns)"
            )
        own, slots = dims["row_slots"], dims["slots"]
        message = f"A {a.shape} has {own} slots, not 1 or the {slots} of indices {indices.shape}"
        at.require(own.fits(1) or own.meet(slots) is not None, "C3", message)
        for expert in indices.ints() or ():
            at.require(
                0 <= expert < dims["experts"].hi, "C5", f"indices has {expert}, and B has {dims['experts']} experts"
            )
        return a.reshaped([slots, dims["rows"], dims["columns"]])

    def multiplied(self, a: np.ndarray, b: np.ndarray, indices: np.ndarray, bias: np.ndarray | None) -> np.ndarray:
        """Return for each slot and row the product of the row and the matrix of its expert."""
        rows, matrices = widened(a), widened(b.reshape(*b.shape[:2], a.shape[-1]))
        output = np.zeros((indices.shape[1], indices.shape[0], b.shape[1]), rows.dtype)
        rows = np.broadcast_to(rows, (indices.shape[1], *rows.shape[1:]))
        with np.errstate(all="ignore"):
            for expert in np.unique(indices):
                chosen = expert == indices.T
                output[chosen] = rows[chosen] @ matrices[expert].T
                if bias is not None and bias.size:
                    output[chosen] += widened(bias)[expert]
        return output.astype(a.dtype)


@op("GatherMatmul")
class GatherMatmul(_GatherMatmul):
    """Multiply each row of ``A`` by the transposed matrices of ``B`` that ``indices`` names for the row.

    Output (slot, row) is ``A[slot, row] @ B[indices[row, slot]].T + bias[indices[row, slot]]``. If ``A`` has one slot,
    its rows serve all slots. The operation has no page: its source defines it.

    C1  ``A`` is (slots, rows, inner), ``B`` (experts, columns, inner) or (experts, columns, groups, group size),
        ``indices`` (rows, slots).
    C2  Dims of the same name are equal; ``inner`` is the product of the groups and the group size.
    C3  ``A`` has one slot, or as many as ``indices``.
    C4  ``bias`` is (experts, 1, columns), or empty.
    C5  Each index is an expert of ``B``.
    """

    inputs = ports(A="T", B="T", indices="T_IND", bias=opt("T"))
    types = {"T": "float", "T_IND": "i32 i64"}

    def infer(self, at: Site, a: Value, b: Value, indices: Value, bias: Value | None = None) -> Value:
        return self.products(at, a, b, indices, bias)

    def run(self, a: np.ndarray, b: np.ndarray, indices: np.ndarray, bias: np.ndarray | None = None) -> np.ndarray:
        return self.multiplied(a, b, indices, bias)


@op("GatherMatmulCompressed")
class GatherMatmulCompressed(_GatherMatmul):
    """Apply GatherMatmul to the matrices ``(B - weight_zero_points) * weight_scales``.

    Without zero points (empty), the matrices are ``B * weight_scales``. The operation has no page: its source defines
    it.

    C1  ``A`` is (slots, rows, inner), ``B`` (experts, columns, inner) or (experts, columns, groups, group size),
        ``indices`` (rows, slots).
    C2  Dims of the same name are equal; ``inner`` is the product of the groups and the group size.
    C3  ``A`` has one slot, or as many as ``indices``.
    C4  ``bias`` is (experts, 1, columns), or empty.
    C5  Each index is an expert of ``B``.
    C6  ``weight_scales`` and ``weight_zero_points`` can be broadcast to ``B``; the latter may be empty.
    """

    inputs = ports(A="T", B="T_B", indices="T_IND", bias="T", weight_scales="T_SCALE", weight_zero_points="T_ZERO")
    types = {"T": "float", "T_B": "any", "T_IND": "i32 i64", "T_SCALE": "float", "T_ZERO": "any"}

    def infer(
        self, at: Site, a: Value, b: Value, indices: Value, bias: Value, weight_scales: Value, weight_zero_points: Value
    ) -> Value:
        output = self.products(at, a, b, indices, bias)
        for name, value in (("weight_scales", weight_scales), ("weight_zero_points", weight_zero_points)):
            if name == "weight_zero_points" and value.shape.count() == 0:
                continue
            joint = b.shape.broadcast(value.shape)
            fits = joint is not None and joint.meet(b.shape) is not None
            at.require(fits, "C6", f"{name} {value.shape} cannot be broadcast to B {b.shape}")
        return output

    def run(
        self,
        a: np.ndarray,
        b: np.ndarray,
        indices: np.ndarray,
        bias: np.ndarray,
        weight_scales: np.ndarray,
        weight_zero_points: np.ndarray,
    ) -> np.ndarray:
        matrices = widened(b)
        if weight_zero_points.size:
            matrices = matrices - widened(weight_zero_points)
        return self.multiplied(a, matrices * widened(weight_scales), indices, bias)
