"""DetectionOutput: the boxes of a single shot detector that are worth keeping.  Spec: detection/detectionoutput-{1,8}."""

import numpy as np

from irrun.opdef import Op, Site, Value, attr, op, opt, ports
from irrun.ops._boxes import apart, best, clipped, moved
from irrun.ops._cast import plain
from irrun.ops._gemm import narrow
from irrun.types import Dim

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
        priors, classes = self._counts(at, {name: value.shape[-1] for name, value in given.items()})
        every = priors * classes if priors.is_static and classes.is_static else class_preds.shape[1]
        return box_logits.reshaped([1, 1, self._rows(images, every, classes), 7])
