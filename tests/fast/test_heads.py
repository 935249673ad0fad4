"""Attention whose heads lie side by side in its result, against numpy in f64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import irrun
from irrun import build as b

pytest.importorskip("numba", reason="the extra `fast` is not installed")

RANDOM = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def _always(monkeypatch: pytest.MonkeyPatch, compiled_kernels: None) -> None:
    monkeypatch.setenv("IRRUN_FAST", "always")


def attention(query: Any, key: Any, value: Any, **more: Any) -> Any:
    return b.ScaledDotProductAttention(query, key, value, causal=False, **more)


def side_by_side(node: Any, batch: int, rows: int, columns: int) -> Any:
    """Move the heads of each row side by side, as exporters do."""
    return b.Reshape(b.Transpose(node, [0, 2, 1, 3]), np.array([batch, rows, columns]), special_zero=False)


def expected(query: np.ndarray, key: np.ndarray, value: np.ndarray) -> np.ndarray:
    """The rows [batch, rows, heads * width] of attention, whose keys and values may have fewer heads."""
    query, key, value = (a.astype(np.float64) for a in (query, key, value))
    key, value = (a.repeat(query.shape[1] // a.shape[1], 1) for a in (key, value))
    scores = query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1])
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    result = (weights / weights.sum(-1, keepdims=True) @ value).swapaxes(1, 2)
    return result.reshape(*result.shape[:2], -1)


@pytest.mark.usefixtures("workers")
@pytest.mark.parametrize(
    ("batch", "heads", "groups", "queries", "keys", "width"),
    [(1, 3, 3, 40, 40, 16), (2, 4, 4, 9, 33, 8), (2, 4, 2, 7, 20, 8), (1, 2, 2, 1, 12, 8), (2, 2, 2, 1, 12, 8), (1, 2, 2, 3, 12, 8)],
)  # fmt: skip
def test_rows_of_heads(batch: int, heads: int, groups: int, queries: int, keys: int, width: int) -> None:
    shapes = (batch, heads, queries, width), (batch, groups, keys, width), (batch, groups, keys, width + 1)
    arrays = [RANDOM.standard_normal(shape, np.float32) for shape in shapes]
    given = [b.parameter(list(shape), "f32") for shape in shapes]
    query, key, value = given
    if groups < heads:  # as decoders write it
        key, value = (
            b.Reshape(
                b.Broadcast(
                    b.Unsqueeze(node, np.array([2])), np.array([batch, groups, heads // groups, keys, size]),
                    mode="bidirectional",
                ),
                np.array([batch, heads, keys, size]), special_zero=False,
            )
            for node, size in ((key, width), (value, width + 1))
        )  # fmt: skip
    node = side_by_side(attention(query, key, value), batch, queries, heads * (width + 1))
    model = irrun.compile(b.model({"y": b.Negative(node)}))
    for _ in range(3):
        np.testing.assert_allclose(model(arrays)[0], -expected(*arrays), rtol=1e-5, atol=5e-6)
    if groups == heads and queries != 3:  # three queries are attended to by another kernel, which fills rows of a head
        assert len(model.plan.steps) == 2


@pytest.mark.parametrize("order", [[0, 1, 3, 2], [0, 2, 3, 1], [2, 0, 1, 3]])
def test_other_orders(order: list[int]) -> None:
    """And heads that something else reads: the results lie as the operation defines."""
    arrays = [RANDOM.standard_normal((2, 3, 30, 8), np.float32) for _ in range(3)]
    node = attention(*[b.parameter([2, 3, 30, 8], "f32") for _ in range(3)])
    wanted = expected(*arrays).reshape(2, 30, 3, 8).swapaxes(1, 2)
    model = irrun.compile(b.model({"y": b.Transpose(node, order), "z": side_by_side(node, 2, 30, 24)}))
    y, z = model(arrays).arrays
    np.testing.assert_allclose(y, wanted.transpose(order), rtol=1e-5, atol=5e-6)
    np.testing.assert_allclose(z, expected(*arrays), rtol=1e-5, atol=5e-6)
    only = irrun.compile(b.model({"y": b.Negative(b.Transpose(node, order))}))
    np.testing.assert_allclose(only(arrays)[0], -wanted.transpose(order), rtol=1e-5, atol=5e-6)


def test_hooks_see_every_layer() -> None:
    arrays = [RANDOM.standard_normal((1, 2, 20, 8), np.float32) for _ in range(3)]
    node = attention(*[b.parameter([1, 2, 20, 8], "f32") for _ in range(3)])
    model = irrun.compile(b.model({"y": side_by_side(node, 1, 20, 16)}))
    (step,) = (step for step in model.plan.steps if step.kernel.algorithm == "compiled")
    assert {layer.type for layer in step.layers} == {"ScaledDotProductAttention", "Transpose", "Reshape"}
    np.testing.assert_allclose(model(arrays)[0], expected(*arrays), rtol=1e-5, atol=5e-6)
