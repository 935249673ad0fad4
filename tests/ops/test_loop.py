"""Loop-5."""

from typing import Any

import numpy as np
import pytest

from irrun.diagnostics import Refused
from irrun.inference.layer import infer
from irrun.model import MapEntry
from irrun.opdef import Site
from kit import *
from oracle import Oracle


def _counting(ov: Any, trips: int | None, begin: bool | None, stop_at: int | None, *, dynamic: bool = False) -> Any:
    """x += current iteration, until ``trips`` or x[0] > stop_at; last value, all values, and slices in."""
    ops = ov.opset8
    shape = [1, -1] if dynamic else [1, 2]
    x = ops.parameter(shape, np.float32, name="x")
    table = ops.parameter([3, 2], np.float32, name="table")
    trip_count = ops.parameter([], np.int64, name="trips") if trips is None else ops.constant(np.int64(trips))
    condition = ops.parameter([], bool, name="begin") if begin is None else ops.constant(begin)
    inner = ops.parameter(shape, np.float32, name="inner")
    row = ops.parameter([1, 2], np.float32, name="row")
    iteration = ops.parameter([], np.int64, name="iteration")
    total = ops.add(ops.add(inner, ops.convert(iteration, "f32")), row)
    go_on = ops.constant(True)
    if stop_at is not None:
        first = ops.reduce_max(total, ops.constant([0, 1]))
        go_on = ops.less(first, ops.constant(np.float32(stop_at)))
    results = [ops.result(total), ops.result(go_on)]
    body = ov.Model(results, [inner, row, iteration], "body")
    loop = ops.loop(trip_count, condition)
    loop.set_function(body)
    loop.set_special_body_ports([2, 1])
    loop.set_merged_input(inner, x.output(0), total.output(0))
    loop.set_sliced_input(row, table.output(0), 0, 1, 1, -1, 0)
    last = loop.get_iter_value(total.output(0), -1)
    every = loop.get_concatenated_slices(total.output(0), 0, 1, 1, -1, 0)
    parameters = [n for n in (x, table, trip_count, condition) if n.get_type_name() == "Parameter"]
    return ov.Model([ops.result(last), ops.result(every)], parameters, "loop")


@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
@pytest.mark.parametrize("stop_at", [None, 4], ids=["counted", "stopped"])
def test_constant_trip_count(stop_at: int | None, dynamic: bool, ov: Any, oracle: Oracle) -> None:
    feeds = [np.ones((1, 2), np.float32), random(3, 2)]
    same_as_openvino(oracle, _counting(ov, 3, True, stop_at, dynamic=dynamic), feeds)


def test_trip_count_and_condition_as_parameters(ov: Any, oracle: Oracle) -> None:
    x, table = np.ones((1, 2), np.float32), random(3, 2)
    same_as_openvino(
        oracle,
        _counting(ov, None, None, 5),
        [x, table, np.array(3, np.int64), np.array(True)],
        [x, table, np.array(1, np.int64), np.array(True)],
    )


def test_growing_state(ov: Any, oracle: Oracle) -> None:
    """What is carried around changes its shape with every iteration."""
    ops = ov.opset8
    x = ops.parameter([1, 2], np.float32, name="x")
    inner = ops.parameter([-1, 2], np.float32, name="inner")
    longer = ops.concat([inner, inner], 0)
    body = ov.Model([ops.result(longer), ops.result(ops.constant(True))], [inner], "body")
    loop = ops.loop(ops.constant(np.int64(4)), ops.constant(True))
    loop.set_function(body)
    loop.set_special_body_ports([-1, 1])
    loop.set_merged_input(inner, x.output(0), longer.output(0))
    model = ov.Model([ops.result(loop.get_iter_value(longer.output(0), -1))], [x], "loop")
    same_as_openvino(oracle, model, [random(1, 2)])


_PORTS = {
    "sliced": (
        MapEntry("input", 2, 0, axis=0),
        MapEntry("output", 0, 1),
        MapEntry("output", None, 2, purpose="execution_condition"),
    ),
    "two": (MapEntry("input", 2, 0, axis=0), MapEntry("input", 3, 3, axis=0), MapEntry("output", 0, 1)),
    "none": (),
    "far": (MapEntry("input", 2, 0, axis=0, stride=255), MapEntry("output", 0, 1)),
}


@pytest.mark.parametrize(
    ("label", "inputs", "ports"),
    [
        ("C1", ["i64[2]", "boolean[]", "f32[3]"], "sliced"),
        ("C1", ["i64[]{3}", "boolean[2]", "f32[3]"], "sliced"),
        ("C2", ["i64[]{3}", "boolean[]{1}", "f32[]"], "sliced"),
        ("C3", ["i64[]{-1}", "boolean[]{1}", "f32[3]", "f32[4]"], "two"),
        ("C4", ["i64[]{3}", "boolean[]{1}", "f32[3]"], "none"),
        ("C5", ["i64[]{3}", "boolean[]{1}", "f32[3]"], "far"),
    ],
    ids=[
        "c1-trip-count",
        "c1-condition",
        "c2-scalar-sliced",
        "c3-slices-differ",
        "c4-output-not-mapped",
        "c5-beyond-the-axis",
    ],
)
def test_refusals(label: str, inputs: list[str], ports: str) -> None:
    body = FakeBody({1: tensor("f32[1]"), 2: tensor("boolean[]{1}")})
    needed = {"bodies": {"body": body}, "maps": {"port_map": _PORTS[ports]}, "back_edges": ()}
    with pytest.raises(Refused) as caught:
        infer(operation("Loop-5"), Site(), [tensor(t) for t in inputs], needed)
    assert caught.value.label == label
