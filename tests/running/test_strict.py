"""Strict runs: every output is as its port declares, and what inference proves costs nothing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

import irrun
from irrun import build as b
from irrun.diagnostics import Diagnostic, ExecutionError
from irrun.planning.steps import Step
from nets import Net, Ref

A = np.arange(6, dtype=np.float32).reshape(2, 3)


def diagnostic(caught: pytest.ExceptionInfo[ExecutionError]) -> Diagnostic:
    (found,) = caught.value.diagnostics
    return found


class Steps:
    """A hook that keeps the layers of each step, as a run without hooks has them."""

    joined = True

    def __init__(self) -> None:
        self.layers: list[tuple[str, ...]] = []

    def before(self, step: Step, inputs: Sequence[np.ndarray | None]) -> None:
        self.layers.append(tuple(layer.name for layer in step.layers))

    def after(self, step: Step, inputs: Sequence[np.ndarray | None], outputs: Sequence[np.ndarray]) -> None: ...


@pytest.mark.parametrize(
    ("port", "says"), [(("FP32", "2,4"), "declares [2,4], but is [2,3]"), (("FP16", "2,3"), "declares f16, but is f32")]
)
def test_strict_stops_at_what_is_not_as_declared(port: tuple[str, str], says: str, tmp_path: Path) -> None:
    net = Net()
    x = net.parameter("f32", "2,3", name="x")
    wrong = net.add("ReLU", [x], [port], name="wrong")
    net.result(
        net.add("ReLU", [Ref(wrong.layer, wrong.port, ("FP32", "2,3"))], [("FP32", "2,3")], name="right"), name="y"
    )
    path = net.save(tmp_path)
    np.testing.assert_array_equal(irrun.run(path, A)[0], A)
    with pytest.raises(ExecutionError) as caught:
        irrun.run(path, A, strict=True)
    found = diagnostic(caught)
    assert (found.code, found.layer, found.port) == ("IR602", "wrong", 1)
    assert says in found.message
    assert "strict=False" in (found.help or "")
    assert '<port id="1"' in path.read_text().split("\n")[(found.line or 0) - 1]


def test_strict_accepts_unknown_and_undeclared(tmp_path: Path) -> None:
    net = Net()
    x = net.parameter("f32", "?,?", name="x")
    net.result(net.add("ReLU", [x], [("FP32", "-1,3")], name="dims"))
    net.result(net.add("ReLU", [x], [("", "")], name="nothing"))
    irrun.run(net.save(tmp_path), A, strict=True)
    with pytest.raises(ExecutionError, match=r"declares \[\?,3\], but is \[2,5\]"):
        irrun.run(net.save(tmp_path), np.zeros((2, 5), np.float32), strict=True)


@pytest.mark.parametrize("rows", [2, None])
def test_a_strict_run_has_the_steps_of_any_run(rows: int | None) -> None:
    """f16 weights are folded once, and element-wise layers are fused once the dims recur."""
    x = b.parameter([rows, 3], name="x")
    weights = b.Convert(b.constant(np.eye(3, dtype=np.float16)), destination_type="f32")
    model = b.model(b.Exp(b.Negative(b.Sin(b.MatMul(x, weights, name="product")), name="minus")))
    seen: list[list[list[tuple[str, ...]]]] = []
    for strict in (False, True):
        executable = irrun.compile(model, strict=strict, exact=False)
        seen.append([])
        for _ in range(5):
            steps = Steps()
            np.testing.assert_allclose(executable(A, hooks=[steps])[0], np.exp(-np.sin(A)), rtol=1e-6)
            seen[-1].append(steps.layers)
    assert seen[0] == seen[1]
    assert len(seen[0][-1]) < 4
    assert all("convert" not in name for run in seen[0] for layers in run for name in layers)


def test_each_of_several_runs_is_compared(tmp_path: Path) -> None:
    """The plan for dims that recur proves the port, the plan for any dims does not."""
    net = Net()
    x = net.parameter("f32", "?,3", name="x")
    minus = net.add("Negative", [x], [("FP32", "2,3")], name="minus")
    net.result(net.add("Abs", [minus], [("FP32", "-1,3")], name="abs"))
    executable = irrun.compile(net.save(tmp_path), strict=True)
    for _ in range(5):
        assert executable(A)[0].shape == (2, 3)
        with pytest.raises(ExecutionError, match=r'"minus" output 1 declares \[2,3\], but is \[4,3\]'):
            executable(np.ones((4, 3), np.float32))
    for _ in range(5):
        with pytest.raises(ExecutionError, match=r'"minus"'):
            executable(np.ones((4, 3), np.float32))


@pytest.mark.parametrize("read", [True, False])
def test_what_depends_on_values_is_compared(read: bool, tmp_path: Path) -> None:
    """A layer that nothing reads is computed in a strict run if only a run knows its shape."""
    net = Net()
    x = net.parameter("f32", "4", name="x")
    found = net.add("NonZero", [x], [("I64", "1,3")], opset="opset3", name="found", output_type="i64")
    net.result(found if read else net.add("ReLU", [x], [("FP32", "4")]))
    executable = irrun.compile(net.save(tmp_path), strict=True)
    executable(np.array([1, 0, 2, 3], np.float32))
    with pytest.raises(ExecutionError, match=r'"found" output 1 declares \[1,3\], but is \[1,2\]'):
        executable(np.array([1, 0, 0, 3], np.float32))


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize(("shape", "element_type"), [("2", "f32"), ("1,3", "f32"), ("3", "f16")])
def test_a_body_gets_other_inputs_than_it_declares(shape: str, element_type: str, exact: bool, tmp_path: Path) -> None:
    """Inference takes what a body gets, and so does a run, whose layers would be fused for the declared shape."""
    path = tmp_path / "net.xml"
    x = b.parameter([3], name="x")
    loop = b.Loop(4, True, x, body=lambda i, a: (True, b.Sin(b.Negative(b.Exp(a)))), name="loop")
    irrun.save_model(b.model(loop), path)
    before, inside, after = path.read_text().partition("<body>")
    inside += after.replace('shape="3" element_type="f32"', f'shape="{shape}" element_type="{element_type}"', 1)
    path.write_text(before + inside)
    expected = x = np.array([0, 1, 2], np.float32)
    for _ in range(4):
        expected = np.sin(-np.exp(expected))
    for _ in range(2):
        np.testing.assert_allclose(irrun.compile(path, exact=exact)(x)[0], expected, rtol=1e-5)
    with pytest.raises(ExecutionError, match=r'IR602.* "parameter_1" output 0 declares'):
        irrun.compile(path, strict=True, exact=exact)(x)
