"""What GenerateProposals and ExperimentalDetectronGenerateProposalsSingleImage share."""

import math

import numpy as np

from irrun.ops._boxes import clipped, moved


def proposals(
    anchors: np.ndarray, deltas: np.ndarray, limits: np.ndarray, least: np.ndarray, margin: float
) -> tuple[np.ndarray, np.ndarray]:
    """The anchors [height, width, n, 4] moved by deltas [n * 4, height, width], within an image of sides ``limits``.

    The boxes [height * width * n, 4], and whether their sides are at least ``least``.
    """
    height, width, count = anchors.shape[:3]
    of_anchors = deltas.reshape(count, 4, height, width).transpose(2, 3, 0, 1)
    with np.errstate(over="ignore", invalid="ignore"):
        boxes = moved(anchors, of_anchors, margin, math.log(1000 / 16)).reshape(-1, 4)
    boxes[:, 2:] -= margin
    boxes = clipped(boxes, limits - margin)
    return boxes, np.asarray((boxes[:, 2:] - boxes[:, :2] + margin >= least).all(-1))


def in_order(scores: np.ndarray) -> np.ndarray:
    """The scores [n, height, width] of the boxes that ``proposals`` gives."""
    return scores.transpose(1, 2, 0).ravel()
