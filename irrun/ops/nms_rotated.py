"""NMSRotated: the best of overlapping rotated boxes of a class.  Spec: sort/nms-rotated-13."""

import numpy as np

from irrun.opdef import attr, op, ports
from irrun.ops._nms import Overlap, Suppression, over_union


@op("NMSRotated", since=13, spec="sort/nms-rotated-13")
class NMSRotated(Suppression):
    """Drop each rotated box whose IoU with a better box of its class exceeds ``iou_threshold``.

    A box is [x_center, y_center, width, height, angle]. The outputs are a row [batch, class, box] for each kept box,
    best first, a row [batch, class, score] for each of them, and their number.

    C1  ``boxes`` is 3D [num_batches, num_boxes, 5], ``scores`` is 3D [num_batches, num_classes, num_boxes].
    C2  num_batches and num_boxes are the same in both.
    C3  Each of the other inputs is a scalar, or 1D with one element.
    C4  ``output_type`` is i32 or i64.
    """

    clockwise = attr.bool(True)
    inputs = ports(
        boxes="float", scores="float", max_output_boxes_per_class="int", iou_threshold="float", score_threshold="float"
    )
    box_size = 5

    def overlap(self, boxes: np.ndarray) -> Overlap:
        boxes = boxes.astype(np.float64)
        angle = boxes[:, 4] if self.clockwise else -boxes[:, 4]
        center, half = boxes[:, :2], boxes[:, 2:4] / 2
        axes = np.stack([np.cos(angle), np.sin(angle), -np.sin(angle), np.cos(angle)], axis=1).reshape(-1, 2, 2)
        signs = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]])
        corners = center[:, None] + (signs * half[:, None]) @ axes
        areas = boxes[:, 2:4].prod(axis=1) * (half > 0).all(axis=1)
        reach = np.hypot(half[:, 0], half[:, 1]) * (1 + 1e-6)  # from the center to a corner, with room for rounding

        def inside(points: np.ndarray, box: np.ndarray | int) -> np.ndarray:
            """Return whether each of the points [n, k, 2] lies in its box or on its edge."""
            local = (points - center[box][..., None, :]) @ axes[box].swapaxes(-1, -2)
            limit = half[box][..., None, :]
            return (np.abs(local) <= limit * (1 + 1e-9)).all(axis=-1)

        def common(one: int, others: np.ndarray) -> np.ndarray:
            a, b = np.broadcast_to(corners[one], (len(others), 4, 2)), corners[others]
            crossings, crossed = _crossings(a, b)
            points = np.concatenate([a, b, crossings], axis=1)
            valid = np.concatenate([inside(a, others), inside(b, one), crossed], axis=1)
            return _convex_area(points, valid)

        def overlap(one: int, others: np.ndarray) -> np.ndarray:
            found = np.zeros(len(others))
            if not areas[one] > 0:
                return found
            apart = np.hypot(*(center[others] - center[one]).T) > reach[one] + reach[others]
            near = np.flatnonzero((areas[others] > 0) & ~apart)
            if near.size:
                found[near] = over_union(common(one, others[near]), areas[one], areas[others[near]])
            return found

        return overlap


def _cross(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the cross product of vectors [..., 2]."""
    return a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]


def _crossings(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the points [n, 16, 2] where edges of the quadrilaterals a and b [n, 4, 2] cross, and whether they do."""
    from_a, from_b = a[:, :, None], b[:, None, :]
    along_a, along_b = (np.roll(x, -1, axis=1) - x for x in (a, b))
    along_a, along_b = along_a[:, :, None], along_b[:, None, :]
    between = from_b - from_a
    with np.errstate(divide="ignore", invalid="ignore"):
        determinant = _cross(along_a, along_b)
        s, t = _cross(between, along_b) / determinant, _cross(between, along_a) / determinant
        meet = (s >= 0) & (s <= 1) & (t >= 0) & (t <= 1)  # false for parallel edges
        points = np.where(meet[..., None], from_a + s[..., None] * along_a, 0)
    return points.reshape(len(a), 16, 2), meet.reshape(len(a), 16)


def _convex_area(points: np.ndarray, valid: np.ndarray) -> np.ndarray:
    """Return the area of the convex polygon whose corners are the valid ones of the points [n, k, 2]."""
    count = np.maximum(valid.sum(axis=1), 1)[:, None]
    points = np.where(valid[..., None], points, 0)
    points = points - (points.sum(axis=1) / count)[:, None]
    angle = np.where(valid, np.arctan2(points[..., 1], points[..., 0]), np.inf)
    order = np.argsort(angle, axis=1)[..., None]
    ring = np.take_along_axis(points, order, axis=1)
    # each invalid point is replaced by the first point, which adds nothing to the area
    ring = np.where(np.take_along_axis(valid[..., None], order, axis=1), ring, ring[:, :1])
    return np.abs(_cross(ring, np.roll(ring, -1, axis=1)).sum(axis=1)) / 2
