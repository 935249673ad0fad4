"""Stored: a constant matrix that stays as the file has it, in f16 or as integers with scales."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from irrun.types import ElementType

__all__ = ["Stored"]


@dataclass(frozen=True, slots=True, eq=False)
class Stored:
    """A constant matrix of f32 [rows, columns] as the numbers from which the layers of a file compute it.

    The matrix is ``(codes - zeros) * scales``. Each number of ``zeros`` and ``scales``, f32 [a, b], is for a block of
    ``rows // a`` times ``columns // b`` codes: a scale for each row is [rows, 1], one for each 128 columns of a row
    [rows, columns // 128]. Everything is computed in f32, even if the layers of the file compute in f16: OpenVINO does
    the same, and it rounds less.
    """

    raw: np.ndarray
    """The bytes of the codes in the .bin, uint8 [n]."""
    type: ElementType
    """The element type of the codes: f16, bf16, u8, i8, u4 or i4."""
    shape: tuple[int, int]
    zeros: np.ndarray | None = None
    scales: np.ndarray | None = None
    origin: tuple[object, ...] = field(default=())
    """The Const layers of the file: equal for two instances only if their matrices are equal, in the same .bin."""

    @property
    def codes(self) -> np.ndarray:
        """The codes as a view of the .bin, [rows, columns], for types of 8 or 16 bits."""
        return self.raw.view(self.type.dtype).reshape(self.shape)

    def unpack_rows(self, which: np.ndarray | slice) -> np.ndarray:
        """Return rows of the matrix as a new array of f32, [n, columns]."""
        rows = self._codes(which).astype(np.float32)
        for operation, numbers in ((np.subtract, self.zeros), (np.multiply, self.scales)):
            if numbers is not None:
                high, wide = (n // of for n, of in zip(self.shape, numbers.shape))
                blocks = rows.reshape(len(rows), numbers.shape[1], wide)
                operation(blocks, numbers[self._numbers(which) // high][:, :, None], out=blocks)
        return rows

    def _numbers(self, which: np.ndarray | slice) -> np.ndarray:
        return np.arange(*which.indices(self.shape[0])) if isinstance(which, slice) else which

    def _codes(self, which: np.ndarray | slice) -> np.ndarray:
        if self.type.bits > 4:
            return self.codes[which]
        rows, columns = self.shape
        if columns % 2 == 0:
            pairs = self.raw.reshape(rows, columns // 2)[which]
            codes = np.stack([pairs & 15, pairs >> 4], -1).reshape(-1, columns)
        else:  # a byte may hold codes of two rows
            places = self._numbers(which)[:, None] * columns + np.arange(columns)
            codes = self.raw[places >> 1] >> (places & 1).astype(np.uint8) * np.uint8(4) & 15
        return codes if self.type.name == "u4" else (codes ^ 8).astype(np.int8) - np.int8(8)
