"""PagedAttentionExtension: prompts, decoding and their options, against dense attention in plain numpy."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import irrun
from irrun import build as b
from irrun.diagnostics import ModelError
from irrun.extensions.internal._caches import Layout, read, write
from irrun.extensions.internal.paged_attention_extension import PagedAttentionExtension
from irrun.growing.internal import OFF
from irrun.opdef import Request, Value

HEADS, GROUPS, SIZE, WIDTH, SLOTS, BLOCKS = 4, 2, 6, 5, 4, 12


def i32(*numbers: int) -> np.ndarray:
    return np.array(numbers, np.int32)


def f32(*numbers: float) -> np.ndarray:
    return np.array(numbers, np.float32)


NAMES = [port.name for port in PagedAttentionExtension.inputs]


@dataclass
class Sequence:
    """All queries, keys and values of one sequence, and the blocks of its tokens."""

    blocks: list[int]
    query: np.ndarray
    key: np.ndarray
    value: np.ndarray
    done: int = 0

    @staticmethod
    def random(seed: int, tokens: int, blocks: list[int]) -> Sequence:
        rng = np.random.default_rng(seed)
        shapes = (tokens, HEADS, SIZE), (tokens, GROUPS, SIZE), (tokens, GROUPS, WIDTH)
        query, key, value = (rng.standard_normal(shape).astype(np.float32) for shape in shapes)
        return Sequence(blocks, query, key, value)


@dataclass
class Server:
    """Calls the operation as a server does: some new tokens of some sequences in one call."""

    options: dict[str, Any] = field(default_factory=dict)
    caches: list[np.ndarray] = field(default_factory=lambda: [
        np.full((BLOCKS, GROUPS, SLOTS, SIZE), 7, np.float32), np.full((BLOCKS, GROUPS, SLOTS, WIDTH), 7, np.float32)
    ])  # fmt: skip

    def inputs(self, work: list[tuple[Sequence, int]]) -> list[np.ndarray]:
        """Return the inputs of a call that computes so many new tokens of each of these sequences."""
        rows = [
            np.concatenate([getattr(s, name)[s.done : s.done + n].reshape(n, -1) for s, n in work])
            for name in ("query", "key", "value")
        ]
        counts, blocks = np.cumsum([0] + [n for _, n in work]), np.cumsum([0] + [len(s.blocks) for s, _ in work])
        table = i32(*(block for s, _ in work for block in s.blocks))
        past = i32(*(s.done for s, _ in work))
        options = [np.asarray(value) for value in (OFF | self.options).values()]
        return [*rows, *self.caches, past, counts.astype(np.int32), table, blocks.astype(np.int32), *options]

    def call(self, work: list[tuple[Sequence, int]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        averages, scores, diversity, *self.caches = PagedAttentionExtension().run(*self.inputs(work))
        for sequence, count in work:
            sequence.done += count
        return averages, scores, diversity


def dense(s: Sequence, begin: int, end: int, **options: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the averages of the queries from ``begin`` to ``end``, a row each, and the weights [heads, queries, keys].

    The attention is computed query by query and head by head, in f64.
    """
    window, slopes, sinks = (options.get(name) for name in ("window", "slopes", "sinks"))
    averages, weights = np.zeros((end - begin, HEADS, WIDTH)), np.zeros((HEADS, end - begin, end))
    for at in range(begin, end):
        for head in range(HEADS):
            first = 0 if not window else max(0, at + 1 - window)
            group = head // (HEADS // GROUPS)
            scores = s.key[first : at + 1, group].astype(np.float64) @ s.query[at, head] * 0.4
            if slopes is not None:
                scores = scores - slopes[head] * (at - np.arange(first, at + 1))
            exponents = np.exp(scores)
            total = exponents.sum() + (0 if sinks is None else np.exp(np.float64(sinks[head])))
            weights[head, at - begin, first : at + 1] = exponents / total
            averages[at - begin, head] = exponents / total @ s.value[first : at + 1, group]
    return averages.reshape(end - begin, -1), weights


