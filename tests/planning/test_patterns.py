"""What converters spell out is recognised, gives the same, and is left alone where it is something else."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import irrun
from irrun import build as b
from watched import watch

RNG = np.random.default_rng(1)


def random(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def found(output: Any, *feeds: np.ndarray) -> list[str]:
    """What is computed in place of the model's layers, seen to give the same."""
    model = b.model({"y": output})
    executable, exact = irrun.compile(model, exact=False), irrun.compile(model, exact=True)
    np.testing.assert_allclose(executable(feeds)[0], exact(feeds)[0], rtol=2e-5, atol=2e-5)
    layers = len(model.layers) - len(model.parameters) - len(model.results) - model.constants
    assert len(watch(exact, feeds).steps) == layers
    return [step.op.type for step in watch(executable, feeds).steps]


def number(value: float) -> Any:
    return b.constant(np.float32(value))


def _rms(x: Any, ending: str, square: str = "Power", eps: Any = None) -> Any:
    squares = b.Power(x, number(2)) if square == "Power" else b.Multiply(x, x)
    total = b.Add(b.ReduceMean(squares, [-1], keep_dims=True), number(1e-5) if eps is None else eps)
    if ending == "power":
        return b.Multiply(x, b.Power(total, number(-0.5)))
    root = b.Sqrt(total)
    return b.Divide(x, root) if ending == "divide" else b.Multiply(b.Divide(number(1), root), x)


@pytest.mark.parametrize("square", ["Power", "Multiply"])
@pytest.mark.parametrize("ending", ["divide", "reciprocal", "power"])
def test_rms(ending: str, square: str) -> None:
    x = b.parameter([2, 5, 8], "f32", name="x")
    assert found(_rms(x, ending, square), random(2, 5, 8)) == ["RMS"]


def test_rms_of_any_length() -> None:
    x = b.parameter([-1, -1, 8], "f32", name="x")
    assert found(b.Multiply(_rms(x, "reciprocal"), random(8)), random(3, 5, 8)) == ["RMS", "Multiply"]


OTHERS: dict[str, Callable[[Any], Any]] = {
    "along another axis": lambda x: b.Divide(
        x, b.Sqrt(b.Add(b.ReduceMean(b.Multiply(x, x), [0], keep_dims=True), number(1)))
    ),
    "of something else": lambda x: b.Divide(
        b.Tanh(x), b.Sqrt(b.Add(b.ReduceMean(b.Multiply(x, x), [-1], keep_dims=True), number(1)))
    ),
    "cubes": lambda x: b.Divide(x, b.Sqrt(b.Add(b.ReduceMean(b.Power(x, number(4)), [-1], keep_dims=True), number(1)))),
    "more than one number": lambda x: _rms(x, "divide", eps=b.constant(np.full((3, 1), 0.1, np.float32))),
    "a number with more axes": lambda x: _rms(x, "divide", eps=b.constant(np.full((1, 1, 1), 0.1, np.float32))),
}


@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS)
def test_what_is_no_rms(other: Callable[[Any], Any]) -> None:
    x = b.parameter([3, 8], "f32", name="x")
    assert "RMS" not in found(other(x), random(3, 8))


def test_what_somebody_else_reads_is_left() -> None:
    x = b.parameter([3, 8], "f32", name="x")
    root = b.Sqrt(b.Add(b.ReduceMean(b.Multiply(x, x), [-1], keep_dims=True), number(1)))
    assert "RMS" not in found(b.Concat(b.Divide(x, root), root, axis=1), random(3, 8))


def _layer_norm(x: Any, reciprocal: bool, axes: tuple[list[int], list[int]] = ([-1], [-1]), of: Any = None) -> Any:
    """Of ``x`` less its mean, or that ``of`` another value."""
    centred = b.Subtract(x, b.ReduceMean(x if of is None else of, axes[0], keep_dims=True))
    variance = b.ReduceMean(b.Power(centred, number(2)), axes[1], keep_dims=True)
    root = b.Sqrt(b.Add(number(1e-6), variance))
    return b.Multiply(centred, b.Divide(number(1), root)) if reciprocal else b.Divide(centred, root)


