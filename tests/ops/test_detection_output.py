"""DetectionOutput-1 and DetectionOutput-8."""

import numpy as np

from kit import Case, Refusal, Shapes, Values, against_openvino, f32, random, refusals, shapes, values

CORNERS = {"keep_top_k": 4, "nms_threshold": 0.4, "normalized": True}
CENTRES = {**CORNERS, "code_type": "caffe.PriorBoxParameter.CENTER_SIZE"}
PLAIN = {"variance_encoded_in_target": True}


def rows(*found, count=4):
    """The output: ``found``, an end if there is room for it, and zeros."""
    out = np.zeros((count, 7), np.float32)
    out[: len(found)] = np.reshape(found, (-1, 7))
    out[len(found) : len(found) + 1, 0] = -1
    return out.reshape(1, 1, count, 7)


LEFT, MIDDLE, RIGHT = [0.1, 0.1, 0.3, 0.3], [0.2, 0.1, 0.4, 0.3], [0.5, 0.5, 0.9, 0.9]
PRIORS = f32([[LEFT + MIDDLE + RIGHT]])
"""Of the first two, a third is shared."""
STILL = np.zeros((1, 12), np.float32)
SCORES = f32([[0.1, 0.6, 0, 0.7, 0.1, 0.3]])
"""Of three priors, of the background and of class 1."""

VALUES = [
    Values("the-best-first", "DetectionOutput-8", [STILL, SCORES, PRIORS], rows([0, 1, 0.7, *MIDDLE], [0, 1, 0.6, *LEFT], [0, 1, 0.3, *RIGHT]), {**CORNERS, **PLAIN}),
    Values("version-1", "DetectionOutput-1", [STILL, SCORES, PRIORS], rows([0, 1, 0.7, *MIDDLE], [0, 1, 0.6, *LEFT], [0, 1, 0.3, *RIGHT]), {**CORNERS, **PLAIN, "num_classes": 2}),
    Values("overlapping", "DetectionOutput-8", [STILL, SCORES, PRIORS], rows([0, 1, 0.7, *MIDDLE], [0, 1, 0.3, *RIGHT]), {**CORNERS, **PLAIN, "nms_threshold": 0.3}),
    Values("confident", "DetectionOutput-8", [STILL, SCORES, PRIORS], rows([0, 1, 0.7, *MIDDLE], [0, 1, 0.6, *LEFT]), {**CORNERS, **PLAIN, "confidence_threshold": 0.3}),
    Values("top-k", "DetectionOutput-8", [STILL, SCORES, PRIORS], rows([0, 1, 0.7, *MIDDLE], count=2), {**CORNERS, **PLAIN, "top_k": 1, "keep_top_k": -1}),
    Values("keep-top-k", "DetectionOutput-8", [STILL, SCORES, PRIORS], rows([0, 1, 0.7, *MIDDLE], [0, 1, 0.6, *LEFT], count=2), {**CORNERS, **PLAIN, "background_label_id": -1, "keep_top_k": 2}),
    Values("all-of-them", "DetectionOutput-8", [STILL, SCORES, PRIORS], rows([0, 0, 0.1, *LEFT], [0, 0, 0.1, *RIGHT], [0, 1, 0.7, *MIDDLE], [0, 1, 0.6, *LEFT], [0, 1, 0.3, *RIGHT], count=6), {**CORNERS, **PLAIN, "background_label_id": -1, "keep_top_k": -1}),
    Values("variances-of-corners", "DetectionOutput-8", [f32([[1, 2, 3, 4]]), f32([[0, 1]]), f32([[[0.1, 0.2, 0.3, 0.4], [0.1, 0.1, 0.2, 0.1]]])], rows([0, 1, 1, 0.2, 0.4, 0.9, 0.8]), CORNERS),
    Values("centre-and-size", "DetectionOutput-8", [f32([[0.5, -0.5, np.log(2), 0]]), f32([[0, 1]]), f32([[[0.2, 0.4, 0.4, 0.8]]])], rows([0, 1, 1, 0.2, 0.2, 0.6, 0.6]), {**CENTRES, **PLAIN}),
    Values("clipped", "DetectionOutput-8", [f32([[-1, 0, 2, 0]]), f32([[0, 1]]), f32([[[0.1, 0.2, 0.3, 0.4]]])], rows([0, 1, 1, 0, 0.2, 1, 0.4]), {**CORNERS, **PLAIN, "clip_before_nms": True}),
    Values("clipped-after", "DetectionOutput-8", [f32([[-1, 0, 2, 0]]), f32([[0, 1]]), f32([[[0.1, 0.2, 0.3, 0.4]]])], rows([0, 1, 1, 0, 0.2, 1, 0.4]), {**CORNERS, **PLAIN, "clip_after_nms": True}),
    Values("pixels", "DetectionOutput-8", [np.zeros((1, 4), np.float32), f32([[0, 1]]), f32([[[0, 1, 2, 3, 4]]])], rows([0, 1, 1, 0.1, 0.1, 0.3, 0.2]), {**CORNERS, **PLAIN, "normalized": False, "input_width": 10, "input_height": 20}),
    Values("best-class-of-each", "DetectionOutput-8", [np.zeros((1, 8), np.float32), f32([[0.9, 0.1, 0.2, 0, 0.3, 0.1]]), f32([[LEFT + RIGHT]])], rows([0, 0, 0.3, *RIGHT], [0, 1, 0.2, *LEFT]), {**CORNERS, **PLAIN, "decrease_label_id": True}),
    Values("objectness", "DetectionOutput-8", [np.zeros((1, 8), np.float32), f32([[0, 0.7, 0, 0.6]]), f32([[LEFT + RIGHT]]), f32([[0, 0.1, 0, 0.5]]), np.zeros((1, 8), np.float32)], rows([0, 1, 0.6, *RIGHT]), {**CORNERS, **PLAIN, "objectness_score": 0.2}),
]  # fmt: skip

