"""Behaviours of integers that a formula for real numbers does not give."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from irrun.specification.undefined.forms import Behaviour, Inputs, Undefined, in_reals, is_integer, limits

__all__ = ["BEHAVIOURS"]


def _overflowing_sum(op: Any, inputs: Inputs) -> Undefined:
    """A sum of products beyond the range of the integer type of the output, which is the type of the first input."""
    data = inputs[0]
    if data is None or not is_integer(data) or any(array is None for array in inputs):
        return False
    least, greatest = limits(data.dtype)
    exact = in_reals(op, inputs)[0]
    return (exact < least) | (exact > greatest)


def _rounded_integer(op: Any, inputs: Inputs) -> Undefined:
    """A fraction that the integer type of the output, which is the type of the first input, cannot hold."""
    data = inputs[0]
    if data is None or not is_integer(data) or any(array is None for array in inputs):
        return False
    exact = in_reals(op, inputs)[0]
    return exact != np.floor(exact)


BEHAVIOURS: Final[Mapping[str, Behaviour]] = {
    "overflowing-sum": _overflowing_sum,
    "rounded-integer": _rounded_integer,
}
