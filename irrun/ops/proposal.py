"""Proposal: the best boxes around the points of a feature map.  Spec: detection/proposal-{1,4}."""

from itertools import repeat
from typing import Final

import numpy as np

from irrun.kernels.matmul import narrow, wide
from irrun.opdef import Op, Site, Value, attr, op, ports
from irrun.ops._nms import best_first, iou, suppress
from irrun.types import Dim, PartialShape

_POSITIVE: Final = (
    "base_size", "pre_nms_topn", "post_nms_topn", "nms_thresh", "feat_stride", "min_size", "box_size_scale",
    "box_coordinate_scale",
)  # fmt: skip


@op("Proposal", since=4, spec="detection/proposal-4")
class Proposal4(Op):
    """Return a row [batch, x0, y0, x1, y1] for each box, best first, and the probabilities of the boxes.

    If a batch element has fewer boxes than rows, a row with batch -1 follows the last box.

    C1  ``class_probs`` and ``bbox_deltas`` are 4D, ``image_shape`` is 1D with 3 or 4 elements.
    C2  batch_size, H and W are the same in ``class_probs`` [batch_size, 2*K, H, W] and ``bbox_deltas``
        [batch_size, 4*K, H, W].
    C3  K, the number of anchors, is the length of ``ratio`` times the length of ``scale``.
    C4  ``base_size``, ``pre_nms_topn``, ``post_nms_topn``, ``nms_thresh``, ``feat_stride``, ``min_size``,
        ``box_size_scale`` and ``box_coordinate_scale`` are positive.
    """

    base_size = attr.int()
    pre_nms_topn = attr.int()
    post_nms_topn = attr.int()
    nms_thresh = attr.float()
    feat_stride = attr.int()
    min_size = attr.int()
    ratio = attr.floats()
    scale = attr.floats()
    clip_before_nms = attr.bool(True)
    clip_after_nms = attr.bool(False)
    normalize = attr.bool(False)
    box_size_scale = attr.float(1.0)
    box_coordinate_scale = attr.float(1.0)
    framework = attr.choice("", "tensorflow", default="", also={"caffe": ""})
    inputs = ports(class_probs="T", bbox_deltas="T", image_shape="T")
    types = {"T": "float"}
    outputs = 2

    def infer(self, at: Site, class_probs: Value, bbox_deltas: Value, image_shape: Value) -> tuple[Value, ...]:
        for name in _POSITIVE:
            number = getattr(self, name)
            at.require(number > 0, "C4", f"{name} is {number:g}, not positive")
        for name, value in (("class_probs", class_probs), ("bbox_deltas", bbox_deltas)):
            at.require(value.rank in (None, 4), "C1", f"{name} is {value.shape}, not 4D")
        size = image_shape.shape.count()
        fits = image_shape.rank in (None, 1) and (size.fits(3) or size.fits(4))
        at.require(fits, "C1", f"image_shape is {image_shape.shape}, not 1D of 3 or 4 elements")
        count = len(self.ratio) * len(self.scale)
        layout = PartialShape.of([Dim.unknown(), 0, Dim.unknown(), Dim.unknown()])
        for name, value, channels in (("class_probs", class_probs, 2 * count), ("bbox_deltas", bbox_deltas, 4 * count)):
            at.require(
                value.shape[1].fits(channels),
                "C3",
                f"{name} {value.shape} does not have {channels} channels for {count} anchors",
            )
            both = layout.meet(value.shape if value.shape.dims is None else value.shape.replace(1, 0))
            at.require(
                both is not None,
                "C2",
                f"class_probs {class_probs.shape} and bbox_deltas {bbox_deltas.shape} differ in batch, H or W",
            )
            layout = both or layout
        rows = layout[0] * self.post_nms_topn
        return class_probs.reshaped([rows, 5]), class_probs.reshaped([rows])

    @property
    def _offset(self) -> int:
        """The pixels to add to a side: in Caffe, a box includes its last pixel."""
        return 0 if self.framework == "tensorflow" else 1

    def run(self, class_probs: np.ndarray, bbox_deltas: np.ndarray, image_shape: np.ndarray) -> tuple[np.ndarray, ...]:
        work = wide(class_probs.dtype)
        batches, count = len(class_probs), class_probs.shape[1] // 2
        # [batch, H, W, anchor]
        scores = class_probs[:, count:].transpose(0, 2, 3, 1).astype(work)
        deltas = bbox_deltas.reshape(batches, count, 4, *bbox_deltas.shape[2:]).transpose(0, 3, 4, 1, 2).astype(work)
        image, scales = self._image(image_shape.astype(work)), image_shape[2:].astype(work)
        boxes = self._boxes(deltas, image)
        least = self.min_size * np.array([scales[-1], scales[0]], work)
        large = np.all(boxes[..., 2:] - boxes[..., :2] + self._offset >= least, axis=-1)
        rows = np.zeros((batches, self.post_nms_topn, 5), work)
        probabilities = np.zeros((batches, self.post_nms_topn), work)
        for batch in range(batches):
            selected = self._select(boxes[batch].reshape(-1, 4), scores[batch].ravel(), large[batch].ravel())
            kept = boxes[batch].reshape(-1, 4)[selected]
            if self.clip_after_nms:
                kept = kept.clip(0, image)
            if self.normalize:
                kept = kept / image
            rows[batch, : len(kept), 0] = batch
            rows[batch, : len(kept), 1:] = kept
            probabilities[batch, : len(kept)] = scores[batch].ravel()[selected]
            rows[batch, len(kept) : len(kept) + 1, 0] = -1
        return narrow(rows.reshape(-1, 5), class_probs.dtype), narrow(probabilities.ravel(), class_probs.dtype)

    def _image(self, image_shape: np.ndarray) -> np.ndarray:
        """Return the limits of a box: twice (width, height), or twice (height, width) for tensorflow."""
        # in OpenVINO, a box of tensorflow is [y0, x0, y1, x1], but its reference kernel uses the height as the width
        sizes = image_shape[:2] if self.framework == "tensorflow" else image_shape[1::-1]
        return np.tile(sizes, 2)

    def _boxes(self, deltas: np.ndarray, image: np.ndarray) -> np.ndarray:
        """Return the boxes [batch, H, W, anchor, 4], in pixels: ``deltas`` applied to the anchors at each point."""
        rows, columns = (np.arange(n, dtype=deltas.dtype) * self.feat_stride for n in deltas.shape[1:3])
        y, x = np.meshgrid(rows, columns, indexing="ij")
        if self.framework == "tensorflow":
            x, y = y, x
        boxes = np.stack([x, y, x, y], axis=-1)[:, :, None] + self._anchors().astype(deltas.dtype)
        if self.framework == "tensorflow":
            boxes = boxes.clip(0, image)
        size = boxes[..., 2:] - boxes[..., :2] + self._offset
        center = boxes[..., :2] + size / 2
        with np.errstate(over="ignore"):
            center = deltas[..., :2] / self.box_coordinate_scale * size + center
            half = np.exp(deltas[..., 2:] / self.box_size_scale) * size / 2
        boxes = np.concatenate([center - half, center + half], axis=-1)
        return boxes.clip(0, image - self._offset) if self.clip_before_nms else boxes

    def _anchors(self) -> np.ndarray:
        """Return the anchors [anchor, 4]: the boxes around the first point of the feature map."""
        ratio = np.array(self.ratio)[:, None]
        width = np.sqrt(self.base_size**2 / ratio)
        if self.framework != "tensorflow":
            width = np.floor(width + 0.5)
        height = width * ratio
        if self.framework != "tensorflow":
            height = np.floor(height + 0.5)
        sides = np.stack([width * self.scale, height * self.scale], axis=-1).reshape(-1, 2)
        half = (sides - self._offset) / 2
        center = 0 if self.framework == "tensorflow" else (self.base_size - 1) / 2
        return np.concatenate([center - half, center + half], axis=-1)

    def _select(self, boxes: np.ndarray, scores: np.ndarray, large: np.ndarray) -> np.ndarray:
        """Return the indices of the large boxes that non-maximum suppression keeps, best first."""
        order = best_first(scores, large)[: self.pre_nms_topn]
        overlap = iou(boxes, self._offset, apart=True)
        return suppress(order, overlap, self.post_nms_topn, repeat(self.nms_thresh))


@op("Proposal", since=1, spec="detection/proposal-1")
class Proposal1(Proposal4):
    """Compute the same as Proposal-4, without the probabilities.

    C1  ``class_probs`` and ``bbox_deltas`` are 4D, ``image_shape`` is 1D with 3 or 4 elements.
    C2  batch_size, H and W are the same in ``class_probs`` [batch_size, 2*K, H, W] and ``bbox_deltas``
        [batch_size, 4*K, H, W].
    C3  K, the number of anchors, is the length of ``ratio`` times the length of ``scale``.
    C4  ``base_size``, ``pre_nms_topn``, ``post_nms_topn``, ``nms_thresh``, ``feat_stride``, ``min_size``,
        ``box_size_scale`` and ``box_coordinate_scale`` are positive.
    """

    outputs = 1

    def infer(self, at: Site, class_probs: Value, bbox_deltas: Value, image_shape: Value) -> tuple[Value, ...]:
        return super().infer(at, class_probs, bbox_deltas, image_shape)[:1]

    def run(self, class_probs: np.ndarray, bbox_deltas: np.ndarray, image_shape: np.ndarray) -> tuple[np.ndarray, ...]:
        return super().run(class_probs, bbox_deltas, image_shape)[:1]
