"""The operations that engines compute to the last bit, for they move elements."""

from __future__ import annotations

from typing import Final

__all__ = ["MOVES"]

MOVES: Final = frozenset({
    "Broadcast", "Concat", "DepthToSpace", "Gather", "Identity", "Pad", "Reshape", "Reverse", "Roll", "ShapeOf",
    "ShuffleChannels", "Slice", "SpaceToDepth", "Split", "Squeeze", "StridedSlice", "Tile", "Transpose", "Unsqueeze",
    "VariadicSplit",
})  # fmt: skip
"""Operations that move elements and compute none: what only they give is equal to the last bit, but for numbers so
near to 0 that an engine takes them for 0."""
