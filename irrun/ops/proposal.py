"""Proposal: the boxes of a region proposal network with the highest scores.  Spec: detection/proposal-{1,4}."""

import numpy as np

from irrun.opdef import Op, Site, Value, attr, op, ports
from irrun.ops._boxes import apart, best, clipped, moved
from irrun.ops._cast import plain
from irrun.ops._gemm import narrow
from irrun.types import Dim


@op("Proposal", since=4, spec="detection/proposal-4")
class Proposal4(Op):
    """Boxes ``[image, x0, y0, x1, y1]`` and their scores: anchors at each place, moved by deltas, without overlaps.

    Of each image ``post_nms_topn``, of which a first -1 ends those that there are.

    C1  ``class_probs`` and ``bbox_deltas`` are 4D and equal in batch, height and width; ``image_shape`` is [3] or [4].
    C2  For each of ``ratio`` and each of ``scale``, there are two channels of ``class_probs`` and four of
        ``bbox_deltas``.
    C3  ``pre_nms_topn`` and ``post_nms_topn`` are positive.
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
    framework = attr.choice("", "tensorflow", default="")
    # OpenVINO: takes inputs of different types
    inputs = ports(class_probs="float", bbox_deltas="float", image_shape="float")
    outputs = 2

    def infer(self, at: Site, class_probs: Value, bbox_deltas: Value, image_shape: Value) -> tuple[Value, ...]:
        images = self._images(at, class_probs, bbox_deltas, image_shape)
        count = images * self.post_nms_topn
        return class_probs.reshaped([count, 5]), class_probs.reshaped([count])

    def _images(self, at: Site, class_probs: Value, bbox_deltas: Value, image_shape: Value) -> Dim:
        topn = self.pre_nms_topn, self.post_nms_topn
        at.require(min(topn) >= 1, "C3", f"pre_nms_topn is {topn[0]}, post_nms_topn {topn[1]}")
        info = image_shape.shape
        at.require(
            info.rank in (None, 1) and (info[0].fits(3) or info[0].fits(4)), "C1",
            f"image_shape is {info}, not [3] or [4]",
        )  # fmt: skip
        anchors = len(self.ratio) * len(self.scale)
        maps = []
        for name, value, per_anchor in ("class_probs", class_probs, 2), ("bbox_deltas", bbox_deltas, 4):
            at.require(value.rank in (None, 4), "C1", f"{name} is {value.shape}, not 4D")
            wanted = per_anchor * anchors
            at.require(value.shape[1].fits(wanted), "C2", f"{name} is {value.shape}; {anchors} anchors take {wanted}")
            maps.append([value.shape[axis] for axis in (0, 2, 3)])
        met = [a.meet(b) for a, b in zip(*maps)]
        at.require(None not in met, "C1", f"class_probs is {class_probs.shape}, bbox_deltas {bbox_deltas.shape}")
        assert met[0] is not None
        return met[0]

    def run(self, class_probs: np.ndarray, bbox_deltas: np.ndarray, image_shape: np.ndarray) -> tuple[np.ndarray, ...]:
        scores, deltas, info = plain(class_probs), plain(bbox_deltas), plain(image_shape)
        images, channels, height, width = scores.shape
        scores = scores[:, channels // 2 :].transpose(0, 2, 3, 1)
        deltas = deltas.reshape(images, channels // 2, 4, height, width).transpose(0, 3, 4, 1, 2)
        deltas = deltas / np.repeat([self.box_coordinate_scale, self.box_size_scale], 2).astype(deltas.dtype)
        limits, places = info[:2], np.moveaxis(np.indices((height, width)), 0, -1)  # along y, x
        if self.framework != "tensorflow":  # which has y before x
            limits, places = limits[::-1], places[..., ::-1]
        boxes = np.tile(places * self.feat_stride, 2)[:, :, None] + self._anchors()
        boxes = boxes.astype(np.result_type(scores, deltas))
        if self.framework == "tensorflow":
            boxes = clipped(boxes, limits)
        with np.errstate(over="ignore", invalid="ignore"):
            boxes = moved(boxes, deltas, self._margin)
        if self.clip_before_nms:
            boxes = clipped(boxes, limits - self._margin)
        least = self.min_size * np.array([info[-1], info[2]])  # OpenVINO: along x and y, for tensorflow, too
        too_small = (boxes[..., 2:] - boxes[..., :2] + self._margin < least).any(-1)
        scores = np.where(too_small, 0, scores)  # OpenVINO: what is to be filtered out, comes last
        found = [self._of_image(n, boxes[n].reshape(-1, 4), scores[n].ravel(), limits) for n in range(images)]
        result = narrow(np.array(found).reshape(-1, 6), class_probs.dtype)
        return result[:, :5], result[:, 5]

    def _of_image(self, image: int, boxes: np.ndarray, scores: np.ndarray, limits: np.ndarray) -> np.ndarray:
        """The rows ``[image, box, score]`` of the best of these boxes."""
        places = best(scores, self.pre_nms_topn)
        places = places[apart(boxes[places], self.nms_thresh, self.post_nms_topn, self._margin)]
        boxes = boxes[places]
        if self.clip_after_nms:
            boxes = clipped(boxes, limits)
        if self.normalize:
            boxes = boxes / np.tile(limits, 2)
        found = np.zeros((self.post_nms_topn, 6), boxes.dtype)
        found[: len(places)] = np.column_stack([np.full(len(places), image), boxes, scores[places]])
        found[len(places) : len(places) + 1, 0] = -1
        return found

    @property
    def _margin(self) -> int:
        return 0 if self.framework == "tensorflow" else 1

    def _anchors(self) -> np.ndarray:
        """The boxes of a place [ratios * scales, 4], relative to it."""
        ratios, scales = np.array(self.ratio, np.float32)[:, None], np.array(self.scale, np.float32)
        widths = np.sqrt(np.float32(self.base_size**2) / ratios)
        if self.framework == "tensorflow":
            heights, centre = widths * ratios, 0
        else:
            widths = np.floor(widths + 0.5)
            heights, centre = np.floor(widths * ratios + 0.5), (self.base_size - 1) / 2
        halves = (np.stack([widths * scales, heights * scales], -1).reshape(-1, 2) - self._margin) / 2
        return np.concatenate([centre - halves, centre + halves], -1)


@op("Proposal", since=1, spec="detection/proposal-1")
class Proposal1(Proposal4):
    """As Proposal-4, without the scores.

    C1  ``class_probs`` and ``bbox_deltas`` are 4D and equal in batch, height and width; ``image_shape`` is [3] or [4].
    C2  For each of ``ratio`` and each of ``scale``, there are two channels of ``class_probs`` and four of
        ``bbox_deltas``.
    C3  ``pre_nms_topn`` and ``post_nms_topn`` are positive.
    """

    outputs = 1

    def infer(self, at: Site, class_probs: Value, bbox_deltas: Value, image_shape: Value) -> tuple[Value, ...]:
        return super().infer(at, class_probs, bbox_deltas, image_shape)[:1]

    def run(self, class_probs: np.ndarray, bbox_deltas: np.ndarray, image_shape: np.ndarray) -> tuple[np.ndarray, ...]:
        return super().run(class_probs, bbox_deltas, image_shape)[:1]
