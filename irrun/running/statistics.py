"""Statistics of an array, computed block by block, so that those of a large array need little memory."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from irrun.types import ElementType

__all__ = ["Histogram", "Statistics", "blocks", "histogram", "numbers", "statistics"]

_BLOCK: Final = 1 << 18
"""Elements per block: few enough that the temporary arrays of a block take some megabytes."""


@dataclass(frozen=True, slots=True)
class Statistics:
    """Figures of an array. ``min``, ``mean``, ``max`` and ``std`` are over the finite elements.

    These four are None for strings, if no element is finite, and where they overflow float64. ``zeros``, ``nan`` and
    ``inf`` count elements.
    """

    size: int
    min: float | int | None
    mean: float | None
    max: float | int | None
    std: float | None
    zeros: int
    nan: int
    inf: int


@dataclass(frozen=True, slots=True)
class Histogram:
    """The numbers of finite elements in equal intervals from ``low`` to ``high``, both included."""

    low: float
    high: float
    counts: tuple[int, ...]


def blocks(array: np.ndarray) -> Iterator[np.ndarray]:
    """Yield the elements in C order, in 1D arrays of at most ``_BLOCK`` elements."""
    if not array.size:
        return
    flags: Any = ["external_loop", "buffered", "zerosize_ok", "refs_ok"]
    iterator: Any = np.nditer(array, flags=flags, order="C", buffersize=_BLOCK)
    yield from iterator


def numbers(array: np.ndarray) -> np.ndarray:
    """Return the array in a dtype of numpy itself: float32 for floats of ml_dtypes, and int8 for its integers.

    Any other array is returned as it is, without a copy.
    """
    if array.dtype.isbuiltin != 2:
        return array
    known = ElementType.of(array.dtype)
    return array.astype(np.float32 if known is None or known.kind == "float" else np.int8)


def statistics(array: np.ndarray) -> Statistics:
    """Return the statistics of an array of any element type."""
    if array.dtype == object:
        return Statistics(array.size, None, None, None, None, 0, 0, 0)
    least, most, mean, spread = math.inf, -math.inf, 0.0, 0.0
    count = zeros = nans = infinities = 0
    for block in blocks(array):
        elements = numbers(block)
        zeros += elements.size - int(np.count_nonzero(elements))
        if elements.dtype.kind == "f":
            finite = np.isfinite(elements)
            missing = int(np.isnan(elements).sum())
            nans += missing
            infinities += int(elements.size - finite.sum()) - missing
            elements = elements[finite]
        if not elements.size:
            continue
        least, most = min(least, elements.min().item()), max(most, elements.max().item())
        exact = elements.astype(np.float64)
        added, center = exact.size, float(exact.mean())
        # Chan, Golub and LeVeque: combine the squared deviations of the blocks so far with those of this block
        spread += float(((exact - center) ** 2).sum()) + (center - mean) ** 2 * count * added / (count + added)
        mean += (center - mean) * added / (count + added)
        count += added
    figures = (least, mean, most, math.sqrt(spread / count)) if count else (None,) * 4
    low, middle, high, deviation = [n if n is None or math.isfinite(n) else None for n in figures]
    return Statistics(array.size, low, middle, high, deviation, zeros, nans, infinities)


def histogram(array: np.ndarray, known: Statistics, bins: int) -> Histogram | None:
    """Return the histogram of an array with these statistics.

    It is None if there is nothing to divide into intervals: the array holds strings, no finite element, or only one
    number, or its range overflows float64.
    """
    if known.min is None or known.max is None or known.min == known.max:
        return None
    low, high = float(known.min), float(known.max)
    if not math.isfinite(high - low) or not low < high or (high - low) / bins == 0.0:
        return None
    counts = np.zeros(bins, np.int64)
    for block in blocks(array):
        elements = numbers(block)
        if elements.dtype.kind == "f":
            elements = elements[np.isfinite(elements)]
        places = (elements.astype(np.float64) - low) * (bins / (high - low))
        counts += np.bincount(np.clip(places, 0, bins - 1).astype(np.int64), minlength=bins)
    return Histogram(low, high, tuple(counts.tolist()))
