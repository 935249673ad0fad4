"""irrun as an engine: with its default plan, and with the defining kernels."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

import engine_checks as checks
import irrun
from irrun import build as b
from irrun import engines
from irrun.engines import Engine, Limits, Loaded, Outputs, Place


@pytest.mark.parametrize("type", checks.TENSORS)
def test_every_element_type(type: str, own: Engine, tmp_path: Path) -> None:
    checks.keeps_every_bit(own, type, tmp_path)


def test_any_dims(own: Engine, tmp_path: Path) -> None:
    checks.takes_any_dims(own, tmp_path)


@pytest.mark.parametrize("name", ["own", "exact"])
def test_inner_values(name: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    checks.shows_inner_values(request.getfixturevalue(name), tmp_path, in_bodies=True)


@pytest.mark.parametrize("name", ["own", "exact"])
def test_state(name: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    checks.keeps_state(request.getfixturevalue(name), tmp_path)


def test_refusals(own: Engine, tmp_path: Path) -> None:
    checks.refuses(own, tmp_path)


def test_names(own: Engine, exact: Engine, tmp_path: Path) -> None:
    assert (own.name, exact.name) == (f"irrun {irrun.__version__}", f"irrun {irrun.__version__} exact")
    x = b.parameter("?,3", "f16", name="x")
    irrun.save_model(b.model({"y": b.ReLU(x)}), tmp_path / "model.xml")
    loaded = own.load(tmp_path / "model.xml")
    assert isinstance(loaded, Loaded)
    (input,) = loaded.inputs
    assert (input.names[0], input.type, input.shape) == ("x", "f16", "[?,3]")
    assert "y" in loaded.outputs[0]
    assert not loaded.places


def test_observing_does_not_change_the_outputs(own: Engine, tmp_path: Path) -> None:
    """The outputs are those of the fused plan: those of a run without taps, to the last bit."""
    weights = np.random.default_rng(0).normal(size=(8, 4, 3, 3)).astype(np.float32)
    x = b.parameter([1, 4, 16, 16], name="x")
    y = b.Convolution(
        x, b.constant(weights), strides=[1, 1], pads_begin=[1, 1], pads_end=[1, 1], dilations=[1, 1], name="conv"
    )
    irrun.save_model(b.model({"y": b.ReLU(y)}), tmp_path / "model.xml")
    own.load(tmp_path / "model.xml", inner=True)
    feeds = {"x": np.random.default_rng(1).normal(size=(1, 4, 16, 16)).astype(np.float32)}
    plain, observed = own.infer(feeds), own.infer(feeds, [Place("conv")])
    assert isinstance(plain, Outputs)
    assert isinstance(observed, Outputs)
    np.testing.assert_array_equal(plain["y"], observed["y"])


def test_threads_are_passed_on(tmp_path: Path) -> None:
    irrun.save_model(b.model({"y": b.ReLU(b.parameter([2, 4], name="x"))}), tmp_path / "model.xml")
    with engines.open(f"irrun[threads=1]:{tmp_path / 'model.xml'}", Limits(120)) as engine:
        assert isinstance(engine.load(), Loaded)
        assert isinstance(engine.infer({"x": checks.X}), Outputs)


@pytest.mark.parametrize("kind", ["irrun", "exact"])
def test_a_precision_rounds_operands(kind: str, tmp_path: Path) -> None:
    """257 is between two numbers of bf16: 256, which is even, and 258."""
    x = b.parameter([1, 2], name="x")
    irrun.save_model(b.model({"y": b.MatMul(x, np.array([[257], [1]], np.float32))}), tmp_path / "model.xml")
    for precision, expected in ("f32", 257 * 257 + 3), ("bf16", 256 * 256 + 3):
        with engines.open(f"{kind}[precision={precision}]:{tmp_path / 'model.xml'}", Limits(120)) as engine:
            assert isinstance(engine.load(), Loaded)
            outputs = engine.infer({"x": np.array([[257, 3]], np.float32)})
            assert isinstance(outputs, Outputs)
            assert outputs["y"].item() == expected
            assert engine.properties == ({} if precision == "f32" else {"INFERENCE_PRECISION_HINT": "bf16"})


def test_an_empty_bin_may_be_written_again(own: Engine, tmp_path: Path) -> None:
    """The model does not read it."""
    irrun.save_model(b.model({"y": b.Abs(b.parameter([2, 4], name="x"))}), tmp_path / "model.xml")
    weights = tmp_path / "model.bin"
    weights.write_bytes(b"")
    assert isinstance(own.load(tmp_path / "model.xml"), Loaded)
    os.utime(weights, ns=(1, 1))
    assert isinstance(own.infer({"x": checks.X}), Outputs)
