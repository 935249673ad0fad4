"""Budgets of error: what a precision explains, and faults that are smaller than its errors in the outputs."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irrun
from irrun import build as b
from irrun.debug import Limit, Tolerances, compare
from irrun.debug.budget import Judge
from irrun.debug.budget.noise import pooled
from irrun.debug.budget.precisions import InEffect
from irrun.debug.budget.saturation import SATURATING
from irrun.debug.budget.shown import Shown
from irrun.debug.metrics import Budget
from irrun.debug.shelf import Shelf
from irrun.engines import Place
from irrun.model import is_constant
from judging import judged
from small_networks import bert, resnet

SIDES = ("openvino", "openvino[precision=bf16]", "openvino[precision=f32]")


@pytest.fixture(scope="module", params=[bert, resnet], ids=lambda build: build.__name__)
def network(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    import openvino as ov

    build: Callable[[Any], Any] = request.param
    path = tmp_path_factory.mktemp("network") / f"{build.__name__}.xml"
    ov.save_model(build(ov), path, compress_to_fp16=False)
    return path


@pytest.mark.parametrize("side", SIDES)
def test_a_healthy_network_agrees(network: Path, side: str) -> None:
    comparison = compare(str(network), f"{side}:{network}")
    assert comparison.agrees
    assert all(layer.budget is not None and layer.budget.is_explained for layer in comparison.outputs)


@pytest.mark.parametrize("side", SIDES)
def test_a_channel_that_is_scaled_is_named(network: Path, side: str, tmp_path: Path) -> None:
    """One channel of one weight is larger by 1 %: bf16 itself errs by as much in single elements."""
    model = irrun.read_model(network)
    reader, weight = next(
        (model.layers[id], model.layers[feeds[1][0]])
        for id, feeds in model.feeds.items()
        if model.layers[id].type in ("MatMul", "Convolution") and feeds[1] and is_constant(model.layers[feeds[1][0]])
    )
    data = bytearray(network.with_suffix(".bin").read_bytes())
    offset, size = (int(weight.attributes[name]) for name in ("offset", "size"))
    shape = [int(dim) for dim in weight.attributes["shape"].split(",")]
    values = np.frombuffer(data, np.float32, size // 4, offset).reshape(shape)
    values[0] *= 1.01
    wrong = tmp_path / "wrong.xml"
    wrong.write_bytes(network.read_bytes())
    wrong.with_suffix(".bin").write_bytes(data)
    comparison = compare(str(network), f"{side}:{wrong}")
    assert comparison.verdict == "differ"
    assert comparison.first is not None
    assert comparison.first.layer.name == reader.name


_ROWS_IN_F16 = ("irrun", "irrun[precision=int8-activations]", "openvino", "openvino[precision=f32]")


@pytest.mark.parametrize("side", _ROWS_IN_F16)
def test_weights_that_are_decompressed_in_f16_agree(side: str, tmp_path: Path) -> None:
    """irrun rounds them to f16 as the file says, OpenVINO does not. A scale that is wrong by 0.2 % is named."""
    for name, factor in (("right", 1.0), ("wrong", 1.002)):
        rng = np.random.default_rng(0)
        codes = b.Convert(b.constant(rng.integers(-8, 8, (160, 2, 64)), "i4"), destination_type="f16")
        scales = rng.uniform(0.01, 0.02, (160, 2, 1)).astype(np.float16)
        scales[3] *= np.float16(factor)
        table = b.Reshape(b.Multiply(codes, scales), np.array([160, 128]), special_zero=False)
        weights = b.Convert(table, destination_type="f32")
        rows = b.Gather(weights, b.parameter([5], "i64", name="ids"), 0, name="rows")
        irrun.save_model(b.model([b.MatMul(rows, weights, transpose_b=True, name="product")]), tmp_path / f"{name}.xml")
    ids = {"ids": np.array([3, 0, 3, 150, 7])}
    right = compare(f"exact:{tmp_path / 'right.xml'}", f"{side}:{tmp_path / 'right.xml'}", ids)
    assert right.agrees
    wrong = compare(f"exact:{tmp_path / 'right.xml'}", f"{side}:{tmp_path / 'wrong.xml'}", ids)
    assert wrong.verdict == "differ"


def test_tolerances_decide_instead(network: Path) -> None:
    strict = Tolerances(everywhere=Limit(0, 0))
    comparison = compare(str(network), f"openvino[precision=bf16]:{network}", tolerances=strict)
    assert comparison.verdict == "differ"
    assert all(layer.budget is None for layer in comparison.layers)


@pytest.mark.parametrize("shape", [(1, 1, 64, 64), (1, 64, 16, 16), (1, 1000), (40, 50), (3, 3)])
def test_a_lucky_element_has_the_noise_of_others(shape: tuple[int, ...]) -> None:
    square = np.full(shape, 4.0)
    square[(0,) * len(shape)] = 0
    np.testing.assert_allclose(pooled(square, len(shape) == 4), np.broadcast_to(2.0, shape), rtol=0.15)


def test_a_place_lends_no_noise_to_others() -> None:
    square = np.full((1, 1, 64, 64), 1.0)
    square[..., :8, :] = 1e6
    assert pooled(square, True)[0, 0, 40, 40] < 2


@pytest.mark.parametrize("terms", [64, 1024])
@pytest.mark.parametrize("signs", ["both", "data positive", "all positive"])
@pytest.mark.parametrize("kind", ["MatMul", "Convolution"])
def test_a_chain_of_additions_is_explained_and_little_more(kind: str, signs: str, terms: int, tmp_path: Path) -> None:
    """No order of a sum errs more than a chain of additions in f32. A layer that errs 15 times as much is wrong."""
    rng = np.random.default_rng(0)
    data, weights = (rng.normal(size=(terms, count)).astype(np.float32) for count in (256, 16))
    data = data if signs == "both" else np.abs(data)
    weights = np.abs(weights) if signs == "all positive" else weights
    chain = np.zeros((16, 256), np.float32)
    for term, factor in zip(data.astype(np.float64), weights.astype(np.float64)):
        chain = (chain + np.outer(factor, term)).astype(np.float32)
    if kind == "MatMul":
        shape = (terms, 256)
        product = b.MatMul(weights, b.parameter(shape, name="x"), transpose_a=True, name="product")
    else:
        shape, chain = (1, terms, 16, 16), chain.reshape(1, 16, 16, 16)
        filters = np.ascontiguousarray(weights.T.reshape(16, terms, 1, 1))
        product = b.Convolution(
            b.parameter(shape, name="x"), filters, strides=[1, 1], pads_begin=[0, 0], pads_end=[0, 0],
            dilations=[1, 1], name="product",
        )  # fmt: skip
    true = (weights.astype(np.float64).T @ data).reshape(chain.shape)
    for times in (1, 15):
        (folder := tmp_path / str(times)).mkdir()
        shown = (true + times * (chain - true)).astype(np.float32)
        budget = judged(b.model([product]), data.reshape(shape), "product", shown, folder)
        assert budget.is_explained is (times == 1)


@pytest.mark.parametrize("channels", [16, 64])
def test_a_convolution_by_winograd_is_explained(channels: int, tmp_path: Path) -> None:
    """F(4x4, 3x3), with the points 0, 1, -1, 2, -2 and infinity, in f32."""
    rng = np.random.default_rng(0)
    data = rng.normal(size=(1, channels, 34, 34)).astype(np.float32)
    filters = rng.normal(size=(8, channels, 3, 3)).astype(np.float32)
    of_data = np.array(
        [[4, 0, -5, 0, 1, 0], [0, -4, -4, 1, 1, 0], [0, 4, -4, -1, 1, 0], [0, -2, -1, 2, 1, 0], [0, 2, -1, -2, 1, 0],
         [0, 4, 0, -5, 0, 1]], np.float32,
    )  # fmt: skip
    of_filters = np.array(
        [[6, 0, 0], [-4, -4, -4], [-4, 4, -4], [1, 2, 4], [1, -2, 4], [0, 0, 24]], np.float32
    ) / np.float32(24)
    of_sums = np.array([[1, 1, 1, 1, 1, 0], [0, 1, -1, 2, -2, 0], [0, 1, 1, 4, 4, 0], [0, 1, -1, 8, -8, 1]], np.float32)
    tiles = np.lib.stride_tricks.sliding_window_view(data[0], (6, 6), axis=(1, 2))[:, ::4, ::4]
    moved = of_data @ tiles @ of_data.T
    sums = np.einsum("ocyx,cijyx->oijyx", of_filters @ filters @ of_filters.T, moved)
    shown = (of_sums @ sums @ of_sums.T).swapaxes(2, 3).reshape(1, 8, 32, 32)
    windows = np.lib.stride_tricks.sliding_window_view(data[0].astype(np.float64), (3, 3), axis=(1, 2))
    true = np.einsum("ocyx,cijyx->oij", filters.astype(np.float64), windows, optimize=True)
    np.testing.assert_allclose(shown[0], true, atol=1e-3 * channels**0.5)
    product = b.Convolution(
        b.parameter(data.shape, name="x"), filters, strides=[1, 1], pads_begin=[0, 0], pads_end=[0, 0],
        dilations=[1, 1], name="product",
    )  # fmt: skip
    assert judged(b.model([product]), data, "product", shown, tmp_path).is_explained


def _pooling() -> irrun.Model:
    pool = b.MaxPool(
        b.ReLU(b.parameter([1, 2, 40, 40], name="x"), name="relu"), kernel=[2, 2], strides=[2, 2], dilations=[1, 1], pads_begin=[0, 0],
        pads_end=[0, 0], index_element_type="i64", axis=2, name="pool",
    )  # fmt: skip
    return b.model(dict(zip(("values", "places"), pool)))


def _judged(model: irrun.Model, x: np.ndarray, places: np.ndarray, read: np.ndarray, folder: Path) -> list[bool]:
    """Judge the two outputs of a pool. Another copy of the model, which has read ``read``, has shown the second."""
    shown, found = Shown(), dict[Place, Budget]()
    values = irrun.compile(model)(x)[0]
    judge = Judge(model, InEffect.of({}), InEffect.of({}), keep_state=False)
    with closing(Shelf(folder)) as shelf:
        shown.add(Place("pool"), 0, 0, shelf.keep_array(values), 0)
        shown.add(Place("pool", 1), 0, 1, shelf.keep_array(places), 1)
        shown.add(Place("relu"), 0, 0, shelf.keep_array(np.maximum(x, 0)), None)
        shown.repeat(Place("relu"), 1, shelf.keep_array(np.maximum(read, 0)))
        judge.run({0: x}, shown, lambda place, iteration, budget: found.__setitem__(place, budget))
        shown.drop()
    return [found[Place("pool", port)].is_explained for port in (0, 1)]


def test_any_of_equal_elements_is_the_greatest(tmp_path: Path) -> None:
    model, x = _pooling(), np.ones((1, 2, 40, 40), np.float32)
    last = irrun.compile(model)(x)[1] + 41
    assert _judged(model, x, last, x, tmp_path) == [True, True]
    x[..., 1::2, 1::2] = 0.9
    (folder := tmp_path / "other").mkdir()
    assert _judged(model, x, last, x, folder) == [True, False]


def test_each_output_of_a_layer_is_judged_by_what_its_copy_has_read(tmp_path: Path) -> None:
    model, rng = _pooling(), np.random.default_rng(0)
    x, read = (rng.normal(size=(1, 2, 40, 40)).astype(np.float32) for _ in range(2))
    assert _judged(model, x, irrun.compile(model)(read)[1], read, tmp_path) == [True, True]
    (folder := tmp_path / "other").mkdir()
    assert _judged(model, x, irrun.compile(model)(x)[1], read, folder) == [True, False]


@pytest.mark.parametrize(("scale", "explained"), [(1.0, True), (1.3, False)])
def test_activations_in_groups_beside_compressed_weights(scale: float, explained: bool, tmp_path: Path) -> None:
    """The product of i8 with a scale for each 32 elements is explained by the property that says so, and a fault not."""
    rng = np.random.default_rng(0)
    x, codes = rng.normal(size=(1, 16, 64)).astype(np.float32), rng.integers(-100, 100, (48, 64)).astype(np.int8)
    weights = b.Multiply(b.Convert(codes, destination_type="f32"), np.full((48, 1), 0.01, np.float32))
    relu = b.ReLU(b.parameter([1, 16, 64], name="x"), name="relu")
    model = b.model([b.MatMul(relu, weights, transpose_b=True, name="product")])
    read = np.maximum(x, 0)
    parts = read.reshape(1, 16, 2, 32)
    steps = np.abs(parts).max(axis=-1, keepdims=True) / 127
    shown = (np.rint(parts / steps) * steps).reshape(x.shape) @ (codes.astype(np.float32).T * np.float32(0.01))
    shown[..., 7] *= scale
    for group in ("0", "32"):
        found, values = dict[Place, Budget](), Shown()
        effect = InEffect.of({"DYNAMIC_QUANTIZATION_GROUP_SIZE": group, "INFERENCE_PRECISION_HINT": "f32"})
        judge = Judge(model, InEffect.of({}), effect, keep_state=False)
        (folder := tmp_path / group).mkdir()
        with closing(Shelf(folder)) as shelf:
            values.add(Place("relu"), 0, 0, shelf.keep_array(read), 0)
            values.add(Place("product"), 0, 0, shelf.keep_array(shown), 1)
            judge.run({0: x}, values, lambda place, iteration, budget: found.__setitem__(place, budget))  # noqa: B023
            values.drop()
        assert found[Place("product")].is_explained is (explained and group == "32")
        assert str(effect) == ("f32" if group == "0" else "i8 in groups of 32")


def _pairs(weights: np.ndarray, data: np.ndarray) -> int:
    """Return a sum of products of which each pair of neighbours is kept in 16 bits."""
    products = weights.astype(int) * data.astype(int)
    padded = np.append(products, [0] * (len(products) % 2)).reshape(-1, 2)
    return int(np.clip(padded.sum(axis=1), -32768, 32767).sum())


@pytest.mark.parametrize("low", [0.0, -1.28])
@pytest.mark.parametrize("kind", ["MatMul", "Convolution"])
def test_sums_in_16_bits_are_predicted(kind: str, low: float, tmp_path: Path) -> None:
    """A kernel without VNNI moves the codes of its data to u8, and saturates; the borders hold the code of 0."""
    rng, step = np.random.default_rng(0), 0.01
    zero = round(-low / step)
    limits = [np.float32(low), np.float32(low + 255 * step)]
    x = rng.uniform(low, low + 255 * step, (1, 7, 5, 6) if kind == "Convolution" else (12, 31)).astype(np.float32)
    codes = rng.integers(-128, 128, (4, 7, 3, 3) if kind == "Convolution" else (8, 31)).astype(np.int8)
    scales = np.full((len(codes), *[1] * (codes.ndim - 1)), 0.02, np.float32)
    weights = b.Multiply(b.Convert(codes, destination_type="f32"), scales)
    data = b.FakeQuantize(b.parameter(x.shape, name="x"), *limits, *limits, levels=256, name="quantized")
    if kind == "MatMul":
        product = b.MatMul(data, weights, transpose_b=True, name="product")
    else:
        product = b.Convolution(
            data, weights, strides=[2, 1], pads_begin=[1, 0], pads_end=[1, 2], dilations=[1, 2], name="product"
        )
    model = b.model({"quantized": data, "product": product})
    read, true = irrun.compile(model)(x).values()
    u8 = np.rint(read / step).astype(int) + zero
    lost = np.zeros(true.shape)
    for place in np.ndindex(*true.shape):
        if kind == "MatMul":
            terms, factors = [u8[place[0]]], [codes[place[1]]]
        else:
            padded = np.pad(u8[0], ((0, 0), (1, 1), (0, 2)), constant_values=zero)
            top, left = 2 * place[2], place[3]
            taps = [(row, column) for row in range(3) for column in range(3)]
            terms = [padded[:, top + row, left + 2 * column] for row, column in taps]
            factors = [codes[place[1], :, row, column] for row, column in taps]
        whole = sum(int(f.astype(int) @ t) for f, t in zip(factors, terms))
        lost[place] = (sum(_pairs(f, t) for f, t in zip(factors, terms)) - whole) * step * 0.02
    assert np.count_nonzero(lost) > 10
    for saturates in (True, False):
        found, values = dict[Place, Budget](), Shown()
        judge = Judge(model, InEffect(), InEffect(integers=True, saturates=saturates), keep_state=False)
        (folder := tmp_path / str(saturates)).mkdir()
        with closing(Shelf(folder)) as shelf:
            values.add(Place("quantized"), 0, 0, shelf.keep_array(read), 0)
            values.add(Place("product"), 0, 0, shelf.keep_array((true + lost).astype(np.float32)), 1)
            judge.run({0: x}, values, lambda place, iteration, budget: found.__setitem__(place, budget))  # noqa: B023
            values.drop()
        assert found[Place("product")].is_explained is saturates
        assert (found[Place("product")].form == SATURATING) is saturates
