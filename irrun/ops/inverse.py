"""Inverse: the inverse of square matrices.  Spec: matrix/Inverse_14."""

import numpy as np

from irrun.kernels.matmul import narrow, wide
from irrun.opdef import Op, Site, Value, attr, op, ports


@op("Inverse", since=14, spec="matrix/Inverse_14")
class Inverse(Op):
    """Invert the matrices in the last two axes. With ``adjoint``, transpose the inverses.

    The inverse of a singular matrix is NaN.

    C1  The rank of ``data`` is at least 2.
    C2  The matrices are square.
    """

    # the specification defines ``adjoint`` as the adjugate (determinant times inverse), but OpenVINO computes the
    # transpose of the inverse
    adjoint = attr.bool(False)
    inputs = ports(data="T")
    types = {"T": "float"}

    def infer(self, at: Site, data: Value) -> Value:
        if data.shape.dims is None:
            return data.reshaped(data.shape)
        at.require(len(data.shape) >= 2, "C1", f"data {data.shape} has rank {data.rank}, less than 2")
        *batch, rows, columns = data.shape
        size = rows.meet(columns)
        at.require(size is not None, "C2", f"the matrices of data {data.shape} are not square")
        assert size is not None
        return data.reshaped([*batch, size, size])

    def run(self, data: np.ndarray) -> np.ndarray:
        inverses = narrow(_inverted(data.astype(wide(data.dtype))), data.dtype)
        return inverses.swapaxes(-1, -2) if self.adjoint else inverses


def _inverted(matrices: np.ndarray) -> np.ndarray:
    """Return the inverses of square matrices. The inverse of a singular matrix is NaN."""
    try:
        return np.linalg.inv(matrices)
    except np.linalg.LinAlgError:  # one is singular: invert them one by one
        if matrices.ndim == 2:
            return np.full_like(matrices, np.nan)
        return np.stack([_inverted(m) for m in matrices])
