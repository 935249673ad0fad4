"""Estimate how far the outputs of an operation move when its inputs move by their roundoff."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Final

import numpy as np

from irrun.debug.low_precision.formats import is_float
from irrun.opdef import Op

__all__ = ["moved", "pooled"]

Arrays = Sequence[np.ndarray | None]
_LARGE: Final = 1 << 20
_ENOUGH: Final = 8
"""The least elements whose mean says something about one of them."""


def moved(
    op: Op, inputs: Arrays, roundoff: Sequence[float], run: Callable[..., tuple[np.ndarray, ...]], flips: int = 0
) -> Iterator[tuple[bool, tuple[np.ndarray, ...]]]:
    """Yield the outputs for inputs that are all larger, all smaller, and twice moved at random.

    In front of them is whether the move is at random. Each element moves by its magnitude times the ``roundoff`` of its
    input, and in ``flips`` further moves by a random share of that. Large inputs have so many elements that one random
    move is enough. A run that fails yields nothing. FakeQuantize rounds the distance from an end of
    its range: its data moves by the magnitude of the ends.
    """
    ends = 0.0
    if op.type == "FakeQuantize":
        ends = max((float(np.abs(array).max()) for array in inputs[1:3] if array is not None and array.size), default=0)
        roundoff = [roundoff[0], *[0.0] * (len(inputs) - 1)]
    rng = np.random.default_rng(0)
    is_large = sum(array.size for array in inputs if array is not None) > _LARGE
    for direction in (1, -1, *[0] * (1 if is_large else 2), *[None] * flips):
        arrays: list[np.ndarray | None] = []
        for array, unit in zip(inputs, roundoff):
            if array is not None and is_float(array) and unit:
                signs = np.array([-1, 1], array.dtype)
                sign = direction or rng.choice(signs, array.shape)
                if direction is None:
                    sign = rng.uniform(-1, 1, array.shape)
                array = (array + unit * sign * np.maximum(np.abs(array), ends)).astype(array.dtype)
            arrays.append(array)
        try:
            outputs = run(*arrays)
        except Exception:  # the kernel refuses other values: nothing is known of them
            continue
        yield not direction, outputs


def pooled(square: np.ndarray, is_image: bool, *, spreads: bool = False) -> np.ndarray:
    """Return the root of a mean square for each element: the product of the means over its channel and its place.

    An element that is lucky in all draws thus has the noise of its neighbours, and a channel or place with large values
    does not lend its noise to others. The channels of an image lie on axis 1, others on the last axis. With few
    channels, a place has the product of the means over its row, its column, and so on; a mean of a few elements is that
    of all. An operation that ``spreads`` has errors at all places of a channel, as the transforms of a Winograd
    convolution have.
    """
    if square.ndim < 2 or not square.size:
        return np.sqrt(np.broadcast_to(square.mean() if square.size else 0, square.shape))
    axis = 1 if is_image and square.ndim > 2 else square.ndim - 1
    total = square.mean()
    if not total > 0:
        return np.zeros(square.shape)
    others = [a for a in range(square.ndim) if a != axis]
    of_channel = _mean_over(square, others, total)
    of_place = _mean_over(square, [axis], total)
    if square.shape[axis] < _ENOUGH:
        for kept in others:
            of_place = of_place * _mean_over(square, [a for a in range(square.ndim) if a != kept], total) / total
    own = of_place * of_channel / total
    return np.broadcast_to(np.sqrt(np.maximum(own, of_channel) if spreads else own), square.shape)


def _mean_over(square: np.ndarray, axes: Sequence[int], total: float) -> np.ndarray:
    """Return the mean over some axes, which stay with length 1, or that of all elements if these axes have few."""
    if math.prod(square.shape[axis] for axis in axes) < _ENOUGH:
        return np.full([1] * square.ndim, total)
    return square.mean(axis=tuple(axes), keepdims=True)
