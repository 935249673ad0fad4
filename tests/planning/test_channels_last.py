"""Where convolutions are computed with channels last, and that it gives what the order of the specification does."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any
from unittest import mock

import ml_dtypes
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import irrun
from irrun import build as b

RNG = np.random.default_rng(3)
EVEN = {"strides": [1, 1], "pads_begin": [1, 1], "pads_end": [1, 1], "dilations": [1, 1]}
PLAIN = {"strides": [1, 1], "pads_begin": [0, 0], "pads_end": [0, 0], "dilations": [1, 1]}


def random(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def conv(x: Any, ins: int, outs: int) -> Any:
    return b.Convolution(x, b.constant(random(outs, ins, 3, 3)), **EVEN)


def pool(x: Any, size: int = 2, stride: int = 2, pad: int = 0) -> Any:
    """The first output of a MaxPool."""
    pads, kernel = [pad, pad], [size, size]
    return b.MaxPool(x, strides=[stride, stride], pads_begin=pads, pads_end=pads, kernel=kernel)[0]


def run(outputs: Mapping[str, Any], *feeds: np.ndarray) -> tuple[irrun.Executable, Sequence[np.ndarray]]:
    """An executable, and its outputs, which were seen to be what the layers give one by one."""
    model = b.model(dict(outputs))
    executable, exact = irrun.compile(model, exact=False), irrun.compile(model, exact=True)
    executable(feeds)
    found = executable(feeds).arrays  # with memory that was used before
    for got, wanted in zip(found, exact(feeds).arrays, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5 * np.abs(wanted).max(initial=0))
        assert got.flags.c_contiguous
    return executable, found


class Orders:
    """A hook that notes each step as it is computed.

    A step that only puts axis 1 last is "in"; one that puts it back is "out", or "view" where nothing is copied; of
    the others it is what the layers are, with a * where it gives channels last.
    """

    joined = True

    def __init__(self) -> None:
        self.steps: list[str] = []

    def before(self, step: irrun.Step, inputs: Sequence[np.ndarray | None]) -> None: ...

    def after(self, step: irrun.Step, inputs: Sequence[np.ndarray | None], outputs: Sequence[np.ndarray]) -> None:
        given, got = inputs[0], outputs[0]
        if len(inputs) == 1 and given is not None and given.ndim == 4:
            if np.array_equal(np.moveaxis(given, 1, -1), got):
                self.steps.append("in")
                return
            if np.array_equal(np.moveaxis(given, -1, 1), got):
                self.steps.append("view" if np.shares_memory(given, got) else "out")
                return
        declared = step.layers[-1].outputs[0].shape
        last = "" if declared is None or declared.fits(got.shape) else "*"
        self.steps.append("+".join(layer.type for layer in step.layers) + last)


def orders(executable: irrun.Executable, *feeds: np.ndarray) -> list[str]:
    watched = Orders()
    executable(feeds, hooks=[watched])
    return watched.steps


def anywhere(steps: list[str]) -> bool:
    """Whether anything has its channels last."""
    return any(step in ("in", "out", "view") or step.endswith("*") for step in steps)


def image(*shape: int) -> Any:
    return b.parameter(shape, "f32", name="x")


def test_from_the_first_convolution_to_the_result() -> None:
    x = image(1, 3, 20, 20)
    y = b.ReLU(b.Add(conv(x, 3, 24), b.constant(random(1, 24, 1, 1))))
    feeds = [random(1, 3, 20, 20)]
    executable, _ = run({"y": b.Tanh(conv(pool(y), 24, 8))}, *feeds)
    assert orders(executable, *feeds) == ["in", "Convolution+Add+ReLU*", "MaxPool*", "Convolution+Tanh*", "out"]


def test_operands_are_brought_into_order() -> None:
    x = image(2, 3, 12, 13)
    y = conv(conv(x, 3, 8), 8, 8)
    operands = [random(8, 1, 1), random(13), random(1, 8, 12, 13), random(12, 1), np.float32(2), random(2, 1, 1, 1)]
    for operand in operands:
        y = b.Add(b.constant(operand), b.Tanh(y))
    run({"y": conv(y, 8, 4)}, random(2, 3, 12, 13))


def test_an_operand_that_is_computed() -> None:
    x, scale = image(1, 3, 16, 16), b.parameter([32, 1, 1], "f32", name="scale")
    feeds = [random(1, 3, 16, 16), random(32, 1, 1)]
    executable, _ = run({"y": conv(b.Multiply(conv(x, 3, 32), scale), 32, 8)}, *feeds)
    steps = orders(executable, *feeds)  # the first of the scale, which has no axis but that of the channels
    assert steps == ["in", "Multiply*", "Convolution+Multiply*", "Convolution*", "out"]


def test_one_number_that_is_computed_inside() -> None:
    x = image(1, 3, 16, 16)
    y = conv(conv(x, 3, 32), 32, 8)
    feeds = [random(1, 3, 16, 16)]
    executable, _ = run({"y": b.Divide(y, b.ReduceMax(y, [0, 1, 2, 3], keep_dims=True))}, *feeds)
    assert orders(executable, *feeds).count("in") == 1


def test_what_others_read_is_no_copy() -> None:
    """As rows of channels, it has the order that it has in memory."""
    x = image(1, 3, 24, 24)
    y = b.ReLU(conv(b.ReLU(conv(b.ReLU(conv(x, 3, 24)), 24, 24)), 24, 4))
    tokens = b.Transpose(b.Reshape(y, [1, 4, 576], special_zero=False), [0, 2, 1])
    feeds = [random(1, 3, 24, 24)]
    executable, _ = run({"y": b.MatMul(tokens, b.constant(random(4, 5)))}, *feeds)
    steps = orders(executable, *feeds)
    assert "ReLU+Reshape+Transpose" in steps
    assert not {"view", "out"} & {*steps}


def test_a_value_that_is_a_result_and_read_on() -> None:
    x = image(1, 3, 24, 24)
    y = b.ReLU(conv(b.ReLU(conv(x, 3, 32)), 32, 4))
    z = conv(b.ReLU(conv(y, 4, 32)), 32, 4)
    feeds = [random(1, 3, 24, 24)]
    executable, _ = run({"y": y, "z": b.Add(y, z)}, *feeds)
    assert orders(executable, *feeds).count("out") == 2


def test_branches_meet() -> None:
    x = image(2, 3, 16, 16)
    y = conv(x, 3, 8)
    joined = b.Concat(y, b.ReLU(y), conv(y, 8, 4), axis=1)
    pooled = b.ReduceMean(conv(joined, 20, 8), [2, 3], keep_dims=True)
    gate = b.Sigmoid(b.Convolution(pooled, b.constant(random(8, 8, 1, 1)), **PLAIN))
    feeds = [random(2, 3, 16, 16)]
    executable, _ = run({"y": b.Multiply(gate, conv(joined, 20, 8))}, *feeds)
    assert orders(executable, *feeds).count("in") == 1


def test_both_outputs_of_a_pooling() -> None:
    x = image(1, 3, 20, 20)
    pooled = b.MaxPool(conv(x, 3, 24), strides=[2, 2], pads_begin=[0, 0], pads_end=[0, 0], kernel=[2, 2])
    run({"y": conv(pooled[0], 24, 8), "places": pooled[1]}, random(1, 3, 20, 20))


def test_not_where_it_is_left_at_once() -> None:
    x = image(1, 8, 16, 16)
    y = b.NormalizeL2(conv(x, 8, 8), [1], eps=1e-6, eps_mode="add")
    z = b.NormalizeL2(conv(y, 8, 8), [1], eps=1e-6, eps_mode="add")
    feeds = [random(1, 8, 16, 16)]
    executable, _ = run({"y": z}, *feeds)
    assert not anywhere(orders(executable, *feeds))


def test_not_for_dims_that_may_vary() -> None:
    feeds = [random(2, 3, 16, 16)]
    executable, _ = run({"y": conv(conv(image(-1, 3, 16, 16), 3, 8), 8, 8)}, *feeds)
    assert not anywhere(orders(executable, *feeds))


def test_hooks_see_the_order_of_the_specification() -> None:
    x = image(1, 3, 20, 21)
    y = conv(b.ReLU(conv(x, 3, 8)), 8, 5)
    seen: list[tuple[int, ...]] = []

    class Hook:
        def before(self, step: Any, inputs: Any) -> None: ...

        def after(self, step: Any, inputs: Any, outputs: Sequence[np.ndarray]) -> None:
            seen.append(outputs[0].shape)

    irrun.compile(b.model({"y": y}))([random(1, 3, 20, 21)], hooks=[Hook()])
    assert seen == [(1, 8, 20, 21), (1, 8, 20, 21), (1, 5, 20, 21)]


def test_what_is_cut_and_joined_stays_inside() -> None:
    x = image(1, 3, 16, 16)
    parts = b.Split(b.ReLU(conv(x, 3, 16)), 1, num_splits=2)
    grown = b.Interpolate(conv(parts[1], 8, 8), [32, 32], [2, 3], mode="nearest", shape_calculation_mode="sizes")
    shrunk = pool(b.PReLU(grown, b.constant(random(8))))
    padded = b.Pad(b.Concat(*parts, shrunk, axis=1), [0, 0, 1, 0], [0, 0, 0, 1], pad_mode="constant")
    feeds = [random(1, 3, 16, 16)]
    executable, _ = run({"y": conv(padded, 24, 4)}, *feeds)
    assert orders(executable, *feeds).count("in") == 1
    assert "view" not in orders(executable, *feeds)


def test_a_slope_for_each_channel_is_joined() -> None:
    x, slopes = image(1, 3, 16, 16), [random(8), np.abs(random(8)) + 0.01]
    y = conv(b.PReLU(conv(x, 3, 8), b.constant(slopes[0])), 8, 8)
    feeds = [random(1, 3, 16, 16)]
    executable, _ = run({"y": b.PReLU(y, b.constant(slopes[1]))}, *feeds)
    assert orders(executable, *feeds) == ["Convolution+PReLU", "Convolution+PReLU"]


def test_a_constant_for_planes_of_several_sizes() -> None:
    x, bias = image(1, 3, 12, 14), b.constant(random(1, 8, 1, 1))
    y = b.Add(conv(x, 3, 8), bias)
    small = b.Add(pool(y), bias)
    single = b.Concat(b.ReduceMax(small, [2, 3], keep_dims=True), bias, axis=3)
    run({"y": conv(small, 8, 4), "z": conv(b.Add(single, bias), 8, 2)}, random(1, 3, 12, 14))


def test_an_operand_of_integers() -> None:
    """It may be a shape, for all that is known before."""
    x, added = image(1, 3, 9, 10), b.parameter([10], "i32", name="added")
    whole = b.Add(b.Convert(conv(x, 3, 8), destination_type="i32"), added)
    y = conv(b.Convert(whole, destination_type="f32"), 8, 8)
    run({"y": y}, 9 * random(1, 3, 9, 10), np.arange(10, dtype=np.int32))


def test_a_result_of_what_keeps_the_order_of_its_input() -> None:
    x, slope = image(1, 3, 9, 10), b.parameter([8, 1, 1], "f32", name="slope")
    run({"y": b.PReLU(conv(conv(x, 3, 8), 8, 8), slope)}, random(1, 3, 9, 10), random(8, 1, 1))


@pytest.mark.parametrize("narrow", ["f16", "bf16"])
def test_narrow_floats_are_rounded_at_the_end(narrow: str) -> None:
    dtype = np.dtype(narrow.replace("f16", "float16"))
    arrays = [random(1, 3, 12, 12), random(32, 3, 3, 3), random(32, 1, 1), np.float32(0.3), random(4, 32, 3, 3)]
    arrays = [array.astype(dtype) for array in arrays]

    def executable(kind: str, arrays: Sequence[np.ndarray], exact: bool) -> irrun.Executable:
        filters, bias, factor, last = map(b.constant, arrays[1:])
        y = b.Convolution(b.parameter([1, 3, 12, 12], kind), filters, **EVEN)
        y = b.Multiply(b.Tanh(b.ReLU(b.Add(y, bias))), factor)
        z = b.Convolution(pool(y, 3, 1, 1), last, **EVEN)
        return irrun.compile(b.model({"y": b.Reshape(y, [32, 144], special_zero=False), "z": z}), exact=exact)

    found = executable(narrow, arrays, exact=False)
    assert sum(step.startswith("Convolution") and step.endswith("*") for step in orders(found, arrays[0])) == 2
    wide = [array.astype(np.float32) for array in arrays]
    for got, wanted in zip(found(arrays[0]).arrays, executable("f32", wide, exact=True)(wide[0]).arrays, strict=True):
        assert got.dtype == dtype
        error = float(ml_dtypes.finfo(dtype).eps)  # of one rounding
        np.testing.assert_allclose(got.astype(np.float32), wanted, rtol=error, atol=1e-5)


Draw = Callable[[st.SearchStrategy[Any]], Any]
ANY, FEW, AXIS = st.booleans(), st.sampled_from([1, 2, 3, 8, 33]), st.integers(-4, 3)


@cache
def shared(shape: tuple[int, ...]) -> Any:
    """A constant that many layers read."""
    return b.constant(random(*shape))


def operand(draw: Draw, x: Any) -> Any:
    """A constant that numpy broadcasts to a value."""
    if draw(ANY):
        return shared((x.shape.static[1], 1, 1))
    rank = draw(st.integers(0, 4))
    return shared(tuple(n if draw(ANY) else 1 for n in x.shape.static[4 - rank :]))


def cut(draw: Draw, x: Any) -> Any:
    axis = draw(AXIS)
    if x.shape.static[axis] < 2:
        return x
    return draw(st.sampled_from([*b.VariadicSplit(x, axis, [1, -1]), b.Slice(x, [1], [9], [2], [axis])]))


def filtered(draw: Draw, x: Any) -> Any:
    return conv(x, x.shape.static[1], draw(FEW))


def by_channel(draw: Draw, x: Any) -> Any:
    channels = x.shape.static[1]
    if draw(ANY):
        return b.PReLU(x, b.constant(random(channels)))
    return b.GroupConvolution(x, b.constant(random(channels, 1, 1, 3, 3)), **EVEN)


def meeting(draw: Draw, x: Any, y: Any) -> Any:
    """Two values made one, where their shapes allow it."""
    if x.shape.static == y.shape.static and draw(ANY):
        return b.Maximum(x, y)
    axes = [
        axis
        for axis in range(4)
        if all(m == n or i == axis for i, (m, n) in enumerate(zip(x.shape.static, y.shape.static)))
    ]
    return b.Concat(y, x, axis=draw(st.sampled_from(axes))) if axes else x


LAYERS: Sequence[Callable[[Draw, Any], Any]] = [
    filtered, filtered, by_channel, cut,
    lambda draw, x: b.Add(operand(draw, x), x),
    lambda draw, x: b.Multiply(x, operand(draw, x)),
    lambda draw, x: b.Tanh(x),
    lambda draw, x: b.Transpose(x, [0, 1, 3, 2]),
    lambda draw, x: pool(x, 3, draw(st.integers(1, 2)), 1),
    lambda draw, x: b.ReduceMax(x, [draw(AXIS)], keep_dims=True),
    lambda draw, x: b.SoftMax(x, axis=draw(AXIS)),
    lambda draw, x: b.Pad(x, [0, 0, draw(ANY), 1], [0, draw(ANY), 1, 0], pad_mode="constant"),
    lambda draw, x: b.Interpolate(x, [4, 5], [2, 3], mode=draw(st.sampled_from(["nearest", "linear"])), shape_calculation_mode="sizes"),
]  # fmt: skip


# a machine under load draws slowly, which says nothing of the layouts
@settings(max_examples=150, derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_any_network(data: st.DataObject) -> None:
    """With several branches and results, also in the middle, and sizes down to nothing."""
    draw = data.draw
    shape = [draw(st.integers(0, 2)), draw(FEW), draw(st.integers(1, 9)), draw(st.integers(1, 9))]
    made = [filtered(draw, image(*shape))]
    for _ in range(draw(st.integers(2, 9))):
        x = draw(st.sampled_from(made)) if draw(ANY) else made[-1]
        made.append(draw(st.sampled_from(LAYERS))(draw, x) if draw(ANY) else meeting(draw, made[-1], x))
    results = [filtered(draw, made[-1]), *draw(st.lists(st.sampled_from(made), max_size=2))]
    with mock.patch("irrun.planning.layout._MIN_COMPUTED_PER_MOVED", 1e-9):  # however little it pays
        run({f"y{n}": y for n, y in enumerate(results)}, random(*shape))


@pytest.mark.parametrize("shape", [(1, 0, 1), (1, 1, 0), (0, 2, 2), (2, 0, 0)])
@pytest.mark.parametrize(
    ("channels", "kernel", "groups"), [(3, 3, 3), (3, 5, 3), (3, 1, 1), (3, 3, 1), (32, 3, 1), (4, 3, 2)]
)
@pytest.mark.parametrize("stride", [1, 2])
def test_images_without_rows_or_columns(
    shape: tuple[int, int, int], channels: int, kernel: int, groups: int, stride: int
) -> None:
    """The dims of a run may be 0 where the model leaves them open, whichever method fits the filters."""
    batch, rows, columns = shape
    attributes = {
        "strides": [stride] * 2,
        "pads_begin": [0, 0],
        "pads_end": [0, 0],
        "dilations": [1, 1],
        "auto_pad": "same_upper",
    }
    filters = b.constant(random(groups, channels // groups, channels // groups, kernel, kernel))
    image = np.empty((batch, channels, rows, columns), np.float32)
    for dims in ([-1, channels, -1, -1], list(image.shape)):
        x = b.parameter(dims, "f32", name="x")
        model = b.model(b.GroupConvolution(x, filters, **attributes))
        wanted = irrun.compile(model, exact=True)([image])[0]
        assert wanted.size == 0
        assert irrun.compile(model, exact=False)([image])[0].shape == wanted.shape