@pytest.mark.parametrize("reciprocal", [False, True])
@pytest.mark.parametrize("axes", [[-1], [1, 2]])
def test_layer_norm(reciprocal: bool, axes: list[int]) -> None:
    x = b.parameter([2, 5, 8], "f32", name="x")
    norm = _layer_norm(x, reciprocal, (axes, axes))
    assert found(b.Add(b.Multiply(norm, random(8)), random(8)), random(2, 5, 8))[0] in ("MVN", "Add")
    assert found(norm, random(2, 5, 8)) == ["MVN"]
    assert "MVN" not in found(_layer_norm(x, reciprocal, (axes, [0])), random(2, 5, 8))


@pytest.mark.parametrize("reciprocal", [False, True])
def test_the_mean_of_another_value_is_no_layer_norm(reciprocal: bool) -> None:
    """A value less the mean of another one, over the deviation from that mean."""
    x, z = b.parameter([2, 5, 8], "f32", name="x"), b.parameter([2, 5, 8], "f32", name="z")
    feeds = random(2, 5, 8), random(2, 5, 8) + 3
    assert found(_layer_norm(x, reciprocal), feeds[0]) == ["MVN"]
    assert "MVN" not in found(_layer_norm(x, reciprocal, of=z), *feeds)


def test_the_variance_of_another_value_is_no_layer_norm() -> None:
    x, z = b.parameter([2, 5, 8], "f32", name="x"), b.parameter([2, 5, 8], "f32", name="z")
    centred, other = (b.Subtract(y, b.ReduceMean(y, [-1], keep_dims=True)) for y in (x, z))
    variance = b.ReduceMean(b.Multiply(other, other), [-1], keep_dims=True)
    norm = b.Divide(centred, b.Sqrt(b.Add(variance, number(1e-6))))
    assert "MVN" not in found(norm, random(2, 5, 8), 2 * random(2, 5, 8))


GELUS: dict[str, Callable[[Any], Any]] = {
    "half last": lambda x: b.Multiply(b.Multiply(x, _gate(x)), number(0.5)),
    "half first": lambda x: b.Multiply(b.Multiply(number(0.5), x), _gate(x)),
    "half inside": lambda x: b.Multiply(x, b.Multiply(_gate(x), number(0.5))),
    "a product": lambda x: b.Multiply(
        b.Multiply(x, number(0.5)), b.Add(number(1), b.Erf(b.Multiply(x, number(math.sqrt(0.5)))))
    ),
}


def _gate(x: Any, by: float = math.sqrt(2)) -> Any:
    return b.Add(b.Erf(b.Divide(x, number(by))), number(1))


@pytest.mark.parametrize("gelu", GELUS.values(), ids=GELUS)
def test_gelu(gelu: Callable[[Any], Any]) -> None:
    x = b.parameter([3, 8], "f32", name="x")
    assert found(gelu(x), random(3, 8)) == ["Gelu"]


def test_what_is_no_gelu() -> None:
    x = b.parameter([3, 8], "f32", name="x")
    assert "Gelu" not in found(b.Multiply(b.Multiply(x, _gate(x, 1.5)), number(0.5)), random(3, 8))
    assert "Gelu" not in found(b.Multiply(b.Multiply(x, _gate(x)), number(0.6)), random(3, 8))
    assert "Gelu" not in found(b.Multiply(b.Multiply(b.Tanh(x), _gate(x)), number(0.5)), random(3, 8))


@pytest.mark.parametrize("turned", [False, True], ids=["k", "k-transposed"])
@pytest.mark.parametrize("mask", [None, [4, 6], [2, 1, 1, 6]], ids=str)
@pytest.mark.parametrize(("scale", "axis"), [(None, -1), ("Multiply", -1), ("Divide", 3)])
def test_attention(scale: str | None, axis: int, mask: list[int] | None, turned: bool) -> None:
    q = b.parameter([2, 3, 4, 8], "f32", name="q")
    k = b.parameter([2, 3, 8, 6] if turned else [2, 3, 6, 8], "f32", name="k")
    v = b.parameter([2, 3, 6, 7], "f32", name="v")
    scores = b.MatMul(q, k, transpose_b=not turned)
    if scale:
        scores = getattr(b, scale)(scores, number(3))
    if mask:
        scores = b.Add(b.constant(random(*mask)), scores)
    out = b.MatMul(b.SoftMax(scores, axis=axis), v)
    feeds = [random(2, 3, 4, 8), random(*(dim.lo for dim in k.shape)), random(2, 3, 6, 7)]
    assert found(out, *feeds) == ["ScaledDotProductAttention"]


