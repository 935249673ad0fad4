"""What each layer loses by itself: the behaviour that measures it in a run in full precision."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from irrun.debug.low_precision.errors import parts
from irrun.debug.low_precision.families import is_quantized
from irrun.debug.low_precision.formats import Format, is_float
from irrun.debug.low_precision.simulation import Arrays, Run, Style
from irrun.debug.low_precision.units import Unit

__all__ = ["Loss", "Losses", "Ranges"]


@dataclass
class Loss:
    """What a layer loses by itself, in all samples and iterations so far.

    The layer reads the true values of other layers; its constants and the inputs of the model are rounded, and so are
    its sums and its outputs.
    """

    overflows: int = 0
    """The elements of its outputs that are finite in full precision and not in the lower one."""
    underflows: int = 0
    """The elements that become 0."""
    clamped: int = 0
    """The elements of its constants that are beyond the range, and become the greatest value of the precision."""
    size: int = 0
    """The elements of its outputs."""
    magnitude: float = 0.0
    """The greatest finite magnitude of an element."""
    place: tuple[int, tuple[int, ...]] | None = None
    """The sample, and the index in an output, of the greatest element that overflows; None if none does."""
    passes: bool = True
    """Whether it rounds nothing that its producers have rounded."""
    reads_beyond: bool = False
    """Whether another layer gives it values beyond the range."""
    changed: bool = False
    """Whether any element of its outputs changes."""
    noise: float = 0.0
    """The sum of the squared errors, over elements that stay finite."""
    common: float = 0.0
    """The part of ``noise`` that is the same at all places of a channel: see ``errors.parts``."""
    signal: float = 0.0
    """The sum of their squares."""

    @property
    def error(self) -> float:
        """The root mean square of the errors divided by that of the values."""
        return math.sqrt(self.noise / self.signal) if self.signal else math.inf if self.noise else 0.0

    @property
    def snr(self) -> float | None:
        """The ratio of signal and noise in decibels; None without noise or without a signal."""
        return -20 * math.log10(self.error) if 0 < self.error < math.inf else None


@dataclass
class Losses:
    """The behaviour that runs in full precision and measures what each layer loses. ``sample`` is that of the run."""

    style: Style
    sample: int = 0
    by_name: dict[str, Loss] = field(default_factory=dict)

    def __call__(self, unit: Unit, inputs: Arrays, run: Run) -> tuple[np.ndarray, ...]:
        true = run(*inputs)
        if not self.style.lowers(unit):
            return true
        self.style.observe(unit, inputs)
        if not any(is_float(array) for array in (*true, *(a for a in inputs if a is not None))):
            return true
        loss = self.by_name.setdefault(unit.name, Loss())
        self._add_inputs(loss, unit, inputs)
        try:
            passes = self.style.passes(unit, inputs, run)
            low = self.style.isolated(unit, inputs, run, stores=not passes)
        except Exception:  # the kernel refuses the lowered values: so will a run in which the layer is lowered
            loss.changed, loss.passes = True, False
            return true
        loss.passes &= passes
        for first, second in zip(true[: len(unit.layer.outputs)], low):
            self._add(loss, first, second, unit.is_image)
        return true

    def _add_inputs(self, loss: Loss, unit: Unit, inputs: Arrays) -> None:
        limit, clamped = self.style.format.limit, 0
        for array, own, constant in zip(inputs, unit.own, unit.constant):
            if array is None or not is_float(array) or (own and not constant):
                continue
            beyond = _beyond(array, self.style.format, limit)
            clamped += beyond if constant else 0
            loss.reads_beyond |= bool(beyond) and not constant
        loss.clamped = max(loss.clamped, clamped)

    def _add(self, loss: Loss, true: np.ndarray, low: np.ndarray, is_image: bool) -> None:
        loss.size += true.size
        if true.dtype == object or true.shape != low.shape:
            loss.changed |= true.shape != low.shape
            return
        loss.changed |= not np.array_equal(true, low, equal_nan=is_float(true))
        first, second = true.astype(np.float64), low.astype(np.float64)
        finite = np.isfinite(first)
        over = finite & ~np.isfinite(second)
        magnitude = np.where(finite, np.abs(first), 0)
        greatest = float(magnitude.max(initial=0))
        if over.any():
            loss.overflows += int(np.count_nonzero(over))
            if loss.place is None or greatest > loss.magnitude:
                index = np.unravel_index(int(np.argmax(np.where(over, magnitude, -1))), true.shape)
                loss.place = self.sample, tuple(int(i) for i in index)
        loss.magnitude = max(loss.magnitude, greatest)
        both = finite & ~over
        loss.underflows += int(np.count_nonzero(both & (first != 0) & (second == 0)))
        error = np.where(both, second - first, 0)
        common, rest = parts(error, is_image)
        loss.common += common
        loss.noise += common + rest
        loss.signal += float(np.square(magnitude, where=both, out=np.zeros_like(magnitude)).sum())


def _beyond(array: np.ndarray, format: Format, limit: float) -> int:
    """Return how many finite elements of an array are beyond the range of a precision."""
    if not array.size or float(np.abs(array).max()) <= limit:
        return 0
    candidates = array[np.isfinite(array) & (np.abs(array) > limit)]
    return int(np.count_nonzero(~np.isfinite(format.round(candidates))))


@dataclass
class Ranges:
    """The behaviour that runs in full precision and records the range of each input that int8 quantizes."""

    by_input: dict[tuple[str, int], tuple[float, float]] = field(default_factory=dict)

    def __call__(self, unit: Unit, inputs: Arrays, run: Run) -> tuple[np.ndarray, ...]:
        for position, array in enumerate(inputs[:2]):
            if array is None or not is_quantized(unit.op) or unit.constant[position] or not is_float(array):
                continue
            finite = array[np.isfinite(array)]
            if finite.size:
                low, high = self.by_input.get((unit.name, position), (math.inf, -math.inf))
                self.by_input[unit.name, position] = min(low, float(finite.min())), max(high, float(finite.max()))
        return run(*inputs)
