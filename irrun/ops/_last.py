"""Kernels for channels-last data of operations for which only the axes change."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np

from irrun.opdef import CHANNELS_LAST, ORDER, Kernel, Op, Value


def permuted(data: Value) -> Value:
    """Return a value of rank 4 and static shape with its channels last. Its contents are not kept."""
    dims = data.shape.dims
    assert dims is not None
    return data.reshaped([dims[axis] for axis in ORDER])


def moved_axes(found: np.ndarray) -> np.ndarray:
    """Return these axes (channels first) as axes of channels-last data."""
    return np.array([CHANNELS_LAST[axis] for axis in found.ravel().tolist()], found.dtype).reshape(found.shape)


def moved_entries(found: np.ndarray) -> np.ndarray:
    """Return the entries for all axes in the order of the axes of channels-last data."""
    return found[list(ORDER)]


def moved(
    op: Op,
    inputs: Sequence[Value | None],
    changes: Mapping[int, Callable[[np.ndarray], np.ndarray]] | None = None,
    **attributes: Any,
) -> Kernel | None:
    """Return the kernel of ``op`` for a first input with channels last, and with these ``attributes`` replaced.

    ``changes`` maps the number of another input to the function that adapts its contents. Return None if one of these
    inputs is not constant.
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
    channels_last = copy(op)
    vars(channels_last).update(attributes)
    kernel = channels_last.prepare(*values)

    def call(data: np.ndarray, *rest: np.ndarray | None, **asked: Any) -> Any:
        return kernel.call(data, *[known.get(number, array) for number, array in enumerate(rest, 1)], **asked)

    algorithm = f"{kernel.algorithm}, channels last" if kernel.algorithm else "channels last"
    return replace(kernel, call=call, algorithm=algorithm, ignores=tuple({*kernel.ignores, *known}))
