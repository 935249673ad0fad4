"""Random numbers for layers of internal operations."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["Draw", "Layer", "i32"]

Layer = tuple[list[np.ndarray], dict[str, Any]]
"""The inputs of a layer, and its attributes as Python values."""


def i32(*numbers: int) -> np.ndarray:
    return np.array(numbers, np.int32)


class Draw:
    """Random numbers, and arrays of one float type."""

    def __init__(self, rng: np.random.Generator, dtype: Any) -> None:
        self.rng, self.dtype = rng, np.dtype(dtype)

    def size(self, least: int = 0, most: int = 3) -> int:
        """Return a number from ``least`` to ``most``."""
        return int(self.rng.integers(least, most + 1))

    def array(self, *shape: int) -> np.ndarray:
        return self.rng.normal(size=shape).astype(self.dtype)

    def indices(self, end: int, *shape: int) -> np.ndarray:
        """Return numbers below ``end``, i32."""
        return self.rng.integers(0, end, shape).astype(np.int32)

    def begins(self, counts: list[int]) -> np.ndarray:
        return i32(0, *np.cumsum(counts).tolist())
