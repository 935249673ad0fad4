"""Runs of a model in a precision, with inputs in any layout, and convolutions in f64."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

import irrun
from irrun import build as b
from irrun.growing.layouts import in_layout

__all__ = ["convolved", "inside", "node", "run"]

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


def convolved(
    data: np.ndarray, filters: np.ndarray, strides: Sequence[int], dilations: Sequence[int], pads: Sequence[int]
) -> np.ndarray:
    """The convolution with filters (groups, out, in, rows, columns), in f64."""
    groups, outs, ins, *kernel = filters.shape
    wide = np.pad(data.astype(np.float64), [(0, 0), (0, 0), *((pad, pad) for pad in pads)])
    sizes = [(n - (k - 1) * d - 1) // s + 1 for n, k, d, s in zip(wide.shape[2:], kernel, dilations, strides)]
    total = np.zeros((len(data), groups, outs, *sizes))
    for i, j in itertools.product(*map(range, kernel)):
        seen = wide[:, :, i * dilations[0] :: strides[0], j * dilations[1] :: strides[1]]
        split = seen[..., : sizes[0], : sizes[1]].reshape(len(data), groups, ins, *sizes)
        total += np.einsum("ngihw,goi->ngohw", split, filters[..., i, j])
    return total.reshape(len(data), groups * outs, *sizes)


def node(make: Any, x: Any, filters: Any, strides: Sequence[int], dilations: Sequence[int], pads: Sequence[int]) -> Any:
    return make(x, filters, strides=strides, dilations=dilations, pads_begin=pads, pads_end=pads)


def inside(x: Any) -> Any:
    """Add so many layers that the planner lays the channels last."""
    for _ in range(10):
        x = b.Negative(x)
    return x