SHAPES = [
    Shapes("spec-8", "DetectionOutput-8", ["f32[1,5376]", "f32[1,2688]", "f32[1,2,5376]"], "f32[1,1,200,7]", {**CENTRES, "background_label_id": 1, "keep_top_k": 200, "top_k": 200}),
    Shapes("spec-1", "DetectionOutput-1", ["f32[1,5376]", "f32[1,2688]", "f32[1,2,5376]"], "f32[1,1,200,7]", {**CENTRES, "background_label_id": 1, "keep_top_k": 200, "top_k": 200, "num_classes": 2}),
    *(
        Shapes(f"{id}-{n}", f"DetectionOutput-{n}", inputs, expected, {**CORNERS, **attributes, **more})
        for n, more in [(1, {"num_classes": 3}), (8, {})]
        for id, inputs, expected, attributes in [
            ("batch", ["f32[5,8]", "f32[5,6]", "f32[1,2,8]"], "f32[1,1,20,7]", {}),
            ("top-k", ["f32[5,8]", "f32[5,6]", "f32[5,2,8]"], "f32[1,1,30,7]", {"keep_top_k": -1, "top_k": 2}),
            ("all", ["f32[5,8]", "f32[5,6]", "f32[5,2,8]"], "f32[1,1,30,7]", {"keep_top_k": -1}),
            ("keep-none", ["f32[5,8]", "f32[5,6]", "f32[5,2,8]"], "f32[1,1,30,7]", {"keep_top_k": 0, "top_k": 1}),
            ("five-inputs", ["f16[5,8]", "f16[5,6]", "f32[?,2,8]", "f16[5,4]", "f16[5,8]"], "f16[1,1,20,7]", {}),
            ("batch-from-others", ["f32[?,8]", "f32[?,6]", "f32[?,2,8]", "f32[5,4]", "f32[?,8]"], "f32[1,1,20,7]", {}),
            ("unknown-batch", ["f32[?,8]", "f32[?,6]", "f32[1,2,8]"], "f32[1,1,?,7]", {}),
            ("batch-within-bounds", ["f32[2..5,8]", "f32[?,6]", "f32[1,2,8]"], "f32[1,1,8..20,7]", {}),
            ("unknown-ranks", ["f32[...]", "f32[...]", "f32[...]"], "f32[1,1,?,7]", {"keep_top_k": -1}),
            ("locations-of-classes", ["f32[5,24]", "f32[5,6]", "f32[5,2,8]"], "f32[1,1,30,7]", {"keep_top_k": -1, "share_location": False}),
            ("classes-from-locations", ["f32[5,24]", "f32[...]", "f32[5,2,8]"], "f32[1,1,30,7]", {"keep_top_k": -1, "share_location": False}),
            ("images-of-priors", ["f32[1,8]", "f32[1,6]", "f32[1,1,10]"], "f32[1,1,4,7]", {"normalized": False, **PLAIN}),
            ("priors-from-objectness", ["f32[1,8]", "f32[1,?]", "f32[1,2,?]", "f32[1,4]", "f32[1,?]"], "f32[1,1,4,7]", {}),
        ]
    ),
    Shapes("scores-tell-it-all", "DetectionOutput-8", ["f32[2,?]", "f32[2,6]", "f32[1,2,?]"], "f32[1,1,12,7]", {**CORNERS, "keep_top_k": -1}),
    Shapes("classes-tell", "DetectionOutput-1", ["f32[2,8]", "f32[2,?]", "f32[1,2,?]"], "f32[1,1,12,7]", {**CORNERS, "keep_top_k": -1, "num_classes": 3}),
]  # fmt: skip

