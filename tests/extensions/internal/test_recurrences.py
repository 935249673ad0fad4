"""GatedDeltaNet, SelectiveSSM, SSM, Mamba2 and their paged forms, and PagedCausalConv1D."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import irrun
from internal_operations import i32, ran
from irrun import build as b
from recurrences import attention_of_ssm, delta_rule, windows

Arrays = list[np.ndarray]


def _draw(seed: int) -> Callable[..., np.ndarray]:
    rng = np.random.default_rng(seed)
    return lambda *shape: rng.normal(size=shape).astype(np.float32)


# ---------------------------------------------------------------------------------------------
# one batch


@pytest.mark.parametrize("heads", [2, 4])
def test_gated_delta_net(heads: int) -> None:
    draw = _draw(heads)
    query, key, value, state = draw(2, 5, 2, 3), draw(2, 5, 2, 3), draw(2, 5, heads, 4), draw(2, heads, 3, 4)
    gate, beta = -abs(draw(2, 5, heads)), abs(draw(2, 5, heads))
    output, last = ran("GatedDeltaNet", [query, key, value, state, gate, beta])
    for n in range(2):
        expected, states = delta_rule(query[n], key[n], value[n], state[n], gate[n], beta[n])
        np.testing.assert_allclose(output[n], expected, rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(last[n], states[-1], rtol=1e-4, atol=1e-4)


def test_gated_delta_net_normalizes() -> None:
    """With use_qk_l2norm, a query and a key count by their direction: their length is sqrt(|x|² + eps)."""
    draw = _draw(3)
    query, key, value = draw(1, 3, 1, 4), draw(1, 3, 1, 4), draw(1, 3, 1, 2)
    others = [draw(1, 1, 4, 2), -abs(draw(1, 3, 1)), abs(draw(1, 3, 1))]
    eps = {"q_l2_norm_eps": 0.5, "k_l2_norm_eps": 0.25}
    found = ran("GatedDeltaNet", [query, key, value, *others], use_qk_l2norm=True, **eps)
    shorter = [
        x / np.sqrt((x.astype(np.float64) ** 2).sum(-1, keepdims=True) + e) for x, e in ((query, 0.5), (key, 0.25))
    ]
    for array, expected in zip(found, ran("GatedDeltaNet", [x.astype(np.float32) for x in (*shorter, value)] + others)):
        np.testing.assert_allclose(array, expected, rtol=1e-5, atol=1e-6)


def test_gated_delta_net_of_the_first_revision() -> None:
    """The page of commit 0ebc99d has the gates before the state, and the state is optional."""
    draw = _draw(4)
    query, key, value, state = draw(1, 4, 2, 3), draw(1, 4, 2, 3), draw(1, 4, 2, 5), draw(1, 2, 3, 5)
    gate, beta = -abs(draw(1, 4, 2)), abs(draw(1, 4, 2))
    for given in ([state], []):
        output, last = ran("GatedDeltaNet", [query, key, value, gate, beta, *given])
        expected, states = delta_rule(query[0], key[0], value[0], state[0] * len(given), gate[0], beta[0])
        np.testing.assert_allclose(output[0], expected, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(last[0], states[-1], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("type", ["SelectiveSSM", "SSM"])
@pytest.mark.parametrize("groups", [1, 2, 4])
def test_selective_ssm(type: str, groups: int) -> None:
    draw = _draw(groups)
    decay, dt, x, state = -abs(draw(4)), abs(draw(2, 5, 4)), draw(2, 5, 4, 3), draw(2, 4, 3, 2)
    b, c = draw(2, 5, groups, 2), draw(2, 5, groups, 2)
    output, last = ran(type, [decay, dt, b, x, c, state])
    for n in range(2):
        expected, states = attention_of_ssm(decay, dt[n], b[n], x[n], c[n], state[n])
        np.testing.assert_allclose(output[n], expected, rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(last[n], states[-1], rtol=1e-4, atol=1e-4)


def test_mamba2() -> None:
    """Mamba2 takes what SelectiveSSM computes first: exp(A dt), and the outer product of dt B and x."""
    draw = _draw(8)
    decay, dt, x, state = -abs(draw(2)), abs(draw(1, 4, 2)), draw(1, 4, 2, 3), draw(1, 2, 3, 5)
    b, c = draw(1, 4, 2, 5), draw(1, 4, 2, 5)
    factors = np.exp(decay * dt).transpose(0, 2, 1)[..., None, None]
    entries = np.einsum("nth,nths,nthd->nhtds", dt, b, x)
    output, last = ran("Mamba2", [factors, entries, c.transpose(0, 2, 1, 3), state])
    expected, states = attention_of_ssm(decay, dt[0], b[0], x[0], c[0], state[0])
    np.testing.assert_allclose(output[0].swapaxes(0, 1), expected, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(last[0], states[-1], rtol=1e-4, atol=1e-4)


# ---------------------------------------------------------------------------------------------
# paged states


class Paged:
    """A layer with a paged state: its inputs for some tokens, and its definition for one sequence."""

    def __init__(self, type: str, seed: int = 0) -> None:
        draw = _draw(seed)
        self.type, tokens = type, 16
        if type == "PagedGatedDeltaNet":
            self.rows = [
                draw(tokens, 2, 3), draw(tokens, 2, 3), draw(tokens, 4, 5), -abs(draw(tokens, 4)), abs(draw(tokens, 4)),
            ]  # fmt: skip
            self.fixed, self.table = [], draw(12, 4, 5, 3)
        elif type == "PagedSelectiveSSM":
            self.rows = [abs(draw(tokens, 4)), draw(tokens, 2, 3), draw(tokens, 4, 5), draw(tokens, 2, 3)]
            self.fixed, self.table = [-abs(draw(4))], draw(12, 4, 5, 3)
        else:
            self.rows = [draw(tokens, 4)]
            self.fixed, self.table = [draw(4, 2, 3), draw(4)], draw(12, 4, 3)

    def inputs(self, rows: np.ndarray, table: np.ndarray, tables: Arrays) -> Arrays:
        own = [array[rows] for array in self.rows]
        if self.type == "PagedGatedDeltaNet":
            return [*own[:3], table, *own[3:], *tables]
        if self.type == "PagedSelectiveSSM":
            return [*self.fixed, *own, table, *tables]
        return [*own, table, *self.fixed, *tables]

    def defined(self, rows: slice, state: np.ndarray) -> tuple[np.ndarray, list[np.ndarray]]:
        own = [array[rows] for array in self.rows]
        if self.type == "PagedGatedDeltaNet":
            query, key, value, gate, beta = own
            output, states = delta_rule(query, key, value, state.swapaxes(-1, -2), gate, beta)
            return output, [s.swapaxes(-1, -2) for s in states]
        if self.type == "PagedSelectiveSSM":
            dt, b, x, c = own
            return attention_of_ssm(self.fixed[0], dt, b, x, c, state)
        return windows(own[0], self.fixed[0], self.fixed[1], state)


PAGED = ["PagedGatedDeltaNet", "PagedSelectiveSSM", "PagedCausalConv1D"]

WRITTEN = [
    (5, 0, 2, (0, 1, 3, 2), {1: 1, 3: 3, 2: 4}),
    (5, 0, 2, (1, 1, 3, 2), {1: 1, 3: 3, 2: 4}),
    (5, 2, 2, (0, 1, 3, 2), {1: 1, 3: 3, 2: 4}),
    (5, 3, 2, (0, 1, 3, 2), {1: 0, 3: 2, 2: 4}),
    (5, 3, 2, (0, 0, 3, 2), {0: 0, 3: 2, 2: 4}),
    (5, 0, 8, (4, 1), {1: 4}),
    (5, 0, 1, (0, 1, 2, 3, 4, 5), {1: 0, 2: 1, 3: 2, 4: 3, 5: 4}),
    (1, 4, 2, (7, 8), {8: 0}),
    (1, 5, 2, (8, 8), {8: 0}),
    (5, 0, 4, (4, 1, 2, 3, 0), {1: 3, 2: 4}),
]
"""Tokens, tokens before them, interval, blocks; and the token after which the state in each written block is. OpenVINO
2026.4.1 writes these blocks for all three operations."""


@pytest.mark.parametrize("type", PAGED)
@pytest.mark.parametrize(("count", "past", "interval", "blocks", "written"), WRITTEN)
def test_blocks(
    type: str, count: int, past: int, interval: int, blocks: tuple[int, ...], written: dict[int, int]
) -> None:
    layer = Paged(type)
    tables = [i32(0, count), i32(*blocks), i32(0, len(blocks)), i32(past), i32(interval)]
    output, table = ran(type, layer.inputs(np.arange(count), layer.table, tables))
    expected, states = layer.defined(slice(count), layer.table[blocks[0]])
    np.testing.assert_allclose(output, expected, rtol=1e-4, atol=1e-4)
    for block, own in enumerate(layer.table):
        state = states[written[block]] if block in written else own
        np.testing.assert_allclose(table[block], state, rtol=1e-4, atol=1e-4, err_msg=f"block {block}")


@pytest.mark.parametrize(("type", "written"), [(PAGED[0], True), (PAGED[1], False), (PAGED[2], True)])
def test_without_an_interval(type: str, written: bool) -> None:
    """PagedSelectiveSSM keeps no state, the others the last one in block 1. OpenVINO 2026.4.1 does the same."""
    layer = Paged(type)
    for interval in (0, -1):
        tables = [i32(0, 5), i32(0, 1, 2), i32(0, 3), i32(3), i32(interval)]
        table = ran(type, layer.inputs(np.arange(5), layer.table, tables))[1]
        expected = layer.table.copy()
        if written:
            expected[1] = layer.defined(slice(5), layer.table[0])[1][-1]
        np.testing.assert_allclose(table, expected, rtol=1e-4, atol=1e-4)


def schedules() -> Iterator[tuple[int, list[list[tuple[int, int]]]]]:
    """Yield intervals and lists of calls; a call is a list of (sequence, tokens) for two sequences of 7 and 9 tokens."""
    yield 3, [[(0, 7), (1, 9)]]
    yield 2, [[(0, 7)], [(1, 9)]]
    yield 4, [[(0, 3), (1, 4)], [(1, 5), (0, 1)], [(0, 3)]]
    yield 1, [[(0, 6)], [(0, 1), (1, 8)], [(1, 1)]]
    yield 5, [[(0, 1), (1, 1)]] * 7 + [[(0, 0), (1, 2)]]


@pytest.mark.parametrize("type", PAGED)
@pytest.mark.parametrize(("interval", "calls"), [*schedules()])
def test_schedules(type: str, interval: int, calls: list[list[tuple[int, int]]]) -> None:
    """Sequences in pieces, interleaved with others, give what they give at once: outputs and the states of intervals."""
    layer = Paged(type, 1)
    rng = np.random.default_rng(interval)
    free = iter(rng.permutation(24).tolist())
    starts = {0: 0, 1: 7}
    lengths = {0: 7, 1: 9}
    table = np.zeros((24, *layer.table.shape[1:]), np.float32)
    kept: dict[int, list[int]] = {0: [next(free)], 1: [next(free)]}  # the block of the last state is the last of them
    done = {0: 0, 1: 0}
    outputs: dict[int, list[np.ndarray]] = {0: [], 1: []}
    for call in calls:
        rows, begins, blocks, block_begins = [], [0], [], [0]
        for sequence, count in call:
            first = starts[sequence] + done[sequence]
            rows += range(first, first + count)
            begins.append(len(rows))
            offset = done[sequence] % interval
            needed = -(-(offset + count) // interval) if count else 0
            own = [kept[sequence][-1]]
            if offset and needed:
                own.append(kept[sequence][-1])
            own += [next(free) for _ in range(1 + needed - len(own))]
            blocks += own
            block_begins.append(len(blocks))
            kept[sequence] += own[1:] if not offset else own[2:]
        past = i32(*(done[sequence] for sequence, _ in call))
        tables = [i32(*begins), i32(*blocks), i32(*block_begins), past, i32(*[interval] * len(call))]
        output, table = ran(type, layer.inputs(np.array(rows, int), table, tables))
        for number, (sequence, count) in enumerate(call):
            outputs[sequence].append(output[begins[number] : begins[number + 1]])
            done[sequence] += count
    assert done == lengths
    for sequence, length in lengths.items():
        rows = slice(starts[sequence], starts[sequence] + length)
        expected, states = layer.defined(rows, np.zeros(table.shape[1:]))
        np.testing.assert_allclose(np.concatenate(outputs[sequence]), expected, rtol=1e-4, atol=1e-4)
        ends = [*range(interval - 1, length, interval)]
        ends += [length - 1] if length % interval else []
        for block, end in zip(kept[sequence][1:], ends, strict=True):
            np.testing.assert_allclose(table[block], states[end], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("type", PAGED)
def test_sequences_share_a_block_that_they_read(type: str) -> None:
    """Two sequences with a common prefix read one block, and write blocks of their own."""
    layer = Paged(type, 2)
    tables = [i32(0, 2, 4), i32(5, 6, 5, 7), i32(0, 2, 4), i32(4, 4), i32(4, 4)]
    output, table = ran(type, layer.inputs(np.arange(4), layer.table, tables))
    for number, block in ((0, 6), (1, 7)):
        expected, states = layer.defined(slice(2 * number, 2 * number + 2), layer.table[5])
        np.testing.assert_allclose(output[2 * number : 2 * number + 2], expected, rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(table[block], states[-1], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("type", PAGED)
@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float64])
def test_element_types(type: str, dtype: type) -> None:
    """Rows of one type and a table of another: the state is rounded only where it is stored."""
    layer = Paged(type, 3)
    tables = [i32(0, 3), i32(0, 1), i32(0, 2), i32(0), i32(8)]
    given = layer.inputs(np.arange(3), layer.table, tables)
    narrow = [
        array.astype(dtype) if array.dtype == np.float32 and array is not layer.table else array for array in given
    ]
    wide = [array.astype(np.float32) if array.dtype == dtype else array for array in narrow]
    (output, table), (expected, _) = ran(type, narrow), ran(type, wide)
    assert output.dtype == dtype
    assert table.dtype == np.float32
    np.testing.assert_allclose(output.astype(np.float64), expected, rtol=1e-2, atol=1e-2)
    table = ran(type, [array.astype(dtype) if array is layer.table else array for array in given])[1]
    assert table.dtype == dtype


def test_convolution_without_bias_and_with_one_group() -> None:
    draw = _draw(5)
    tokens, table, weight = draw(4, 3), draw(2, 3, 2), draw(3, 3, 2)
    tables = [i32(0, 4), i32(0, 1), i32(0, 2), i32(0), i32(9)]
    output, changed = ran("PagedCausalConv1D", [tokens, table, weight, np.zeros(0, np.float32), *tables])
    expected, states = windows(tokens, weight, np.zeros(0), table[0])
    np.testing.assert_allclose(output, expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(changed[1], states[-1])


@pytest.mark.parametrize("type", PAGED)
def test_a_file_keeps_the_table(type: str, tmp_path: Path) -> None:
    """A model takes the table once, and a second call goes on with the states of the first."""
    layer = Paged(type, 6)
    first = layer.inputs(np.arange(3), layer.table, [i32(0, 3), i32(4, 7), i32(0, 2), i32(0), i32(8)])
    second = layer.inputs(np.arange(3, 5), layer.table, [i32(0, 2), i32(7, 7), i32(0, 2), i32(3), i32(8)])
    parameters = [b.parameter([None] * x.ndim, str(x.dtype)[0] + "32", name=f"p{n}") for n, x in enumerate(first)]
    irrun.save_model(b.model(getattr(b, type)(*parameters)), tmp_path / "paged.xml")
    assert not irrun.check(tmp_path / "paged.xml").diagnostics
    model = irrun.compile(tmp_path / "paged.xml")
    table = next(n for n, x in enumerate(first) if x is layer.table)
    before = layer.table.copy()
    found = [model(first)[0], model({f"p{n}": x for n, x in enumerate(second) if n != table})[0]]
    expected, states = layer.defined(slice(5), layer.table[4])
    np.testing.assert_allclose(np.concatenate(found), expected, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(model.state[f"p{table}"][7], states[-1], rtol=1e-4, atol=1e-4)
    assert (layer.table == before).all()
    with pytest.raises(irrun.ExecutionError, match=r"names block 99.*C5"):
        model({f"p{n}": i32(99, 7) if x.tolist() == [7, 7] else x for n, x in enumerate(second)})
