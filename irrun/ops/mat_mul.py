"""MatMul: products of matrices and vectors.  Spec: matrix/matmul-1."""

import numpy as np

from irrun.opdef import Op, Site, Value, attr, op, ports
from irrun.ops._gemm import matmul
from irrun.types import Dim, PartialShape


@op("MatMul", since=1, spec="matrix/matmul-1")
class MatMul(Op):
    """The product over the last two axes; the axes before them are a batch and broadcast.

    A 1D ``a`` is a row, a 1D ``b`` a column; the axis that makes it a matrix is not in the output.

    C1  Neither input is a scalar.
    C2  The columns of ``a`` are as many as the rows of ``b``.
    C3  The batch dims can be broadcast.
    """

    transpose_a = attr.bool(False)
    transpose_b = attr.bool(False)
    inputs = ports(a="T", b="T")
    types = {"T": "numeric boolean"}  # OpenVINO: multiplies booleans, too

    def infer(self, at: Site, a: Value, b: Value) -> Value:
        at.require(a.rank != 0 and b.rank != 0, "C1", f"a is {a.shape}, b is {b.shape}")
        if a.shape.dims is None or b.shape.dims is None:
            return a.reshaped(PartialShape(None))
        *batch_a, rows, inner_a = _swapped(a.shape.dims, self.transpose_a) if a.rank != 1 else (Dim(1), *a.shape)
        *batch_b, inner_b, columns = _swapped(b.shape.dims, self.transpose_b) if b.rank != 1 else (*b.shape, Dim(1))
        at.require(
            inner_a.meet(inner_b) is not None,
            "C2",
            f"a {a.shape} gives {inner_a} columns, b {b.shape} gives {inner_b} rows",
        )
        batch = PartialShape.of(batch_a).broadcast(PartialShape.of(batch_b))
        at.require(batch is not None, "C3", f"the batches of a {a.shape} and b {b.shape} cannot be broadcast")
        assert batch is not None
        return a.reshaped([*batch, *([rows] if a.rank != 1 else []), *([columns] if b.rank != 1 else [])])

    def run(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        if self.transpose_a and a.ndim > 1:
            a = a.swapaxes(-1, -2)
        if self.transpose_b and b.ndim > 1:
            b = b.swapaxes(-1, -2)
        return matmul(a, b)


def _swapped(dims: tuple[Dim, ...], transpose: bool) -> tuple[Dim, ...]:
    return (*dims[:-2], dims[-1], dims[-2]) if transpose else dims
