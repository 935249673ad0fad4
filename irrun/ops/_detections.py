"""Shared by MatrixNms and MulticlassNms: a list of detections with the boxes of all classes and batches."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from irrun.kernels.matmul import narrow, wide
from irrun.opdef import Op, Site, Value, attr
from irrun.ops._nms import best_first
from irrun.types import Dim, PartialShape


class Detections(Op):
    """Base of the operations that return a row [class, score, xmin, ymin, xmax, ymax] for each box that they keep.

    C1  ``boxes`` is 3D [num_batches, num_boxes, 4], ``scores`` is 3D [num_batches, num_classes, num_boxes].
    C2  num_batches and num_boxes are the same in both.
    C3  ``nms_top_k``, ``keep_top_k`` and ``background_class`` are -1 or more.
    C4  ``output_type`` is i32 or i64.
    """

    # OpenVINO writes sort_result_type and classid where the specification says sort_result and class
    sort_result = attr.choice(
        "class", "score", "none", default="none", also={"classid": "class"}, name="sort_result_type",
        aliases=("sort_result",),
    )  # fmt: skip
    sort_result_across_batch = attr.bool(False)
    output_type = attr.element_type("i64")
    score_threshold = attr.float(0.0)
    nms_top_k = attr.int(-1)
    keep_top_k = attr.int(-1)
    background_class = attr.int(-1)
    normalized = attr.bool(True)
    types = {"T": "float"}
    outputs = 3
    by_class_in_batch = True

    def infer(self, at: Site, boxes: Value, scores: Value) -> tuple[Value, ...]:
        self.check(at, boxes, scores, scores_rank=3)
        batches, count = boxes.shape[0].meet(scores.shape[0]), boxes.shape[1].meet(scores.shape[2])
        if batches is None or count is None:
            at.refuse("C2", f"boxes {boxes.shape} and scores {scores.shape} differ in num_batches or num_boxes")
        return self.detections(boxes, batches, scores.shape[1], count)

    def check(self, at: Site, boxes: Value, scores: Value, scores_rank: int) -> None:
        """Refuse the inputs and attributes by C1, C3 and C4."""
        at.require(boxes.rank in (None, 3) and boxes.shape[2].fits(4), "C1", f"boxes is {boxes.shape}, not [?,?,4]")
        at.require(scores.rank in (None, scores_rank), "C1", f"scores is {scores.shape}, not {scores_rank}D")
        for name in ("nms_top_k", "keep_top_k", "background_class"):
            at.require(getattr(self, name) >= -1, "C3", f"{name} is {getattr(self, name)}, less than -1")
        at.require(self.output_type.name in ("i32", "i64"), "C4", f"output_type is {self.output_type}, not i32 or i64")

    def detections(self, boxes: Value, batches: Dim, classes: Dim, count: Dim) -> tuple[Value, ...]:
        """Return the three outputs for ``batches``, ``classes``, and ``count`` boxes for each class."""
        each = (count if self.nms_top_k < 0 else count.min(self.nms_top_k)) * classes
        most = (each if self.keep_top_k < 0 else each.min(self.keep_top_k)) * batches
        rows = Dim(0, most.hi)
        indices = Value(self.output_type, PartialShape.of([rows, 1]))
        return boxes.reshaped([rows, 6]), indices, Value(self.output_type, PartialShape.of([batches]))

    def select(self, boxes: np.ndarray, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the indices of the boxes of one class that are kept, and their scores."""
        raise NotImplementedError

    def candidates(self, scores: np.ndarray, enough: np.ndarray) -> np.ndarray:
        """Return the indices of the boxes of one class to select from, best first: at most ``nms_top_k`` of a mask."""
        order = best_first(scores, enough)
        return order if self.nms_top_k < 0 else order[: self.nms_top_k]

    def images(self, boxes: np.ndarray, scores: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Yield for each batch element its boxes [classes, n, 4], scores [classes, n] and places [classes, n].

        A place is the index of a box in the list of all boxes.
        """
        places = np.arange(boxes.shape[0] * boxes.shape[1]).reshape(boxes.shape[:2])
        for of_boxes, of_scores, of_places in zip(boxes, scores, places):
            shape = of_scores.shape
            yield np.broadcast_to(of_boxes, (*shape, 4)), of_scores, np.broadcast_to(of_places, shape)

    def run(self, boxes: np.ndarray, scores: np.ndarray, *others: np.ndarray) -> tuple[np.ndarray, ...]:
        work = wide(boxes.dtype)
        detected = [
            self._detect(*image)
            for image in self.images(boxes.astype(work, copy=False), scores.astype(work, copy=False), *others)
        ]
        counts = np.array([len(places) for _, places in detected], np.int64)
        rows = np.concatenate([np.zeros((0, 6), work), *(rows for rows, _ in detected)])
        places = np.concatenate([np.zeros(0, np.int64), *(places for _, places in detected)])
        if self.sort_result_across_batch and self.sort_result != "none":
            order = _order(rows, places, np.repeat(np.arange(len(counts)), counts), self.sort_result == "class")
            rows, places = rows[order], places[order]
        dtype = self.output_type.dtype
        return narrow(rows, boxes.dtype), places[:, None].astype(dtype), counts.astype(dtype)

    def _detect(self, boxes: np.ndarray, scores: np.ndarray, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the rows of one batch element, and the places of their boxes."""
        rows, selected_places = [np.zeros((0, 6), boxes.dtype)], [np.zeros(0, np.int64)]
        for label, (of_boxes, of_scores, of_places) in enumerate(zip(boxes, scores, places)):
            if label != self.background_class:
                selected, selected_scores = self.select(of_boxes, of_scores)
                classes = np.full(len(selected), label, boxes.dtype)
                rows.append(np.concatenate([np.stack([classes, selected_scores], axis=1), of_boxes[selected]], axis=1))
                selected_places.append(of_places[selected])
        all_rows, all_places = np.concatenate(rows), np.concatenate(selected_places)
        order = _order(all_rows, all_places, np.zeros(len(all_rows)), by_class=False)
        if self.keep_top_k >= 0:
            order = order[: self.keep_top_k]
        all_rows, all_places = all_rows[order], all_places[order]
        if self.sort_result == "class" and not self.sort_result_across_batch and self.by_class_in_batch:
            order = _order(all_rows, all_places, np.zeros(len(all_rows)), by_class=True)
            all_rows, all_places = all_rows[order], all_places[order]
        return all_rows, all_places


def _order(rows: np.ndarray, places: np.ndarray, batches: np.ndarray, by_class: bool) -> np.ndarray:
    """Return the order by descending score, or by class first.

    Among equals, the first batch, class and box come first.
    """
    classes, scores = rows[:, 0], rows[:, 1]
    return np.lexsort((places, -scores, batches, classes) if by_class else (places, classes, batches, -scores))
