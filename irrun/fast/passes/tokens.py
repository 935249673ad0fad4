"""Let one step do all that is between the products of a token: rotate, append to the past, and attend to it.

A layer of a decoder has ten steps there, which take longer than what they compute. For what is no single token, the
step runs these as they were.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from irrun.opdef import Kernel, Site, Value, Variables
from irrun.planning.decoders import Appending
from irrun.planning.flow import Context, Flow, is_static
from irrun.planning.steps import Step

__all__ = ["join_tokens"]


def join_tokens(flow: Flow, context: Context) -> Flow:
    """Join each attention of single queries with what rotates, appends and keeps its keys and values."""
    steps: dict[int, Step] = dict(enumerate(flow.steps))
    for position, step in enumerate(flow.steps):
        members = _members(flow, step, context) if step.kernel.joins.by_heads else None
        if members is not None:
            given = [_moves_before(flow, slot, context) for slot in _rows(flow, step)]
            after = _moves_after(flow, step, context)
            moves = [move for chain in (*given, after) for move in chain]
            for member in (*members, *moves):
                del steps[flow.made[member.writes[0]] if member.writes else flow.steps.index(member)]
            whole = sorted((*members, *moves), key=flow.steps.index)
            steps[position] = _joined(whole, step, given, after, context)
    return flow.replaced([steps[position] for position in sorted(steps)])


def _members(flow: Flow, attention: Step, context: Context) -> list[Step] | None:
    """Return the steps of a token that an attention can be joined with, and itself, in their order, or None."""
    if not 3 <= len(attention.reads) <= 5:
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
        if grown is None or not isinstance(grown.kernel.call, Appending):
            return None
        past = flow.maker(grown.reads[0], "ReadValue")
        if len(grown.reads) != (2 if grown.kernel.call.choose is None else 4) or grown.kernel.call.axis not in (2, -2):
            return None
        readers = [flow.steps[n] if n < flow.end else None for n in flow.readers[grown.writes[0]]]
        assigns = [step for step in readers if step is not attention]
        if len(readers) != 2 or len(assigns) != 1:
            return None
        assign = assigns[0]
        if assign is None or getattr(assign.op, "type", "") != "Assign":
            return None
        if any(slot in flow.readers for slot in assign.writes):
            return None
        positions |= {flow.made[grown.writes[0]], flow.steps.index(assign)}
        if past is not None and flow.only_reader(past.writes[0]) is not None:
            positions.add(flow.made[past.writes[0]])
    assert key is not None
    turned = flow.maker(key.reads[-1])
    if turned is None or turned.kernel.algorithm != "rotary" or turned.reads[1:] != query.reads[1:]:
        return None
    if flow.only_reader(turned.writes[0]) is None:
        return None
    positions.add(flow.made[turned.writes[0]])
    return [flow.steps[position] for position in sorted(positions)]


def _rows(flow: Flow, attention: Step) -> tuple[int, ...]:
    """Return the slots of the query and key before they are rotated, and of the value, of an attention of a token."""
    query, key, value = (flow.steps[flow.made[slot]] for slot in attention.reads[:3])
    return query.reads[0], flow.steps[flow.made[key.reads[-1]]].reads[0], value.reads[-1]


def _moves_before(flow: Flow, slot: int, context: Context) -> list[Step]:
    """Return the steps that give the elements of a slot another shape in the same order, which nothing else needs."""
    chain: list[Step] = []
    while (maker := flow.maker(slot)) is not None and _moves(flow, maker, context):
        chain.insert(0, maker)
        slot = maker.reads[0]
    return chain if _keeps_order(chain, context) else []


def _moves_after(flow: Flow, step: Step, context: Context) -> list[Step]:
    """Return the steps that give the results of a step another shape in the same order, if nothing else reads them."""
    chain: list[Step] = []
    while (reader := flow.only_reader((chain[-1] if chain else step).writes[0])) is not None:
        if not _moves(flow, flow.steps[reader], context, read=False) or not _keeps_order(
            [*chain, flow.steps[reader]], context
        ):
            break
        chain.append(flow.steps[reader])
    return chain


def _moves(flow: Flow, step: Step, context: Context, *, read: bool = True) -> bool:
    """Return whether a step moves elements to places that are known; with ``read``, for one other step alone."""
    given = [None if slot < 0 else context.values[slot] for slot in step.reads]
    known = all(value is None or value.data is not None for value in given[1:])
    if not known or not is_static(step, context.values) or not step.own_inputs or not step.op.moves(given):
        return False
    return not read or flow.only_reader(step.writes[0]) is not None


def _keeps_order(chain: Sequence[Step], context: Context) -> bool:
    shape = context.values[chain[0].reads[0]].shape.static if chain else None
    if shape is None:
        return not chain
    data = np.arange(prod(shape), dtype=np.float32).reshape(shape)
    for step in chain:
        data = step.op.run(data, *(None if slot < 0 else context.values[slot].exact for slot in step.reads[1:]))
    return data.size == prod(shape) and bool((data.reshape(-1) == np.arange(data.size)).all())


def _joined(
    members: Sequence[Step], attention: Step, given: Sequence[Sequence[Step]], after: Sequence[Step], context: Context
) -> Step:
    """Return the step in the place of an attention that does what the members do.

    ``given`` are those that only change the shapes of the query, the key and the value, and ``after`` of the results.
    """
    made = {slot for step in members for slot in step.writes}
    reads = tuple(dict.fromkeys(slot for step in members for slot in step.reads if slot >= 0 and slot not in made))
    by_slot = {slot: step for step in members for slot in step.writes}
    key, value = (by_slot[slot] for slot in attention.reads[1:3])
    writes = ((after[-1] if after else attention).writes[0], key.writes[0], value.writes[0])
    query, turned = by_slot[attention.reads[0]], by_slot[key.reads[-1]]
    rows = tuple(
        (chain[0].reads[0], context.values[slot].shape.static) if chain else (slot, None)
        for chain, slot in zip(given, (query.reads[0], turned.reads[0], value.reads[-1]))
    )
    first, second = key.kernel.call, value.kernel.call
    assert isinstance(first, Appending)
    assert isinstance(second, Appending)
    token = _Token(
        tuple(members),
        attention,
        query,
        (key, value),
        (first, second),
        (by_slot.get(key.reads[0]), by_slot.get(value.reads[0])),
        rows,
        context.values[writes[0]].shape.static if after else None,
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
    past: tuple[Step | None, Step | None]
    rows: tuple[tuple[int, tuple[int, ...] | None], ...]
    """The slots of query, key and value before they are rotated, and the shape of each, unless the slot has it."""
    shape: tuple[int, ...] | None
    """The shape of the results, unless it is that of the attention."""
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

        query, key, value = (
            given[slot] if shape is None else given[slot].reshape(shape) for slot, shape in self.rows
        )  # fmt: skip
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
        return out if self.shape is None else out.reshape(self.shape), room[0], room[1]

    def _past(self, given: dict[int, np.ndarray], number: int, variables: Variables) -> np.ndarray | None:
        """Return the keys or values of the past, of the rows of the batch that a Gather chooses."""
        step, read, choose = self.grown[number], self.past[number], self.appends[number].choose
        past = (
            given[step.reads[0]] if read is None else read.kernel.call(*map(given.get, read.reads), variables=variables)
        )
        if past.ndim != 4 or past.dtype != np.float32:
            return None
        if choose is None:
            return past
        rows, axis = given[step.reads[1]], given[step.reads[2]]
        is_first = len(past) == rows.size == 1 == rows.ndim and rows[0] == 0 == axis
        return past if is_first else choose(past, rows, axis)
