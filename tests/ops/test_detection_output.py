"""DetectionOutput-1 and DetectionOutput-8."""

from typing import Any

import numpy as np

from kit import *

_OPS = ("DetectionOutput-1", "DetectionOutput-8")
_CENTER = {"code_type": "caffe.PriorBoxParameter.CENTER_SIZE"}
_PLAIN: dict[str, Any] = {"keep_top_k": [4], "nms_threshold": 0.5, "normalized": True}

# the second prior box is the half of the first, the third is apart
_PRIORS = f32([[0, 0, 0.5, 0.5], [0, 0, 0.5, 0.25], [0.5, 0.5, 0.75, 0.75]])
_ONES = np.ones(12, np.float32)
_STILL = np.zeros((1, 12), np.float32)


def _proposals(boxes: np.ndarray = _PRIORS, variances: np.ndarray = _ONES) -> np.ndarray:
    return np.stack([boxes.ravel(), variances])[None]


def _inputs(*scores: list[float], logits: np.ndarray = _STILL, proposals: np.ndarray | None = None) -> list[np.ndarray]:
    """``scores`` are those of a prior box: of the background and of each class."""
    return [logits, f32(scores).reshape(1, -1), _proposals() if proposals is None else proposals]


def _rows(*rows: list[float], count: int = 4) -> np.ndarray:
    out = np.zeros((count, 7), np.float32)
    out[: len(rows)] = f32(list(rows)).reshape(-1, 7)
    if len(rows) < count:
        out[len(rows), 0] = -1
    return out[None, None]


_A, _B, _C = (box.tolist() for box in _PRIORS)
_SCORES = _inputs([0.1, 0.6], [0.2, 0.7], [0.7, 0.3])
_TWO_CLASSES = _inputs([0, 0.6, 0.8], [0, 0.7, 0.2], [0, 0.3, 0.9])
_MOVED = np.tile(f32([0.1, 0.2, 0.3, 0.4]), 3)[None]
_SIZES = np.tile(f32([0.5, -0.5, np.log(2), 0]), 3)[None]
_ONE = {"confidence_threshold": 0.65}  # only the second box
# as many pixels as an image of 100 x 50
_PIXELS = np.concatenate([np.zeros((3, 1), np.float32), _PRIORS * f32([100, 50, 100, 50])], axis=1)

