"""How often networks use each type of layer: what a campaign finds in these types, users meet."""

from __future__ import annotations

from typing import Final

__all__ = ["weight"]

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
    return 6 if type in _EVERYWHERE else 3 if type in _OFTEN else 1
