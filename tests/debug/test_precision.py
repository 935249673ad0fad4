"""Lower precisions: the layer that overflows, the layers that lose most, and those to keep in full precision."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import irrun
from irrun import build as b
from irrun.debug import Limit, Precision, Tolerances, precision
from irrun.debug.low_precision.families import accumulated, channel_axes
from irrun.debug.low_precision.formats import FORMATS, quantized_range, quantized_weights
from irrun.opdef import resolve
from lowered_networks import NETWORKS, Net, brute_force, sample

RNG = np.random.default_rng(0)


def f32(*shape: int, scale: float = 1.0) -> np.ndarray:
    return (RNG.normal(size=shape) * scale).astype(np.float32)


def _array(numbers: Any) -> np.ndarray:
    return np.array(numbers, np.float32)


def _names(result: Precision) -> list[str]:
    return [layer.name for layer in result.layers]


def _kept(result: Precision) -> list[str]:
    assert result.kept is not None
    return [layer.name for layer in result.kept.layers]


# ---------------------------------------------------------------------------------------------
# rounding


@pytest.mark.parametrize(("name", "dtype"), [("f16", np.float16), ("bf16", ml_dtypes.bfloat16)])
def test_rounding_is_that_of_the_type(name: str, dtype: Any) -> None:
    """Every 37th float32: normal, subnormal, 0, infinite and NaN; also those halfway between two values of the type."""
    bits = np.arange(0, 1 << 32, 37 * 1009, dtype=np.uint64).astype(np.uint32)
    halves = (np.arange(1 << 16, dtype=np.uint32) << 16) | np.uint32(0x8000)
    steps = (np.arange(0x38000000, 0x47900000, 1 << 12, dtype=np.uint32))[::7]
    numbers = np.concatenate([bits, halves, steps, np.array([0, 1 << 31], np.uint32)]).view(np.float32)
    with np.errstate(all="ignore"):
        expected = numbers.astype(dtype).astype(np.float32)
    np.testing.assert_array_equal(FORMATS[name].round(numbers), expected)
    with np.errstate(all="ignore"):
        wide = numbers.astype(np.float64)
        np.testing.assert_array_equal(FORMATS[name].round(wide), wide.astype(dtype).astype(np.float64))


def test_constants_saturate_and_values_do_not() -> None:
    numbers = np.array([7e4, -1e9, -np.inf, 65519, 2, np.nan], np.float32)
    np.testing.assert_array_equal(FORMATS["f16"].round(numbers), [np.inf, -np.inf, -np.inf, 65504, 2, np.nan])
    stored = FORMATS["f16"].round(numbers, saturate=True)
    np.testing.assert_array_equal(stored, [65504, -65504, -np.inf, 65504, 2, np.nan])


def test_other_types_are_not_rounded() -> None:
    for array in (np.array([1 << 20]), np.array(["a"], object), np.array([True]), np.zeros(0, np.float32)):
        assert FORMATS["f16"].round(array) is array


def test_weights_have_one_scale_or_one_for_each_channel() -> None:
    weights = np.array([[127, 1], [1, 0.5]], np.float32)  # the steps are 1, or by rows 1 and 1/127
    np.testing.assert_allclose(quantized_weights(weights, ()), [[127, 1], [1, 0]])  # 0.5 rounds to even
    np.testing.assert_allclose(quantized_weights(weights, (0,)), [[127, 1], [1, 64 / 127]], rtol=1e-6)
    np.testing.assert_array_equal(quantized_weights(np.zeros((2, 2), np.float32), (0,)), np.zeros((2, 2)))


def test_ranges_have_256_levels_with_0() -> None:
    numbers = np.array([-1.0, -0.004, 0, 0.004, 1.55, 2], np.float32)
    # from -1 to 1.55, a step is 0.01, and the levels are -100 to 155
    np.testing.assert_allclose(quantized_range(numbers, -1, 1.55), [-1, 0, 0, 0, 1.55, 1.55], atol=1e-6)
    np.testing.assert_allclose(quantized_range(numbers, 0.5, 2.55), [0, 0, 0, 0, 1.55, 2], atol=1e-6)
    np.testing.assert_array_equal(quantized_range(np.zeros(2, np.float32), 0, 0), [0, 0])


# ---------------------------------------------------------------------------------------------
# sums


def _op(type: str, **attributes: Any) -> Any:
    op = resolve(type, 1)
    assert op is not None
    return op(**attributes)


def _blocks_of_32(products: np.ndarray, dtype: Any) -> np.ndarray:
    """Return the sums over the last axis, rounded to a dtype after every 32 terms."""
    total = np.zeros(products.shape[:-1], np.float32)
    for start in range(0, products.shape[-1], 32):
        part = products[..., start : start + 32].sum(-1, dtype=np.float32).astype(dtype).astype(np.float32)
        total = (total + part).astype(dtype).astype(np.float32)
    return total


_CONVOLVES = {"strides": [1, 1], "pads_begin": [0, 0], "pads_end": [0, 0], "dilations": [1, 1]}


@pytest.mark.parametrize("transpose_a", [False, True])
@pytest.mark.parametrize("transpose_b", [False, True])
def test_products_accumulate(transpose_a: bool, transpose_b: bool) -> None:
    a, b_ = f32(3, 100), f32(100, 4)
    op = _op("MatMul", transpose_a=transpose_a, transpose_b=transpose_b)
    arrays = [a.T if transpose_a else a, b_.T if transpose_b else b_]
    expected = _blocks_of_32(a[:, None, :] * b_.T[None], np.float16)
    found = accumulated(op, arrays, FORMATS["f16"].round)
    assert found is not None
    np.testing.assert_allclose(found, expected, rtol=2e-3, atol=2e-3)
    assert np.abs(found - a @ b_).max() > 1e-4  # the sums are rounded


@pytest.mark.parametrize(
    ("type", "data", "filters", "by_hand"),
    [
        ("Convolution", (1, 70, 1, 1), (5, 70, 1, 1), lambda d, f: d[:, None] * f),
        ("GroupConvolution", (1, 140, 1, 1), (2, 3, 70, 1, 1), lambda d, f: (d.reshape(2, 1, 70) * f).reshape(1, 6, 70)),
        ("ConvolutionBackpropData", (1, 70, 1, 1), (70, 5, 1, 1), lambda d, f: d[:, None] * f.T),
        (
            "GroupConvolutionBackpropData", (1, 140, 1, 1), (2, 70, 3, 1, 1),
            lambda d, f: (d.reshape(2, 1, 70) * f.swapaxes(1, 2)).reshape(1, 6, 70),
        ),
    ],
)  # fmt: skip
def test_convolutions_accumulate(
    type: str, data: tuple[int, ...], filters: tuple[int, ...], by_hand: Callable[..., np.ndarray]
) -> None:
    d, f = f32(*data), f32(*filters)
    products = by_hand(d.reshape(1, -1), f.reshape([n for n in filters if n != 1]))
    found = accumulated(_op(type, **_CONVOLVES), [d, f], FORMATS["bf16"].round)
    assert found is not None
    expected = _blocks_of_32(products, ml_dtypes.bfloat16)
    np.testing.assert_allclose(found.reshape(expected.shape), expected, rtol=2e-2, atol=2e-2)
    exact = products.sum(-1)
    assert np.abs(found.reshape(exact.shape) - exact).max() > 1e-3


def test_a_sum_overflows_on_its_way() -> None:
    """60000 + 60000 - 60000 - 60000 in blocks of 32 equal terms: infinite, although the sum is 0."""
    terms = np.repeat(np.array([60000 / 32, 60000 / 32, -60000 / 32, -60000 / 32], np.float32), 32)
    for keep_dims in (True, False):
        op = _op("ReduceSum", keep_dims=keep_dims)
        found = accumulated(op, [np.stack([terms, terms / 4]), np.array([1])], FORMATS["f16"].round)
        assert found is not None
        np.testing.assert_array_equal(found, [[np.inf], [0]] if keep_dims else [np.inf, 0])
    mean = accumulated(_op("ReduceMean", keep_dims=False), [terms / 4, np.array([0])], FORMATS["f16"].round)
    assert mean is not None
    assert mean == 0
    assert accumulated(_op("Relu"), [terms], FORMATS["f16"].round) is None


@pytest.mark.parametrize(
    ("type", "attributes", "position", "rank", "axes"),
    [
        ("MatMul", {}, 1, 2, (-1,)),
        ("MatMul", {"transpose_b": True}, 1, 3, (-2,)),
        ("MatMul", {}, 0, 2, (-2,)),
        ("MatMul", {"transpose_a": True}, 0, 2, (-1,)),
        ("MatMul", {}, 1, 1, ()),
        ("Convolution", _CONVOLVES, 1, 4, (0,)),
        ("Convolution", _CONVOLVES, 0, 4, ()),
        ("GroupConvolution", _CONVOLVES, 1, 5, (0, 1)),
        ("ConvolutionBackpropData", _CONVOLVES, 1, 4, (1,)),
        ("GroupConvolutionBackpropData", _CONVOLVES, 1, 5, (0, 2)),
    ],
)
def test_channels_of_weights(
    type: str, attributes: dict[str, Any], position: int, rank: int, axes: tuple[int, ...]
) -> None:
    assert channel_axes(_op(type, **attributes), position, rank) == axes


# ---------------------------------------------------------------------------------------------
# the layer that overflows


def test_the_product_of_a_swiglu_overflows() -> None:
    x = b.parameter([4, 32], name="x")
    gate, up = b.MatMul(x, f32(32, 64, scale=2), name="gate"), b.MatMul(x, f32(32, 64, scale=600), name="up")
    product = b.Multiply(b.Swish(gate, 1.0, name="silu"), up, name="product")
    model = b.model({"y": b.MatMul(product, f32(64, 32, scale=1e-3), name="down")})
    feeds = {"x": f32(4, 32)}
    true = irrun.compile(model, exact=True)(feeds, taps=["gate", "silu", "up", "product", "down"])
    over = {name: int((np.abs(array) >= 65520).sum()) for name, array in true.taps.items()}
    assert [name for name, count in over.items() if count] == ["product"]

    result = precision(model, feeds)
    assert result.verdict == "overflow"
    assert [(layer.name, layer.overflows) for layer in result.overflowing] == [("product", over["product"])]
    (product_layer,) = result.overflowing
    greatest = np.abs(true.taps["product"])
    assert product_layer.place == (0, np.unravel_index(greatest.argmax(), greatest.shape))
    assert product_layer.magnitude == pytest.approx(float(greatest.max()))
    assert _names(result)[0] == "product"
    assert _kept(result) == ["product", "down"]  # down has to read the product in f32
    assert result.kept is not None
    assert result.kept.minimal
    assert not precision(model, feeds, to="bf16").overflowing


def test_a_residual_saturates() -> None:
    """A stream that grows by additions: the first sum beyond 65504 is named, not the layers that read it."""
    x = b.parameter([2, 8], name="x")
    stream = b.Multiply(x, 1.0, name="start")
    for n in range(6):
        update = b.MatMul(b.Tanh(stream, name=f"{n}/tanh"), f32(8, 8), name=f"{n}/update")
        stream = b.Add(stream, b.Add(update, np.float32(15000), name=f"{n}/offset"), name=f"{n}/residual")
    norm = b.MVN(stream, [-1], normalize_variance=True, eps=1e-5, eps_mode="inside_sqrt", name="norm")
    model = b.model({"y": norm})
    feeds = {"x": f32(2, 8)}
    true = irrun.compile(model, exact=True)(feeds, taps=["*/residual"]).taps
    beyond = [name for name, array in true.items() if (np.abs(array) >= 65520).any()]
    assert beyond == ["4/residual", "5/residual"]

    result = precision(model, feeds)
    assert [layer.name for layer in result.overflowing] == beyond
    assert result.overflowing[0].name == "4/residual"
    assert set(beyond) <= set(_kept(result))
    # in bf16 nothing overflows, but the stream of about 90000 has steps of 512, which swallow the updates
    coarse = precision(model, feeds, to="bf16")
    assert coarse.verdict == "differ"
    assert not coarse.overflowing
    assert "residual" in _names(coarse)[0]


def test_outlier_channels_need_scales_of_their_own() -> None:
    weights = f32(16, 8)
    weights[:, 3] *= 1000  # one channel is far larger than the others
    x = b.parameter([5, 16], name="x")
    product = b.MatMul(x, weights, name="dense")
    model = b.model({"y": b.Multiply(product, np.array([1, 1, 1, 1e-3, 1, 1, 1, 1], np.float32), name="scale")})
    feeds = {"x": f32(5, 16)}
    per_tensor, per_channel = (precision(model, feeds, to=to) for to in ("int8", "int8-per-channel"))
    assert per_tensor.verdict == "differ"
    assert per_channel.verdict == "agree"
    assert _names(per_tensor) == _kept(per_tensor) == ["dense"]
    assert per_tensor.ignored_scope() == {"names": ["dense"]}
    assert per_tensor.layers[0].effect > 0.5  # all channels but one become 0
    assert per_channel.layers[0].effect < 0.02


# ---------------------------------------------------------------------------------------------
# against brute force


@pytest.mark.parametrize(
    "to",
    [
        "f16",
        pytest.param("bf16", marks=pytest.mark.slow),
        "int8",
        pytest.param("int8-per-channel", marks=pytest.mark.slow),
    ],
)
def test_the_most_sensitive_layers_are_those_of_brute_force(to: str) -> None:
    """On five networks, the five layers with the greatest effect: at least 22 of 25."""
    agreeing = 0
    for network in NETWORKS:
        effects = brute_force(network, to)
        model = network(Net())
        result = precision(model, dict(enumerate(sample(model))), to=to, runs=100, search=False)
        assert all(layer.exact for layer in result.layers)
        worst = sorted(effects, key=lambda name: -effects[name])[:5]
        agreeing += len({*worst} & {*_names(result)[:5]})
        for layer in result.layers[:5]:
            assert layer.effect == pytest.approx(effects[layer.name], rel=0.05)
    assert agreeing >= 22, agreeing


@pytest.mark.parametrize(("to", "share"), [("f16", 0.5), ("bf16", 0.5), ("int8", 0.7)])
def test_estimates_choose_the_layers_to_measure(to: str, share: float) -> None:
    """With runs for a part of the layers only, the estimates still find nearly all of the five worst."""
    agreeing = 0
    for network in NETWORKS:
        model = network(Net())
        feeds = dict(enumerate(sample(model)))
        exact = precision(model, feeds, to=to, runs=100, search=False)
        few = precision(model, feeds, to=to, runs=int(len(exact.layers) * share), search=False)
        assert few.runs < exact.runs
        agreeing += len({*_names(exact)[:5]} & {*_names(few)[:5]})
        assert {*_names(few)} == {*_names(exact)}
    assert agreeing >= 20, agreeing


# ---------------------------------------------------------------------------------------------
# what to keep


def _converted(name: str, kept: set[str], x: Any, low: bool) -> Any:
    return b.Convert(b.Convert(x, destination_type="f16"), destination_type="f32") if low and name not in kept else x


def _cancelling(kept: set[str] | None) -> irrun.Model:
    """Return a model that subtracts nearly equal sums. All layers round to f16, but those kept; None rounds nothing."""
    rng = np.random.default_rng(7)
    low, kept = kept is not None, kept or set()
    x = b.parameter([4, 8], name="x")

    def layer(type: str, *inputs: Any, name: str) -> Any:
        read = []
        for node in inputs:
            node = b.constant(node) if isinstance(node, np.ndarray) else node
            read.append(_converted(name, kept, node, low))
        return _converted(name, kept, getattr(b, type)(*read, name=name), low)

    first = layer("Add", layer("MatMul", x, f(rng, 8, 8), name="a"), _array([300]), name="high")
    second = layer("Add", layer("MatMul", x, f(rng, 8, 8), name="b"), _array([300]), name="higher")
    difference = layer("Subtract", first, second, name="difference")
    return b.model({"y": layer("Tanh", difference, name="y")})


def f(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return (rng.normal(size=shape) * 0.05).astype(np.float32)


def test_the_layers_to_keep_restore_the_tolerances() -> None:
    """The witness rounds what each layer reads and returns, by layers that convert, in a model of its own."""
    feeds = {"x": np.random.default_rng(8).normal(size=(4, 8)).astype(np.float32)}
    limits = Tolerances(Limit(0.02, 1e-3))
    result = precision(_cancelling(None), feeds, tolerances=limits)
    assert result.verdict == "differ"
    kept = set(_kept(result))
    assert {"high", "higher", "difference"} <= kept

    true = irrun.run(_cancelling(None), feeds)["y"]
    rms = np.sqrt(np.mean(true**2))

    def within(names: set[str]) -> bool:
        error = np.abs(irrun.compile(_cancelling(names), exact=True)(feeds)["y"] - true)
        return bool((error <= 1e-3 + 0.02 * np.maximum(np.abs(true), rms)).all())

    assert not within(set())
    assert within(kept)
    assert result.kept is not None
    assert result.kept.minimal
    assert not any(within(kept - {name}) for name in kept)


def test_tolerances_decide() -> None:
    model = NETWORKS[0](Net())
    feeds = dict(enumerate(sample(model)))
    assert precision(model, feeds, tolerances=Tolerances(Limit(1e-2, 1e-2))).verdict == "agree"
    strict = precision(model, feeds, tolerances=Tolerances(Limit(1e-5, 1e-5)), runs=20)
    assert strict.verdict == "differ"
    assert strict.kept is not None
    assert all(output.agrees for output in strict.kept.outputs)


# ---------------------------------------------------------------------------------------------
# hard cases


def test_a_loop_overflows_in_a_late_iteration() -> None:
    def body(i: Any, state: Any) -> tuple[Any, ...]:
        return True, b.Multiply(state, np.float32(10), name="grow")

    start = b.parameter([3], name="x")
    last = b.Loop(6, True, start, body=body, name="loop")
    model = b.model({"y": b.Multiply(last, np.float32(1e-6), name="shrink")})
    result = precision(model, {"x": _array([1, 0.1, 0.01])})
    assert [(layer.name, layer.overflows) for layer in result.overflowing] == [("loop/grow", 3)]  # 1e5, 1e6 and 1e5
    assert result.ignored_scope() == {"names": ["shrink"]}  # NNCF does not look into loops
    assert _kept(result) == ["loop/grow", "shrink"]


@pytest.mark.parametrize("taken", [True, False])
def test_a_branch_that_is_not_taken_loses_nothing(taken: bool) -> None:
    x = b.parameter([2], name="x")
    chosen = b.If(
        np.bool_(taken), x, then=lambda v: b.Exp(v, name="e"), otherwise=lambda v: b.Tanh(v, name="t"), name="if"
    )
    result = precision(b.model({"y": b.Multiply(chosen, np.float32(0.3), name="m")}), {"x": _array([12, 1])})
    assert ("if/e" in _names(result)) is taken
    assert ("if/t" in _names(result)) is not taken
    assert (result.verdict == "overflow") is taken  # exp(12) is 162755


def test_samples_name_the_one_that_overflows() -> None:
    x = b.parameter([1, 2], name="x")
    model = b.model({"y": b.Multiply(b.Multiply(x, x, name="square"), np.float32(1e-4), name="m")})
    samples = [{"x": _array([[1, 2]])}, {"x": _array([[3, 300]])}, {"x": _array([[4, 5]])}]
    result = precision(model, samples)
    assert result.samples == 3
    (square,) = result.overflowing
    assert (square.name, square.place, square.size, square.magnitude) == ("square", (1, (0, 1)), 6, 90000)


def test_a_model_in_f16_shows_what_f16_does() -> None:
    """Its values are followed in f32, so that an overflow of the file itself is found."""
    x = b.parameter([3], "f16", name="x")
    weights = b.constant(np.array([400, 1, 1], np.float16))
    model = b.model({"y": b.Multiply(b.Multiply(x, weights, name="first"), np.float16(0.01), name="second")})
    result = precision(model, {"x": np.array([300, 1, 2], np.float16)})
    assert [layer.name for layer in result.overflowing] == ["first"]
    assert result.overflowing[0].magnitude == 120000


def test_compressed_weights_are_one_constant() -> None:
    """A Const in f16 and its Convert lose nothing in f16: the layer that reads them has weights of f16 already."""
    weights = np.array([[1.5, 0.1], [2, 3]], np.float16)
    x = b.parameter([1, 2], name="x")
    wide = b.Convert(b.constant(weights), destination_type="f32", name="decompress")
    model = b.model({"y": b.MatMul(x, wide, name="m")})
    assert precision(model, {"x": _array([[1, 0]])}).simulated == 1
    lost = precision(model, {"x": _array([[1, 0]])}, to="bf16")
    assert lost.layers[0].error == pytest.approx(abs(float(weights[0, 1].astype(ml_dtypes.bfloat16) - weights[0, 1])) / np.sqrt(1.5**2 + 0.1**2), rel=0.02)  # fmt: skip


def test_constants_beyond_the_range_are_clamped() -> None:
    x = b.parameter([2], name="x")
    model = b.model({"y": b.Multiply(x, _array([1e6, 2]), name="m")})
    (layer,) = precision(model, {"x": _array([0.01, 1])}).layers
    assert (layer.clamped, layer.overflows) == (1, 0)
    assert layer.effect == pytest.approx((10000 - 655) / 10000, rel=1e-2)


def test_small_numbers_vanish() -> None:
    x = b.parameter([3], name="x")
    model = b.model({"y": b.Multiply(b.Exp(x, name="e"), np.float32(2.0**20), name="m")})
    result = precision(model, {"x": _array([-18, -15, 0])})
    (exp,) = (layer for layer in result.layers if layer.name == "e")
    assert exp.underflows == 1  # exp(-18) is less than half of the least subnormal number, 2**-24; exp(-15) is not


def test_state_and_random_numbers_repeat() -> None:
    """Each run begins with the state and the random numbers of the first one, so that they cause no error."""
    state = b.ReadValue(b.constant(np.zeros(3, np.float32)), variable_id="v", variable_type="f32", variable_shape="3")
    noise = b.RandomUniform(np.array([3]), np.float32(0), np.float32(1), output_type="f32", global_seed=1, op_seed=2)
    total = b.Add(b.Add(state, b.parameter([3], name="x"), name="sum"), noise, name="noisy")
    stored = b.Assign(total, variable_id="v")
    result = precision(b.model({"y": stored}), [{"x": f32(3)}, {"x": f32(3)}])
    assert result.verdict == "agree"
    assert 0 < result.layers[0].effect < 1e-3


def test_shapes_and_strings_are_not_simulated() -> None:
    x = b.parameter("?,4", name="x")
    rows = b.Convert(b.ShapeOf(x, name="shape"), destination_type="f32", name="rows")
    target = b.Convert(b.Multiply(rows, _array([1000.5, 1]), name="more"), destination_type="i64", name="target")
    text = b.parameter([2], "string", name="text")
    tiled = b.Broadcast(b.ReduceSum(x, [0, 1], name="all"), target, name="tiled")
    model = b.model({"y": tiled, "t": b.Reshape(text, [1, 2], special_zero=False, name="r")})
    feeds = {"x": _array([[0.1, 0.2, 0.3, 0.7]] * 3), "text": np.array(["a", "b"], object)}
    result = precision(model, feeds)
    assert {*_names(result)} == {"all"}
    assert result.outputs[0].measurement.problem == ""  # the shape is still [3001, 4]


def test_a_run_that_fails_is_a_result() -> None:
    """The number 2051 is no value of f16, and 2052 elements are too many for the Reshape."""
    count, data = b.parameter([1], name="n"), b.parameter([2051], name="data")
    target = b.Convert(b.Add(count, np.float32(1), name="sum"), destination_type="i64", name="target")
    model = b.model({"y": b.Multiply(b.Reshape(data, target, special_zero=False, name="r"), np.float32(1.1), name="m")})
    feeds = {"n": _array([2050]), "data": f32(2051)}
    result = precision(model, feeds)
    assert result.verdict == "differ"
    assert "the run fails: " in result.outputs[0].measurement.problem
    assert (result.layers[0].name, result.layers[0].effect) == ("sum", np.inf)
    assert "sum" in _kept(result)


def test_a_model_without_floats_agrees() -> None:
    x = b.parameter([2], "i32", name="x")
    result = precision(b.model({"y": b.Add(x, np.int32(1), name="a")}))
    assert (result.verdict, result.layers, result.simulated) == ("agree", (), 0)


def test_masks_of_infinity_stay() -> None:
    """A mask of -inf is no overflow, and one of -1e9 becomes the least number of f16, as OpenVINO stores it."""
    x = b.parameter([1, 4], name="x")
    for mask, clamped in ((-np.inf, 0), (-1e9, 2)):
        masked = b.Add(x, _array([0, mask, 0, mask]), name="masked")
        result = precision(b.model({"y": b.SoftMax(masked, axis=-1, name="s")}), {"x": f32(1, 4)})
        assert result.verdict == "agree"
        (layer,) = (layer for layer in result.layers if layer.name == "masked")
        assert (layer.overflows, layer.clamped) == (0, clamped)


def test_what_cannot_be_simulated_is_refused(tmp_path: Path) -> None:
    model = NETWORKS[0](Net())
    with pytest.raises(ValueError, match="'f8' is no precision"):
        precision(model, to="f8")
    with pytest.raises(ValueError, match="int8 cannot accumulate in 'same'"):
        precision(model, to="int8", accumulator="same")
    with pytest.raises(ValueError, match="a group has -1 weights"):
        precision(model, to="int4", group_size=-1)
    with pytest.raises(irrun.FeedError):
        precision(model, {"x": np.zeros((1, 1), np.float32)})
    irrun.save_model(model, tmp_path / "m.xml")
    (tmp_path / "m.bin").unlink()
    with pytest.raises(irrun.ModelError, match=r"\.bin"):
        precision(tmp_path / "m.xml")


def test_the_record_is_json(tmp_path: Path) -> None:
    irrun.save_model(_cancelling(None), tmp_path / "m.xml")
    result = precision(tmp_path / "m.xml", tolerances=Tolerances(Limit(1e-3, 1e-4)))
    record = json.loads(json.dumps(result.record(), allow_nan=False))
    assert record["verdict"] == "differ"
    assert [layer["layer"] for layer in record["layers"]] == _names(result)
    line = (tmp_path / "m.xml").read_text().splitlines()[record["layers"][0]["line"] - 1]
    assert f'name="{_names(result)[0]}"' in line
    assert record["keep"]["layers"] == _kept(result)
