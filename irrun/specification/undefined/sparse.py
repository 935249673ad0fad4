"""What the pages of sparse operations leave open."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from irrun.specification.undefined.forms import Behaviour, Inputs

__all__ = ["BEHAVIOURS"]


def _mean_of_integers(op: Any, inputs: Inputs) -> bool | np.ndarray:
    """Means of integers that are no integers."""
    table = inputs[0]
    if op.reduction != "mean" or table is None or table.dtype.kind not in "iu" or inputs[1] is None:
        return False
    exact = op.run(table.astype(np.float64), *inputs[1:])
    return exact != np.rint(exact)


def _mean_of_nothing(op: Any, inputs: Inputs) -> bool | np.ndarray:
    """All means of EmbeddingBagPacked, if bags are empty."""
    return op.reduction == "mean" and inputs[1] is not None and inputs[1].shape[1] == 0


def _segments_out_of_order(op: Any, inputs: Inputs) -> bool | np.ndarray:
    """All elements of EmbeddingSegmentsSum, if ``segment_ids`` are not sorted."""
    segments = inputs[2]
    return segments is not None and bool((np.diff(segments) < 0).any())


def _default_of_minus_one(op: Any, inputs: Inputs) -> bool | np.ndarray:
    """Empty segments, if ``default_index`` is -1."""
    table, _, segments, count = inputs[:4]
    default = inputs[4] if len(inputs) > 4 else None
    if table is None or segments is None or count is None or default is None or int(default) != -1:
        return False
    return (np.bincount(segments, minlength=int(count)) == 0).reshape(-1, *[1] * (table.ndim - 1))


def _places_named_twice(op: Any, inputs: Inputs) -> bool | np.ndarray:
    """All outputs of SparseFillEmptyRows, if two values have one place."""
    indices = inputs[2]
    return indices is not None and len(np.unique(indices, axis=0)) < len(indices)


BEHAVIOURS: Final[Mapping[str, Behaviour]] = {
    "default-of-minus-one": _default_of_minus_one,
    "mean-of-integers": _mean_of_integers,
    "mean-of-nothing": _mean_of_nothing,
    "places-named-twice": _places_named_twice,
    "segments-out-of-order": _segments_out_of_order,
}
