"""What the pages leave open: for each behaviour, which elements of an operation's outputs no page determines.

A behaviour is a function of the operation and the arrays of its inputs, None for an input that is left out or is not
known. It returns a bool, or an array of bools that broadcasts with each output: True where the page gives no answer.
It returns a tuple with one of these for each output where the outputs differ. The files of ``irrun/specification``
name the behaviours of a version, with the sentence of its page. Several versions may share a behaviour. Each module
of this package holds a family of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from irrun.opdef import Op
from irrun.specification.undefined import (
    algebra,
    conversions,
    elements,
    generators,
    images,
    lines,
    movement,
    numbers,
    regions,
    signals,
    sorting,
    sparse,
    states,
    windows,
)
from irrun.specification.undefined.forms import Behaviour, Inputs, Undefined

__all__ = ["BEHAVIOURS", "Behaviour", "Inputs", "Undefined", "shown"]

_FAMILIES: Final = (
    algebra, conversions, elements, generators, images, lines, movement, numbers,
    regions, signals, sorting, sparse, states, windows,
)  # fmt: skip

BEHAVIOURS: Final[Mapping[str, Behaviour]] = {
    name: behaviour for family in _FAMILIES for name, behaviour in family.BEHAVIOURS.items()
}
"""The behaviours by the names that the files of ``irrun/specification`` use."""


def shown(op: Op, inputs: Inputs, name: str, outputs: int) -> tuple[np.ndarray, ...]:
    """Return the elements that a behaviour leaves open: for each output, bools that broadcast with it."""
    with np.errstate(all="ignore"):
        found = BEHAVIOURS[name](op, inputs)
    return tuple(map(np.asarray, found if isinstance(found, tuple) else (found,) * outputs))
