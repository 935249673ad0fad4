"""NonMaxSuppression: the best of overlapping boxes of a class.  Spec: sort/non-max-suppression-{1,3,4,5,9}."""

from collections.abc import Iterator

import numpy as np

from irrun.diagnostics import Refused
from irrun.opdef import Site, Value, attr, op, opt, ports
from irrun.ops._nms import Overlap, Suppression, iou, soften
from irrun.types import ELEMENT_TYPES, Dim


@op("NonMaxSuppression", since=9, spec="sort/non-max-suppression-9")
class NonMaxSuppression9(Suppression):
    """Drop each box whose IoU with a better box of its class exceeds ``iou_threshold``.

    With ``soft_nms_sigma``, its score is multiplied by exp(-IoU**2 / 2 sigma) instead. The outputs are a row
    [batch, class, box] for each kept box, best first, a row [batch, class, score] for each of them, and their number.

    C1  ``boxes`` is 3D [num_batches, num_boxes, 4], ``scores`` is 3D [num_batches, num_classes, num_boxes].
    C2  num_batches and num_boxes are the same in both.
    C3  Each of the other inputs is a scalar, or 1D with one element.
    C4  ``output_type`` is i32 or i64.
    """

    box_encoding = attr.choice("corner", "center", default="corner")
    inputs = ports(
        boxes="float", scores="float", max_output_boxes_per_class=opt("int"), iou_threshold=opt("float"),
        score_threshold=opt("float"), soft_nms_sigma=opt("float"),
    )  # fmt: skip

    def overlap(self, boxes: np.ndarray) -> Overlap:
        if self.box_encoding == "center":
            center, half = boxes[:, :2], boxes[:, 2:] / 2
            return iou(np.concatenate([center - half, center + half], axis=1))
        one, other = boxes[:, :2], boxes[:, 2:]  # two opposite corners, in any order
        return iou(np.concatenate([np.minimum(one, other), np.maximum(one, other)], axis=1))

    def select(
        self, overlap: Overlap, scores: np.ndarray, limit: int, threshold: float, least: float, sigma: float
    ) -> tuple[np.ndarray, np.ndarray]:
        if sigma <= 0:
            return super().select(overlap, scores, limit, threshold, least, sigma)
        return soften(scores, scores > least, overlap, limit, lambda ious: self.weight(ious, threshold, sigma), least)

    def weight(self, ious: np.ndarray, threshold: float, sigma: float) -> np.ndarray:
        """Return the factors of the scores of boxes that have these IoUs with a better box."""
        return np.exp(-0.5 * ious * ious / sigma)


@op("NonMaxSuppression", since=5, spec="sort/no-max-suppression-5")
class NonMaxSuppression5(NonMaxSuppression9):
    """Compute the same as NonMaxSuppression-9, but apply ``iou_threshold`` also with ``soft_nms_sigma``.

    C1  ``boxes`` is 3D [num_batches, num_boxes, 4], ``scores`` is 3D [num_batches, num_classes, num_boxes].
    C2  num_batches and num_boxes are the same in both.
    C3  Each of the other inputs is a scalar, or 1D with one element.
    C4  ``output_type`` is i32 or i64.
    """

    def weight(self, ious: np.ndarray, threshold: float, sigma: float) -> np.ndarray:
        # OpenVINO's CPU plugin computes version 9 instead
        return np.where(ious <= threshold, super().weight(ious, threshold, sigma), 0)


@op("NonMaxSuppression", since=4, spec="sort/non-max-suppression-4")
class NonMaxSuppression4(NonMaxSuppression9):
    """Return a row [batch, class, box] for each box that NonMaxSuppression-9 keeps.

    The number of rows is the largest number of boxes that can be kept. Unused rows hold -1.

    C1  ``boxes`` is 3D [num_batches, num_boxes, 4], ``scores`` is 3D [num_batches, num_classes, num_boxes].
    C2  num_batches and num_boxes are the same in both.
    C3  Each of the other inputs is a scalar.
    C4  ``output_type`` is i32 or i64.
    """

    inputs = NonMaxSuppression9.inputs[:-1]
    outputs = 1
    one_element = (0,)

    def rows(self, batches: Dim, classes: Dim, boxes: Dim, limit: Dim) -> Dim:
        return boxes.min(limit) * batches * classes

    def run(
        self,
        boxes: np.ndarray,
        scores: np.ndarray,
        max_output_boxes_per_class: np.ndarray | None = None,
        iou_threshold: np.ndarray | None = None,
        *others: np.ndarray | None,
    ) -> np.ndarray:
        kept = super().run(boxes, scores, max_output_boxes_per_class, iou_threshold, *others)[0]
        limit = 0 if max_output_boxes_per_class is None else max(int(max_output_boxes_per_class.item()), 0)
        dims = (Dim(n) for n in (*scores.shape, limit))
        # OpenVINO's CPU plugin gives the rows of the kept boxes only
        rows = np.full((self.rows(*dims).lo, 3), -1, kept.dtype)
        rows[: len(kept)] = kept[: len(rows)]
        return rows


@op("NonMaxSuppression", since=3, spec="sort/non-max-suppression-3")
class NonMaxSuppression3(NonMaxSuppression4):
    """Compute the same as NonMaxSuppression-4, with at most num_boxes rows.

    C1  ``boxes`` is 3D [num_batches, num_boxes, 4], ``scores`` is 3D [num_batches, num_classes, num_boxes].
    C2  num_batches and num_boxes are the same in both.
    C3  Each of the other inputs is a scalar.
    C4  ``output_type`` is i32 or i64.
    """

    def rows(self, batches: Dim, classes: Dim, boxes: Dim, limit: Dim) -> Dim:
        return boxes.min(limit * classes)

    def doubts(self, at: Site, boxes: Value, *others: Value | None) -> Iterator[Refused]:
        batches = boxes.shape.dims[0] if boxes.shape.dims else None
        if batches is not None and batches.lo > 1:
            message = f"boxes {boxes.shape} has {batches} batches, but the output has rows for one batch only"
            help = 'write version="opset4", which has rows for all of them, or newer'
            yield Refused(message + ": the kept boxes of the last batches may be missing", help=help, code="IR406")


@op("NonMaxSuppression", since=1, spec="sort/non-max-suppression-1")
class NonMaxSuppression1(NonMaxSuppression3):
    """Compute the same as NonMaxSuppression-3, with indices of i64.

    C1  ``boxes`` is 3D [num_batches, num_boxes, 4], ``scores`` is 3D [num_batches, num_classes, num_boxes].
    C2  num_batches and num_boxes are the same in both.
    C3  Each of the other inputs is a scalar.
    """

    attributes = {k: v for k, v in NonMaxSuppression3.attributes.items() if k != "output_type"}
    output_type = ELEMENT_TYPES["i64"]
