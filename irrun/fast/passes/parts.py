"""Let compiled kernels read what a Concat would copy, such as a convolution of a U-Net."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from irrun.opdef import Value
from irrun.planning.flow import Context, Flow, is_static
from irrun.planning.steps import Step

__all__ = ["absorb_concats"]


def absorb_concats(flow: Flow, context: Context) -> Flow:
    """Let kernels with ``Joins.in_parts`` read the inputs of the Concat before them, if no other step reads it."""
    steps: dict[int, Step] = dict(enumerate(flow.steps))
    for position, step in enumerate(flow.steps):
        in_parts = step.kernel.joins.in_parts
        concat = None if in_parts is None else flow.maker(step.reads[0], "Concat")
        if in_parts is None or concat is None or flow.only_reader(step.reads[0]) is None:
            continue
        sizes = _sizes(concat, context.values)
        kernel = in_parts(sizes) if sizes else None
        if kernel is not None:
            del steps[flow.made[step.reads[0]]]
            reads, layers = (*concat.reads, *step.reads[1:]), (*concat.layers, *step.layers)
            steps[position] = replace(step, kernel=kernel, reads=reads, layers=layers, own_inputs=False)
    return flow.replaced([steps[position] for position in sorted(steps)])


def _sizes(concat: Step, values: Sequence[Value]) -> list[int]:
    """Return the sizes of the last axes of what a Concat joins along the last axis; none if it joins along another."""
    if not is_static(concat, values):
        return []
    *before, whole = values[concat.writes[0]].shape.static or (0,)
    shapes = [list(values[slot].shape.static or (0,)) for slot in concat.reads]
    along_last = all(shape[:-1] == before and shape[-1] < whole for shape in shapes)
    return [shape[-1] for shape in shapes] if along_last else []
