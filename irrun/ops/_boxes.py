"""Boxes given by two corners, ``[x0, y0, x1, y1]``: the maths that the detection operations share.

Where a box spans pixels, of which the last belongs to it, its sides are longer by a ``margin`` of 1.
"""

import numpy as np


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


def apart(boxes: np.ndarray, threshold: float, most: int | None = None, margin: float = 0) -> np.ndarray:
    """Non-maximum suppression: the places of the boxes to keep, of those in descending order of their scores.

    A box goes where its intersection with one kept before it is more than ``threshold`` of their union.
    At most ``most`` are kept.
    """
    areas = np.prod(boxes[:, 2:] - boxes[:, :2] + margin, -1)
    left, kept = np.arange(len(boxes)), []
    while left.size and len(kept) != most:
        place, left = left[0], left[1:]
        kept.append(place)
        sides = np.minimum(boxes[place, 2:], boxes[left, 2:]) - np.maximum(boxes[place, :2], boxes[left, :2])
        shared = np.where((sides >= 0).all(-1), np.prod(sides + margin, -1), 0)
        with np.errstate(divide="ignore", invalid="ignore"):
            left = left[~(shared / (areas[place] + areas[left] - shared) > threshold)]
    return np.array(kept, np.int64)
