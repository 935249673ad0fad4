"""Compare the values of two constants, block by block."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, Protocol

import numpy as np

from irrun.diagnostics import ModelError, Refused
from irrun.inference.propagate import refusal
from irrun.model import Layer, Model
from irrun.model.weights import Weights
from irrun.types import ElementType, PartialShape

__all__ = ["Constant", "Numbers", "WeightsError", "constant", "weights_error"]


@dataclass(frozen=True, slots=True)
class WeightsError:
    """How the values of a constant or weight in ``b`` differ from those in ``a``.

    ``max_abs`` is the largest difference and ``max_rel`` the largest relative to the value in ``a``; both are infinite
    if only one of two values is finite, or zero in ``a``, and None for strings. ``worst`` is the index of the element
    with the largest difference. ``snr`` is the signal-to-noise ratio in decibels over the elements that are finite on
    both sides, or None without a signal or a noise.
    """

    elements: int
    different: int
    max_abs: float | None
    max_rel: float | None
    worst: tuple[int, ...]
    snr: float | None = None

    @property
    def share(self) -> float:
        """The share of elements that differ."""
        return self.different / self.elements if self.elements else 0.0


class Numbers(Protocol):
    """The values of a constant, or of a weight that layers decompress, in blocks."""

    @property
    def weights(self) -> Weights:
        """The ``.bin`` that holds them."""
        ...

    @property
    def shape(self) -> tuple[int, ...]: ...

    @property
    def count(self) -> int: ...

    @property
    def meaning(self) -> Any:
        """What the bytes mean: where it is the same on both sides, equal bytes are equal values. None for strings."""
        ...

    def elements(self, start: int, stop: int) -> np.ndarray:
        """Return elements ``start`` to ``stop`` [stop - start]. ``start`` is a multiple of 8. Raises ModelError."""
        ...

    def raw(self, start: int, stop: int) -> np.ndarray:
        """Return the bytes from which the elements ``start`` to ``stop`` are computed. Raises ModelError."""
        ...


@dataclass(frozen=True, slots=True)
class Constant:
    """Where the values of a constant are: their type and shape, and the offset and size in ``weights``."""

    model: Model
    layer: Layer
    weights: Weights
    type: ElementType
    shape: tuple[int, ...]
    offset: int
    size: int

    @property
    def count(self) -> int:
        return math.prod(self.shape)

    @property
    def meaning(self) -> tuple[ElementType] | None:
        return None if self.type.kind == "string" else (self.type,)

    def elements(self, start: int, stop: int) -> np.ndarray:
        """Return elements ``start`` to ``stop`` [stop - start]. ``start`` is a multiple of 8.

        Raises ModelError if they are not in the ``.bin``.
        """
        try:
            if self.type.kind == "string":
                return self.weights.tensor(self.offset, self.size, self.type, self.shape).reshape(-1)[start:stop]
            first = self.type.nbytes(start)
            size = min(self.size - first, self.type.nbytes(stop - start))
            return self.weights.tensor(self.offset + first, size, self.type, (stop - start,))
        except Refused as refused:
            raise ModelError(refusal(self.model, self.layer, None, refused)) from None

    def raw(self, start: int, stop: int) -> np.ndarray:
        """Return the bytes of elements ``start`` to ``stop``. ``start`` is a multiple of 8. Raises ModelError."""
        first, last = self.type.nbytes(start), self.type.nbytes(stop)
        try:
            return self.weights.bytes_at(self.offset + first, last - first)
        except Refused as refused:
            raise ModelError(refusal(self.model, self.layer, None, refused)) from None


def constant(model: Model, layer: Layer, weights: Weights) -> Constant | None:
    """Return where the values of a Const are, or None if its attributes do not say it."""
    attributes = layer.attributes
    declared = layer.outputs[0].type if layer.outputs else None
    element_type = ElementType.parse(attributes.get("element_type", "")) or declared
    shape = PartialShape.parse(attributes.get("shape", ""))
    offset, size = (attributes.get(name, "") for name in ("offset", "size"))
    if element_type is None or shape is None or shape.static is None or not (offset.isdecimal() and size.isdecimal()):
        return None
    return Constant(model, layer, weights, element_type, shape.static, int(offset), int(size))


_BLOCK_ELEMENTS: Final = 1 << 20
"""The elements that are compared at a time, a multiple of 8: constants may be larger than the memory."""
_RELEASE: Final = 64
"""The blocks after which the mapped pages of both files are released."""


def weights_error(a: Numbers, b: Numbers) -> WeightsError | None:
    """Return how the values of two constants with equally many elements differ, or None if they are equal.

    NaN equals NaN, and 0 equals -0. Values of different element types are compared as f64. Raises ModelError if the
    bytes of one of them are not in its ``.bin``.
    """
    tally = _Tally()
    equal: list[tuple[int, int]] = []
    is_plain = a.meaning is not None and a.meaning == b.meaning
    for start, stop in _blocks(a, b):
        if is_plain and np.array_equal(a.raw(start, stop), b.raw(start, stop)):
            equal.append((start, stop))
        else:
            tally.add(start, a.elements(start, stop), b.elements(start, stop))
    if not tally.different:
        return None
    if not tally.is_text:
        for start, stop in equal:
            tally.add_signal(a.elements(start, stop).astype(np.float64))
    worst = tuple(int(i) for i in np.unravel_index(tally.worst, a.shape)) if a.shape else ()
    figures = (None, None) if tally.is_text else (tally.max_abs, tally.max_rel)
    return WeightsError(a.count, tally.different, *figures, worst, tally.snr)


def _blocks(a: Numbers, b: Numbers) -> Iterator[tuple[int, int]]:
    """Yield the beginning and end of each block, and release the mapped pages of both files now and then."""
    for number, start in enumerate(range(0, a.count, _BLOCK_ELEMENTS)):
        yield start, min(start + _BLOCK_ELEMENTS, a.count)
        if number % _RELEASE == _RELEASE - 1:
            a.weights.release()
            b.weights.release()


class _Tally:
    """Adds up the differences of blocks of elements."""

    def __init__(self) -> None:
        self.different, self.worst = 0, -1
        self.max_abs, self.max_rel = 0.0, 0.0
        self.signal, self.noise = 0.0, 0.0
        self.is_text = False

    @property
    def snr(self) -> float | None:
        """The signal-to-noise ratio in decibels."""
        if not 0 < self.noise < math.inf or not 0 < self.signal < math.inf:
            return None
        return 10 * math.log10(self.signal / self.noise)

    def add_signal(self, values: np.ndarray) -> None:
        """Add the squares of the finite values."""
        with np.errstate(all="ignore"):
            self.signal += float(np.square(np.where(np.isfinite(values), values, 0)).sum())

    def add(self, start: int, one: np.ndarray, other: np.ndarray) -> None:
        if one.dtype == object or other.dtype == object:
            self.is_text = True
            differs = np.asarray(one.astype(object) != other.astype(object))
            distance = differs.astype(np.float64)
            size = np.ones(len(one))
        else:
            differs, distance, size = _distances(one, other)
            self.add_signal(np.where(np.isfinite(distance), size, 0))
            with np.errstate(all="ignore"):
                self.noise += float(np.square(np.where(np.isfinite(distance), distance, 0)).sum())
        count = int(np.count_nonzero(differs))
        if not count:
            return
        self.different += count
        distance = np.where(differs, distance, 0.0)
        worst = int(np.argmax(distance))
        if self.worst < 0 or distance[worst] > self.max_abs:
            self.worst = start + worst
        self.max_abs = max(self.max_abs, float(distance[worst]))
        with np.errstate(all="ignore"):
            relative = np.where(differs, distance / size, 0.0)
        self.max_rel = max(self.max_rel, float(np.nan_to_num(relative, nan=np.inf, posinf=np.inf).max()))


def _distances(one: np.ndarray, other: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return for each element whether it differs, by how much, and the absolute value of the first."""
    if one.dtype == other.dtype and one.dtype.kind in "iu":
        differs = one != other
        unsigned = np.dtype(f"u{one.dtype.itemsize}")
        distance = (np.maximum(one, other).view(unsigned) - np.minimum(one, other).view(unsigned)).astype(np.float64)
        return differs, distance, np.abs(one.astype(np.float64))
    first, second = one.astype(np.float64), other.astype(np.float64)
    with np.errstate(all="ignore"):
        differs = ~((first == second) | (np.isnan(first) & np.isnan(second)))
        distance = np.where(differs, np.abs(first - second), 0.0)
    distance[differs & ~np.isfinite(distance)] = np.inf
    return differs, distance, np.abs(first)
