"""Which tokens of several texts a server computes in each call, and in which blocks of the caches they lie."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from irrun.genai.streaming import Text

__all__ = ["SLOTS", "Blocks", "NewTokens", "Running", "Schedule", "block_table", "needed", "tables"]

SLOTS: Final = 32
"""The tokens of a block, as in the caches of OpenVINO's CPU plugin."""
_CALL: Final = 256
"""The most new tokens of a call. The scores and logits of a call grow with their number."""


def needed(tokens: int) -> int:
    """Return the number of blocks that hold so many tokens."""
    return -(-tokens // SLOTS)


class Blocks:
    """The blocks of the caches. A sequence takes the blocks that its tokens need, and gives them back at its end."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.most = 0
        """The most blocks that sequences have held at once."""
        self._free = list(range(count))[::-1]

    @property
    def free(self) -> int:
        """The number of blocks that no sequence holds."""
        return len(self._free)

    def grow(self, own: list[int], tokens: int) -> bool:
        """Append blocks to ``own`` until it has room for ``tokens``. Return False if too few are free."""
        lacking = needed(tokens) - len(own)
        if lacking > len(self._free):
            return False
        own += [self._free.pop() for _ in range(lacking)]
        self.most = max(self.most, self.count - len(self._free))
        return True

    def give_back(self, own: list[int]) -> None:
        """Free all blocks of ``own``, and empty it."""
        self._free += own[::-1]
        own.clear()


@dataclass(frozen=True, slots=True)
class NewTokens:
    """New tokens of a sequence in one call: their ids, how many tokens the caches hold before them, and its blocks.

    ``position`` is that of the first token, which is ``past`` unless tokens have been evicted from the caches.
    """

    tokens: Sequence[int] | np.ndarray
    past: int
    blocks: Sequence[int]
    position: int | None = None


def tables(pieces: Sequence[NewTokens]) -> dict[str, np.ndarray]:
    """Return the inputs of a call without the caches, by name. Tokens and positions are i64, the others i32."""
    counts = [len(piece.tokens) for piece in pieces]
    firsts = [piece.past if piece.position is None else piece.position for piece in pieces]
    return {
        "input_ids": np.concatenate([np.asarray(piece.tokens, np.int64) for piece in pieces]),
        "position_ids": np.concatenate([np.arange(first, first + n) for first, n in zip(firsts, counts)]),
        "max_context_len": np.array(max(piece.past + n for piece, n in zip(pieces, counts)), np.int32),
        "past_lens": np.array([piece.past for piece in pieces], np.int32),
        "subsequence_begins": np.cumsum([0, *counts], dtype=np.int32),
        **block_table("block_indices", [piece.blocks for piece in pieces]),
    }


def block_table(name: str, blocks: Sequence[Sequence[int]]) -> dict[str, np.ndarray]:
    """Return the blocks of the sequences of a call one after the other, and where those of each begin, i32."""
    return {
        name: np.concatenate([np.asarray(own, np.int32) for own in blocks]),
        f"{name}_begins": np.cumsum([0, *map(len, blocks)], dtype=np.int32),
    }


@dataclass(eq=False)
class Running:
    """A text that is being computed, its blocks, and how many of its tokens the caches hold."""

    text: Text
    blocks: list[int] = field(default_factory=list)
    held: int = 0

    @property
    def lacking(self) -> int:
        """The number of tokens that the caches do not hold."""
        return len(self.text.tokens) - self.held


class Schedule:
    """Chooses the tokens of each call: first one token of each text that has begun, then the prompts of later texts.

    A text begins when enough blocks are free for its prompt. If a text needs a block and none is free, the text that
    began last gives its blocks back; it is computed again when there is room. ``blocks`` hold the longest text by
    itself. ``restarts`` counts the texts that gave their blocks back.
    """

    def __init__(self, blocks: Blocks, texts: Sequence[Text]) -> None:
        self.blocks = blocks
        self.restarts = 0
        self._running: list[Running] = []
        self._waiting = deque(map(Running, texts))

    def call(self) -> list[tuple[Running, int]]:
        """Return the texts of the next call and the number of new tokens of each. Empty if all texts have ended."""
        room, before = _CALL, self.restarts
        chosen: list[tuple[Running, int]] = []
        for running in list(self._running):  # the texts that give their blocks back come later in this order
            count = min(room, running.lacking)
            if running in self._running and count and self._grow(running, running.held + count):
                chosen.append((running, count))
                room -= count
        while self._waiting and room and self.restarts == before:
            running = self._waiting[0]
            if not self.blocks.grow(running.blocks, len(running.text.tokens)):
                break
            self._running.append(self._waiting.popleft())
            chosen.append((running, min(room, running.lacking)))
            room -= chosen[-1][1]
        return chosen

    def _grow(self, running: Running, tokens: int) -> bool:
        """Give a text blocks for so many tokens. Return False if it is the last that could give blocks back."""
        while not self.blocks.grow(running.blocks, tokens):
            last = self._running.pop()
            self.blocks.give_back(last.blocks)
            last.held = 0
            self._waiting.appendleft(last)
            self.restarts += 1
            if last is running:
                return False
        return True

    def end(self, running: Running) -> None:
        """Free the blocks of a text that has ended."""
        self._running.remove(running)
        self.blocks.give_back(running.blocks)
