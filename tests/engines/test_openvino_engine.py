"""OpenVINO as an engine."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import engine_checks as checks
import irrun
from irrun import build as b
from irrun import engines
from irrun.engines import Crash, Engine, Limits, Loaded, Outputs, Place
from places import DEPARTURES

pytestmark = pytest.mark.openvino

HARNESSES = Path(engines.__file__).parent / "harnesses"


@pytest.mark.parametrize("type", [t for t in checks.TENSORS if t not in ("f64", "i4", "u4")])
def test_every_element_type(type: str, openvino: Engine, tmp_path: Path) -> None:
    checks.keeps_every_bit(openvino, type, tmp_path)


def test_any_dims(openvino: Engine, tmp_path: Path) -> None:
    checks.takes_any_dims(openvino, tmp_path)


def test_inner_values(openvino: Engine, tmp_path: Path) -> None:
    checks.shows_inner_values(openvino, tmp_path, in_bodies=False)


def test_state(openvino: Engine, tmp_path: Path) -> None:
    checks.keeps_state(openvino, tmp_path)


def test_refusals(openvino: Engine, tmp_path: Path) -> None:
    checks.refuses(openvino, tmp_path)


def test_values_in_several_batches(openvino: Engine, tmp_path: Path) -> None:
    """With more values than one copy of the model computes, each is shown once, and in order."""
    x = b.parameter([2, 4], name="x")
    y = x
    for number in range(150):
        y = b.Add(y, 1.0, name=f"add{number}")
    irrun.save_model(b.model({"y": y}), tmp_path / "model.xml")
    loaded = openvino.load(tmp_path / "model.xml", inner=True)
    assert isinstance(loaded, Loaded)
    seen: list[tuple[str, float]] = []
    outputs = openvino.infer(
        {"x": checks.X}, list(loaded.places), lambda value: seen.append((value.place.layer, value.array()[0, 0]))
    )
    assert isinstance(outputs, Outputs)
    assert seen == [(f"add{number}", checks.X[0, 0] + number + 1) for number in range(150)]


def test_an_engine_that_crashes_goes_on(tmp_path: Path) -> None:
    """Col2Im without its optional attributes ends OpenVINO's process."""
    departure = DEPARTURES / "col2im_defaults.xml"
    (parameter,) = irrun.read_model(departure).parameters
    shape = parameter.outputs[0].shape
    assert shape is not None
    assert shape.static is not None
    irrun.save_model(b.model({"y": b.ReLU(b.parameter([2, 4], name="x"))}), tmp_path / "model.xml")
    with engines.open(f"openvino[precision=f32]:{departure}", Limits(120)) as engine:
        assert engine.name.startswith("OpenVINO 20")
        assert engine.name.endswith(" CPU f32")
        for _ in range(2):
            loaded = engine.load()
            outcome = engine.infer({0: np.ones(shape.static, np.float32)}) if isinstance(loaded, Loaded) else loaded
            assert isinstance(outcome, Crash)
            assert "SIG" in outcome.cause or "status" in outcome.cause
        engine.load(tmp_path / "model.xml")
        outputs = engine.infer({"x": checks.X})
        assert isinstance(outputs, Outputs)
        np.testing.assert_array_equal(outputs["y"], np.maximum(checks.X, 0))


def test_low_precision_is_an_option(tmp_path: Path) -> None:
    """With bf16, a sum that f32 can tell from 256 is rounded to 256."""
    x = b.parameter([1, 2], name="x")
    irrun.save_model(b.model({"y": b.MatMul(x, b.constant(np.ones((2, 1), np.float32)))}), tmp_path / "model.xml")
    feeds = {"x": np.array([[256, 1]], np.float32)}
    results = {}
    for precision in ("f32", "bf16"):
        with engines.open(f"openvino[precision={precision}]:{tmp_path / 'model.xml'}", Limits(120)) as engine:
            engine.load()
            outputs = engine.infer(feeds)
            assert isinstance(outputs, Outputs)
            results[precision] = float(outputs["y"][0, 0])
    assert results["f32"] == 257
    assert results["bf16"] in (256, 257)  # a processor without bf16 computes in f32


