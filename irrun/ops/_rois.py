"""Shared by the operations on regions of interest. A region is a row: batch index, x1, y1, x2, y2."""

from collections.abc import Iterator
from itertools import product
from typing import Final

import numpy as np

from irrun.base.deadline import in_time
from irrun.opdef import Refused, Site, Value
from irrun.types import Dim


def check_regions(at: Site, data: Value, rois: Value, labels: tuple[str, str]) -> tuple[Dim, Dim]:
    """Return the number of regions and of channels.

    Refuses by the first of ``labels`` for ranks and by the second for batch indices.
    """
    at.require(data.rank in (None, 4), labels[0], f"data is {data.shape}, not 4D")
    at.require(rois.rank in (None, 2), labels[0], f"rois is {rois.shape}, not 2D")
    at.require(rois.shape[1].fits(5), labels[0], f"rois {rois.shape} has {rois.shape[1]} columns, not 5")
    rows, batches = rois.exact, data.shape[0].value
    if rows is not None and batches is not None:
        fault = batch_fault(regions(rows)[:, 0], batches)
        at.require(fault is None, labels[1], fault or "")
    return rois.shape[0], data.shape[1]


def regions(rois: np.ndarray) -> np.ndarray:
    """Return the rows of the list of regions up to its end."""
    # OpenVINO ends the list at a batch index of -1; Proposal writes one behind its last row
    ends = np.flatnonzero(rois[:, 0] == -1)
    return rois[: ends[0]] if ends.size else rois


def check_batches(indices: np.ndarray, batches: int, label: str) -> None:
    """Raise Refused if a batch index is out of range."""
    fault = batch_fault(indices, batches)
    if fault is not None:
        raise Refused(fault, label)


def batch_fault(indices: np.ndarray, batches: int) -> str | None:
    """Return the message about a batch index out of range, or None if there is none."""
    wrong = indices[~((indices >= 0) & (indices < batches))]
    return f"batch index {wrong[0]:g} is outside a batch of size {batches}" if wrong.size else None


def bilinear(maps: np.ndarray, channel: np.ndarray | slice, y: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Interpolate ``maps`` (channels, height, width) between pixels.

    ``channel`` selects the channels. ``y`` and ``x`` are places within [0, size - 1]. Maps without pixels are 0
    everywhere.
    """
    if 0 in maps.shape[1:]:
        maps, y, x = np.zeros((len(maps), 1, 1), maps.dtype), np.zeros_like(y), np.zeros_like(x)
    top, left = np.floor(y).astype(int), np.floor(x).astype(int)
    bottom, right = np.minimum(top + 1, maps.shape[1] - 1), np.minimum(left + 1, maps.shape[2] - 1)
    down, across = (y - top).astype(maps.dtype), (x - left).astype(maps.dtype)
    upper = maps[channel, top, left] * (1 - across) + maps[channel, top, right] * across
    lower = maps[channel, bottom, left] * (1 - across) + maps[channel, bottom, right] * across
    return upper * (1 - down) + lower * down


MOST_SAMPLES: Final = 1 << 20
"""The most samples of one bin, so that an attribute of a hostile file cannot make a run endless. A bin that covers
1,024 by 1,024 elements of the data has as many."""
_MOST_ELEMENTS: Final = 1 << 20
"""The most elements of a block of samples. The kernels hold some twenty arrays of this size, or 160 MB of f64."""


def refuse_samples(rows: int, columns: int, attributes: str) -> None:
    """Raise Refused (IR604) if a bin of ``rows`` by ``columns`` samples has too many. ``attributes`` set them."""
    if rows * columns > MOST_SAMPLES:
        message = f"{attributes}: {rows} by {columns} samples in a bin are more than the {MOST_SAMPLES:,} allowed"
        raise Refused(message, help=f"correct {attributes}", code="IR604")


def edge(place: np.floating, size: int) -> int:
    """Return the position on an axis of ``size`` elements that is nearest to ``place``; 0 for NaN."""
    return int(np.nan_to_num(np.clip(place, 0, size)))


def blocks(*extents: int) -> Iterator[tuple[slice, ...]]:
    """Yield the slices of an array of shape ``extents`` that cut it into blocks of at most ``_MOST_ELEMENTS``."""
    steps: list[int] = []
    left = _MOST_ELEMENTS
    for extent in reversed(extents):
        steps.insert(0, max(1, min(extent, left)))
        left //= steps[0]
    ranges = [range(0, extent, step) for extent, step in zip(extents, steps)]
    for starts in in_time(product(*ranges)):
        yield tuple(slice(a, min(a + step, e)) for a, step, e in zip(starts, steps, extents))
