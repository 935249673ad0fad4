"""ScaledDotProductAttention-13."""

import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import irrun
from irrun import build as b
from irrun.kernels.attention import Attention, attention
from kit import *

_ALL, _CAUSAL = {"causal": False}, {"causal": True}
_LOG3 = math.log(3)


def _f32(data: Any) -> np.ndarray:
    return np.array(data, np.float32)


# one query, two keys; scores are 0 and log 3, so that weights are a quarter and three
_QUERY, _KEY, _VALUE = _f32([[[1]]]), _f32([[[0], [_LOG3]]]), _f32([[[4, 0], [8, 4]]])
_TWICE = np.concatenate([_QUERY, _QUERY], 1)

VALUES = [
    Values("no-width", "ScaledDotProductAttention-13", [_QUERY[..., :0], _KEY[..., :0], _VALUE], _f32([[[np.nan] * 2]]), _ALL),
    Values("plain", "ScaledDotProductAttention-13", [_QUERY, _KEY, _VALUE], _f32([[[7, 3]]]), _ALL),
    Values("divided-by-the-root", "ScaledDotProductAttention-13", [_f32([[[1] * 4]]), _f32([[[0] * 4, [_LOG3 / 2] * 4]]), _VALUE], _f32([[[7, 3]]]), _ALL),
    Values("scale", "ScaledDotProductAttention-13", [_QUERY, _KEY * 2, _VALUE, None, _f32(0.5)], _f32([[[7, 3]]]), _ALL),
    Values("mask", "ScaledDotProductAttention-13", [_QUERY, _KEY * 0, _VALUE, _f32([[[0, _LOG3]]])], _f32([[[7, 3]]]), _ALL),
    Values("boolean-mask", "ScaledDotProductAttention-13", [_QUERY, _KEY, _VALUE, [[[True, False]]]], _f32([[[4, 0]]]), _ALL),
    Values("scalar-mask", "ScaledDotProductAttention-13", [_QUERY, _KEY, _VALUE, _f32(0)], _f32([[[7, 3]]]), _ALL),
    Values("causal", "ScaledDotProductAttention-13", [_TWICE, _KEY, _VALUE], _f32([[[4, 0], [7, 3]]]), _CAUSAL),
    Values("causal-ignores-the-mask", "ScaledDotProductAttention-13", [_TWICE, _KEY, _VALUE, [[[False, False]]]], _f32([[[4, 0], [7, 3]]]), _CAUSAL),
    # the specification adds -inf to hidden scores, so that infinities among them become NaN
    Values("causal-infinite-key", "ScaledDotProductAttention-13", [_TWICE, _f32([[[1], [np.inf]]]), _VALUE], np.full((1, 2, 2), np.nan), _CAUSAL),
    Values("masked-infinite-key", "ScaledDotProductAttention-13", [_QUERY, _f32([[[1], [np.inf]]]), _VALUE, [[[True, False]]]], np.full((1, 1, 2), np.nan), _ALL),
    Values("causal-infinite-value", "ScaledDotProductAttention-13", [_TWICE, _KEY, _f32([[[4, 0], [8, np.inf]]])], [[[4, np.nan], [7, np.inf]]], _CAUSAL),
    Values("sink", "ScaledDotProductAttention-13", [_QUERY, _KEY, _VALUE, _f32(0), _f32(1), _f32([[[math.log(4)]]])], _f32([[[3.5, 1.5]]]), _ALL),
    Values("nothing-to-attend-to", "ScaledDotProductAttention-13", [_QUERY, _KEY, _VALUE, [[[False, False]]]], _f32([[[np.nan, np.nan]]]), _ALL),
    Values("no-keys", "ScaledDotProductAttention-13", [_QUERY, _KEY[:, :0], _VALUE[:, :0]], _f32([[[0, 0]]]), _ALL),
    Values("large-scores", "ScaledDotProductAttention-13", [_QUERY * 1e4, _f32([[[1], [1]]]), _VALUE], _f32([[[6, 2]]]), _ALL),
    Values("bf16", "ScaledDotProductAttention-13", [a.astype(ml_dtypes.bfloat16) for a in (_QUERY, _KEY * 0, _VALUE)], np.array([[[6, 2]]], ml_dtypes.bfloat16), _ALL),
    Values("no-queries", "ScaledDotProductAttention-13", [_QUERY[:, :0], _KEY, _VALUE], np.ones((1, 0, 2), np.float32), _ALL),
]  # fmt: skip

