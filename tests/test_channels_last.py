"""Where convolutions are computed with channels last, and that it gives what the order of the specification does."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import irrun
from irrun import build as b

RNG = np.random.default_rng(3)
EVEN = {"strides": [1, 1], "pads_begin": [1, 1], "pads_end": [1, 1], "dilations": [1, 1]}
PLAIN = {"strides": [1, 1], "pads_begin": [0, 0], "pads_end": [0, 0], "dilations": [1, 1]}


def random(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def conv(x: Any, ins: int, outs: int) -> Any:
    return b.Convolution(x, b.constant(random(outs, ins, 3, 3)), **EVEN)


def run(outputs: Mapping[str, Any], *feeds: np.ndarray) -> tuple[irrun.Executable, Sequence[np.ndarray]]:
    """An executable, and its outputs, which were seen to be what the layers give one by one."""
    model = b.model(dict(outputs))
    executable, exact = irrun.compile(model, exact=False), irrun.compile(model, exact=True)
    executable(feeds)
    found = executable(feeds).arrays  # with memory that was used before
    for got, wanted in zip(found, exact(feeds).arrays, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5 * np.abs(wanted).max())
        assert got.flags.c_contiguous
    return executable, found


def algorithms(executable: irrun.Executable) -> list[str]:
    return [step.kernel.algorithm for step in executable.plan.steps]


def image(*shape: int) -> Any:
    return b.parameter(shape, "f32", name="x")


def test_from_the_first_convolution_to_the_result() -> None:
    x = image(1, 3, 20, 20)
    y = b.ReLU(b.Add(conv(x, 3, 24), b.constant(random(1, 24, 1, 1))))
    z = b.MaxPool(y, strides=[2, 2], pads_begin=[0, 0], pads_end=[0, 0], kernel=[2, 2])[0]
    executable, _ = run({"y": b.Tanh(conv(z, 24, 8))}, random(1, 3, 20, 20))
    assert algorithms(executable) == [
        "to channels last",
        "im2col, channels last",
        "in blocks, channels last",
        "im2col, channels last",
        "from channels last",
    ]


def test_operands_are_brought_into_order() -> None:
    x = image(2, 3, 12, 13)
    y = conv(conv(x, 3, 8), 8, 8)
    operands = [random(8, 1, 1), random(13), random(1, 8, 12, 13), random(12, 1), np.float32(2), random(2, 1, 1, 1)]
    for operand in operands:
        y = b.Add(b.constant(operand), b.Tanh(y))
    run({"y": conv(y, 8, 4)}, random(2, 3, 12, 13))


def test_an_operand_that_is_computed() -> None:
    x, scale = image(1, 3, 16, 16), b.parameter([32, 1, 1], "f32", name="scale")
    executable, _ = run({"y": conv(b.Multiply(conv(x, 3, 32), scale), 32, 8)}, random(1, 3, 16, 16), random(32, 1, 1))
    assert algorithms(executable).count("to channels last") == 2


def test_one_number_that_is_computed_inside() -> None:
    x = image(1, 3, 16, 16)
    y = conv(conv(x, 3, 32), 32, 8)
    executable, _ = run({"y": b.Divide(y, b.ReduceMax(y, [0, 1, 2, 3], keep_dims=True))}, random(1, 3, 16, 16))
    assert algorithms(executable).count("to channels last") == 1


def test_what_others_read_is_a_view() -> None:
    x = image(1, 3, 24, 24)
    y = b.ReLU(conv(b.ReLU(conv(b.ReLU(conv(x, 3, 24)), 24, 24)), 24, 4))
    tokens = b.Transpose(b.Reshape(y, [1, 4, 576], special_zero=False), [0, 2, 1])
    executable, _ = run({"y": b.MatMul(tokens, b.constant(random(4, 5)))}, random(1, 3, 24, 24))
    assert algorithms(executable).count("view of channels last") == 1
    assert "from channels last" not in algorithms(executable)


def test_a_value_that_is_a_result_and_read_on() -> None:
    x = image(1, 3, 24, 24)
    y = b.ReLU(conv(b.ReLU(conv(x, 3, 32)), 32, 4))
    z = conv(b.ReLU(conv(y, 4, 32)), 32, 4)
    executable, _ = run({"y": y, "z": b.Add(y, z)}, random(1, 3, 24, 24))
    assert algorithms(executable).count("from channels last") == 2


def test_branches_meet() -> None:
    x = image(2, 3, 16, 16)
    y = conv(x, 3, 8)
    joined = b.Concat(y, b.ReLU(y), conv(y, 8, 4), axis=1)
    pooled = b.ReduceMean(conv(joined, 20, 8), [2, 3], keep_dims=True)
    gate = b.Sigmoid(b.Convolution(pooled, b.constant(random(8, 8, 1, 1)), **PLAIN))
    executable, _ = run({"y": b.Multiply(gate, conv(joined, 20, 8))}, random(2, 3, 16, 16))
    assert algorithms(executable).count("to channels last") == 1


def test_both_outputs_of_a_pooling() -> None:
    x = image(1, 3, 20, 20)
    pooled = b.MaxPool(conv(x, 3, 24), strides=[2, 2], pads_begin=[0, 0], pads_end=[0, 0], kernel=[2, 2])
    run({"y": conv(pooled[0], 24, 8), "places": pooled[1]}, random(1, 3, 20, 20))


def test_not_where_it_is_left_at_once() -> None:
    x = image(1, 8, 16, 16)
    y = b.NormalizeL2(conv(x, 8, 8), [1], eps=1e-6, eps_mode="add")
    z = b.NormalizeL2(conv(y, 8, 8), [1], eps=1e-6, eps_mode="add")
    executable, _ = run({"y": z}, random(1, 8, 16, 16))
    assert not any("channels last" in algorithm for algorithm in algorithms(executable))


def test_not_for_dims_that_may_vary() -> None:
    executable, _ = run({"y": conv(conv(image(-1, 3, 16, 16), 3, 8), 8, 8)}, random(2, 3, 16, 16))
    assert not any("channels last" in algorithm for algorithm in algorithms(executable))


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