def close(actual: np.ndarray, expected: np.ndarray, tolerance: float = 2e-6) -> None:
    assert actual.shape == expected.shape
    assert np.abs(actual - expected).max(initial=0) < tolerance


OPTIONS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "plain": ({}, {}),
    "window": ({"sliding_window": np.int32(5)}, {"window": 5}),
    "max-context": ({"max_context_len": np.int32(3), "sliding_window": np.int32(5)}, {"window": 3}),
    "alibi": ({"alibi_slopes": f32(0.5, 0.25, 0.125, 1)}, {"slopes": [0.5, 0.25, 0.125, 1]}),
    "sinks": ({"sinks": f32(0.5, -1, 3, 100).reshape(1, 4, 1, 1)}, {"sinks": [0.5, -1, 3, 100]}),
}


@pytest.mark.parametrize("name", OPTIONS)
def test_sequences_of_a_server(name: str) -> None:
    """A prompt in two pieces and a decoding sequence in one call each, in blocks that are out of order."""
    given, expected = OPTIONS[name]
    one, two = Sequence.random(1, 11, [9, 2, 5]), Sequence.random(2, 9, [0, 11, 7])
    server = Server(given)
    for work in ([(one, 6)], [(two, 7), (one, 4)], [(one, 1), (two, 1)], [(two, 1)]):
        before = [(s, s.done, s.done + n) for s, n in work]
        averages, _, diversity = server.call(work)
        close(averages, np.concatenate([dense(s, begin, end, **expected)[0] for s, begin, end in before]))
        assert not diversity.size
    key = server.caches[0]
    assert (key[9] == one.key[:4].swapaxes(0, 1)).all()
    assert (key[7, :, 0] == two.key[8]).all()
    assert (key[[1, 3, 4, 6, 8, 10]] == 7).all(), "blocks of no sequence stay"
    assert (key[7, :, 1:] == 7).all(), "slots of no token stay"


@pytest.mark.parametrize("name", OPTIONS)
def test_one_token_of_each_sequence(name: str) -> None:
    """The kernel of a compiled model, which computes all sequences at once; one of them has lost a block."""
    given, expected = OPTIONS[name]
    sequences = [Sequence.random(seed, 12, blocks) for seed, blocks in enumerate(([9, 2, 5], [0, 11], [4, 1, 7]))]
    server = Server(given)
    for sequence, count in zip(sequences, (9, 5, 11)):
        server.call([(sequence, count)])
    request = Request(tuple(map(Value.of, server.inputs([(s, 1) for s in sequences]))), outputs=1)
    call = PagedAttentionExtension().prepare(request).call
    averages, _, _, *caches = call(*server.inputs([(s, 1) for s in sequences]))
    close(averages, np.concatenate([dense(s, s.done, s.done + 1, **expected)[0] for s in sequences]))
    exact = PagedAttentionExtension().run(*server.inputs([(s, 1) for s in sequences]))
    assert all((mine == theirs).all() for mine, theirs in zip(caches, exact[3:]))
    sequences[2].blocks[1] = -1
    mine, exact = (f(*server.inputs([(s, 1) for s in sequences])) for f in (call, PagedAttentionExtension().run))
    close(mine[0], exact[0])
    assert (np.abs(exact[0] - averages).max() > 1e-3) == (name != "max-context"), (
        "the block is too far back for 3 tokens"
    )


def test_a_prefix_is_shared_and_blocks_are_used_again() -> None:
    """Two sequences share a block with the same four tokens; later, a third one takes over a block of the first."""
    one, two, three = Sequence.random(1, 8, [3, 4]), Sequence.random(2, 8, [3, 6]), Sequence.random(3, 4, [4])
    for mine, theirs in ((one.query, two.query), (one.key, two.key), (one.value, two.value)):
        theirs[:4] = mine[:4]
    server = Server()
    server.call([(one, 4)])
    two.done = 4
    averages, *_ = server.call([(one, 4), (two, 4)])
    close(averages, np.concatenate([dense(one, 4, 8)[0], dense(two, 4, 8)[0]]))
    close(server.call([(three, 4)])[0], dense(three, 0, 4)[0])


