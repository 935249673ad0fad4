"""Folders of small language models with random weights, as optimum-intel writes them."""

from __future__ import annotations

import json
import tarfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import irrun
from irrun import build as b
from places import TESTS

RECORDED = TESTS / "extensions" / "recorded.tar.xz"
VOCABULARY = 700


def product(name: str, x: Any, weight: np.ndarray, transpose_b: bool) -> Any:
    """Return the product with a matrix, or with its rows as the columns of the result if ``transpose_b``."""
    return b.MatMul(x, weight, transpose_b=transpose_b, name=name)


def decoder(vocabulary: int = VOCABULARY, *, inputs: tuple[str, ...] = (), width: int = 32, layers: int = 2, seed: int = 0, product: Callable[[str, Any, np.ndarray, bool], Any] = product, table: Callable[[np.ndarray], Any] = b.constant, kernel: int = 0) -> irrun.Model:  # fmt: skip
    """Build a stateful decoder in the manner of Llama.

    ``inputs`` are those beside input_ids, by default attention_mask, position_ids and beam_idx. Without a mask or
    positions, the model counts what its variables hold. ``product`` builds each product with weights, by its name,
    and ``table`` the embeddings of the tokens. With a ``kernel``, a causal convolution of so many tokens comes first, in
    the manner of LFM2, whose variable holds its last inputs.
    """
    rng = np.random.default_rng(seed)
    heads, names = 4, inputs or ("attention_mask", "position_ids", "beam_idx")
    size = width // heads

    def weights(*shape: int) -> np.ndarray:
        return rng.normal(0, 0.6 / shape[-1] ** 0.5, shape).astype(np.float32)

    given = {name: b.parameter([None] if name == "beam_idx" else [None, None], "i32" if name == "beam_idx" else "i64", name=name) for name in ("input_ids", *names)}  # fmt: skip
    ids = given["input_ids"]
    x = b.Gather(table(rng.normal(0, 1, (vocabulary, width)).astype(np.float32)), ids, 0, name="embeddings")
    batch = b.Gather(b.ShapeOf(ids, output_type="i64"), [0], 0)
    fresh = b.Broadcast(np.float32(0), b.Concat([batch, [heads, 0, size]], axis=0), name="fresh")
    sinks: list[Any] = []

    def cached(now: Any, name: str) -> Any:
        held = b.ReadValue(fresh, variable_id=name, variable_type="f32", variable_shape=f"?,{heads},?,{size}")
        past = b.Gather(held, given["beam_idx"], 0) if "beam_idx" in given else held
        whole = b.Concat([past, now], axis=2)
        sinks.append(b.Assign(whole, variable_id=name))
        return whole

    def split(y: Any) -> Any:
        return b.Transpose(b.Reshape(y, [0, 0, heads, size], special_zero=True), [0, 2, 1, 3])

    if kernel:
        name = "cache_params.past.conv.0"
        zeros = b.Broadcast(np.float32(0), b.Concat([batch, [width, kernel]], axis=0))
        held = b.ReadValue(zeros, variable_id=name, variable_type="f32", variable_shape=f"?,{width},{kernel}")
        past = b.Gather(held, given["beam_idx"], 0) if "beam_idx" in given else held
        whole = b.Concat([past, b.Transpose(x, [0, 2, 1])], axis=-1)
        sinks.append(b.Assign(b.Slice(whole, [-kernel], [2**31 - 1], [1], [2]), variable_id=name))
        filters = rng.normal(0, kernel**-0.5, (width, 1, 1, kernel)).astype(np.float32)
        rows = b.GroupConvolution(
            whole, filters, strides=[1], pads_begin=[0], pads_end=[0], dilations=[1], name="convolution"
        )
        x = b.Add(x, b.Transpose(b.Slice(rows, [1], [2**31 - 1], [1], [2]), [0, 2, 1]))
    mask = None
    for layer in range(layers):
        normal = b.MVN(x, [-1], eps=1e-5, eps_mode="inside_sqrt", normalize_variance=True)
        query, key, value = (split(product(f"{layer}/{n}", normal, weights(width, width), True)) for n in "qkv")
        if "position_ids" in given:
            angles = b.Multiply(b.Unsqueeze(b.Convert(given["position_ids"], destination_type="f32"), [1, 3]), 0.1)
            query, key = (b.Add(b.Multiply(y, b.Cos(angles)), b.Multiply(y, b.Sin(angles))) for y in (query, key))
        key, value = cached(key, f"past_key_values.{layer}.key"), cached(value, f"past_key_values.{layer}.value")
        if mask is None:
            total = b.Gather(b.ShapeOf(key, output_type="i64"), 2, 0)
            length = b.Gather(b.ShapeOf(ids, output_type="i64"), 1, 0)
            places = b.Range(0, total, 1, output_type="i64")
            rows = b.Range(b.Subtract(total, length), total, 1, output_type="i64")
            mask = b.LessEqual(b.Unsqueeze(places, 0), b.Unsqueeze(rows, 1))
            if "attention_mask" in given:
                mask = b.LogicalAnd(
                    b.Unsqueeze(mask, [0, 1]), b.Unsqueeze(b.Greater(given["attention_mask"], 0), [1, 2])
                )
            else:
                mask = b.Unsqueeze(mask, [0, 1])
        attended = b.ScaledDotProductAttention(query, key, value, mask, causal=False)
        merged = b.Reshape(b.Transpose(attended, [0, 2, 1, 3]), [0, 0, width], special_zero=True)
        x = b.Add(x, product(f"{layer}/o", merged, weights(width, width), True))
        up = b.Tanh(product(f"{layer}/up", x, weights(width, width), False))
        x = b.Add(x, product(f"{layer}/down", up, weights(width, width), False))
    logits = product("head", x, rng.normal(0, 1, (vocabulary, width)).astype(np.float32), True)
    return b.model({"logits": logits}, inputs=list(given.values()), sinks=sinks, name="decoder")


@cache
def _tokenizers() -> dict[str, bytes]:
    with tarfile.open(RECORDED) as archive:
        files = [(member.name, archive.extractfile(member)) for member in archive.getmembers() if member.isfile()]
        return {name: file.read() for name, file in files if file is not None}


def tokenizer(folder: Path, kind: str) -> None:
    """Write the tokenizer and the detokenizer of a trained kind (``tokenization/train.py``)."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in _tokenizers().items():
        if name.startswith(f"{kind}/"):
            (folder / name.partition("/")[2]).write_bytes(data)


def write(folder: Path, kind: str = "llama3", model: irrun.Model | None = None, **files: Any) -> Path:
    """Write a whole folder. ``files`` are the contents of JSON files by name without ``.json``."""
    tokenizer(folder, kind)
    irrun.save_model(decoder() if model is None else model, folder / "openvino_model.xml")
    for name, data in {"config": {"model_type": "llama"}, "generation_config": {"eos_token_id": 0}, **files}.items():
        if data is not None:
            (folder / f"{name}.json").write_text(json.dumps(data), "utf-8")
    return folder
