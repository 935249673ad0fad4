"""Let compiled kernels compute the element-wise steps after them as an epilogue.

A kernel with ``Joins.with_epilogue`` applies bias, residual, clamp and an activation to its results before they leave
the cache. The remaining element-wise steps are fused as usual (``irrun.planning.fuse``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from irrun.opdef import Epilogue, Joins, Value
from irrun.planning.flow import Context, Flow, is_static
from irrun.planning.steps import Step

__all__ = ["absorb_followers"]


def absorb_followers(flow: Flow, context: Context) -> Flow:
    """Let kernels take over the element-wise steps after them; keep the remaining steps."""
    made = dict(flow.made)
    steps: dict[int, Step] = dict(enumerate(flow.steps))
    for position, step in enumerate(flow.steps):
        with_epilogue = step.kernel.joins.with_epilogue
        if with_epilogue is None:
            continue
        epilogue, reads, layers, last, place = Epilogue(), step.reads, step.layers, step, position
        while (reader := flow.only_reader(last.writes[0])) is not None and reader in steps:
            then, own = steps[reader], last.writes[0]
            other = _other_input(then, own)
            extended = _extended(epilogue, then, own, other, context.values, step.kernel.joins)
            if extended is None:
                break
            if extended.residual and not epilogue.residual:
                reads = (*reads, other)
                if made.get(other, -1) >= position:  # the residual is computed after this step
                    place = reader
            epilogue, layers, last = extended, (*layers, *then.layers), then
            del steps[reader]
        if last is not step:
            kernel = with_epilogue(epilogue)
            del steps[position]
            steps[place] = replace(last, kernel=kernel, reads=reads, layers=layers, dynamic=False, own_inputs=False)
            made[last.writes[0]] = place
    return flow.replaced([steps[position] for position in sorted(steps)])


def _other_input(step: Step, own: int) -> int:
    """Return the slot that a step of two inputs reads besides ``own``, or -1 for another number of inputs."""
    return step.reads[1 - step.reads.index(own)] if len(step.reads) == 2 else -1


def _extended(
    epilogue: Epilogue, step: Step, own: int, other: int, values: Sequence[Value], joins: Joins
) -> Epilogue | None:
    """Return the epilogue that also computes ``step``, or None if there is none.

    ``own`` is the slot of the results so far, and ``other`` the other input of ``step``, or -1. ``joins`` are those of
    the kernel with the epilogue.
    """
    if step.kernel.out != "elementwise" or not is_static(step, values):
        return None
    formula, value = step.kernel.joins.formula, values[own]
    result = values[step.writes[0]]
    if value.type is not result.type or value.shape != result.shape or epilogue.change is not None:
        return None
    if step.kernel.joins.change is not None:
        return replace(epilogue, change=step.kernel.joins.change)
    if formula is None or epilogue.limits is not None:
        return None
    if formula[0] == "clamp":
        return replace(epilogue, limits=(formula[1], formula[2]))
    rounds = formula[0] == "add rounded" and other == step.reads[int(formula[1])]
    if (formula[0] != "add" and not rounds) or other < 0 or values[other].type is not value.type:
        return None
    bias = _bias(values[other], value, joins.bias_axis)
    if bias is not None:
        return replace(epilogue, bias=bias if epilogue.bias is None else epilogue.bias + bias)
    added, shape = values[other].shape.static, value.shape.static
    row = joins.adds_rows and shape is not None and added == (*[1] * (len(shape) - 1), shape[-1])
    if epilogue.residual or not (row or values[other].shape == value.shape):
        return None
    return replace(epilogue, residual=True, row=row, rounds=rounds)


def _bias(constant: Value, value: Value, axis: int) -> np.ndarray | None:
    """Return the numbers that a constant adds to each element of an axis of ``value``, or None."""
    array, shape = constant.exact, value.shape.static
    if array is None or shape is None or not array.size or array.ndim > len(shape):
        return None
    if axis != -1:
        array = np.moveaxis(array.reshape((1,) * (len(shape) - array.ndim) + array.shape), axis, -1)
        shape = (shape[axis],)
    first = array.reshape(-1, array.shape[-1])[0] if array.ndim else array
    if not np.array_equal(np.broadcast_to(first, array.shape), array, equal_nan=True):
        return None
    return np.ascontiguousarray(np.broadcast_to(first, shape[-1:]))
