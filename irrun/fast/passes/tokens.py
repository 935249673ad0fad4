"""Let one step do all that is between the products of a token: rotate, append to the past, and attend to it.

A layer of a decoder has ten steps there, which take longer than what they compute. For what is no single token, the
step runs these as they were.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from irrun.opdef import Kernel, Site, Value, Variables
from irrun.planning.decoders import Appending
from irrun.planning.flow import Context, Flow
from irrun.planning.steps import Step

__all__ = ["join_tokens"]


def join_tokens(flow: Flow, context: Context) -> Flow:
    """Join each attention of single queries with what rotates, appends and keeps its keys and values."""
    steps: dict[int, Step] = dict(enumerate(flow.steps))
    for position, step in enumerate(flow.steps):
        members = _members(flow, step, context) if step.op.type == "ScaledDotProductAttention" else None
        if members is not None:
            for member in members:
                del steps[flow.made[member.writes[0]] if member.writes else flow.steps.index(member)]
            steps[position] = _joined(members, step)
    return flow.replaced([steps[position] for position in sorted(steps)])


def _members(flow: Flow, attention: Step, context: Context) -> list[Step] | None:
    """Return the steps of a token that an attention can be joined with, and itself, in their order, or None."""
    if not attention.kernel.joins.by_heads or not 3 <= len(attention.reads) <= 5:
        return None
    shape = context.values[attention.reads[0]].shape.dims
    if getattr(attention.op, "causal", False) or shape is None or len(shape) != 4 or shape[2] != 1:
        return None
    positions = {flow.made[attention.writes[0]]}
    query, key, value = (flow.maker(slot) for slot in attention.reads[:3])
    if query is None or query.kernel.algorithm != "rotary" or flow.only_reader(query.writes[0]) is None:
        return None
    positions.add(flow.made[query.writes[0]])
    for grown in (key, value):
        past = None if grown is None else flow.maker(grown.reads[0], "ReadValue")
        if grown is None or past is None or not isinstance(grown.kernel.call, Appending):
            return None
        if len(grown.reads) != (2 if grown.kernel.call.choose is None else 4) or grown.kernel.call.axis not in (2, -2):
            return None
        readers = [flow.steps[n] if n < flow.end else None for n in flow.readers[grown.writes[0]]]
        assigns = [step for step in readers if step is not attention]
        if flow.only_reader(past.writes[0]) is None or len(readers) != 2 or len(assigns) != 1:
            return None
        assign = assigns[0]
        if assign is None or assign.op.type != "Assign" or any(slot in flow.readers for slot in assign.writes):
            return None
        positions |= {flow.made[past.writes[0]], flow.made[grown.writes[0]], flow.steps.index(assign)}
    assert key is not None
    turned = flow.maker(key.reads[-1])
    if turned is None or turned.kernel.algorithm != "rotary" or turned.reads[1:] != query.reads[1:]:
        return None
    if flow.only_reader(turned.writes[0]) is None:
        return None
    positions.add(flow.made[turned.writes[0]])
    return [flow.steps[position] for position in sorted(positions)]


def _joined(members: Sequence[Step], attention: Step) -> Step:
    """Return the step in the place of an attention that does what the members do."""
    made = {slot for step in members for slot in step.writes}
    reads = tuple(dict.fromkeys(slot for step in members for slot in step.reads if slot >= 0 and slot not in made))
    by_slot = {slot: step for step in members for slot in step.writes}
    key, value = (by_slot[slot] for slot in attention.reads[1:3])
    writes = (attention.writes[0], key.writes[0], value.writes[0])
    first, second = key.kernel.call, value.kernel.call
    assert isinstance(first, Appending)
    assert isinstance(second, Appending)
    token = _Token(
        tuple(members),
        attention,
        by_slot[attention.reads[0]],
        (key, value),
        (first, second),
        (by_slot[key.reads[0]], by_slot[value.reads[0]]),
        by_slot[key.reads[-1]],
        reads,
        writes,
    )
    return replace(
        attention,
        kernel=Kernel(token.call, "of a token"),
        reads=reads,
        writes=writes,
        layers=tuple(layer for step in members for layer in step.layers),
        needed={"variables": None},
        dynamic=False,
        own_inputs=False,
    )


@dataclass(frozen=True, slots=True)
class _Token:
    """The steps of a token in one, in their order, and which of them does what.

    ``reads`` and ``writes`` are the slots of the inputs and outputs: results, keys, values.
    """

    members: tuple[Step, ...]
    attention: Step
    query: Step
    grown: tuple[Step, Step]
    appends: tuple[Appending, Appending]
    past: tuple[Step, Step]
    key: Step
    reads: tuple[int, ...]
    writes: tuple[int, ...]

    def call(self, *arrays: np.ndarray, variables: Variables) -> tuple[np.ndarray, ...]:
        """The kernel of the step."""
        given = dict(zip(self.reads, arrays))
        results = self.at_once(given, variables)
        return self.in_turn(given, variables) if results is None else results

    def in_turn(self, held: dict[int, np.ndarray], variables: Variables) -> tuple[np.ndarray, ...]:
        """Run the steps one after the other."""
        for step in self.members:
            inputs = [held.get(slot) for slot in step.reads]
            if step.dynamic:
                values = [None if array is None else Value.of(array) for array in inputs]
                step.op.infer(Site(), *values, **dict.fromkeys(step.needed))
            returned = step.kernel.call(*inputs, **dict.fromkeys(step.needed, variables))
            held.update(zip(step.writes, returned if isinstance(returned, tuple) else (returned,)))
        return tuple(held[slot] for slot in self.writes)

    def at_once(self, given: dict[int, np.ndarray], variables: Variables) -> tuple[np.ndarray, ...] | None:
        """Let one call of machine code do all, if the inputs are those of a token that follows others; else None."""
        from irrun.fast.tokens.few_queries import attend_to_past, masks_of

        query, key = given[self.query.reads[0]], given[self.key.reads[0]]
        value = given[self.grown[1].reads[-1]]
        cosines, sines = (given[slot] for slot in self.query.reads[1:3])
        mask, scale = (given.get(slot) for slot in (*self.attention.reads[3:5], -1, -1)[:2])
        keys, values = (self._past(given, n, variables) for n in range(2))
        if keys is None or values is None:
            return None
        (batch, heads, _, width), (groups, count), wide = query.shape, keys.shape[1:3], values.shape[3]
        shapes = (batch, groups, 1, width), (batch, groups, 1, wide), (batch, groups, count, width)
        if (key.shape, value.shape, keys.shape, values.shape) != (*shapes, (batch, groups, count, wide)):
            return None
        arrays = query, key, value, cosines, sines
        if not (groups and width and wide) or heads % groups or cosines.size != width or sines.size != width:
            return None
        if any(array.dtype != np.float32 for array in arrays):
            return None
        query, key, value, cosines, sines = map(np.ascontiguousarray, arrays)
        masks = masks_of(mask, (batch, heads, 1, count + 1))
        if masks is None or (mask is not None and mask.dtype not in (np.float32, np.bool_)):
            return None
        factor = float(width) ** -0.5 if scale is None else scale.item()
        room = [variables.extended(own.id, past, 1, 2) for own, past in zip(self.appends, (keys, values))]
        out = np.empty((batch, heads, 1, wide), np.float32)
        attend_to_past(query, key, value, (cosines, sines), room[0], room[1], masks, factor, out)
        for own, new in zip(self.appends, room):
            variables.assign(own.id, new)
        return out, room[0], room[1]

    def _past(self, given: dict[int, np.ndarray], number: int, variables: Variables) -> np.ndarray | None:
        """Return the keys or values of the past, of the rows of the batch that a Gather chooses."""
        step, read, choose = self.grown[number], self.past[number], self.appends[number].choose
        past = read.kernel.call(*map(given.get, read.reads), variables=variables)
        if past.ndim != 4 or past.dtype != np.float32:
            return None
        if choose is None:
            return past
        rows, axis = given[step.reads[1]], given[step.reads[2]]
        is_first = len(past) == rows.size == 1 == rows.ndim and rows[0] == 0 == axis
        return past if is_first else choose(past, rows, axis)
