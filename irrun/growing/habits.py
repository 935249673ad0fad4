"""What networks write: which operations, element types, attributes and inputs, and how often.

A declaration allows more than a converter writes: an attribute may be left out, a list of axes may be an input, and a
convolution may be one of u16. Most graphs keep to these habits, so that an engine runs them; some do not.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, Final

import numpy as np

from irrun.growing.drafts import Draft, name_of
from irrun.opdef import Attribute, Input, Op
from irrun.opdef.attributes import REQUIRED
from irrun.specification import wording
from irrun.types import ELEMENT_TYPES, ElementType, type_set

__all__ = [
    "is_computed",
    "is_given",
    "is_rare",
    "is_weight",
    "is_written",
    "text_of",
    "usual_types",
    "weight",
    "written",
]

_EVERYWHERE: Final = frozenset({
    "Add", "AvgPool", "BatchNormInference", "Broadcast", "Clamp", "Concat", "Convert", "Convolution", "Divide",
    "FakeQuantize", "Gather", "Gelu", "GroupConvolution", "Interpolate", "MVN", "MatMul", "MaxPool", "Multiply", "Pad",
    "Power", "ReLU", "ReduceMean", "Reshape", "ScaledDotProductAttention", "ShapeOf", "Sigmoid", "Slice", "SoftMax",
    "Split", "Sqrt", "Squeeze", "StridedSlice", "Subtract", "Swish", "Tanh", "Transpose", "Unsqueeze", "VariadicSplit",
})  # fmt: skip
"""Types in many networks: convolutional ones, transformers, and what quantizers add."""
_OFTEN: Final = frozenset({
    "Abs", "AdaptiveAvgPool", "ConvolutionBackpropData", "Cos", "CumSum", "DepthToSpace", "DetectionOutput", "Elu",
    "Equal", "Erf", "Exp", "Floor", "FloorMod", "GRUSequence", "GatherElements", "GatherND", "Greater", "GreaterEqual",
    "GroupNormalization", "HSwish", "LSTMSequence", "Less", "LessEqual", "Log", "LogSoftmax", "LogicalAnd",
    "LogicalNot", "LogicalOr", "Maximum", "Minimum", "Mod", "Negative", "NonMaxSuppression", "NonZero",
    "NormalizeL2", "NotEqual", "OneHot", "PReLU", "PriorBox", "PriorBoxClustered", "Range", "ReduceMax", "ReduceMin",
    "ReduceProd", "ReduceSum", "Roll", "Round", "ScatterElementsUpdate", "ScatterNDUpdate", "ScatterUpdate", "Select",
    "Sin", "SoftPlus", "SpaceToDepth", "SquaredDifference", "Tile", "TopK",
})  # fmt: skip
"""Types in some networks: detectors, recurrent networks, and exporters' arithmetic of shapes and masks."""


def weight(type: str) -> int:
    """Return how often a type of layer is drawn, relative to one that networks hardly use."""
    return 12 if type in _EVERYWHERE else 4 if type in _OFTEN else 1


_NEWEST_OPSET: Final = 16
"""The newest operation set that converters write."""
_INTERNAL: Final = frozenset({"AUGRUCell", "AUGRUSequence", "RMS"})
"""Operations that OpenVINO's own transformations make, and no converter."""


def is_written(cls: type[Op]) -> bool:
    """Return whether converters write a version of an operation."""
    return cls.since <= _NEWEST_OPSET and cls.type not in _INTERNAL


# ---------------------------------------------------------------------------------------------
# element types

_OF_INTEGERS: Final = frozenset({
    "Abs", "Add", "BatchToSpace", "Broadcast", "Clamp", "Concat", "Convert", "ConvertLike", "CumSum", "DepthToSpace",
    "Divide", "Equal", "FloorMod", "Gather", "GatherElements", "GatherND", "Greater", "GreaterEqual", "Identity",
    "Less", "LessEqual", "Maximum", "Minimum", "Mod", "Multiply", "Negative", "NonZero", "NotEqual", "OneHot", "Pad",
    "Power", "Range", "ReLU", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceSum", "Reshape", "Reverse",
    "ReverseSequence", "Roll", "ScatterElementsUpdate", "ScatterNDUpdate", "ScatterUpdate", "Select", "ShapeOf", "Sign",
    "Slice", "SpaceToBatch", "SpaceToDepth", "Split", "SquaredDifference", "Squeeze", "StridedSlice", "Subtract",
    "Tile", "TopK", "Transpose", "Unique", "Unsqueeze", "VariadicSplit",
})  # fmt: skip
"""Operations that networks also apply to integers: arithmetic of shapes and masks, and moves."""
_FLOATS: Final = (*["f32"] * 17, "f16", "f16", "bf16")
_NUMBERS: Final = (*["f32"] * 13, "f16", "i32", "i32", "i64", "i64", "i64", "u8")
_WHOLE: Final = (*["i64"] * 11, *["i32"] * 8, "u8")
_INDICES: Final = (*["i64"] * 3, *["i32"] * 2)
"""Element types as often as networks have them."""


@cache
def usual_types(cls: type[Op], variable: str) -> tuple[str, ...]:
    """Return the element types that networks give inputs of a type variable and the page allows, each as often as
    networks do. Where the page allows none of them, return all that it allows."""
    page = wording(name_of(cls))
    says = page.types.get(variable) if page is not None else None
    allowed = {t.name for t in type_set(cls.types.get(variable, variable))}
    if says is not None:
        allowed &= {t.name for t in type_set(f"{says.types} {says.also}")} or allowed
    is_data = bool(cls.inputs) and variable == cls.inputs[0].type
    if "f32" in allowed and not _is_index(variable):
        usual: Sequence[str] = _NUMBERS if cls.type in _OF_INTEGERS and is_data else _FLOATS
    else:
        usual = _WHOLE if is_data else _INDICES
    found = tuple(type for type in usual if type in allowed)
    return found or tuple(sorted(t for t in allowed if ELEMENT_TYPES[t].kind != "dynamic"))


