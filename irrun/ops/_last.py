"""Operations on values with channels last that are the same operation along other axes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np

from irrun.opdef import CHANNELS_LAST, ORDER, Kernel, Op, Value


def permuted(data: Value) -> Value:
    """What is known of ``data``, of rank 4 and a static shape, with its channels last."""
    dims = data.shape.dims
    assert dims is not None
    return data.reshaped([dims[axis] for axis in ORDER])


def moved_axes(found: np.ndarray) -> np.ndarray:
    """Where these axes stand then."""
    return np.array([CHANNELS_LAST[axis] for axis in found.ravel().tolist()], found.dtype).reshape(found.shape)


def moved_entries(found: np.ndarray) -> np.ndarray:
    """The entries for all axes in the order in which these stand then."""
    return found[list(ORDER)]


def moved(
    op: Op,
    inputs: Sequence[Value | None],
    changes: Mapping[int, Callable[[np.ndarray], np.ndarray]] | None = None,
    **attributes: Any,
) -> Kernel | None:
    """The kernel of an operation whose first input has channels last, with other ``attributes``.

    ``changes`` tells by number how other inputs differ; None if one of these is not constant.
    """
    values, known = list(inputs), {}
    assert values[0] is not None
    values[0] = permuted(values[0])
    for number, change in (changes or {}).items():
        given = values[number]
        if given is None or given.exact is None:
            return None
        known[number] = change(given.exact)
        values[number] = Value.of(known[number], given.type)
    turned = copy(op)
    vars(turned).update(attributes)
    kernel = turned.prepare(*values)

    def call(data: np.ndarray, *rest: np.ndarray | None, **asked: Any) -> Any:
        return kernel.call(data, *[known.get(number, array) for number, array in enumerate(rest, 1)], **asked)

    algorithm = f"{kernel.algorithm}, channels last" if kernel.algorithm else "channels last"
    return replace(kernel, call=call, algorithm=algorithm, ignores=tuple({*kernel.ignores, *known}))
