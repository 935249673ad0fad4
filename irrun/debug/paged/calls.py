"""Calls of a paged model: which tokens of which sequences they compute, and in which blocks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

import numpy as np

from irrun.diagnostics import FeedError, diagnostic
from irrun.genai.schedule import NewTokens, block_table, tables

__all__ = ["EVICTED", "INPUTS", "RECORDED", "Call", "Piece", "Plan", "plans", "recorded"]

INPUTS: Final = ("input_ids", "past_lens", "subsequence_begins", "block_indices", "block_indices_begins")
"""Inputs that every paged model has, beside its caches."""
EVICTED: Final = "evicted block"
"""The name of the schedule that not all models can run."""
RECORDED: Final = "recorded calls"
"""The name of the schedule of a server's calls."""


@dataclass(frozen=True, slots=True)
class Piece:
    """New tokens of a call: their sequence, and the first and the last position, exclusive.

    The caches no longer hold the positions from ``evicted[0]`` to ``evicted[1]``, exclusive, since the token at
    ``evicted[2]`` was computed.
    """

    sequence: int
    begin: int
    end: int
    evicted: tuple[int, int, int] = (0, 0, 0)

    def slot(self, position: int) -> int:
        """Return the number of positions before a position, or after the evicted ones, that the caches hold."""
        first, last, _ = self.evicted
        return position - last + first


@dataclass(frozen=True, slots=True, eq=False)
class Call:
    """One call: its tokens, and the inputs by name. The caches are among them only where a call passes new ones."""

    pieces: tuple[Piece, ...]
    inputs: dict[str, np.ndarray]

    def place(self, number: int, position: int, slots: int) -> tuple[int, int]:
        """Return the block and the slot of a position of a piece, as the tables of this call have it. -1 for none."""
        piece = self.pieces[number]
        begins = self.inputs["block_indices_begins"]
        begin, end = (int(begins[i]) if i < len(begins) else 0 for i in (number, number + 1))
        block, slot = divmod(piece.slot(position), slots)
        table = self.inputs["block_indices"][begin:end]
        return (int(table[block]) if block < len(table) else -1), slot


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """The calls of a schedule, and the tokens of each sequence."""

    name: str
    prompts: Sequence[np.ndarray]
    calls: Sequence[Call]


