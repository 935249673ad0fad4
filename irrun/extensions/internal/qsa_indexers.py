"""QSAIndexer and PagedQSAIndexer: choose blocks of keys for each query by summaries of the blocks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from irrun.extensions.internal._blocks import check_begins, check_blocks
from irrun.extensions.internal._layouts import Layouts, widened
from irrun.extensions.internal._paging import Updating, owned
from irrun.opdef import Op, Revision, Site, Value, attr, op, ports
from irrun.types import ELEMENT_TYPES, Dim, PartialShape

_I32 = ELEMENT_TYPES["i32"]


class _Indexer(Op):
    """What the two operations share: attributes, the summary of a block, and the choice of blocks."""

    compress_ratio = attr.int(4)
    block_topk = attr.int()
    h_sel = attr.int(1)
    indexer_rotary_dim = attr.int()
    indexer_head_dim = attr.int()
    eps = attr.float(1e-6)
    scale = attr.float()
    types = {"T": "float", "T_IND": "i32 i64"}
    revisions = (Revision("", "6af77301fbd042745352585bda2da505e78df5d8", "the first page that is stored"),)

    def check_sizes(self, at: Site) -> None:
        """Refuse attributes that are not positive, or a rotary dim above the head dim (C3)."""
        for name in ("compress_ratio", "block_topk", "h_sel", "indexer_head_dim"):
            at.require(getattr(self, name) > 0, "C3", f"{name} is {getattr(self, name)}")
        rotary = self.indexer_rotary_dim
        fits = 0 <= rotary <= self.indexer_head_dim and rotary % 2 == 0
        at.require(fits, "C3", f"indexer_rotary_dim is {rotary}, not even and at most {self.indexer_head_dim}")

    def check_heads(self, at: Site, queries: Dim, keys: Dim) -> None:
        """Refuse numbers of heads that do not divide each other (C4)."""
        a, b = queries.value, keys.value
        message = f"there are {queries} query heads, {keys} key heads and {self.h_sel} selections"
        at.require(a is None or b is None or (b > 0 and a % b == 0), "C4", message)
        at.require(self.h_sel == 1 or keys.fits(self.h_sel), "C4", message)

    def summary(self, keys: np.ndarray, weight: np.ndarray, phase: np.ndarray) -> np.ndarray:
        """Return the summary (…, heads, size) of the keys of one block (…, heads, tokens, size).

        It is their mean, normalized, and turned by the phase (…, 2 * rotary dim) of the first token: cosines, then
        sines.
        """
        mean = widened(widened(keys).mean(-2).astype(keys.dtype))
        normal = mean / np.sqrt((mean * mean).mean(-1, keepdims=True) + mean.dtype.type(self.eps)) * widened(weight)
        rotary, tail = np.split(normal, [self.indexer_rotary_dim], -1)
        cos, sin = np.split(widened(phase)[..., None, :], 2, -1)
        first, second = np.split(rotary, 2, -1)
        turned = rotary * cos + np.concatenate((-second, first), -1) * sin
        return np.concatenate((turned, tail), -1).astype(keys.dtype)

    def chosen(self, queries: np.ndarray, summaries: np.ndarray, position: int) -> tuple[np.ndarray, int]:
        """Return the blocks of one query for each selection (selections, block_topk + 1), and their number.

        ``queries`` are the index heads (query heads, size), ``summaries`` (key heads, complete blocks, size).
        """
        heads = len(summaries)
        scores = np.maximum(queries.reshape(heads, -1, queries.shape[-1]) @ summaries.swapaxes(-1, -2), 0)
        scores = scores.sum(1).reshape(self.h_sel, heads // self.h_sel, -1).sum(1) * scores.dtype.type(self.scale)
        count = min(self.block_topk, scores.shape[-1])
        blocks = np.full((self.h_sel, self.block_topk + 1), -1, np.int32)
        blocks[:, :count] = np.sort(np.argsort(-scores, axis=-1, kind="stable")[:, :count], -1)
        if (position + 1) % self.compress_ratio:
            blocks[:, count] = (position + 1) // self.compress_ratio
            count += 1
        return blocks, count


@op("QSAIndexer", spec="internal/qsa-indexer")
class QSAIndexer(_Indexer):
    """Return for each query the blocks of keys with the highest scores, and its own incomplete block, in order.

    A block is ``compress_ratio`` consecutive keys. Its summary is the mean of the keys, divided by its root mean
    square, times ``k_norm_weight``, and turned (RoPE, halves) by the phase of its first token. The score is ``scale``
    times the sum over the query heads of the positive part of query times summary. At most ``block_topk`` complete
    blocks are chosen. The state, past and present, is the summaries of all complete blocks, the keys of the incomplete
    block, and the phase of its first token.

    C1  ``q_idx`` is (batch, queries, query heads, head dim), ``k_idx`` (batch, queries, key heads, head dim),
        ``k_rope_cos_sin`` (batch, queries, 2 * rotary dim), ``summary_past`` (batch, key heads, blocks, head dim),
        ``indexer_k_past`` (batch, key heads, pending, head dim), ``indexer_k_start_past`` (batch, 2 * rotary dim),
        ``k_norm_weight`` (head dim).
    C2  Dims of the same name are equal, and to attributes of their name.
    C3  The attributes are positive; ``indexer_rotary_dim`` is even, and at most ``indexer_head_dim``.
    C4  The number of query heads is a multiple of the number of key heads; ``h_sel`` is 1 or the number of key heads.
    C5  There are fewer pending keys than ``compress_ratio``.
    """

    inputs = ports(
        q_idx="T",
        k_idx="T",
        k_rope_cos_sin="T",
        summary_past="T",
        indexer_k_past="T",
        indexer_k_start_past="T",
        k_norm_weight="T",
    )
    outputs = 5

    def flops(self, inputs: Sequence[Value | None], outputs: Sequence[Value], /) -> Dim:
        query = inputs[0]
        blocks = outputs[2].shape.dims[2] if outputs[2].shape.dims else Dim.unknown()
        return Dim.unknown() if query is None else query.shape.count() * blocks * 2

    def infer(
        self,
        at: Site,
        q_idx: Value,
        k_idx: Value,
        k_rope_cos_sin: Value,
        summary_past: Value,
        indexer_k_past: Value,
        indexer_k_start_past: Value,
        k_norm_weight: Value,
    ) -> tuple[Value, ...]:
        self.check_sizes(at)
        size, phase, ratio = self.indexer_head_dim, 2 * self.indexer_rotary_dim, self.compress_ratio
        dims = Layouts(at)
        dims.read("q_idx", q_idx, f"batch queries query_heads {size}")
        dims.read("k_idx", k_idx, f"batch queries key_heads {size}")
        dims.read("k_rope_cos_sin", k_rope_cos_sin, f"batch queries {phase}")
        dims.read("summary_past", summary_past, f"batch key_heads blocks {size}")
        dims.read("indexer_k_past", indexer_k_past, f"batch key_heads pending {size}")
        dims.read("indexer_k_start_past", indexer_k_start_past, f"batch {phase}")
        dims.read("k_norm_weight", k_norm_weight, f"{size}")
        self.check_heads(at, dims["query_heads"], dims["key_heads"])
        pending = dims["pending"]
        at.require(pending.lo < ratio, "C5", f"there are {pending} pending keys, and compress_ratio is {ratio}")
        keys = dims["pending"] + dims["queries"]
        rows = [dims["batch"], Dim(self.h_sel), dims["queries"]]
        state = dims.all("batch key_heads")
        return (
            Value(_I32, PartialShape.of([*rows, self.block_topk + 1])),
            Value(_I32, PartialShape.of(rows)),
            k_idx.reshaped([*state, dims["blocks"] + keys // ratio, Dim(size)]),
            k_idx.reshaped([*state, keys % ratio, Dim(size)]),
            k_idx.reshaped([dims["batch"], Dim(phase)]),
        )

    def run(
        self,
        q_idx: np.ndarray,
        k_idx: np.ndarray,
        k_rope_cos_sin: np.ndarray,
        summary_past: np.ndarray,
        indexer_k_past: np.ndarray,
        indexer_k_start_past: np.ndarray,
        k_norm_weight: np.ndarray,
    ) -> tuple[np.ndarray, ...]:
        ratio, pending = self.compress_ratio, indexer_k_past.shape[2]
        past = summary_past.shape[2] * ratio + pending
        keys = np.concatenate((indexer_k_past, k_idx.swapaxes(1, 2)), 2)
        complete = keys.shape[2] // ratio

        def phase(block: int) -> np.ndarray:
            first = block * ratio - pending
            return indexer_k_start_past if first < 0 else k_rope_cos_sin[:, first]

        with np.errstate(all="ignore"):
            added = [
                self.summary(keys[:, :, block * ratio : (block + 1) * ratio], k_norm_weight, phase(block))
                for block in range(complete)
            ]
            summaries = np.concatenate((summary_past, *(block[:, :, None] for block in added)), 2)
            batch, queries = q_idx.shape[:2]
            indices = np.full((batch, self.h_sel, queries, self.block_topk + 1), -1, np.int32)
            counts = np.zeros(indices.shape[:-1], np.int32)
            for row in range(batch):
                for number in range(queries):
                    visible = widened(summaries[row, :, : (past + number + 1) // ratio])
                    found = self.chosen(widened(q_idx[row, number]), visible, past + number)
                    indices[row, :, number], counts[row, :, number] = found
        rest = keys[:, :, complete * ratio :]
        start = phase(complete) if rest.shape[2] else indexer_k_start_past
        return indices, counts, summaries, rest.copy(), start.copy()


@op("PagedQSAIndexer", spec="internal/paged-qsa-indexer")
class PagedQSAIndexer(_Indexer, Updating):
    """Apply QSAIndexer to several sequences, whose state is in caches.

    Token t of sequence s in this call has the position ``past_lens[s] + t``. Its key goes to slot ``position %
    ring_capacity`` of ring ``slot_mapping[s]`` in ``indexer_k_cache``, the phase of the first token of a block to
    ``indexer_k_start_cos_sin``, and the summary of a complete block to the page of its first token in
    ``summary_cache``. The pages of a sequence are
    ``block_indices[block_indices_begins[s]:block_indices_begins[s + 1]]``.

    C1  ``q_idx`` is (tokens, query heads * head dim), ``k_idx`` (tokens, key heads * head dim), ``k_rope_cos_sin``
        (tokens, 2 * rotary dim), ``summary_cache`` (pages, key heads, page_size / compress_ratio, head dim),
        ``indexer_k_cache`` (rings, key heads, ring_capacity, head dim), ``indexer_k_start_cos_sin`` (rings,
        ring_capacity / compress_ratio, 2 * rotary dim), ``k_norm_weight`` (head dim); the other inputs are 1D.
    C2  Dims of the same name are equal, and to attributes of their name; the begins have one entry more than there are
        sequences.
    C3  The attributes are positive; ``indexer_rotary_dim`` is even, and at most ``indexer_head_dim``; ``page_size`` and
        ``ring_capacity`` are multiples of ``compress_ratio``.
    C4  The number of query heads is a multiple of the number of key heads; ``h_sel`` is 1 or the number of key heads.
    C5  ``subsequence_begins`` ascends from 0 to the number of tokens, ``block_indices_begins`` to the number of
        ``block_indices``.
    C6  ``block_indices`` are pages, enough for the tokens of each sequence, and ``slot_mapping`` names rings.
    C7  ``past_lens`` are not negative.
    """

    page_size = attr.int()
    ring_capacity = attr.int()
    inputs = ports(
        q_idx="T",
        k_idx="T",
        k_rope_cos_sin="T",
        summary_cache="T",
        indexer_k_cache="T",
        indexer_k_start_cos_sin="T",
        k_norm_weight="T",
        slot_mapping="T_IND",
        block_indices="T_IND",
        block_indices_begins="T_IND",
        subsequence_begins="T_IND",
        past_lens="T_IND",
    )
    outputs = 2
    updates = ("summary_cache", "indexer_k_cache", "indexer_k_start_cos_sin")

    def flops(self, inputs: Sequence[Value | None], outputs: Sequence[Value], /) -> Dim:
        query, indices = inputs[0], inputs[8]
        if query is None or indices is None:
            return Dim.unknown()
        return query.shape.count() * indices.shape.count() * (self.page_size // self.compress_ratio) * 2

    def infer(
        self,
        at: Site,
        q_idx: Value,
        k_idx: Value,
        k_rope_cos_sin: Value,
        summary_cache: Value,
        indexer_k_cache: Value,
        indexer_k_start_cos_sin: Value,
        k_norm_weight: Value,
        slot_mapping: Value,
        *tables: Value,
    ) -> tuple[Value, ...]:
        self.check_sizes(at)
        size, phase, ratio = self.indexer_head_dim, 2 * self.indexer_rotary_dim, self.compress_ratio
        for name in ("page_size", "ring_capacity"):
            own = getattr(self, name)
            at.require(own > 0 and own % ratio == 0, "C3", f"{name} is {own}, and compress_ratio is {ratio}")
        dims = Layouts(at)
        dims.read("q_idx", q_idx, "tokens all_queries")
        dims.read("k_idx", k_idx, "tokens all_keys")
        dims.read("k_rope_cos_sin", k_rope_cos_sin, f"tokens {phase}")
        dims.read("summary_cache", summary_cache, f"pages key_heads {self.page_size // ratio} {size}")
        dims.read("indexer_k_cache", indexer_k_cache, f"rings key_heads {self.ring_capacity} {size}")
        dims.read("indexer_k_start_cos_sin", indexer_k_start_cos_sin, f"rings {self.ring_capacity // ratio} {phase}")
        dims.read("k_norm_weight", k_norm_weight, f"{size}")
        for name, value, layout in zip(
            ("slot_mapping", "block_indices", "block_indices_begins", "subsequence_begins", "past_lens"),
            (slot_mapping, *tables),
            ("sequences", "indices", "begins", "begins", "sequences"),
        ):
            dims.read(name, value, layout)
        for name in ("all_queries", "all_keys"):
            width = dims[name].value
            message = f"{'q_idx' if name == 'all_queries' else 'k_idx'} has {width} columns, not a multiple of {size}"
            at.require(width is None or width % size == 0, "C2", message)
        if "all_keys" in dims.named:
            dims.meet("key_heads", dims["all_keys"] // size, f"k_idx {k_idx.shape}")
        if "sequences" in dims.named:
            dims.meet("begins", dims["sequences"] + 1, "past_lens, whose length plus 1")
        self.check_heads(at, dims["all_queries"] // size, dims["key_heads"])
        self._check_tables(at, dims, slot_mapping, *tables)
        return (
            Value(_I32, PartialShape.of([dims["tokens"], Dim(self.h_sel), Dim(self.block_topk + 1)])),
            Value(_I32, PartialShape.of([dims["tokens"], Dim(self.h_sel)])),
        )

    def _check_tables(self, at: Site, dims: Layouts, slots: Value, indices: Value, *begins: Value) -> None:
        """Refuse begins (C5), pages and rings (C6) and lengths (C7) that are certainly wrong."""
        block_begins, token_begins, past_lens = begins
        check_begins(at, "C5", token_begins, dims["tokens"], "subsequence_begins", "tokens")
        check_begins(at, "C5", block_begins, dims["indices"], "block_indices_begins", "block_indices")
        check_blocks(at, "C6", indices, dims["pages"])
        check_blocks(at, "C6", slots, dims["rings"], "slot_mapping")
        for past in past_lens.ints() or ():
            at.require(past >= 0, "C7", f"past_lens has {past}")
        parts = [value.ints() for value in begins]
        own, tokens, pasts = ((() if part is None else part) for part in parts)
        for number, past in enumerate(pasts if None not in parts else ()):
            count, room = tokens[number + 1] - tokens[number], (own[number + 1] - own[number]) * self.page_size
            at.require(past + count <= room, "C6", f"sequence {number} has {past} + {count} tokens in {room} slots")

    def run(
        self,
        q_idx: np.ndarray,
        k_idx: np.ndarray,
        k_rope_cos_sin: np.ndarray,
        summary_cache: np.ndarray,
        indexer_k_cache: np.ndarray,
        indexer_k_start_cos_sin: np.ndarray,
        k_norm_weight: np.ndarray,
        slot_mapping: np.ndarray,
        *tables: np.ndarray,
        in_place: bool = False,
    ) -> tuple[np.ndarray, ...]:
        caches = summary_cache, indexer_k_cache, indexer_k_start_cos_sin
        summaries, ring, phases = (owned(cache, in_place) for cache in caches)
        ratio, capacity, size = self.compress_ratio, self.ring_capacity, self.indexer_head_dim
        indices, block_begins, token_begins, past_lens = (table.tolist() for table in tables)
        keys = k_idx.reshape(len(k_idx), ring.shape[1], size)
        blocks = np.full((len(q_idx), self.h_sel, self.block_topk + 1), -1, np.int32)
        counts = np.zeros(blocks.shape[:-1], np.int32)
        for number, past in enumerate(past_lens):
            pages = np.array(indices[block_begins[number] : block_begins[number + 1]], np.int64)
            slot = slot_mapping[number]
            for token in range(token_begins[number], token_begins[number + 1]):
                position = past + token - token_begins[number]
                block = position // ratio
                if position % ratio == 0:
                    phases[slot, block % phases.shape[1]] = k_rope_cos_sin[token]
                ring[slot, :, position % capacity] = keys[token]
                first = block * ratio
                if position % ratio == ratio - 1:
                    page, place = pages[first // self.page_size], first % self.page_size // ratio
                    own = ring[slot, :, first % capacity : first % capacity + ratio]
                    with np.errstate(all="ignore"):
                        summaries[page, :, place] = self.summary(
                            own, k_norm_weight, phases[slot, block % phases.shape[1]]
                        )
                starts = np.arange((position + 1) // ratio) * ratio
                visible = summaries[pages[starts // self.page_size], :, starts % self.page_size // ratio].swapaxes(0, 1)
                with np.errstate(all="ignore"):
                    found = self.chosen(widened(q_idx[token]).reshape(-1, size), widened(visible), position)
                blocks[token], counts[token] = found
        return blocks, counts, summaries, ring, phases
