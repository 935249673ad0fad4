"""Attention of language models: rotary embeddings, heads in groups, and tokens that are one step."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

import irrun
import irrun.build as b
from irrun.diagnostics import ExecutionError
from irrun.opdef import Variables
from irrun.planning import plans
from irrun.running.executor import Executable

HEADS, GROUPS, WIDTH = 6, 2, 8


def turned(x: np.ndarray) -> np.ndarray:
    return np.concatenate([-x[..., WIDTH // 2 :], x[..., : WIDTH // 2]], -1)


def block(*, target: int = 0, beams: bool = False, flat: bool = False) -> Executable:
    """Return a model as exporters write it: rotated queries attend to the keys and values of all runs.

    Its inputs are queries [1,6,L,8], keys and values [1,2,L,8], cos and sin [1,1,L,8], and a boolean mask [1,1,L,S].
    ``target`` is added to the length to which keys and values are broadcast. With ``beams``, a last input i32 [1]
    chooses the rows of the past. With ``flat``, rows hold the heads side by side: [1,L,48] and [1,L,16].
    """
    heads = [b.parameter([1, n, None, WIDTH], "f32", name=name) for n, name in zip((HEADS, GROUPS, GROUPS), "qkv")]
    cos, sin = (b.parameter([1, 1, None, WIDTH], "f32", name=name) for name in ("cos", "sin"))
    mask = b.parameter([1, None, None, None], "boolean", name="mask")
    rows = [b.parameter([1], "i32", name="beams")] if beams else []
    inputs = heads
    if flat:
        counts = HEADS, GROUPS, GROUPS
        inputs = [b.parameter([1, None, n * WIDTH], "f32", name=name) for n, name in zip(counts, "qkv")]
        apart = [b.Reshape(x, [0, 0, n, WIDTH], special_zero=True) for x, n in zip(inputs, counts)]
        heads = [b.Transpose(x, [0, 2, 1, 3]) for x in apart]
    result, sinks = layer(heads, (cos, sin), mask, rows, ("key", "value"), target)
    if flat:
        result = b.Reshape(b.Transpose(result, [0, 2, 1, 3]), [0, 0, HEADS * WIDTH], special_zero=True)
    return irrun.compile(b.model(result, inputs=[*inputs, cos, sin, mask, *rows], sinks=sinks))


def layer(
    heads: Sequence[b.Node], angles: Sequence[b.Node], mask: b.Node, rows: Sequence[b.Node], names: Sequence[str],
    target: int = 0, batch: int = 1,
) -> tuple[b.Node, list[b.Node]]:  # fmt: skip
    """Return the attention of rotated queries to all keys and values, and what assigns these to variables: ``block``."""
    half = WIDTH // 2

    def rotated(x: b.Node, cut: int, joined: int) -> b.Node:
        """``cut`` and ``joined`` are the last axis, each counted from either end."""
        high = b.Multiply(b.Slice(x, [half], [2**63 - 1], [1], [cut]), np.float32(-1))
        other = b.Concat([high, b.Slice(x, [0], [half], [1], [cut])], axis=joined)
        return b.Add(b.Multiply(x, angles[0]), b.Multiply(other, angles[1]))

    query, key, value = rotated(heads[0], 3, -1), rotated(heads[1], -1, 3), heads[2]
    sinks: list[b.Node] = []
    repeated: list[b.Node] = []
    length = None
    for name, new in zip(names, (key, value)):
        past = b.ReadValue(
            np.zeros((batch, GROUPS, 0, WIDTH), np.float32), variable_id=name, variable_type="f32",
            variable_shape=[batch, GROUPS, None, WIDTH], opset=6,
        )  # fmt: skip
        whole = b.Concat([b.Gather(past, rows[0], 0) if rows else past, new], axis=2)
        sinks.append(b.Assign(whole, variable_id=name))
        if length is None:
            counts = [b.Gather(b.ShapeOf(x), [2], 0) for x in (past, new)]
            length = b.Add(b.Add(*counts), np.array([target], np.int64))
        ones = [np.array(n, np.int64) for n in ([batch, GROUPS], [HEADS // GROUPS], [WIDTH], [0, HEADS, -1, WIDTH])]
        wide = b.Broadcast(b.Unsqueeze(whole, 2), b.Concat([ones[0], ones[1], length, ones[2]], axis=0))
        repeated.append(b.Reshape(wide, ones[3], special_zero=True))
    return b.ScaledDotProductAttention(query, *repeated, mask, causal=False), sinks


def decoder(type: str, layers: int, batch: int) -> irrun.Model:
    """Return a model of ``layers`` attentions between products, which adds what each computes to its input [B,L,32]."""
    generator = np.random.default_rng(2)
    x = b.parameter([batch, None, 32], "f32", name="x")
    angles = [b.parameter([batch, 1, None, WIDTH], "f32", name=name) for name in ("cos", "sin")]
    mask, rows = b.parameter([None, None, None, None], type, name="mask"), [b.parameter([batch], "i32", name="beams")]
    seen = b.LogicalOr(mask, mask) if type == "boolean" else mask  # a small step behind the first products
    y, sinks = x, []
    for n in range(layers):
        heads: list[b.Node] = []
        for count in (HEADS, GROUPS, GROUPS):
            product = b.MatMul(b.Swish(y), generator.standard_normal((32, count * WIDTH), np.float32) / 5)
            apart = b.Reshape(product, [0, 0, count, WIDTH], special_zero=True)
            heads.append(b.Transpose(apart, [0, 2, 1, 3]))
        result, assigned = layer(heads, angles, seen, rows, (f"key {n}", f"value {n}"), batch=batch)
        sinks += assigned
        result = b.Reshape(b.Transpose(result, [0, 2, 1, 3]), [0, 0, HEADS * WIDTH], special_zero=True)
        y = b.Add(y, b.MatMul(result, generator.standard_normal((HEADS * WIDTH, 32), np.float32) / 7))
    return b.model(y, inputs=[x, *angles, mask, *rows], sinks=sinks)


def attended(
    query: np.ndarray, key: np.ndarray, value: np.ndarray, mask: np.ndarray
) -> np.ndarray:  # fmt: skip
    key, value = (array.repeat(HEADS // GROUPS, 1).astype(np.float64) for array in (key, value))
    scores = np.where(mask, query @ key.swapaxes(2, 3) / np.sqrt(WIDTH), -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True) @ value


def _moved(array: np.ndarray, way: str) -> np.ndarray:
    """Return the same numbers at other places in memory."""
    if way == "tokens first":
        return np.ascontiguousarray(array.swapaxes(1, 2)).swapaxes(1, 2)
    if way == "backwards":
        return np.ascontiguousarray(array[::-1, ::-1, ::-1])[::-1, ::-1, ::-1]
    if way == "numbers apart":
        return np.repeat(array, 2, -1)[..., ::2]
    if way == "unaligned":
        memory = np.zeros(array.nbytes + 1, np.uint8)
        moved = memory[1:].view(np.float32).reshape(array.shape)
        moved[:] = array
        return moved
    return array


@pytest.mark.usefixtures("workers")
@pytest.mark.parametrize("way", ["as it is", "tokens first", "backwards", "numbers apart", "unaligned"])
@pytest.mark.parametrize("width", [2, 64, 66])
@pytest.mark.parametrize("angles", [(1, 1, 5), (2, 1, 5), (2, 3, 5), (1, 1, 1)])
def test_pairs_are_rotated_wherever_they_are(way: str, width: int, angles: tuple[int, ...]) -> None:
    pytest.importorskip("numba", reason="the extra `fast` is not installed")
    from irrun.fast.tokens.rotary import rotate

    generator = np.random.default_rng(width)
    x = generator.standard_normal((2, 3, 5, width), np.float32)
    cos, sin = (generator.standard_normal((*angles, width), np.float32) for _ in "cs")
    half = width // 2
    turned = np.concatenate([-x[..., half:], x[..., :half]], -1)
    given = [_moved(array, way) for array in (x, cos, sin)]
    want = x.astype(np.float64) * cos + turned * sin.astype(np.float64)
    for out in (None, np.empty_like(x)):
        np.testing.assert_allclose(rotate(*given, out=out), want, rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize("fast", [False, True])
def test_tokens_attend_to_their_past(fast: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if fast:
        pytest.importorskip("numba", reason="the extra `fast` is not installed")
    monkeypatch.setattr(plans, "_COMPILED", 0 if fast else 1 << 62)
    monkeypatch.setattr(plans, "_WEIGHTS", 1 << 40)
    generator = np.random.default_rng(0)
    model = block()
    kinds = [step.op.type for step in model.plan.steps]
    assert "Broadcast" not in kinds
    assert kinds.count("Slice") == 0
    past = [np.zeros((1, GROUPS, 0, WIDTH), np.float32)] * 2
    for count in (5, 1, 1, 1, 1, 1, 3, 1):
        query, key, value = (generator.standard_normal((1, n, count, WIDTH), np.float32) for n in (6, 2, 2))
        angles = generator.random((1, 1, count, WIDTH), np.float32)
        cos, sin = np.cos(angles), np.sin(angles)
        past = [np.concatenate(pair, 2) for pair in zip(past, (key * cos + turned(key) * sin, value))]
        mask = np.arange(past[0].shape[2]) <= past[0].shape[2] - count + np.arange(count)[:, None]
        result = model([query, key, value, cos, sin, mask[None, None]])[0]
        want = attended(query * cos + turned(query) * sin, past[0], past[1], mask)
        np.testing.assert_allclose(result, want, rtol=3e-6, atol=3e-6)


@pytest.mark.parametrize(("beams", "flat"), [(False, False), (True, False), (True, True)])
def test_a_token_is_one_step(beams: bool, flat: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys and values of a token are appended in place, and those of a run that fails are forgotten."""
    pytest.importorskip("numba", reason="the extra `fast` is not installed")
    monkeypatch.setattr(plans, "_COMPILED", 0)
    monkeypatch.setattr(plans, "_WEIGHTS", 1 << 40)
    generator = np.random.default_rng(1)
    model = block(beams=beams, flat=flat)
    past = [np.zeros((1, GROUPS, 0, WIDTH), np.float32)] * 2
    moves = 0
    for turn in range(40):
        query, key, value = (generator.standard_normal((1, n, 1, WIDTH), np.float32) for n in (HEADS, GROUPS, GROUPS))
        angles = generator.random((1, 1, 1, WIDTH), np.float32)
        cos, sin = np.cos(angles), np.sin(angles)
        before, grown = model.state.get("key"), [key * cos + turned(key) * sin, value]
        kept = None if before is None else before.copy()
        mask = generator.random((1, 1, 1, turn + 1)) < 0.8
        mask[..., -1] = True
        rows = [x.reshape(1, 1, -1) for x in (query, key, value)] if flat else [query, key, value]
        inputs = [*rows, cos, sin, mask, *([np.zeros(1, np.int32)] if beams else [])]
        if turn % 8 == 5:
            with pytest.raises(ExecutionError, match="attention_mask"):
                model([*inputs[:5], np.ones((1, 1, 1, turn + 7), np.bool_), *inputs[6:]])
        past = [np.concatenate(pair, 2) for pair in zip(past, grown)]
        result = model(inputs)[0]
        want = attended(query * cos + turned(query) * sin, past[0], past[1], mask)
        np.testing.assert_allclose(result, want.reshape(result.shape), rtol=3e-6, atol=3e-6)
        for name, held in zip(("key", "value"), past):
            np.testing.assert_allclose(model.state[name], held, rtol=1e-6, atol=1e-6)
        if before is not None:
            np.testing.assert_array_equal(before, kept)
            moves += not np.shares_memory(before, model.state["key"])
    assert moves <= 6
    last = model.plans[-1].steps
    assert "of a token" in [step.kernel.algorithm for step in last]
    assert not {"Transpose", "Assign", "ReadValue"} & {step.op.type for step in last}