@pytest.mark.parametrize(
    ("window", "counted"), [(0, (0, 0)), ([], (1, 1)), (3, (2, 3)), (-1, (2, 4)), ([1, 2], (1, 2))]
)
def test_scores(window: int | list[int], counted: tuple[int, int]) -> None:
    """The sums over the heads and the last queries of each sequence, one sequence after the other."""
    one, two = Sequence.random(1, 8, [3, 4]), Sequence.random(2, 4, [6])
    server = Server({"score_aggregation_window": np.array(window, np.int32)})
    server.call([(one, 6)])
    _, scores, _ = server.call([(one, 2), (two, 4)])
    weights = dense(one, 6, 8)[1], dense(two, 0, 4)[1]
    close(scores, np.concatenate([w[:, w.shape[1] - n :].sum((0, 1)) for w, n in zip(weights, counted)]))


@pytest.mark.parametrize("per_token", [False, True])
def test_rotated_keys(per_token: bool) -> None:
    """The keys of block 4 turn by the angles of a row of the table, for the block or for each slot. They stay so."""
    one = Sequence.random(1, 8, [3, 4])
    angles = np.linspace(0, 2, 6 * 3).reshape(6, 3)
    table = np.concatenate([np.cos(angles), np.sin(angles)], 1).astype(np.float32)
    rows = [5, 1, 2, 4] if per_token else [2]
    server = Server()
    server.call([(one, 7)])
    server.options = {
        "rotated_block_indices": i32(4), "rotation_deltas": i32(*rows).reshape(1, -1), "rotation_trig_lut": table
    }  # fmt: skip
    for slot in range(3):
        angle = angles[rows[slot % len(rows)]]
        for group in range(GROUPS):
            low, high = one.key[4 + slot, group, :3].copy(), one.key[4 + slot, group, 3:].copy()
            one.key[4 + slot, group] = [
                *(low * np.cos(angle) - high * np.sin(angle)),
                *(low * np.sin(angle) + high * np.cos(angle)),
            ]
    close(server.call([(one, 1)])[0], dense(one, 7, 8)[0])
    close(server.caches[0][4, :, :3], one.key[4:7].swapaxes(0, 1))


def test_evicted_blocks() -> None:
    """A query attends to no key of a block -1."""
    one = Sequence.random(1, 9, [3, 4, 5])
    server = Server()
    server.call([(one, 8)])
    one.blocks[1] = -1
    averages, *_ = server.call([(one, 1)])
    kept = [*range(4), 8]
    rest = Sequence([], one.query[[0, 0, 0, 0, 8]], one.key[kept], one.value[kept])
    close(averages, dense(rest, 4, 5)[0])


