"""PaKVReorder: move tokens within the caches of paged attention.  Page: internal/pa-kv-reorder."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from irrun.extensions.internal._blocks import check_begins, check_blocks, check_vectors, places
from irrun.opdef import Op, Revision, Site, Value, op, ports
from irrun.types import ELEMENT_TYPES, Dim, PartialShape


@op("PaKVReorder", spec="internal/pa-kv-reorder")
class PaKVReorder(Op):
    """Copy tokens of each sequence to other positions of the sequence, in ``key_cache`` and ``value_cache``.

    ``block_update_indices`` holds pairs of positions, source and destination, which the operation copies one after the
    other. The blocks of sequence s are ``block_indices[block_indices_begins[s]:block_indices_begins[s + 1]]``. The only
    output is the status 0: the results are the caches, which OpenVINO overwrites.

    The page leaves the layout of caches in u8 and u4 to the plugins. This kernel copies rows, scales within a row
    included, as the page says for caches that are quantized by token.

    C1  ``key_cache`` and ``value_cache`` have rank 4, and equal numbers of blocks, heads and slots.
    C2  ``block_indices``, ``block_indices_begins``, ``block_update_indices`` and ``block_update_indices_begins`` are
        1D, and both begins have one element more than there are sequences.
    C3  The begins ascend from 0 to the number of blocks, or to the number of pairs.
    C4  Each of ``block_indices`` is a block of the caches.
    C5  Each position is within the blocks of its sequence.
    """

    inputs = ports(
        key_cache="T",
        value_cache="T_VALUE",
        block_indices="i32",
        block_indices_begins="i32",
        block_update_indices="i32",
        block_update_indices_begins="i32",
    )
    types = {"T": "f32 f16 bf16 u8 u4", "T_VALUE": "f32 f16 bf16 u8 u4"}
    updates = ("key_cache", "value_cache")
    pure = False
    revisions = (
        Revision("2026.2", "7b3dba512e99450abb6b79db197563a58b8042c5", "the first page, of pull request 35352"),
        Revision(
            "",
            "d8fc75103175ac60342c14cf9d9c7418f147c2ed",
            "takes no i8, and copies within a block of a cache by channel without rounding",
        ),
    )

    def infer(
        self,
        at: Site,
        key_cache: Value,
        value_cache: Value,
        block_indices: Value,
        block_indices_begins: Value,
        block_update_indices: Value,
        block_update_indices_begins: Value,
    ) -> Value:
        for name, cache in (("key_cache", key_cache), ("value_cache", value_cache)):
            at.require(cache.rank in (None, 4), "C1", f"{name} is {cache.shape}, not of rank 4")
        count = Dim.unknown()
        if key_cache.rank and value_cache.rank:
            shared = [a.meet(b) for a, b in zip(list(key_cache.shape)[:3], list(value_cache.shape)[:3])]
            at.require(None not in shared, "C1", f"key_cache is {key_cache.shape}, value_cache {value_cache.shape}")
            count = shared[0] or count
        check_vectors(at, "C2", block_indices=block_indices, block_update_indices=block_update_indices)
        check_vectors(
            at, "C2", block_indices_begins=block_indices_begins, block_update_indices_begins=block_update_indices_begins
        )
        begins = block_indices_begins.shape, block_update_indices_begins.shape
        message = f"block_indices_begins is {begins[0]}, but block_update_indices_begins is {begins[1]}"
        at.require(begins[0].meet(begins[1]) is not None, "C2", message)
        blocks, updates = block_indices.shape.count(), block_update_indices.shape.count()
        check_begins(at, "C3", block_indices_begins, blocks, "block_indices_begins", "blocks")
        message = f"block_update_indices has {updates} numbers, which are no pairs"
        at.require(updates.value is None or updates.value % 2 == 0, "C3", message)
        check_begins(at, "C3", block_update_indices_begins, updates // 2, "block_update_indices_begins", "pairs")
        check_blocks(at, "C4", block_indices, count)
        self._check_positions(at, key_cache, block_indices_begins, block_update_indices, block_update_indices_begins)
        return Value(ELEMENT_TYPES["u8"], PartialShape.of((1,)))

    def _check_positions(self, at: Site, cache: Value, blocks: Value, updates: Value, begins: Value) -> None:
        """Refuse the layer if a position is beyond the blocks of its sequence, as far as the contents are known."""
        sizes, positions, parts = blocks.ints(), updates.ints(), begins.ints()
        size = cache.shape[2].value if cache.rank else None
        if sizes is None or positions is None or parts is None or size is None:
            return
        for sequence, (first, end) in enumerate(pairwise(parts)):
            room = (sizes[sequence + 1] - sizes[sequence]) * size
            for position in positions[2 * first : 2 * end]:
                message = f"position {position} of sequence {sequence} is beyond its {room} slots"
                at.require(0 <= position < room, "C5", message)

    def working(self, *inputs: np.ndarray) -> int:
        return sum(cache.nbytes for cache in inputs[:2])

    def run(
        self,
        key_cache: np.ndarray,
        value_cache: np.ndarray,
        block_indices: np.ndarray,
        block_indices_begins: np.ndarray,
        block_update_indices: np.ndarray,
        block_update_indices_begins: np.ndarray,
    ) -> tuple[np.ndarray, ...]:
        key_cache, value_cache = key_cache.copy(), value_cache.copy()
        pairs = block_update_indices.reshape(-1, 2)
        for sequence in range(len(block_indices_begins) - 1):
            own = block_indices[block_indices_begins[sequence] : block_indices_begins[sequence + 1]]
            first, end = block_update_indices_begins[sequence : sequence + 2]
            blocks, slots = places(own, pairs[first:end], key_cache.shape[2])
            for (source, destination), (from_slot, to_slot) in zip(blocks, slots):
                for cache in (key_cache, value_cache):
                    cache[destination, :, to_slot] = cache[source, :, from_slot]
        return np.zeros(1, np.uint8), key_cache, value_cache
