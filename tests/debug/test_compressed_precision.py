"""irrun precision of compressed models beside their twins in floating point."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import irrun
from compressed_decoders import Planted, compressed, int4
from irrun import build as b
from irrun.debug import Limit, Precision, Tolerances, Twin, precision
from irrun.diagnostics import EngineError, FeedError

RNG = np.random.default_rng(11)
ROWS, COLUMNS = 12, 32
WEIGHT = RNG.standard_normal((ROWS, COLUMNS)).astype(np.float32)
X = RNG.standard_normal((5, COLUMNS)).astype(np.float32)


def kept(result: Precision) -> set[str]:
    assert result.kept is not None
    return {layer.name for layer in result.kept.layers}


def twin_of(result: Precision) -> Twin:
    assert result.twin is not None
    return result.twin


def decibels(true: np.ndarray, other: np.ndarray) -> float:
    true, other = true.astype(np.float64), other.astype(np.float64)
    return 10 * math.log10(np.square(true).sum() / np.square(true - other).sum())


# ---------------------------------------------------------------------------------------------
# the layers whose exemption restores the text


def _named(planted: Planted) -> Precision:
    """Drop the exemptions, require that the result names exactly these layers, and return it."""
    result = precision(planted.compressed(()), planted.feeds, twin=planted.twin(), text=True)
    assert result.verdict == "differ"
    assert kept(result) == planted.names
    assert set(result.ignored_scope()["names"]) == planted.names
    assert {layer.name for layer in result.layers[: len(planted.names)]} == planted.names
    assert result.kept is not None
    assert result.kept.minimal
    assert twin_of(result).is_explained
    return result


def test_the_dropped_exemptions_are_named() -> None:
    """The four layers are those of ``Planted.drawn(5)``, which runs the decoder with other exemptions to verify them."""
    result = _named(Planted(5, frozenset({"0/down", "0/v", "1/o", "1/v"})))
    forms = {form.form: form for form in twin_of(result).forms}
    assert len(forms["i4 symmetric, groups of 16"].layers) == 12
    assert forms["f32"].layers == ("embeddings", "head")
    assert forms["f32"].is_exact


@pytest.mark.slow
@pytest.mark.parametrize("seed", [101, 202, 303, 404, 505])
def test_the_dropped_exemptions_of_five_decoders_are_named(seed: int) -> None:
    planted = Planted.drawn(seed)
    _named(planted)
    good = precision(planted.compressed(planted.names), planted.feeds, twin=planted.twin(), text=True, runs=1)
    assert good.verdict == "agree"
    exact = next(form for form in twin_of(good).forms if form.is_exact)
    assert {*exact.layers} == {*planted.names, "embeddings", "head"}


# ---------------------------------------------------------------------------------------------
# the forms of weights


def u4(weight: np.ndarray, group: int) -> tuple[Any, np.ndarray]:
    """Return a matrix in u4 with zero points and scales in f16, and its values."""
    groups = weight.reshape(len(weight), -1, group)
    low, high = groups.min(-1, keepdims=True), groups.max(-1, keepdims=True)
    scales = ((high - low) / 15).astype(np.float16)
    zeros = np.clip(np.rint(-low / scales.astype(np.float32)), 0, 15)
    codes = np.clip(np.rint(groups / scales.astype(np.float32)) + zeros, 0, 15)
    y, z = (
        b.Convert(b.constant(n.astype(np.uint8).astype(ml_dtypes.uint4), "u4"), destination_type="f16")
        for n in (codes, zeros)
    )
    y = b.Reshape(b.Multiply(b.Subtract(y, z), b.constant(scales)), np.array(weight.shape), special_zero=False)
    values = (codes - zeros) * scales.astype(np.float64)
    return b.Convert(y, destination_type="f32"), values.reshape(weight.shape)


def i4(weight: np.ndarray, group: int) -> tuple[Any, np.ndarray]:
    codes, scales = int4(weight, group)
    return compressed(weight, group, "codes"), (codes * scales.astype(np.float64)).reshape(weight.shape)


def i8(weight: np.ndarray, _: int) -> tuple[Any, np.ndarray]:
    """Return a matrix in i8 with a scale in f32 for each row, and its values."""
    scales = np.abs(weight).max(-1, keepdims=True) / np.float32(127)
    codes = np.rint(weight / scales)
    y = b.Multiply(b.Convert(b.constant(codes.astype(np.int8)), destination_type="f32"), b.constant(scales))
    return y, codes * scales.astype(np.float64)


def half(weight: np.ndarray, _: int) -> tuple[Any, np.ndarray]:
    values = weight.astype(np.float16)
    return b.Convert(b.constant(values), destination_type="f32"), values.astype(np.float64)


def fake_quantized(weight: np.ndarray, _: int) -> tuple[Any, np.ndarray]:
    """Return a matrix that FakeQuantize rounds to 255 levels for each row, and its values."""
    high = np.abs(weight).max(-1, keepdims=True)
    step = high.astype(np.float64) / 127
    limits = [b.constant(limit) for limit in (-high, high, -high, high)]
    return b.FakeQuantize(b.constant(weight), *limits, levels=255), np.rint(weight / step) * step


def linear(weight: Any, *, transpose_b: bool = True, name: str = "product", last: Any = None) -> irrun.Model:
    x = b.parameter([-1, COLUMNS], "f32", name="x")
    y = b.MatMul(x, weight, transpose_b=transpose_b, name=name)
    return b.model({"y": y if last is None else b.Multiply(y, np.float32(last))})


FORMS: dict[str, tuple[Callable[[np.ndarray, int], tuple[Any, np.ndarray]], int, str, int]] = {
    "i4": (i4, 8, "i4 symmetric, groups of 8", 4),
    "i4 per channel": (i4, COLUMNS, "i4 symmetric, one scale per channel", 4),
    "u4": (u4, 16, "u4 asymmetric, groups of 16", 4),
    "i8": (i8, 0, "i8 symmetric, one scale per channel", 8),
    "f16": (half, 0, "f16", 16),
    "FakeQuantize": (fake_quantized, 0, "f32, FakeQuantize", 32),
}


@pytest.mark.parametrize("case", FORMS)
def test_the_form_and_the_ratio_of_each_weight(case: str) -> None:
    make, group, form, bits = FORMS[case]
    node, values = make(WEIGHT, group)
    result = precision(linear(node), {"x": X}, twin=linear(b.constant(WEIGHT)))
    (layer,) = result.layers
    assert layer.form == form
    assert layer.weight_snr == pytest.approx(decibels(WEIGHT, values), abs=0.01)
    assert layer.snr == pytest.approx(decibels(X @ WEIGHT.T, X @ values.T), abs=0.01)
    assert layer.effect == pytest.approx(layer.error, rel=1e-4)
    assert [(f.bits, f.layers, f.worst) for f in twin_of(result).forms] == [(bits, ("product",), "product")]
    assert twin_of(result).is_explained


@pytest.mark.parametrize("mine", [True, False])
@pytest.mark.parametrize("its", [True, False])
def test_a_matrix_may_be_transposed_in_either_model(mine: bool, its: bool) -> None:
    square = RNG.standard_normal((COLUMNS, COLUMNS)).astype(np.float32)
    node, values = u4(square if its else square.T.copy(), 16)
    values = values if its else values.T
    twin = linear(b.constant(square if mine else square.T.copy()), transpose_b=mine)
    (layer,) = precision(linear(node, transpose_b=its), {"x": X}, twin=twin).layers
    assert layer.weight_snr == pytest.approx(decibels(square, values), abs=0.01)
    assert layer.snr == pytest.approx(decibels(X @ square.T, X @ values.T), abs=0.01)


@pytest.mark.parametrize("transpose_b", [True, False])
@pytest.mark.parametrize("to", ["int4", "int4-asymmetric"])
@pytest.mark.parametrize(
    ("size", "used"),
    [(16, 16), (48, 48), (0, 48), (32, 16), (40, 48)],  # 32 is halved to divide 48; 40 is not halved below 16
)
def test_int4_is_simulated(to: str, transpose_b: bool, size: int, used: int) -> None:
    weight, x = RNG.standard_normal((ROWS, 48)).astype(np.float32), RNG.standard_normal((5, 48)).astype(np.float32)
    _, values = (i4 if to == "int4" else u4)(weight, used)
    data = b.parameter([-1, 48], "f32", name="x")
    product = b.MatMul(data, weight if transpose_b else weight.T.copy(), transpose_b=transpose_b, name="product")
    model = b.model({"y": b.Multiply(b.MatMul(product, b.Transpose(product, [1, 0])), np.float32(1))})
    (layer,) = precision(model, {"x": x}, to=to, group_size=size).layers  # a product of two values keeps its precision
    assert layer.name == "product"
    assert layer.snr == pytest.approx(decibels(x @ weight.T, x @ values.T), abs=0.01)


def test_layers_between_the_weight_and_its_reader() -> None:
    node, values = i8(WEIGHT, 0)
    compressed_model = linear(b.Transpose(node, [1, 0]), transpose_b=False)
    (layer,) = precision(compressed_model, {"x": X}, twin=linear(b.constant(WEIGHT.T.copy()), transpose_b=False)).layers
    assert layer.form == "i8 symmetric, one scale per channel"
    assert layer.weight_snr == pytest.approx(decibels(WEIGHT, values), abs=0.01)


def test_a_twin_in_f16_and_other_names() -> None:
    node, values = i4(WEIGHT, 8)
    stored = WEIGHT.astype(np.float16)
    twin = linear(b.Convert(b.constant(stored), destination_type="f32"), name="dense")
    result = precision(linear(node, name="MatMul_71"), {"x": X}, twin=twin)
    assert [layer.name for layer in result.layers] == ["dense"]  # the name that NNCF finds in the twin
    assert result.layers[0].weight_snr == pytest.approx(decibels(stored, values), abs=0.01)


def embedder(table: Any, head: Any) -> irrun.Model:
    """Build a model that embeds tokens and multiplies the embeddings by the matrix ``head``."""
    ids = b.parameter([-1, -1], "i64", name="ids")
    rows = b.Gather(table, ids, 0, name="embeddings")
    return b.model({"logits": b.MatMul(rows, head, transpose_b=True, name="head")})


def test_layers_that_share_a_weight_are_exempted_together() -> None:
    table = RNG.standard_normal((40, 16)).astype(np.float32)
    table[::3] *= 30
    node, values = i4(table, 16)
    shared = b.constant(table)
    ids = np.arange(40).reshape(1, 40)
    result = precision(embedder(node, node), {"ids": ids}, twin=embedder(shared, shared), tolerances=strict())
    assert kept(result) == {"embeddings", "head"}
    embedded = next(layer for layer in result.layers if layer.name == "embeddings")
    assert embedded.snr == pytest.approx(decibels(table, values), abs=0.01)
    assert [form.layers for form in twin_of(result).forms] == [("embeddings", "head")]


def strict() -> Tolerances:
    return Tolerances(everywhere=Limit(0, 1e-6))


def test_a_weight_in_the_body_of_a_loop() -> None:
    square = RNG.standard_normal((4, 4)).astype(np.float32) / 4
    _, values = i8(square, 0)

    def looped(weight: Callable[[], Any]) -> irrun.Model:
        x = b.parameter([1, 4], "f32", name="x")
        y = b.Loop(3, True, x, body=lambda i, y: [True, b.MatMul(y, weight(), name="inner")], name="loop")
        return b.model({"y": y})

    result = precision(looped(lambda: i8(square, 0)[0]), {"x": X[:1, :4]}, twin=looped(lambda: b.constant(square)))
    (layer,) = result.layers
    assert layer.name == "loop/inner"
    assert layer.is_inner
    assert layer.weight_snr == pytest.approx(decibels(square, values), abs=0.01)


# ---------------------------------------------------------------------------------------------
# quantized values


def test_fake_quantize_saturates() -> None:
    """x is quantized to the range -1 to 1, with 256 levels, for two readers."""

    def build(quantizes: bool) -> irrun.Model:
        x = b.parameter([-1, COLUMNS], "f32", name="x")
        limits = [b.constant(np.float32(n)) for n in (-1, 1, -1, 1)]
        y = b.FakeQuantize(x, *limits, levels=256, name="x/fq") if quantizes else x
        first = b.MatMul(y, b.constant(WEIGHT), transpose_b=True, name="first")
        return b.model({"a": first, "c": b.Multiply(y, np.float32(2), name="second")})

    result = precision(build(True), {"x": X}, twin=build(False))
    (quantizer,) = twin_of(result).quantizers
    step = 2 / 255
    rounded = np.rint((np.clip(X.astype(np.float64), -1, 1) + 1) / step) * step - 1
    assert (quantizer.name, quantizer.levels, set(quantizer.readers)) == ("x/fq", 256, {"first", "second"})
    assert quantizer.saturated == pytest.approx((np.abs(X) > 1).mean())
    assert quantizer.snr == pytest.approx(decibels(X, rounded), abs=0.01)
    layers = {layer.name: layer for layer in result.layers}
    assert layers["first"].form == "FakeQuantize 256"
    assert layers["first"].weight_snr is None
    assert layers["first"].snr == pytest.approx(decibels(X @ WEIGHT.T, rounded @ WEIGHT.T), abs=0.01)
    assert kept(result) == {"first", "second"}


def test_scales_in_front_of_a_layer_belong_to_it() -> None:
    """The weight is that of the twin times 2, 4, 8, … by channel, and the values are divided by these."""
    scales = (2.0 ** np.arange(1, COLUMNS + 1) / 2.0**16).astype(np.float32)
    node, values = i8(WEIGHT * scales, 0)
    x = b.parameter([-1, COLUMNS], "f32", name="x")
    scaled = b.Multiply(x, 1 / scales, name="scaled")
    model = b.model({"y": b.MatMul(scaled, node, transpose_b=True, name="product")})
    result = precision(model, {"x": X}, twin=linear(b.constant(WEIGHT)))
    (layer,) = result.layers
    assert layer.form == "i8 symmetric, one scale per channel, Multiply"
    assert layer.snr == pytest.approx(decibels(X @ WEIGHT.T, X @ (values / scales).T), abs=0.01)
    assert twin_of(result).is_explained


# ---------------------------------------------------------------------------------------------
# the text


def _speaker(logits: np.ndarray) -> irrun.Model:
    """Build a model whose logits [1, positions, vocabulary] are those of the table at each of its tokens."""
    ids = b.parameter([1, -1], "i64", name="ids")
    return b.model({"logits": b.Gather(b.constant(logits.astype(np.float32)), ids, 0, name="table")})


def test_tokens_are_judged_beyond_near_ties() -> None:
    """The standard deviation of the true logits 0, 0, 4, 4 - gap is near 2: a gap of 0.3 is near 0.125 * 2 + 0.0625."""
    true = np.array([[0, 0, 4, 3.75], [0, 0, 4, 3.6], [0, 0, 4, 3.6], [1, 0, 0, 0]])
    other = np.array([[0, 0, 4, 4.1], [0, 0, 4, 4.1], [0, 0, 4, 3.9], [1, 0.9, 0, 0]])
    spread = true.std(-1)
    assert 0.0625 + 0.125 * spread[0] > 0.25
    assert 0.0625 + 0.125 * spread[1] < 0.4
    ids = {"ids": np.arange(4)[None]}

    def outside(**more: Any) -> tuple[int, tuple[int, ...] | None]:
        found = precision(_speaker(other), ids, twin=_speaker(true), text=True, **more).outputs[0].measurement
        assert found.size == 4
        return found.outside, found.worst

    assert outside() == (1, (0, 1))
    assert outside(tolerances=Tolerances(everywhere=Limit(0, 0))) == (2, (0, 0))
    assert outside(tolerances=Tolerances(everywhere=Limit(0.5, 0))) == (0, None)


def test_text_also_judges_a_simulated_precision() -> None:
    true = np.array([[1, 1.0001], [0, 1]])
    ids = {"ids": np.arange(2)[None]}
    limits = Tolerances(everywhere=Limit(0, 0))
    result = precision(_speaker(true), ids, to="bf16", text=True, tolerances=limits)
    assert (result.verdict, result.outputs[0].measurement.outside) == ("differ", 1)  # both logits are 1 in bf16
    with pytest.raises(EngineError, match="no text was compared"):
        precision(linear(b.constant(WEIGHT)), {"x": X}, text=True)


# ---------------------------------------------------------------------------------------------
# models that are no twins


def test_what_weights_do_not_explain_is_reported() -> None:
    node, _ = i8(WEIGHT, 0)
    result = precision(linear(node, last=1.5), {"x": X}, twin=linear(b.constant(WEIGHT)))
    twin = twin_of(result)
    assert not twin.is_explained
    assert twin.rest == pytest.approx(0.5, abs=0.01)
    assert result.verdict == "differ"
    assert result.kept is None  # no exemption restores the outputs


def test_a_twin_of_another_model_is_refused() -> None:
    node, _ = i8(WEIGHT, 0)
    with pytest.raises(EngineError, match=r'the input "x" of .* has no counterpart'):
        precision(linear(node), {"x": X}, twin=embedder(b.constant(WEIGHT), b.constant(WEIGHT)))
    other = linear(b.constant(WEIGHT[:7]))
    with pytest.raises(EngineError, match=r"is no twin of .*: of 1 layers with weights, only 0 have a counterpart"):
        precision(linear(node), {"x": X}, twin=other)
    with pytest.raises(FeedError, match="no input"):
        precision(linear(node), {"z": X}, twin=linear(b.constant(WEIGHT)))


def test_the_record_is_json(tmp_path: Path) -> None:
    node, _ = i4(WEIGHT, 8)
    for name, weight in (("float", b.constant(WEIGHT)), ("int4", node)):
        irrun.save_model(linear(weight), tmp_path / f"{name}.xml")
    result = precision(tmp_path / "int4.xml", {"x": X}, twin=tmp_path / "float.xml", tolerances=strict())
    record = json.loads(json.dumps(result.record()))
    assert record["precision"] == "compressed"
    assert record["twin"]["path"] == str(tmp_path / "float.xml")
    assert record["twin"]["forms"][0]["form"] == "i4 symmetric, groups of 8"
    assert record["layers"][0]["form"] == "i4 symmetric, groups of 8"
    assert record["layers"][0]["file"] == str(tmp_path / "float.xml")
    assert record["keep"]["layers"] == ["product"]