def test_sparse_prefill() -> None:
    """Strided scores along antidiagonals, causal softmax, sums of blocks, greedy choice, as in arXiv 2503.16428.

    The page pairs query and key of the same offset, unlike OpenVINO's reference class and its CPU plugin.
    """
    size, stride, tokens, threshold = 4, 2, 16, 0.7
    one = Sequence.random(5, tokens, [0, 1, 2, 3])
    one.query *= 3
    options = {
        "xattention_threshold": f32(threshold), "xattention_block_size": np.int32(size),
        "xattention_stride": np.int32(stride),
    }  # fmt: skip
    averages, *_ = Server(options).call([(one, tokens)])
    expected, dropped = np.zeros((tokens, HEADS, WIDTH)), 0
    for head in range(HEADS):
        key, value = one.key[:, head // 2].astype(np.float64), one.value[:, head // 2]
        strided = np.full((8, 8), -np.inf)
        for q in range(8):
            for k in range(q + 1):
                strided[q, k] = sum(
                    one.query[q * stride + stride - 1 - off, head] @ key[k * stride + off] * (0.4 / stride)
                    for off in range(stride)
                )
        soft = np.exp(strided)
        soft /= soft.sum(1, keepdims=True)
        for block in range(4):
            sums = [soft[block * 2 : block * 2 + 2, k * 2 : k * 2 + 2].sum() for k in range(block + 1)]
            kept = {0, block}
            for other in sorted(set(range(block + 1)) - kept, key=lambda k: -sums[k]):
                if sum(sums[k] for k in kept) < threshold * sum(sums):
                    kept.add(other)
            dropped += block + 1 - len(kept)
            for at in range(block * size, block * size + size):
                seen = [k for k in range(at + 1) if k // size in kept]
                weights = np.exp(key[seen] @ one.query[at, head] * 0.4)
                expected[at, head] = weights / weights.sum() @ value[seen]
    assert dropped
    close(averages, expected.reshape(tokens, -1), 1e-5)


def test_diversity() -> None:
    """Minus the sums, over the keys of a block, of the cosine similarities that reach the mean of their row."""
    one, two = Sequence.random(1, 13, [3, 4, 5, 6]), Sequence.random(2, 6, [7, 8])
    server = Server({"adaptive_rkv_start_size": np.int32(4), "adaptive_rkv_evictable_sizes": i32(8, 8)})
    diversity = server.call([(one, 13), (two, 6)])[2]
    similar = np.zeros((GROUPS, 8, 8))
    for group in range(GROUPS):
        for row in range(8):
            a = one.key[4 + row, group].astype(np.float64)
            for column in set(range(8)) - {row}:
                z = one.key[4 + column, group]
                similar[group, row, column] = a @ z / np.sqrt(a @ a) / np.sqrt(z @ z)
            similar[group, row, similar[group, row] < similar[group, row].sum() / 8] = 0
    mean = similar.sum(0) / GROUPS
    expected = [-mean[block * 4 : block * 4 + 4, column].sum() for block in range(2) for column in range(8)]
    close(diversity, np.array(expected))  # the second sequence has 6 tokens, fewer than 4 + 8


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float16, 4e-3), (ml_dtypes.bfloat16, 3e-2)])
def test_caches_of_other_floats(dtype: type, tolerance: float) -> None:
    """A cache rounds keys and values; the attention is that of the rounded ones."""
    one = Sequence.random(1, 10, [3, 4, 5])
    server = Server(caches=[np.zeros((BLOCKS, GROUPS, SLOTS, n), dtype) for n in (SIZE, WIDTH)])
    averages = np.concatenate([server.call([(one, 7)])[0], server.call([(one, 3)])[0]])
    assert np.abs(averages - dense(one, 0, 10)[0]).max() > 1e-5
    close(averages, dense(one, 0, 10)[0], tolerance)
    one.key, one.value = (x.astype(dtype).astype(np.float32) for x in (one.key, one.value))
    close(averages, dense(one, 0, 10)[0])


def rounded(rows: np.ndarray, axis: int) -> np.ndarray:
    """Return rows after a conversion to codes of 8 bits and back, with the range along ``axis``."""
    least = rows.min(axis, keepdims=True)
    scale = (rows.max(axis, keepdims=True) - least) / 255
    return np.rint((rows - least) / scale) * scale + least


