"""Faults in the inputs that a server passes: tables of blocks, positions, and caches that it moves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from irrun.debug.paged.calls import Call, Plan, plans
from served.faults import NoPlaceError, Planted, Rng, one, two

__all__ = ["CALLS", "Tables", "entries", "planned"]


def planned(vocabulary: int, tokens: int, slots: int, seed: int, schedule: str) -> Plan:
    """Return the right calls of a schedule, for two random prompts."""
    prompts = list(np.random.default_rng(seed).integers(0, vocabulary, (2, tokens)))
    return next(plan for plan in plans(prompts, slots, evicts=False) if plan.name == schedule)


def entries(calls: list[Call]) -> dict[str, np.ndarray]:
    """Return calls as an .npz file holds them."""
    found: dict[str, np.ndarray] = {}
    for number, call in enumerate(calls):
        sequences = np.concatenate([np.full(piece.end - piece.begin, piece.sequence) for piece in call.pieces])
        found |= {f"{number}.{name}": array for name, array in call.inputs.items()} | {f"{number}.sequences": sequences}
    return found


class Tables:
    """The calls of a schedule, to be changed, and the caches that the right calls leave before each."""

    def __init__(self, plan: Plan, caches: Callable[[int], dict[str, np.ndarray]]) -> None:
        self.plan, self.caches = plan, caches
        self.calls = [
            Call(call.pieces, {name: array.copy() for name, array in call.inputs.items()}) for call in plan.calls
        ]

    def later(self, rng: Rng, blocks: int = 1, pieces: int = 1) -> tuple[int, int]:
        """Return a call, and a piece of it, whose sequence has tokens in at least so many blocks before."""
        found = [
            (n, i)
            for n, call in enumerate(self.calls)
            for i, piece in enumerate(call.pieces)
            if piece.begin >= 32 * (blocks - 1) + 1 and len(call.pieces) >= pieces
        ]
        return one(rng, found)

    def table(self, number: int, piece: int, name: str = "block_indices") -> np.ndarray:
        begins = self.calls[number].inputs[f"{name}_begins"]
        return self.calls[number].inputs[name][begins[piece] : begins[piece + 1]]


def swapped_blocks(tables: Tables, rng: Rng) -> Planted:
    number, piece = tables.later(rng, 2)
    table = tables.table(number, piece)
    table[[0, 1]] = table[[1, 0]]
    return Planted(
        f"call {number}: blocks {table[1]} and {table[0]} swapped", (f"of block {table[0]},", f"block {table[1]} holds")
    )


def past(tables: Tables, rng: Rng) -> Planted:
    number, piece = tables.later(rng)
    right = int(tables.calls[number].inputs["past_lens"][piece])
    wrong = right + int(rng.choice([-1, 1]))
    tables.calls[number].inputs["past_lens"][piece] = wrong
    return Planted(f"call {number}: past_lens {wrong}", (f"call {number}: past_lens[{piece}] is {wrong}, not {right}",))


def positions(tables: Tables, rng: Rng) -> Planted:
    number, piece = tables.later(rng)
    call = tables.calls[number]
    begin, end = call.inputs["subsequence_begins"][piece : piece + 2].tolist()
    right = int(call.inputs["position_ids"][begin])
    call.inputs["position_ids"][begin:end] += 1
    return Planted(
        f"call {number}: position_ids + 1", (f"call {number}: position_ids[{begin}] is {right + 1}, not {right}",)
    )


def foreign_block(tables: Tables, rng: Rng) -> Planted:
    number, piece = tables.later(rng)
    own = tables.calls[number].pieces[piece].sequence
    others = [
        tables.table(n, i)
        for n in range(number)
        for i, p in enumerate(tables.calls[n].pieces)
        if p.sequence != own and p.end > 32
    ]
    table, other = tables.table(number, piece), one(rng, others)
    right, table[0] = int(table[0]), other[0]
    return Planted(
        f"call {number}: block {table[0]} of the other sequence", (f"of block {table[0]},", f"block {right} holds")
    )


def begins(tables: Tables, rng: Rng) -> Planted:
    number, _ = tables.later(rng, 1, 2)
    array = tables.calls[number].inputs["subsequence_begins"]
    if array[2] - array[0] < 3:
        raise NoPlaceError
    right, step = int(array[1]), int(rng.choice([-1, 1]))
    if not 0 < right + step < array[2]:
        step = -step
    array[1] += step
    return Planted(
        f"call {number}: subsequence_begins", (f"call {number}: subsequence_begins[1] is {right + step}, not {right}",)
    )


def shared_block(tables: Tables, rng: Rng) -> Planted:
    """Give a block of sequence 0 to sequence 1 as well, in all calls."""
    first = next(
        (n, i) for n, call in enumerate(tables.calls) for i, piece in enumerate(call.pieces) if piece.sequence == 0
    )
    block = int(tables.table(*first)[0])
    for number, call in enumerate(tables.calls):
        for piece, own in enumerate(call.pieces):
            if own.sequence == 1:
                tables.table(number, piece)[0] = block
    return Planted(f"block {block} has two owners", (f"block {block},", "sequence"))


def stale_block(tables: Tables, rng: Rng) -> Planted:
    number, piece = tables.later(rng)
    used = {int(b) for n in range(len(tables.calls)) for b in tables.calls[n].inputs["block_indices"]}
    free = next(b for b in range(99) if b not in used)
    table = tables.table(number, piece)
    right, table[0] = int(table[0]), free
    return Planted(
        f"call {number}: block {free}, which nobody has written",
        (f"of block {free},", "no call has written", f"block {right} holds"),
    )


def context(tables: Tables, rng: Rng) -> Planted:
    number, _ = tables.later(rng, 2)
    array = tables.calls[number].inputs["max_context_len"]
    right = int(array)
    tables.calls[number].inputs["max_context_len"] = np.array(right - 9, np.int32)
    return Planted(f"call {number}: max_context_len {right - 9}", (f"max_context_len is {right - 9}, not {right}",))


def _cache(tables: Tables, rng: Rng, number: int) -> tuple[str, np.ndarray]:
    caches = tables.caches(number)
    name = one(rng, [name for name in caches if name.startswith(("key_cache", "value_cache"))])
    tables.calls[number].inputs[name] = caches[name].copy()
    return name, tables.calls[number].inputs[name]


def copied_block(tables: Tables, rng: Rng) -> Planted:
    number, piece = tables.later(rng, 2)
    a, b = tables.table(number, piece)[:2].tolist()
    name, array = _cache(tables, rng, number)
    array[b] = array[a]
    kind = name.partition("_")[0]
    return Planted(
        f"call {number}: block {b} of {name} is a copy of block {a}",
        (f"the {kind}s of block {b},", "those of tokens 0"),
    )


def wrong_slots(tables: Tables, rng: Rng) -> Planted:
    number, piece = tables.later(rng, 2)
    block = int(tables.table(number, piece)[0])
    a, b = two(rng, 32)
    name, array = _cache(tables, rng, number)
    array[block, :, [a, b]] = array[block, :, [b, a]]
    kind = name.partition("_")[0]
    return Planted(
        f"call {number}: slots {a} and {b} of block {block} of {name} exchanged",
        (f"the {kind}s of block {block}, slots {a}, {b},", f"those of tokens {b}, {a}"),
    )


def lost_slot(tables: Tables, rng: Rng) -> Planted:
    number, piece = tables.later(rng, 2)
    block, slot = int(tables.table(number, piece)[0]), int(rng.integers(32))
    name, array = _cache(tables, rng, number)
    array[block, :, slot] = 0
    kind = name.partition("_")[0]
    return Planted(
        f"call {number}: slot {slot} of block {block} of {name} lost",
        (f"the {kind}s of block {block}, slots {slot},", "no call has written"),
    )


def scaled_head(tables: Tables, rng: Rng) -> Planted:
    number, piece = tables.later(rng, 2)
    block = int(tables.table(number, piece)[0])
    name, array = _cache(tables, rng, number)
    if array.shape[1] < 2:
        raise NoPlaceError
    head = int(rng.integers(array.shape[1]))
    array[block, head] *= 2
    kind = name.partition("_")[0]
    return Planted(
        f"call {number}: head {head} of block {block} of {name} doubled",
        (f"the {kind}s of block {block},", f"head {head}"),
    )


def kept_state(tables: Tables, rng: Rng) -> Planted:
    """Begin sequence 1 with the last state of sequence 0."""
    for number, call in enumerate(tables.calls):
        for piece, own in enumerate(call.pieces):
            if own.sequence == 1 and not own.begin and number:
                table = tables.table(number, piece, "la.block_indices")
                before = next(i for i, p in enumerate(tables.calls[number - 1].pieces) if p.sequence == 0)
                table[0] = tables.table(number - 1, before, "la.block_indices")[-1]
                return Planted(
                    f"call {number}: sequence 1 begins with the state in block {table[0]}",
                    (f"the state in block {table[0]} is the state after", "of sequence 0"),
                )
    raise NoPlaceError


def wrong_state(tables: Tables, rng: Rng) -> Planted:
    number, piece = tables.later(rng)
    table = tables.table(number, piece, "la.block_indices")
    used = sorted({int(b) for call in tables.calls for b in call.inputs["la.block_indices"]} - {int(table[0])})
    right, table[0] = int(table[0]), one(rng, used)
    return Planted(
        f"call {number}: the state in block {table[0]}", (f"the state in block {table[0]} is", f"block {right} holds")
    )


CALLS: Final[tuple[Callable[[Tables, Rng], Planted], ...]] = (
    swapped_blocks, past, positions, foreign_block, begins, shared_block, stale_block, context, copied_block,
    wrong_slots, lost_slot, scaled_head, kept_state, wrong_state,
)  # fmt: skip
