"""Shapes that a model can declare and numpy cannot hold, and tensors without elements: errors of the model, no bugs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irrun
from irrun import build as b
from irrun.diagnostics import IrrunError
from nets import Net

WIDE = ",".join("1" * 65)
HUGE = f"{2**61},{2**61},0"


@pytest.mark.parametrize("element_type", ["f32", "i4", "boolean", "string"])
@pytest.mark.parametrize(("shape", "why"), [(WIDE, "65 dims"), (HUGE, "the product of its dims")], ids=["wide", "huge"])
def test_a_constant_that_no_array_can_hold(shape: str, why: str, element_type: str, tmp_path: Path) -> None:
    net = Net()
    size = {"f32": 4, "string": 12}.get(element_type, 1) if shape == WIDE else 1
    net.result(net.const(element_type, shape, bytes(size)))
    path = net.save(tmp_path)
    (finding,) = irrun.check(path)
    assert (finding.code, why in finding.message) == ("IR604", True)
    with pytest.raises(IrrunError, match="IR604"):
        irrun.run(path, [])


@pytest.mark.parametrize("shape", ["0,?", "?,0", "0", f"0,{2**61},{2**61}"])
def test_a_tensor_without_elements_is_traced(shape: str, tmp_path: Path) -> None:
    net = Net()
    target = net.parameter("i64", shape)
    data = net.parameter("f32", "...")
    net.result(net.add("Reshape", [data, target], [("FP32", "2,?")], special_zero="true"))
    path = net.save(tmp_path)
    assert {d.code for d in irrun.check(path)} <= {"IR401", "IR402", "IR403", "IR407"}
    assert irrun.why(path, "reshape2").record()["layer"] == "reshape2"


@pytest.mark.parametrize("shape", [WIDE, HUGE], ids=["wide", "huge"])
def test_an_input_that_no_array_can_hold(shape: str, tmp_path: Path) -> None:
    net = Net()
    net.result(net.add("ReLU", [net.parameter("f32", shape)], [("FP32", shape)]))
    with pytest.raises(IrrunError, match="IR604"):
        irrun.compile(net.save(tmp_path))


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("repeats", [[2**63 - 1, 0], [0, 2**63 - 1]])
def test_no_elements_but_dims_beyond_numpy(repeats: list[int], exact: bool) -> None:
    model = b.model([b.Tile(b.parameter([2, 3], "f32"), b.parameter([2], "i64"))])
    executable = irrun.compile(model, exact=exact)
    with pytest.raises(IrrunError, match="IR604"):
        executable([np.ones((2, 3), np.float32), np.array(repeats)])


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("is_constant", [False, True])
def test_an_array_within_a_kernel_that_no_array_can_hold(exact: bool, is_constant: bool) -> None:
    """The result has no elements, but the image is filled up before it is cut."""
    image, scales = np.ones((3, 3), np.uint64), np.array([1, 0], np.float32)
    inputs: list[Any] = [b.parameter([3, 3], "u64"), b.parameter([2], "f32")]
    feeds = [] if is_constant else [image, scales]
    resized = b.Interpolate(
        *([image, scales] if is_constant else inputs), np.array([0, 1]), mode="linear_onnx",
        shape_calculation_mode="scales", pads_begin=[1, 2**53], pads_end=[0, 2**61],
    )  # fmt: skip
    with pytest.raises(IrrunError, match="IR604"):
        irrun.compile(b.model([resized], inputs=[] if is_constant else inputs), exact=exact)(feeds)


def _empty(type: str) -> tuple[b.Node, list[np.ndarray], list[int]]:
    """Return a layer whose result is empty, its inputs, and the shape of the result."""
    image, sizes = b.parameter([1, 1, 2, 2]), b.parameter([2], "i64")
    if type == "ShuffleChannels":
        return b.ShuffleChannels(b.parameter([1, 0, 2]), axis=1, group=1 << 62), [np.ones((1, 0, 2))], [1, 0, 2]
    feeds, shape = [np.ones((1, 1, 2, 2)), np.array([1 << 40, 0])], [1, 1, 1 << 40, 0]
    if type == "AdaptiveAvgPool":
        return b.AdaptiveAvgPool(image, sizes), feeds, shape
    return b.AdaptiveMaxPool(image, sizes, index_element_type="i64")[int(type[-1])], feeds, shape


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("type", ["ShuffleChannels", "AdaptiveAvgPool", "AdaptiveMaxPool 0", "AdaptiveMaxPool 1"])
def test_results_without_elements(type: str, exact: bool) -> None:
    node, feeds, shape = _empty(type)
    converted = [feed.astype(np.float32) if feed.dtype == np.float64 else feed for feed in feeds]
    assert list(irrun.compile(b.model(node), exact=exact)(converted)[0].shape) == shape


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize(
    ("a", "b_", "options"),
    [
        ((2, 2, 3), (0, 3), {"transpose_b": True}),
        ((2, 2, 3), (3, 0), {}),
        ((2, 2, 0), (0, 3), {}),
        ((2, 3), (3, 0), {}),
    ],
)
def test_products_without_elements(
    a: tuple[int, ...], b_: tuple[int, ...], options: dict[str, Any], exact: bool
) -> None:
    data = np.ones(a)
    outputs = irrun.run(b.model([b.MatMul(b.parameter(a, "f64"), np.zeros(b_), **options)]), [data])
    expected = data @ (np.zeros(b_).T if options else np.zeros(b_))
    np.testing.assert_array_equal(outputs[0], expected)


@pytest.mark.parametrize(
    ("operation", "gates", "states"), [(b.RNNSequence, 1, 1), (b.GRUSequence, 3, 1), (b.LSTMSequence, 4, 2)]
)
def test_sequences_of_empty_elements(operation: Any, gates: int, states: int) -> None:
    x, n = b.parameter([2, 3, 0], "f32"), 4
    initial = [np.ones((2, 1, n), np.float32)] * states
    weights = [np.ones((1, gates * n, size), np.float32) for size in (0, n)]
    biases = np.zeros((1, gates * n), np.float32)
    layer = operation(x, *initial, np.full(2, 3, np.int32), *weights, biases, hidden_size=n, direction="forward")
    model = b.model([layer[0]])
    feed = np.ones((2, 3, 0), np.float32)
    fast, exact = (irrun.compile(model, exact=exact)([feed])[0] for exact in (False, True))
    np.testing.assert_allclose(fast, exact, rtol=1e-6)
