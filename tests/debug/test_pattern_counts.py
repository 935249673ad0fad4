"""Each pattern of a file is counted once: in small models, and in the networks of the benchmark."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

import irrun
from irrun import build as b
from irrun.debug.runtime.layers import FileGraph
from irrun.debug.runtime.patterns import PATTERNS
from irrun.inference.trace import Trace


def _counts(model: irrun.Model) -> dict[str, int]:
    """Return how often a model has each pattern that it has."""
    graph = FileGraph(Trace(model))
    return {pattern.name: count for pattern in PATTERNS if (count := len(pattern.matches(graph)))}


def _one(value: float) -> np.ndarray:
    return np.array(value, np.float32)


def _normalized(*, centred: bool, form: str) -> irrun.Model:
    """Return LayerNorm or RMSNorm as x / root, as x * (1 / root), or as x * y ** -0.5, with a gain."""
    x: Any = b.parameter([2, 8, 16], "f32", name="x")
    if centred:
        x = b.Subtract(x, b.ReduceMean(x, np.array([-1]), keep_dims=True), name="centred")
    mean = b.ReduceMean(b.Power(x, _one(2)), np.array([-1]), keep_dims=True)
    total = b.Add(mean, _one(1e-5))
    if form == "divided":
        y = b.Divide(x, b.Sqrt(total))
    elif form == "inverse":
        y = b.Multiply(x, b.Divide(_one(1), b.Sqrt(total)))
    else:
        y = b.Multiply(x, b.Power(total, _one(-0.5)))
    return b.model({"y": b.Multiply(np.ones(16, np.float32), y)})


@pytest.mark.parametrize("form", ["divided", "inverse", "power"])
@pytest.mark.parametrize("centred", [True, False])
def test_a_normalization_is_one(form: str, centred: bool) -> None:
    assert _counts(_normalized(centred=centred, form=form)) == {"LayerNorm" if centred else "RMSNorm": 1}


def test_an_attention_whose_weights_two_products_read_is_one() -> None:
    q, k, v = (b.parameter([1, 4, 8, 16], "f32", name=name) for name in "qkv")
    weights = b.SoftMax(b.MatMul(q, k, transpose_b=True), axis=-1)
    model = b.model({"y": b.MatMul(weights, v), "z": b.MatMul(weights, k)})
    assert _counts(model) == {"attention": 1}


def _quantized(x: Any) -> Any:
    return b.FakeQuantize(x, _one(0), _one(2), _one(0), _one(2), levels=256)


def _weights(*shape: int) -> Any:
    codes = b.Convert(b.constant(np.ones(shape, np.int8)), destination_type="f32")
    return b.Multiply(codes, _one(0.1))


def test_a_product_of_quantized_data_and_codes_is_one() -> None:
    """The codes are those of an int8 product, and not compressed weights of a product of floats."""
    x = b.parameter([2, 16], "f32", name="x")
    assert _counts(b.model({"y": b.MatMul(_quantized(x), _weights(16, 4))})) == {"quantized product": 1}
    assert _counts(b.model({"y": b.MatMul(x, _weights(16, 4))})) == {"compressed weights": 1}


def test_a_product_of_joined_quantized_data_is_one() -> None:
    """Every part of the Concat must be quantized."""
    x, y = (b.parameter([1, 4, 8, 8], "f32", name=name) for name in "xy")
    pads = {"strides": [1, 1], "pads_begin": [0, 0], "pads_end": [0, 0], "dilations": [1, 1]}
    joined = b.Concat(_quantized(x), b.Concat(_quantized(y), _quantized(x), axis=1), axis=1)
    assert _counts(b.model({"z": b.Convolution(joined, _weights(4, 12, 1, 1), **pads)})) == {"quantized product": 1}
    half = b.Concat(_quantized(x), b.Sigmoid(y), axis=1)
    assert _counts(b.model({"z": b.Convolution(half, _weights(4, 8, 1, 1), **pads)})) == {}
    turned = b.ConvolutionBackpropData(_quantized(x), _weights(4, 2, 1, 1), **pads)
    assert _counts(b.model({"z": turned})) == {"quantized product": 1}


PARTS: Final[Mapping[str, tuple[dict[str, int], dict[str, int]]]] = {
    # 7x7 + 16 blocks of 3 + 4 shortcuts = 53 convolutions, 1 Linear
    "resnet50": ({}, {"quantized product": 53 + 1}),
    # the first + a block of 2 + 16 blocks of 3 + the last, 1 Linear
    "mobilenet_v2": ({}, {"quantized product": 1 + 2 + 16 * 3 + 1 + 1}),
    # 2 convolutions at each of 5 levels and of 4 merges, 4 transposed ones, the last
    "unet": ({}, {"quantized product": 5 * 2 + 4 * 2 + 4 + 1}),
    # 7 Residuals of 2 convolutions and a Linear, 2 + 3 shortcuts, 2 that shrink, first and last; 2 Linears of the time,
    # 2 Attentions of 2 Linears
    "diffusion_unet": ({}, {"quantized product": 7 * 3 + 5 + 2 + 2 + 2 + 2 * 2}),
    # 2 norms a layer and that of the embeddings; query, key, value, output and 2 of the MLP
    "bert_base": ({"LayerNorm": 12 * 2 + 1}, {"compressed weights": 12 * 6}),
    # 2 norms a layer and the last; as BERT, and the classifier
    "vit_b16": ({"LayerNorm": 12 * 2 + 1}, {"compressed weights": 12 * 6 + 1}),
    # 12 layers of 2 norms, those of the patches and of 3 mergers, the last; as ViT, and the mergers
    "swin_t": ({"LayerNorm": 12 * 2 + 1 + 3 + 1}, {"compressed weights": 12 * 6 + 3 + 1}),
    "whisper_encoder": ({"LayerNorm": 4 * 2 + 1}, {"compressed weights": 4 * 6}),
    # query, key and value are one product
    "gpt2": ({"LayerNorm": 12 * 2 + 1}, {"compressed weights": 12 * 4 + 1}),
    # 2 norms a layer and the last, query and key are rotated; 4 products of attention and 3 of the MLP, the head
    "decoder": ({"RMSNorm": 12 * 2 + 1, "rotary embedding": 12 * 2}, {"compressed weights": 12 * 7 + 1}),
    "lstm_tagger": ({}, {"compressed weights": 1}),
}
"""The patterns of each network, in every form and in int8, counted by hand in ``benchmarks/architectures.py``.

OpenVINO's converter writes Gelu, attention and GroupNorm as the operations Gelu, ScaledDotProductAttention and
GroupNormalization: the files do not have their patterns.
"""


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of torch and of NNCF
@pytest.mark.parametrize("form", ["f32", "int8"])
@pytest.mark.parametrize("name", PARTS)
def test_the_patterns_of_a_network(name: str, form: str, tmp_path: Path) -> None:
    for package in ("torch", "transformers", "nncf"):
        pytest.importorskip(package, reason="the networks need the extra `bench`")
    import openvino as ov

    from benchmarks.architectures import FORMS, converted

    model, calls = converted(name)
    changed = FORMS[form](model, [x.numpy() for x in calls[0]])
    ov.save_model(changed, tmp_path / "model.xml", compress_to_fp16=False)
    always, in_int8 = PARTS[name]
    assert _counts(irrun.read_model(tmp_path / "model.xml")) == always | (in_int8 if form == "int8" else {})
