"""States in tables of blocks: the blocks that each sequence of a call reads and writes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from irrun.extensions.internal._blocks import check_begins, check_blocks
from irrun.extensions.internal._layouts import Layouts
from irrun.opdef import Kernel, Op, Request, Site, Value
from irrun.types import Dim

__all__ = ["TABLES", "Sequence", "Updating", "owned", "read_tables", "sequences", "stepped"]

TABLES = ("subsequence_begins", "la_block_indices", "la_block_indices_begins", "num_processed_tokens", "cache_interval")
"""The last inputs of an operation with states in a table: where its states are."""


class Updating(Op):
    """Base of operations that overwrite inputs. ``run`` takes ``in_place``, so that a kernel need not copy them."""

    pure = False

    def working(self, *inputs: np.ndarray) -> int:
        """Return the bytes of the inputs that ``run`` copies."""
        return sum(array.nbytes for port, array in zip(self.inputs, inputs) if port.name in self.updates)

    def prepare(self, request: Request) -> Kernel:
        return Kernel(partial(self.run, in_place=True))


def owned(array: np.ndarray, in_place: bool) -> np.ndarray:
    """Return an array that may be changed: a copy, or with ``in_place`` the array itself if it is writeable."""
    return array if in_place and array.flags.writeable else array.copy()


@dataclass(frozen=True, slots=True)
class Sequence:
    """One sequence of a call."""

    tokens: range
    """Its tokens in this call, as rows of the inputs."""
    blocks: tuple[int, ...]
    """Its blocks in the table: the call reads block 0, and writes the blocks 1, 2, …"""
    processed: int
    """The number of its tokens before this call."""
    interval: int
    """The number of tokens from one state that is kept to the next; 0 or less for none."""

    def target(self, token: int) -> int:
        """Return the number of the block for the state after ``token`` (0 for the first of this call), or 0 for none.

        The blocks keep the state where an interval of the sequence ends, and the state after the last token.
        """
        last = token == len(self.tokens) - 1
        if self.interval <= 0:
            return int(last)
        place = self.processed % self.interval + token
        return 1 + place // self.interval if last or (place + 1) % self.interval == 0 else 0

    @property
    def written(self) -> int:
        """The number of blocks that this call writes."""
        return self.target(len(self.tokens) - 1) if self.tokens else 0


def read_tables(at: Site, layouts: Layouts, tables: tuple[Value, ...], states: Value) -> None:
    """Read the layouts of the inputs ``TABLES``, and refuse contents that are certainly wrong (C4 to C6)."""
    for name, value, layout in zip(TABLES, tables, ("begins", "indices", "begins", "sequences", "sequences")):
        layouts.read(name, value, layout)
    if "sequences" in layouts.named:
        layouts.meet("begins", layouts["sequences"] + 1, "num_processed_tokens, whose length plus 1")
    sequences(at, layouts["tokens"], states.shape[0] if states.rank else Dim.unknown(), tables)


def sequences(at: Site, tokens: Dim, blocks: Dim, tables: tuple[Value, ...]) -> list[Sequence]:
    """Return the sequences of a call, or an empty list if the contents of ``tables`` are not known.

    Refuse begins that do not divide the tokens or blocks (C4), blocks outside the table (C5), and too few blocks (C6).
    """
    begins, indices, block_begins = tables[:3]
    check_begins(at, "C4", begins, tokens, "subsequence_begins", "tokens")
    check_begins(at, "C4", block_begins, indices.shape.count(), "la_block_indices_begins", "la_block_indices")
    check_blocks(at, "C5", indices, blocks, "la_block_indices")
    contents = [table.ints() for table in tables]
    starts, own, parts, past, every = ((() if numbers is None else numbers) for numbers in contents)
    for number in past:
        at.require(number >= 0, "C5", f"num_processed_tokens has {number}")
    if None in contents:
        return []
    found = [
        Sequence(range(*starts[i : i + 2]), tuple(own[slice(*parts[i : i + 2])]), past[i], every[i])
        for i in range(len(past))
    ]
    for number, sequence in enumerate(found):
        needed = 1 + (sequence.written if sequence.interval > 0 else 0)
        message = (
            f"sequence {number} has {len(sequence.blocks)} blocks, not {needed}: one to read, and {needed - 1} for "
            f"{len(sequence.tokens)} tokens after {sequence.processed} with interval {sequence.interval}"
        )
        at.require(len(sequence.blocks) >= needed or not sequence.tokens, "C6", message)
    return found


def stepped(
    table: np.ndarray,
    output: np.ndarray,
    tables: tuple[np.ndarray, ...],
    step: Callable[[np.ndarray, int], tuple[np.ndarray, np.ndarray]],
    *,
    in_place: bool,
    keeps_last: bool = True,
) -> np.ndarray:
    """Fill ``output`` token by token, and return ``table`` with the blocks that the sequences write.

    ``step`` takes a state in f32 (or f64) and a token, and returns the next state and a row of ``output``. All
    sequences read before one writes. Without an interval, the last state is written if ``keeps_last``.
    """
    values = tuple(map(Value.of, tables))
    found = sequences(Site(), Dim(len(output)), Dim(len(table)), values)
    wide = np.result_type(table.dtype, np.float32) if table.dtype.isbuiltin else np.dtype(np.float32)
    busy = [sequence for sequence in found if sequence.tokens]
    states = [table[sequence.blocks[0]].astype(wide) for sequence in busy]
    changed = owned(table, in_place)
    with np.errstate(all="ignore"):
        for sequence, state in zip(busy, states):
            for number, token in enumerate(sequence.tokens):
                state, output[token] = step(state, token)
                target = sequence.target(number)
                if 0 < target < len(sequence.blocks) and (keeps_last or sequence.interval > 0):
                    changed[sequence.blocks[target]] = state
    return changed
