"""Which constants of a stateful model and its paged form differ, although no token showed it."""

from __future__ import annotations

import numpy as np

from irrun.debug.difference.content import Content
from irrun.debug.paged.sides import contents
from irrun.debug.paged.twins import twins
from irrun.model import is_constant
from irrun.running.executor import Executable

__all__ = ["differing_constants"]


def differing_constants(stateful: Executable, paged: Executable) -> Content | None:
    """Return the constants of the paged form with other contents than their counterparts, or None.

    Only floats count: shapes and indices differ in both forms. A constant that equals any one of the stateful model
    does not count: layers may be paired crosswise.
    """
    mine, theirs = paged.model, stateful.model
    pairs = twins(mine, theirs)
    every = [contents(stateful, (id, 0)) for id, layer in theirs.layers.items() if is_constant(layer)]
    found: list[int] = []
    for id, other in pairs.items():
        if not is_constant(mine.layers[id]) or not is_constant(theirs.layers[other]):
            continue
        own, expected = contents(paged, (id, 0)), contents(stateful, (other, 0))
        if own is None or expected is None or own.dtype.kind not in "fV":
            continue
        if own.shape != expected.shape or own.dtype != expected.dtype:
            continue
        if not any(one is not None and np.array_equal(one, own) for one in every):
            found.append(id)
    if not found:
        return None
    reader = mine.layers[mine.consumers[found[0]][0]]
    return Content(len(found), 0, mine.layers[found[0]].name, f'{reader.type} "{reader.name}"')