def test_what_is_no_attention() -> None:
    q, k, v = (b.parameter([3, 6, 6], "f32", name=name) for name in "qkv")
    feeds = [random(3, 6, 6) for _ in range(3)]
    scores = b.MatMul(q, k, transpose_b=True)
    assert len(found(b.MatMul(b.SoftMax(scores, axis=1), v), *feeds)) == 3
    assert len(found(b.MatMul(v, b.SoftMax(scores, axis=-1)), *feeds)) == 3
    assert len(found(b.MatMul(b.SoftMax(b.Tanh(q), axis=-1), v), feeds[0], feeds[2])) == 3
    assert len(found(b.MatMul(b.SoftMax(b.MatMul(q, k, transpose_a=True), axis=-1), v), *feeds)) == 3
    assert len(found(b.MatMul(b.SoftMax(scores, axis=-1), v, transpose_b=True), *feeds)) == 3
    assert len(found(b.MatMul(b.SoftMax(b.Add(q, k), axis=-1), v), *feeds)) == 3
    flat, other = (b.parameter([6, 6], "f32", name=name) for name in ("flat", "other"))
    scores_of_two_axes = b.MatMul(flat, other, transpose_b=True)
    assert len(found(b.MatMul(b.SoftMax(scores_of_two_axes, axis=-1), flat), feeds[0][0], feeds[1][0])) == 3
    unknown = b.parameter("...", "f32", name="unknown")
    assert len(found(b.MatMul(b.SoftMax(b.MatMul(unknown, q), axis=-1), v), *feeds)) == 3
    wider = b.Add(scores, b.constant(random(4, 3, 6, 6)))
    assert "ScaledDotProductAttention" not in found(b.MatMul(b.SoftMax(wider, axis=-1), v), *feeds)


# ---------------------------------------------------------------------------------------------
# filters that take over what follows


def _around(kind: str, x: Any) -> Any:
    """Convolutions of 6 channels to 4, or of two groups of 3 to 2."""
    window = {"strides": [2, 1], "pads_begin": [1, 0], "pads_end": [0, 1], "dilations": [1, 1]}
    shapes = {
        "Convolution": (4, 6, 3, 2), "GroupConvolution": (2, 2, 3, 3, 2),
        "ConvolutionBackpropData": (6, 4, 3, 2), "GroupConvolutionBackpropData": (2, 3, 2, 3, 2),
    }  # fmt: skip
    return getattr(b, kind)(x, b.constant(random(*shapes[kind])), **window)


