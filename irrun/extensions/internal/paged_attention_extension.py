"""PagedAttentionExtension: attention to keys and values in caches of blocks.  Page: internal/paged-attention."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, Final

import numpy as np

from irrun.extensions.internal._attend import Bias, attended, block_diversity, kept_blocks, rotated_rows
from irrun.extensions.internal._blocks import check_begins, check_blocks
from irrun.extensions.internal._caches import Layout, read, rewrite, write
from irrun.extensions.internal._decode import Decode, decoded
from irrun.kernels.matmul import narrow, wide
from irrun.opdef import Kernel, Op, Request, Revision, Site, Value, attr, op, ports
from irrun.types import ELEMENT_TYPES, Dim, PartialShape

_CACHE: Final = "f32 f16 bf16 u8 u4"
_INPUTS: Final = ports(
    query="T", key="T", value="T", key_cache=_CACHE, value_cache=_CACHE, past_lens="i32", subsequence_begins="i32",
    block_indices="i32", block_indices_begins="i32", scale="float", sliding_window="i32", alibi_slopes="float",
    max_context_len="i32", score_aggregation_window="i32", rotated_block_indices="i32", rotation_deltas="i32",
    rotation_trig_lut="f32 f16", xattention_threshold="f32 f16", xattention_block_size="i32", xattention_stride="i32",
    sinks="float", adaptive_rkv_start_size="i32", adaptive_rkv_evictable_sizes="i32",
    adaptive_rkv_diversity_block_set_indices="i32", adaptive_rkv_diversity_block_set_indices_begins="i32",
    token_type_ids="i32", qq_bias="u8 boolean", qq_bias_begins="i32",
)  # fmt: skip
_NAMES: Final = tuple(port.name for port in _INPUTS)
_SCALARS: Final = (
    "scale",
    "sliding_window",
    "max_context_len",
    "xattention_block_size",
    "xattention_stride",
    "adaptive_rkv_start_size",
)
_VECTORS: Final = {"past_lens": 0, "subsequence_begins": 1, "block_indices_begins": 1, "block_indices": None}


@op("PagedAttentionExtension", spec="internal/paged-attention")
class PagedAttentionExtension(Op):
    """Write the new keys and values of several sequences to caches, and average all values of each sequence.

    The rows ``subsequence_begins[s]`` to ``subsequence_begins[s + 1]`` of ``query``, ``key`` and ``value`` are the new
    tokens of sequence s, behind its ``past_lens[s]`` tokens. The tokens of sequence s lie in the blocks
    ``block_indices[block_indices_begins[s]:block_indices_begins[s + 1]]`` of the caches, in this order. A block -1 has
    been evicted. A query attends to its own and earlier positions: softmax(query · key * ``scale``). An empty input or
    0 turns each of these options off:

    - ``sliding_window`` and ``max_context_len`` limit the positions, counted back from that of the query.
    - ``alibi_slopes`` of a head, times the distance to the key, is subtracted from the score.
    - ``sinks`` holds a score for each head that takes weight from all keys and has no value.
    - The keys of ``rotated_block_indices`` are rotated before use, by the rows of ``rotation_trig_lut`` that
      ``rotation_deltas`` names, for each block or for each token. The cache keeps the rotated keys.
    - ``xattention_threshold`` skips pairs of blocks of a single new sequence that have little weight.

    Without ``write_kv_cache``, the caches already hold the new keys and values: a layer before has the same caches.

    Heads share keys and values in groups. The second output holds the sums of the weights of each position, for each
    sequence, over all heads and the last ``score_aggregation_window`` queries: all for a negative number, and the last
    one for an empty input. The third output holds, for each sequence with enough tokens, the differences of the keys
    that may be evicted. Caches in u8 and u4 hold codes with scales, by token or by channel, as OpenVINO's CPU plugin
    lays them out.

    C1  ``query``, ``key`` and ``value`` have rank 2 and equally many rows.
    C2  The caches have rank 4, and equal numbers of blocks, of heads and of slots.
    C3  The width of ``key`` and of ``value`` is the number of heads of the caches times the width of a row of its
        cache. The width of ``query`` is a multiple of that of ``key``.
    C4  ``past_lens``, ``subsequence_begins``, ``block_indices`` and ``block_indices_begins`` are 1D; the begins have
        one element more than there are sequences.
    C5  The begins ascend from 0 to the number of rows, or to the number of blocks. ``past_lens`` are not negative.
    C6  The blocks of a sequence have room for its tokens, and are blocks of the caches; new tokens go to no block -1.
    C7  ``scale``, ``sliding_window``, ``max_context_len``, ``xattention_block_size``, ``xattention_stride`` and
        ``adaptive_rkv_start_size`` have one element.
    C8  ``alibi_slopes`` and ``sinks`` are empty, or hold one element for each head of ``query``.
    C9  ``score_aggregation_window``, ``xattention_threshold`` and ``adaptive_rkv_evictable_sizes`` are empty, or hold
        one element, or one for each sequence.
    C10 ``rotation_deltas`` holds, for each of ``rotated_block_indices``, one row of ``rotation_trig_lut``, or one for
        each slot. The rows of ``rotation_trig_lut`` are as wide as a key, which has an even width.
    C11 With ``xattention_threshold``, ``xattention_block_size`` is a positive multiple of ``xattention_stride``.
    C12 ``adaptive_rkv_start_size`` and ``adaptive_rkv_evictable_sizes`` are multiples of the number of slots.
    C13 ``token_type_ids``, ``qq_bias`` and ``qq_bias_begins`` are empty: no page defines them.
    """

    write_kv_cache = attr.bool(default=True)
    inputs = _INPUTS
    types = {"T": "float"}
    outputs = 3
    updates = ("key_cache", "value_cache")
    pure = False
    revisions = (
        Revision("2025.4", "", "21 inputs and two outputs", inputs=_INPUTS[:21]),
        Revision("", "041e332815b742cc38cf02e09fd28c7f3d87e7a7", "adds adaptive_rkv_*, output 2", inputs=_INPUTS[:25]),
        Revision("2026.4", "", "adds token_type_ids, qq_bias and qq_bias_begins"),
    )

    def infer(self, at: Site, *inputs: Value) -> tuple[Value, ...]:
        given = dict(zip(_NAMES, inputs))
        query, key, value = inputs[:3]
        rows = Dim.unknown()
        for name in _NAMES[:3]:
            shape = given[name].shape
            at.require(shape.rank in (None, 2), "C1", f"{name} is {shape}, not of rank 2")
            both = rows.meet(shape[0]) if shape.rank else rows
            at.require(both is not None, "C1", f"query is {query.shape}, key {key.shape} and value {value.shape}")
            rows = both or rows
        self._check_caches(at, given)
        tokens = self._check_tables(at, given, rows)
        self._check_options(at, given)
        self._check_rotation(at, given)
        width = Dim.unknown()
        if query.rank and key.rank and value.rank:
            width = query.shape[1] * value.shape[1] // key.shape[1] if key.shape[1].lo > 0 else width
        zone = given.get("adaptive_rkv_evictable_sizes")
        empty = Dim(0) if zone is None or zone.shape.count().value == 0 else Dim.unknown()
        score = ELEMENT_TYPES["f32"]
        return (
            query.reshaped([rows, width]),
            Value(score, PartialShape((tokens,))),
            Value(score, PartialShape((empty,))),
        )

    def _check_caches(self, at: Site, given: dict[str, Value]) -> None:
        """Refuse caches that contradict one another, or the widths of the queries, keys and values (C2, C3)."""
        key_cache, value_cache = given["key_cache"].shape, given["value_cache"].shape
        for name, shape in (("key_cache", key_cache), ("value_cache", value_cache)):
            at.require(shape.rank in (None, 4), "C2", f"{name} is {shape}, not of rank 4")
        if not key_cache.rank or not value_cache.rank:
            return
        message = f"key_cache is {key_cache}, but value_cache is {value_cache}"
        at.require(key_cache[0].meet(value_cache[0]) is not None, "C2", message)
        at.require(key_cache[1].meet(value_cache[1]) is not None, "C2", message)
        heads = key_cache[1].value
        widths = [shape[1].value if shape.rank else None for shape in (given[name].shape for name in _NAMES[:3])]
        if heads is None or None in widths:
            return
        query, key, value = (width or 0 for width in widths)
        for name, width in (("key", key), ("value", value)):
            at.require(
                heads > 0 and width % heads == 0, "C3", f"{name} is {width} wide, not a multiple of {heads} heads"
            )
        size = key // heads
        at.require(size > 0 and query % key == 0, "C3", f"query is {query} wide, not a multiple of {key}, as key is")
        slots: list[int] = []
        for name, width in (("key_cache", size), ("value_cache", value // heads)):
            cache = given[name]
            if not cache.shape.is_static or cache.type.kind == "dynamic":
                return
            layout = Layout.of(tuple(dim.lo for dim in cache.shape), cache.type.dtype, width)
            at.require(layout is not None, "C3", f"{name} is {cache.type}{cache.shape}, but its rows are {width} wide")
            assert layout is not None
            slots.append(layout.slots)
        at.require(slots[0] == slots[1], "C2", f"a block has {slots[0]} keys and {slots[1]} values")

    def _check_tables(self, at: Site, given: dict[str, Value], rows: Dim) -> Dim:
        """Refuse a wrong table of sequences or blocks (C4 to C6), and return the number of tokens of all sequences."""
        sequences = Dim.unknown()
        for name, more in _VECTORS.items():
            shape = given[name].shape
            at.require(shape.rank in (None, 1), "C4", f"{name} is {shape}, not 1D")
            if shape.rank and more is not None:
                both = sequences.meet(shape[0] - more)
                past = given["past_lens"].shape
                at.require(both is not None, "C4", f"{name} is {shape}, but past_lens is {past}")
                sequences = both or sequences
        blocks = given["block_indices"]
        check_begins(at, "C5", given["subsequence_begins"], rows, "subsequence_begins", "rows")
        check_begins(at, "C5", given["block_indices_begins"], blocks.shape.count(), "block_indices_begins", "blocks")
        past, begins = given["past_lens"].ints(), given["subsequence_begins"].ints()
        if past is None:
            return Dim.unknown()
        at.require(min(past, default=0) >= 0, "C5", f"past_lens holds {min(past, default=0)}")
        if begins is not None:
            self._check_room(at, given, [(length, end - begin) for length, (begin, end) in zip(past, pairwise(begins))])
        return rows + sum(past)

    def _check_room(self, at: Site, given: dict[str, Value], lengths: Sequence[tuple[int, int]]) -> None:
        """Refuse a sequence whose blocks have no room for its tokens (C6). ``lengths`` are its past and new tokens."""
        table, begins, cache = given["block_indices"].ints(), given["block_indices_begins"].ints(), given["key_cache"]
        layout = self._layout(cache, given["key"].shape)
        if table is None or begins is None or layout is None:
            return
        slots = layout.slots
        named = Value.of(np.array([block for block in table if block != -1], np.int32))
        check_blocks(at, "C6", named, cache.shape[0])
        for sequence, ((past, new), (begin, end)) in enumerate(zip(lengths, pairwise(begins))):
            message = f"the {end - begin} blocks of sequence {sequence} have no room for {past} + {new} tokens"
            at.require(past + new <= (end - begin) * slots, "C6", message)
            if new:
                written = table[begin + past // slots : begin + (past + new - 1) // slots + 1]
                at.require(-1 not in written, "C6", f"a new token of sequence {sequence} lies in block -1")

    @staticmethod
    def _layout(cache: Value, rows: PartialShape) -> Layout | None:
        """Return the layout of a cache for these keys or values, or None unless the shapes are known and agree."""
        width = rows[1].value if rows.rank == 2 else None
        if width is None or not cache.shape.is_static or cache.shape.rank != 4 or cache.type.kind == "dynamic":
            return None
        dims = tuple(dim.lo for dim in cache.shape)
        return Layout.of(dims, cache.type.dtype, width // dims[1]) if dims[1] else None

    def _check_options(self, at: Site, given: dict[str, Value]) -> None:
        """Refuse options of a wrong size (C7 to C9, C11 to C13)."""
        for name in _SCALARS:
            if name in given:
                shape = given[name].shape
                at.require(shape.count().fits(1), "C7", f"{name} is {shape}, not one element")
        query, key, cache = given["query"].shape, given["key"].shape, given["key_cache"].shape
        heads = query[1] * cache[1] // key[1] if query.rank and key.rank and cache.rank and key[1].lo else Dim.unknown()
        for name in ("alibi_slopes", "sinks"):
            count = given[name].shape.count() if name in given else Dim(0)
            message = f"{name} has {count} elements, but query has {heads} heads"
            at.require(count.fits(0) or heads.meet(count) is not None, "C8", message)
        past = given["past_lens"].shape
        sequences = past[0] if past.rank else Dim.unknown()
        for name in ("score_aggregation_window", "xattention_threshold", "adaptive_rkv_evictable_sizes"):
            count = given[name].shape.count() if name in given else Dim(0)
            message = f"{name} has {count} elements, but there are {sequences} sequences"
            at.require(count.fits(0) or count.fits(1) or sequences.meet(count) is not None, "C9", message)
        if given["xattention_threshold"].shape.count().lo > 0:
            size, stride = given["xattention_block_size"].scalar(), given["xattention_stride"].scalar()
            if size is not None and stride is not None:
                message = f"xattention_block_size is {size} and xattention_stride {stride}"
                at.require(stride > 0 and size > 0 and size % stride == 0, "C11", message)
        slots = cache[2].value if cache.rank and given["key_cache"].type.kind == "float" else None
        for name in ("adaptive_rkv_start_size", "adaptive_rkv_evictable_sizes"):
            for number in (given[name].ints() or ()) if name in given and slots else ():
                at.require(number % (slots or 1) == 0, "C12", f"{name} is {number}, but a block has {slots} slots")
        for name in ("token_type_ids", "qq_bias", "qq_bias_begins"):
            if name in given:
                at.require(given[name].shape.count().fits(0), "C13", f"{name} is {given[name].shape}, not empty")

    def _check_rotation(self, at: Site, given: dict[str, Value]) -> None:
        """Refuse a rotation whose inputs contradict one another (C10), or of blocks that the cache does not have."""
        blocks, deltas, table = given["rotated_block_indices"], given["rotation_deltas"], given["rotation_trig_lut"]
        count, rows = blocks.shape.count().value, deltas.shape.count().value
        if not count or rows is None:
            return
        cache = given["key_cache"]
        check_blocks(at, "C10", blocks, cache.shape[0] if cache.rank else Dim.unknown(), "rotated_block_indices")
        message = f"rotation_deltas is {deltas.shape} for {count} rotated blocks"
        at.require(rows % count == 0, "C10", message)
        layout = self._layout(cache, given["key"].shape)
        if layout is None:
            return
        at.require(rows in (count, count * layout.slots), "C10", message)
        at.require(layout.width % 2 == 0, "C10", f"a key has {layout.width} elements, an odd number")
        size = table.shape.count().value
        at.require(
            size is None or (size > 0 and size % layout.width == 0), "C10", f"rotation_trig_lut is {table.shape}"
        )
        for row in deltas.ints() or ():
            message = f"rotation_deltas names row {row} of rotation_trig_lut {table.shape}"
            at.require(row >= 0 and (size is None or row < size // layout.width), "C10", message)

    def working(self, *inputs: np.ndarray) -> int:
        return inputs[3].nbytes + inputs[4].nbytes

    def prepare(self, request: Request) -> Kernel:
        return self.prepared(request, decoded)

    def prepared(self, request: Request, decode: Decode) -> Kernel:
        """Return the kernel that computes calls of one new token for each sequence with ``decode``."""
        none, writes = np.zeros(0, np.float32), self.write_kv_cache

        def call(*inputs: np.ndarray) -> tuple[np.ndarray, ...]:
            caches = [cache if cache.flags.writeable else cache.copy() for cache in inputs[3:5]]
            given = dict(zip(_NAMES, inputs))
            if request.outputs == 1 and writes and not given["rotated_block_indices"].size:
                averages = decode(inputs[:3], caches, inputs[5:9], _options(given))
                if averages is not None:
                    return averages, none, none, *caches
            return _attention(given, caches[0], caches[1], counts=request.outputs > 1, writes=writes)

        return Kernel(call, "in place")

    def run(self, *inputs: np.ndarray) -> tuple[np.ndarray, ...]:
        given, caches = dict(zip(_NAMES, inputs)), (inputs[3].copy(), inputs[4].copy())
        return _attention(given, *caches, counts=True, writes=self.write_kv_cache)


def _attention(
    given: dict[str, np.ndarray], key_cache: np.ndarray, value_cache: np.ndarray, *, counts: bool, writes: bool
) -> tuple[np.ndarray, ...]:
    """Return the outputs and the caches, into which the new keys and values are written if it ``writes``.

    Unless it ``counts``, nobody reads the second output, and it holds zeros.
    """
    query, key, value = given["query"], given["key"], given["value"]
    heads, work = key_cache.shape[1], wide(query.dtype)
    keys = Layout.of(key_cache.shape, key_cache.dtype, key.shape[1] // heads)
    values = Layout.of(value_cache.shape, value_cache.dtype, value.shape[1] // heads)
    assert keys is not None
    assert values is not None
    _rotate(given, key_cache, keys)
    queries = query.astype(work).reshape(len(query), query.shape[1] // keys.width, keys.width)
    averages = np.empty((len(query), queries.shape[1] * values.width), query.dtype)
    scores: list[np.ndarray] = []
    diversity: list[np.ndarray] = []
    tables = [given[name].tolist() for name in ("past_lens", "subsequence_begins", "block_indices_begins")]
    for sequence, (past, rows, table) in enumerate(zip(tables[0], pairwise(tables[1]), pairwise(tables[2]))):
        new, own = slice(*rows), given["block_indices"][slice(*table)]
        if writes:
            write(key_cache, keys, own, past, key[new].reshape(rows[1] - rows[0], heads, keys.width))
            write(value_cache, values, own, past, value[new].reshape(rows[1] - rows[0], heads, values.width))
        length = past + rows[1] - rows[0]
        seen = read(key_cache, keys, own, length, work)
        bias = _bias(given, sequence, queries[new], seen, own, keys.slots)
        window = _of(given, "score_aggregation_window", sequence, 1) if counts else 0
        counted = rows[1] - rows[0] if window < 0 else int(window)
        part, sums = attended(queries[new], seen, read(value_cache, values, own, length, work), bias, counted)
        averages[new] = narrow(part.reshape(len(part), averages.shape[1]), query.dtype)
        scores.append(sums.astype(np.float32))
        zone, start = _of(given, "adaptive_rkv_evictable_sizes", sequence), _of(given, "adaptive_rkv_start_size")
        if zone and length >= start + zone:
            diversity.append(block_diversity(seen, start, zone, keys.slots).astype(np.float32).ravel())
    none = np.zeros(0, np.float32)
    return averages, np.concatenate([none, *scores]), np.concatenate([none, *diversity]), key_cache, value_cache


def _options(given: dict[str, np.ndarray]) -> Bias:
    """Return the biases that are the same for all sequences."""
    limits = [int(_of(given, name)) for name in ("sliding_window", "max_context_len")]
    slopes, sinks = given["alibi_slopes"], given.get("sinks")
    return Bias(
        scale=float(_of(given, "scale")),
        window=min((limit for limit in limits if limit > 0), default=0),
        slopes=slopes if slopes.size else None,
        sinks=sinks.ravel() if sinks is not None and sinks.size else None,
    )


def _of(given: dict[str, np.ndarray], name: str, sequence: int = 0, default: int = 0) -> Any:
    """Return the element of an option that counts for a sequence, or ``default`` if the option is empty or missing."""
    option = given.get(name)
    if option is None or not option.size:
        return default
    return option.ravel()[sequence if option.size > 1 else 0].item()


def _bias(
    given: dict[str, np.ndarray], sequence: int, query: np.ndarray, key: np.ndarray, blocks: np.ndarray, slots: int
) -> Bias:
    """Return the biases of one sequence with these new queries, all of its keys, and its blocks of ``slots`` slots."""
    bias, evicted = _options(given), np.repeat(blocks < 0, slots)
    threshold, size = given["xattention_threshold"], int(_of(given, "xattention_block_size"))
    stride, kept = int(_of(given, "xattention_stride")), None
    is_prefill = len(given["past_lens"]) == 1 and len(query) == key.shape[1] > 1
    if threshold.size and size > 0 and stride > 0 and is_prefill:
        kept = kept_blocks(query, key, bias.scale, _of(given, "xattention_threshold", sequence), size, stride)
    return replace(bias, evicted=evicted if evicted.any() else None, blocks=kept, block_size=max(size, 1))


def _rotate(given: dict[str, np.ndarray], cache: np.ndarray, layout: Layout) -> None:
    """Rotate the keys of the rotated blocks in place, as far as the past of a sequence fills them."""
    rotated = given["rotated_block_indices"].tolist()
    if not rotated or not given["rotation_trig_lut"].size:
        return
    table = given["rotation_trig_lut"].astype(np.float32).reshape(-1, layout.width)
    rows = np.broadcast_to(given["rotation_deltas"].reshape(len(rotated), -1), (len(rotated), layout.slots))
    filled: dict[int, int] = {}
    begins = given["block_indices_begins"].tolist()
    for past, (begin, end) in zip(given["past_lens"].tolist(), pairwise(begins)):
        for number, block in enumerate(given["block_indices"][begin:end].tolist()):
            filled[block] = max(0, min(layout.slots, past - number * layout.slots))
    for block, angles in zip(rotated, rows):
        count = filled.get(block, 0)
        if count:
            rewrite(cache, layout, block, count, lambda keys, own=table[angles[:count]]: rotated_rows(keys, own))
