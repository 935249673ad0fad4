"""ExperimentalDetectronDetectionOutput: the best boxes of each class.

Spec: detection/experimental-detectron-detection-output-6.
"""

from itertools import repeat

import numpy as np

from irrun.kernels.cast import plain
from irrun.kernels.matmul import narrow
from irrun.opdef import Op, Site, Value, attr, op, ports
from irrun.ops._boxes import apply_deltas, common_dim
from irrun.ops._nms import best_first, iou, suppress
from irrun.types import ELEMENT_TYPES


@op("ExperimentalDetectronDetectionOutput", since=6, spec="detection/experimental-detectron-detection-output-6")
class ExperimentalDetectronDetectionOutput(Op):
    """Apply deltas to regions, and return the best boxes of each class that do not overlap.

    The outputs are the boxes, their classes and their scores. Zeros follow the last box.

    C1  ``rois`` is [n, 4], ``deltas`` [n, num_classes * 4], ``scores`` [n, num_classes] and ``im_info`` [1, 3].
    C2  ``deltas`` and ``scores`` have a row for each region.
    C3  ``deltas_weights`` has four entries.
    C4  ``num_classes``, ``post_nms_count``, ``max_detections_per_image``, the thresholds and ``deltas_weights`` are not
        negative.
    """

    score_threshold = attr.float()
    nms_threshold = attr.float()
    num_classes = attr.int()
    post_nms_count = attr.int()
    max_detections_per_image = attr.int()
    # OpenVINO ignores this attribute and the size of the image
    class_agnostic_box_regression = attr.bool(False)
    max_delta_log_wh = attr.float()
    deltas_weights = attr.floats()
    inputs = ports(rois="T", deltas="T", scores="T", im_info="T")
    types = {"T": "float"}
    outputs = 3

    def infer(self, at: Site, rois: Value, deltas: Value, scores: Value, im_info: Value) -> tuple[Value, Value, Value]:
        for name in ("num_classes", "post_nms_count", "max_detections_per_image", "score_threshold", "nms_threshold"):
            at.require(getattr(self, name) >= 0, "C4", f"{name} {getattr(self, name):g} is negative")
        weights = list(self.deltas_weights)
        at.require(all(weight >= 0 for weight in weights), "C4", f"deltas_weights {weights} has a negative entry")
        tables = ("rois", rois, 4), ("deltas", deltas, self.num_classes * 4), ("scores", scores, self.num_classes)
        for name, value, columns in tables:
            fits = value.rank in (None, 2) and value.shape[1].fits(columns)
            at.require(fits, "C1", f"{name} is {value.shape}, not [n, {columns}]")
        info = im_info.shape
        at.require(
            info.rank in (None, 2) and info[0].fits(1) and info[1].fits(3), "C1", f"im_info is {info}, not [1, 3]"
        )
        count = common_dim(rois.shape[0], deltas.shape[0], scores.shape[0])
        message = f"rois {rois.shape}, deltas {deltas.shape} and scores {scores.shape} have different numbers of rows"
        at.require(count is not None, "C2", message)
        at.require(len(self.deltas_weights) == 4, "C3", f"deltas_weights has length {len(self.deltas_weights)}, not 4")
        most = self.max_detections_per_image
        return rois.reshaped([most, 4]), rois.reshaped([most]).typed(ELEMENT_TYPES["i32"]), rois.reshaped([most])

    def run(
        self, rois: np.ndarray, deltas: np.ndarray, scores: np.ndarray, im_info: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        boxes, probabilities = plain(rois), plain(scores)
        weighted = plain(deltas).reshape(len(rois), self.num_classes, 4) / np.array(self.deltas_weights, boxes.dtype)
        sides = boxes[:, 2:] - boxes[:, :2]
        boxes = apply_deltas(boxes[:, np.newaxis], weighted, 1, self.max_delta_log_wh)
        boxes = np.maximum(boxes, 0)  # OpenVINO clips at 0 only, the specification to the image
        candidates = (probabilities > self.score_threshold) & (sides[:, :1] > 0) & (sides[:, 1:] > 0)
        kept = []
        for label in range(1, self.num_classes):  # class 0 is the background
            order = best_first(probabilities[:, label], candidates[:, label])
            overlap = iou(boxes[:, label], 1, apart=True)
            kept += [
                (place, label) for place in suppress(order, overlap, self.post_nms_count, repeat(self.nms_threshold))
            ]
        places, labels = np.array(kept, np.int64).reshape(-1, 2).T
        most = self.max_detections_per_image
        if len(kept) > most:
            order = np.lexsort([places, -probabilities[places, labels]])[:most]
            places, labels = places[order], labels[order]
        detections, classes = np.zeros((most, 5), boxes.dtype), np.zeros(most, np.int32)
        detections[: len(places)] = np.column_stack([boxes[places, labels], probabilities[places, labels]])
        classes[: len(places)] = labels
        detections = narrow(detections, rois.dtype)
        return detections[:, :4], classes, detections[:, 4]
