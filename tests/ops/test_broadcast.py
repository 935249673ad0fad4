"""Broadcast-1 and Broadcast-3."""

from pathlib import Path

import numpy as np
import pytest

import irrun
from irrun.diagnostics import Refused
from irrun.inference.layer import infer
from irrun.opdef import Site
from kit import *
from nets import Net

VALUES = [
    Values("numpy-row", "Broadcast-3", [[1, 2, 3], i64(2, 3)], [[1, 2, 3], [1, 2, 3]]),
    Values("numpy-scalar", "Broadcast-3", [7, i64(2, 2)], [[7, 7], [7, 7]]),
    Values("explicit-column", "Broadcast-3", [[1, 2], i64(2, 3), i64(0)], [[1, 1, 1], [2, 2, 2]], {"mode": "explicit"}),
    Values("bidirectional-grows", "Broadcast-3", [[[1], [2]], i64(2)], [[1, 1], [2, 2]], {"mode": "bidirectional"}),
    *(
        Values(f"rules-bidirectional-{a}-{b}", "Broadcast-3", [arange(*a), i64(*b)], arange(*a) * np.ones(b, np.float32), {"mode": "bidirectional"})
        for a, b in [((5,), (1,)), ((2, 3), (3,)), ((3, 1), (3, 4)), ((3, 4), ()), ((3, 1), (2, 1, 6))]
    ),
    Values("empty-target", "Broadcast-3", [7, i64()], 7),
    Values("opset1", "Broadcast-1", [[5], i64(3)], [5, 5, 5]),
    Values("opset1-placeholder", "Broadcast-1", [[1, 2], i64(2, 2), np.uint8(0)], [[1, 2], [1, 2]]),
    Values("opset1-types", "Broadcast-1", [[1, 2], i64(2, 2), np.array([0], np.uint8)], [[1, 1], [2, 2]], {"mode": "explicit"}),
    Values("opset3-types", "Broadcast-3", [[1, 2], i64(2, 2), np.array([0], np.int32)], [[1, 1], [2, 2]], {"mode": "explicit"}),
]  # fmt: skip

SHAPES = [
    Shapes("spec-numpy", "Broadcast-3", ["f32[16,1,1]", "i64{1,16,50,50}"], "f32[1,16,50,50]"),
    Shapes("spec-explicit-1", "Broadcast-3", ["f32[16]", "i64{1,16,50,50}", "i64{1}"], "f32[1,16,50,50]", {"mode": "explicit"}),
    Shapes("spec-explicit-2", "Broadcast-3", ["f32[50,50]", "i64{1,50,50,16}", "i64{1,2}"], "f32[1,50,50,16]", {"mode": "explicit"}),
    Shapes("spec-bidirectional", "Broadcast-3", ["f32[16,1,1]", "i64{1,1,50,50}"], "f32[1,16,50,50]", {"mode": "bidirectional"}),
    *(
        Shapes(f"rules-bidirectional-{a}-{b}", "Broadcast-3", [f"f32[{a}]", f"i64{{{b}}}"], f"f32[{r}]", {"mode": "bidirectional"})
        for a, b, r in [("5", "1", "5"), ("2,3", "3", "2,3"), ("3,1", "3,4", "3,4"), ("3,4", "", "3,4"), ("3,1", "2,1,6", "2,3,6")]
    ),
    *(
        Shapes(f"onnx-unidirectional-{b}", "Broadcast-3", [f"f32[{b}]", "i64{2,3,4,5}"], "f32[2,3,4,5]")
        for b in ["", "5", "2,1,1,5", "1,3,1,5"]
    ),
    Shapes("partial-target", "Broadcast-3", ["f32[16,1,1]", "i64{1,?,50}"], "f32[16,?,50]", {"mode": "bidirectional"}),
    Shapes("data-tells-unknown-target", "Broadcast-3", ["f32[16,1]", "i64{?,50}"], "f32[16,50]"),
    Shapes("target-of-known-length", "Broadcast-3", ["f32[16,1,1]", "i64[4]"], "f32[?,16,?,?]"),
    Shapes("target-of-unknown-length", "Broadcast-3", ["f32[16,1,1]", "i64[?]"], "f32[...]"),
    Shapes("unknown-rank", "Broadcast-3", ["f32[...]", "i64{2,3}"], "f32[2,3]"),
    Shapes("unknown-rank-bidirectional", "Broadcast-3", ["f32[...]", "i64{2,3}"], "f32[...]", {"mode": "bidirectional"}),
    Shapes("carries-contents", "Broadcast-3", ["i64{?}", "i64{2}"], "i64{?,?}"),
]  # fmt: skip

