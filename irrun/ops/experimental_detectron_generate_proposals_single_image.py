"""ExperimentalDetectronGenerateProposalsSingleImage: regions of interest.

Spec: detection/experimental-detectron-generate-proposals-single-image-6.
"""

from itertools import repeat

import numpy as np

from irrun.kernels.cast import plain
from irrun.kernels.matmul import narrow
from irrun.opdef import Op, Site, Value, attr, op, ports
from irrun.ops._boxes import common_dim, proposals
from irrun.ops._nms import best_first, iou, suppress


@op(
    "ExperimentalDetectronGenerateProposalsSingleImage",
    since=6,
    spec="detection/experimental-detectron-generate-proposals-single-image-6",
)
class ExperimentalDetectronGenerateProposalsSingleImage(Op):
    """Apply deltas to anchors, and return the best boxes that do not overlap, and their scores.

    Zeros follow the last box.

    C1  ``im_info`` is [3], ``anchors`` is [n, 4], ``deltas`` and ``scores`` are 3D.
    C2  If ``scores`` is [anchors, height, width], ``deltas`` is [anchors * 4, height, width], and n is
        height * width * anchors.
    C3  ``pre_nms_count``, ``post_nms_count``, ``min_size`` and ``nms_threshold`` are not negative.
    """

    min_size = attr.float()
    nms_threshold = attr.float()
    pre_nms_count = attr.int()
    post_nms_count = attr.int()
    inputs = ports(im_info="T", anchors="T", deltas="T", scores="T")
    types = {"T": "float"}
    outputs = 2

    def infer(self, at: Site, im_info: Value, anchors: Value, deltas: Value, scores: Value) -> tuple[Value, Value]:
        info, of_anchors, of_deltas, of_scores = im_info.shape, anchors.shape, deltas.shape, scores.shape
        at.require(info.rank in (None, 1) and info[0].fits(3), "C1", f"im_info is {info}, not [3]")
        fits = of_anchors.rank in (None, 2) and of_anchors[1].fits(4)
        at.require(fits, "C1", f"anchors is {of_anchors}, not [n, 4]")
        for name, shape in ("deltas", of_deltas), ("scores", of_scores):
            at.require(shape.rank in (None, 3), "C1", f"{name} is {shape}, not 3D")
        rows, columns = (common_dim(of_deltas[axis], of_scores[axis]) for axis in (1, 2))
        depth = common_dim(of_deltas[0], of_scores[0] * 4)
        count = common_dim(of_anchors[0] * 4, of_deltas.count(), of_scores.count() * 4)
        message = f"anchors {of_anchors}, deltas {of_deltas} and scores {of_scores} do not fit together"
        at.require(None not in (depth, rows, columns, count), "C2", message)
        for name in ("pre_nms_count", "post_nms_count", "min_size", "nms_threshold"):
            at.require(getattr(self, name) >= 0, "C3", f"{name} {getattr(self, name):g} is negative")
        return scores.reshaped([self.post_nms_count, 4]), scores.reshaped([self.post_nms_count])

    def run(
        self, im_info: np.ndarray, anchors: np.ndarray, deltas: np.ndarray, scores: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        grid = plain(anchors).reshape(*scores.shape[1:], len(scores), 4)
        limits, least = plain(im_info)[1::-1], np.full(2, self.min_size)
        boxes, ranking, large = proposals(grid, plain(deltas), plain(scores), limits, least, 1)
        order = best_first(ranking, large)[: self.pre_nms_count]
        # OpenVINO computes the IoU without the margin
        places = suppress(order, iou(boxes), self.post_nms_count, repeat(self.nms_threshold))
        result = np.zeros((self.post_nms_count, 5), ranking.dtype)
        result[: len(places)] = np.column_stack([boxes[places], ranking[places]])
        result = narrow(result, scores.dtype)
        return result[:, :4], result[:, 4]
