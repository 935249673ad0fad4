"""Depthwise convolutions with large kernels, computed as products of the Fourier transforms of whole planes.

The error is relative to the largest elements of a plane: about 1e-6 of the outputs where these are of similar size.
"""

import itertools
import math

import numpy as np

from irrun.kernels.blocks import blocks, scratch
from irrun.kernels.convolution.planes import Filters, convolve
from irrun.kernels.convolution.windows import Axis
from irrun.opdef import OnTileReady


def pays(filters: Filters, axes: tuple[Axis, ...]) -> bool:
    """Return whether Fourier transforms take less time than sums of products."""
    points = math.prod(_length(axis) for axis in axes)
    return math.prod(filters.kernel) * math.prod(axis.out for axis in axes) > 64 * points  # the factor is measured


def spectra(filters: Filters, axes: tuple[Axis, ...]) -> np.ndarray:
    """Return the conjugate transforms of the filters (groups, …), by which those of the data are multiplied."""
    places = tuple(range(1, 1 + len(axes)))
    return np.fft.rfftn(filters.array[:, 0, 0], [_length(axis) for axis in axes], places).conj()


def spectral(
    filters: Filters,
    factors: np.ndarray,
    axes: tuple[Axis, ...],
    data: np.ndarray,
    out: np.ndarray,
    on_tile_ready: OnTileReady,
) -> None:
    """Fill ``out`` by Fourier transforms, for one filter per group and strides and dilations of 1.

    ``factors`` is the result of ``spectra``.
    """
    windows, sizes = out.shape[3:], [_length(axis) for axis in axes]
    places = tuple(range(2, 2 + len(axes)))
    inside, elements = zip(*(axis.inside for axis in axes))
    for images, some in blocks(out.shape[:2], 2 * math.prod(sizes) * data.itemsize):
        seen = data[(images, some, 0, *elements)]
        padded = scratch(0, data.dtype, *seen.shape[:2], *sizes)
        padded.fill(0)
        padded[(..., *inside)] = seen
        transformed = np.fft.rfftn(padded, axes=places)
        transformed *= factors[some]
        sums = np.fft.irfftn(transformed, sizes, places)
        if math.isfinite(np.vdot(sums, sums)):
            out[images, some, 0] = sums[(..., *map(slice, windows))]
        else:  # an infinity or NaN would spread over its whole plane
            out[images, some, 0] = convolve(data[images, some, 0], filters.array[some], axes)
        on_tile_ready((images, some, slice(0, 1), *map(slice, windows)))


def _length(axis: Axis) -> int:
    """Return the length of the transform: at least the extent of all windows, and with small factors only."""
    return next(n for n in itertools.count(max(1, axis.reach)) if _smooth(n))


def _smooth(n: int) -> bool:
    """Return whether ``n`` has no prime factors but 2, 3 and 5."""
    for factor in (2, 3, 5):
        while n % factor == 0:
            n //= factor
    return n == 1
