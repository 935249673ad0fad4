"""Non-maximum suppression: keep only the best of boxes that overlap."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import repeat

import numpy as np

from irrun.base.deadline import in_time
from irrun.kernels.matmul import narrow, wide
from irrun.opdef import Op, Site, Value, attr
from irrun.types import ELEMENT_TYPES, Dim, PartialShape

Overlap = Callable[[int, np.ndarray], np.ndarray]
"""``overlap(one, others)`` returns the IoU of one box with each of the others. Boxes are identified by their
indices."""


# ---------------------------------------------------------------------------------------------
# the algorithms, on the boxes of one class


def iou(boxes: np.ndarray, offset: float = 0, *, apart: bool = False) -> Overlap:
    """Return the overlap of boxes [n, 4], each given by its least and its greatest corner.

    ``offset`` is added to every side. With ``apart``, boxes that overlap only because of the offset do not count as
    overlapping.
    """
    low, high = boxes[:, :2], boxes[:, 2:]
    areas = np.where((high < low).any(axis=1), 0, (high - low + offset).prod(axis=1))

    def overlap(one: int, others: np.ndarray) -> np.ndarray:
        sides = np.minimum(high[one], high[others]) - np.maximum(low[one], low[others])
        common = np.maximum(sides + offset, 0).prod(axis=1)
        if apart:
            common = np.where((sides < 0).any(axis=1), 0, common)
        return over_union(common, areas[one], areas[others])

    return overlap


def over_union(common: np.ndarray, area: np.ndarray, areas: np.ndarray) -> np.ndarray:
    """Return the intersection over union, and 0 where a box has no area."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where((area > 0) & (areas > 0), common / (area + areas - common), 0)


def best_first(scores: np.ndarray, candidates: np.ndarray) -> np.ndarray:
    """Return the indices of the candidates (a mask) by descending score. Equal scores keep their order."""
    order = np.argsort(-scores, kind="stable")
    return order[candidates[order]]


def suppress(
    order: np.ndarray,
    overlap: Overlap,
    limit: int | None,
    thresholds: Iterable[float],
    kept: Callable[[np.ndarray, float], np.ndarray] = np.less_equal,
) -> np.ndarray:
    """Take the first box of ``order``, drop the boxes that overlap it too much, and repeat.

    This ends when no box is left, or ``limit`` boxes are taken. Each box that is taken uses the next of ``thresholds``.
    Another box stays if ``kept`` is true for its largest overlap with the boxes taken so far and this threshold. Return
    the indices of the boxes taken.
    """
    taken: list[int] = []
    worst = np.zeros(len(order), np.float32)
    for threshold in in_time(thresholds):
        if not order.size or len(taken) == limit:
            break
        taken.append(order[0])
        worst = np.maximum(worst[1:], overlap(order[0], order[1:]))
        keep = kept(worst, threshold)
        order, worst = order[1:][keep], worst[keep]
    return np.array(taken, np.int64)


def soften(
    scores: np.ndarray,
    candidates: np.ndarray,
    overlap: Overlap,
    limit: int,
    weight: Callable[[np.ndarray], np.ndarray],
    least: float,
) -> tuple[np.ndarray, np.ndarray]:
    """Take the best candidate, weigh the scores of the others by their overlap with it, and repeat.

    ``candidates`` is a mask. Boxes whose score falls to ``least`` are dropped. At most ``limit`` boxes are taken.
    Return their indices and the scores that they had when they were taken.
    """
    left = np.flatnonzero(candidates)
    taken: list[int] = []
    taken_scores: list[float] = []
    scores = scores[left]
    for _ in in_time(range(min(limit, left.size))):
        if not left.size:
            break
        best = int(scores.argmax())
        one = left[best]
        taken.append(one)
        taken_scores.append(scores[best])
        left, scores = np.delete(left, best), np.delete(scores, best)
        scores = scores * weight(overlap(one, left))
        alive = scores > least
        left, scores = left[alive], scores[alive]
    return np.array(taken, np.int64), np.array(taken_scores, scores.dtype)


# ---------------------------------------------------------------------------------------------
# NonMaxSuppression and NMSRotated


