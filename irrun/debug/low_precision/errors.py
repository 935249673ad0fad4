"""The two parts of an error: what is the same at all places of a channel, and the rest."""

from __future__ import annotations

import numpy as np

__all__ = ["Parts", "parts"]

Parts = tuple[float, float]
"""The power of an error, which is the sum of its squares: of its means over each channel, and of the rest."""


def parts(error: np.ndarray, is_image: bool) -> Parts:
    """Return the power of both parts of an error [batch, channels, ...]; only an image has the first part.

    An element that is not finite counts as 0.
    """
    error = np.where(np.isfinite(error), error, 0).astype(np.float64, copy=False)
    total = float(np.square(error).sum())
    if not is_image or error.ndim < 3 or not error.size:
        return 0.0, total
    means = error.mean(axis=(0, *range(2, error.ndim)))
    common = min(float(np.square(means).sum()) * (error.size / means.size), total)
    return common, total - common