KINDS = ["Convolution", "GroupConvolution", "ConvolutionBackpropData", "GroupConvolutionBackpropData"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_factor_for_each_channel_becomes_part_of_the_filters(kind: str) -> None:
    x = b.parameter([2, 6, 7, 8], "f32", name="x")
    for factors in (random(1, 4, 1, 1), random(4, 1, 1)):
        assert found(b.Multiply(_around(kind, x), factors), random(2, 6, 7, 8)) == [kind]
        assert found(b.Multiply(factors, _around(kind, x)), random(2, 6, 7, 8)) == [kind]


@pytest.mark.parametrize("kind", KINDS)
def test_batch_norm_becomes_part_of_the_filters(kind: str) -> None:
    x = b.parameter([2, 6, 7, 8], "f32", name="x")
    statistics = [random(4), random(4), random(4), np.abs(random(4)) + 0.1]
    y = b.BatchNormInference(_around(kind, x), *statistics, epsilon=1e-3)
    assert found(b.ReLU(y), random(2, 6, 7, 8)) == ["ReLU"]
    executable = irrun.compile(b.model({"y": y}), exact=False)
    assert watch(executable, [random(2, 6, 7, 8)]).layers == [f"{kind}+BatchNormInference"]


def test_a_variance_of_zero_stays_apart() -> None:
    """A channel is divided by 0. Filters times infinity would be NaN where the definition is infinite."""
    x = b.parameter([2, 6, 7, 8], "f32", name="x")
    statistics = [random(4), random(4), random(4), np.array([0.5, 0, 1, 0], np.float32)]
    model = b.model({"y": b.BatchNormInference(_around("Convolution", x), *statistics, epsilon=0)})
    feed = np.abs(random(2, 6, 7, 8))
    results = [irrun.compile(model, exact=exact)([feed])[0] for exact in (False, True)]
    assert np.isinf(results[1]).any()
    np.testing.assert_allclose(*results, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("factors", [random(1, 1, 5, 1), random(6), random(2, 4, 1, 1), random(1, 4, 5, 6)])
def test_other_factors_stay(factors: np.ndarray) -> None:
    x = b.parameter([2, 6, 5, 6], "f32", name="x")
    same = {"strides": [1, 1], "pads_begin": [0, 0], "pads_end": [0, 0], "dilations": [1, 1]}
    y = b.Multiply(b.Convolution(x, b.constant(random(4, 6, 1, 1)), **same), factors)
    model = b.model({"y": y})
    executable = irrun.compile(model, exact=False)
    feed = random(2, 6, 5, 6)
    assert watch(executable, [feed]).layers[-1] == "Convolution+Multiply"
    np.testing.assert_allclose(executable([feed])[0], irrun.compile(model, exact=True)([feed])[0], rtol=1e-5, atol=1e-5)


def test_what_is_read_before_the_factor_stays() -> None:
    x = b.parameter([2, 6, 7, 8], "f32", name="x")
    y = _around("Convolution", x)
    types = found(b.Concat(b.Multiply(y, random(4, 1, 1)), y, axis=1), random(2, 6, 7, 8))
    assert types == ["Convolution", "Multiply", "Concat"]


# ---------------------------------------------------------------------------------------------
# what broadcasts by itself


@pytest.mark.parametrize("mode", ["numpy", "bidirectional"])
def test_what_is_broadcast_for_an_element_wise_operation(mode: str) -> None:
    x, y = b.parameter([2, 3, 4], "f32", name="x"), b.parameter([3, 1], "f32", name="y")
    wide = b.Broadcast(y, [2, 3, 4], mode=mode)
    assert found(b.Subtract(x, wide), random(2, 3, 4), random(3, 1)) == ["Subtract"]


def test_what_is_broadcast_for_more_stays() -> None:
    x, y = b.parameter([1, 3, 4], "f32", name="x"), b.parameter([3, 1], "f32", name="y")
    feeds = random(1, 3, 4), random(3, 1)
    assert found(b.Subtract(x, b.Broadcast(y, [2, 3, 4])), *feeds) == ["Broadcast", "Subtract"]
    wide = b.Broadcast(y, [1, 3, 4])
    assert "Broadcast" in found(b.Concat(b.Subtract(x, wide), wide, axis=0), *feeds)
    assert "Broadcast" in found(b.Multiply(wide, wide), feeds[1])
    explicit = b.Broadcast(b.parameter([3], "f32", name="z"), [1, 3, 4], [1], mode="explicit")
    assert "Broadcast" in found(b.Subtract(x, explicit), random(1, 3, 4), random(3))
    stretched = b.Broadcast(b.parameter([1], "f32", name="w"), [3])
    pdpd = b.Subtract(stretched, b.parameter([3], "f32", name="v"), auto_broadcast="pdpd")  # which stretches no first
    assert "Broadcast" in found(pdpd, random(1), random(3))


LIMITS = (2.0, 0.0, 2.0)


def _keeps_relu(output: Any) -> bool:
    """Whether a ReLU is computed on its own, before the FakeQuantize that is fused with it."""
    assert found(output, random(4, 64))[-1] in ("FakeQuantize", "Add")
    steps = irrun.compile(b.model({"y": output}), exact=False).plan.steps
    return len(steps) > 1 or [step.kernel.algorithm for step in steps] == ["in tiles"]


def test_a_relu_before_a_range_without_negative_numbers_is_dropped() -> None:
    relu = b.ReLU(b.parameter([4, 64], "f32", name="x"))
    assert not _keeps_relu(b.FakeQuantize(relu, 0.0, *LIMITS, levels=16))
    low = b.constant(np.linspace(0, 1, 4, dtype=np.float32).reshape(4, 1))
    assert not _keeps_relu(b.FakeQuantize(relu, low, *LIMITS, levels=16))


def test_a_relu_that_clips_more_stays() -> None:
    relu = b.ReLU(b.parameter([4, 64], "f32", name="x"))
    assert _keeps_relu(b.FakeQuantize(relu, -1.0, *LIMITS, levels=16))
    assert _keeps_relu(b.FakeQuantize(relu, 3.0, *LIMITS, levels=16))  # low above high
    assert _keeps_relu(b.Add(b.FakeQuantize(relu, 0.0, *LIMITS, levels=16), relu))
