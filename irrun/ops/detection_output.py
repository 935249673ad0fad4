"""DetectionOutput: the best boxes of a single shot detector.  Spec: detection/detectionoutput-{1,8}."""

import numpy as np

from irrun.opdef import Op, Site, Value, attr, op, opt, ports
from irrun.ops._boxes import apart, best, clipped, moved
from irrun.ops._cast import plain
from irrun.ops._gemm import narrow
from irrun.types import INF, Dim

_CODE_TYPES = ("caffe.PriorBoxParameter.CENTER_SIZE", "caffe.PriorBoxParameter.CORNER")


@op("DetectionOutput", since=8, spec="detection/detectionoutput-8")
class DetectionOutput8(Op):
    """The best boxes of each class, without overlaps: rows ``[image, class, score, x0, y0, x1, y1]`` up to a first -1.

    A box is a prior (a row of ``proposals``) moved by its logits; with the last two inputs, first by
    ``aux_box_preds``, and where a prior's objectness in ``aux_class_preds`` is low it is background.

    C1  The inputs are 2D, ``proposals`` 3D, and the last two come together.
    C2  All have one batch, but that of ``proposals`` may be 1.
    C3  ``proposals`` has 2 rows, with ``variance_encoded_in_target`` 1.
    C4  For each prior, ``proposals`` has 4 numbers (not normalized: 5), ``box_logits`` and ``aux_box_preds`` 4 for
        each class or with ``share_location`` 4, ``class_preds`` 1 for each class, ``aux_class_preds`` 2.
    C5  ``keep_top_k`` has an entry.
    """

    background_label_id = attr.int(0)
    top_k = attr.int(-1)
    variance_encoded_in_target = attr.bool(False)
    keep_top_k = attr.ints()
    code_type = attr.choice(*_CODE_TYPES, default="caffe.PriorBoxParameter.CORNER")
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
        box_logits="T", class_preds="T", proposals="T_PRIORS", aux_class_preds=opt("T"), aux_box_preds=opt("T")
    )
    types = {"T": "float", "T_PRIORS": "float"}
    num_classes: int | None = None

    def infer(
        self, at: Site, box_logits: Value, class_preds: Value, proposals: Value,
        aux_class_preds: Value | None = None, aux_box_preds: Value | None = None,
    ) -> Value:  # fmt: skip
        names = {"box_logits": 2, "class_preds": 2, "proposals": 3, "aux_class_preds": 2, "aux_box_preds": 2}
        values = box_logits, class_preds, proposals, aux_class_preds, aux_box_preds
        given = {name: value for name, value in zip(names, values) if value is not None}
        at.require(len(given) != 4, "C1", "of aux_class_preds and aux_box_preds, one is missing")
        for name, value in given.items():
            at.require(value.rank in (None, names[name]), "C1", f"{name} is {value.shape}, not {names[name]}D")
        shapes = ", ".join(f"{name} {value.shape}" for name, value in given.items())
        images = Dim.unknown()
        for name, value in given.items():
            met = images.meet(value.shape[0])
            one = name == "proposals" and value.shape[0].fits(1)
            at.require(met is not None or one, "C2", f"the batches differ: {shapes}")
            if name != "proposals":
                images = met or images
        rows = 1 if self.variance_encoded_in_target else 2
        at.require(proposals.shape[1].fits(rows), "C3", f"proposals is {proposals.shape}, of other than {rows} rows")
        at.require(len(self.keep_top_k) > 0, "C5", "keep_top_k is empty")
        at.require(self.num_classes is None or self.num_classes > 0, "C6", f"num_classes is {self.num_classes}")
        priors, classes = self._counts(at, {name: value.shape[-1] for name, value in given.items()})
        every = priors * classes if priors.is_static and classes.is_static else class_preds.shape[1]
        return box_logits.reshaped([1, 1, self._rows(images, every, classes), 7])

    def _counts(self, at: Site, widths: dict[str, Dim]) -> tuple[Dim, Dim]:
        """How many priors and classes there are, as far as the last dims of the inputs tell."""
        per_prior = {"proposals": self._prior_size, "aux_class_preds": 2}
        per_class = {"class_preds": 1}
        (per_prior if self.share_location else per_class).update(box_logits=4, aux_box_preds=4)
        priors = _divided(at, widths, per_prior, Dim(1, INF))
        classes = Dim(1, INF) if self.num_classes is None else Dim(self.num_classes)
        if priors.value is not None:
            classes = _divided(at, widths, {name: unit * priors.value for name, unit in per_class.items()}, classes)
        elif classes.value is not None:
            priors = _divided(at, widths, {name: unit * classes.value for name, unit in per_class.items()}, priors)
        return priors, classes

    def _rows(self, images: Dim, every: Dim, classes: Dim) -> Dim:
        """How many detections there may be, ``every`` being how many scores an image has."""
        if self.keep_top_k[0] > 0:
            return images * self.keep_top_k[0]
        if self.keep_top_k[0] == -1 and self.top_k > 0:
            return images * self.top_k * classes
        return images * every

    @property
    def _prior_size(self) -> int:
        return 4 if self.normalized else 5  # which begins with the image

    def run(
        self, box_logits: np.ndarray, class_preds: np.ndarray, proposals: np.ndarray,
        aux_class_preds: np.ndarray | None = None, aux_box_preds: np.ndarray | None = None,
    ) -> np.ndarray:  # fmt: skip
        logits, scores, proposals = plain(box_logits), plain(class_preds), plain(proposals)
        images, count = len(scores), proposals.shape[2] // self._prior_size
        classes = scores.shape[1] // count
        scores = scores.reshape(images, count, classes)
        priors = proposals[:, 0].reshape(-1, count, 1, self._prior_size)
        boxes, variances = priors[..., -4:], np.ones((), proposals.dtype)
        if not self.variance_encoded_in_target:
            variances = proposals[:, 1, : count * 4].reshape(-1, count, 1, 4)
        if aux_class_preds is not None and aux_box_preds is not None:
            background = np.arange(classes) == self.background_label_id
            objectness = plain(aux_class_preds).reshape(images, count, 2)[..., 1:]
            scores = np.where(objectness < self.objectness_score, background, scores)
            boxes = self._moved(boxes, plain(aux_box_preds), variances)
        boxes = self._moved(boxes, logits, variances)
        if not self.normalized:  # OpenVINO: a prior of image -1 ends them, as Proposal has it
            scores = np.where(np.logical_and.accumulate(priors[..., 0] != -1, 1), scores, -np.inf)
        found = np.concatenate([np.zeros((0, 7)), *(self._of_image(n, boxes[n], scores[n]) for n in range(images))])
        rows = self._rows(Dim(images), Dim(count * classes), Dim(classes)).lo
        result = np.zeros((1, 1, rows, 7), box_logits.dtype)
        result[0, 0, : len(found)] = narrow(found, result.dtype)
        result[0, 0, len(found) : len(found) + 1, 0] = -1
        return result

    def _moved(self, boxes: np.ndarray, logits: np.ndarray, variances: np.ndarray) -> np.ndarray:
        """The boxes [images, priors, classes or 1, 4] as the logits of all images have them."""
        if not self.normalized:  # OpenVINO: also what aux_box_preds moved, which is normalized by then
            boxes = boxes / np.tile(np.array([self.input_width, self.input_height], boxes.dtype), 2)
        deltas = logits.reshape(len(logits), boxes.shape[1], -1, 4) * variances
        with np.errstate(over="ignore", invalid="ignore"):
            boxes = boxes + deltas if self.code_type.endswith("CORNER") else moved(boxes, deltas)
        return clipped(boxes, np.ones(2, boxes.dtype)) if self.clip_before_nms else boxes

    def _of_image(self, image: int, boxes: np.ndarray, scores: np.ndarray) -> np.ndarray:
        """The rows of one image, of boxes [priors, classes or 1, 4] and scores [priors, classes]."""
        top = None if self.top_k < 0 else self.top_k
        candidates = self._mxnet(scores, top) if self.decrease_label_id else self._caffe(scores, top)
        kept = []
        for label, places in enumerate(candidates):
            of_class = boxes[:, 0 if self.share_location else label]
            kept += [(place, label) for place in places[apart(of_class[places], self.nms_threshold)]]
        places, labels = np.array(kept, np.int64).reshape(-1, 2).T
        if -1 < self.keep_top_k[0] < len(kept):
            order = np.lexsort([places, -scores[places, labels]])[: self.keep_top_k[0]]
            order = order[np.argsort(labels[order], kind="stable")]
            places, labels = places[order], labels[order]
        boxes = boxes[places, 0 if self.share_location else labels]
        if self.clip_after_nms:
            boxes = clipped(boxes, np.ones(2, boxes.dtype))
        named = labels - 1 if self.decrease_label_id else labels
        return np.column_stack([np.full(len(places), image), named, scores[places, labels], boxes])

    def _caffe(self, scores: np.ndarray, top: int | None) -> list[np.ndarray]:
        """The candidates of each class: the ``top`` priors of a score above the threshold."""
        candidates = []
        for label, of_class in enumerate(scores.T):
            places = best(of_class)
            places = places[of_class[places] > self.confidence_threshold]
            candidates.append(places[: 0 if label == self.background_label_id else top])
        return candidates

    def _mxnet(self, scores: np.ndarray, top: int | None) -> list[np.ndarray]:
        """The candidates of each class: those of the ``top`` priors for which it is the best one, and good enough."""
        excluded = [0, self.background_label_id] if self.background_label_id > 0 else [0]
        others = scores.copy()
        others[:, excluded] = -np.inf
        labels, highest = others.argmax(1), others.max(1)
        places = best(highest)
        places = places[highest[places] >= self.confidence_threshold][:top]
        return [places[labels[places] == label] for label in range(scores.shape[1])]


