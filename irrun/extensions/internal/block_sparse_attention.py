"""SparseAttentionIndexer and BlockSparseAttention: choose blocks of keys for each query, and attend to them alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from irrun.extensions.internal._attend import softmax
from irrun.extensions.internal._layouts import Layouts, grouped_product, marked, widened
from irrun.opdef import Op, Revision, Site, Value, attr, op, opt, ports
from irrun.types import Dim, ElementType, PartialShape


@op("SparseAttentionIndexer", spec="internal/sparse-attention-indexer")
class SparseAttentionIndexer(Op):
    """Return for each query the blocks of keys with the highest scores, the highest first, and their number.

    A block is ``compress_ratio`` consecutive keys. Query l of L has the position ``key_length - L + l``, and competing
    blocks end at its position or before it. The score of a block is the sum over the index heads of the positive part
    of query times key, each times its weight. ``num_selection_heads`` groups of index heads choose for themselves. Of
    equal scores, the earlier block wins. -1 fills the rest of a row.

    C1  ``index_query`` is (batch, heads, queries, size), ``index_key_blocks`` (batch, blocks, size), ``index_weights``
        (batch, queries, heads).
    C2  Dims of the same name are equal.
    C3  ``compress_ratio`` and ``token_budget`` are positive, and ``token_budget`` is a multiple of ``compress_ratio``.
    C4  ``num_selection_heads`` is positive, and divides the number of heads.
    C5  ``key_length`` is one number, at least the number of queries; the number of blocks is ``key_length`` divided by
        ``compress_ratio``, rounded down.
    C6  ``index_element_type`` is i32 or i64.
    """

    compress_ratio = attr.int()
    token_budget = attr.int()
    num_selection_heads = attr.int(1)
    index_element_type: ElementType = attr.element_type("i32")
    inputs = ports(index_query="T", index_key_blocks="T", key_length="T_IND", index_weights=opt("T"))
    types = {"T": "float", "T_IND": "i32 i64"}
    outputs = 2
    revisions = (
        Revision(
            "",
            "03725944d33fa8e55d6b1ed634bb7ce380315cb2",
            "the first page: one selection for all heads, outputs without their axis, and any order of equal scores",
            without=("num_selection_heads",),
        ),
        Revision(
            "",
            "677f0e4cef19a69bba78d2ce271332c4da0a3e12",
            "adds num_selection_heads and an axis of it to the outputs; of equal scores, the earlier block wins",
        ),
    )

    def flops(self, inputs: Sequence[Value | None], outputs: Sequence[Value], /) -> Dim:
        query, keys = inputs[:2]
        if query is None or keys is None or not keys.shape.dims:
            return Dim.unknown()
        return query.shape.count() * keys.shape.dims[1] * 2

    def infer(
        self,
        at: Site,
        index_query: Value,
        index_key_blocks: Value,
        key_length: Value,
        index_weights: Value | None = None,
    ) -> tuple[Value, ...]:
        ratio, budget, selections = self.compress_ratio, self.token_budget, self.num_selection_heads
        at.require(
            ratio > 0 and budget > 0 and budget % ratio == 0,
            "C3",
            f"token_budget {budget} is not a positive multiple of compress_ratio {ratio}",
        )
        at.require(
            self.index_element_type.name in ("i32", "i64"), "C6", f"index_element_type is {self.index_element_type}"
        )
        dims = Layouts(at)
        dims.read("index_query", index_query, "batch heads queries size")
        dims.read("index_key_blocks", index_key_blocks, "batch blocks size")
        dims.read("index_weights", index_weights, "batch queries heads")
        heads = dims["heads"].value
        at.require(
            selections > 0 and (heads is None or heads % selections == 0),
            "C4",
            f"num_selection_heads is {selections} for {dims['heads']} heads",
        )
        one = key_length.rank in (None, 0, 1) and key_length.shape.count().fits(1)
        at.require(one, "C5", f"key_length is {key_length.shape}, not one number")
        length = key_length.scalar()
        if length is not None:
            at.require(dims["queries"].lo <= length, "C5", f"key_length is {length} for {dims['queries']} queries")
            message = f"index_key_blocks has {dims['blocks']} blocks for {length} keys in blocks of {ratio}"
            at.require(dims["blocks"].fits(length // ratio), "C5", message)
        rows = [dims["batch"], Dim(selections), dims["queries"]]
        return (
            Value(self.index_element_type, PartialShape.of([*rows, budget // ratio])),
            Value(self.index_element_type, PartialShape.of(rows)),
        )

    def run(
        self,
        index_query: np.ndarray,
        index_key_blocks: np.ndarray,
        key_length: np.ndarray,
        index_weights: np.ndarray | None = None,
    ) -> tuple[np.ndarray, ...]:
        query, keys = widened(index_query), widened(index_key_blocks)
        batch, heads, queries, _ = query.shape
        selections, width = self.num_selection_heads, self.token_budget // self.compress_ratio
        with np.errstate(all="ignore"):
            scores = np.maximum(query @ keys[:, None].swapaxes(-1, -2), 0)  # batch, heads, queries, blocks
            if index_weights is not None:
                scores = scores * widened(index_weights).swapaxes(-1, -2)[..., None]
            scores = scores.reshape(batch, selections, heads // selections, *scores.shape[2:]).sum(2)
        indices = np.full((batch, selections, queries, width), -1, self.index_element_type.dtype)
        count = np.zeros(indices.shape[:-1], indices.dtype)
        for number in range(queries):
            position = int(key_length.item()) - queries + number
            visible = (position + 1) // self.compress_ratio
            chosen = min(width, visible)
            order = np.argsort(-scores[:, :, number, :visible], axis=-1, kind="stable")[..., :chosen]
            indices[:, :, number, :chosen] = order
            count[:, :, number] = chosen
        return indices, count


@op("BlockSparseAttention", spec="internal/block-sparse-attention")
class BlockSparseAttention(Op):
    """Attend from each query to the keys of its blocks, and to the keys of its own incomplete block up to its position.

    A block is ``compress_ratio`` consecutive keys. Query l of L has the position ``keys - L + l``. A row of
    ``block_indices`` holds the blocks of one query for a group of heads, the first ``block_count`` of them; the others
    are ignored. A query without a key gives zeros.

    C1  ``query`` is (batch, heads, queries, size), ``key`` (batch, key heads, keys, size), ``value`` (batch, key heads,
        keys, value size), ``block_indices`` (batch, selections, queries, width), ``block_count`` (batch, selections,
        queries); in the first revision, ``block_indices`` is (batch, queries, width), padded with -1.
    C2  Dims of the same name are equal.
    C3  The number of heads is a multiple of the number of key heads, and of the number of selections.
    C4  ``compress_ratio`` is positive; there are at least as many keys as queries.
    C5  ``scale`` is one number.
    C6  ``block_count`` is from 0 to the width. The blocks are complete at the position of their query.
    """

    compress_ratio = attr.int()
    # a layer with 5 inputs may be of both revisions: the type of the last input says which
    inputs = ports(query="T", key="T", value="T", block_indices="T_IND", block_count="i32 i64 float", scale=opt("T"))
    types = {"T": "float", "T_IND": "i32 i64"}
    revisions = (
        Revision(
            "",
            "91f21a34ab50bd77eec0d2090f59ed5b076ea8a2",
            "the first page: no block_count, and one row of block_indices for all heads",
            inputs=ports(query="T", key="T", value="T", block_indices="T_IND", scale=opt("T")),
        ),
        Revision(
            "",
            "dd073e3a4ea7f8c4381ca8b282f389038bb93fb2",
            "adds block_count as input 5, and an axis of selection heads to block_indices",
        ),
    )

    def flops(self, inputs: Sequence[Value | None], outputs: Sequence[Value], /) -> Dim:
        query, value, indices = inputs[0], inputs[2], inputs[3]
        if query is None or value is None or indices is None or not value.shape.dims or not indices.shape.dims:
            return Dim.unknown()
        keys = indices.shape.dims[-1] * self.compress_ratio
        return (query.shape.count() + outputs[0].shape.count()) * keys * 2

    def infer(
        self,
        at: Site,
        query: Value,
        key: Value,
        value: Value,
        block_indices: Value,
        block_count: Value | None = None,
        scale: Value | None = None,
    ) -> Value:
        if block_count is not None and block_count.type.kind == "float":
            block_count, scale = None, block_count
        at.require(self.compress_ratio > 0, "C4", f"compress_ratio is {self.compress_ratio}")
        dims = Layouts(at)
        dims.read("query", query, "batch heads queries size")
        dims.read("key", key, "batch key_heads keys size")
        dims.read("value", value, "batch key_heads keys value_size")
        dims.read(
            "block_indices",
            block_indices,
            "batch queries width" if block_count is None else "batch selections queries width",
        )
        dims.read("block_count", block_count, "batch selections queries")
        dims.multiple("heads", "key_heads", "C3")
        dims.multiple("heads", "selections", "C3")
        message = f"there are {dims['keys']} keys for {dims['queries']} queries"
        at.require(dims["queries"].lo <= dims["keys"].hi, "C4", message)
        one = scale is None or (scale.rank in (None, 0, 1) and scale.shape.count().fits(1))
        at.require(one, "C5", f"scale is {scale and scale.shape}, not one number")
        self._check_blocks(at, dims, block_indices, block_count)
        return query.reshaped(dims.all("batch heads queries value_size"))

    def _check_blocks(self, at: Site, dims: Layouts, block_indices: Value, block_count: Value | None) -> None:
        """Refuse counts beyond the width, and blocks that are not complete at their query (C6)."""
        counts = None if block_count is None else block_count.exact
        for count in () if counts is None else counts.ravel():
            at.require(dims["width"].hi >= count >= 0, "C6", f"block_count has {count}, the width is {dims['width']}")
        rows, keys, queries = block_indices.exact, dims["keys"].value, dims["queries"].value
        if rows is None or keys is None or queries is None or (block_count is not None and counts is None):
            return
        used = _used(rows, counts)
        visible = (np.arange(keys - queries, keys) + 1) // self.compress_ratio
        wrong = used & ((rows < 0) | (rows >= visible[:, None]))
        message = "a row of block_indices names a block that is not complete at the position of its query"
        at.require(not wrong.any(), "C6", message)

    def run(
        self,
        query: np.ndarray,
        key: np.ndarray,
        value: np.ndarray,
        block_indices: np.ndarray,
        block_count: np.ndarray | None = None,
        scale: np.ndarray | None = None,
    ) -> np.ndarray:
        if block_count is not None and block_count.dtype.kind not in "iu":
            block_count, scale = None, block_count
        rows = block_indices if block_count is not None else block_indices[:, None]
        queries, keys, values = map(widened, (query, key, value))
        heads, length, count = query.shape[1], query.shape[2], key.shape[2]
        with np.errstate(divide="ignore"):  # a size of 0 makes an infinite scale of scores of 0
            factor = 1 / np.sqrt(np.float64(queries.shape[-1])) if scale is None else widened(scale).item()
        owner = np.arange(count) // self.compress_ratio  # the block of each key
        positions = np.arange(count - length, count)[:, None]
        own = (owner == (positions + 1) // self.compress_ratio) & (np.arange(count) <= positions)
        used = _used(rows, block_count)
        chosen = marked(rows, used, -(-count // self.compress_ratio))[..., owner]  # batch, selections, queries, keys
        mask = np.repeat(chosen | own, heads // rows.shape[1], 1)
        with np.errstate(all="ignore"):
            scores = grouped_product(queries, keys.swapaxes(-1, -2)) * queries.dtype.type(factor)
            output = grouped_product(softmax(np.where(mask, scores, -np.inf), None), values)
        return output.astype(query.dtype)


def _used(rows: np.ndarray, counts: np.ndarray | None) -> np.ndarray:
    """Return which entries of the rows are blocks: the first of each row, or all but -1 without counts."""
    return rows >= 0 if counts is None else np.arange(rows.shape[-1]) < counts[..., None]
