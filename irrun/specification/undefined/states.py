"""Behaviours of recurrent cells and sequences."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from irrun.specification.undefined.forms import Behaviour, Inputs, Undefined

__all__ = ["BEHAVIOURS"]


def _beyond_the_ranges(op: Any, inputs: Inputs) -> Undefined:
    """Attributes outside the ranges of the page, which knows sigmoid and tanh alone, no clipping and one formula."""
    names = {name.strip().lower() for name in op.activations.split(",")}
    return not names <= {"sigmoid", "tanh"} or op.clip != 0 or op.linear_before_reset


def _beyond_the_sequence(op: Any, inputs: Inputs) -> Undefined:
    """Outputs of elements beyond the length of a sequence, and the last states of a sequence of length 0."""
    x, lengths = inputs[0], inputs[[port.name for port in op.inputs].index("sequence_lengths")]
    states = (op.outputs or 2) - 1
    if x is None or lengths is None:
        return (True,) * (1 + states)
    beyond = np.arange(x.shape[1]) >= np.asarray(lengths)[:, None]
    return (beyond[:, None, :, None], *((np.asarray(lengths) == 0)[:, None, None],) * states)


BEHAVIOURS: Final[Mapping[str, Behaviour]] = {
    "beyond-the-ranges": _beyond_the_ranges,
    "beyond-the-sequence": _beyond_the_sequence,
}
