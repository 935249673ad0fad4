"""Boxes given by two corners, ``[x0, y0, x1, y1]``: the maths that the detection operations share.

Where a box spans pixels, of which the last belongs to it, its sides are longer by a ``margin`` of 1.
"""

import numpy as np

from irrun.types import Dim


def agreed(*dims: Dim) -> Dim | None:
    """The dim that all of these are, or None."""
    first, *others = dims
    for dim in others:
        met = first.meet(dim)
        if met is None:
            return None
        first = met
    return first


def moved(boxes: np.ndarray, deltas: np.ndarray, margin: float = 0, largest: float = np.inf) -> np.ndarray:
    """The boxes moved and scaled by deltas ``[dx, dy, log(dw), log(dh)]`` in units of their sides.

    The logarithms are at most ``largest``. The sides of the new boxes are exactly the differences of their corners.
    """
    sides = boxes[..., 2:] - boxes[..., :2] + margin
    centres = boxes[..., :2] + sides / 2 + deltas[..., :2] * sides
    halves = np.exp(np.minimum(deltas[..., 2:], largest)) * sides / 2
    return np.concatenate([centres - halves, centres + halves], -1)


def clipped(boxes: np.ndarray, limits: np.ndarray) -> np.ndarray:
    """The boxes with their corners between 0 and ``limits`` [x, y]."""
    return np.maximum(np.minimum(boxes, np.tile(limits, 2)), 0)


def best(scores: np.ndarray, count: int | None = None) -> np.ndarray:
    """The places of the ``count`` highest scores, or of all, the highest first; of equal ones, the first."""
    return np.argsort(-scores, kind="stable")[:count]


def apart(
    boxes: np.ndarray, threshold: float, most: int | None = None, margin: float = 0, eta: float = 1
) -> np.ndarray:
    """Non-maximum suppression: the places of the boxes to keep, of those in descending order of their scores.

    A box goes where its intersection with one kept before it is more than ``threshold`` of their union; each box
    kept multiplies a threshold above 0.5 by ``eta``. At most ``most`` are kept.
    """
    low, high = boxes[:, :2], boxes[:, 2:]
    areas = np.prod(high - low + margin, -1)
    overlaps, kept = np.full(len(boxes), -np.inf, boxes.dtype), []
    for place in range(len(boxes)):
        if overlaps[place] > threshold:
            continue
        if len(kept) == most:
            break
        kept.append(place)
        rest = slice(place + 1, None)
        sides = np.minimum(high[place], high[rest]) - np.maximum(low[place], low[rest])
        shared = np.where((sides >= 0).all(-1), np.prod(sides + margin, -1), 0)
        with np.errstate(divide="ignore", invalid="ignore"):
            overlaps[rest] = np.fmax(overlaps[rest], shared / (areas[place] + areas[rest] - shared))
        if threshold > 0.5:
            threshold *= eta
    return np.array(kept, np.int64)