_ROWS: list[tuple[str, list[np.ndarray], np.ndarray, dict[str, Any]]] = [
    # the IoU of the first two is exactly a half, which is not too much
    ("plain", _SCORES, _rows([0, 1, 0.7, *_B], [0, 1, 0.6, *_A], [0, 1, 0.3, *_C]), {}),
    ("nms", _SCORES, _rows([0, 1, 0.7, *_B], [0, 1, 0.3, *_C]), {"nms_threshold": 0.4}),
    # exactly the threshold is too little
    ("confidence", _inputs([0, 0.6], [0, 0.5], [0, 0.25]), _rows([0, 1, 0.6, *_A]), {"confidence_threshold": 0.5}),
    ("keep-top-k", _SCORES, _rows([0, 1, 0.7, *_B], [0, 1, 0.6, *_A], count=2), {"keep_top_k": [2]}),
    ("keep-all", _SCORES, _rows([0, 1, 0.7, *_B], [0, 1, 0.6, *_A], [0, 1, 0.3, *_C], count=6), {"keep_top_k": [-1]}),
    ("top-k", _SCORES, _rows([0, 1, 0.7, *_B], count=2), {"keep_top_k": [-1], "top_k": 1}),
    ("background", _inputs([0.6, 0], [0.5, 0], [0.3, 0]), _rows([0, 0, 0.6, *_A], [0, 0, 0.5, *_B], [0, 0, 0.3, *_C]), {"background_label_id": 1}),
    ("no-background", _inputs([0.6, 0], [0, 0.7], [0, 0]), _rows([0, 0, 0.6, *_A], [0, 1, 0.7, *_B]), {"background_label_id": -1}),
    ("by-class", _TWO_CLASSES, _rows([0, 1, 0.7, *_B], [0, 1, 0.6, *_A], [0, 2, 0.9, *_C], [0, 2, 0.8, *_A]), {}),
    ("own-locations", [np.stack([_STILL, _STILL + 0.1], axis=1).reshape(2, 3, 4).transpose(1, 0, 2).reshape(1, 24), *_SCORES[1:]],
     _rows([0, 1, 0.7, *(f32(_B) + 0.1)]), {"share_location": False} | _ONE),
    ("corner", _inputs([0, 0.6], [0, 0.7], [0, 0], logits=_MOVED), _rows([0, 1, 0.7, 0.1, 0.2, 0.8, 0.65]), _ONE),
    ("corner-variances", _inputs([0, 0.6], [0, 0.7], [0, 0], logits=_MOVED, proposals=_proposals(variances=_ONES / 2)), _rows([0, 1, 0.7, 0.05, 0.1, 0.65, 0.45]), _ONE),
    ("center-size", _inputs([0, 0.6], [0, 0.7], [0, 0], logits=_SIZES), _rows([0, 1, 0.7, 0, -0.125, 1, 0.125]), _ONE | _CENTER),
    ("clip-before", _inputs([0, 0.6], [0, 0.7], [0, 0], logits=_SIZES), _rows([0, 1, 0.7, 0, 0, 1, 0.125]), _ONE | _CENTER | {"clip_before_nms": True}),
    ("clip-after", _inputs([0, 0.6], [0, 0.7], [0, 0], logits=_SIZES), _rows([0, 1, 0.7, 0, 0, 1, 0.125]), _ONE | _CENTER | {"clip_after_nms": True}),
    ("variance-encoded", _inputs([0, 0.6], [0, 0.7], [0, 0], logits=_MOVED, proposals=_PRIORS.reshape(1, 1, 12)), _rows([0, 1, 0.7, 0.1, 0.2, 0.8, 0.65]), _ONE | {"variance_encoded_in_target": True}),
    ("pixels", _inputs([0, 0.6], [0, 0.7], [0, 0], logits=_MOVED, proposals=_proposals(_PIXELS, np.concatenate([_ONES / 2, _ONES[:3]]))),
     _rows([0, 1, 0.7, 0.05, 0.1, 0.65, 0.45]), _ONE | {"normalized": False, "input_width": 100, "input_height": 50}),
    # a prior box of image -1 ends them, which a corner at -1 does not
    ("pixels-that-end", _inputs([0, 0.6], [0, 0.7], [0, 0.3], proposals=_proposals(np.concatenate([f32([[0], [-1], [0]]), _PIXELS[:, 1:]], axis=1), np.ones(15, np.float32))),
     _rows([0, 1, 0.6, *_A]), {"normalized": False, "input_width": 100, "input_height": 50}),
    ("corner-at-minus-one", _inputs([0, 0.6], [0, 0.7], [0, 0.3], proposals=_proposals(np.concatenate([f32([[-1, -1, -0.5, -0.5]]), _PRIORS[1:]]))),
     _rows([0, 1, 0.7, *_B], [0, 1, 0.6, -1, -1, -0.5, -0.5], [0, 1, 0.3, *_C]), {}),
    # each box is of its best class only
    ("mxnet", _TWO_CLASSES, _rows([0, 0, 0.7, *_B], [0, 1, 0.9, *_C], [0, 1, 0.8, *_A]), {"decrease_label_id": True}),
    ("mxnet-background-beyond", _TWO_CLASSES, _rows([0, 0, 0.7, *_B], [0, 1, 0.9, *_C], [0, 1, 0.8, *_A]), {"decrease_label_id": True, "background_label_id": 3}),
    ("mxnet-top-k", _TWO_CLASSES, _rows([0, 1, 0.9, *_C], [0, 1, 0.8, *_A]), {"decrease_label_id": True, "top_k": 2}),
    ("mxnet-confidence", _inputs([0, 0.5, 0.25], [0, 0.25, 0.125], [0, 0, 0.25]), _rows([0, 0, 0.5, *_A], [0, 0, 0.25, *_B], [0, 1, 0.25, *_C]), {"decrease_label_id": True, "confidence_threshold": 0.25}),
    # the third is no object
    ("additional", [*_inputs([0, 0.6], [0, 0.7], [0, 0.9], logits=_MOVED), f32([[0, 0.5, 0, 0.9, 0, 0.4]]), -_MOVED], _rows([0, 1, 0.7, *_B], [0, 1, 0.6, *_A]), {"objectness_score": 0.5}),
]  # fmt: skip