@pytest.mark.parametrize("by_channel", [False, True])
def test_caches_of_codes(by_channel: bool) -> None:
    """Keys by token or by channel, values by token. A channel of a block is quantized again with each new token."""
    one = Sequence.random(1, 7, [3, 4])
    keys = (SLOTS + 8, SIZE) if by_channel else (SLOTS, SIZE + 8)
    server = Server(caches=[np.zeros((BLOCKS, GROUPS, *shape), np.uint8) for shape in (keys, (SLOTS, WIDTH + 8))])
    averages = np.concatenate([server.call([(one, 3)])[0], server.call([(one, 4)])[0]])
    original = one.key.copy()
    one.value = rounded(one.value, -1)
    if by_channel:
        one.key[:3] = rounded(one.key[:3], 0)
        close(averages[:3], dense(one, 0, 3)[0], 1e-5)
        one.key[:4], one.key[4:] = rounded(one.key[:4], 0), rounded(one.key[4:], 0)
    else:
        one.key = rounded(one.key, -1)
        close(averages[:3], dense(one, 0, 3)[0], 1e-5)
    close(averages[3:], dense(one, 3, 7)[0], 1e-5)
    assert 0 < np.abs(one.key - original).max() < 0.02


def test_f16() -> None:
    """Queries in f16 give averages in f16, computed in f32; the scores are f32."""
    one = Sequence.random(1, 6, [3, 4])
    inputs = Server({"score_aggregation_window": np.int32(1)}).inputs([(one, 6)])
    outputs = PagedAttentionExtension().run(*(x.astype(np.float16) for x in inputs[:3]), *inputs[3:])
    assert [output.dtype.name for output in outputs[:3]] == ["float16", "float32", "float32"]
    close(outputs[0].astype(np.float32), dense(one, 0, 6)[0], 3e-3)


def _built(changed: dict[str, Any]) -> b.Node:
    """Return a layer for two sequences, of 5 and 1 new tokens behind 0 and 4, with these inputs instead.

    A tuple is the shape of a Parameter in f32; arrays are constants.
    """
    shapes = {
        "query": (6, 24), "key": (6, 12), "value": (6, 10), "key_cache": (12, 2, 4, 6), "value_cache": (12, 2, 4, 5)
    }  # fmt: skip
    tables = {
        "past_lens": i32(0, 4), "subsequence_begins": i32(0, 5, 6), "block_indices": i32(3, 4, 0, 1),
        "block_indices_begins": i32(0, 2, 4),
    }  # fmt: skip
    layer: dict[str, Any] = {**shapes, **tables, **OFF, **changed}
    return b.PagedAttentionExtension(*[
        b.parameter(list(layer[name]), "f32") if isinstance(layer[name], tuple) else b.constant(layer[name])
        for name in NAMES
        if name in layer
    ])  # fmt: skip


TURNED = {"rotated_block_indices": i32(3), "rotation_deltas": i32(1), "rotation_trig_lut": np.ones((2, 6), np.float32)}
SPARSE = {"xattention_threshold": f32(0.5), "xattention_block_size": np.int32(4), "xattention_stride": np.int32(2)}


@pytest.mark.parametrize(
    "changed", [{}, {"block_indices": i32(3, 4, -1, 1)}, TURNED, SPARSE, {"score_aggregation_window": i32(1, 2)}]
)
def test_shapes(changed: dict[str, Any]) -> None:
    """The width of the averages is that of query times that of value by that of key: 24 * 10 / 12."""
    assert [str(value.shape) for value in _built(changed).values] == ["[6,20]", "[10]", "[0]"]


def test_revisions() -> None:
    """A layer of 25 inputs is of the page, of 21 of a wheel of 2025; 26 inputs fit no revision."""
    layers = [PagedAttentionExtension.fitted(count, ()) for count in (21, 25, 26, 28)]
    assert [[revision.release for revision in fitting] for fitting in layers] == [["2025.4"], [""], [], ["2026.4"]]
    inputs = Server().inputs([(Sequence.random(1, 6, [3, 4]), 6)])
    old, new = (PagedAttentionExtension(fitting).run(*inputs[:count]) for fitting, count in zip(layers, (21, 25)))
    assert (old[0] == new[0]).all()
    with pytest.raises(ModelError) as caught:
        b.PagedAttentionExtension(*map(b.constant, inputs[:26]))
    assert caught.value.diagnostics[0].code == "IR205"
    assert "fit none of the revisions" in caught.value.diagnostics[0].notes[0]