REFUSALS = [
    Refusal(f"{id}-{n}", f"DetectionOutput-{n}", inputs, {**CORNERS, **attributes, **more})
    for n, more in [(1, {"num_classes": 3}), (8, {})]
    for id, inputs, attributes in [
        ("c1-logits", ["f32[8]", "f32[1,6]", "f32[1,2,8]"], {}),
        ("c1-scores", ["f32[1,8]", "f32[1,6,1]", "f32[1,2,8]"], {}),
        ("c1-priors", ["f32[1,8]", "f32[1,6]", "f32[2,8]"], {}),
        ("c1-objectness", ["f32[1,8]", "f32[1,6]", "f32[1,2,8]", "f32[4]", "f32[1,8]"], {}),
        ("c1-four", ["f32[1,8]", "f32[1,6]", "f32[1,2,8]", "f32[1,4]"], {}),
        ("c2-scores", ["f32[1,8]", "f32[2,6]", "f32[1,2,8]"], {}),
        ("c2-priors", ["f32[3,8]", "f32[3,6]", "f32[2,2,8]"], {}),
        ("c2-objectness", ["f32[1,8]", "f32[1,6]", "f32[1,2,8]", "f32[2,4]", "f32[1,8]"], {}),
        ("c3-no-variances", ["f32[1,8]", "f32[1,6]", "f32[1,1,8]"], {}),
        ("c3-variances", ["f32[1,8]", "f32[1,6]", "f32[1,2,8]"], PLAIN),
        ("c4-priors", ["f32[1,8]", "f32[1,6]", "f32[1,2,9]"], {}),
        ("c4-no-priors", ["f32[1,0]", "f32[1,0]", "f32[1,2,0]"], {}),
        ("c4-images-of-priors", ["f32[1,8]", "f32[1,6]", "f32[1,2,8]"], {"normalized": False}),
        ("c4-logits", ["f32[1,12]", "f32[1,6]", "f32[1,2,8]"], {}),
        ("c4-scores", ["f32[1,8]", "f32[1,7]", "f32[1,2,8]"], {}),
        ("c4-locations-of-classes", ["f32[1,8]", "f32[1,6]", "f32[1,2,8]"], {"share_location": False}),
        ("c4-objectness", ["f32[1,8]", "f32[1,6]", "f32[1,2,8]", "f32[1,6]", "f32[1,8]"], {}),
        ("c4-other-logits", ["f32[1,8]", "f32[1,6]", "f32[1,2,8]", "f32[1,4]", "f32[1,16]"], {}),
        ("c5-empty", ["f32[1,8]", "f32[1,6]", "f32[1,2,8]"], {"keep_top_k": ""}),
        ("ir301-int", ["i32[1,8]", "i32[1,6]", "f32[1,2,8]"], {}),
        ("ir302-types", ["f32[1,8]", "f16[1,6]", "f32[1,2,8]"], {}),
    ]
] + [
    Refusal("c4-classes", "DetectionOutput-1", ["f32[1,8]", "f32[1,6]", "f32[1,2,8]"], {**CORNERS, "num_classes": 4}),
    Refusal("c6-classes", "DetectionOutput-1", ["f32[1,8]", "f32[1,6]", "f32[1,2,8]"], {**CORNERS, "num_classes": 0}),
]  # fmt: skip


