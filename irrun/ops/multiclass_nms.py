"""MulticlassNms: non-maximum suppression of all classes.  Spec: sort/multiclass-non-max-suppression-{8,9}."""

from collections.abc import Iterator

import numpy as np

from irrun.opdef import Refused, Site, Value, attr, op, opt, ports
from irrun.ops._detections import Detections
from irrun.ops._nms import iou, suppress


@op("MulticlassNms", since=9, spec="sort/multiclass-non-max-suppression-9")
class MulticlassNms9(Detections):
    """Drop each box whose IoU with a better box of its class exceeds a threshold.

    After each kept box, a threshold above 0.5 is multiplied by ``nms_eta``. The outputs are a row
    [class, score, xmin, ymin, xmax, ymax] for each kept box, its index, and the number of kept boxes of each batch
    element.

    C1  ``boxes`` is 3D [num_batches, num_boxes, 4], ``scores`` is 3D [num_batches, num_classes, num_boxes]. With
        ``roisnum``, which is 1D [num_batches], they are [num_classes, num_boxes, 4] and [num_classes, num_boxes].
    C2  Dims with the same name are equal in all inputs.
    C3  ``nms_top_k``, ``keep_top_k`` and ``background_class`` are -1 or more, ``nms_eta`` is in [0, 1].
    C4  ``output_type`` is i32 or i64.
    C5  The sum of ``roisnum`` is num_boxes.
    """

    iou_threshold = attr.float(0.0)
    nms_eta = attr.float(1.0)
    inputs = ports(boxes="T", scores="T", roisnum=opt("T_IND"))
    types = {"T": "float", "T_IND": "i32 i64"}

    def infer(self, at: Site, boxes: Value, scores: Value, roisnum: Value | None = None) -> tuple[Value, ...]:
        at.require(0 <= self.nms_eta <= 1, "C3", f"nms_eta {self.nms_eta:g} is outside 0 to 1")
        if roisnum is None:
            return super().infer(at, boxes, scores)
        self.check(at, boxes, scores, scores_rank=2)
        at.require(roisnum.rank in (None, 1), "C1", f"roisnum is {roisnum.shape}, not 1D")
        classes, count = boxes.shape[0].meet(scores.shape[0]), boxes.shape[1].meet(scores.shape[1])
        if classes is None or count is None:
            at.refuse("C2", f"boxes {boxes.shape} and scores {scores.shape} differ in num_classes or num_boxes")
        numbers = roisnum.ints()
        if numbers is not None:
            at.require(
                count.fits(sum(numbers)), "C5", f"the sum of roisnum {list(numbers)} is not num_boxes, which is {count}"
            )
        return self.detections(boxes, roisnum.shape[0], classes, count)

    def images(
        self, boxes: np.ndarray, scores: np.ndarray, roisnum: np.ndarray | None = None
    ) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        if roisnum is None:
            yield from super().images(boxes, scores)
            return
        classes, count = scores.shape
        roisnum = roisnum.astype(np.int64)
        if roisnum.sum() != count:
            raise Refused(f"the sum of roisnum {roisnum.tolist()} is not num_boxes, which is {count}", "C5")
        # OpenVINO numbers the boxes one after the other, and within a box class by class
        places = np.arange(classes * count).reshape(count, classes).T
        ends = np.cumsum(roisnum)[:-1]
        yield from zip(*(np.split(a, ends, axis=1) for a in (boxes, scores, places)))

    def select(self, boxes: np.ndarray, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        order = self.candidates(scores, scores >= self.score_threshold)
        overlap = iou(boxes, 0 if self.normalized else 1)
        # OpenVINO also drops a box whose IoU equals the threshold, and compares a box with all boxes kept before
        taken = suppress(order, overlap, None, self._thresholds(boxes.dtype), np.less)
        return taken, scores[taken]

    def _thresholds(self, dtype: np.dtype) -> Iterator[float]:
        """Yield the IoU threshold to use after each box that is kept."""
        threshold = dtype.type(self.iou_threshold)
        while True:
            if self.nms_eta < 1 and threshold > 0.5:
                threshold = threshold * dtype.type(self.nms_eta)
            yield threshold


@op("MulticlassNms", since=8, spec="sort/multiclass-non-max-suppression-8")
class MulticlassNms8(MulticlassNms9):
    """Compute the same as MulticlassNms-9, with one list of boxes for all classes.

    C1  ``boxes`` is 3D [num_batches, num_boxes, 4], ``scores`` is 3D [num_batches, num_classes, num_boxes].
    C2  num_batches and num_boxes are the same in both.
    C3  ``nms_top_k``, ``keep_top_k`` and ``background_class`` are -1 or more, ``nms_eta`` is in [0, 1].
    C4  ``output_type`` is i32 or i64.
    """

    inputs = MulticlassNms9.inputs[:2]
