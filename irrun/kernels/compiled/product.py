"""Matrix products with a constant matrix, packed in the order in which they read it."""

from __future__ import annotations

from typing import Final

import numpy as np

from irrun.kernels.compiled.block import multiply_block
from irrun.kernels.compiled.processor import HALVES, ROWS, VECTOR, VECTORS, compiled
from irrun.kernels.matmul import ConstantForm

__all__ = ["WIDTH", "PackedMatrix"]

WIDTH: Final = VECTOR * VECTORS
"""Columns of a panel."""
_DEPTH: Final = 384
"""The most rows of the constant matrix that a block sums up at once, so that a panel stays in the first-level cache."""
_HEIGHT: Final = 32 * ROWS
"""Rows of the other matrix that each panel is multiplied with in turn, so that they stay in the second-level cache."""


class PackedMatrix(ConstantForm):
    """A constant matrix of f32 in panels of ``WIDTH`` columns, the last of them padded with zeros.

    If every element is a number of f16, as in a file with compressed weights, the panels hold f16: the product is the
    same, in half the memory.
    """

    def __init__(self, matrix: np.ndarray) -> None:
        super().__init__(matrix)
        self.depth, self.columns = matrix.shape
        halves = _halves(matrix) if HALVES else None
        stored = matrix if halves is None else halves
        self.name = "compiled" if halves is None else "compiled, f16"
        self.panels = np.zeros((-(-self.columns // WIDTH), self.depth, WIDTH), stored.dtype)
        for number, panel in enumerate(self.panels):
            columns = stored[:, number * WIDTH : (number + 1) * WIDTH]
            panel[:, : columns.shape[1]] = columns

    def multiply(self, a: np.ndarray, out: np.ndarray, first: int = 0) -> None:
        """Fill ``out`` with the product of ``a`` and the columns of the matrix from ``first`` on.

        ``a`` and ``out`` are matrices of f32 whose rows are contiguous. ``first`` is a multiple of ``WIDTH``, and so is
        the number of columns of ``out``, unless the last column of the matrix is among them.
        """
        _multiply(a, self.panels, out, first // WIDTH)


def _halves(matrix: np.ndarray) -> np.ndarray | None:
    """Return the bits of the matrix in f16, or None if a number changes."""
    with np.errstate(over="ignore"):
        halves = matrix.astype(np.float16)
    return halves.view(np.uint16) if np.array_equal(halves, matrix) else None


@compiled
def _address(array: np.ndarray) -> int:
    return int(np.intp(array.ctypes.data))  # an unsigned number plus an index would be a float


@compiled
def _multiply(a: np.ndarray, panels: np.ndarray, out: np.ndarray, first: int) -> None:
    rows, depth = a.shape
    columns = out.shape[1]
    lda, ldb, ldc = a.strides[0] // 4, panels.strides[0], out.strides[0] // 4
    edge = np.empty((ROWS, WIDTH), np.float32)
    parts = -(-depth // _DEPTH)
    for part in range(parts):
        begin, end = depth * part // parts, depth * (part + 1) // parts
        adds = part > 0
        for top in range(0, rows, _HEIGHT):
            height = min(_HEIGHT, rows - top)
            at = _address(a) + 4 * (top * lda + begin)
            column = 0
            while column < columns:
                b = _address(panels) + (first + column // WIDTH) * ldb + begin * panels.strides[1]
                c = _address(out) + 4 * (top * ldc + column)
                width = min(WIDTH, columns - column)
                if height == 1 and column + 4 * WIDTH <= columns:
                    # a single row leaves registers for four panels, which are read from memory at the same time
                    multiply_block(1, 4, panels, at, lda, b, ldb, c, ldc, end - begin, adds)
                    width = 4 * WIDTH
                elif width == WIDTH:
                    _multiply_panel(panels, at, lda, b, ldb, c, ldc, height, end - begin, adds)
                else:
                    for row in range(0, height, ROWS):
                        high = min(ROWS, height - row)
                        _multiply_panel(
                            panels, at + 4 * row * lda, lda, b, ldb, _address(edge), WIDTH, high,
                            end - begin, False,
                        )  # fmt: skip
                        whole = out[top + row : top + row + high, column:]
                        if adds:
                            whole += edge[:high, :width]
                        else:
                            whole[:] = edge[:high, :width]
                column += width


@compiled
def _multiply_panel(
    panels: np.ndarray, a: int, lda: int, b: int, ldb: int, c: int, ldc: int, rows: int, depth: int, adds: bool
) -> None:
    """Multiply rows by a panel (see ``multiply_block``)."""
    while rows >= ROWS:
        multiply_block(ROWS, 1, panels, a, lda, b, ldb, c, ldc, depth, adds)
        a, c, rows = a + 4 * ROWS * lda, c + 4 * ROWS * ldc, rows - ROWS
    if rows == 1:
        multiply_block(1, 1, panels, a, lda, b, ldb, c, ldc, depth, adds)
    elif rows == 2:
        multiply_block(2, 1, panels, a, lda, b, ldb, c, ldc, depth, adds)
    elif rows == 3:
        multiply_block(3, 1, panels, a, lda, b, ldb, c, ldc, depth, adds)
    elif rows == 4:
        multiply_block(4, 1, panels, a, lda, b, ldb, c, ldc, depth, adds)
    elif rows == 5:
        multiply_block(5, 1, panels, a, lda, b, ldb, c, ldc, depth, adds)
