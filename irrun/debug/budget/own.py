"""The own error of a layer: what it computes from the inputs that it has read, beside what it should have computed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Final

import ml_dtypes
import numpy as np

from irrun.debug.budget.noise import moved, pooled
from irrun.debug.budget.precisions import InEffect, cache_step, decompressed_in_f16, reads_compressed
from irrun.debug.budget.recurrent import rounded_runs
from irrun.debug.budget.saturation import SATURATING
from irrun.debug.budget.sums import ONE_PASS, rounded_sums, sums_in_one_pass
from irrun.debug.low_precision.families import is_convolution, taps
from irrun.debug.low_precision.formats import FORMATS, Format, is_float
from irrun.debug.low_precision.simulation import Arrays, Run
from irrun.debug.low_precision.units import Unit
from irrun.debug.metrics import Budget
from irrun.planning.groups import in_groups

__all__ = ["Reading", "compared", "last_place", "own_error", "rms"]

_F32: Final = 2.0**-22
"""The relative size of the moves that stand for the rounding of float32: large enough to survive it."""
_FLIPPING: Final = 2.0**-18
"""The same for a hidden state that is rounded between elements: so large that some of these roundings flip."""
_FACTOR: Final = 4.0
"""The most that an error may be, in units of the noise: sums are added in another order."""
_STEPS: Final = 6.0
"""The same for inputs that are quantized: the steps of many elements add up as in a normal distribution."""
_LAST_PLACES: Final = 4.0
"""The units in the last place of a value that a function in f32 may be wrong."""
_GROWTH: Final = 1 / 6
"""What a sum of n terms errs more than its terms do, by the square root of n, where the terms move at random. The worst
order is a chain of additions: 1/19 in the root mean square, and 6.6 times as much in one element of thousands."""
_TOGETHER: Final = 1 / 24
"""The same for recurrent layers, where all terms move in one direction: 1/31 for a chain whose terms have one sign, and
4.1 times as much in one element of thousands."""
_WINOGRAD: Final = 5.0
"""What a convolution by Winograd's method errs more than a plain sum: its transforms add and subtract neighbours, and
spread their errors over a channel."""
_APPROXIMATE: Final = 2.0**-18
"""The relative error of functions that engines approximate by polynomials."""
_FLIPS: Final = 48
"""The most random moves that look for a flip."""
_NEGLIGIBLE: Final = 2.0**-32
"""The share of the root mean square of a value below which no error counts."""
_RECURRENT: Final = frozenset(
    f"{cell}{kind}" for cell in ("AUGRU", "GRU", "LSTM", "RNN") for kind in ("Cell", "Sequence")
)
_FUNCTIONS: Final = _RECURRENT.union(
    """Acos Acosh Asin Asinh Atan Atanh Cos Cosh Elu Erf Exp Gelu HSigmoid HSwish Log LogSoftmax Mish Power
    ScaledDotProductAttention Selu Sigmoid Sin Sinh SoftMax SoftPlus SoftSign Swish Tan Tanh""".split()  # noqa: SIM905
)
"""Operations that need such functions."""
_COMPOSITE: Final = _RECURRENT.union(
    """DeformableConvolution FakeQuantize GridSample Interpolate NormalizeL2 PSROIPooling RMS ROIAlign ROIPooling
    ScaledDotProductAttention""".split()  # noqa: SIM905
)
"""Operations whose own intermediate values an engine may round to its precision."""
_COPIES: Final = 32.0
"""What a variable may differ by from the value that it was assigned, in roundoffs relative to the root mean square. An
engine may show both in different copies of the model, each with roundings of all the layers before."""
_SUMS: Final = ("Add", "Subtract")
"""Operations that engines fuse with those before them, as in rotary embeddings: the products that an engine shows are
rounded to its precision, and those that it adds are not."""


@dataclass(frozen=True)
class Reading:
    """What a layer has read: its inputs, and the relative roundoff of each, 0 for one that is exact.

    ``lost`` is what these inputs lose in sums that saturate, if the processor has such.
    """

    inputs: Arrays
    roundoff: Sequence[float]
    lost: np.ndarray | None = None


def own_error(
    unit: Unit, reading: Reading, run: Run, port: int, true: np.ndarray, observed: np.ndarray, side: InEffect
) -> Budget:
    """Return the own error of an output that was ``observed``, beside what it should be on the same inputs: ``true``.

    The layer may have computed in f32, or as the ``side`` may do: with inputs and constants in its format, beside
    compressed weights with inputs that are quantized in groups, or with sums of products that saturate. A variable may
    hold keys or values in the type of the cache. The sharpest form that explains the value counts; without one, the
    form that comes nearest.
    """
    if true.shape != observed.shape:
        return Budget(math.inf, math.inf, 0.0, None, "")
    if not is_float(true) or not true.size or np.array_equal(true, observed, equal_nan=is_float(true)):
        return _exact(unit, reading, run, port, true, observed)
    best: Budget | None = None
    with np.errstate(all="ignore"):
        plain = compared("f32", true, true, observed, last_place(true, _bits(observed), _LAST_PLACES))
        if plain.is_explained:
            return plain
        reading, true = _nearer(unit, reading, run, port, true, observed)
        noise = _noise(unit, reading, run, port, true)
        for form, value, allowed in _forms(unit, reading, run, port, true, noise, observed, side):
            own = compared(form, value, true, observed, allowed)
            if best is None or own.excess < best.excess:
                best = own
            if best.is_explained:
                break
    assert best is not None
    return best


def _nearer(
    unit: Unit, reading: Reading, run: Run, port: int, true: np.ndarray, observed: np.ndarray
) -> tuple[Reading, np.ndarray]:
    """Return what a layer has read and should have computed: weights in f32, or as the file decompresses them in f16.

    That which is nearer to what was observed counts.
    """
    positions = decompressed_in_f16(unit)
    if not positions:
        return reading, true
    inputs = [
        FORMATS["f16"].round(array) if array is not None and at in positions else array
        for at, array in enumerate(reading.inputs)
    ]
    other = run(*inputs)[port]
    distances = [float(np.square(observed.astype(np.float64) - value).sum()) for value in (true, other)]
    return (replace(reading, inputs=inputs), other) if distances[1] < distances[0] else (reading, true)


def _forms(
    unit: Unit, reading: Reading, run: Run, port: int, true: np.ndarray, noise: np.ndarray, observed: np.ndarray,
    side: InEffect,
) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:  # fmt: skip
    """Yield the forms in which a layer may compute: a name, the value, and what is allowed around it."""
    format, group = side.of_layer(unit.name), side.group
    stored = noise + last_place(true, _bits(observed), 1.0)
    if unit.op.type == "ReadValue":
        roundoff = _F32 if format is None else 2.0 ** -(_bits_of(format) + 1)
        stored = stored + _COPIES * roundoff * rms(true)
        yield ("f32" if format is None else format.name), true, stored
        if side.steps:
            yield f"a cache in {side.cache}", true, stored + _FACTOR * cache_step(true, side.steps)
        return
    yield "f32", true, stored
    if reading.inputs[1:] and reading.inputs[1] is not None and taps(unit.op, reading.inputs[1]) > 1:
        around = np.maximum(noise, pooled(np.square(noise), True, spreads=True))
        yield "f32 by Winograd's method", true, _WINOGRAD * around
    if (cancelled := sums_in_one_pass(unit.op, reading.inputs, true)) is not None:
        yield ONE_PASS, true, stored + cancelled
    if reading.lost is not None:
        yield SATURATING, true + reading.lost, stored
    bits = _bits(observed) if format is None else _bits_of(format)
    data = reading.inputs[0]
    if group and data is not None and reads_compressed(unit):
        moved_by = run(in_groups(data, group), *reading.inputs[1:])[port] - true
        spread = pooled(np.square(moved_by), unit.is_image)
        yield side.grouped, true, stored + _STEPS * spread + last_place(true, bits, 1.0)
    if format is None or format.dtype is None:
        return
    on_grid = np.array_equal(format.round(observed), observed, equal_nan=True)
    for arrays, rounds in rounded_runs(unit.op, reading.inputs, format) if unit.op.rounds_inside else ():
        low = rounds(*arrays)[port]
        for least in (_F32, _FLIPPING):
            own = Reading(arrays, [max(roundoff, least) for roundoff in reading.roundoff])
            around = _noise(unit, own, rounds, port, low)
            yield format.name, low, around + last_place(low, *((bits, 0.51) if on_grid else (_bits(observed), 1.0)))
    if unit.op.rounds_inside and format is FORMATS["bf16"]:
        return
    for values, constants in ((True, True), (True, False), (False, True), (False, False)):
        inputs = [
            format.round(array, saturate=constant)
            if array is not None and (constants if constant else values)
            else array
            for array, constant in zip(reading.inputs, unit.constant)
        ]
        low = run(*inputs)[port]
        yield format.name, low, stored + (last_place(low, bits, 0.51) if on_grid else 0)
    is_sum = unit.op.type in _SUMS and not any(unit.constant)
    if is_sum or unit.op.type in _COMPOSITE or any(roundoff > _F32 for roundoff in reading.roundoff):
        unit_of = [2.0 ** -(bits + 1)] * len(reading.inputs)
        wide = _spread(unit, Reading(reading.inputs, unit_of), run, port, true)
        low = run(*[None if array is None else format.round(array) for array in reading.inputs])[port]
        factor = _FACTOR / 2 if is_sum else _FACTOR
        yield format.name, true, stored + np.abs(low - true) + factor * wide + last_place(true, bits, 1.0)


def compared(form: str, value: np.ndarray, true: np.ndarray, observed: np.ndarray, allowed: np.ndarray) -> Budget:
    """Return the error of an observed value beside what is allowed around a value."""
    distance = np.abs(observed.astype(np.float64) - value)
    same = (observed == value) | (np.isnan(observed) & np.isnan(value))
    distance = np.where(same, 0, np.where(np.isfinite(distance), distance, np.inf))
    excess = np.where(distance == 0, 0, distance / np.maximum(allowed, np.finfo(np.float32).tiny))
    excess = np.where(np.isnan(excess), 0, excess)
    at = int(np.argmax(excess))
    scale = rms(true) or 1.0
    index = tuple(int(i) for i in np.unravel_index(at, true.shape))
    own = np.abs(np.where(np.isfinite(true), observed.astype(np.float64) - true, 0))
    most = np.where(np.isfinite(true), np.abs(value.astype(np.float64) - true) + allowed, 0)
    outside = int(np.count_nonzero(excess > 1))
    return Budget(float(excess.flat[at]), float(own.max()) / scale, float(most.max()) / scale, index, form, outside)


def _exact(unit: Unit, reading: Reading, run: Run, port: int, true: np.ndarray, observed: np.ndarray) -> Budget:
    """Return the own error of an output without numbers that round: it flips only where moved inputs flip.

    If the inputs are exact, a condition never flips. Of two equal elements either may be the greatest: then one of the
    random moves gives what was observed.
    """
    differs = np.zeros(true.shape, bool) if is_float(true) else np.asarray(true != observed)
    if not differs.any():
        return Budget(0.0, 0.0, 0.0, None, "f32")
    roundoff, is_exact = [max(amount, _F32) for amount in reading.roundoff], not any(reading.roundoff)
    is_fixed = is_exact and true.dtype == bool
    for _, outputs in () if is_fixed else moved(unit.op, reading.inputs, roundoff, run, _FLIPS):
        if outputs[port].shape == true.shape:
            differs &= np.asarray(outputs[port] != observed if is_exact else outputs[port] == true)
        if not differs.any():
            break
    index = tuple(int(i) for i in np.unravel_index(int(np.argmax(differs)), true.shape))
    outside = int(np.count_nonzero(differs))
    return Budget(math.inf, math.inf, 0.0, index, "", outside) if outside else Budget(1.0, 0.0, 0.0, None, "f32")


def _noise(unit: Unit, reading: Reading, run: Run, port: int, true: np.ndarray) -> np.ndarray:
    """Return what an element of a layer in f32 may be wrong: the order of its sums, and its last places."""
    sums = rounded_sums(unit.op, reading.inputs, run, true)
    terms = _terms(unit, reading.inputs, true) if sums is None else 0.0
    least = _F32 if sums is None or unit.op.type in _FUNCTIONS else 0.0
    roundoff = [max(amount, least) for amount in reading.roundoff]
    noise = last_place(true, 23, _LAST_PLACES) + _NEGLIGIBLE * rms(true)
    if any(roundoff):
        noise = noise + _FACTOR * _spread(unit, Reading(reading.inputs, roundoff), run, port, true, terms)
    if sums is not None:
        noise = noise + sums
    if unit.op.type == "FakeQuantize":
        noise = noise + _F32 * _LAST_PLACES * max(
            float(np.abs(end).max()) for end in reading.inputs[1:] if end is not None
        )
    if unit.op.type in _FUNCTIONS:
        noise = noise + _APPROXIMATE * np.maximum(np.abs(true), rms(true))
    return noise


def _spread(unit: Unit, reading: Reading, run: Run, port: int, true: np.ndarray, terms: float = 0.0) -> np.ndarray:
    """Return how far each element moves with the inputs: the greatest move, or that of its channel and place.

    ``terms`` is the number of terms in a sum whose own roundings are added.
    """
    greatest = np.zeros(true.shape)
    squares: dict[bool, list[np.ndarray]] = {True: [], False: []}
    for at_random, outputs in moved(unit.op, reading.inputs, reading.roundoff, run):
        if outputs[port].shape != true.shape:
            continue
        growth = _TOGETHER if unit.op.type in _RECURRENT and not at_random else _GROWTH
        distance = np.abs(outputs[port].astype(np.float64) - true) * (1 + growth * math.sqrt(terms))
        distance = np.where(np.isfinite(distance), distance, 0)
        greatest = np.maximum(greatest, distance)
        squares[at_random].append(np.square(distance))
    for kind in filter(None, squares.values()):
        square = np.mean(kind, axis=0)
        greatest = np.maximum(greatest, pooled(square, unit.is_image or true.ndim > 3, spreads=is_convolution(unit.op)))
    return greatest


def _terms(unit: Unit, inputs: Arrays, true: np.ndarray) -> float:
    """Return about how many terms a sum of the layer has, where no better prediction is known."""
    given = [array for array in inputs if array is not None]
    if unit.op.type == "DeformableConvolution":
        return prod(given[2].shape[1:])
    if unit.op.type in _RECURRENT:
        return max(array.shape[-1] for array in given[:2])  # the data, and the hidden state
    return max(1.0, max((array.size for array in given), default=1) / max(true.size, 1))


def _bits(array: np.ndarray) -> int:
    """Return the bits behind the point of the type in which a value was handed over."""
    return {np.dtype(np.float16): 10, np.dtype(ml_dtypes.bfloat16): 7}.get(array.dtype, 23)


def _bits_of(format: Format) -> int:
    return 10 if format is FORMATS["f16"] else 7


def last_place(array: np.ndarray, bits: int, places: float) -> np.ndarray:
    """Return some units in the last place of a value that has so many bits behind the point."""
    return np.ldexp(places, np.frexp(np.where(np.isfinite(array), array, 0))[1] - 1 - bits)


def rms(array: np.ndarray) -> float:
    finite = np.where(np.isfinite(array), array, 0).astype(np.float64)
    return float(np.sqrt(np.mean(np.square(finite)))) if array.size else 0.0
