"""Tiny decoders of one or two layers, each with or without one thing that OpenVINO's rewriting to paged attention needs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import irrun
from irrun import build as b

__all__ = ["BROKEN", "SERVED", "decoder"]

HEADS, SIZE = 4, 8
WIDTH = HEADS * SIZE
TABLE = np.random.default_rng(1).normal(0, 0.3, (99, WIDTH)).astype(np.float32)
Change = Callable[..., Any]


def decoder(layers: int = 2, **changes: Any) -> irrun.Model:
    """Build a decoder in the manner of Llama, without position_ids in its layers.

    ``changes`` replace single steps: functions of the arguments that the step has here, or values.
    """
    rng = np.random.default_rng(0)

    def step(name: str, plain: Change) -> Change:
        return changes.get(name, plain)

    def weights(*shape: int) -> np.ndarray:
        return rng.normal(0, 0.3, shape).astype(np.float32)

    names = changes.get("inputs", ("input_ids", "attention_mask", "position_ids", "beam_idx"))
    given = {n: b.parameter([None] if n == "beam_idx" else [None, None], "i32" if n == "beam_idx" else "i64", name=n) for n in names}  # fmt: skip
    ids = given[names[0]]
    x = b.Gather(weights(50, WIDTH), ids, 0)
    if "position_ids" in given:
        x = b.Add(x, b.Gather(weights(99, WIDTH), given["position_ids"], 0))
    if "early" in changes:
        x = changes["early"](x, given)
    heads, groups = HEADS, changes.get("groups", HEADS)
    batch = b.Gather(b.ShapeOf(ids, output_type="i64"), [0], 0)
    sinks: list[Any] = []
    if "state" in changes:
        x = changes["state"](x, given, sinks)
    totals: list[Any] = []
    past: list[Any] = []
    for layer in range(layers):

        def rows(count: int, x: Any = x) -> Any:
            y = b.MatMul(x, weights(WIDTH, count * SIZE))
            return b.Transpose(b.Reshape(y, [0, 0, count, SIZE], special_zero=True), [0, 2, 1, 3])

        query, now = rows(heads), (rows(groups), rows(groups))

        def cached(now: Any, name: str, layer: int = layer) -> Any:
            dims = [batch, [groups], [0], [SIZE]]
            if "open" in changes:
                dims[1] = b.Add(b.Multiply(b.ReduceMax(ids, [0, 1], keep_dims=False), [0]), [groups])
                now = b.Reshape(now, b.Concat([[0], dims[1], [-1, SIZE]], axis=0), special_zero=True)
            order = changes.get("layout", [0, 1, 2, 3])
            now = b.Transpose(now, order) if "layout" in changes else now
            fresh = b.Broadcast(np.float32(0), b.Concat([dims[n] for n in order], axis=0))
            shape = ["?", "?" if "open" in changes else groups, "?", SIZE]
            shape = ",".join(str(shape[n]) for n in order)
            held = b.ReadValue(fresh, variable_id=name, variable_type="f32", variable_shape=shape)
            past = step("past", lambda held, given, layer: b.Gather(held, given["beam_idx"], 0))(held, given, layer)
            whole = step("concat", lambda past, now, layer: b.Concat([past, now], axis=order.index(2)))(
                past, now, layer
            )
            sinks.append(b.Assign(whole, variable_id=name))
            return whole

        past = (
            changes["variables"](now, layer)
            if "variables" in changes
            else [cached(row, f"{layer}{n}") for row, n in zip(now, "kv")]
        )
        if not totals:
            totals.append(
                step(
                    "total",
                    lambda key: b.Gather(
                        b.ShapeOf(key, output_type="i64"), changes.get("layout", [0, 1, 2, 3]).index(2), 0
                    ),
                )(past[0])
            )
        length = b.Gather(b.ShapeOf(ids, output_type="i64"), 1, 0)
        places = b.Range(0, totals[0], 1, output_type="i64")
        own = b.Range(b.Subtract(totals[0], length), totals[0], 1, output_type="i64")
        mask = b.Unsqueeze(b.LessEqual(b.Unsqueeze(places, 0), b.Unsqueeze(own, 1)), [0, 1])
        if "attention_mask" in given:
            mask = b.LogicalAnd(mask, b.Unsqueeze(b.Greater(given["attention_mask"], 0), [1, 2]))
        shaped = [step("shaped", lambda row, layer: row)(row, layer) for row in past]
        attend = step("attend", lambda q, k, v, mask, layer: b.ScaledDotProductAttention(q, k, v, mask, causal=False))
        attended = attend(query, *shaped, mask, layer)
        merged = b.Reshape(b.Transpose(attended, [0, 2, 1, 3]), [0, 0, WIDTH], special_zero=True)
        x = b.Add(x, b.MatMul(merged, weights(WIDTH, WIDTH)))
        if layer == 0 and "late" in changes:
            x = changes["late"](x, totals[0], length, past[0], given)
    logits = b.MatMul(x, weights(WIDTH, 50))
    outputs = {"logits": logits} | changes.get("outputs", lambda given, past: {})(given, past)
    return b.model(outputs, inputs=list(given.values()), sinks=sinks, name="decoder")


def by_heads(row: Any, layer: int) -> Any:
    """Repeat each head of keys or values twice, as for grouped queries."""
    wide = b.Broadcast(b.Unsqueeze(row, 2), [1, 2, 2, 1, SIZE], mode="bidirectional")
    return b.Reshape(wide, [0, HEADS, -1, SIZE], special_zero=True)


def convolved(tokens: Change, width: int = 3) -> Change:
    """Return a change that adds a causal convolution of three tokens, whose state has ``width``, to the tokens."""
    channels = WIDTH
    filters = np.random.default_rng(2).normal(0, 0.3, (channels, 1, 1, 3)).astype(np.float32)

    def state(x: Any, given: Any, sinks: list[Any]) -> Any:
        batch = b.Gather(b.ShapeOf(x, output_type="i64"), [0], 0)
        fresh = b.Broadcast(np.float32(0), b.Concat([batch, [channels, width]], axis=0))
        held = b.ReadValue(fresh, variable_id="conv", variable_type="f32", variable_shape=f"?,{channels},{width}")
        whole = b.Concat([b.Gather(held, given["beam_idx"], 0), tokens(b.Transpose(x, [0, 2, 1]))], axis=-1)
        sinks.append(b.Assign(b.Slice(whole, [-width], [2**31 - 1], [1], [2]), variable_id="conv"))
        made = b.GroupConvolution(whole, filters, strides=[1], pads_begin=[0], pads_end=[0], dilations=[1])
        short = b.Slice(made, [width - 2], [2**31 - 1], [1], [2])
        return b.Add(x, b.Transpose(short, [0, 2, 1]))

    return state


def sdpa(q: Any, k: Any, v: Any, *more: Any) -> Any:
    return b.ScaledDotProductAttention(q, k, v, *more, causal=False)


SERVED: dict[str, dict[str, Any]] = {
    "plain": {},
    "one-layer": {"layers": 1},
    "grouped": {"groups": 2, "shaped": by_heads},
    "scale": {"attend": lambda q, k, v, m, layer: sdpa(q, k, v, m, np.float32(0.5))},
    "scale-vector": {"attend": lambda q, k, v, m, layer: sdpa(q, k, v, m, np.array([0.5], np.float32))},
    "no-position-ids": {"inputs": ("input_ids", "attention_mask", "beam_idx")},
    "no-attention-mask": {"inputs": ("input_ids", "position_ids", "beam_idx")},
    "reshaped": {"shaped": lambda row, layer: b.Reshape(row, [0, HEADS, -1, SIZE], special_zero=True)},
    "transposed-twice": {"shaped": lambda row, layer: b.Transpose(b.Transpose(row, [0, 2, 1, 3]), [0, 2, 1, 3])},
    "sinks": {
        "attend": lambda q, k, v, m, layer: sdpa(q, k, v, m, np.float32(0.5), np.zeros((1, HEADS, 1, 1), np.float32))
    },
    "dynamic-width": {
        "shaped": lambda row, layer: b.Reshape(
            row,
            b.Concat([[0, HEADS, -1], b.Gather(b.ShapeOf(row, output_type="i64"), [3], 0)], axis=0),
            special_zero=True,
        )
    },
    "positions-of-lengths": {
        "late": lambda x, total, length, key, given: b.Add(
            x, b.Gather(TABLE, b.Range(b.Subtract(total, length), total, 1, output_type="i64"), 0)
        )
    },
    "heads-of-cache": {
        "late": lambda x, total, length, key, given: b.Multiply(
            x, b.Convert(b.Gather(b.ShapeOf(key, output_type="i64"), 1, 0), destination_type="f32")
        )
    },
    "length-from-behind": {
        "late": lambda x, total, length, key, given: b.Multiply(
            x, b.Convert(b.Gather(b.ShapeOf(key, output_type="i64"), -2, 0), destination_type="f32")
        )
    },
    "transposed-thrice": {
        "shaped": lambda row, layer: b.Transpose(
            b.Transpose(b.Transpose(b.Transpose(row, [0, 2, 1, 3]), [0, 1, 3, 2]), [0, 1, 3, 2]), [0, 2, 1, 3]
        )
    },
    "transposed-cache": {
        "past": lambda held, given, layer: b.Transpose(b.Gather(held, given["beam_idx"], 0), [0, 1, 2, 3])
    },
    "quiet-matched": {"inputs": ("input_ids", "beam_idx")},
    "causal-too": {"attend": lambda q, k, v, m, layer: b.ScaledDotProductAttention(q, k, v, m, causal=True)},
    "query-of-dynamic": {
        "attend": lambda q, k, v, m, layer: sdpa(
            b.Reshape(
                q,
                b.Concat([[0, HEADS, -1], b.Gather(b.ShapeOf(k, output_type="i64"), [3], 0)], axis=0),
                special_zero=True,
            ),
            k,
            v,
            m,
        )
    },
    "by-tokens": {"layout": [0, 2, 1, 3], "shaped": lambda row, layer: b.Transpose(row, [0, 2, 1, 3])},
    "by-tokens-twice": {
        "layout": [0, 2, 1, 3],
        "shaped": lambda row, layer: b.Transpose(b.Transpose(row, [0, 3, 2, 1]), [0, 2, 3, 1]),
    },
    "fixed-batch": {
        "late": lambda x, total, length, key, given: b.Reshape(
            b.Reshape(x, [1, -1, WIDTH], special_zero=False), [1, -1, WIDTH], special_zero=False
        )
    },
    "convolution": {"state": convolved(lambda x: b.Multiply(x, np.float32(2)))},
    "convolution-of-transpose": {"state": convolved(lambda x: x)},
}
"""What OpenVINO rewrites."""

BROKEN: dict[str, tuple[str, str, dict[str, Any]]] = {
    "no-variables": ("variables", "", {"variables": lambda now, layer: now}),
    "no-attention": (
        "attention",
        "",
        {
            "attend": lambda q, k, v, m, layer: b.MatMul(
                b.Softmax(b.Add(b.MatMul(q, k, transpose_b=True), b.Convert(m, destination_type="f32")), axis=-1), v
            )
        },
    ),
    "no-input-ids": ("inputs", "", {"inputs": ("tokens", "attention_mask", "position_ids", "beam_idx")}),
    "no-mask": (
        "mask",
        "ScaledDotProductAttention",
        {"attend": lambda q, k, v, m, layer: b.ScaledDotProductAttention(q, k, v, causal=True)},
    ),
    "no-mask-in-layer-1": (
        "mask",
        "ScaledDotProductAttention",
        {
            "attend": lambda q, k, v, m, layer: (
                sdpa(q, k, v, m) if layer == 0 else b.ScaledDotProductAttention(q, k, v, causal=True)
            )
        },
    ),
    "no-gather": ("cache", "Concat", {"past": lambda held, given, layer: held}),
    "converted": (
        "cache",
        "ScaledDotProductAttention",
        {"shaped": lambda row, layer: b.Convert(b.Convert(row, destination_type="f16"), destination_type="f32")},
    ),
    "scaled-key": (
        "cache",
        "ScaledDotProductAttention",
        {"shaped": lambda row, layer: b.Multiply(row, np.float32(0.5))},
    ),
    "three-pieces": (
        "cache",
        "Concat",
        {"concat": lambda past, now, layer: b.Concat([past, now, np.zeros((1, HEADS, 0, SIZE), np.float32)], axis=2)},
    ),
    "swapped": ("cache", "Concat", {"concat": lambda past, now, layer: b.Concat([now, past], axis=2)}),
    "mask-elsewhere": (
        "readers",
        "Convert",
        {
            "early": lambda x, given: b.Multiply(
                x, b.Unsqueeze(b.Convert(given["attention_mask"], destination_type="f32"), 2)
            )
        },
    ),
    "mask-out": (
        "readers",
        "Convert",
        {"outputs": lambda given, past: {"mask": b.Convert(given["attention_mask"], destination_type="f32")}},
    ),
    "beam-out": (
        "readers",
        "Convert",
        {"outputs": lambda given, past: {"beam": b.Convert(given["beam_idx"], destination_type="f32")}},
    ),
    "batch-of-cache": (
        "length",
        "Gather",
        {
            "late": lambda x, total, length, key, given: b.Multiply(
                x, b.Convert(b.Gather(b.ShapeOf(key, output_type="i64"), 0, 0), destination_type="f32")
            )
        },
    ),
    "two-dims-of-cache": (
        "readers",
        "ShapeOf",
        {
            "late": lambda x, total, length, key, given: b.Multiply(
                x,
                b.Convert(
                    b.ReduceSum(b.Gather(b.ShapeOf(key, output_type="i64"), [0, 2], 0), [0]), destination_type="f32"
                ),
            )
        },
    ),
    "key-out": ("readers", "Result", {"outputs": lambda given, past: {"key": past[0]}}),
    "late-mask": (
        "readers",
        "ReduceMax",
        {
            "late": lambda x, total, length, key, given: b.Multiply(
                x, b.Convert(b.ReduceMax(given["attention_mask"], [0, 1]), destination_type="f32")
            )
        },
    ),
    "key-mean": (
        "readers",
        "ReduceMean",
        {"late": lambda x, total, length, key, given: b.Multiply(x, b.ReduceMean(key, [0, 1, 2, 3]))},
    ),
    "reshaped-after-groups": (
        "cache",
        "ScaledDotProductAttention",
        {
            "groups": 2,
            "shaped": lambda row, layer: b.Reshape(by_heads(row, layer), [0, HEADS, -1, SIZE], special_zero=True),
        },
    ),
    "tiled-groups": ("cache", "Concat", {"groups": 2, "shaped": lambda row, layer: b.Concat([row, row], axis=1)}),
    "quiet": ("cache", "Concat", {"inputs": ("input_ids",), "past": lambda held, given, layer: held}),
    "quiet-scaled": (
        "cache",
        "ScaledDotProductAttention",
        {
            "inputs": ("input_ids", "position_ids"),
            "past": lambda held, given, layer: b.Gather(held, np.array([0], np.int32), 0),
            "shaped": lambda row, layer: b.Multiply(row, np.float32(1)),
        },
    ),
    "value-scaled": (
        "cache",
        "ScaledDotProductAttention",
        {"attend": lambda q, k, v, m, layer: sdpa(q, k, b.Multiply(v, np.float32(0.5)), m)},
    ),
    "attention-of-three": (
        "cache",
        "ScaledDotProductAttention",
        {
            "attend": lambda q, k, v, m, layer: b.Unsqueeze(
                sdpa(*(b.Squeeze(r, 0) for r in (q, k, v)), b.Squeeze(m, 0)), 0
            )
        },
    ),
    "by-hand-in-layer-1": (
        "readers",
        "Gather",
        {
            "attend": lambda q, k, v, m, layer: (
                sdpa(q, k, v, m)
                if layer == 0
                else b.MatMul(
                    b.Softmax(
                        b.Add(b.MatMul(q, k, transpose_b=True), b.Select(m, np.float32(0), np.float32(-9e9))), axis=-1
                    ),
                    v,
                )
            )
        },
    ),
    "convolution-of-split": (
        "states",
        "GroupConvolution",
        {"state": convolved(lambda x: b.VariadicSplit(b.Concat([x, x], axis=1), 1, [WIDTH, WIDTH])[0])},
    ),
    "convolution-of-narrow-state": ("states", "GroupConvolution", {"state": convolved(lambda x: x, width=2)}),
    "convolution-of-wide-state": ("states", "GroupConvolution", {"state": convolved(lambda x: x, width=5)}),
    "open-heads": ("dims", "ScaledDotProductAttention", {"open": True}),
}
"""What OpenVINO does not rewrite: the condition that is broken, and the type of the first layer that breaks it."""