def _is_index(variable: str) -> bool:
    """Return whether inputs of a type variable are axes, lengths or indices, which some pages also allow as floats."""
    return any(part in variable for part in ("AXIS", "AXES", "LENGTHS", "IND"))


# ---------------------------------------------------------------------------------------------
# inputs

_COMPUTED: Final = frozenset({
    "Broadcast", "Gather", "GatherElements", "GatherND", "Pad", "Range", "Reshape", "ScatterElementsUpdate",
    "ScatterNDUpdate", "ScatterUpdate", "Slice", "StridedSlice", "Tile", "TopK",
})  # fmt: skip
"""Operations whose shapes, bounds and indices networks also compute. Those of others are constants."""
_GIVEN: Final = frozenset({
    "CumSum", "GRUCell", "LSTMCell", "NonMaxSuppression", "Swish", "EmbeddingBagOffsets", "CTCLoss",
    "CTCGreedyDecoderSeqLen", "ExperimentalDetectronDetectionOutput", "StridedSlice", "Slice", "Squeeze", "Col2Im",
})  # fmt: skip
"""Operations whose inputs networks write even where a default is meant."""
_WEIGHTS: Final = frozenset({
    "filters", "W", "R", "B", "P", "gamma", "beta", "mean", "variance", "alpha", "lambda", "slope", "input_low",
    "input_high", "output_low", "output_high", "scales", "scales_or_sizes", "iou_threshold", "score_threshold",
    "soft_nms_sigma", "emb_table", "window", "anchors", "priors", "scale", "bias",
})  # fmt: skip
"""The names of inputs of floats that are constants in networks."""


def is_computed(cls: type[Op], port: Input) -> bool:
    """Return whether networks also compute a setting of an operation."""
    return cls.type in _COMPUTED and port.name not in ("axis", "axes", "axes_mapping")


def is_given(cls: type[Op]) -> bool:
    """Return whether networks write all inputs of an operation."""
    return cls.type in _GIVEN


def is_weight(port: Input) -> bool:
    """Return whether an input of floats is a constant in networks."""
    return port.name in _WEIGHTS


# ---------------------------------------------------------------------------------------------
# attributes

_BESIDE_PAGES: Final = frozenset({"auto_broadcast.auto_broadcast_axis", "output_size", "output_roi"})
"""Attributes that occur in files, and that no page has."""
_EACH_AXIS: Final = {"strides": 1, "dilations": 1, "pads_begin": 0, "pads_end": 0, "output_padding": 0}
"""Attributes of windows with a number for each spatial axis, and the number that changes nothing."""


_RARE: Final = frozenset({"auto_broadcast", "min_max_aspect_ratios_order", "weights_format", "negative_indices_mode"})


def is_rare(attribute: Attribute) -> bool:
    """Return whether networks hardly ever change the default of an attribute."""
    return attribute.name in _RARE


def written(draft: Draft) -> Draft:
    """Return a layer as OpenVINO writes it: with every attribute, and lists as long as there are axes.

    Attributes that no page has are left out, and inputs that a mode does not read, too. A pad is narrower than the
    kernel of a pool, a background class keeps its label, and TopK finds an element at least. The operation may refuse
    the layer.
    """
    made, cls = draft.copy(), draft.cls
    for attribute in cls.attributes.values():
        if attribute.name in _BESIDE_PAGES and not attribute.required:
            made.attributes.pop(attribute.name, None)
        elif attribute.default not in (REQUIRED, None, ()):
            made.attributes.setdefault(attribute.name, text_of(attribute.default))
    names = {attribute.name for attribute in cls.attributes.values()}
    if {"strides", "pads_begin", "pads_end"} <= names and draft.ports and cls.type != "Col2Im":
        axes = len(draft.ports[0].shape) - 2
        for name in _EACH_AXIS.keys() & names:
            _resize(made, name, axes, _EACH_AXIS[name])
        if "kernel" in names:
            _narrow_pads(made)
    if cls.type == "StridedSlice" and len(draft.ports) > 1 and draft.ports[1].shape:
        for name in names:
            _resize(made, name, draft.ports[1].shape[0], 0)
    if made.attributes.get("background_label_id", "0") != "0":
        made.attributes["decrease_label_id"] = "false"
    if cls.type == "TopK" and made.ports[1].data is not None:
        made.ports[1].data = np.maximum(made.ports[1].data, 1)
    if cls.type == "Broadcast":
        explicit = made.attributes["mode"] == "explicit"
        made.ports = made.ports if explicit else made.ports[:2]
    return made


def _narrow_pads(draft: Draft) -> None:
    """Let each window of a pool hold an element that is no pad."""
    kernel = draft.attributes["kernel"].split(",")
    for name in ("pads_begin", "pads_end"):
        pads = draft.attributes[name].split(",")
        if len(pads) == len(kernel) and all([*pads, *kernel]):
            draft.attributes[name] = ",".join(str(min(int(p), max(int(k) - 1, 0))) for p, k in zip(pads, kernel))


def _resize(draft: Draft, name: str, length: int, fill: int) -> None:
    """Give a list of integers a length."""
    text = draft.attributes.get(name, "")
    numbers = text.split(",") if text.strip() else []
    if len(numbers) != length:
        draft.attributes[name] = ",".join([*numbers, *[str(fill)] * length][:length])


def text_of(value: Any) -> str:
    """Return the value of an attribute as IR files spell it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, ElementType):
        return value.name
    return ",".join(map(str, value)) if isinstance(value, tuple | list) else str(value)
