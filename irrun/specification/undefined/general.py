"""What the pages of operations of several families leave open."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from irrun.specification.undefined.forms import Behaviour, Inputs

__all__ = ["BEHAVIOURS"]


def _always(op: Any, inputs: Inputs) -> bool | np.ndarray:
    """All elements: the page does not define them."""
    return True


def _nan(op: Any, inputs: Inputs) -> bool | np.ndarray:
    """All outputs, if an input has a NaN."""
    return any(array is not None and array.dtype.kind in "fV" and bool(np.isnan(array).any()) for array in inputs)


BEHAVIOURS: Final[Mapping[str, Behaviour]] = {
    "nan": _nan,
    "no-definition": _always,
}
