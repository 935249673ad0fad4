"""Conversions of the recurrences of ``served.patches`` to Loop, in the form that OpenVINO rewrites."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import openvino as ov
from openvino import opset14 as ops
from openvino.frontend.pytorch import ConversionExtension

__all__ = ["EXTENSIONS"]


def _recurrence(
    sliced: dict[Any, int], state: Any, shape: Any, axis: int, step: Callable[..., tuple[Any, Any]]
) -> list[Any]:
    """Return the outputs of all tokens and the last state of a Loop over the tokens of ``sliced``, along ``axis``.

    ``sliced`` holds the rank of each input. ``step`` takes the inputs of one token and the state, and returns the next state and an output with one token.
    ``shape`` is the shape of all outputs.
    """
    number = ops.parameter([], np.int32, "token")
    parts = [ops.parameter([1 if i == axis else -1 for i in range(rank)], np.float32) for rank in sliced.values()]
    held, filled = ops.parameter([-1] * 4, np.float32, "state"), ops.parameter([-1] * 4, np.float32, "filled")
    after, row = step(*parts, held)
    result = ops.scatter_update(filled, ops.unsqueeze(number, ops.constant(0)), row, ops.constant(axis))
    going_on = ops.constant([True], dtype=bool)
    body = ov.Model([going_on, after, result], [number, *parts, held, filled], "step")
    count = ops.convert(ops.gather(shape, ops.constant(axis), ops.constant(0)), "i32")
    loop = ops.loop(count, ops.constant(True, dtype=bool))
    loop.set_function(body)
    for part, value in zip(parts, sliced):
        loop.set_sliced_input(part, value, 0, 1, 1, -1, axis)
    loop.set_merged_input(held, state, after.output(0))
    loop.set_merged_input(filled, ops.broadcast(ops.constant(np.float32(0)), shape).output(0), result.output(0))
    loop.set_special_body_ports([0, 0])
    return [loop.get_iter_value(result.output(0), -1), loop.get_iter_value(after.output(0), -1)]


def _delta_rule(context: Any) -> list[Any]:
    query, key, value, gate, beta, state = (context.get_input(i) for i in range(6))
    last, rows = ops.constant(-1), ops.constant(-2)

    def step(query: Any, key: Any, value: Any, gate: Any, beta: Any, held: Any) -> tuple[Any, Any]:
        query, key, value = (ops.squeeze(x, ops.constant(2)) for x in (query, key, value))
        kept = ops.multiply(held, ops.unsqueeze(ops.exp(gate), last))
        column = ops.unsqueeze(key, last)
        delta = ops.multiply(ops.subtract(value, ops.reduce_sum(ops.multiply(kept, column), rows, False)), beta)
        after = ops.add(kept, ops.multiply(column, ops.unsqueeze(delta, rows)))
        return after, ops.reduce_sum(ops.multiply(after, ops.unsqueeze(query, last)), rows, True)

    ranks = {query: 4, key: 4, value: 4, gate: 3, beta: 3}
    return _recurrence(ranks, state, ops.shape_of(value), 2, step)


def _scan(context: Any) -> list[Any]:
    decay, added, read, state = (context.get_input(i) for i in range(4))

    def step(decay: Any, added: Any, read: Any, held: Any) -> tuple[Any, Any]:
        decay, added, read = (ops.squeeze(x, ops.constant(1)) for x in (decay, added, read))
        after = ops.add(ops.multiply(held, decay), added)
        row = ops.reduce_sum(ops.multiply(after, read), ops.constant(-1), False)
        return after, ops.unsqueeze(row, ops.constant(1))

    shape = ops.gather(ops.shape_of(added), ops.constant([0, 1, 2, 3]), ops.constant(0))
    return _recurrence({decay: 5, added: 5, read: 5}, state, shape, 1, step)


EXTENSIONS: Final = [
    ConversionExtension("served::delta_rule", _delta_rule), ConversionExtension("served::scan", _scan),
]  # fmt: skip