@pytest.mark.parametrize(
    ("options", "shown"),
    [
        (
            "precision=f32",
            {"INFERENCE_PRECISION_HINT": "f32", "KV_CACHE_PRECISION": "f32", "DYNAMIC_QUANTIZATION_GROUP_SIZE": "0"},
        ),
        ("precision=f32,KV_CACHE_PRECISION=u8", {"INFERENCE_PRECISION_HINT": "f32", "KV_CACHE_PRECISION": "u8"}),
        ("EXECUTION_MODE_HINT=ACCURACY", {"EXECUTION_MODE_HINT": "ACCURACY", "DYNAMIC_QUANTIZATION_GROUP_SIZE": "0"}),
        ("threads=1", {"INFERENCE_NUM_THREADS": "1"}),
    ],
)
def test_properties_in_effect_are_read_back(options: str, shown: dict[str, str]) -> None:
    """`precision=f32` means all of it: also the caches of attention and the activations beside compressed weights."""
    with engines.open(f"openvino[{options}]", Limits(120)) as engine:
        assert shown.items() <= engine.properties.items()


def test_quantized_networks_compute_in_f32(tmp_path: Path) -> None:
    """With precision=f32, FakeQuantize is computed by its definition: int8 products would miss the tie by a level."""
    x = b.parameter([1, 8], name="x")
    limits = [np.float32(n) for n in (-1.28, 1.27, -1.28, 1.27)]
    weights = b.FakeQuantize(b.constant(np.linspace(-1, 1, 32, dtype=np.float32).reshape(8, 4)), *limits, levels=256)
    irrun.save_model(b.model({"y": b.MatMul(b.FakeQuantize(x, *limits, levels=256), weights)}), tmp_path / "model.xml")
    feeds = {"x": np.linspace(-1.3, 1.3, 8, dtype=np.float32).reshape(1, 8)}
    with engines.open(f"openvino[precision=f32]:{tmp_path / 'model.xml'}", Limits(120)) as engine:
        outputs = engine.infer(feeds)
    assert isinstance(outputs, Outputs)
    steps = [
        np.round(np.clip(a.astype(np.float64), -1.28, 1.27) / 0.01) * 0.01
        for a in (feeds["x"], np.linspace(-1, 1, 32).reshape(8, 4))
    ]
    np.testing.assert_allclose(outputs["y"], steps[0] @ steps[1], rtol=1e-5)


@pytest.mark.parametrize("options", ["device=NOWHERE", "NO_SUCH_PROPERTY=1", "KV_CACHE_PRECISION=f9"])
def test_what_openvino_does_not_have_is_an_error(options: str) -> None:
    with pytest.raises(irrun.EngineError) as caught, engines.open(f"openvino[{options}]", Limits(120)):
        pass
    (problem,) = caught.value.diagnostics
    assert problem.code == "IR702"
    assert options.rpartition("=")[0 if "NO_SUCH" in options else 2] in problem.message


def test_the_harness_needs_no_irrun() -> None:
    """It imports the standard library, numpy and openvino alone, also where the interpreter has more."""
    code = (
        "import importlib.util, sys\n"
        "for name in ('irrun', 'ml_dtypes', 'lxml', 'networkx', 'click', 'rich'): sys.modules[name] = None\n"
        "for file in sys.argv[1:]:\n"
        "    spec = importlib.util.spec_from_file_location('harness', file)\n"
        "    module = importlib.util.module_from_spec(spec)\n"
        "    spec.loader.exec_module(module)\n"
        "assert module.Harness({}).name.startswith('OpenVINO')\n"
    )
    files = [str(HARNESSES / "serve.py"), str(HARNESSES / "openvino.py")]
    subprocess.run([sys.executable, "-c", code, *files], check=True, timeout=120)


def test_a_place_that_is_not_there_is_refused(openvino: Engine, tmp_path: Path) -> None:
    irrun.save_model(b.model({"y": b.ReLU(b.parameter([2, 4], name="x"), name="relu")}), tmp_path / "model.xml")
    openvino.load(tmp_path / "model.xml")
    outcome = openvino.infer({"x": checks.X}, [Place("nowhere")])
    assert isinstance(outcome, engines.Refusal)
    assert "nowhere" in outcome.message
