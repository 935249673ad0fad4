"""Runs of a model in a precision, with inputs in any layout."""

from __future__ import annotations

import random
from typing import Any, Final

import numpy as np

import irrun
from irrun import build as b
from irrun.growing.layouts import in_layout

__all__ = ["run"]

_LAYOUTS: Final = 12
"""Calls of a model, each with its inputs in another layout."""


def run(model: Any, way: str, *feeds: np.ndarray, precision: Any = "bf16") -> np.ndarray:
    """Run a model several times, with its inputs in other layouts, and return the result, which is always the same."""
    compiled = irrun.compile(b.model(model), exact=way == "exact", precision=precision)
    result = compiled(list(feeds))[0]
    dice = random.Random(0)
    for _ in range(_LAYOUTS):
        placed = [in_layout(feed, dice)[1] for feed in feeds]
        np.testing.assert_array_equal(compiled(placed)[0], result)
    return result
