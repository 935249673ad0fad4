"""Resampling along one axis: coordinates, the taps of each filter, and weighted sums of these taps.

Each output element is a weighted sum of a few input elements, its taps.
"""

import math
from collections.abc import Callable
from typing import Final

import numpy as np

from irrun.kernels.matmul import matmul

__all__ = [
    "Pass", "Strip", "Taps", "coordinates", "cubic_taps", "cubic_weights", "linear_taps", "multiply_strips", "nearest",
    "pillow_bicubic_taps", "pillow_bilinear_taps", "round_half_away", "scaled_size", "strips", "triangle_taps",
    "weighted_sums",
]  # fmt: skip

Taps = tuple[np.ndarray, np.ndarray]
"""The taps along an axis: two arrays, of indices and of weights, with a row for each output element."""

Strip = tuple[slice, slice, np.ndarray]
"""A run of output elements along an axis, the run of input elements that they read, and the matrix of weights between
them, with a row for each output element and a column for each input element."""

Pass = tuple[int, int, int | np.ndarray | list[Strip]]
"""How to resize one axis: the axis, its size in the output, and one of three: how often each input element is repeated
(last axis only), the index of the input element for each output element, or strips."""

_STRIP_ELEMENTS: Final = 32
"""The number of output elements of a strip if the axis grows, or of its input elements if the axis shrinks. Shorter
strips hold fewer zero weights, but their matrix products are slower."""


def round_half_away(x: np.ndarray) -> np.ndarray:
    """Round to the nearest integers, halves away from 0."""
    whole = np.trunc(x)
    return whole + np.where(np.abs(x - whole) >= 0.5, np.sign(x), 0)


# ---------------------------------------------------------------------------------------------
# sizes and coordinates


def scaled_size(n: int, scale: np.float32) -> int:
    """Return ``floor(n * scale)``. As OpenVINO does, this adds 1e-6 to the scale and computes in f32."""
    return int(np.floor(np.float32(n) * (scale + np.float32(1e-6))))


def coordinates(mode: str, size: int, scale: np.float32, count: int) -> np.ndarray:
    """Return the coordinates of ``size`` output elements on an input axis of ``count``; in f32, as in OpenVINO.

    ``mode`` is a coordinate_transformation_mode of Interpolate.
    """
    x = np.arange(size, dtype=np.float32)
    half = np.float32(0.5)
    if mode == "asymmetric":
        return x / scale
    if mode == "tf_half_pixel_for_nn":
        return (x + half) / scale
    if mode == "align_corners":
        return x * np.float32(count - 1) / np.float32(max(size - 1, 1))
    if mode == "pytorch_half_pixel" and size == 1:
        return x
    return (x + half) / scale - half


def nearest(x: np.ndarray, count: int, mode: str, shrinks: bool | np.bool_) -> np.ndarray:
    """Return the index of the element of an axis of ``count`` that is nearest to each coordinate.

    ``mode`` is a nearest_mode of Interpolate. Mode simple rounds up if the axis ``shrinks``, else down.
    """
    if mode == "round_prefer_floor":
        index = np.ceil(x - np.float32(0.5))
    elif mode == "round_prefer_ceil":
        index = round_half_away(x)
    elif mode == "ceil" or (mode == "simple" and shrinks):
        index = np.ceil(x)
    else:
        index = np.floor(x)
    return np.clip(index.astype(np.int64), 0, count - 1)


# ---------------------------------------------------------------------------------------------
# taps: ``x`` holds the coordinates of the output elements on an input axis of ``count`` elements


def linear_taps(x: np.ndarray, count: int) -> Taps:
    """Return the two neighbours of each coordinate. Coordinates beyond the ends are clipped."""
    x = np.clip(x, 0, np.float32(count - 1))
    low = x.astype(np.int64)
    part = x - low
    return np.stack([low, np.minimum(low + 1, count - 1)], axis=-1), np.stack([1 - part, part], axis=-1)


def triangle_taps(x: np.ndarray, count: int, a: np.float32) -> Taps:
    """Return the taps of a triangular filter around each coordinate. It falls to 0 at a distance of 1 / ``a``.

    Taps outside the input have the weight 0.
    """
    reach = int(np.ceil(2 / a))
    near = round_half_away(x).astype(np.int64)[:, None] + np.arange(-reach, reach + 1)
    weights = np.maximum(0, 1 - np.abs(a * (x[:, None] - near.astype(np.float32))))
    weights = np.where((near >= 0) & (near < count), weights, 0)
    return np.clip(near, 0, count - 1), _normalised(weights)