class Suppression(Op):
    """Base of the operations that return a row [batch, class, box] for each box that they keep.

    C1  ``boxes`` [num_batches, num_boxes, ...] and ``scores`` [num_batches, num_classes, num_boxes] are 3D.
    C2  num_batches and num_boxes are the same in both.
    C3  Each of the other inputs has one element.
    C4  ``output_type`` is i32 or i64.
    """

    sort_result_descending = attr.bool(True)
    output_type = attr.element_type("i64")
    # OpenVINO allows a different type for each input
    types = {"T_MAX_BOXES": "int"}
    outputs = 3
    box_size = 4
    one_element: tuple[int, ...] = (0, 1)
    """The ranks that an input of a single element may have."""

    def infer(
        self,
        at: Site,
        boxes: Value,
        scores: Value,
        max_output_boxes_per_class: Value | None = None,
        iou_threshold: Value | None = None,
        *others: Value | None,
    ) -> Value | tuple[Value, ...]:
        size = self.box_size
        at.require(
            boxes.rank in (None, 3) and boxes.shape[2].fits(size), "C1", f"boxes is {boxes.shape}, not [?,?,{size}]"
        )
        at.require(scores.rank in (None, 3), "C1", f"scores is {scores.shape}, not 3D")
        batches, count = boxes.shape[0].meet(scores.shape[0]), boxes.shape[1].meet(scores.shape[2])
        if batches is None or count is None:
            at.refuse("C2", f"boxes {boxes.shape} and scores {scores.shape} differ in num_batches or num_boxes")
        for port, value in zip(self.inputs[2:], (max_output_boxes_per_class, iou_threshold, *others)):
            if value is not None and value.rank is not None:
                single = value.rank in self.one_element and value.shape.count().fits(1)
                at.require(single, "C3", f"{port.name} is {value.shape}, not a single element")
        at.require(self.output_type.name in ("i32", "i64"), "C4", f"output_type is {self.output_type}, not i32 or i64")
        limit = Dim(0)
        if max_output_boxes_per_class is not None:
            known = max_output_boxes_per_class.scalar()
            limit = Dim.unknown() if known is None else Dim(max(known, 0))
        rows = PartialShape.of([self.rows(batches, scores.shape[1], count, limit), 3])
        # OpenVINO gives the scores as f32; according to the specification, they have the type of the thresholds
        triplets = Value(ELEMENT_TYPES["f32"], rows)
        values = Value(self.output_type, rows), triplets, Value(self.output_type, PartialShape.of([1]))
        return values[: self.outputs]

    def rows(self, batches: Dim, classes: Dim, boxes: Dim, limit: Dim) -> Dim:
        """Return the number of rows of the output."""
        return Dim(0, (boxes.min(limit) * batches * classes).hi)

    def overlap(self, boxes: np.ndarray) -> Overlap:
        """Return the overlap of the boxes of one batch element."""
        raise NotImplementedError

    def select(
        self, overlap: Overlap, scores: np.ndarray, limit: int, threshold: float, least: float, sigma: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the indices of the boxes of one class that are kept, and their scores."""
        # OpenVINO also drops a score that equals the threshold
        taken = suppress(best_first(scores, scores > least), overlap, limit, repeat(threshold))
        return taken, scores[taken]

    def run(
        self,
        boxes: np.ndarray,
        scores: np.ndarray,
        max_output_boxes_per_class: np.ndarray | None = None,
        iou_threshold: np.ndarray | None = None,
        *others: np.ndarray | None,
    ) -> np.ndarray | tuple[np.ndarray, ...]:
        limit = 0 if max_output_boxes_per_class is None else max(int(max_output_boxes_per_class.item()), 0)
        threshold, least, sigma = (
            0.0 if a is None else float(a.item()) for a in (iou_threshold, *others, None, None)[:3]
        )
        wide_boxes, wide_scores = (a.astype(wide(a.dtype), copy=False) for a in (boxes, scores))
        kept = [np.zeros((0, 3), np.int64)]
        kept_scores = [np.zeros(0, wide_scores.dtype)]
        for batch, of_batch in enumerate(wide_scores):
            overlap = self.overlap(wide_boxes[batch])
            for label, of_class in enumerate(of_batch):
                selected, selected_scores = self.select(overlap, of_class, limit, threshold, least, sigma)
                kept.append(np.stack([np.full(len(selected), batch), np.full(len(selected), label), selected], axis=1))
                kept_scores.append(selected_scores)
        rows, row_scores = np.concatenate(kept), np.concatenate(kept_scores)
        if self.sort_result_descending:
            order = np.lexsort((rows[:, 2], rows[:, 1], rows[:, 0], -row_scores))
            rows, row_scores = rows[order], row_scores[order]
        triplets = np.concatenate([rows[:, :2], row_scores[:, None]], axis=1)
        count = np.array([len(rows)], self.output_type.dtype)
        return rows.astype(self.output_type.dtype), narrow(triplets, np.dtype(np.float32)), count
