"""If-8."""

from typing import Any

import numpy as np
import pytest

from irrun.diagnostics import Refused
from irrun.inference.layer import infer
from irrun.model import MapEntry
from irrun.opdef import Site
from kit import *
from oracle import Oracle


def _model(ov: Any, *shape: int) -> Any:
    ops = ov.opset8
    cond, x, y = ops.parameter([], bool), ops.parameter([*shape], np.float32), ops.parameter([*shape], np.float32)
    a, b, c = (ops.parameter([*shape], np.float32) for _ in range(3))
    total = ops.add(a, b)
    then = ov.Model([ops.result(total), ops.result(ops.add(total, a))], [a, b], "then")
    tripled = ops.multiply(c, ops.constant(np.float32(3)))
    other = ov.Model([ops.result(tripled), ops.result(ops.subtract(c, tripled))], [c], "else")
    node = ops.if_op(cond)
    node.set_then_body(then)
    node.set_else_body(other)
    node.set_input(x.output(0), a, c)
    node.set_input(y.output(0), b, None)
    outputs = [node.set_output(t, e) for t, e in zip(then.results, other.results)]
    return ov.Model(outputs, [cond, x, y], "if")


@pytest.mark.parametrize("shape", [(2, 4), (-1, 4), (-1, -1), ()], ids=str)
def test_against_openvino(shape: tuple[int, ...], ov: Any, oracle: Oracle) -> None:
    exact = [2 if d == -1 else d for d in shape]
    x, y = random(*exact), random(*exact, seed=1)
    same_as_openvino(oracle, _model(ov, *shape), [np.array(True), x, y], [np.array(False), x, y])


def test_branches_of_different_shape(ov: Any, oracle: Oracle) -> None:
    ops = ov.opset8
    cond, x = ops.parameter([], bool), ops.parameter([2, 3], np.float32)
    a, b = ops.parameter([2, 3], np.float32), ops.parameter([2, 3], np.float32)
    then = ov.Model([ops.result(ops.concat([a, a], 0))], [a], "then")
    other = ov.Model([ops.result(b)], [b], "else")
    node = ops.if_op(cond)
    node.set_then_body(then)
    node.set_else_body(other)
    node.set_input(x.output(0), a, b)
    model = ov.Model([node.set_output(then.results[0], other.results[0])], [cond, x], "if")
    same_as_openvino(oracle, model, [np.array(True), random(2, 3)], [np.array(False), random(2, 3)])


@pytest.mark.parametrize(
    ("label", "cond", "then", "other"),
    [("C1", "boolean[2]", "f32[2]", "f32[2]"), ("C2", "boolean[]", "f32[2]", "i64[2]")],
    ids=["c1-two-conditions", "c2-types-differ"],
)
def test_refusals(label: str, cond: str, then: str, other: str) -> None:
    maps = {f"{branch}_port_map": (MapEntry("output", 0, 0),) for branch in ("then", "else")}
    bodies = {"then_body": FakeBody({0: tensor(then)}), "else_body": FakeBody({0: tensor(other)})}
    with pytest.raises(Refused) as caught:
        infer(operation("If-8"), Site(), [tensor(cond)], {"bodies": bodies, "maps": maps})
    assert caught.value.label == label


@pytest.mark.parametrize(
    ("cond", "then", "other", "expected"),
    [
        ("boolean[]", "f32[2,3]", "f32[2,3]", "f32[2,3]"),
        ("boolean[1]", "f32[2,3]", "f32[4,3]", "f32[2..4,3]"),
        ("boolean[]", "f32[2,3]", "f32[?,3]", "f32[?,3]"),
        ("boolean[]", "f32[2,3]", "f32[2]", "f32[...]"),
        ("boolean[]", "f32[2]", "f32[...]", "f32[...]"),
        ("boolean[]", "f32[...]", "f32[2]", "f32[...]"),
        ("boolean[]{1}", "f32[2,3]", "i64[4]", "f32[2,3]"),
        ("boolean[]{0}", "f32[2,3]", "i64[4]", "i64[4]"),
    ],
)
def test_shapes(cond: str, then: str, other: str, expected: str) -> None:
    """What either branch may give, or that of the branch which a known condition takes."""
    maps = {f"{branch}_port_map": (MapEntry("output", 0, 0),) for branch in ("then", "else")}
    bodies = {"then_body": FakeBody({0: tensor(then)}), "else_body": FakeBody({0: tensor(other)})}
    (found,) = infer(operation("If-8"), Site(), [tensor(cond), tensor("f32[?]")], {"bodies": bodies, "maps": maps})
    assert describe(found, contents=False) == expected


def test_an_output_of_one_branch_alone() -> None:
    maps = {"then_port_map": (MapEntry("output", 0, 0),), "else_port_map": ()}
    bodies = {"then_body": FakeBody({0: tensor("f32[2]")}), "else_body": FakeBody({})}
    needed = {"bodies": bodies, "maps": maps}
    found = [
        infer(operation("If-8"), Site(2), [tensor(f"boolean[]{known}"), tensor("f32[?]")], needed)
        for known in ("", "{0}")
    ]
    assert [[describe(v, contents=False) for v in values] for values in found] == [
        ["f32[2]", "dynamic[...]"],
        ["dynamic[...]"] * 2,
    ]
