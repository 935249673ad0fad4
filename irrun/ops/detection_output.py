"""DetectionOutput: the boxes that an SSD detects.  Spec: detection/detectionoutput-{1,8}."""

from itertools import repeat

import numpy as np

from irrun.kernels.matmul import narrow, wide
from irrun.opdef import Op, Site, Value, attr, op, opt, ports
from irrun.ops._nms import best_first, iou, suppress
from irrun.types import Dim

_CENTER_SIZE, _CORNER = "caffe.PriorBoxParameter.CENTER_SIZE", "caffe.PriorBoxParameter.CORNER"


@op("DetectionOutput", since=8, spec="detection/detectionoutput-8")
class DetectionOutput8(Op):
    """Return a row [batch, class, confidence, xmin, ymin, xmax, ymax] for each detection.

    A row whose batch is -1 follows the last detection.

    C1  ``box_logits``, ``class_preds`` and the additional inputs are 2D, ``proposals`` is 3D.
    C2  The batch size is the same in all inputs. In ``proposals``, it may also be 1.
    C3  ``proposals`` has two rows, boxes and variances. With ``variance_encoded_in_target``, it has only the first.
    C4  For each prior box there are 4 logits (of each class, unless ``share_location``), num_classes predictions,
        4 numbers in ``proposals`` (5 unless ``normalized``) and 2 additional predictions.
    C5  Either both additional inputs are connected, or neither is.
    C6  ``keep_top_k`` has at least one entry.
    C7  ``input_height`` and ``input_width`` are positive, unless ``normalized`` makes them unused.
    C8  ``objectness_score`` is not negative.
    """

    background_label_id = attr.int(0)
    top_k = attr.int(-1)
    variance_encoded_in_target = attr.bool(False)
    keep_top_k = attr.ints()
    code_type = attr.choice(_CENTER_SIZE, _CORNER, default=_CORNER)
    share_location = attr.bool(True)
    nms_threshold = attr.float()
    confidence_threshold = attr.float(0.0)
    clip_after_nms = attr.bool(False)
    clip_before_nms = attr.bool(False)
    decrease_label_id = attr.bool(False)
    normalized = attr.bool(False)
    input_height = attr.int(1)
    input_width = attr.int(1)
    objectness_score = attr.float(0.0)
    inputs = ports(
        box_logits="T", class_preds="T", proposals="T_PRIOR", additional_class_preds=opt("T"),
        additional_box_preds=opt("T"),
    )  # fmt: skip
    types = {"T": "float", "T_PRIOR": "float"}  # OpenVINO allows another type for proposals
    num_classes: int | None = None

    def infer(
        self,
        at: Site,
        box_logits: Value,
        class_preds: Value,
        proposals: Value,
        additional_class_preds: Value | None = None,
        additional_box_preds: Value | None = None,
    ) -> Value:
        at.require(
            (additional_class_preds is None) == (additional_box_preds is None),
            "C5",
            "only one of the two additional inputs is connected",
        )
        at.require(len(self.keep_top_k) > 0, "C6", "keep_top_k is empty")
        for name in ("input_height", "input_width"):
            size = getattr(self, name)
            at.require(self.normalized or size > 0, "C7", f"{name} is {size}, and normalized is false")
        at.require(self.objectness_score >= 0, "C8", f"objectness_score {self.objectness_score:g} is negative")
        if self.num_classes is not None:
            at.require(self.num_classes > 0, "C9", f"num_classes is {self.num_classes}, not positive")
        values = (box_logits, class_preds, proposals, additional_class_preds, additional_box_preds)
        named = {port.name: value for port, value in zip(self.inputs, values) if value is not None}
        batch = Dim.unknown()
        for name, value in named.items():
            rank = 3 if name == "proposals" else 2
            at.require(value.rank in (None, rank), "C1", f"{name} is {value.shape}, not {rank}D")
            if name != "proposals":
                both = batch.meet(value.shape[0])
                at.require(both is not None, "C2", f"{name} is {value.shape}, but the batch size is {batch}")
                batch = both or batch
        same_batch = proposals.shape[0].fits(1) or proposals.shape[0].meet(batch) is not None
        at.require(same_batch, "C2", f"proposals is {proposals.shape}, but the batch size is {batch}")
        rows = 1 if self.variance_encoded_in_target else 2
        at.require(
            proposals.shape[1].fits(rows),
            "C3",
            f"proposals {proposals.shape} has {proposals.shape[1]} rows, not {rows}",
        )
        priors, classes = self._counts(at, named)
        return box_logits.reshaped([1, 1, batch * self._most(priors, classes), 7])

    def _counts(self, at: Site, named: dict[str, Value]) -> tuple[Dim, Dim]:
        """Return the numbers of prior boxes and of classes, which follow from the sizes of the inputs."""
        priors = Dim.unknown()
        classes = Dim.unknown() if self.num_classes is None else Dim(self.num_classes)
        each = {
            "box_logits": 4, "class_preds": 1, "proposals": self._prior_size, "additional_class_preds": 2,
            "additional_box_preds": 4,
        }  # fmt: skip
        by_class = {"class_preds"} if self.share_location else {"class_preds", "box_logits", "additional_box_preds"}
        # first the inputs whose size does not depend on the number of classes, then those that determine it
        for name in sorted(named, key=lambda name: name in by_class):
            shape = named[name].shape
            total = shape[-1] if shape.dims else Dim.unknown()
            factor = classes * each[name] if name in by_class else Dim(each[name])
            both = total.meet(priors * factor)
            at.require(
                both is not None, "C4", f"{name} {shape} does not fit {priors} prior boxes and {classes} classes"
            )
            if factor.is_static and total.is_static:
                quotient = _quotient(total.lo, factor.lo)
                at.require(quotient is not None, "C4", f"the last dim of {name} {shape} is not divisible by {factor}")
                priors = Dim(quotient or 0)
            elif name in by_class and total.is_static and priors.is_static:
                quotient = _quotient(total.lo, priors.lo * each[name])
                at.require(
                    quotient is not None,
                    "C4",
                    f"the last dim of {name} {shape} is not divisible by {priors * each[name]}",
                )
                classes = Dim(quotient or 0)
        return priors, classes

    @property
    def _prior_size(self) -> int:
        """The elements of a prior box in ``proposals``: 4 coordinates, after an image index unless ``normalized``."""
        return 4 if self.normalized else 5

    def _most(self, priors: Dim, classes: Dim) -> Dim:
        """Return the number of output rows for each element of the batch."""
        if self.keep_top_k[0] > 0:
            return Dim(self.keep_top_k[0])
        if self.keep_top_k[0] == -1 and self.top_k > 0:
            return classes * self.top_k
        return priors * classes

    def run(
        self,
        box_logits: np.ndarray,
        class_preds: np.ndarray,
        proposals: np.ndarray,
        additional_class_preds: np.ndarray | None = None,
        additional_box_preds: np.ndarray | None = None,
    ) -> np.ndarray:
        work, batch = wide(box_logits.dtype), len(box_logits)
        count = proposals.shape[2] // self._prior_size
        classes = self.num_classes or class_preds.shape[1] // max(count, 1)
        places = (batch, count, 1 if self.share_location else classes, 4)
        scores = class_preds.astype(work, copy=False).reshape(batch, count, classes)
        boxes, variances = self._priors(proposals.astype(work, copy=False), count)
        if additional_class_preds is not None and additional_box_preds is not None:
            objects = additional_class_preds.reshape(batch, count, 2)[..., 1:]
            nothing = (np.arange(classes) == self.background_label_id).astype(work)
            scores = np.where(objects >= self.objectness_score, scores, nothing)
            boxes = self._decoded(boxes, variances, additional_box_preds.astype(work, copy=False).reshape(places))
        boxes = self._decoded(boxes, variances, box_logits.astype(work, copy=False).reshape(places))
        # OpenVINO's CPU plugin ends the list at a prior box with the image index -1, as in the output of Proposal
        if not self.normalized:
            ended = np.logical_or.accumulate(proposals[:, 0, :: self._prior_size] == -1, axis=1)
            scores = np.where(ended[..., None], -np.inf, scores)
        detections = [self._rows(n, boxes[n], scores[n]) for n in range(batch)]
        rows = np.zeros((batch * self._most(Dim(count), Dim(classes)).lo, 7), work)
        kept = np.concatenate([rows[:0], *detections])[: len(rows)]
        rows[: len(kept)] = kept
        rows[len(kept) : len(kept) + 1, 0] = -1
        return narrow(rows[None, None], box_logits.dtype)

    def _priors(self, proposals: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the prior boxes [batch, prior, 1, 4] and their variances, in a shape that broadcasts with them."""
        boxes = proposals[:, 0].reshape(len(proposals), count, self._prior_size)[:, :, None, -4:]
        if self.variance_encoded_in_target:
            return boxes, np.ones(4, boxes.dtype)
        return boxes, proposals[:, 1, : 4 * count].reshape(len(proposals), count, 1, 4)

    def _decoded(self, priors: np.ndarray, variances: np.ndarray, logits: np.ndarray) -> np.ndarray:
        """Return the boxes [batch, prior, class, 4]: the prior boxes, shifted and scaled by ``logits``."""
        if not self.normalized:  # OpenVINO does so even after additional predictions have made them relative
            priors = priors / np.array([self.input_width, self.input_height] * 2, priors.dtype)
        deltas = logits * variances
        if self.code_type == _CORNER:
            boxes = priors + deltas
        else:
            size, center = priors[..., 2:] - priors[..., :2], (priors[..., :2] + priors[..., 2:]) / 2
            with np.errstate(over="ignore"):
                center, half = deltas[..., :2] * size + center, np.exp(deltas[..., 2:]) * size / 2
            boxes = np.concatenate([center - half, center + half], axis=-1)
        return boxes.clip(0, 1) if self.clip_before_nms else boxes

    def _rows(self, number: int, boxes: np.ndarray, scores: np.ndarray) -> np.ndarray:
        """Return the detections of batch element ``number`` as rows, ordered by class, then from best to worst."""
        boxes = np.broadcast_to(boxes, (*scores.shape, 4))
        taken = self._mxnet(boxes, scores) if self.decrease_label_id else self._caffe(boxes, scores)
        classes = np.repeat(np.arange(len(taken)), [len(places) for places in taken])
        places = np.concatenate([np.zeros(0, np.int64), *taken])
        confidence = scores[places, classes]
        if 0 <= self.keep_top_k[0] < len(places):
            best = np.lexsort((classes, places, -confidence))[: self.keep_top_k[0]]
            best = best[np.argsort(classes[best], kind="stable")]
            classes, places, confidence = classes[best], places[best], confidence[best]
        kept = boxes[places, classes]
        if self.clip_after_nms:
            kept = kept.clip(0, 1)
        labels = classes - 1 if self.decrease_label_id else classes
        return np.concatenate([np.stack([np.full(len(places), number), labels, confidence], axis=1), kept], axis=1)

    def _caffe(self, boxes: np.ndarray, scores: np.ndarray) -> list[np.ndarray]:
        """Return the indices of the prior boxes kept for each class. ``top_k`` limits each class on its own."""
        taken = []
        for label in range(scores.shape[1]):
            enough = scores[:, label] > self.confidence_threshold
            order = best_first(scores[:, label], enough & (label != self.background_label_id))
            taken.append(self._suppress(self._top(order), boxes[:, label]))
        return taken

    def _mxnet(self, boxes: np.ndarray, scores: np.ndarray) -> list[np.ndarray]:
        """Do as ``_caffe``, with each prior box in its best class only (never 0). ``top_k`` limits the total."""
        if not scores.shape[1]:
            return []
        candidates = scores.copy()
        candidates[:, :1] = -1
        if self.background_label_id > 0:  # an id beyond the classes, like -1, means that there is no background
            candidates[:, self.background_label_id : self.background_label_id + 1] = -1
        label = candidates.argmax(axis=1)
        best = candidates.max(axis=1, initial=-1)
        enough = (best > -1) & (best >= self.confidence_threshold)
        order = self._top(best_first(best, enough))
        return [self._suppress(order[label[order] == n], boxes[:, n]) for n in range(scores.shape[1])]

    def _top(self, order: np.ndarray) -> np.ndarray:
        """Return the first ``top_k`` of ``order``, or all if it is negative."""
        return order if self.top_k < 0 else order[: self.top_k]

    def _suppress(self, order: np.ndarray, boxes: np.ndarray) -> np.ndarray:
        """Return the indices of the boxes that non-maximum suppression keeps, in the order of ``order``."""
        return suppress(order, iou(boxes), None, repeat(self.nms_threshold))


def _quotient(a: int, b: int) -> int | None:
    """Return a / b, or None where that is not an integer."""
    return a // b if b > 0 and a % b == 0 else None


@op("DetectionOutput", since=1, spec="detection/detectionoutput-1")
class DetectionOutput1(DetectionOutput8):
    """Compute the same as DetectionOutput-8, with the number of classes as an attribute.

    C1  ``box_logits``, ``class_preds`` and the additional inputs are 2D, ``proposals`` is 3D.
    C2  The batch size is the same in all inputs. In ``proposals``, it may also be 1.
    C3  ``proposals`` has two rows, boxes and variances. With ``variance_encoded_in_target``, it has only the first.
    C4  For each prior box there are 4 logits (of each class, unless ``share_location``), num_classes predictions,
        4 numbers in ``proposals`` (5 unless ``normalized``) and 2 additional predictions.
    C5  Either both additional inputs are connected, or neither is.
    C6  ``keep_top_k`` has at least one entry.
    C7  ``input_height`` and ``input_width`` are positive, unless ``normalized`` makes them unused.
    C8  ``objectness_score`` is not negative.
    C9  ``num_classes`` is positive.
    """

    num_classes = attr.int()
