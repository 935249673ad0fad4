"""What the sums inside an operation may err in f32, predicted from the values that the operation adds up.

A normalisation divides by a root of a sum: inputs that are all larger leave its outputs as they are, and inputs that
move at random move the sum by little. So no moves of inputs show what the roundings of the sum do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from typing import Any, Final

import numpy as np

from irrun.debug.low_precision.formats import is_float
from irrun.debug.low_precision.simulation import Arrays, Run
from irrun.opdef import Op

__all__ = ["ONE_PASS", "rounded_sums", "sums_in_one_pass"]

ONE_PASS: Final = "f32 with a variance in one pass"
"""The name of the form of a layer that computes a variance as the mean of squares minus the square of the mean."""
_UNIT: Final = 2.0**-24
_ROUNDING: Final = 0.42 * _UNIT
"""What an addition errs, relative to its result, in the root mean square."""
_FACTOR: Final = 5.0
"""The most that the roundings of a sum may err together, in units of their root mean square."""
_ROUNDINGS: Final = 4.0
"""The roundings of an element of a normalisation in units of roundoff: root, quotient and two products."""
_ORDER: Final = 3.0
"""The same for products, whose partial sums are not known, beside a random order: the greatest terms may come first and
cancel last, and both sides err."""
_LUCK: Final = 2.0
"""The most that a sum may err, in units of the greatest error of the orders that were tried: equal terms are rounded in
one direction."""
_LANES: Final = (1, 8, 16)
"""The partial sums that these orders keep: a chain of additions, and the lanes of vectors."""
_PART: Final = 1 << 22
"""About the most terms that are tried at once."""

Errors = Callable[[Any, Arrays, Run, np.ndarray], np.ndarray]
"""Takes an operation, its inputs, its kernel and its output. Returns how far each element may move."""


def rounded_sums(op: Op, inputs: Arrays, run: Run, true: np.ndarray) -> np.ndarray | None:
    """Return how far each element of an output may move with the roundings of the sums, None for other operations."""
    errors = _ERRORS.get(op.type)
    if errors is None or inputs[0] is None or not inputs[0].size:
        return None
    return np.nan_to_num(errors(op, inputs, run, true), nan=0.0)


def sums_in_one_pass(op: Op, inputs: Arrays, true: np.ndarray) -> np.ndarray | None:
    """Return the same for a variance in one pass, which cancels beside a large mean; None for other operations."""
    if op.type not in ("GroupNormalization", "MVN") or not getattr(op, "normalize_variance", True):
        return None
    return np.nan_to_num(_normalised(op, inputs, true, one_pass=True), nan=0.0)


def _chain(terms: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    """Return what a sum of float64 terms in f32 may err. The ``axes`` stay with length 1.

    Partial sums grow in the order of the terms, or as in a random order: the worse of both counts, and what equal
    terms err in the orders that are tried.
    """
    count = prod(terms.shape[axis] for axis in axes)
    kept = [1 if axis in axes else length for axis, length in enumerate(terms.shape)]
    rows = np.moveaxis(terms, axes, range(-len(axes), 0)).reshape(-1, count)
    return np.concatenate([_of_rows(part) for part in np.array_split(rows, 1 + rows.size // _PART)]).reshape(kept)


def _of_rows(rows: np.ndarray) -> np.ndarray:
    """Return what the sum of each row may err."""
    count = rows.shape[1]
    total, squares = rows.sum(1), np.square(rows).sum(1)
    partial = np.square(np.cumsum(rows, 1)).sum(1)
    error = _of_chain(np.maximum(partial, _partial(total, squares, count)))
    narrow = rows.astype(np.float32)
    whole = narrow.sum(1, dtype=np.float64)
    for lanes in _LANES:
        held = count // lanes * lanes
        sums = np.cumsum(narrow[:, :held].reshape(len(rows), -1, lanes), 1)[:, -1:].reshape(len(rows), -1)
        tried = np.cumsum(np.concatenate([sums, narrow[:, held:]], 1), 1)[:, -1]
        error = np.maximum(error, _LUCK * np.abs(tried - whole))
    return error


def _partial(total: np.ndarray, squares: np.ndarray | float, count: float | np.ndarray) -> np.ndarray:
    """Return the sum of the squares of the partial sums of ``count`` terms, in the mean of all orders."""
    spread = np.maximum(squares - np.square(total) / np.maximum(count, 1), 0)
    return count * (np.square(total) / 3 + spread / 6)


def _of_chain(partial: np.ndarray) -> np.ndarray:
    return _FACTOR * _ROUNDING * np.sqrt(partial)


def _widened(array: np.ndarray | None) -> np.ndarray:
    assert array is not None
    return array.astype(np.float64)


def _along(axes: np.ndarray | None, rank: int) -> tuple[int, ...]:
    assert axes is not None
    return tuple(sorted({int(axis) % max(rank, 1) for axis in axes.flat}))


def _growth(square: np.ndarray, error: np.ndarray) -> np.ndarray:
    """Return by how much the reciprocal of the root of ``square`` may grow, relative to itself."""
    return np.sqrt(square / np.maximum(square - error, np.finfo(np.float32).tiny)) - 1


# ---------------------------------------------------------------------------------------------
# the operations


def _normalised(op: Any, inputs: Arrays, true: np.ndarray, *, one_pass: bool = False) -> np.ndarray:
    """MVN and GroupNormalization: the mean moves all elements of a group, and the variance scales them."""
    x, scale, inside = _widened(inputs[0]), np.ones(1), True
    if op.type == "GroupNormalization":
        epsilon, rank = op.epsilon, x.ndim
        scale = np.abs(_widened(inputs[1])).reshape(-1, *(1,) * (rank - 2))
        x = x.reshape(len(x), op.num_groups, -1)
        axes: tuple[int, ...] = (2,)
    else:
        epsilon, inside = op.eps, getattr(op, "eps_mode", "inside_sqrt") == "inside_sqrt"
        axes = _along(inputs[1], x.ndim) if len(inputs) > 1 else op.along(x.ndim)
    count = prod(x.shape[axis] for axis in axes)
    mean = x.mean(axes, keepdims=True)
    centred, of_mean = x - mean, _chain(x, axes) / count
    if not getattr(op, "normalize_variance", True):
        return np.broadcast_to(of_mean, true.shape)
    variance = np.square(centred).mean(axes, keepdims=True)
    if one_pass:
        of_squares = _chain(np.square(x), axes) / count
        of_variance = of_squares + 2 * np.abs(mean) * of_mean + 2 * _UNIT * (variance + 2 * np.square(mean))
    else:
        of_variance = _chain(np.square(centred), axes) / count + np.square(of_mean)
    margin = epsilon if inside else 0.0
    growth = _growth(variance + margin, of_variance)
    deviation = np.sqrt(variance + margin) + (0.0 if inside else epsilon)
    of_element = _UNIT * (_ROUNDINGS * np.abs(centred) + np.abs(x) + 2 * np.abs(mean))
    moved = np.abs(centred) * growth + of_mean * (1 + growth) + of_element
    return (moved / deviation).reshape(true.shape) * scale


def _scaled(op: Any, inputs: Arrays, run: Run, true: np.ndarray) -> np.ndarray:
    """RMS, NormalizeL2 and GRN: a sum of squares scales all elements."""
    x = _widened(inputs[0])
    axes = {"RMS": (x.ndim - 1,), "GRN": (1,)}.get(op.type) or _along(inputs[1], x.ndim)
    if not axes:
        return np.zeros(true.shape)
    count = prod(x.shape[axis] for axis in axes) if op.type == "RMS" else 1
    square, error = (each / count for each in (np.square(x).sum(axes, keepdims=True), _chain(np.square(x), axes)))
    margin = getattr(op, {"RMS": "epsilon", "GRN": "bias"}.get(op.type, "eps"))
    is_least = getattr(op, "eps_mode", "add") == "max"
    growth = _growth(np.maximum(square, margin) if is_least else square + margin, error)
    return np.abs(true) * (growth + _ROUNDINGS * _UNIT)


def _soft(op: Any, inputs: Arrays, run: Run, true: np.ndarray) -> np.ndarray:
    """SoftMax and LogSoftmax: the sum of exponentials."""
    x = np.atleast_1d(_widened(inputs[0]))
    powers = np.exp(x - x.max(op.axis, keepdims=True))
    error = _chain(powers, (op.axis % x.ndim,)) / powers.sum(op.axis, keepdims=True)
    size = np.ones(x.shape) if op.type == "LogSoftmax" else np.abs(true.reshape(x.shape))
    return (size * error).reshape(true.shape)


def _attended(op: Any, inputs: Arrays, run: Run, true: np.ndarray) -> np.ndarray:
    """ScaledDotProductAttention adds up the weights, and the weighted values."""
    size = np.maximum(np.abs(true), np.sqrt(np.square(_widened(true)).mean()))
    return 2 * _of_chain(_partial(size, 0.0, _widened(inputs[1]).shape[-2]))


def _reduced(op: Any, inputs: Arrays, run: Run, true: np.ndarray) -> np.ndarray:
    """ReduceSum, ReduceMean, ReduceL1, ReduceL2 and ReduceProd."""
    x = np.atleast_1d(_widened(inputs[0]))
    axes = _along(inputs[1], x.ndim)
    count = prod(x.shape[axis] for axis in axes)
    if not axes:
        return np.zeros(true.shape)
    if op.type == "ReduceProd":
        return _of_chain(count * np.square(_widened(true)))
    terms = np.abs(x) if op.type == "ReduceL1" else np.square(x) if op.type == "ReduceL2" else x
    error = _chain(terms, axes).reshape(true.shape) / (count if op.type == "ReduceMean" else 1)
    return error / np.maximum(2 * np.abs(true), np.finfo(np.float32).tiny) if op.type == "ReduceL2" else error


def _averaged(op: Any, inputs: Arrays, run: Run, true: np.ndarray) -> np.ndarray:
    """AvgPool, AdaptiveAvgPool: the mean of a window or an image. EmbeddingBag: that of all indices at most."""
    x = _widened(inputs[0])
    if op.type.startswith("EmbeddingBag"):
        count: float = _widened(inputs[1]).shape[-1]
    elif x.ndim > 2 and true.size == prod(x.shape[:2]):
        return (_chain(x, tuple(range(2, x.ndim))) / prod(x.shape[2:])).reshape(true.shape)
    else:
        count = prod(op.kernel) if op.type == "AvgPool" else x.size / true.size
    squares = run(np.square(x).astype(true.dtype), *inputs[1:])[0]
    return _of_chain(_partial(_widened(true) * count, squares * count, count)) / count


def _running(op: Any, inputs: Arrays, run: Run, true: np.ndarray) -> np.ndarray:
    """CumSum: an element has the roundings of all elements before it."""
    exact = op.run(_widened(inputs[0]), *inputs[1:])
    return np.maximum(_of_chain(op.run(np.square(exact), *inputs[1:])), _LUCK * np.abs(true - exact))


def _linear(op: Any, inputs: Arrays, run: Run, true: np.ndarray) -> np.ndarray:
    """Sums of products. Inputs of ones give the number of terms, and squares of the inputs give their spread."""
    if (reduction := getattr(op, "reduction", "sum")) != "sum":
        is_bag = reduction == "mean" and op.type.startswith("EmbeddingBag")
        return _averaged(op, inputs, run, true) if is_bag else np.zeros(true.shape)
    count, squares = (
        run(*[a if a is None or not is_float(a) else of(a) for a in inputs])[0] for of in (np.ones_like, np.square)
    )
    return _ORDER * _of_chain(squares + _partial(_widened(true), squares, _widened(count)))


def _transformed(op: Any, inputs: Arrays, run: Run, true: np.ndarray) -> np.ndarray:
    """Fourier transforms: the squares of the terms of a sum add up to the mean square of the output."""
    x, square = _widened(inputs[0]), np.square(_widened(true))
    if op.type.endswith("STFT"):
        count, mean = int(np.max(_widened(inputs[2]))), square.mean(keepdims=True)
    else:
        axes = _along(inputs[1], x.ndim - op.complex_in)
        lengths = max(x.shape, true.shape, key=prod)
        count = prod(lengths[axis] for axis in axes)
        mean = square.mean((*axes, -1) if op.complex_out else axes, keepdims=True)
    return _ORDER * _of_chain(_partial(_widened(true), mean, 2 * count))


_FAMILIES: Final[Mapping[Errors, str]] = {
    lambda op, inputs, run, true: _normalised(op, inputs, true): "GroupNormalization MVN",
    _scaled: "GRN NormalizeL2 RMS",
    _soft: "LogSoftmax SoftMax",
    _attended: "ScaledDotProductAttention",
    _reduced: "ReduceL1 ReduceL2 ReduceMean ReduceProd ReduceSum",
    _averaged: "AdaptiveAvgPool AvgPool",
    _running: "CumSum",
    _linear: """Col2Im Convolution ConvolutionBackpropData Einsum EmbeddingBagOffsets EmbeddingBagOffsetsSum
    EmbeddingBagPacked EmbeddingBagPackedSum EmbeddingSegmentsSum GroupConvolution GroupConvolutionBackpropData
    GroupedMatMul MatMul ScatterElementsUpdate ScatterNDUpdate""",
    _transformed: "DFT IDFT IRDFT ISTFT RDFT STFT",
}
_ERRORS: Final = {type: errors for errors, types in _FAMILIES.items() for type in types.split()}
"""The operations that add up. The sums of recurrent layers grow as the moves of their inputs do; those of LRN,
Interpolate, GridSample and the poolings of regions have few terms."""
