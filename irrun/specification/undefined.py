"""What the pages leave open: for each behaviour, which elements of an operation's outputs no page determines.

A behaviour is a function of the operation and the arrays of its inputs, None for an input that is left out or is not
known. It returns a bool, or an array of bools that broadcasts with each output: True where the page gives no answer.
The files of ``irrun/specification`` name the behaviours of a version, with the sentence of its page. Several versions
may share a behaviour.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np

from irrun.opdef import Op

__all__ = ["BEHAVIOURS", "Behaviour", "Inputs"]

Inputs = Sequence[np.ndarray | None]
Behaviour = Callable[[Op, Inputs], "bool | np.ndarray"]


def _zero_divisor(op: Op, inputs: Inputs) -> bool | np.ndarray:
    """A quotient or remainder whose divisor is 0."""
    divisor = inputs[1]
    return divisor is not None and divisor == 0


BEHAVIOURS: Final[Mapping[str, Behaviour]] = {
    "zero-divisor": _zero_divisor,
}
"""The behaviours by the names that the files of ``irrun/specification`` use."""
