"""TensorIterator-1."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import irrun
from irrun import build as b
from irrun.diagnostics import Refused
from irrun.inference.layer import infer
from irrun.model import MapEntry
from irrun.opdef import Site
from kit import *
from oracle import Oracle


def _running_sum(ov: Any, part: int, *, backwards: bool, dynamic: bool) -> Any:
    """The running sum of slices of ``part`` along axis 1, plus a constant that every iteration sees."""
    ops = ov.opset8
    x = ops.parameter([2, -1 if dynamic else 6, 3], np.float32, name="x")
    start_value = ops.parameter([2, part, 3], np.float32, name="start")
    bias = ops.parameter([3], np.float32, name="bias")
    piece = ops.parameter([2, part, 3], np.float32, name="piece")
    carried = ops.parameter([2, part, 3], np.float32, name="carried")
    inner_bias = ops.parameter([3], np.float32, name="inner_bias")
    total = ops.add(ops.add(piece, carried), inner_bias)
    body = ov.Model([ops.result(total)], [piece, carried, inner_bias], "body")
    node = ops.tensor_iterator()
    node.set_body(body)
    start, stride, end = (-1, -part, 0) if backwards else (0, part, -1)
    node.set_sliced_input(piece, x.output(0), start, stride, part, end, 1)
    node.set_merged_input(carried, start_value.output(0), total.output(0))
    node.set_invariant_input(inner_bias, bias.output(0))
    last = node.get_iter_value(total.output(0), -1)
    every = node.get_concatenated_slices(total.output(0), start, stride, part, end, 1)
    return ov.Model([ops.result(last), ops.result(every)], [x, start_value, bias], "iterator")


@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
@pytest.mark.parametrize("backwards", [False, True], ids=["forwards", "backwards"])
@pytest.mark.parametrize("part", [1, 2, 3])
def test_against_openvino(part: int, backwards: bool, dynamic: bool, ov: Any, oracle: Oracle) -> None:
    model = _running_sum(ov, part, backwards=backwards, dynamic=dynamic)
    same_as_openvino(oracle, model, [random(2, 6, 3), random(2, part, 3, seed=1), random(3)])


_SLICED = MapEntry("input", 0, 0, axis=0)


@pytest.mark.parametrize(
    ("label", "inputs", "ports"),
    [
        ("C2", ["f32[]"], (_SLICED, MapEntry("output", 0, 1))),
        ("C3", ["f32[3]", "f32[4]"], (_SLICED, MapEntry("input", 1, 2, axis=0), MapEntry("output", 0, 1))),
        ("C4", ["f32[3]"], (_SLICED,)),
        ("C5", ["f32[3]"], (replace(_SLICED, stride=255), MapEntry("output", 0, 1))),
        ("C5", ["f32[5]"], (replace(_SLICED, start=-1, end=0, stride=-2, part_size=2), MapEntry("output", 0, 1))),
        ("C5", ["f32[3]"], (replace(_SLICED, stride=0), MapEntry("output", 0, 1))),
        ("C5", ["f32[3]"], (replace(_SLICED, part_size=0), MapEntry("output", 0, 1))),
        ("C5", ["f32[3]"], (replace(_SLICED, part_size=-1), MapEntry("output", 0, 1))),
        ("C5", ["f32[3]"], (replace(_SLICED, part_size=7), MapEntry("output", 0, 1))),
        ("C5", ["f32[5]"], (replace(_SLICED, part_size=2, stride=2), MapEntry("output", 0, 1))),
        ("C5", ["f32[5]"], (replace(_SLICED, start=-1, end=0, part_size=2, stride=-2), MapEntry("output", 0, 1))),
    ],
    ids=[
        "c2-scalar-sliced",
        "c3-slices-differ",
        "c4-output-not-mapped",
        "c5-beyond-the-axis",
        "c5-before-the-axis",
        "c5-no-stride",
        "c5-empty-part",
        "c5-negative-part",
        "c5-part-beyond-the-axis",
        "c5-last-part-too-short",
        "c5-first-part-too-short",
    ],
)
def test_refusals(label: str, inputs: list[str], ports: tuple[MapEntry, ...]) -> None:
    needed = {"bodies": {"body": FakeBody({1: tensor("f32[1]")})}, "maps": {"port_map": ports}, "back_edges": ()}
    with pytest.raises(Refused) as caught:
        infer(operation("TensorIterator-1"), Site(), [tensor(t) for t in inputs], needed)
    assert caught.value.label == label


@pytest.mark.parametrize(
    ("entry", "data", "result", "axis", "expected"),
    [
        # as many iterations as there are slices
        ({"part_size": 2, "stride": 2}, "f32[6,3]", "f32[2,3]", 0, "f32[6,3]"),
        ({}, "f32[6,3]", "f32[2,3]", 1, "f32[2,18]"),
        ({"start": 1, "end": 4}, "f32[6]", "f32[1]", 0, "f32[3]"),
        ({"start": 2}, "f32[6]", "f32[1]", 0, "f32[4]"),
        ({"start": -1, "end": 0, "stride": -1}, "f32[6]", "f32[1]", 0, "f32[6]"),
        ({"start": -1, "end": 0, "stride": -2, "part_size": 2}, "f32[6]", "f32[2]", 0, "f32[6]"),
        ({}, "f32[?]", "f32[1]", 0, "f32[?]"),
        ({}, "f32[2..4]", "f32[3]", 0, "f32[6..12]"),
        ({}, "f32[...]", "f32[1]", 0, "f32[?]"),
        ({}, "f32[6]", "f32[...]", 0, "f32[...]"),
        # what is not sliced is iterated over once
        ({"axis": None}, "f32[6]", "f32[2]", 0, "f32[2]"),
        ({"axis": None}, "f32[?]", "f32[2,4]", 1, "f32[2,4]"),
    ],
)
def test_shapes(entry: dict[str, Any], data: str, result: str, axis: int, expected: str) -> None:
    """A concatenated output, and the same without an axis: that of the last iteration."""
    ports = (
        replace(_SLICED, **entry),
        MapEntry("output", 0, 1, axis=axis),
        MapEntry("output", 1, 1),
    )
    needed = {"bodies": {"body": FakeBody({1: tensor(result)})}, "maps": {"port_map": ports}, "back_edges": ()}
    found = infer(operation("TensorIterator-1"), Site(2), [tensor(data)], needed)
    assert [describe(value, contents=False) for value in found] == [expected, result]


@pytest.mark.parametrize(
    ("entry", "slices"),
    [
        ({}, [[0], [1], [2], [3], [4], [5]]),
        ({"part_size": 2, "stride": 2}, [[0, 1], [2, 3], [4, 5]]),
        ({"part_size": 3, "stride": 3, "start": 3}, [[3, 4, 5]]),
        ({"start": 1, "end": 4}, [[1], [2], [3]]),
        ({"start": -1, "end": 0, "stride": -1}, [[5], [4], [3], [2], [1], [0]]),
        ({"start": -1, "end": 0, "stride": -2, "part_size": 2}, [[4, 5], [2, 3], [0, 1]]),
        ({"axis": None}, [[0, 1, 2, 3, 4, 5]]),
    ],
)
def test_slices_and_what_is_carried(entry: dict[str, Any], slices: list[list[int]]) -> None:
    """Each iteration sees a slice and what the one before gave; the outputs are the last and all of them."""
    seen: list[tuple[list[int], int]] = []

    def body(inputs: dict[int, np.ndarray]) -> dict[int, np.ndarray]:
        seen.append((inputs[0].tolist(), int(inputs[1])))
        return {2: inputs[1] + inputs[0].sum(), 3: 10 * inputs[0]}

    ports = (
        replace(_SLICED, **entry),
        MapEntry("input", 1, 1),
        MapEntry("output", 0, 2),
        MapEntry("output", 1, 3, axis=0),
    )
    needed: dict[str, Any] = {"bodies": {"body": body}, "maps": {"port_map": ports}, "back_edges": ((2, 1),)}
    last, joined = operation("TensorIterator-1").run(np.arange(6), np.array(100), **needed)
    sums = [100 + sum(map(sum, slices[:count])) for count in range(len(slices) + 1)]
    assert seen == list(zip(slices, sums))
    assert last == sums[-1]
    # whatever the stride of the input, the output has its own
    assert joined.tolist() == [10 * n for part in slices for n in part]


def _bodies_of_constants() -> dict[str, Any]:
    """Nodes whose inputs are all constants, one for each operation with bodies."""
    rows = np.array([[1.0, 2.0], [3.0, 4.0]], np.float32)
    first = np.array([[10.0, 20.0]], np.float32)
    return {
        "TensorIterator": b.TensorIterator(b.sliced(b.constant(rows)), b.constant(first), body=lambda row, total: [b.Add(row, total)]),
        "Loop": b.Loop(2, True, b.sliced(b.constant(rows)), b.constant(first), body=lambda _, row, total: [True, b.Add(row, total)]),
        "If": b.If(True, b.constant(rows), then=lambda x: b.Add(b.ReduceSum(x, [0], keep_dims=True), first), otherwise=lambda x: b.constant(first)),
    }  # fmt: skip


@pytest.mark.parametrize("type", ["TensorIterator", "Loop", "If"])
@pytest.mark.parametrize("exact", [False, True])
def test_inputs_that_are_all_constants(type: str, exact: bool) -> None:
    """Inference does not run a body on arrays to learn the contents of an output."""
    model = b.model(_bodies_of_constants()[type][0])
    assert not irrun.check(model).errors
    assert irrun.compile(model, exact=exact)()[0].tolist() == [[14.0, 26.0]]
