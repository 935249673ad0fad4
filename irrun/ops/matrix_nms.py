"""MatrixNms: overlapping boxes lower each other's scores, all at once.  Spec: sort/matrix-non-max-suppression-8."""

import numpy as np

from irrun.opdef import attr, op, ports
from irrun.ops._detections import Detections
from irrun.ops._nms import iou


@op("MatrixNms", since=8, spec="sort/matrix-non-max-suppression-8")
class MatrixNms(Detections):
    """Lower the scores of boxes that overlap better boxes, and keep the boxes whose score stays high enough.

    The more a box overlaps better boxes of its class, the more its score is lowered. A better box counts less if it
    overlaps a still better one itself. A box is kept if its new score is above ``post_threshold``. The outputs are a
    row [class, score, xmin, ymin, xmax, ymax] for each kept box, its index, and the number of kept boxes of each batch
    element.

    C1  ``boxes`` is 3D [num_batches, num_boxes, 4], ``scores`` is 3D [num_batches, num_classes, num_boxes].
    C2  num_batches and num_boxes are the same in both.
    C3  ``nms_top_k``, ``keep_top_k`` and ``background_class`` are -1 or more.
    C4  ``output_type`` is i32 or i64.
    """

    decay_function = attr.choice("gaussian", "linear", default="linear")
    gaussian_sigma = attr.float(2.0)
    post_threshold = attr.float(0.0)
    inputs = ports(boxes="T", scores="T")
    by_class_in_batch = False  # OpenVINO sorts by class only across batches

    def select(self, boxes: np.ndarray, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        order = self.candidates(scores, scores > self.score_threshold)
        overlap = iou(boxes, 0 if self.normalized else 1, apart=True)
        if not order.size:
            return order, scores[order]
        # row i, column j: the IoU of box j with the better box i
        ious = np.triu(np.stack([overlap(one, order) for one in order]), 1)
        worst = ious.max(axis=0)[:, None]
        if self.decay_function == "gaussian":
            decay = np.exp((worst * worst - ious * ious) * self.gaussian_sigma)
        else:
            decay = (1 - ious) / (1 - worst + 1e-10)
        better = np.tri(len(order), k=-1, dtype=bool).T
        scores = scores[order] * decay.min(axis=0, initial=1, where=better)
        kept = scores > self.post_threshold
        return order[kept], scores[kept]
