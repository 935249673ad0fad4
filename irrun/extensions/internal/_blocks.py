"""Block tables: where the tokens of each sequence lie in caches of blocks."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from irrun.opdef import Site, Value
from irrun.types import Dim

__all__ = ["check_begins", "check_blocks", "check_vectors", "places"]


def check_vectors(at: Site, label: str, **vectors: Value) -> None:
    """Refuse the layer unless each input has one dim."""
    for name, value in vectors.items():
        at.require(value.rank in (None, 1), label, f"{name} is {value.shape}, not 1D")


def check_begins(at: Site, label: str, begins: Value, count: Dim, name: str, items: str) -> None:
    """Refuse the layer unless ``begins`` divides ``count`` items among sequences: it ascends from 0 to ``count``."""
    at.require(begins.rank in (None, 1), label, f"{name} is {begins.shape}, not 1D")
    numbers = begins.ints()
    if numbers is None:
        return
    at.require(numbers[:1] == (0,), label, f"{name} does not begin with 0: {', '.join(map(str, numbers[:4]))}")
    for number, following in pairwise(numbers):
        at.require(number <= following, label, f"{name} descends from {number} to {following}")
    at.require(count.fits(numbers[-1]), label, f"{name} ends with {numbers[-1]}, but there are {count} {items}")


def check_blocks(at: Site, label: str, blocks: Value, count: Dim, name: str = "block_indices") -> None:
    """Refuse the layer unless each number of ``blocks`` is a block of a cache of ``count`` blocks."""
    for number in blocks.ints() or ():
        at.require(0 <= number < count.hi, label, f"{name} names block {number}; the cache has {count} blocks")


def places(blocks: np.ndarray, positions: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the block and the slot within the block of each position of a sequence.

    ``blocks`` are the blocks of the sequence in order, ``size`` is the number of slots of a block.
    """
    return blocks[positions // size], positions % size
