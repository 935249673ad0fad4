"""ExperimentalDetectronGenerateProposalsSingleImage: regions of interest.

Spec: detection/experimental-detectron-generate-proposals-single-image-6.
"""

from itertools import repeat

import numpy as np

from irrun.kernels.cast import plain
from irrun.kernels.matmul import narrow
from irrun.opdef import Op, Site, Value, attr, op, ports
from irrun.ops._boxes import agreed, proposals
from irrun.ops._nms import iou, suppress


@op(
    "ExperimentalDetectronGenerateProposalsSingleImage",
    since=6,
    spec="detection/experimental-detectron-generate-proposals-single-image-6",
)
class ExperimentalDetectronGenerateProposalsSingleImage(Op):
    """The best anchors, moved by deltas, that do not overlap; their scores; zeros follow.

    C1  ``im_info`` is [3], ``anchors`` are [n, 4], ``deltas`` and ``scores`` 3D.
    C2  For ``scores`` [anchors, height, width], ``deltas`` are [anchors * 4, height, width], and there are
        height * width * anchors ``anchors``.
    C3  ``pre_nms_count`` and ``post_nms_count`` are not negative.
    """

    min_size = attr.float()
    nms_threshold = attr.float()
    pre_nms_count = attr.int()
    post_nms_count = attr.int()
    inputs = ports(im_info="T", anchors="T", deltas="T", scores="T")
    types = {"T": "float"}
    outputs = 2

    def infer(self, at: Site, im_info: Value, anchors: Value, deltas: Value, scores: Value) -> tuple[Value, Value]:
        info, rows, moves, found = im_info.shape, anchors.shape, deltas.shape, scores.shape
        at.require(info.rank in (None, 1) and info[0].fits(3), "C1", f"im_info is {info}, not [3]")
        at.require(rows.rank in (None, 2) and rows[1].fits(4), "C1", f"anchors is {rows}, not [n, 4]")
        for name, shape in ("deltas", moves), ("scores", found):
            at.require(shape.rank in (None, 3), "C1", f"{name} is {shape}, not 3D")
        dims = [agreed(moves[0], found[0] * 4), agreed(moves[1], found[1]), agreed(moves[2], found[2])]
        count = agreed(rows[0] * 4, moves.count(), found.count() * 4)
        at.require(None not in (*dims, count), "C2", f"anchors is {rows}, deltas {moves}, scores {found}")
        pre, post = self.pre_nms_count, self.post_nms_count
        at.require(pre >= 0 and post >= 0, "C3", f"pre_nms_count is {pre}, post_nms_count {post}")
        return scores.reshaped([post, 4]), scores.reshaped([post])

    def run(
        self, im_info: np.ndarray, anchors: np.ndarray, deltas: np.ndarray, scores: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        grid = plain(anchors).reshape(*scores.shape[1:], len(scores), 4)
        limits, least = plain(im_info)[1::-1], np.full(2, self.min_size)
        boxes, found, large = proposals(grid, plain(deltas), plain(scores), limits, least, 1)
        found = np.where(large, found, 0)  # OpenVINO: boxes that are too small come last instead of being removed
        order = np.argsort(-found, kind="stable")[: self.pre_nms_count]
        # OpenVINO: computes the IoU without the margin
        places = suppress(order, iou(boxes), self.post_nms_count, repeat(self.nms_threshold))
        result = np.zeros((self.post_nms_count, 5), found.dtype)
        result[: len(places)] = np.column_stack([boxes[places], found[places]])
        result = narrow(result, scores.dtype)
        return result[:, :4], result[:, 4]
