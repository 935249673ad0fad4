"""Inverse: the inverse of square matrices.  Spec: matrix/Inverse_14."""

import numpy as np

from irrun.kernels.matmul import narrow, wide
from irrun.opdef import Op, Site, Value, attr, op, ports


@op("Inverse", since=14, spec="matrix/Inverse_14")
class Inverse(Op):
    """Invert the matrices in the last two axes; with ``adjoint``, transpose the inverses. A singular one gives NaN.

    C1  The rank of ``data`` is at least 2.
    C2  The matrices are square.
    """

    # OpenVINO: the specification defines ``adjoint`` as the adjugate, determinant times inverse; what is computed
    # is the transpose of the inverse
    adjoint = attr.bool(False)
    inputs = ports(data="T")
    types = {"T": "float"}

    def infer(self, at: Site, data: Value) -> Value:
        if data.shape.dims is None:
            return data.reshaped(data.shape)
        at.require(len(data.shape) >= 2, "C1", f"data is {data.shape}")
        *batch, rows, columns = data.shape
        size = rows.meet(columns)
        at.require(size is not None, "C2", f"data is {data.shape}")
        assert size is not None
        return data.reshaped([*batch, size, size])

    def run(self, data: np.ndarray) -> np.ndarray:
        found = narrow(_inverted(data.astype(wide(data.dtype))), data.dtype)
        return found.swapaxes(-1, -2) if self.adjoint else found


def _inverted(matrices: np.ndarray) -> np.ndarray:
    """Return the inverses of square matrices; NaN for singular ones."""
    try:
        return np.linalg.inv(matrices)
    except np.linalg.LinAlgError:  # one is singular: invert them one by one
        if matrices.ndim == 2:
            return np.full_like(matrices, np.nan)
        return np.stack([_inverted(m) for m in matrices])