@pytest.mark.usefixtures("workers")
@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("type", ["boolean", "f32"])
def test_a_token_of_all_layers_is_one_step(type: str, batch: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever the past is, whatever strides the mask has, and after runs that fail."""
    pytest.importorskip("numba", reason="the extra `fast` is not installed")
    monkeypatch.setenv("IRRUN_FAST", "always")
    generator = np.random.default_rng(3)
    model = decoder(type, 3, batch)
    compiled, exact = irrun.compile(model, exact=False), irrun.compile(model, exact=True)
    results: list[tuple[np.ndarray, np.ndarray]] = []
    for turn in range(40):
        count, past = (3, 0) if turn == 0 else (1, turn + 2)
        angles = generator.random((batch, 1, count, WIDTH), np.float32)
        whole = generator.random((batch, HEADS, count, 2 * (past + count))) < 0.8
        whole[..., 0] = True
        mask = (
            whole[..., : past + count],  # rows apart
            whole[:, :1, :, past + count - 1 :: -1],  # backwards, the same for all heads
            np.broadcast_to(whole[:1, :1, :, : past + count], (1, HEADS, count, past + count)),
            whole[:, :, :, :1],  # the same for all keys
        )[turn // 10]
        if type == "f32":
            mask = np.where(mask, generator.standard_normal(mask.shape), -np.inf).astype(np.float32)
        feeds = [generator.standard_normal((batch, count, 32), np.float32), np.cos(angles), np.sin(angles), mask]
        feeds.append(generator.permutation(batch).astype(np.int32))
        results.append((compiled(feeds)[0], exact(feeds)[0]))
        if turn % 8 == 5:
            with pytest.raises(ExecutionError, match="attention_mask") as caught:
                compiled([*feeds[:3], np.ones((1, 1, 1, past + 9), mask.dtype), feeds[4]])
            first = next(one for one in model.layers.values() if one.type == "ScaledDotProductAttention")
            assert caught.value.diagnostics[0].layer == first.name
    for found, wanted in results:
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)
    for name, held in exact.state.items():
        np.testing.assert_allclose(compiled.state[name], held, rtol=1e-4, atol=1e-4)
    steps = compiled.plans[-1].steps
    (turns,) = [step for step in steps if step.kernel.algorithm == "compiled in turn"]
    assert sum(one.type == "ScaledDotProductAttention" for one in turns.layers) == 3
    assert [step.op.type for step in steps if step is not turns] in ([], ["LogicalOr"])


@pytest.mark.parametrize("batch", [1, 2])
def test_variables_that_grow_together(batch: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tokens append to all of them at once, until somebody sets one, chooses other rows, or a run fails."""
    pytest.importorskip("numba", reason="the extra `fast` is not installed")
    monkeypatch.setenv("IRRUN_FAST", "always")
    lengths: list[int] = []
    grow = Variables.grow
    monkeypatch.setattr(Variables, "grow", lambda *given: (lengths.append(grow(*given)), lengths[-1])[1])
    generator = np.random.default_rng(4)
    model = decoder("f32", 2, batch)
    compiled, exact = irrun.compile(model, exact=False), irrun.compile(model, exact=True)
    kept: list[tuple[np.ndarray, np.ndarray]] = []
    states = compiled.state
    for turn in range(60):
        past = exact.state["key 0"].shape[2] if exact.state else 0
        angles = generator.random((batch, 1, 1, WIDTH), np.float32)
        mask = generator.standard_normal((1, 1, 1, past + 1), np.float32)
        feeds = [generator.standard_normal((batch, 1, 32), np.float32), np.cos(angles), np.sin(angles), mask]
        feeds.append(np.arange(batch, dtype=np.int32)[:: -1 if turn % 7 == 6 else 1])
        if turn % 11 == 8:
            with pytest.raises(ExecutionError, match="attention_mask"):
                compiled([*feeds[:3], mask[..., :1].repeat(past + 4, 3), feeds[4]])
        np.testing.assert_allclose(compiled(feeds)[0], exact(feeds)[0], rtol=1e-4, atol=1e-4)
        if turn % 13 == 12:
            kept.append((states["value 1"], states["value 1"].copy()))
            np.testing.assert_allclose(states["value 1"], exact.state["value 1"], rtol=1e-4, atol=1e-4)
        if turn % 17 == 16:
            value = generator.standard_normal((batch, GROUPS, past + 1, WIDTH), np.float32)
            for one in (compiled, exact):
                one._interpreter.variables.values["key 1"] = value.copy()
        if turn == 40:
            compiled.reset_state()
            exact.reset_state()
            assert not states
    for array, copy in kept:
        np.testing.assert_array_equal(array, copy)
    assert np.count_nonzero(lengths) > 20
    assert "key 0" in repr(states)


def test_keys_that_are_broadcast_to_another_length_are_left_to_their_layers() -> None:
    model = block(target=1)
    assert "Broadcast" in [step.op.type for step in model.plan.steps]
    one = [np.ones((1, n, 2, WIDTH), np.float32) for n in (HEADS, GROUPS, GROUPS, 1, 1)]
    with pytest.raises(irrun.IrrunError, match="IR6"):
        model([*one, np.ones((1, 1, 2, 2), np.bool_)])


def test_a_mask_that_does_not_fit_is_refused_by_the_clause() -> None:
    model = block()
    one = [np.ones((1, n, 2, WIDTH), np.float32) for n in (HEADS, GROUPS, GROUPS, 1, 1)]
    for mask in ((1, 1, 2, 3), (1, 1, 3, 2), (1, 4, 2, 2)):
        with pytest.raises(ExecutionError, match=r"attention_mask.*C4"):
            model([*one, np.ones(mask, np.bool_)])
    assert not model.state


def test_angles_that_do_not_fit_are_refused() -> None:
    model = block()
    one = [np.ones((1, n, 2, WIDTH), np.float32) for n in (HEADS, GROUPS, GROUPS)]
    for cos, sin in ((3, 2), (2, 3)):
        angles = [np.ones((1, 1, count, WIDTH), np.float32) for count in (cos, sin)]
        with pytest.raises(ExecutionError, match="cannot be broadcast"):
            model([*one, *angles, np.ones((1, 1, 2, 2), np.bool_)])


def test_views_of_the_second_output_of_a_split() -> None:
    x = b.parameter([4, 6], "f32", name="x")
    second = b.Split(x, 0, num_splits=2)[1]
    views = b.Reshape(b.Reshape(second, [3, 4], special_zero=False), [2, 6], special_zero=False)
    data = np.arange(24, dtype=np.float32).reshape(4, 6)
    np.testing.assert_array_equal(irrun.compile(b.model([b.Negative(views)]))([data])[0], -data[2:])


def test_a_dim_of_a_variable_has_no_formula() -> None:
    start = b.parameter([1, None], "f32", name="x")
    past = b.ReadValue(start, variable_id="v", variable_type="f32", variable_shape=[1, None], opset=6, name="past")
    text = str(irrun.why(b.model([b.Negative(past, name="out")]), "out"))
    assert "past" in text