def _divided(at: Site, widths: dict[str, Dim], units: dict[str, int], count: Dim) -> Dim:
    """How many times each width holds its unit, ``count`` being what is known of that."""
    for name, unit in units.items():
        width = widths.get(name, count * unit)
        fitting = (width // unit).meet(count) if width.value is None or width.value % unit == 0 else None
        at.require(fitting is not None, "C4", f"{name} has rows of {width}, not of {unit} times {count}")
        count = fitting or count
    return count


@op("DetectionOutput", since=1, spec="detection/detectionoutput-1")
class DetectionOutput1(DetectionOutput8):
    """As DetectionOutput-8, with the number of classes as an attribute.

    C1  The inputs are 2D, ``proposals`` 3D, and the last two come together.
    C2  All have one batch, but that of ``proposals`` may be 1.
    C3  ``proposals`` has 2 rows, with ``variance_encoded_in_target`` 1.
    C4  For each prior, ``proposals`` has 4 numbers (not normalized: 5), ``box_logits`` and ``aux_box_preds`` 4 for
        each class or with ``share_location`` 4, ``class_preds`` 1 for each class, ``aux_class_preds`` 2.
    C5  ``keep_top_k`` has an entry.
    C6  ``num_classes`` is positive.
    """

    num_classes = attr.int()
