"""Say how a constant differs from the one that was expected: exchanged rows, rows times a number, single elements."""

from __future__ import annotations

from itertools import groupby
from typing import Final

import numpy as np

__all__ = ["difference", "spans"]

_FEW: Final = 3
"""The most elements that are named one by one."""


def difference(found: np.ndarray, expected: np.ndarray) -> str | None:
    """Return how an array differs from another, as the end of a sentence, or None if both are equal."""
    if found.shape != expected.shape:
        return f"has the shape {list(found.shape)}, not {list(expected.shape)}"
    unequal = (found != expected) & ~((found != found) & (expected != expected))
    if not unequal.any():
        return None
    return (
        _exchanged(found, expected, unequal)
        or _scaled(found, expected, unequal)
        or _nan(found, unequal)
        or _elements(found, expected, unequal)
        or f"differs in {int(unequal.sum())} of {unequal.size} elements"
    )


def _exchanged(found: np.ndarray, expected: np.ndarray, unequal: np.ndarray) -> str | None:
    """Return which rows along an axis are those of other rows."""
    for axis in range(found.ndim):
        others = tuple(a for a in range(found.ndim) if a != axis)
        moved = np.flatnonzero(unequal.any(others)).tolist()
        if not 2 <= len(moved) <= 256:
            continue
        rows, wanted = np.moveaxis(found, axis, 0), np.moveaxis(expected, axis, 0)
        sources = [next((s for s in moved if np.array_equal(rows[row], wanted[s])), None) for row in moved]
        known = [source for source in sources if source is not None]
        if len(known) == len(moved) and len(set(known)) == len(known):
            return f"has at {spans(moved)} of axis {axis} what belongs at {spans(known)}"
    return None


def _scaled(found: np.ndarray, expected: np.ndarray, unequal: np.ndarray) -> str | None:
    """Return which part is a multiple of what it should be."""
    if found.dtype.kind not in "fV" or unequal.sum() < 2:
        return None
    here, there = found[unequal].astype(np.float64), expected[unequal].astype(np.float64)
    with np.errstate(all="ignore"):
        ratios = here / there
    factor = float(np.median(ratios))
    if not np.isfinite(factor) or not np.allclose(here, factor * there, rtol=1e-3, atol=1e-6):
        return None
    for axis in range(found.ndim):
        others = tuple(a for a in range(found.ndim) if a != axis)
        rows = np.flatnonzero(unequal.any(others))
        if len(rows) < found.shape[axis]:
            return f"is {factor:.4g} times that of the stateful model at {spans(rows.tolist())} of axis {axis}"
    return f"is {factor:.4g} times that of the stateful model"


def _nan(found: np.ndarray, unequal: np.ndarray) -> str | None:
    """Return which rows along an axis are NaN, if nothing else differs."""
    for axis in range(found.ndim):
        rows = np.flatnonzero(unequal.all(tuple(a for a in range(found.ndim) if a != axis)))
        if (
            rows.size
            and (found != found)[unequal].all()
            and unequal.sum() * found.shape[axis] == rows.size * found.size
        ):
            return f"is NaN at {spans(rows.tolist())} of axis {axis}"
    return None


def _elements(found: np.ndarray, expected: np.ndarray, unequal: np.ndarray) -> str | None:
    """Return the values of single elements."""
    places = np.argwhere(unequal)
    if len(places) > _FEW:
        return None
    parts = [f"{found[tuple(p)]:.6g} at {p.tolist()}, not {expected[tuple(p)]:.6g}" for p in places]
    return f"is {'; '.join(parts)}"


def spans(numbers: list[int]) -> str:
    """Return numbers as ranges: ``8 to 15, 20``."""
    parts: list[str] = []
    for _, group in groupby(enumerate(numbers), lambda pair: pair[1] - pair[0]):
        own = [number for _, number in group]
        parts += [f"{own[0]} to {own[-1]}"] if len(own) > 2 else [str(number) for number in own]
    return ", ".join(parts)
