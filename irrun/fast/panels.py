"""Panels: the order in which matrix products read a constant matrix, and the product of a few rows with one of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Final

import numpy as np

from irrun.base.memory import lasting_zeros
from irrun.fast.block import HALF, WIDTH, is_half, multiply_block, widen_block
from irrun.fast.functions import Number, contracted
from irrun.fast.machine.emitting import CACHE_LINE_BYTES
from irrun.fast.machine.memory import address_of, data_address, row_at
from irrun.fast.machine.processor import ROWS, VECTOR, VECTORS, compiled
from irrun.kernels.matmul import ConstantForm
from irrun.opdef import FEW_ROWS, Call, Epilogue

__all__ = [
    "AS_THEY_ARE",
    "MAX_CACHED_ROWS",
    "MAX_SUMMED_ROWS",
    "WIDTH",
    "Packed",
    "Then",
    "area",
    "finish",
    "from_place",
    "in_vectors",
    "multiply_half",
    "multiply_panel",
    "multiply_panels",
    "multiply_part",
    "then_of",
    "zero_panels",
]

_FOUR_PANELS: Final = 4 * VECTORS
"""Vectors of four panels."""
MAX_SUMMED_ROWS: Final = 768
"""The most rows of the constant matrix that a block sums up at once, so that a panel stays in the second-level cache.
With half as many, a product of depth 768 takes 4 % longer, because it reads its sums again."""
MAX_CACHED_ROWS: Final = 32 * ROWS
"""Rows of the other matrix that each panel is multiplied with in turn, so that they stay in the second-level cache."""


_MIN_WIDENED_ROWS: Final = 10 * ROWS
"""The fewest rows for which a panel of f16 becomes f32 first. Some processors widen numbers by the unit that multiplies
them."""


def zero_panels(columns: int, depth: int, dtype: type) -> np.ndarray:
    """Return panels [panels, depth, WIDTH] of zeros for a matrix with ``columns`` columns."""
    return lasting_zeros((-(-columns // WIDTH), depth, WIDTH), dtype)


_NO_MINIMUM: Final = np.float32(-np.inf)
_NO_MAXIMUM: Final = np.float32(np.inf)

Then = tuple[int, int, int, Number, Number]
"""What becomes of results, ``clamp(result + bias + residual)``: the address of the bias and of the residual, or 0; how
many numbers apart the rows of the residual are; and the limits."""
AS_THEY_ARE: Final[Then] = (0, 0, 0, _NO_MINIMUM, _NO_MAXIMUM)


@contracted
def from_place(then: Then, row: int, column: int) -> Then:
    """Return the same for the results from a row and a column on."""
    bias, residual, apart, low, high = then
    return bias + 4 * column if bias else 0, residual + 4 * (row * apart + column) if residual else 0, apart, low, high


@compiled
def multiply_panel(
    panels: np.ndarray, a: int, lda: int, b: int, ldb: int, c: int, ldc: int, rows: int, depth: int, adds: bool,
    then: Then,
) -> None:  # fmt: skip
    """Multiply rows by a panel (see ``multiply_block``). Meanwhile, the next panel is fetched into the cache."""
    ahead, end = b + ldb, b + ldb + depth * panels.strides[1]
    while rows >= ROWS:
        multiply_block(ROWS, VECTORS, panels, a, lda, b, ldb, c, ldc, depth, adds, ahead, then)
        a, c, rows, then = a + 4 * ROWS * lda, c + 4 * ROWS * ldc, rows - ROWS, from_place(then, ROWS, 0)
        ahead = min(ahead + CACHE_LINE_BYTES * depth, end)
    if rows == 1:
        multiply_block(1, VECTORS, panels, a, lda, b, ldb, c, ldc, depth, adds, ahead, then)
    elif rows == 2:
        multiply_block(2, VECTORS, panels, a, lda, b, ldb, c, ldc, depth, adds, ahead, then)
    elif rows == 3:
        multiply_block(3, VECTORS, panels, a, lda, b, ldb, c, ldc, depth, adds, ahead, then)
    elif rows == 4:
        multiply_block(4, VECTORS, panels, a, lda, b, ldb, c, ldc, depth, adds, ahead, then)
    elif rows == 5:
        multiply_block(5, VECTORS, panels, a, lda, b, ldb, c, ldc, depth, adds, ahead, then)


@compiled
def multiply_half(
    panels: np.ndarray, a: int, lda: int, b: int, c: int, ldc: int, rows: int, depth: int, adds: bool,
    then: Then,
) -> None:  # fmt: skip
    """Multiply rows by the first half of a panel (see ``multiply_block``)."""
    while rows >= ROWS:
        multiply_block(ROWS, HALF, panels, a, lda, b, 0, c, ldc, depth, adds, b, then)
        a, c, rows, then = a + 4 * ROWS * lda, c + 4 * ROWS * ldc, rows - ROWS, from_place(then, ROWS, 0)
    for row in range(rows):
        more = from_place(then, row, 0)
        multiply_block(1, HALF, panels, a + 4 * row * lda, lda, b, 0, c + 4 * row * ldc, ldc, depth, adds, b, more)


def then_of(epilogue: Epilogue | None, residual: np.ndarray | None, first: int) -> Then:
    """Return what becomes of the results in the columns of the constant matrix from ``first`` on.

    ``residual`` has the shape of the product of these columns, and contiguous rows.
    """
    if epilogue is None:
        return AS_THEY_ARE
    bias = 0 if epilogue.bias is None else data_address(epilogue.bias) + 4 * first
    more, apart = (0, 0) if residual is None else (data_address(residual), residual.strides[0] // 4)
    low, high = epilogue.limits or (_NO_MINIMUM, _NO_MAXIMUM)
    return bias, more, apart, np.float32(low), np.float32(high)


@contracted
def finish(place: int, step: int, rows: int, columns: int, then: Then) -> None:
    """Replace results at an address, whose rows are ``step`` numbers apart, by ``clamp(result + bias + residual)``."""
    bias, residual, apart, low, high = then
    for i in range(rows):
        row = row_at(place + 4 * i * step, columns)
        if bias:
            added = row_at(bias, columns)
            for j in range(columns):
                row[j] += added[j]
        if residual:
            more = row_at(residual + 4 * i * apart, columns)
            for j in range(columns):
                row[j] += more[j]
        if low > _NO_MINIMUM or high < _NO_MAXIMUM:
            for j in range(columns):  # NaN stays
                least = low if row[j] < low else row[j]
                row[j] = high if least > high else least


@compiled
def multiply_panels(
    a: np.ndarray, panels: np.ndarray, out: np.ndarray, first: int, then: Then, keeps: bool = False
) -> None:
    """Fill ``out`` with the product of ``a`` and panels of floats from the panel ``first`` on, or add it if ``keeps``.

    Then the results become what ``then`` says.
    """
    rows, depth = a.shape
    columns = out.shape[1]
    lda, ldb, ldc = a.strides[0] // 4, panels.strides[0], out.strides[0] // 4
    edge = np.empty((ROWS, WIDTH), np.float32)
    parts = -(-depth // MAX_SUMMED_ROWS)
    widens = is_half(panels) and rows >= _MIN_WIDENED_ROWS
    wide = np.empty((-(-depth // parts) if widens else 0, WIDTH), np.float32)
    for part in range(parts):
        begin, end = depth * part // parts, depth * (part + 1) // parts
        adds = keeps or part > 0
        for top in range(0, rows, MAX_CACHED_ROWS):
            height = min(MAX_CACHED_ROWS, rows - top)
            at = address_of(a) + 4 * (top * lda + begin)
            column = 0
            while column < columns:
                b = address_of(panels) + (first + column // WIDTH) * ldb + begin * panels.strides[1]
                c = address_of(out) + 4 * (top * ldc + column)
                width = min(WIDTH, columns - column)
                own = from_place(then, top, column) if part == parts - 1 else AS_THEY_ARE
                if height == 1 and column + 4 * WIDTH <= columns:
                    # a single row leaves registers for four panels, which are read from memory at the same time
                    multiply_block(1, _FOUR_PANELS, panels, at, lda, b, ldb, c, ldc, end - begin, adds, b, own)
                    width = 4 * WIDTH
                elif width == WIDTH and widens:
                    held = address_of(wide)
                    widen_block(panels, b, held, end - begin)
                    # the next panel begins so far from this one
                    multiply_panel(wide, at, lda, held, b + ldb - held, c, ldc, height, end - begin, adds, own)
                elif width == WIDTH:
                    multiply_panel(panels, at, lda, b, ldb, c, ldc, height, end - begin, adds, own)
                elif width == WIDTH // 2:
                    multiply_half(panels, at, lda, b, c, ldc, height, end - begin, adds, own)
                else:
                    for row in range(0, height, ROWS):
                        count = min(ROWS, height - row)
                        multiply_panel(
                            panels, at + 4 * row * lda, lda, b, ldb, address_of(edge), WIDTH, count,
                            end - begin, False, AS_THEY_ARE,
                        )  # fmt: skip
                        # loops, because numba takes seconds to compile the errors of an assignment of slices
                        for i in range(count):
                            for j in range(width):
                                before = out[top + row + i, column + j] if adds else np.float32(0)
                                out[top + row + i, column + j] = before + edge[i, j]
                    finish(c, ldc, height, width, own)
                column += width


@contracted
def in_vectors(columns: int) -> tuple[int, int]:
    """Return how many vectors hold the columns of a panel, 1 to ``WIDTH``, and the numbers in the last of them."""
    return (columns + VECTOR - 1) // VECTOR, (columns - 1) % VECTOR + 1


@contracted
def area(out: np.ndarray, by_rows: bool, first: int, last: int) -> tuple[int, int, int, int]:
    """Return the rows and the columns of a part of a product: those from the first to before the second number.

    A part is the rows ``first`` to ``last`` of ``out`` or, unless ``by_rows``, its columns ``first`` to ``last``.
    """
    return (first, last, 0, out.shape[1]) if by_rows else (0, len(out), first, last)


@compiled
def multiply_part(
    a: np.ndarray, panels: np.ndarray, out: np.ndarray, panel: int, by_rows: bool, bias: int, residual: int, apart: int,
    low: Number, high: Number, first: int, last: int,
) -> None:  # fmt: skip
    """Fill the part of ``out`` from ``first`` to ``last`` (see ``area``), whose first column is that of ``panel``.

    The numbers from ``bias`` to ``high`` say what becomes of the results: see ``Then``.
    """
    top, bottom, left, right = area(out, by_rows, first, last)
    then = from_place((bias, residual, apart, low, high), top, left)
    multiply_panels(a[top:bottom], panels, out[top:bottom, left:right], panel + left // WIDTH, then)


class Packed(ConstantForm):
    """A constant matrix in panels of ``WIDTH`` columns, the last of them padded, by which rows of f32 are multiplied.

    ``name`` is that of the algorithm. ``a`` and ``out``, below, are matrices of f32 whose rows are contiguous. Of
    ``epilogue``, bias, residual and limits are computed, too. ``residual`` has the shape of ``out``, and contiguous
    rows.
    """

    part: ClassVar[Callable[..., None]]
    """Fills a part of a product: see ``multiply_part``, whose ``panels`` are ``arrays`` here."""

    name: str
    depth: int
    columns: int
    panels: np.ndarray

    @property
    def arrays(self) -> tuple[np.ndarray, ...]:
        """The arrays that hold the matrix."""
        return (self.panels,)

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self.arrays)

    def multiply(
        self, a: np.ndarray, out: np.ndarray, first: int = 0, epilogue: Epilogue | None = None,
        residual: np.ndarray | None = None,
    ) -> None:  # fmt: skip
        """Fill ``out`` with the product of ``a`` and the columns of the matrix from ``first`` on.

        ``first`` is a multiple of ``WIDTH``, and so is the number of columns of ``out``, unless the last column of the
        matrix is among them.
        """
        self.part(*self._arguments(a, out, first, False, epilogue, residual), 0, out.shape[1])

    def call(self, a: np.ndarray, out: np.ndarray, epilogue: Epilogue | None, residual: np.ndarray | None) -> Call:
        """Return the call that fills ``out``: see ``multiply``."""
        by_rows = len(a) >= FEW_ROWS
        arguments = self._arguments(a, out, 0, by_rows, epilogue, residual)
        if by_rows:
            return Call(self.part, arguments, len(a))
        return Call(self.part, arguments, self.columns, WIDTH, 1)  # each part reads all rows, and may round them

    def call_alone(
        self, a: np.ndarray, out: np.ndarray, epilogue: Epilogue | None, residual: np.ndarray | None
    ) -> Call:
        """Return the call that fills ``out`` if no others do the same rows: see ``multiply``.

        The threads divide the longer side of the product, because each of them reads all of the other operand.
        """
        by_rows = len(a) > self.columns
        count, unit = (len(a), ROWS) if by_rows else (self.columns, WIDTH)
        return Call(self.part, self._arguments(a, out, 0, by_rows, epilogue, residual), count, unit, 1)

    def _arguments(
        self, a: np.ndarray, out: np.ndarray, first: int, by_rows: bool, epilogue: Epilogue | None,
        residual: np.ndarray | None,
    ) -> tuple[Any, ...]:  # fmt: skip
        """Return the arguments of ``part`` but the first and the last row or column of ``out``."""
        return a, *self.arrays, out, first // WIDTH, by_rows, *then_of(epilogue, residual, first)
