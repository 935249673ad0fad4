"""Rotary embeddings: pairs of elements, half of the last axis apart, are rotated by an angle."""

from __future__ import annotations

import numpy as np


def rotated(x: np.ndarray, cos: np.ndarray, sin: np.ndarray, *, out: np.ndarray | None = None) -> np.ndarray:
    """Return ``x * cos + turned * sin``, where ``turned`` is ``concatenate([-x[..., n:], x[..., :n]], -1)``.

    n is half of the last axis. ``cos`` and ``sin`` broadcast to the shape of ``x`` and have all of its last axis. The
    result is written to ``out`` if that is an array, which overlaps with no input.
    """
    half = x.shape[-1] // 2
    result = np.multiply(x, cos, out)
    low, high = result[..., :half], result[..., half:]
    part = np.multiply(x[..., half:], sin[..., :half])
    np.subtract(low, part, low)
    np.multiply(x[..., :half], sin[..., half:], part)
    np.add(high, part, high)
    return result
