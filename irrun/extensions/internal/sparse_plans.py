"""SparseSDPA and SparsePA: attention to the blocks of keys that a plan names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from irrun.extensions.internal._attend import softmax
from irrun.extensions.internal._blocks import check_begins, check_blocks, places
from irrun.extensions.internal._layouts import Layouts, grouped_product, marked, widened
from irrun.extensions.internal._paging import Updating, owned
from irrun.opdef import Op, Revision, Site, Value, attr, op, opt, ports, variadic
from irrun.types import Dim, PartialShape

_T = TypeVar("_T")


class _SparsePlan(Op):
    """What the two operations share: the attributes that describe heads and blocks."""

    num_heads = attr.int()
    num_kv_heads = attr.int()
    h_sel = attr.int()
    k_head_size = attr.int()
    v_head_size = attr.int()
    sel_block_size = attr.int()
    q_block_size = attr.int(1)
    causal = attr.bool(default=True)

    def check_heads(self, at: Site) -> None:
        """Refuse numbers of heads and sizes of blocks that do not divide each other (C3)."""
        for name in (
            "num_heads",
            "num_kv_heads",
            "h_sel",
            "k_head_size",
            "v_head_size",
            "sel_block_size",
            "q_block_size",
        ):
            at.require(getattr(self, name) > 0, "C3", f"{name} is {getattr(self, name)}")
        heads, own = self.num_heads, (1, self.num_kv_heads, self.num_heads)
        at.require(heads % self.num_kv_heads == 0, "C3", f"num_heads is {heads}, num_kv_heads {self.num_kv_heads}")
        at.require(self.h_sel in own, "C3", f"h_sel is {self.h_sel}, not 1, num_kv_heads or num_heads {own}")

    def check_plan(self, at: Site, indices: Value, counts: Value) -> None:
        """Refuse counts beyond the width, and rows that do not ascend (C5)."""
        width = indices.shape[-1] if indices.rank else Dim.unknown()
        for count in counts.ints() or ():
            at.require(0 <= count <= width.hi, "C5", f"sel_count has {count}, and sel_indices {width} columns")
        rows, numbers = indices.exact, counts.exact
        if rows is None or numbers is None or rows.shape[:-1] != numbers.shape:
            return
        used = np.arange(rows.shape[-1]) < numbers[..., None]
        ascends = (np.diff(rows, axis=-1) > 0) | ~used[..., 1:]
        fits = ascends.all() and (rows[used] >= 0).all()
        at.require(fits, "C5", "the first sel_count blocks of a row of sel_indices do not ascend")

    def attended(
        self, query: np.ndarray, key: np.ndarray, value: np.ndarray, mask: np.ndarray, scale: float
    ) -> np.ndarray:
        """Return the attention of queries (heads, queries, size) to the keys (key heads, keys, size) under a mask.

        ``mask`` (heads, queries, keys) is added to the scores: minus infinity where a query does not see a key.
        """
        scores = grouped_product(query, key.swapaxes(-1, -2)) * query.dtype.type(scale) + mask
        return grouped_product(softmax(scores, None), value)

    def planned(self, blocks: np.ndarray, keys: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Return which query sees which key (heads, queries, keys).

        ``blocks`` (query blocks, selection heads, blocks) says which blocks are in the plan, ``keys`` are the positions
        of the keys, and ``rows`` the query block of each query.
        """
        own = keys // self.sel_block_size
        inside = own < blocks.shape[-1]
        seen = blocks[rows][..., np.minimum(own, max(blocks.shape[-1] - 1, 0))] & inside
        return np.repeat(seen.swapaxes(0, 1), self.num_heads // self.h_sel, 0)


def _listed(indices: np.ndarray, counts: np.ndarray, blocks: int) -> np.ndarray:
    """Return which of so many blocks each row lists (…, blocks)."""
    return marked(indices, np.arange(indices.shape[-1]) < counts[..., None], blocks)


@op("SparseSDPA", spec="internal/sparse-sdpa")
class SparseSDPA(_SparsePlan):
    """Attend from each query to the keys in the blocks of its plan, and with ``causal`` to no key behind its position.

    A block is ``sel_block_size`` consecutive keys. The plan of ``q_block_size`` queries is a row of ``sel_indices``, of
    which the first ``sel_count`` blocks count; without these two inputs, ``attn_mask`` is the plan. Query l of L has
    the position ``keys - L + l``. A query without a key gives zeros.

    The third input is ``sel_indices`` if its type is an integer, and otherwise ``attn_mask``, with ``scale`` behind it.

    C1  ``query`` is (batch, num_heads, queries, k_head_size), ``key`` (batch, num_kv_heads, keys, k_head_size),
        ``value`` (batch, num_kv_heads, keys, v_head_size), ``sel_indices`` (batch, h_sel, query blocks, width),
        ``sel_count`` (batch, h_sel, query blocks).
    C2  Dims of the same name are equal, and to attributes of their name; the number of query blocks is that of
        the queries divided by ``q_block_size``, rounded up.
    C3  The attributes are positive, ``num_heads`` is a multiple of ``num_kv_heads``, and ``h_sel`` is 1,
        ``num_kv_heads`` or ``num_heads``.
    C4  There is a plan: ``sel_indices`` with ``sel_count``, or ``attn_mask``.
    C5  ``sel_count`` is at most the width, and the blocks of a row ascend.
    C6  ``attn_mask`` can be broadcast to (batch, num_heads, queries, keys); ``scale`` is one number.
    C7  There are at least as many keys as queries; with ``q_block_size`` above 1, the number of more keys is a multiple
        of it.
    """

    inputs = ports(
        query="T",
        key="T",
        value="T",
        sel_indices="i32 i64 float boolean",
        sel_count=opt("i32 i64 float"),
        attn_mask=opt("float boolean"),
        scale=opt("T"),
    )
    types = {"T": "float"}
    revisions = (Revision("", "4f0e4b2798d0a25798e531f04364f1092699e720", "the first page that is stored"),)

    def flops(self, inputs: Sequence[Value | None], outputs: Sequence[Value], /) -> Dim:
        query, key = inputs[:2]
        if query is None or key is None or not key.shape.dims:
            return Dim.unknown()
        return (query.shape.count() + outputs[0].shape.count()) * key.shape.dims[2] * 2

    def infer(
        self,
        at: Site,
        query: Value,
        key: Value,
        value: Value,
        sel_indices: Value,
        sel_count: Value | None = None,
        attn_mask: Value | None = None,
        scale: Value | None = None,
    ) -> Value:
        kind = sel_indices.type.kind
        listed = kind in ("int", "uint") or (kind == "dynamic" and sel_count is not None)
        indices, counts, mask, scale = _parts((sel_indices, sel_count, attn_mask, scale), listed)
        self.check_heads(at)
        dims = Layouts(at)
        dims.read("query", query, f"batch {self.num_heads} queries {self.k_head_size}")
        dims.read("key", key, f"batch {self.num_kv_heads} keys {self.k_head_size}")
        dims.read("value", value, f"batch {self.num_kv_heads} keys {self.v_head_size}")
        at.require((indices is None) == (counts is None), "C4", "sel_indices has no sel_count")
        if indices is not None and counts is not None:
            dims.read("sel_indices", indices, f"batch {self.h_sel} query_blocks width")
            dims.read("sel_count", counts, f"batch {self.h_sel} query_blocks")
            if "queries" in dims.named:
                dims.meet("query_blocks", dims["queries"].ceil_div(self.q_block_size), f"query {query.shape}")
            self.check_plan(at, indices, counts)
        joint = PartialShape.of(dims.all(f"batch {self.num_heads} queries keys"))
        fits = mask is None or mask.rank is None or (len(mask.shape) <= 4 and _reaches(joint, mask.shape))
        at.require(fits, "C6", f"attn_mask {mask and mask.shape} cannot be broadcast to {joint}")
        one = scale is None or (scale.rank in (None, 0, 1) and scale.shape.count().fits(1))
        at.require(one, "C6", f"scale is {scale and scale.shape}, not one number")
        queries, keys = dims["queries"], dims["keys"]
        at.require(queries.lo <= keys.hi, "C7", f"there are {keys} keys for {queries} queries")
        past = keys - queries
        message = f"there are {past} keys before the queries, not a multiple of q_block_size {self.q_block_size}"
        at.require(past.value is None or past.lo % self.q_block_size == 0, "C7", message)
        return query.reshaped([dims["batch"], Dim(self.num_heads), queries, Dim(self.v_head_size)])

    def run(
        self,
        query: np.ndarray,
        key: np.ndarray,
        value: np.ndarray,
        sel_indices: np.ndarray,
        sel_count: np.ndarray | None = None,
        attn_mask: np.ndarray | None = None,
        scale: np.ndarray | None = None,
    ) -> np.ndarray:
        listed = sel_indices.dtype.kind in "iu"
        indices, counts, mask, scale = _parts((sel_indices, sel_count, attn_mask, scale), listed)
        queries, keys, values = map(widened, (query, key, value))
        (batch, heads, length, _), count = query.shape, key.shape[2]
        positions = np.arange(count)
        rows = np.arange(length) // self.q_block_size
        bias = np.zeros((batch, heads, length, count), queries.dtype)
        if self.causal:
            bias[..., positions > np.arange(count - length, count)[:, None]] = -np.inf
        if mask is not None:
            bias += np.where(mask, 0, -np.inf).astype(bias.dtype) if mask.dtype == bool else widened(mask)
        if indices is not None and counts is not None:
            plan = _listed(indices, counts, -(-count // self.sel_block_size))
            for number in range(batch):
                bias[number][~self.planned(plan[number].swapaxes(0, 1), positions, rows)] = -np.inf
        factor = self.k_head_size**-0.5 if scale is None else widened(scale).item()
        output = np.empty((batch, heads, length, self.v_head_size), queries.dtype)
        with np.errstate(all="ignore"):
            for number in range(batch):
                output[number] = self.attended(queries[number], keys[number], values[number], bias[number], factor)
        return output.astype(query.dtype)


@op("SparsePA", spec="internal/sparse-pa")
class SparsePA(_SparsePlan, Updating):
    """Write the keys and values of each token to the caches, and attend from it to the keys in the blocks of its plan.

    The caches consist of pages of ``block_size`` slots. The pages of sequence s are
    ``block_indices[block_indices_begins[s]:block_indices_begins[s + 1]]``; token t of the sequence in this call has the
    position ``past_lens[s] + t``. A plan names blocks of ``sel_block_size`` positions for ``q_block_size`` tokens, in
    row ``qb_start[s] + t // q_block_size``. The plan is ``sel_indices``, whose rows hold ``sel_count`` blocks each, or
    ``sel_block_mask``. With ``causal``, a token sees no position behind its own; it sees no position that its sequence
    has not written. A token without a key gives zeros.

    The inputs behind ``past_lens`` are ``sel_indices``, ``sel_count`` and ``qb_start``, or ``sel_block_mask`` and
    ``qb_start``.

    C1  ``query`` is (tokens, num_heads * k_head_size), ``key`` and ``value`` (tokens, num_kv_heads * head size), the
        caches (pages, num_kv_heads, block_size, head size), ``sel_indices`` and ``sel_block_mask`` (query blocks,
        h_sel, width), ``sel_count`` (query blocks, h_sel), the other inputs are 1D.
    C2  Dims of the same name are equal; the begins have one entry more than there are sequences.
    C3  The attributes are positive, ``num_heads`` is a multiple of ``num_kv_heads``, ``h_sel`` is 1, ``num_kv_heads``
        or ``num_heads``, and ``block_size`` is a multiple of ``sel_block_size``.
    C4  ``subsequence_begins`` ascends from 0 to the number of tokens, ``block_indices_begins`` to the number of
        ``block_indices``; ``qb_start`` counts the query blocks of each sequence.
    C5  ``sel_count`` is at most the width, and the blocks of a row ascend.
    C6  ``block_indices`` are pages of the caches, which have a slot for each token of a sequence.
    C7  ``past_lens`` are not negative, and multiples of ``q_block_size``.
    C8  There is a plan: ``sel_indices`` with ``sel_count``, or ``sel_block_mask``, and ``qb_start`` behind it.
    """

    block_size = attr.int()
    scale = attr.float()
    inputs = ports(
        query="T",
        key="T",
        value="T",
        key_cache="T_CACHE",
        value_cache="T_CACHE",
        block_indices="T_IND",
        block_indices_begins="T_IND",
        subsequence_begins="T_IND",
        past_lens="T_IND",
        plan=variadic("i32 i64 boolean", least=1),
    )
    types = {"T": "float", "T_CACHE": "float", "T_IND": "i32 i64"}
    updates = ("key_cache", "value_cache")
    revisions = (
        Revision("", "d40a38a4c55dbe026dff09a70ed1dff179a7898c", "the first page that is stored: plans are lists"),
        Revision(
            "", "4f0e4b2798d0a25798e531f04364f1092699e720", "adds sel_block_mask in place of sel_indices and sel_count"
        ),
    )

    def flops(self, inputs: Sequence[Value | None], outputs: Sequence[Value], /) -> Dim:
        indices = inputs[5]
        keys = Dim.unknown() if indices is None else indices.shape.count() * self.block_size
        return keys * outputs[0].shape.count() * 4

    def infer(
        self,
        at: Site,
        query: Value,
        key: Value,
        value: Value,
        key_cache: Value,
        value_cache: Value,
        *others: Value,
    ) -> Value:
        block_indices, block_indices_begins, subsequence_begins, past_lens, *plan = others
        self.check_heads(at)
        at.require(
            self.block_size > 0 and self.block_size % self.sel_block_size == 0,
            "C3",
            f"block_size is {self.block_size}, sel_block_size {self.sel_block_size}",
        )
        dims = Layouts(at)
        dims.read("query", query, f"tokens {self.num_heads * self.k_head_size}")
        dims.read("key", key, f"tokens {self.num_kv_heads * self.k_head_size}")
        dims.read("value", value, f"tokens {self.num_kv_heads * self.v_head_size}")
        dims.read("key_cache", key_cache, f"pages {self.num_kv_heads} {self.block_size} {self.k_head_size}")
        dims.read("value_cache", value_cache, f"pages {self.num_kv_heads} {self.block_size} {self.v_head_size}")
        dims.read("block_indices", block_indices, "indices")
        dims.read("block_indices_begins", block_indices_begins, "begins")
        dims.read("subsequence_begins", subsequence_begins, "begins")
        dims.read("past_lens", past_lens, "sequences")
        at.require(len(plan) in (2, 3), "C8", f"the layer has {len(plan)} inputs behind past_lens, not 2 or 3")
        if len(plan) == 3:
            dims.read("sel_indices", plan[0], f"query_blocks {self.h_sel} width")
            dims.read("sel_count", plan[1], f"query_blocks {self.h_sel}")
            self.check_plan(at, plan[0], plan[1])
        else:
            at.require(plan[0].type.kind in ("boolean", "dynamic"), "C8", f"sel_block_mask is {plan[0].type}")
            dims.read("sel_block_mask", plan[0], f"query_blocks {self.h_sel} width")
        dims.read("qb_start", plan[-1], "begins")
        if "sequences" in dims.named:
            dims.meet("begins", dims["sequences"] + 1, "past_lens, whose length plus 1")
        check_begins(at, "C4", subsequence_begins, dims["tokens"], "subsequence_begins", "tokens")
        check_begins(at, "C4", block_indices_begins, dims["indices"], "block_indices_begins", "block_indices")
        check_begins(at, "C4", plan[-1], dims["query_blocks"], "qb_start", "query blocks")
        check_blocks(at, "C6", block_indices, dims["pages"])
        self._check_sequences(at, subsequence_begins, block_indices_begins, past_lens, plan[-1])
        return query.reshaped([dims["tokens"], Dim(self.num_heads * self.v_head_size)])

    def _check_sequences(self, at: Site, begins: Value, pages: Value, past_lens: Value, query_blocks: Value) -> None:
        """Refuse a sequence without a slot for each token (C6), with a wrong past (C7) or wrong query blocks (C4)."""
        parts = [value.ints() for value in (begins, pages, past_lens, query_blocks)]
        for past in parts[2] or ():
            fits = past >= 0 and past % self.q_block_size == 0
            at.require(fits, "C7", f"past_lens has {past}, and q_block_size is {self.q_block_size}")
        tokens, own, pasts, rows = ((() if part is None else part) for part in parts)
        if None in parts:
            return
        for number, past in enumerate(pasts):
            count = tokens[number + 1] - tokens[number]
            room = (own[number + 1] - own[number]) * self.block_size
            at.require(past + count <= room, "C6", f"sequence {number} has {past} + {count} tokens in {room} slots")
            blocks = -(-count // self.q_block_size)
            message = f"qb_start gives sequence {number} {rows[number + 1] - rows[number]} query blocks, not {blocks}"
            at.require(rows[number + 1] - rows[number] == blocks, "C4", message)

    def run(
        self,
        query: np.ndarray,
        key: np.ndarray,
        value: np.ndarray,
        key_cache: np.ndarray,
        value_cache: np.ndarray,
        *others: np.ndarray,
        in_place: bool = False,
    ) -> tuple[np.ndarray, ...]:
        block_indices, block_indices_begins, subsequence_begins, past_lens, *plan = others
        key_cache, value_cache = owned(key_cache, in_place), owned(value_cache, in_place)
        queries = widened(query).reshape(len(query), self.num_heads, self.k_head_size)
        output = np.zeros((len(query), self.num_heads, self.v_head_size), queries.dtype)
        width = int(np.diff(block_indices_begins).max(initial=0)) * self.block_size // self.sel_block_size
        blocks = _listed(plan[0], plan[1], width) if len(plan) == 3 else plan[0].astype(bool)
        for number, past in enumerate(past_lens.tolist()):
            first, end = subsequence_begins[number : number + 2].tolist()
            if first == end:
                continue
            pages = block_indices[block_indices_begins[number] : block_indices_begins[number + 1]]
            positions = np.arange(past, past + end - first)
            where = places(pages, positions, self.block_size)
            for cache, rows in ((key_cache, key), (value_cache, value)):
                cache[where[0], :, where[1]] = rows[first:end].reshape(end - first, self.num_kv_heads, -1)
            seen = np.arange(past + end - first)
            page, slot = places(pages, seen, self.block_size)
            keys, values = (widened(cache[page, :, slot]).swapaxes(0, 1) for cache in (key_cache, value_cache))
            own = plan[-1][number] + np.arange(end - first) // self.q_block_size
            mask = self.planned(blocks, seen, own)
            if self.causal:
                mask = mask & (seen <= positions[:, None])
            bias = np.where(mask, queries.dtype.type(0), -np.inf).astype(queries.dtype)
            with np.errstate(all="ignore"):
                found = self.attended(queries[first:end].swapaxes(0, 1), keys, values, bias, self.scale)
            output[first:end] = found.swapaxes(0, 1)
        return output.reshape(len(query), self.num_heads * self.v_head_size).astype(query.dtype), key_cache, value_cache


def _parts(inputs: tuple[_T | None, ...], listed: bool) -> tuple[_T | None, ...]:
    """Return the inputs behind ``value`` as indices, counts, mask and scale. They begin with the mask if not listed."""
    return inputs if listed else (None, None, *inputs[:2])


def _reaches(joint: PartialShape, shape: PartialShape) -> bool:
    """Return whether ``shape`` may be broadcast to ``joint``."""
    whole = joint.broadcast(shape)
    return whole is not None and whole.meet(joint) is not None
