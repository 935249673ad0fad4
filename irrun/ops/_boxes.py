"""Shared by the operations of Detectron and GenerateProposals: boxes ``[x0, y0, x1, y1]`` to which deltas are applied.

If a box includes its last pixel, its sides are longer by a ``margin`` of 1.
"""

import math

import numpy as np

from irrun.types import Dim


def common_dim(*dims: Dim) -> Dim | None:
    """Return the dim that meets all of ``dims``, or None if they contradict each other."""
    common, *others = dims
    for dim in others:
        both = common.meet(dim)
        if both is None:
            return None
        common = both
    return common


def apply_deltas(boxes: np.ndarray, deltas: np.ndarray, margin: float, largest: float) -> np.ndarray:
    """Return the boxes, shifted and scaled by deltas ``[dx, dy, log(dw), log(dh)]`` in units of their sides.

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
    """Apply deltas to anchors. Return the boxes, their scores, and whether each is large enough.

    The anchors are [height, width, n, 4], ``deltas`` are [n * 4, height, width] and ``scores`` [n, height, width]. The
    boxes [height * width * n, 4] and their scores are in the order of the anchors. The boxes are clipped to an image of
    sides ``limits``. A box is large enough if both sides are at least ``least``.
    """
    height, width, count = anchors.shape[:3]
    of_anchors = deltas.reshape(count, 4, height, width).transpose(2, 3, 0, 1)
    boxes = apply_deltas(anchors, of_anchors, margin, math.log(1000 / 16)).reshape(-1, 4)
    boxes = np.maximum(np.minimum(boxes, np.tile(limits - margin, 2)), 0)
    large = boxes[:, 2:] - boxes[:, :2] + margin >= least
    return boxes, scores.transpose(1, 2, 0).ravel(), large[:, 0] & large[:, 1]
