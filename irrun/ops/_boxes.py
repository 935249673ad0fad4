"""What the operations of Detectron and GenerateProposals share: boxes ``[x0, y0, x1, y1]``, moved by deltas.

Where the last pixel belongs to a box, the sides of the box are longer by a ``margin`` of 1.
"""

import math

import numpy as np

from irrun.types import Dim


def agreed(*dims: Dim) -> Dim | None:
    """Return the dim that all of these are, or None if they contradict each other."""
    first, *others = dims
    for dim in others:
        met = first.meet(dim)
        if met is None:
            return None
        first = met
    return first


def moved(boxes: np.ndarray, deltas: np.ndarray, margin: float, largest: float) -> np.ndarray:
    """Return the boxes, moved and scaled by deltas ``[dx, dy, log(dw), log(dh)]`` in units of their sides.

    The logarithms are limited to ``largest``.
    """
    sides = boxes[..., 2:] - boxes[..., :2] + margin
    with np.errstate(over="ignore", invalid="ignore"):
        centres = boxes[..., :2] + sides / 2 + deltas[..., :2] * sides
        halves = np.exp(np.minimum(deltas[..., 2:], largest)) * sides / 2
        return np.concatenate([centres - halves, centres + halves - margin], -1)


def proposals(
    anchors: np.ndarray, deltas: np.ndarray, scores: np.ndarray, limits: np.ndarray, least: np.ndarray, margin: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return boxes, their scores and whether they are large enough, from moved anchors.

    The anchors [height, width, n, 4] are moved by ``deltas`` [n * 4, height, width] and clipped to an image of sides
    ``limits``. The boxes are [height * width * n, 4], in the order of the anchors, and so are the scores, from
    ``scores`` [n, height, width]. A box is large enough if both sides are at least ``least``.
    """
    height, width, count = anchors.shape[:3]
    of_anchors = deltas.reshape(count, 4, height, width).transpose(2, 3, 0, 1)
    boxes = moved(anchors, of_anchors, margin, math.log(1000 / 16)).reshape(-1, 4)
    boxes = np.maximum(np.minimum(boxes, np.tile(limits - margin, 2)), 0)
    large = boxes[:, 2:] - boxes[:, :2] + margin >= least
    return boxes, scores.transpose(1, 2, 0).ravel(), large[:, 0] & large[:, 1]
