"""Matrix products with a constant matrix, packed in the order in which they read it."""

from __future__ import annotations

import numpy as np

from irrun.kernels.compiled.codes import PackedCodes
from irrun.kernels.compiled.panels import WIDTH, multiply_panels
from irrun.kernels.compiled.processor import HALVES
from irrun.kernels.matmul import ConstantForm, UnpackedConstant
from irrun.opdef import Stored
from irrun.types import ElementType

__all__ = ["WIDTH", "PackedMatrix", "packed_matrix"]


def packed_matrix(source: np.ndarray | Stored, transposed: bool) -> PackedMatrix | PackedCodes:
    """Return the packed form of a matrix of f32, or of the transposed matrix."""
    if isinstance(source, np.ndarray):
        return PackedMatrix.of(source.T if transposed else source)
    if source.type.kind == "float":
        return PackedMatrix.of(source.codes.T if transposed else source.codes)
    if PackedCodes.holds(source, transposed):
        return PackedCodes.of(source, transposed)
    return PackedMatrix.of(UnpackedConstant.of(source, transposed).array)


class PackedMatrix(ConstantForm):
    """A constant matrix of f32, f16 or bf16 in panels of ``WIDTH`` columns, the last of them padded with zeros.

    The panels hold the type of the matrix; f32 also becomes f16 if every element is a number of f16. The product is the
    same as with f32, in half the memory.
    """

    def __init__(self, matrix: np.ndarray) -> None:
        super().__init__(matrix)
        self.depth, self.columns = matrix.shape
        if matrix.dtype == np.float32 and HALVES and (halves := _halves(matrix)) is not None:
            matrix = halves
        type = ElementType.of(matrix.dtype)
        assert type is not None
        dtype = {"f16": np.uint16 if HALVES else np.float32, "bf16": np.int16}.get(type.name, np.float32)
        self.name = "compiled" if dtype is np.float32 else f"compiled, {type}"
        self.panels = np.zeros((-(-self.columns // WIDTH), self.depth, WIDTH), dtype)
        held = self.panels if dtype is np.float32 else self.panels.view(matrix.dtype)
        for number, panel in enumerate(held):
            columns = matrix[:, number * WIDTH : (number + 1) * WIDTH]
            panel[:, : columns.shape[1]] = columns

    @property
    def nbytes(self) -> int:
        return self.panels.nbytes

    def multiply(self, a: np.ndarray, out: np.ndarray, first: int = 0) -> None:
        """Fill ``out`` with the product of ``a`` and the columns of the matrix from ``first`` on.

        ``a`` and ``out`` are matrices of f32 whose rows are contiguous. ``first`` is a multiple of ``WIDTH``, and so is
        the number of columns of ``out``, unless the last column of the matrix is among them.
        """
        multiply_panels(a, self.panels, out, first // WIDTH)


def _halves(matrix: np.ndarray) -> np.ndarray | None:
    """Return the matrix in f16, or None if a number changes. Most matrices show in their first row that one does."""
    with np.errstate(over="ignore"):
        if not np.array_equal(matrix[:1].astype(np.float16), matrix[:1]):
            return None
        halves = matrix.astype(np.float16)
    return halves if np.array_equal(halves, matrix) else None