REFUSALS = [
    Refusal("c1-axes-without-explicit", "Broadcast-3", ["f32[16]", "i64{1,16}", "i64{1}"]),
    Refusal("c1-explicit-without-axes", "Broadcast-1", ["f32[16]", "i64{1,16}"], {"mode": "explicit"}),
    Refusal("c2-too-few-axes", "Broadcast-3", ["f32[16,3]", "i64{1,16,3}", "i64{1}"], {"mode": "explicit"}),
    Refusal("c2-not-ascending", "Broadcast-3", ["f32[16,3]", "i64{3,16}", "i64{1,0}"], {"mode": "explicit"}),
    Refusal("c2-outside", "Broadcast-1", ["f32[16]", "i64{1,16}", "i64{2}"], {"mode": "explicit"}),
    Refusal("c3-inner-dim", "Broadcast-3", ["f32[16,2,1]", "i64{16,50,50}"]),
    Refusal("c3-target-smaller", "Broadcast-1", ["f32[2]", "i64{1}"]),
    Refusal("c4-differ", "Broadcast-3", ["f32[3]", "i64{2}"], {"mode": "bidirectional"}),
    Refusal("c5-target-2d", "Broadcast-3", ["f32[3]", "i64[1,3]"]),
    Refusal("c5-negative", "Broadcast-1", ["f32[3]", "i64{-1,3}"]),
    Refusal("c6-rank", "Broadcast-3", ["f32[1,3]", "i64{3}"]),
    Refusal("c6-rank-1", "Broadcast-1", ["f32[1,3]", "i64{3}"]),
    Refusal("ir301-float-target", "Broadcast-3", ["f32[3]", "f32[1]"]),
    Refusal("ir301-float-axes", "Broadcast-3", ["f32[3]", "i64{2,3}", "f32[1]"], {"mode": "explicit"}),
    Refusal("ir205-no-target", "Broadcast-3", ["f32[3]"]),
]

_TARGETS = [
    ((), ()), ((), (2, 3)), ((1,), (0,)), ((3,), (2, 3)), ((2, 1), (2, 3)), ((0, 1), (0, 4)),
    ((2, 1, 3), (5, 2, 4, 3)), ((1, 2, 1, 3), (4, 2, 2, 3)), ((2, 1, 1, 1, 3), (2, 2, 1, 2, 3)),
]  # fmt: skip

CASES = [
    Case(
        f"numpy-{np.dtype(t).name}-{list(data)}-{list(target)}",
        "Broadcast-3",
        [random(*data, dtype=t), i64(*target)],
        {"mode": "numpy"},
        shapes=[1],
        # OpenVINO: dies of a division by zero when it folds a Broadcast of no elements or to a scalar
        expected=np.broadcast_to(random(*data, dtype=t), target) if 0 in target or not target else None,
    )
    for data, target in _TARGETS for t in (*NUMERIC, np.bool_)
] + [
    Case("explicit-1", "Broadcast-3", [arange(16), i64(1, 16, 5, 5), i64(1)], {"mode": "explicit"}, shapes=[1, 2]),
    Case("explicit-2", "Broadcast-3", [arange(5, 4), i64(2, 5, 4, 3), i64(1, 2)], {"mode": "explicit"}, shapes=[1, 2]),
    Case("explicit-opset1", "Broadcast-1", [arange(5, 4), i64(2, 5, 4, 3), i64(1, 2)], {"mode": "explicit"}, shapes=[1, 2]),
    Case("bidirectional-1", "Broadcast-3", [arange(16, 1, 1), i64(1, 1, 5, 5)], {"mode": "bidirectional"}, shapes=[1]),
    Case("bidirectional-short", "Broadcast-3", [arange(2, 3, 1), i64(1, 4)], {"mode": "bidirectional"}, shapes=[1]),
    Case("i32-target", "Broadcast-3", [arange(3, 1), np.array([2, 3, 4], np.int32)], {"mode": "numpy"}, shapes=[1]),
]  # fmt: skip


@pytest.mark.parametrize(("version", "expected"), [(3, ["IR406"]), (1, [])])
def test_types_of_shape_and_axes(version: int, expected: list[str], tmp_path: Path) -> None:
    net = Net()
    target = net.const("i64", "2", i64(1, 3).tobytes())
    axes = net.const("i32", "1", b"\1\0\0\0")
    inputs = [net.parameter("f32", "3"), target, axes]
    net.result(net.add("Broadcast", inputs, [("FP32", "1,3")], opset=f"opset{version}", mode="explicit"))
    assert [finding.code for finding in irrun.check(net.save(tmp_path))] == expected


@pytest.mark.parametrize("exact", [False, True])
def test_placeholder_of_opset1(exact: bool, tmp_path: Path) -> None:
    net = Net()
    inputs = [net.parameter("f32", "2"), net.const("i64", "2", i64(2, 2).tobytes()), net.const("u8", "", b"\0")]
    net.result(net.add("Broadcast", inputs, [("FP32", "2,2")], mode="numpy"))
    path = net.save(tmp_path)
    assert not irrun.check(path).diagnostics
    assert irrun.compile(path, exact=exact)(np.array([1, 2], np.float32))[0].tolist() == [[1, 2], [1, 2]]


@pytest.mark.parametrize(
    ("inputs", "attributes", "shapes_named"),
    [
        (["f32[1,3]", "i64{3}"], {}, ("[1,3]", "[3]")),
        (["f32[16,3]", "i64{1,16,3}", "i64{1}"], {"mode": "explicit"}, ("[16,3]", "[1,16,3]")),
        (["f32[16]", "i64{1,16}", "i64{2}"], {"mode": "explicit"}, ("[16]", "[1,16]")),
    ],
)
def test_messages_name_both_shapes(
    inputs: list[str], attributes: dict[str, str], shapes_named: tuple[str, str]
) -> None:
    with pytest.raises(Refused) as caught:
        infer(operation("Broadcast-3", attributes), Site(), [tensor(text) for text in inputs], {})
    assert all(shape in caught.value.message for shape in shapes_named)
