"""GenerateProposals: regions of interest, of each image of a batch.  Spec: detection/generate-proposals-9."""

from collections.abc import Iterator

import numpy as np

from irrun.kernels.cast import cast, plain
from irrun.opdef import Op, Site, Value, attr, op, ports
from irrun.ops._boxes import common_dim, proposals
from irrun.ops._nms import iou, suppress
from irrun.types import Dim, ElementType, PartialShape


@op("GenerateProposals", since=9, spec="detection/generate-proposals-9")
class GenerateProposals(Op):
    """Apply deltas to anchors, and return the best boxes of each image that do not overlap.

    The outputs are the boxes, their scores, and the number of boxes of each image.

    C1  ``im_info`` is [images, 3] or [images, 4]. The other inputs are 4D, and an anchor has four numbers.
    C2  If ``anchors`` is [height, width, anchors, 4], ``boxesdeltas`` is [images, anchors * 4, height, width] and
        ``scores`` is [images, anchors, height, width].
    C3  ``pre_nms_count``, ``post_nms_count``, ``min_size`` and ``nms_threshold`` are not negative, ``nms_eta`` is
        between 0 and 1.
    C4  ``roi_num_type`` is i32 or i64.
    """

    min_size = attr.float()
    nms_threshold = attr.float()
    pre_nms_count = attr.int()
    post_nms_count = attr.int()
    normalized = attr.bool(True)
    nms_eta = attr.float(1.0)
    roi_num_type = attr.element_type("i64")
    inputs = ports(im_info="T", anchors="T", boxesdeltas="T", scores="T")
    types = {"T": "float"}
    outputs = 3

    def infer(
        self, at: Site, im_info: Value, anchors: Value, boxesdeltas: Value, scores: Value
    ) -> tuple[Value, Value, Value]:
        info, grid, of_deltas, of_scores = im_info.shape, anchors.shape, boxesdeltas.shape, scores.shape
        is_info = info.rank in (None, 2) and (info[1].fits(3) or info[1].fits(4))
        at.require(is_info, "C1", f"im_info is {info}, not [images, 3] or [images, 4]")
        for name, shape in ("anchors", grid), ("boxesdeltas", of_deltas), ("scores", of_scores):
            at.require(shape.rank in (None, 4), "C1", f"{name} is {shape}, not 4D")
        at.require(grid[3].fits(4), "C1", f"the last dim of anchors {grid} is {grid[3]}, not 4")
        counts = common_dim(grid[2], of_scores[1]), common_dim(grid[2] * 4, of_scores[1] * 4, of_deltas[1])
        sides = common_dim(grid[0], of_deltas[2], of_scores[2]), common_dim(grid[1], of_deltas[3], of_scores[3])
        images = common_dim(info[0], of_deltas[0], of_scores[0])
        at.require(
            images is not None and None not in (*counts, *sides),
            "C2",
            f"anchors {grid}, boxesdeltas {of_deltas}, scores {of_scores} and im_info {info} do not fit together",
        )
        assert images is not None
        for name in ("pre_nms_count", "post_nms_count", "min_size", "nms_threshold"):
            at.require(getattr(self, name) >= 0, "C3", f"{name} {getattr(self, name):g} is negative")
        at.require(0 <= self.nms_eta <= 1, "C3", f"nms_eta {self.nms_eta:g} is outside 0 to 1")  # OpenVINO takes only 1
        at.require(
            self.roi_num_type.name in ("i32", "i64"), "C4", f"roi_num_type is {self.roi_num_type}, not i32 or i64"
        )
        rois = Dim(0, (images * self.post_nms_count).hi)
        number = Value(self.roi_num_type, PartialShape((images,)))
        return im_info.reshaped([rois, 4]), im_info.reshaped([rois]), number

    def run(
        self, im_info: np.ndarray, anchors: np.ndarray, boxesdeltas: np.ndarray, scores: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        arrays = [
            plain(x).astype(np.result_type(np.float32, plain(x))) for x in (im_info, anchors, boxesdeltas, scores)
        ]
        rows = [self._of_image(arrays[1], *of_image) for of_image in zip(arrays[0], arrays[2], arrays[3])]
        number = np.array([len(row) for row in rows], self.roi_num_type.dtype)
        element_type = ElementType.of(im_info.dtype)
        assert element_type is not None
        proposed = cast(np.concatenate([np.zeros((0, 5), np.float32), *rows]), element_type)
        return proposed[:, :4], proposed[:, 4], number

    def _of_image(self, anchors: np.ndarray, info: np.ndarray, deltas: np.ndarray, scores: np.ndarray) -> np.ndarray:
        """Return the rows ``[box, score]`` of one image."""
        margin = 0 if self.normalized else 1
        least = self.min_size * np.array([info[-1], info[2]])
        boxes, scores, large = proposals(anchors, deltas, scores, info[1::-1], least, margin)
        order = np.argsort(-scores, kind="stable")[: self.pre_nms_count]
        overlap = iou(boxes, margin, apart=True)
        places = suppress(order[large[order]], overlap, self.post_nms_count, self._thresholds())
        return np.column_stack([boxes[places], scores[places]])

    def _thresholds(self) -> Iterator[float]:
        """Yield the IoU threshold to use after each box that is taken."""
        threshold = self.nms_threshold
        while True:
            if threshold > 0.5:
                threshold *= self.nms_eta
            yield threshold
