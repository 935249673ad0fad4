"""The patterns of layers that plugins compute as one node, and the conditions that a file must meet for it.

The conditions are those that the CPU plugin of OpenVINO was seen to have. A match is looser than a condition, so that a
pattern in which a single thing is wrong is still found, and the first condition that it does not meet is named.
"""

from __future__ import annotations

from typing import Final

from irrun.debug.runtime.integers import COMPRESSED_WEIGHTS, QUANTIZED_PRODUCT
from irrun.debug.runtime.normalization import LAYER_NORM, RMS_NORM
from irrun.debug.runtime.pattern import Pattern
from irrun.debug.runtime.transformers import ATTENTION, GELU, ROPE

__all__ = ["PATTERNS"]

PATTERNS: Final[tuple[Pattern, ...]] = (
    LAYER_NORM, RMS_NORM, GELU, ROPE, ATTENTION, COMPRESSED_WEIGHTS, QUANTIZED_PRODUCT,
)  # fmt: skip
"""Every pattern, in the order in which it is shown."""
