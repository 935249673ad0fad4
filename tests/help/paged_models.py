"""The paged form of the decoder of ``language_models``, built without OpenVINO."""

from __future__ import annotations

from typing import Any

import numpy as np

import irrun
from irrun import build as b
from irrun.extensions.internal.paged_attention_extension import PagedAttentionExtension
from irrun.growing.internal import OFF
from language_models import VOCABULARY

__all__ = ["paged_decoder"]


def paged_decoder(vocabulary: int = VOCABULARY, *, width: int = 32, layers: int = 2, seed: int = 0) -> irrun.Model:
    """Build what OpenVINO makes of ``language_models.decoder`` with the same arguments: the weights are the same."""
    rng = np.random.default_rng(seed)
    heads, size = 4, width // 4
    given: dict[str, Any] = {name: b.parameter([None], "i64", name=name) for name in ("input_ids", "position_ids")}
    given["max_context_len"] = b.parameter([], "i32", name="max_context_len")
    for name in ("past_lens", "subsequence_begins", "block_indices", "block_indices_begins"):
        given[name] = b.parameter([None], "i32", name=name)

    def weights(*shape: int, scale: float | None = None) -> np.ndarray:
        return rng.normal(0, 0.6 / shape[-1] ** 0.5 if scale is None else scale, shape).astype(np.float32)

    x = b.Gather(weights(vocabulary, width, scale=1), b.Unsqueeze(given["input_ids"], 1), 0)
    for layer in range(layers):
        normal = b.MVN(x, [-1], eps=1e-5, eps_mode="inside_sqrt", normalize_variance=True)
        rows = [b.MatMul(normal, weights(width, width), transpose_b=True) for _ in "qkv"]
        rows = [b.Reshape(row, [0, 0, heads, size], special_zero=True) for row in rows]
        angles = b.Multiply(b.Unsqueeze(b.Convert(given["position_ids"], destination_type="f32"), [1, 2, 3]), 0.1)
        rows[:2] = (b.Add(b.Multiply(row, b.Cos(angles)), b.Multiply(row, b.Sin(angles))) for row in rows[:2])
        flat = [b.Reshape(row, [0, -1], special_zero=True) for row in rows]
        caches = [b.parameter([None] * 4, "dynamic", name=f"{kind}_cache.{layer}") for kind in ("key", "value")]
        given |= {f"{kind}.{layer}": cache for kind, cache in zip("kv", caches)}
        options = {**OFF, "scale": np.float32(size**-0.5), "max_context_len": given["max_context_len"]}
        tables = [given[port.name] for port in PagedAttentionExtension.inputs[5:9]]
        merged = b.PagedAttentionExtension(*flat, *caches, *tables, *options.values(), name=f"attention.{layer}")[0]
        x = b.Add(x, b.MatMul(b.Unsqueeze(merged, 1), weights(width, width), transpose_b=True))
        up = b.Tanh(b.MatMul(x, weights(width, width)))
        x = b.Add(x, b.MatMul(up, weights(width, width)))
    logits = b.MatMul(x, weights(vocabulary, width, scale=1), transpose_b=True)
    return b.model({"logits": logits}, inputs=list(given.values()), name="paged decoder")
