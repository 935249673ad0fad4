"""Measure how far a value is from its reference."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from irrun.types import ElementType

__all__ = ["Budget", "Frontier", "Measurement", "is_outside", "measure"]

_BLOCK_ELEMENTS: Final = 1 << 16
"""Elements that are compared at a time: the temporary arrays of a block fit in the cache."""
_BITS: Final = 16
"""Bits of a float32 that ``_frontier`` keeps, so that magnitudes in one bucket differ by less than a hundredth."""

Frontier = tuple[tuple[float, float], ...]
"""Pairs (magnitude, error) that decide for every rtol and atol whether an element is outside: see ``is_outside``."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """How far a value is from its reference.

    An element is outside if its error exceeds ``atol + rtol * max(abs(reference), rms)``, where rms is the root mean
    square of the reference. NaN equals NaN, and an infinity equals itself. ``max_abs``, ``max_rel``, ``cosine`` and
    ``snr`` are over the elements that are finite on both sides. A figure that is not defined is None: ``snr`` (in
    decibels) without an error, ``cosine`` without a length.
    """

    outside: int
    """The number of elements outside."""
    size: int
    excess: float
    """The greatest error, in units of what its tolerance allows; infinite if NaN, Inf or strings differ."""
    worst: tuple[int, ...] | None
    """The index of the element with the greatest excess, or None without elements."""
    max_abs: float
    max_rel: float
    cosine: float | None
    snr: float | None
    error: float
    """The root mean square of the errors divided by that of the reference; infinite if the reference is 0, and if NaN,
    Inf or strings differ."""
    nan: tuple[int, int]
    """The numbers of NaNs in the reference and in the candidate."""
    inf: tuple[int, int]
    """The numbers of infinities in the reference and in the candidate."""
    problem: str = ""
    """Why the elements cannot be compared: the shapes differ, or one side holds strings. Otherwise empty."""
    frontier: Frontier = ()

    @property
    def agrees(self) -> bool:
        """Whether no element is outside."""
        return not self.outside and not self.problem

    @property
    def numbers(self) -> int:
        """The number of elements that can differ: those that are not NaN on both sides."""
        return self.size - min(self.nan)

    @property
    def share(self) -> float:
        """The share of the elements that are outside."""
        return self.outside / self.size if self.size else float(bool(self.problem))


@dataclass(frozen=True, slots=True)
class Budget:
    """An error beside what the precision in effect explains.

    ``excess`` is the greatest error of an element, in units of what is explained there: more than 1 is not explained.
    ``worst`` is the index of that element. ``error`` and ``allowed`` are the greatest error and the greatest that is
    explained, in units of the root mean square of the true value. ``form`` is the precision that comes nearest.
    ``outside`` is the number of elements whose errors it does not explain.
    """

    excess: float
    error: float
    allowed: float
    worst: tuple[int, ...] | None
    form: str
    outside: int = 0

    @property
    def is_explained(self) -> bool:
        """Whether the precision in effect explains the error."""
        return self.excess <= 1


def measure(
    reference: np.ndarray, candidate: np.ndarray, rtol: float, atol: float, *, frontier: bool = False
) -> Measurement:
    """Return how far ``candidate`` is from ``reference``. With ``frontier``, other tolerances can be applied later."""
    if problem := _incomparable(reference, candidate):
        return Measurement(0, 0, math.inf, None, math.inf, math.inf, None, None, math.inf, (0, 0), (0, 0), problem)
    sums = _Sums(reference, rtol, atol, frontier=frontier)
    with np.errstate(all="ignore"):
        if _is_text(reference):
            sums.add_text(reference, candidate)
        else:
            for start, first, second in _blocks(reference, candidate):
                sums.add(start, first, second)
    return sums.measurement()


def tolerated(reference: np.ndarray, rtol: float, atol: float) -> np.ndarray:
    """Return how far each element may be from that of ``reference``."""
    magnitude = np.abs(reference.astype(np.float64))
    return atol + rtol * np.maximum(magnitude, _rms(reference))


def is_outside(frontier: Frontier, rtol: float, atol: float) -> bool:
    """Return whether an element was outside for these tolerances, within a hundredth of ``rtol``."""
    return any(not error <= atol + rtol * magnitude for magnitude, error in frontier)


def _incomparable(reference: np.ndarray, candidate: np.ndarray) -> str:
    if reference.shape != candidate.shape:
        return f"the shape is {list(candidate.shape)}, that of the reference {list(reference.shape)}"
    if _is_text(reference) != _is_text(candidate):
        return f"the type is {_type(candidate)}, that of the reference {_type(reference)}"
    return ""


def _is_text(array: np.ndarray) -> bool:
    return array.dtype.kind in "OUT"


def _type(array: np.ndarray) -> str:
    return str(ElementType.of(array.dtype) or array.dtype)


def _blocks(reference: np.ndarray, candidate: np.ndarray) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
    """Yield the elements in C order, in 1D arrays of at most ``_BLOCK_ELEMENTS``, with the position of the first."""
    first, second = np.ascontiguousarray(reference).reshape(-1), np.ascontiguousarray(candidate).reshape(-1)
    for start in range(0, first.size, _BLOCK_ELEMENTS):
        yield start, first[start : start + _BLOCK_ELEMENTS], second[start : start + _BLOCK_ELEMENTS]


class _Sums:
    """The figures of the blocks so far."""

    def __init__(self, reference: np.ndarray, rtol: float, atol: float, *, frontier: bool) -> None:
        self.shape, self.size = reference.shape, reference.size
        self.rtol, self.atol = rtol, atol
        self.rms = 0.0 if _is_text(reference) else _rms(reference)
        self.outside = 0
        self.excess, self.worst = -1.0, 0
        self.max_abs = self.max_rel = 0.0
        self.rr = self.cc = self.rc = self.dd = 0.0
        self.nan, self.inf = [0, 0], [0, 0]
        self.least_error = 0.0
        self.buckets = np.full(1 << _BITS, -1.0) if frontier else None

    def add_text(self, reference: np.ndarray, candidate: np.ndarray) -> None:
        """Add all elements of two arrays of strings."""
        differ = np.asarray(reference.astype(object) != candidate.astype(object)).reshape(-1)
        self.outside = int(np.count_nonzero(differ))
        self.excess, self.worst = (math.inf, int(np.argmax(differ))) if self.outside else (0.0, 0)
        self.least_error = math.inf if self.outside else 0.0
        self.mark(0.0, self.least_error)

    def add(self, start: int, first: np.ndarray, second: np.ndarray) -> None:
        """Add the elements from position ``start`` on: ``first`` of the reference, ``second`` of the candidate."""
        r, c = first.astype(np.float64), second.astype(np.float64)
        distance = np.abs(c - r)
        if first.dtype.kind in "iu" and second.dtype.kind in "iu":  # float64 does not tell large integers apart
            distance[(first != second) & (distance == 0)] = 1
        magnitude = np.abs(r)
        if not math.isfinite(float(distance.max())):
            r, c, distance, magnitude = self.without_special(r, c, distance, magnitude)
        peak = float(distance.max())
        self.add_excess(start, distance, magnitude, peak)
        finite = distance if math.isfinite(peak) else np.where(np.isfinite(distance), distance, 0)
        self.rr += _dot(r, r)
        self.cc += _dot(c, c)
        self.rc += _dot(r, c)
        if peak:
            self.max_abs = max(self.max_abs, float(finite.max()))
            self.max_rel = max(self.max_rel, float((finite / np.where(magnitude > 0, magnitude, np.inf)).max()))
            self.dd += _dot(finite, finite)

    def add_excess(self, start: int, distance: np.ndarray, magnitude: np.ndarray, peak: float) -> None:
        """Count the elements outside, and keep the worst. ``peak`` is the greatest of the distances."""
        least = self.atol + self.rtol * self.rms
        if self.buckets is not None and peak:
            keys = np.maximum(magnitude, self.rms).astype(np.float32).view(np.uint32) >> np.uint32(32 - _BITS)
            np.maximum.at(self.buckets, keys, distance)
        if peak <= least * min(self.excess, 1):
            return  # no element can be worse, or outside
        excess = distance / (self.atol + self.rtol * np.maximum(magnitude, self.rms))
        if not least:
            excess[distance == 0] = 0
        position = int(np.argmax(excess))
        if excess[position] > self.excess:
            self.excess, self.worst = float(excess[position]), start + position
        self.outside += int(np.count_nonzero(excess > 1))

    def without_special(
        self, r: np.ndarray, c: np.ndarray, distance: np.ndarray, magnitude: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Count NaN and Inf, and return the arrays with zeros in their place.

        The distance of such an element is 0 if both sides agree, and otherwise infinite.
        """
        for side, array in enumerate((r, c)):
            self.nan[side] += int(np.count_nonzero(np.isnan(array)))
            self.inf[side] += int(np.count_nonzero(np.isinf(array)))
        special = ~(np.isfinite(r) & np.isfinite(c))
        same = (r == c) | (np.isnan(r) & np.isnan(c))
        distance = np.where(special, np.where(same, 0, np.inf), distance)
        self.least_error = max(self.least_error, float(distance[special].max(initial=0)))
        return np.where(special, 0, r), np.where(special, 0, c), distance, np.where(special, 0, magnitude)

    def mark(self, magnitude: float, error: float) -> None:
        if self.buckets is not None:
            key = int(np.array(magnitude, np.float32).view(np.uint32)) >> (32 - _BITS)
            self.buckets[key] = max(self.buckets[key], error)

    def measurement(self) -> Measurement:
        """Return the figures of all blocks."""
        length = math.sqrt(self.rr) * math.sqrt(self.cc)
        noise = math.sqrt(self.dd / self.rr) if self.rr else math.inf if self.dd else 0.0
        return Measurement(
            self.outside,
            self.size,
            max(self.excess, 0.0),
            tuple(int(i) for i in np.unravel_index(self.worst, self.shape)) if self.size else None,
            self.max_abs,
            self.max_rel,
            min(1.0, self.rc / length) if length else None,
            -20 * math.log10(noise) if 0 < noise < math.inf else None,
            max(noise, self.least_error),
            (self.nan[0], self.nan[1]),
            (self.inf[0], self.inf[1]),
            "",
            self.frontier(),
        )

    def frontier(self) -> Frontier:
        """Return the upper convex hull of the greatest error in each bucket of magnitudes, from 0 on.

        For any rtol >= 0, the greatest ``error - rtol * magnitude`` of all elements is that of a corner of the hull.
        """
        if self.buckets is None:
            return ()
        keys = np.flatnonzero(self.buckets > 0)
        magnitudes = (keys.astype(np.uint32) << np.uint32(32 - _BITS)).view(np.float32).astype(np.float64)
        hull: list[tuple[float, float]] = []
        for magnitude, error in zip(magnitudes.tolist(), self.buckets[keys].tolist()):
            if hull and error <= hull[-1][1]:
                continue  # more may be allowed here, and less is needed
            while len(hull) > 1 and not _turns_down(hull[-2], hull[-1], (magnitude, error)):
                hull.pop()
            hull.append((magnitude, error))
        return tuple(hull)


def _turns_down(a: tuple[float, float], b: tuple[float, float], c: tuple[float, float]) -> bool:
    """Return whether ``b`` lies above the line from ``a`` to ``c``. An infinite error lies above every line."""
    if math.isinf(c[1]):
        return True
    return (b[1] - a[1]) * (c[0] - a[0]) > (c[1] - a[1]) * (b[0] - a[0])


def _dot(first: np.ndarray, second: np.ndarray) -> float:
    """Return the inner product of two arrays [n], without BLAS, whose threads busy-wait even for so few elements."""
    return float(np.einsum("i,i->", first, second))


def _rms(array: np.ndarray) -> float:
    """Return the root mean square of the finite elements, or 0 if there are none."""
    total, count = 0.0, 0
    for start in range(0, array.size, _BLOCK_ELEMENTS):
        block = array.reshape(-1)[start : start + _BLOCK_ELEMENTS].astype(np.float64)
        with np.errstate(all="ignore"):
            square = _dot(block, block)
        if not math.isfinite(square):
            block = block[np.isfinite(block)]
            with np.errstate(all="ignore"):
                square = _dot(block, block)
        total, count = total + square, count + block.size
    return math.sqrt(total / count) if count else 0.0