@dataclass(slots=True)
class _Tables:
    """Makes the inputs of calls: the blocks of each sequence, of ``slots`` tokens, among ``blocks`` in all.

    States without positions lie in the same blocks: block n holds the state after its last token. The block behind all
    others holds the state before the first token.
    """

    prompts: Sequence[np.ndarray]
    slots: int
    blocks: int
    tables: list[list[int]] = field(default_factory=list)

    def call(self, *pieces: Piece) -> Call:
        """Return a call that computes the tokens of ``pieces``."""
        new = [
            NewTokens(self.prompts[p.sequence][p.begin : p.end], p.slot(p.begin), self._kept(p), p.begin)
            for p in pieces
        ]
        states = {
            **block_table("la.block_indices", [self._states(piece) for piece in pieces]),
            "la.past_lens": np.array([piece.begin for piece in pieces], np.int32),
            "la.cache_interval": np.full(len(pieces), self.slots, np.int32),
        }
        return Call(pieces, {**tables(new), **states})

    def _kept(self, piece: Piece) -> list[int]:
        """Return the blocks of a sequence that have not been evicted."""
        table = self.tables[piece.sequence]
        first, last = (position // self.slots for position in piece.evicted[:2])
        return [*table[:first], *table[last:]]

    def _states(self, piece: Piece) -> list[int]:
        """Return the block of the state before a piece, and the blocks for the states in and after it."""
        table = self.tables[piece.sequence]
        before = table[(piece.begin - 1) // self.slots] if piece.begin else self.blocks
        return [before, *table[piece.begin // self.slots : (piece.end - 1) // self.slots + 1]]


def plans(prompts: Sequence[np.ndarray], slots: int, *, evicts: bool) -> Iterator[Plan]:
    """Yield the schedules of two prompts of equal length whose first ``slots`` tokens are the same.

    The prompts are computed whole, in other blocks, in pieces, in calls of both, with a shared prefix, and, if it
    ``evicts``, without a block in the middle, which takes ``2 * slots + 2`` tokens. Two tokens of each are computed one
    by one.
    """
    tokens = len(prompts[0])
    count = -(-tokens // slots)
    blocks, last = 2 * count + 3, tokens - 2
    decode = [(last, last + 1), (last + 1, tokens)]
    in_order = [list(range(count)), list(range(count, 2 * count))]
    mixed = [[(7 * n + 3) % blocks for n in table] for table in in_order]
    if len({block for table in mixed for block in table}) < 2 * count:  # 7 divides the number of blocks
        mixed = [table[::-1] for table in in_order[::-1]]
    shared = [mixed[0], [mixed[0][0], *mixed[1][1:]]]
    straight, other, common = (_Tables(prompts, slots, blocks, tables) for tables in (in_order, mixed, shared))

    def plan(name: str, tables: _Tables, calls: Sequence[Sequence[tuple[int, int, int]]]) -> Plan:
        return Plan(name, prompts, [tables.call(*(Piece(*piece) for piece in call)) for call in calls])

    whole = [[(s, 0, last)] for s in (0, 1)] + [[(s, *piece)] for piece in decode for s in (0, 1)]
    yield plan("whole prompts", straight, whole)
    yield plan("permuted blocks", other, whole)
    cuts = [0, 1, slots - 1, slots, slots + 2, last]
    pieces = [(begin, end) for begin, end in pairwise(cuts) if begin < end] + decode
    yield plan("pieces", other, [[(s, *piece)] for s in (0, 1) for piece in pieces])
    apart = [[(0, *pieces[0])], *([(1, *b), (0, *a)] for a, b in zip(pieces[1:], pieces)), [(1, *pieces[-1])]]
    yield plan("interleaved", other, apart)
    yield plan("shared prefix", common, [[(0, 0, last)], [(1, slots, last), (0, *decode[0])], [(1, *decode[0])]])
    if evicts:
        first = [other.call(Piece(s, 0, last)) for s in (0, 1)]
        later = [other.call(*(Piece(s, *piece, (slots, 2 * slots, last)) for s in (0, 1))) for piece in decode]
        yield Plan(EVICTED, prompts, [*first, *later])


def recorded(path: str) -> Plan:
    """Return the calls of a server, as an .npz file has them.

    Entry ``3.block_indices`` is that input of the fourth call, and ``3.sequences`` holds the number of the sequence of
    each new token, i64 [tokens]. Raises FeedError (IR601) if an entry is missing or contradicts another.
    """
    try:
        with np.load(path) as file:
            entries = {name: file[name] for name in file.files}
    except (OSError, ValueError) as error:
        raise _unreadable(path, f"the calls cannot be read: {error}") from error
    inputs: list[dict[str, np.ndarray]] = []
    while own := {name.partition(".")[2]: a for name, a in entries.items() if name.startswith(f"{len(inputs)}.")}:
        inputs.append(own)
    if not inputs:
        raise _unreadable(path, "the file has no entry 0.input_ids")
    texts: dict[int, list[np.ndarray]] = {}
    calls: list[Call] = []
    for number, given in enumerate(inputs):
        for name in ("sequences", *INPUTS):
            if name not in given:
                raise _unreadable(path, f"call {number} has no entry {number}.{name}")
        sequences, ids = given.pop("sequences"), given["input_ids"]
        if sequences.shape != ids.shape or ids.ndim != 1 or not len(ids) or sequences.dtype.kind not in "iu":
            raise _unreadable(path, f"{number}.sequences is {sequences.shape}, and {number}.input_ids {ids.shape}")
        cuts = [0, *(np.flatnonzero(np.diff(sequences)) + 1).tolist(), len(ids)]
        pieces: list[Piece] = []
        for begin, end in pairwise(cuts):
            before = texts.setdefault(int(sequences[begin]), [])
            past = sum(map(len, before))
            pieces.append(Piece(int(sequences[begin]), past, past + end - begin))
            before.append(ids[begin:end])
        calls.append(Call(tuple(pieces), given))
    if sorted(texts) != list(range(len(texts))):
        raise _unreadable(path, f"sequences are numbered {sorted(texts)}, not from 0 on")
    return Plan(RECORDED, [np.concatenate(texts[number]) for number in range(len(texts))], calls)


def _unreadable(path: str, message: str) -> FeedError:
    help = "write each input of call N as the entry N.NAME of an .npz file, and N.sequences beside them"
    return FeedError(diagnostic("IR601", message, file=path, help=help))
