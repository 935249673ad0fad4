"""Let attention write its results as the next product reads them: the heads of a token side by side.

Exporters write a Transpose and a Reshape after attention, which would copy its results.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from irrun.kernels.attention import FEW_QUERIES
from irrun.opdef import Calls
from irrun.planning.flow import Context, Flow, is_static
from irrun.planning.steps import Step

__all__ = ["join_heads"]


def join_heads(flow: Flow, context: Context) -> Flow:
    """Join kernels with ``Joins.by_heads`` and the steps that move their results to where they lie at once."""
    steps: dict[int, Step] = dict(enumerate(flow.steps))
    for position, step in enumerate(flow.steps):
        moves = _moves(flow, step, context) if step.kernel.joins.by_heads else []
        if moves:
            steps[position] = _joined([step, *(flow.steps[n] for n in moves)], context)
            for n in moves:
                del steps[n]
    return flow.replaced([steps[position] for position in sorted(steps)])


def _moves(flow: Flow, step: Step, context: Context) -> list[int]:
    """Return the positions of the most steps after attention that move the rows of the heads side by side."""
    values = context.values
    shape = values[step.writes[0]].shape.static if is_static(step, values) else None
    if shape is None or len(shape) != 4 or 0 in shape or 1 < shape[2] <= FEW_QUERIES:
        return []
    whole = np.empty((shape[0], shape[2], shape[1], shape[3]), np.byte)  # nothing reads or fills it
    data, last, chain, found = whole.swapaxes(1, 2), step, list[int](), 0
    while (reader := flow.only_reader(last.writes[0])) is not None:
        last = flow.steps[reader]
        constants = [None if slot < 0 else values[slot].exact for slot in last.reads[1:]]
        known = all(slot < 0 or values[slot].data is not None for slot in last.reads[1:])
        given = [None if slot < 0 else values[slot] for slot in last.reads]
        if not known or not is_static(last, values) or not last.own_inputs or not last.op.moves(given):
            break
        data = last.op.run(data, *constants)
        chain.append(reader)
        if not np.may_share_memory(data, whole):
            break
        if data.flags.c_contiguous and data.size == whole.size:
            found = len(chain)
    return chain[:found]


def _joined(steps: list[Step], context: Context) -> Step:
    """Return the step of attention that fills what the last of the steps after it gives."""
    first, last = steps[0], steps[-1]
    given, shape = (context.values[step.writes[0]].shape.static for step in (first, last))
    assert given is not None
    assert shape is not None
    (batch, heads, rows, width), target, (call, joins) = given, shape, (first.kernel.call, first.kernel.joins)
    calls_of = joins.calls

    def placed(whole: np.ndarray) -> np.ndarray:
        return whole.reshape(batch, rows, heads, width).swapaxes(1, 2)

    def by_rows(*arrays: Any, out: np.ndarray | None = None) -> np.ndarray:
        whole = np.empty(target, np.float32) if out is None else out
        call(*arrays, out=placed(whole))
        return whole

    def calls(*arrays: Any, out: np.ndarray, spare: np.ndarray) -> Calls:
        assert calls_of is not None
        return calls_of(*arrays, out=placed(out), spare=spare)

    joins = replace(joins, calls=None if calls_of is None else calls, by_heads=False)
    kernel = replace(first.kernel, call=by_rows, out="whole", joins=joins)
    layers = tuple(layer for step in steps for layer in step.layers)
    return replace(last, kernel=kernel, reads=first.reads, layers=layers, dynamic=False, own_inputs=False)
