"""Of u2 and f4e2m1, which are packed, bytes are moved instead of elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np

_MOVES = frozenset({
    "BatchToSpace", "Broadcast", "Concat", "DepthToSpace", "ExtractImagePatches", "Gather", "GatherElements",
    "GatherND", "OneHot", "Pad", "Reverse", "Roll", "ScatterUpdate", "ShuffleChannels", "Slice", "SpaceToBatch",
    "SpaceToDepth", "Split", "StridedSlice", "Tile", "Transpose", "VariadicSplit",
})  # fmt: skip


def openvino(layer: Any) -> Sequence[np.ndarray] | None:
    """Return what OpenVINO gives for a layer."""
    if layer.op.type not in _MOVES or layer.outputs[0].dtype not in (ml_dtypes.uint2, ml_dtypes.float4_e2m1fn):
        return None
    return [np.ma.masked_all_like(output) for output in layer.outputs]