def cubic_taps(x: np.ndarray, count: int, a: float) -> Taps:
    """Return the four neighbours of each coordinate, weighted by a cubic with the coefficient ``a``."""
    low = np.floor(x)
    near = low.astype(np.int64)[:, None] + np.arange(-1, 3)
    return np.clip(near, 0, count - 1), cubic_weights(x - low, a)


def cubic_weights(part: np.ndarray, a: float) -> np.ndarray:
    """Return the weights of the four neighbours of each point, along a new last axis.

    A point lies a ``part`` of a step beyond its second neighbour. ``a`` is the coefficient of the cubic.
    """
    near, far = part, 1 - part
    outer = [((a * (t + 1) - 5 * a) * (t + 1) + 8 * a) * (t + 1) - 4 * a for t in (near, far)]
    inner = [((a + 2) * t - (a + 3)) * t * t + 1 for t in (near, far)]
    return np.stack([outer[0], inner[0], inner[1], outer[1]], axis=-1)


def pillow_bilinear_taps(size: int, count: int) -> Taps:
    """Return the taps of Pillow's bilinear resampling of ``count`` input elements to ``size`` output elements."""
    return _pillow(size, count, 1, lambda x: 1 - x)


def pillow_bicubic_taps(size: int, count: int, a: float) -> Taps:
    """Return the taps of Pillow's bicubic resampling. ``a`` is the coefficient of the cubic."""

    def cubic(x: np.ndarray) -> np.ndarray:
        return np.where(x < 1, ((a + 2) * x - (a + 3)) * x * x + 1, (((x - 5) * x + 8) * x - 4) * a)

    return _pillow(size, count, 2, cubic)


def _pillow(size: int, count: int, reach: int, filter: Callable[[np.ndarray], np.ndarray]) -> Taps:
    """Return the taps of Pillow's resampling: ``filter`` around the centre of each output element.

    ``filter`` takes distances below ``reach``. It is stretched if the image shrinks.
    """
    if not size:
        return np.zeros((0, 1), np.int64), np.zeros((0, 1))
    scale = count / size
    width = max(scale, 1.0)
    middle = (np.arange(size) + 0.5) * scale
    first = np.maximum(np.trunc(middle - reach * width + 0.5), 0)
    last = np.minimum(np.trunc(middle + reach * width + 0.5), count)
    near = first[:, None] + np.arange(int((last - first).max()))
    distance = np.abs(near - middle[:, None] + 0.5) / width
    weights = np.where((near < last[:, None]) & (distance < reach), filter(distance), 0)
    return np.clip(near, 0, count - 1).astype(np.int64), _normalised(weights)


def _normalised(weights: np.ndarray) -> np.ndarray:
    """Divide the weights of each output element by their sum, unless that is 0."""
    total = weights.sum(axis=-1, keepdims=True)
    return weights / np.where(total == 0, 1, total)


# ---------------------------------------------------------------------------------------------
# sums


def weighted_sums(x: np.ndarray, axis: int, indices: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the weighted sums of the taps of ``x`` along ``axis``, in the dtype of ``x``."""
    out = np.zeros((*x.shape[:axis], len(indices), *x.shape[axis + 1 :]), x.dtype)
    weights = weights.astype(x.dtype)
    for column in np.flatnonzero(weights.any(axis=0)):
        of_axis = weights[:, column].reshape(-1, *(1,) * (x.ndim - axis - 1))
        out += np.take(x, indices[:, column], axis) * of_axis
    return out


def strips(indices: np.ndarray, weights: np.ndarray, count: int, dtype: np.dtype) -> list[Strip]:
    """Return the taps of an axis of ``count`` input elements as strips."""
    result: list[Strip] = []
    step = max(1, min(_STRIP_ELEMENTS, _STRIP_ELEMENTS * len(indices) // count))
    for start in range(0, len(indices), step):
        near = indices[start : start + step]
        first = int(near.min())
        matrix = np.zeros((len(near), int(near.max()) + 1 - first), dtype)
        np.add.at(matrix, (np.arange(len(near))[:, None], near - first), weights[start : start + step])
        result.append((slice(start, start + len(near)), slice(first, first + matrix.shape[1]), matrix))
    return result


def multiply_strips(x: np.ndarray, axis: int, strips: list[Strip], out: np.ndarray) -> None:
    """Fill ``out``, which is C-contiguous, with the products of ``x`` and the weights of ``strips`` along ``axis``."""
    inner = math.prod(x.shape[axis + 1 :])
    x, into = (array.reshape(-1, array.shape[axis], inner) for array in (x, out))
    for outputs, elements, weights in strips:
        if inner == 1:
            matmul(x[:, elements, 0], weights.T, into[:, outputs, 0])
        else:
            matmul(weights, x[:, elements], into[:, outputs])
