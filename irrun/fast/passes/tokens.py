"""Let one step do all that is between the products of a token: rotate, append to the past, and attend to it.

A layer of a decoder has ten steps there, which take longer than what they compute. For what is no single token, the
step runs these as they were.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod, sqrt
from typing import Any, Final, NamedTuple

import numpy as np

from irrun.opdef import Begin, Calls, Joins, Kernel, Variables
from irrun.planning.decoders import Appending
from irrun.planning.failures import run_within
from irrun.planning.flow import Context, Flow, is_static
from irrun.planning.steps import Step

__all__ = ["join_tokens"]

_BYTES: Final = 96
"""Bytes in which the call of a token finds what is new in a run: see ``few_queries.tell_past``."""


def join_tokens(flow: Flow, context: Context) -> Flow:
    """Join each attention of single queries with what rotates, appends and keeps its keys and values."""
    steps: dict[int, Step] = dict(enumerate(flow.steps))
    for position, step in enumerate(flow.steps):
        members = _members(flow, step, context) if step.kernel.joins.by_heads else None
        if members is not None:
            given = [_moves_before(flow, slot, context) for slot in _rows(flow, step)]
            after = _moves_after(flow, step, context)
            whole = sorted((*members, *(move for chain in (*given, after) for move in chain)), key=flow.steps.index)
            joined = _joined(whole, step, given, after, context)
            for member in whole if joined is not None else ():
                del steps[flow.made[member.writes[0]] if member.writes else flow.steps.index(member)]
            if joined is not None:
                steps[position] = joined
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
        append = None if grown is None else grown.kernel.call
        if grown is None or not isinstance(append, Appending) or append.assign is None or append.axis not in (2, -2):
            return None
        if len(grown.reads) != append.pasts + 2 * (append.gather is not None) + 1:
            return None
        if flow.only_reader(grown.writes[0]) is None:
            return None
        positions.add(flow.made[grown.writes[0]])
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
) -> Step | None:
    """Return the step in the place of an attention that does what the members do. None if shapes are not known.

    ``given`` are those that only change the shapes of the query, the key and the value, and ``after`` of the results.
    """
    made = {slot for step in members for slot in step.writes}
    reads = tuple(dict.fromkeys(slot for step in members for slot in step.reads if slot >= 0 and slot not in made))
    by_slot = {slot: step for step in members for slot in step.writes}
    grown = key, value = by_slot[attention.reads[1]], by_slot[attention.reads[2]]
    result = (after[-1] if after else attention).writes[0]
    query, turned = by_slot[attention.reads[0]], by_slot[key.reads[-1]]
    rows = query.reads[0], turned.reads[0], value.reads[-1]
    angles = query.reads[1:3]
    known = [context.values[slot] for slot in (*rows, *angles, result)]
    query_shape, key_shape, value_shape, *others = (value.shape.static or () for value in known[:-1])
    if any(value.type.name != "f32" or not value.shape.is_static for value in known) or len(query_shape) != 4:
        return None
    batch, heads, _, width = query_shape
    groups, wide = (*key_shape, 0, 0)[1], (*value_shape, 0, 0, 0, 0)[3]
    fits = query_shape[2] == 1 and key_shape == (batch, groups, 1, width) and value_shape == (batch, groups, 1, wide)
    turns = others[0] == others[1] and (prod(others[0]) == width or others[0] == (batch, 1, 1, width))
    if not fits or not turns or not batch * groups * width * wide or heads % groups:
        return None
    mask, scale = (*attention.reads[3:5], -1, -1)[:2]
    begin = tuple(chain[0].reads[0] if chain else slot for chain, slot in zip(given, rows))
    past = tuple(_Past.of(step, reads) for step in grown)
    sizes = _Sizes(batch, heads, groups, width, wide)
    seen = tuple(reads.index(slot) if slot >= 0 else -1 for slot in (mask, scale))
    token = _Token(tuple(members), past, (*begin, *angles), seen, sizes, reads, result)
    begin = Begin(token.first, token.again, tuple(one.append.id for one in past), token.looks_at)
    return replace(
        attention,
        kernel=Kernel(token.call, "of a token", joins=Joins(calls=token.calls, begin=begin, spare_bytes=_BYTES)),
        reads=reads,
        writes=(result,),
        layers=tuple(layer for step in members for layer in step.layers),
        needed={"variables": None},
        grows=tuple(pair for step in members for pair in step.grows),
        dynamic=False,
        own_inputs=False,
    )


class _Sizes(NamedTuple):
    """The sizes of a token: its batch, heads of queries, groups of them, and the widths of keys and values."""

    batch: int
    heads: int
    groups: int
    width: int
    wide: int


@dataclass(frozen=True, slots=True)
class _Past:
    """Where a step finds the keys or values of the past. ``append`` is the kernel that makes room for one more.

    ``given`` and ``chosen`` are numbers of inputs of the step: ``given`` hold the past or its initial value, ``chosen``
    the rows of the batch to choose and their axis.
    """

    append: Appending
    given: tuple[int, ...]
    chosen: tuple[int, ...]

    @staticmethod
    def of(step: Step, reads: tuple[int, ...]) -> _Past:
        assert isinstance(step.kernel.call, Appending)
        places, pasts = tuple(map(reads.index, step.reads[:-1])), step.kernel.call.pasts
        return _Past(step.kernel.call, places[:pasts], places[pasts:])

    def longer(self, arrays: Sequence[Any], sizes: tuple[int, ...], variables: Variables) -> np.ndarray | None:
        """Return the past with room for one more, or None if it is no f32 of these ``sizes`` and any length.

        It becomes the value of the variable.
        """
        past = self.append.past([arrays[n] for n in self.given], variables)
        if self.append.gather is not None and not self.takes_all(arrays, len(past) if past.ndim else 0):
            past = self.append.gather.kernel.call(past, *(arrays[n] for n in self.chosen))
        if past.ndim != 4 or past.dtype != np.float32 or past.shape != (*sizes[:2], past.shape[2], sizes[2]):
            return None
        longer = variables.extended(self.append.id, past, 1, 2)
        variables.assign(self.append.id, longer)
        return longer

    def takes_all(self, arrays: Sequence[Any], count: int) -> bool:
        """Return whether all rows of a batch of ``count`` are chosen, in their order."""
        rows, axis = (arrays[n] for n in self.chosen)
        return rows.ndim == 1 and rows.tolist() == [*range(count)] and axis.item() == 0


@dataclass(frozen=True, slots=True)
class _Token:
    """The steps of a token in one, in their order, and what its call needs.

    ``past`` says where the keys are, and where the values. ``rows`` are five slots: query, key and value before the
    rotation, cosines and sines. ``seen`` are the numbers of mask and scale among the inputs, or -1. ``reads`` are the
    slots of the inputs, ``result`` is the slot of the output.
    """

    members: tuple[Step, ...]
    past: tuple[_Past, ...]
    rows: tuple[int, ...]
    seen: tuple[int, ...]
    sizes: _Sizes
    reads: tuple[int, ...]
    result: int

    @property
    def looks_at(self) -> tuple[int, ...]:
        """The numbers of the inputs that are read before the call, in each run."""
        past = (
            number for one in self.past for number in (*one.chosen, *(one.given if one.append.read is None else ()))
        )
        return *past, *(number for number in self.seen if number >= 0)

    def call(self, *arrays: np.ndarray, variables: Variables) -> np.ndarray:
        """Run the steps one after the other. Raises FailedWithin."""
        held: dict[int, np.ndarray] = dict(zip(self.reads, arrays))
        for step in self.members:
            inputs = [held.get(slot) for slot in step.reads]
            returned = run_within(step, inputs, variables)
            held.update(zip(step.writes, returned if isinstance(returned, tuple) else (returned,)))
        return held[self.result]

    def calls(self, *arrays: np.ndarray, out: np.ndarray, spare: np.ndarray) -> Calls:
        """Return the call that computes the results: see ``Joins.calls``."""
        from irrun.fast.tokens.few_queries import to_past

        given = dict(zip(self.reads, arrays))
        return [to_past([given[slot] for slot in self.rows], out, self.sizes, spare.view(np.int64))]

    def first(self, *arrays: Any, spare: np.ndarray, variables: Variables) -> tuple[np.ndarray, ...] | None:
        """Append to keys and values, and tell the call where these are: see ``Begin``."""
        from irrun.fast.tokens.few_queries import tell_mask, tell_past

        batch, _, groups, width, wide = self.sizes
        keys = self.past[0].longer(arrays, (batch, groups, width), variables)
        values = self.past[1].longer(arrays, (batch, groups, wide), variables)
        if keys is None or values is None or keys.shape[2] != values.shape[2]:
            return None
        mask = self._mask(arrays, keys.shape[2])
        if mask is None:
            return None
        tell_past(spare, keys, values)
        tell_mask(spare[None], mask, self._scale(arrays), keys.shape[2])
        return keys, values, mask

    def again(self, *arrays: Any, spare: np.ndarray, length: int) -> tuple[np.ndarray, ...] | None:
        """Tell several calls that keys and values are longer by one: see ``Begin``."""
        from irrun.fast.tokens.few_queries import is_told, tell_mask

        for number, past in enumerate(self.past):
            if past.append.read is None and not is_told(spare, number, arrays[past.given[0]], length - 1):
                return None
            if past.chosen and not past.takes_all(arrays, self.sizes.batch):
                return None
        mask = self._mask(arrays, length)
        if mask is None:
            return None
        tell_mask(spare, mask, self._scale(arrays), length)
        return (mask,)

    def _scale(self, arrays: Sequence[Any]) -> float:
        return 1 / sqrt(self.sizes.width) if self.seen[1] < 0 else arrays[self.seen[1]].item()

    def _mask(self, arrays: Sequence[Any], length: int) -> np.ndarray | None:
        """Return the mask with four axes, the last one contiguous. Return None if a call cannot read the mask."""
        mask = _NO_MASK if self.seen[0] < 0 else arrays[self.seen[0]]
        if mask.ndim != 4:
            mask = mask.reshape((1,) * (4 - mask.ndim) + mask.shape)
        batch, heads, *_ = self.sizes
        if mask.ndim > 4 or mask.dtype not in (np.float32, np.bool_):
            return None
        if any(n not in (1, of) for n, of in zip(mask.shape, (batch, heads, 1, length))):
            return None
        return mask if mask.strides[3] == mask.itemsize else np.ascontiguousarray(mask)


_NO_MASK: Final = np.zeros((1, 1, 1, 1), np.float32)