# as "pixels", with what is required only and a confidence that leaves the second box
_UNSAID: dict[str, Any] = {"keep_top_k": [4], "nms_threshold": 0.5} | _ONE
_BY_DEFAULT = [
    ("pixels", _inputs([0, 0.6], [0, 0.7], [0, 0], proposals=_proposals(_PIXELS, np.ones(15, np.float32))), _rows([0, 1, 0.7, *_B]), {"input_width": 100, "input_height": 50}),
    ("a-pixel", _inputs([0, 0.6], [0, 0.7], [0, 0], proposals=_proposals(_PIXELS, np.ones(15, np.float32))), _rows([0, 1, 0.7, *_B * f32([100, 50, 100, 50])]), {}),
]  # fmt: skip

VALUES = [
    *[
        Values(f"{id}-{op}", op, inputs, expected, _PLAIN | attributes | ({"num_classes": inputs[1].size // 3} if op.endswith("1") else {}), 1e-5)
        for op in _OPS for id, inputs, expected, attributes in _ROWS
    ],
    # without normalized, proposals are pixels; without input_width and input_height, those of an image of 1 x 1
    *[
        Values(f"{id}-by-default-{op}", op, inputs, expected, _UNSAID | sizes | ({"num_classes": 2} if op.endswith("1") else {}), 1e-5)
        for op in _OPS for id, inputs, expected, sizes in _BY_DEFAULT
    ],
    Values("f16", "DetectionOutput-8", [a.astype(np.float16) for a in _SCORES], _rows([0, 1, 0.7, *_B], [0, 1, 0.6, *_A], [0, 1, 0.3, *_C]).astype(np.float16), _PLAIN | {"nms_threshold": 0.6}),
    *[
        Values(f"no-boxes{'-mxnet' * mxnet}", "DetectionOutput-1", [np.ones((1, 0), np.float32), np.ones((1, 0), np.float32), np.ones((1, 2, 0), np.float32)], _rows(), _PLAIN | {"num_classes": 2, "decrease_label_id": mxnet})
        for mxnet in (False, True)
    ],
    *[
        Values(f"no-classes{'-mxnet' * mxnet}", "DetectionOutput-8", [_STILL, np.ones((1, 0), np.float32), _proposals()], _rows(), _PLAIN | {"decrease_label_id": mxnet})
        for mxnet in (False, True)
    ],
    Values("no-batch", "DetectionOutput-8", [np.ones((0, 12), np.float32), np.ones((0, 6), np.float32), _proposals()], np.ones((1, 1, 0, 7), np.float32), _PLAIN),
]  # fmt: skip

_SPEC = {
    "background_label_id": 1, "code_type": "caffe.PriorBoxParameter.CENTER_SIZE",
    "confidence_threshold": 0.019999999552965164, "input_height": 1, "input_width": 1, "keep_top_k": 200,
    "nms_threshold": 0.44999998807907104, "normalized": True, "share_location": True, "top_k": 200,
    "variance_encoded_in_target": False, "clip_after_nms": False, "clip_before_nms": False, "objectness_score": 0,
    "decrease_label_id": False,
}  # fmt: skip
_GIVEN: list[str | None] = ["f32[2,5376]", "f32[2,2688]", "f32[1,2,5376]"]
_CLASSES = {"num_classes": 2}


def _shapes(id: str, given: list[str | None], rows: str, **attributes: Any) -> list[Shapes]:
    return [
        Shapes(f"{id}-1", "DetectionOutput-1", given, f"f32[1,1,{rows},7]", _SPEC | attributes | _CLASSES),
        Shapes(f"{id}-8", "DetectionOutput-8", given, f"f32[1,1,{rows},7]", _SPEC | attributes),
    ]


SHAPES = [
    *_shapes("spec", ["f32[1,5376]", "f32[1,2688]", "f32[1,2,5376]"], "200"),
    *_shapes("batch", _GIVEN, "400"),
    *_shapes("keep-all", _GIVEN, "800", keep_top_k=-1),
    *_shapes("keep-all-no-top-k", _GIVEN, "5376", keep_top_k=-1, top_k=-1),
    *_shapes("own-locations", ["f32[2,10752]", *_GIVEN[1:]], "800", share_location=False, keep_top_k=-1),
    *_shapes("own-locations-tell", ["f32[2,10752]", "f32[...]", _GIVEN[2]], "800", share_location=False, keep_top_k=-1),
    *_shapes("pixels", [*_GIVEN[:2], "f32[2,2,6720]"], "400", normalized=False),
    *_shapes("normalized-of-no-size", _GIVEN, "400", input_height=0, input_width=0),
    *_shapes("variance-encoded", [*_GIVEN[:2], "f32[1,1,5376]"], "400", variance_encoded_in_target=True),
    *_shapes("additional", [*_GIVEN, "f32[2,2688]", "f32[2,5376]"], "5376", keep_top_k=-1, top_k=-1),
    *_shapes("additional-tell", ["f32[?,?]", "f32[?,2688]", "f32[?,2,?]", "f32[2,2688]", "f32[...]"], "5376", keep_top_k=-1, top_k=-1),
    *_shapes("dynamic", ["f32[?,?]", "f32[1..3,?]", "f32[1,2,?]"], "200..600"),
    *_shapes("unknown-rank", ["f32[...]"] * 3, "?"),
    *_shapes("unknown-rank-keep-all", ["f32[...]"] * 3, "?", keep_top_k=-1, top_k=-1),
    Shapes("logits-tell", "DetectionOutput-1", ["f32[2,5376]", "f32[...]", "f32[...]"], "f32[1,1,5376,7]", _SPEC | _CLASSES | {"keep_top_k": -1, "top_k": -1}),
    Shapes("classes-unknown", "DetectionOutput-8", ["f32[2,5376]", "f32[...]", "f32[1,2,5376]"], "f32[1,1,?,7]", _SPEC | {"keep_top_k": -1}),
    Shapes("classes-told-by-logits", "DetectionOutput-8", ["f32[2,5376]", "f32[2,2688]", "f32[...]"], "f32[1,1,5376,7]", _SPEC | {"keep_top_k": -1, "top_k": -1}),
    Shapes("priors-of-another-type", "DetectionOutput-8", ["f16[2,5376]", "f16[2,2688]", "f32[1,2,5376]"], "f16[1,1,400,7]", _SPEC),
]  # fmt: skip

REFUSALS = [
    Refusal(f"{id}-{op}", op, given, _SPEC | attributes | (_CLASSES if op.endswith("1") else {}))
    for op in _OPS
    for id, given, attributes in [
        ("c1-logits", ["f32[2,5376,1]", *_GIVEN[1:]], {}),
        ("c1-class-preds", [_GIVEN[0], "f32[2688]", _GIVEN[2]], {}),
        ("c1-proposals", [*_GIVEN[:2], "f32[2,5376]"], {}),
        ("c1-additional", [*_GIVEN, "f32[2,1344,2]", "f32[2,5376]"], {}),
        ("c2-class-preds", [_GIVEN[0], "f32[1,2688]", _GIVEN[2]], {}),
        ("c2-proposals", [*_GIVEN[:2], "f32[3,2,5376]"], {}),
        ("c2-additional", [*_GIVEN, "f32[1,2688]", "f32[2,5376]"], {}),
        ("c3-no-variances", [*_GIVEN[:2], "f32[1,1,5376]"], {}),
        ("c3-variances", _GIVEN, {"variance_encoded_in_target": True}),
        ("c4-logits", ["f32[2,5372]", *_GIVEN[1:]], {}),
        ("c4-own-logits", ["f32[2,10748]", *_GIVEN[1:]], {"share_location": False}),
        ("c4-class-preds", [_GIVEN[0], "f32[2,2689]", _GIVEN[2]], {}),
        ("c4-proposals", [*_GIVEN[:2], "f32[1,2,5377]"], {}),
        ("c4-pixels", _GIVEN, {"normalized": False}),
        ("c4-additional", [*_GIVEN, "f32[2,2686]", "f32[2,5376]"], {}),
        ("c4-additional-boxes", [*_GIVEN, "f32[2,2688]", "f32[2,5372]"], {}),
        ("c5-boxes", [*_GIVEN, "f32[2,2688]"], {}),
        ("c5-class-preds", [*_GIVEN, None, "f32[2,5376]"], {}),
        ("c6", _GIVEN, {"keep_top_k": ""}),
        ("c7-height", [*_GIVEN[:2], "f32[2,2,6720]"], {"normalized": False, "input_height": 0}),
        ("c7-width", [*_GIVEN[:2], "f32[2,2,6720]"], {"normalized": False, "input_width": -1}),
        ("c8-objectness", _GIVEN, {"objectness_score": -0.5}),
        ("ir301-integers", ["i32[2,5376]", "i32[2,2688]", "f32[1,2,5376]"], {}),
        ("ir302-types", ["f16[2,5376]", *_GIVEN[1:]], {}),
    ]
]  # fmt: skip
REFUSALS += [
    Refusal("c4-num-classes", "DetectionOutput-1", _GIVEN, _SPEC | {"num_classes": 3}),
    Refusal(
        "c9-no-classes", "DetectionOutput-1", ["f32[2,5376]", "f32[2,0]", "f32[1,2,5376]"], _SPEC | {"num_classes": 0}
    ),
]


def _random(batch: int, priors: int, classes: int, *, shared: bool = True, pixels: bool = False, encoded: bool = False, own: bool = False, additional: bool = False, end: int | None = None, dtype: Any = np.float32) -> list[np.ndarray]:  # fmt: skip
    """Boxes that overlap much; those of pixels are none from ``end`` on."""
    of, locations = batch if own else 1, 1 if shared else classes
    low, size = abs(random(of, priors, 2)) / 4, abs(random(of, priors, 2, seed=1)) / 4 + 0.1
    boxes = np.concatenate([low, low + size], axis=2)
    if pixels:
        images = np.where(np.arange(priors) < (priors if end is None else end), 0, -1).reshape(1, priors, 1)
        boxes = np.concatenate([np.tile(images, (of, 1, 1)), boxes * [30, 20, 30, 20]], axis=2)
    rows = [boxes.reshape(of, -1)]
    if not encoded:
        rows.append(abs(random(*rows[0].shape, seed=2)) / 8)
    found = [
        random(batch, priors * locations * 4, seed=3) / 4,
        random(batch, priors * classes, seed=4) / 4 + 0.5,
        np.stack(rows, axis=1),
    ]
    if additional:
        found += [random(batch, priors * 2, seed=5) / 4 + 0.5, random(batch, priors * locations * 4, seed=6) / 4]
    return [a.astype(dtype) for a in found]


_CASE: dict[str, Any] = {
    "keep_top_k": [20],
    "nms_threshold": 0.4,
    "confidence_threshold": 0.3,
    "normalized": True,
} | _CENTER
_CORNERS, _PIXEL_SIZE = (
    {"code_type": "caffe.PriorBoxParameter.CORNER"},
    {"normalized": False, "input_width": 30, "input_height": 20},
)
_MODELS: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("plain", {}, {}),
    ("corner", {}, _CORNERS),
    ("keep-all", {}, {"keep_top_k": [-1]}),
    ("keep-all-top-k", {}, {"keep_top_k": [-1], "top_k": 5}),
    ("top-k", {}, {"top_k": 5}),
    ("no-background", {}, {"background_label_id": -1}),
    ("background", {}, {"background_label_id": 2}),
    ("own-locations", {"shared": False}, {"share_location": False}),
    ("own-locations-no-background", {"shared": False}, {"share_location": False, "background_label_id": -1}),
    ("variance-encoded", {"encoded": True}, {"variance_encoded_in_target": True}),
    ("pixels", {"pixels": True}, _PIXEL_SIZE),
    ("pixels-corner", {"pixels": True}, _PIXEL_SIZE | _CORNERS),
    ("pixels-that-end", {"pixels": True, "end": 12}, _PIXEL_SIZE),
    ("pixels-of-each-that-end", {"pixels": True, "own": True, "end": 12}, _PIXEL_SIZE | {"decrease_label_id": True}),
    ("own-priors", {"own": True}, {}),
    ("clip-before", {}, {"clip_before_nms": True}),
    ("clip-after", {}, {"clip_after_nms": True}),
    ("mxnet", {}, {"decrease_label_id": True}),
    ("mxnet-top-k", {}, {"decrease_label_id": True, "top_k": 10, "keep_top_k": [5]}),
    ("mxnet-own-locations", {"shared": False}, {"decrease_label_id": True, "share_location": False}),
    ("additional", {"additional": True}, {"objectness_score": 0.4}),
    ("additional-own-priors", {"additional": True, "own": True}, {"objectness_score": 0.4}),
    ("additional-no-background", {"additional": True}, {"objectness_score": 0.4, "background_label_id": -1}),
    ("additional-clip", {"additional": True}, {"objectness_score": 0.4, "clip_before_nms": True}),
    ("additional-pixels", {"additional": True, "pixels": True}, {"objectness_score": 0.4} | _PIXEL_SIZE),
    ("nothing", {}, {"confidence_threshold": 2.0}),
    ("f16", {"dtype": np.float16}, {}),
]  # fmt: skip
CASES = [
    Case(f"{id}-{op}", op, _random(2, 30, 4, **dims), _CASE | attributes | ({"num_classes": 4} if op.endswith("1") else {}))
    for op in _OPS for id, dims, attributes in _MODELS
]  # fmt: skip