_Q, _K, _V, _M = "f32[1,?,80]", "f32[1,?,80]", "f32[1,?,80]", "f32[1,?,?]"
SHAPES = [
    Shapes("spec-1", "ScaledDotProductAttention-13", [_Q, _K, _V, _M], "f32[1,?,80]", _ALL),
    Shapes("spec-2", "ScaledDotProductAttention-13", ["f32[1,2,3,?,80]", "f32[1,2,3,?,80]", "f32[1,2,3,?,80]", "f32[1,2,3,?,?]"], "f32[1,2,3,?,80]", _ALL),
    Shapes("broadcast", "ScaledDotProductAttention-13", ["f32[4,1,7,80]", "f32[1,6,9,80]", "f32[4,6,9,64]"], "f32[4,6,7,64]", _ALL),
    Shapes("scale-without-mask", "ScaledDotProductAttention-13", ["f32[2,7,80]", "f32[2,9,80]", "f32[2,9,64]", None, "f32[]"], "f32[2,7,64]", _ALL),
    Shapes("batch-of-the-mask", "ScaledDotProductAttention-13", ["f32[1,2,7,80]", "f32[1,2,9,80]", "f32[1,2,9,64]", "boolean[3,1,1,9]"], "f32[3,2,7,64]", _ALL),
    Shapes("ignored-mask", "ScaledDotProductAttention-13", ["f32[1,7,80]", "f32[1,9,80]", "f32[1,9,64]", "f32[3,1,5]"], "f32[1,7,64]", _CAUSAL),
    Shapes("ranks-differ", "ScaledDotProductAttention-13", ["f32[3,2,7,80]", "f32[2,9,80]", "f32[2,9,64]", "f32[7,9]"], "f32[3,2,7,64]", _ALL),
    Shapes("sink", "ScaledDotProductAttention-13", ["f32[1,2,7,80]", "f32[1,2,9,80]", "f32[1,2,9,64]", "f32[]", "f32[1]", "f32[1,2,1,1]"], "f32[1,2,7,64]", _ALL),
    Shapes("unknown-rank", "ScaledDotProductAttention-13", [_Q, "f32[...]", _V], "f32[...]", _ALL),
    Shapes("unknown-rank-of-the-mask", "ScaledDotProductAttention-13", [_Q, _K, _V, "f32[...]"], "f32[...]", _ALL),
]  # fmt: skip

_A, _B, _C = "f32[2,7,80]", "f32[2,9,80]", "f32[2,9,64]"
REFUSALS = [
    Refusal("c1-query", "ScaledDotProductAttention-13", ["f32[7,80]", _B, _C], _ALL),
    Refusal("c1-value", "ScaledDotProductAttention-13", ["f32[...]", _B, "f32[9,64]"], _ALL),
    Refusal("c2-query-key", "ScaledDotProductAttention-13", [_A, "f32[2,9,81]", _C], _ALL),
    Refusal("c2-key-value", "ScaledDotProductAttention-13", [_A, _B, "f32[2,8,64]"], _ALL),
    Refusal("c3-batch", "ScaledDotProductAttention-13", [_A, "f32[3,9,80]", _C], _ALL),
    # the specification's third example, whose dims are repeated rather than broadcast; OpenVINO refuses it, too
    Refusal("c3-spec-3", "ScaledDotProductAttention-13", ["f32[1,6,5,?,80]", "f32[2,2,2,?,80]", "f32[4,3,10,?,80]"], _ALL),
    Refusal("c4-keys", "ScaledDotProductAttention-13", [_A, _B, _C, "f32[2,7,8]"], _ALL),
    Refusal("c4-queries", "ScaledDotProductAttention-13", ["f32[2,1,80]", _B, _C, "f32[2,7,9]"], _ALL),
    Refusal("c4-1d", "ScaledDotProductAttention-13", [_A, _B, _C, "f32[9]"], _ALL),
    Refusal("c4-type", "ScaledDotProductAttention-13", [_A, _B, _C, "f16[2,7,9]"], _ALL),
    Refusal("c5-scale-2d", "ScaledDotProductAttention-13", [_A, _B, _C, None, "f32[1,1]"], _ALL),
    Refusal("c5-scale", "ScaledDotProductAttention-13", [_A, _B, _C, None, "f32[2]"], _ALL),
    Refusal("c6-rank", "ScaledDotProductAttention-13", [_A, _B, _C, None, None, "f32[1,1]"], _ALL),
    Refusal("c6-rank-of-keys", "ScaledDotProductAttention-13", ["f32[1,2,1]", "f32[1,1,1,1]", "f32[1,1,1,1]", None, None, "f32[1,2,1]"], _ALL),
    Refusal("c6-last-dim", "ScaledDotProductAttention-13", [_A, _B, _C, None, None, "f32[2,1,2]"], _ALL),
    Refusal("ir301-integers", "ScaledDotProductAttention-13", ["i32[2,7,80]", "i32[2,9,80]", "i32[2,9,64]"], _ALL),
    Refusal("ir301-integer-mask", "ScaledDotProductAttention-13", [_A, _B, _C, "i32[7,9]"], _ALL),
    Refusal("ir302-types", "ScaledDotProductAttention-13", [_A, "f16[2,9,80]", _C], _ALL),
]  # fmt: skip


def _inputs(query: tuple[int, ...], key: tuple[int, ...], width: int, dtype: Any = np.float32) -> list[np.ndarray]:
    return [
        random(*query, dtype=dtype),
        random(*key, dtype=dtype, seed=1),
        random(*key[:-1], width, dtype=dtype, seed=2),
    ]