def case(id, n, images=1, priors=12, classes=3, one=False, aux=False, end=None, dtype=np.float32, **attributes):
    """A random case, of ``one`` set of priors for all images, of which those from ``end`` on are none."""
    attributes = {"keep_top_k": [8], "nms_threshold": 0.4, "normalized": True, **attributes}
    size = 4 if attributes["normalized"] else 5
    rng = np.random.default_rng(3)
    corners = rng.uniform(0, 0.6, (1 if one else images, priors, 2))
    boxes = np.concatenate([corners, corners + rng.uniform(0.2, 0.4, corners.shape)], -1)
    if size == 5:
        boxes = boxes * np.tile([attributes.get("input_width", 1), attributes.get("input_height", 1)], 2)
        boxes = np.concatenate([np.zeros((*boxes.shape[:2], 1)), boxes], -1)
        if end is not None:
            boxes[:, end:, 0] = -1
    tables = [boxes.reshape(len(boxes), 1, -1)]
    if not attributes.get("variance_encoded_in_target"):
        tables.append(np.resize([0.1, 0.2, 0.3, 0.4], tables[0].shape))
    located = images, priors * 4 * (1 if attributes.get("share_location", True) else classes)
    scores = rng.permutation(images * priors * classes).reshape(images, -1) / (images * priors * classes)
    inputs = [random(*located) / 8, scores, np.concatenate(tables, 1)]
    if aux:
        inputs += [rng.uniform(0, 1, (images, priors * 2)), random(*located, seed=1) / 8]
    if n == 1:
        attributes["num_classes"] = classes
    return Case(f"{id}-{n}-{dtype.__name__}", f"DetectionOutput-{n}", [x.astype(dtype) for x in inputs], attributes)


PIXELS = {"normalized": False, "input_width": 30, "input_height": 20}
CENTRE = {"code_type": "caffe.PriorBoxParameter.CENTER_SIZE"}

CASES = [
    case(id, n, **attributes)
    for n in (1, 8)
    for id, attributes in [
        ("corners", {}),
        ("centres", CENTRE),
        ("images", {"images": 3, **CENTRE}),
        ("images-one-set", {"images": 3, "one": True}),
        ("f16", {"dtype": np.float16}),
        ("f64", {"dtype": np.float64, **CENTRE}),
        ("encoded", {"variance_encoded_in_target": True}),
        ("encoded-centres", {"variance_encoded_in_target": True, **CENTRE}),
        ("pixels", {"images": 2, **PIXELS}),
        ("pixels-that-end", {"images": 2, "end": 7, **PIXELS, **CENTRE}),
        ("locations-of-classes", {"images": 2, "share_location": False, **CENTRE}),
        ("top-k", {"images": 2, "top_k": 3}),
        ("top-k-all", {"images": 2, "top_k": 5, "keep_top_k": [-1]}),
        ("all", {"images": 2, "keep_top_k": [-1], "background_label_id": -1}),
        ("none", {"confidence_threshold": 2.0}),
        ("confident", {"confidence_threshold": 0.5, "background_label_id": 1}),
        ("clipped", {"clip_before_nms": True, **CENTRE}),
        ("clipped-after", {"clip_after_nms": True, **CENTRE}),
        ("best-class", {"images": 2, "decrease_label_id": True}),
        ("best-class-top-k", {"images": 2, "decrease_label_id": True, "top_k": 6, "keep_top_k": [3], "share_location": False}),
        ("aux", {"images": 2, "aux": True, "objectness_score": 0.3, **CENTRE}),
        ("aux-clipped", {"aux": True, "objectness_score": 0.3, "clip_before_nms": True, "background_label_id": 2}),
        ("aux-pixels", {"aux": True, "objectness_score": 0.3, **PIXELS, **CENTRE}),
        ("aux-one-set", {"images": 2, "one": True, "aux": True, "objectness_score": 0.3, "share_location": False, "keep_top_k": [20]}),
        ("aux-best-class", {"aux": True, "objectness_score": 0.5, "decrease_label_id": True, "confidence_threshold": 0.1}),
    ]
]  # fmt: skip

test_values = values(VALUES)
test_shapes = shapes(SHAPES)
test_refusals = refusals(REFUSALS)
test_against_openvino = against_openvino(CASES)
