"""Networks with the names that the converter of PyTorch writes, and weights so small that they run at once."""

from __future__ import annotations

from typing import Any

import numpy as np

import irrun
from irrun import build as b

_WIDTH = 8
_HEADS = 2


class _Named:
    """Builds layers whose names begin with a module: ``__module.bert.pooler.dense/aten::linear/Add``."""

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)

    def weights(self, *shape: int) -> np.ndarray:
        return self._rng.normal(0, 0.5, shape).astype(np.float32)

    def linear(self, x: Any, module: str, to: int = _WIDTH, of: int = _WIDTH) -> Any:
        product = b.MatMul(x, self.weights(to, of), transpose_b=True, name=f"{module}/aten::linear/MatMul")
        return b.Add(product, self.weights(1, 1, to), name=f"{module}/aten::linear/Add")

    def normalized(self, x: Any, module: str) -> Any:
        name = f"{module}/aten::layer_norm"
        x = b.MVN(x, [-1], eps=1e-5, eps_mode="inside_sqrt", normalize_variance=True, name=f"{name}/MVN")
        x = b.Multiply(x, self.weights(1, 1, _WIDTH), name=f"{name}/Multiply")
        return b.Add(x, self.weights(1, 1, _WIDTH), name=f"{name}/Add")

    def heads(self, x: Any, module: str, number: int) -> Any:
        end = f"_{number}" if number else ""
        x = b.Reshape(x, [0, 0, _HEADS, _WIDTH // _HEADS], special_zero=True, name=f"{module}/aten::view/Reshape{end}")
        return b.Transpose(x, [0, 2, 1, 3], name=f"{module}/aten::permute/Transpose{end}")

    def attention(self, x: Any, module: str, parts: tuple[str, str, str]) -> Any:
        query, key, value = (
            self.heads(self.linear(x, f"{module}.{part}"), module, number) for number, part in enumerate(parts)
        )
        scores = b.MatMul(query, key, transpose_b=True, name=f"{module}/aten::matmul/MatMul")
        scores = b.Divide(scores, np.float32(2), name=f"{module}/aten::div/Divide")
        scores = b.SoftMax(scores, axis=-1, name=f"{module}/aten::softmax/Softmax")
        mixed = b.MatMul(scores, value, name=f"{module}/aten::matmul/MatMul_1")
        mixed = b.Transpose(mixed, [0, 2, 1, 3], name=f"{module}/aten::permute/Transpose_3")
        return b.Reshape(mixed, [0, 0, _WIDTH], special_zero=True, name=f"{module}/aten::view/Reshape_3")


def bert(layers: int = 12, *, seed: int = 0) -> irrun.Model:
    """Return the encoder of BERT with ``layers`` layers, and its pooler."""
    net = _Named(seed)
    ids = b.parameter([1, 4], "i64", name="input_ids")
    name = "__module.bert.embeddings"
    x = b.Gather(net.weights(30, _WIDTH), ids, 0, name=f"{name}.word_embeddings/aten::embedding/Gather")
    x = b.Add(x, net.weights(1, 4, _WIDTH), name=f"{name}/aten::add_/Add")
    x = net.normalized(x, f"{name}.LayerNorm")
    for number in range(layers):
        name = f"__module.bert.encoder.layer.{number}"
        mixed = net.attention(x, f"{name}.attention.self", ("query", "key", "value"))
        mixed = net.linear(mixed, f"{name}.attention.output.dense")
        mixed = b.Add(mixed, x, name=f"{name}.attention.output/aten::add/Add")
        x = net.normalized(mixed, f"{name}.attention.output.LayerNorm")
        inner = net.linear(x, f"{name}.intermediate.dense", 2 * _WIDTH)
        inner = b.Gelu(inner, name=f"{name}.intermediate.intermediate_act_fn/aten::gelu/Gelu")
        inner = net.linear(inner, f"{name}.output.dense", of=2 * _WIDTH)
        x = net.normalized(b.Add(inner, x, name=f"{name}.output/aten::add/Add"), f"{name}.output.LayerNorm")
    first = b.Gather(x, 0, 1, name="__module.bert.pooler/aten::select/Gather")
    pooled = b.MatMul(first, net.weights(_WIDTH, _WIDTH), name="__module.bert.pooler.dense/aten::linear/MatMul")
    pooled = b.Tanh(pooled, name="__module.bert.pooler.activation/aten::tanh/Tanh")
    return b.model({"last_hidden_state": x, "pooler_output": pooled}, name="bert")


def llama(layers: int = 16, *, seed: int = 0) -> irrun.Model:
    """Return a decoder as Llama's without a cache: attention, and a gated block, with RMS norms between."""
    net = _Named(seed)
    ids = b.parameter([1, 4], "i64", name="input_ids")
    x = b.Gather(net.weights(30, _WIDTH), ids, 0, name="__module.model.embed_tokens/ov_ext::embedding/Gather")
    for number in range(layers):
        name = f"__module.model.layers.{number}"
        normal = net.normalized(x, f"{name}.input_layernorm")
        mixed = net.attention(normal, f"{name}.self_attn", ("q_proj", "k_proj", "v_proj"))
        mixed = net.linear(mixed, f"{name}.self_attn.o_proj")
        x = b.Add(x, mixed, name=f"{name}/aten::add/Add")
        normal = net.normalized(x, f"{name}.post_attention_layernorm")
        gate = b.Swish(net.linear(normal, f"{name}.mlp.gate_proj"), name=f"{name}.mlp.act_fn/aten::silu/Swish")
        inner = b.Multiply(gate, net.linear(normal, f"{name}.mlp.up_proj"), name=f"{name}.mlp/aten::mul/Multiply")
        x = b.Add(x, net.linear(inner, f"{name}.mlp.down_proj"), name=f"{name}/aten::add/Add_1")
    logits = b.MatMul(x, net.weights(30, _WIDTH), transpose_b=True, name="__module.lm_head/ov_ext::linear/MatMul")
    return b.model({"logits": logits}, name="llama")
