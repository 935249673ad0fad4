"""FakeQuantize with one range for all elements, in one pass: numpy takes up to seven."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from irrun.kernels.compiled.processor import compiled

__all__ = ["quantized"]


def quantized(levels: int, limits: np.ndarray, otherwise: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    """Return the kernel of FakeQuantize for f32.

    ``limits`` are the ends of the range of the input and of that of the output, f32 [4], the first below the second.
    ``otherwise`` is the kernel for a tile that is not contiguous.
    """
    in_low, in_high, out_low, out_high = limits
    steps = np.float32(levels - 1)
    numbers = np.array([in_low, in_high, in_high - in_low, steps, (out_high - out_low) / steps, out_low], np.float32)

    def call(x: np.ndarray, *limits: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        whole = np.empty(x.shape, np.float32) if out is None else out
        if not whole.flags.c_contiguous:
            return otherwise(x, *limits, out=whole)
        if whole is not x:
            np.copyto(whole, x)
        _quantize(whole.reshape(-1), numbers)
        return whole

    return call


@compiled
def _quantize(x: np.ndarray, numbers: np.ndarray) -> None:
    """Quantise in place: with a second array, which might overlap the first, the compiler would emit no vectors.

    The numbers come in an array, because numba takes a microsecond to accept six scalars.
    """
    low, high, width, steps, step, base = numbers[0], numbers[1], numbers[2], numbers[3], numbers[4], numbers[5]
    for i in range(x.size):
        clipped = low if x[i] < low else high if x[i] > high else x[i]  # NaN stays
        x[i] = np.rint((clipped - low) / width * steps) * step + base
