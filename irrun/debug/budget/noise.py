"""Estimate how far the outputs of an operation move when its inputs move by their roundoff."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

import numpy as np

from irrun.debug.low_precision.formats import is_float
from irrun.opdef import Op

__all__ = ["moved", "pooled"]

Arrays = Sequence[np.ndarray | None]
_LARGE: Final = 1 << 20


def moved(
    op: Op, inputs: Arrays, roundoff: Sequence[float], run: Callable[..., tuple[np.ndarray, ...]]
) -> Iterator[tuple[np.ndarray, ...]]:
    """Yield the outputs for inputs that are all larger, all smaller, and twice moved at random.

    Each element moves by its magnitude times the ``roundoff`` of its input. Large inputs have so many elements that one
    random move is enough. A run that fails yields nothing. FakeQuantize rounds the distance from an end of its range:
    its data moves by the magnitude of the ends.
    """
    ends = 0.0
    if op.type == "FakeQuantize":
        ends = max((float(np.abs(array).max()) for array in inputs[1:3] if array is not None and array.size), default=0)
        roundoff = [roundoff[0], *[0.0] * (len(inputs) - 1)]
    rng = np.random.default_rng(0)
    is_large = sum(array.size for array in inputs if array is not None) > _LARGE
    for direction in (1, -1, 0) if is_large else (1, -1, 0, 0):
        arrays: list[np.ndarray | None] = []
        for array, unit in zip(inputs, roundoff):
            if array is not None and is_float(array) and unit:
                sign = direction or rng.choice(np.array([-1, 1], array.dtype), array.shape)
                array = (array + unit * sign * np.maximum(np.abs(array), ends)).astype(array.dtype)
            arrays.append(array)
        try:
            yield run(*arrays)
        except Exception:  # the kernel refuses other values: nothing is known of them
            continue


def pooled(square: np.ndarray, is_image: bool, *, spreads: bool = False) -> np.ndarray:
    """Return the root of a mean square for each element: the product of the means over its channel and its place.

    An element that is lucky in all draws thus has the noise of its neighbours, and a channel or place with large values
    does not lend its noise to others. The channels of an image lie on axis 1, others on the last axis. An operation
    that ``spreads`` has errors at all places of a channel, as the transforms of a Winograd convolution have.
    """
    if square.ndim < 2 or not square.size:
        return np.sqrt(np.broadcast_to(square.mean() if square.size else 0, square.shape))
    axis = 1 if is_image and square.ndim > 2 else square.ndim - 1
    total = square.mean()
    if not total > 0:
        return np.zeros(square.shape)
    of_place = square.mean(axis=axis, keepdims=True)
    of_channel = square.mean(axis=tuple(a for a in range(square.ndim) if a != axis), keepdims=True)
    own = of_place * of_channel / total
    return np.sqrt(np.maximum(own, of_channel) if spreads else own)
