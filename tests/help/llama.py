"""A small decoder in the manner of Llama, with or without a cache, and with faults that are planted into it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

import irrun
from irrun import build as b
from language_models import VOCABULARY

WIDTH: Final = 32
HEADS: Final = 4
KEPT: Final = 2
"""The heads of keys and values; two heads of queries share each."""
SIZE: Final = WIDTH // HEADS
POSITIONS: Final = 128
"""The rows of the rotary tables."""
WINDOW: Final = 20
"""The tokens that are left of a cache which the fault ``window`` shortens."""

PROMPT: Final = 6
"""The tokens of a prompt for which ``FAULTS`` says in which step a fault shows."""

FAULTS: Final[Mapping[str, Sequence[tuple[str, int]]]] = {
    "rotary": [("key1.cos", 1)],  # the table of cosines begins with the row of position 1
    "mask": [("seen1.rows", 1)],  # each token of the prompt reads those behind it
    "scale": [("query1", 1)],  # one head of the queries is 1.3 times as large
    "repeat": [("key1.repeated", 1)],  # heads 0, 1, 0, 1 of the keys in place of 0, 0, 1, 1
    "stale": [("fresh.key1", 1)],  # the cache begins with a token that no text has
    "slot": [("kept.key1", 1), ("past.key1", 2)],  # each new key is also written over the oldest one
    "window": [("kept.key1", WINDOW - PROMPT + 2), ("past.key1", WINDOW - PROMPT + 3)],  # only WINDOW tokens are kept
    "clipped": [("key1.cos", WINDOW - PROMPT + 2)],  # positions from WINDOW on have the cosines of the one before
}
"""The faults of the second layer: where they show, as the first wrong layer and the number of its step. A variable that
takes a wrong value shows in the Assign or, if an engine does not show that, in the ReadValue of the next step."""


def llama(seed: int = 0, *, cached: bool = False, fault: str = "") -> irrun.Model:
    """Build a decoder of two layers: RMS, rotary tables, two heads of keys for four of queries, gated layers.

    It keeps keys and values in variables if it is ``cached``. A ``fault`` of ``FAULTS`` is in the second layer.
    """
    return _Llama(seed, cached, fault).model()


class _Llama:
    def __init__(self, seed: int, cached: bool, fault: str) -> None:
        self.rng, self.cached, self.fault = np.random.default_rng(seed), cached, fault
        names = ("input_ids", "attention_mask", "position_ids", *(["beam_idx"] if cached else []))
        self.given = {
            name: b.parameter([None] if name == "beam_idx" else [None, None], "i32" if name == "beam_idx" else "i64", name=name)
            for name in names
        }  # fmt: skip
        self.sinks: list[Any] = []
        angles = np.outer(np.arange(POSITIONS), 10.0 ** -np.tile(np.arange(SIZE // 2), 2))
        self.tables = [function(angles).astype(np.float32) for function in (np.cos, np.sin)]

    def weights(self, *shape: int) -> np.ndarray:
        return self.rng.normal(0, 0.6 / shape[-1] ** 0.5, shape).astype(np.float32)

    def model(self) -> irrun.Model:
        ids = self.given["input_ids"]
        x = b.Gather(self.rng.normal(0, 1, (VOCABULARY, WIDTH)).astype(np.float32), ids, 0)
        for layer in range(2):
            x = self.block(x, layer, self.fault if layer else "")
        table = self.rng.normal(0, 1, (VOCABULARY, WIDTH)).astype(np.float32)
        logits = b.MatMul(self.normal(x), table, transpose_b=True)
        return b.model({"logits": logits}, inputs=list(self.given.values()), sinks=self.sinks, name="llama")

    def normal(self, x: Any) -> Any:
        root = b.Sqrt(b.Add(b.ReduceMean(b.Power(x, np.float32(2)), [-1], keep_dims=True), np.float32(1e-5)))
        return b.Multiply(b.Multiply(x, b.Divide(np.float32(1), root)), 1 + self.weights(WIDTH))

    def block(self, x: Any, layer: int, fault: str) -> Any:
        y = self.normal(x)
        weights = [self.weights(count * SIZE, WIDTH) for count in (HEADS, KEPT, KEPT)]
        if fault == "scale":
            weights[0][:SIZE] *= 1.3
        query, key, value = (
            b.Transpose(b.Reshape(b.MatMul(y, w, transpose_b=True, name=f"{name}{layer}"), [0, 0, -1, SIZE], special_zero=True), [0, 2, 1, 3])
            for name, w in zip(("query", "key", "value"), weights)
        )  # fmt: skip
        query, key = self.rotated(query, f"query{layer}", ""), self.rotated(key, f"key{layer}", fault)
        key = self.held(key, f"key{layer}", fault)
        value = self.held(value, f"value{layer}", "" if fault == "slot" else fault)
        mask = self.mask(key, f"seen{layer}", is_causal=fault != "mask")
        key, value = self.repeated(key, f"key{layer}", fault), self.repeated(value, f"value{layer}", "")
        attended = b.ScaledDotProductAttention(query, key, value, mask, causal=False, name=f"attention{layer}")
        merged = b.Reshape(b.Transpose(attended, [0, 2, 1, 3]), [0, 0, WIDTH], special_zero=True)
        x = b.Add(x, b.MatMul(merged, self.weights(WIDTH, WIDTH), transpose_b=True))
        y = self.normal(x)
        gate, up = (b.MatMul(y, self.weights(2 * WIDTH, WIDTH), transpose_b=True) for _ in range(2))
        return b.Add(x, b.MatMul(b.Multiply(b.Swish(gate), up), self.weights(WIDTH, 2 * WIDTH), transpose_b=True))

    def rotated(self, y: Any, name: str, fault: str) -> Any:
        cos, sin = self.tables
        if fault == "rotary":
            cos = np.roll(cos, -1, axis=0)
        if fault == "clipped":
            cos = cos[np.maximum(np.arange(POSITIONS) - (np.arange(POSITIONS) >= WINDOW), 0)]
        places = self.given["position_ids"]
        tables = (b.Gather(table, places, 0, name=f"{name}.{kind}") for table, kind in ((cos, "cos"), (sin, "sin")))
        across, down = (b.Unsqueeze(table, [1]) for table in tables)
        low, high = (b.Slice(y, [begin], [begin + SIZE // 2], [1], [3]) for begin in (0, SIZE // 2))
        turned = b.Concat([b.Multiply(high, np.float32(-1)), low], axis=-1)
        return b.Add(b.Multiply(y, across), b.Multiply(turned, down))

    def held(self, now: Any, name: str, fault: str) -> Any:
        """Return the keys or values of all tokens."""
        if not self.cached:
            return now
        batch = b.Gather(b.ShapeOf(self.given["input_ids"], output_type="i64"), [0], 0)
        length = int(fault == "stale")
        fresh = b.Broadcast(np.float32(0.5), b.Concat([batch, [KEPT, length, SIZE]], axis=0, name=f"fresh.{name}"))
        held = b.ReadValue(fresh, variable_id=name, variable_type="f32", variable_shape=f"?,{KEPT},?,{SIZE}", name=f"past.{name}")  # fmt: skip
        whole = kept = b.Concat([b.Gather(held, self.given["beam_idx"], 0), now], axis=2, name=f"all.{name}")
        far = 2**31 - 1
        if fault == "slot":
            kept = b.Concat([b.Slice(whole, [-1], [far], [1], [2]), b.Slice(whole, [1], [far], [1], [2])], axis=2)
        if fault == "window":
            kept = b.Slice(whole, [-WINDOW], [far], [1], [2])
        self.sinks.append(b.Assign(kept, variable_id=name, name=f"kept.{name}"))
        return whole

    def repeated(self, y: Any, name: str, fault: str) -> Any:
        """Return keys or values with a head for each head of the queries."""
        if fault == "repeat":
            return b.Gather(y, np.arange(HEADS) % KEPT, 1, name=f"{name}.repeated")
        several = b.Broadcast(b.Unsqueeze(y, [2]), np.array([1, 1, HEADS // KEPT, 1, 1]), mode="bidirectional")
        return b.Reshape(several, [0, HEADS, -1, SIZE], special_zero=True, name=f"{name}.repeated")

    def mask(self, key: Any, name: str, *, is_causal: bool) -> Any:
        total = b.Gather(b.ShapeOf(key, output_type="i64"), 2, 0)
        length = b.Gather(b.ShapeOf(self.given["input_ids"], output_type="i64"), 1, 0)
        rows = b.Range(b.Subtract(total, length), total, 1, output_type="i64")
        places = b.Range(0, total, 1, output_type="i64")
        if not is_causal:
            rows = b.Add(b.Multiply(rows, np.int64(0)), total)
        rows = b.Unsqueeze(rows, 1, name=f"{name}.rows")
        seen = b.Unsqueeze(b.LessEqual(b.Unsqueeze(places, 0), rows, name=name), [0, 1])
        if self.cached:  # its length is that of the text, and a cache with a fault may have another one
            return seen
        return b.LogicalAnd(seen, b.Unsqueeze(b.Greater(self.given["attention_mask"], 0), [1, 2]))
