"""Shared by the operations of connectionist temporal classification (CTC): decoding, and dims that inputs share."""

import numpy as np

from irrun.opdef import Site, Value
from irrun.types import Dim


def same_dim(at: Site, label: str, **inputs: tuple[Value, int]) -> Dim:
    """Return the dim that several inputs share, each at an axis of its own. Refuses inputs whose dims differ."""
    dim = Dim.unknown()
    for name, (value, axis) in inputs.items():
        if value.shape.dims is None:
            continue
        both = dim.meet(value.shape[axis])
        message = f"dim {axis} of {name} {value.shape} is {value.shape[axis]}, not {dim} as in the inputs before it"
        at.require(both is not None, label, message)
        dim = both or dim
    return dim


def decode(best: np.ndarray, inside: np.ndarray, blank: int, merge_repeated: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return the classes [batch, time] of the best path without repetitions and blanks, and their number [batch].

    ``best`` is the best class and ``inside`` whether the sequence has an element, both [batch, time]. Behind the last
    class of a path, the result is -1. Repetitions are dropped only with ``merge_repeated``.
    """
    kept = inside & (best != blank)
    if merge_repeated:
        kept[:, 1:] &= best[:, 1:] != best[:, :-1]
    count = kept.sum(axis=1)
    front = np.argsort(~kept, axis=1, kind="stable")
    classes = np.take_along_axis(best, front, axis=1)
    return np.where(np.arange(best.shape[1]) < count[:, None], classes, -1), count