_4D = _inputs((2, 3, 4, 8), (2, 3, 5, 8), 6)
_OPEN = random(2, 1, 4, 5, dtype=bool)
_OPEN[..., 0] = True  # every query has something to attend to
_MASKS = {
    "full": random(2, 3, 4, 5, seed=3),
    "broadcast": random(1, 1, 4, 5, seed=3),
    "one-row": random(2, 3, 1, 5, seed=3),
    "one-column": random(2, 3, 4, 1, seed=3),
    "2d": random(4, 5, seed=3),
    "scalar": _f32(0),
    "boolean": _OPEN,
}

CASES = [
    Case(f"{'causal' if attributes['causal'] else 'all'}-{query}-{key}", "ScaledDotProductAttention-13", _inputs(query, key, 6), attributes)
    for query, key in [((2, 4, 8), (2, 5, 8)), ((1, 3, 4, 8), (1, 3, 4, 8)), ((2, 3, 6, 8), (2, 3, 4, 8)), ((4, 1, 3, 8), (4, 2, 5, 8))]
    for attributes in (_ALL, _CAUSAL)
] + [
    Case(f"mask-{id}", "ScaledDotProductAttention-13", [*_4D, mask], _ALL) for id, mask in _MASKS.items()
] + [
    Case("causal-mask", "ScaledDotProductAttention-13", [*_4D, _MASKS["full"]], _CAUSAL),
    Case("scale", "ScaledDotProductAttention-13", [*_4D, _MASKS["full"], _f32(0.3)], _ALL),
    Case("scale-1d", "ScaledDotProductAttention-13", [*_4D, _f32(0), _f32([0.3])], _ALL),
    Case("sink", "ScaledDotProductAttention-13", [*_4D, _MASKS["full"], _f32(0.3), random(1, 3, 1, 1)], _ALL),
    Case("f16", "ScaledDotProductAttention-13", _inputs((1, 2, 4, 8), (1, 2, 5, 8), 6, np.float16), _ALL),
    Case("f64", "ScaledDotProductAttention-13", _inputs((1, 2, 4, 8), (1, 2, 5, 8), 6, np.float64), _ALL),
]  # fmt: skip


@pytest.mark.parametrize("score", [-50.0, 0.0, 50.0])
def test_large_values_stay_finite(score: float) -> None:
    """Scores that need no shift have exponentials up to exp(60), which large values must not meet."""
    query, key = np.full((1, 1, 1), score, np.float32), np.ones((1, 1, 2), np.float32)
    value = np.array([[[1e30], [3e30]]], np.float32)
    with np.errstate(over="ignore"):
        result = attention(Attention(query, key, value, 1.0))
    np.testing.assert_allclose(result, [[[2e30]]], rtol=1e-5)


@pytest.mark.parametrize("causal", [False, True])
def test_keys_without_heads(causal: bool) -> None:
    """One head of queries is broadcast to no heads of keys: there is no result."""
    shapes = {"query": [1, 1, 2, 4], "key": [1, 0, 3, 4], "value": [5, 1, 3, 4]}
    inputs = [b.parameter(shape, "f32", name=name) for name, shape in shapes.items()]
    model = b.model({"y": b.ScaledDotProductAttention(*inputs, causal=causal)}, inputs=inputs)
    y = irrun.compile(model, exact=False)([np.ones(shape, np.float32) for shape in shapes.values()])[0]
    assert y.shape == (5, 0, 2, 4)


@pytest.mark.parametrize("queries", [0, 1, 3])
@pytest.mark.parametrize("keys", [0, 5])
@pytest.mark.parametrize("batch", [0, 2])
def test_heads_in_groups_without_elements(batch: int, keys: int, queries: int) -> None:
    """Queries of zeros: a result is the mean of the values, which are also the keys, and 0 without keys."""
    query, x = (b.parameter([None, heads, None, 4], "f32") for heads in (6, 2))
    length = b.ShapeOf(x, output_type="i64")
    first, last = (b.Gather(length, axes, 0) for axes in ([0, 1], [2, 3]))
    repeated = b.Broadcast(b.Unsqueeze(x, [2]), b.Concat([first, [3], last], axis=0), mode="bidirectional")
    wide = b.Reshape(repeated, [0, 6, -1, 4], special_zero=True)
    y = b.ScaledDotProductAttention(query, wide, wide, causal=False)
    model = irrun.compile(b.model({"y": y}, inputs=[query, x]), exact=False)
    assert "Broadcast" not in [step.op.type for step in model.plan.steps]
    values = np.arange(batch * 2 * keys * 4, dtype=np.float32).reshape(batch, 2, keys, 4)
    y = model([np.zeros((batch, 6, queries, 4), np.float32), values])[0]
    means = values.repeat(3, 1).sum(2, keepdims=True) / np.float32(keys or 1)
    np.testing.assert_allclose(y, np.broadcast_to(means, (batch, 6, queries, 4)), rtol=1e-6)