def test_a_file_serves(tmp_path: Path) -> None:
    """A saved layer, run as a server runs it: the caches are passed once, and each call takes those of the call before.

    The second call has no hook, so that the kernel writes into the caches; the third one is observed.
    """
    values = Server().inputs([(Sequence.random(1, 2, [3]), 2)])
    feeds = dict(zip(NAMES, values[:9]))
    parameters = [
        b.parameter([None] * value.ndim, "i32" if value.dtype == np.int32 else "f32", name=name)
        for name, value in feeds.items()
    ]
    layer = b.PagedAttentionExtension(*parameters, *map(b.constant, values[9:]), name="attention")
    irrun.save_model(b.model({"averages": layer[0]}), tmp_path / "paged.xml")
    assert not irrun.check(tmp_path / "paged.xml").diagnostics
    model = irrun.compile(tmp_path / "paged.xml")
    one = Sequence.random(1, 9, [3, 8, 5])
    for number, count in enumerate((4, 2, 2, 1)):
        passed = dict(zip(NAMES, Server().inputs([(one, count)])[:9]))
        if number:
            del passed["key_cache"], passed["value_cache"]
        averages = model(passed, taps="attention" if number == 2 else ())["averages"]
        close(averages, dense(one, one.done, one.done + count)[0])
        one.done += count
    assert (model.state["key_cache"][8] == one.key[4:8].swapaxes(0, 1)).all()


@pytest.mark.parametrize("count", [5, 1])
def test_keys_that_another_layer_has_written(count: int) -> None:
    """Without write_kv_cache, other new keys and values change nothing: those in the caches count."""
    server, sequence = Server(), Sequence.random(4, 8, [3, 5])
    server.call([(sequence, 8 - count)])
    inputs = server.inputs([(sequence, count)])
    expected, _, _, *written = PagedAttentionExtension().run(*inputs)
    others = [inputs[0], inputs[1] + 1, inputs[2] - 1, *written, *inputs[5:]]
    op = PagedAttentionExtension(write_kv_cache=False)
    found, _, _, *kept = op.run(*others)
    np.testing.assert_allclose(found, expected, atol=1e-6)
    assert all(np.array_equal(a, b) for a, b in zip(kept, written))
    given = [cache.copy() for cache in written]
    request = Request(tuple(map(Value.of, others)), outputs=1)
    row, *_ = op.prepare(request).call(*others[:3], *given, *others[5:])
    np.testing.assert_allclose(row, expected, atol=1e-6)
    assert all(np.array_equal(a, b) for a, b in zip(given, written))


def test_codes_of_four_bits() -> None:
    """A row of 0 to 15 has the scale 1.0, the zero point -0.0, and its numbers as codes, the first one in a high half."""
    cache = np.zeros((1, 1, 2, 32), ml_dtypes.uint4)
    layout = Layout.of(cache.shape, cache.dtype, 16)
    assert layout is not None
    assert layout == Layout("by token", 2, 16, 4)
    rows = np.arange(16, dtype=np.float32).reshape(1, 1, 16)
    write(cache, layout, np.array([0]), 1, rows)
    scale, zero = [0, 0, 0, 0, 0, 8, 15, 3], [0, 0, 0, 0, 0, 0, 0, 8]  # 0x3f800000 and 0x80000000, low halves first
    codes = [1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14]
    assert cache[0, 0, 1].astype(int).tolist() == [*scale, *zero, *codes]
    assert (read(cache, layout, np.array([0]), 2, np.dtype(np.float32))[:, 1] == rows[0]).all()
    assert Layout.of((1, 1, 20, 16), cache.dtype, 16) == Layout("by channel", 4, 16, 4)
    assert Layout.of((1, 1, 2, 48), cache.dtype, 16) == Layout("by token", 2, 16, 4, 2)
    assert Layout.of((1, 1, 2, 24), cache.dtype, 16) is None
