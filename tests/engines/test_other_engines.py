"""The engines beside irrun and OpenVINO's plugins. The packages of some are not installed: small ones stand in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import pytest

import engine_checks as checks
import irrun
from irrun import build as b
from irrun import engines
from irrun.diagnostics import EngineError
from irrun.engines import Engine, Limits, Loaded, Place, Refusal


def _written(model: irrun.Model, folder: Path) -> Path:
    irrun.save_model(model, folder / "model.xml")
    return folder / "model.xml"


def _lacks(outcome: object) -> str:
    """Return what an engine says that it does not have."""
    assert isinstance(outcome, Refusal), outcome
    assert outcome.reason == "unavailable"
    return outcome.message


def _files(folder: Path, files: Mapping[str, str]) -> Path:
    """Write files with Python code, and return the folder."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


# ---------------------------------------------------------------------------------------------
# OpenVINO's core


@pytest.fixture(scope="module")
def evaluate() -> Iterator[Engine]:
    with engines.open("evaluate", Limits(120)) as engine:
        yield engine


@pytest.mark.openvino
def test_the_core_evaluates(evaluate: Engine, tmp_path: Path) -> None:
    assert evaluate.name.endswith(" evaluate")
    checks.takes_any_dims(evaluate, tmp_path)
    checks.shows_inner_values(evaluate, tmp_path, in_bodies=False)


@pytest.mark.openvino
def test_the_core_lacks_kernels_and_state(evaluate: Engine, tmp_path: Path) -> None:
    """They are not there; so the model is not refused as wrong."""
    x = b.parameter([1, 2, 3, 3], name="x")
    pool = b.AvgPool(x, strides=[1, 1], pads_begin=[0, 0], pads_end=[0, 0], kernel=[2, 2], exclude_pad=True)
    assert isinstance(evaluate.load(_written(b.model({"y": pool}), tmp_path)), Loaded)
    message = _lacks(evaluate.infer({0: np.ones((1, 2, 3, 3), np.float32)}))
    assert message == "AvgPool has no evaluate for these types"
    read = b.ReadValue(b.parameter([2], name="start"), variable_id="v", variable_type="f32", variable_shape="2")
    model = b.model({"y": read}, sinks=[b.Assign(read, variable_id="v")])
    assert _lacks(evaluate.load(_written(model, tmp_path))) == "evaluate keeps no state"


# ---------------------------------------------------------------------------------------------
# onnxruntime, alone and behind onnxifier

ONNXRUNTIME = {
    "onnxruntime/__init__.py": """
import onnx
from onnx.reference import ReferenceEvaluator
from onnxruntime.capi.onnxruntime_pybind11_state import NotImplemented

__version__ = "9.9"
class SessionOptions: pass
class Value:
    def __init__(self, value):
        self.name, self.type = value.name, "tensor(float)"
        self.shape = [dim.dim_value for dim in value.type.tensor_type.shape.dim]

def get_available_providers():
    return ["CPUExecutionProvider"]

class InferenceSession:
    def __init__(self, model, options, providers):
        self.model = onnx.load_from_string(model) if isinstance(model, bytes) else onnx.load(model)
        if any(node.op_type == "Gelu" for node in self.model.graph.node):
            raise NotImplemented("no kernel of Gelu")
        self.evaluator = ReferenceEvaluator(self.model)
    def get_inputs(self): return [Value(value) for value in self.model.graph.input]
    def get_outputs(self): return [Value(value) for value in self.model.graph.output]
    def run(self, names, feeds): return self.evaluator.run(names, feeds)
""",
    "onnxruntime/capi/__init__.py": "",
    "onnxruntime/capi/onnxruntime_pybind11_state.py": "class NotImplemented(Exception): pass\n",
    "onnxifier/__init__.py": '''
import re
from onnx import TensorProto, helper

__version__ = "8.8"
def convert(path, print_passes):
    """Make y = TYPE(inner), inner = Neg(x), of the layer between Parameter and Result."""
    text = open(path).read()
    type, = re.findall('type="(?!Parameter|Result)([A-Za-z]+)"', text)
    {"f32": 1}[re.search('element_type="([a-z0-9]+)"', text)[1]]
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in "xy")
    nodes = [helper.make_node("Neg", ["x"], ["inner"]), helper.make_node(type, ["inner"], ["y"])]
    return helper.make_model(helper.make_graph(nodes, "g", [x], [y]), opset_imports=[helper.make_opsetid("", 20)])
''',
}
"""An onnxruntime that asks ONNX's reference evaluator, and an onnxifier that converts one layer."""

X = np.array([-1, 2], np.float32)


@pytest.fixture
def converting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Engine]:
    pytest.importorskip("onnx", reason="onnx is not installed")
    monkeypatch.setenv("PYTHONPATH", str(_files(tmp_path / "packages", ONNXRUNTIME)))
    with engines.open("onnxifier", Limits(120)) as engine:
        yield engine


def test_an_ir_is_converted(converting: Engine, tmp_path: Path) -> None:
    assert converting.name == "ONNXifier 8.8, onnxruntime 9.9 CPU"
    loaded = converting.load(_written(b.model({"y": b.Abs(b.parameter([2], name="x"))}), tmp_path), inner=True)
    assert isinstance(loaded, Loaded)
    assert [(value.names, value.type, value.shape) for value in loaded.inputs] == [(("x",), "f32", "[2]")]
    assert list(loaded.places) == [Place("inner", 0), Place("y", 0)]
    seen = []
    outputs = converting.infer({0: X}, [Place("inner", 0)], lambda value: seen.append(value.array().tolist()))
    assert isinstance(outputs, engines.Outputs)
    assert (outputs["y"].tolist(), seen) == ([1, 2], [[1, -2]])


@pytest.mark.parametrize(
    ("operation", "type", "message"),
    [
        ("Mod", "f32", None),
        ("HSwish", "f32", "ONNXifier has no conversion for HSwish"),
        ("Abs", "i32", "ONNXifier has no conversion for 'i32'"),
        ("Gelu", "f32", "no kernel of Gelu"),
    ],
)
def test_what_the_conversion_lacks_is_no_refusal(
    operation: str, type: str, message: str | None, converting: Engine, tmp_path: Path
) -> None:
    """A layer that ONNX has, with too few inputs, is one."""
    x = b.parameter([2], type, name="x")
    node = b.Abs(x) if operation == "Mod" else getattr(b, operation)(x)
    path = _written(b.model({"y": node}), tmp_path)
    path.write_text(path.read_text().replace('type="Abs"', f'type="{operation}"'))
    outcome = converting.load(path)
    if message is None:
        outcome = converting.infer({0: X}) if isinstance(outcome, Loaded) else outcome
        assert isinstance(outcome, Refusal)
        assert outcome.reason == ""
    else:
        assert _lacks(outcome) == message


def test_onnxruntime_runs_what_onnxifier_writes(tmp_path: Path) -> None:
    pytest.importorskip("onnxifier", reason="onnxifier is not installed")
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    with engines.open("onnxifier", Limits(120)) as engine:
        checks.run(engine, b.model({"y": b.Abs(b.parameter([2], name="x"))}), tmp_path, X)


# ---------------------------------------------------------------------------------------------
# pyopenvino

PYOPENVINO = {
    "pyopenvino/__init__.py": "",
    "pyopenvino/common_def.py": "type_convert_tbl = {'f32': 'float32'}\n",
    "pyopenvino/inference_engine.py": """
import sys
from types import SimpleNamespace
from xml.etree import ElementTree

sys.path.append("./pyopenvino")
import common_def

class IECore:
    plugins = SimpleNamespace(plugins={"Parameter": 0, "Abs": 0, "Result": 0})
    def read_network(self, model, weights):
        layers = ElementTree.parse(model).getroot().findall("layers/layer")
        x, = (layer for layer in layers if layer.get("type") == "Parameter")
        dims = tuple(int(dim) for dim in x.find("data").get("shape").split(","))
        y, = ({"name": layer.get("name")} for layer in layers if layer.get("type") == "Result")
        inputs = [{"name": x.get("name"), "data": {"element_type": "f32", "shape": dims}}]
        return SimpleNamespace(inputs=inputs, outputs=[y])
    def load_network(self, network):
        y, = network.outputs
        return SimpleNamespace(infer=lambda feeds: {y["name"]: abs(feeds["x"])})
""",
}
"""A clone of a pyopenvino that has one operation."""


def test_pyopenvino(tmp_path: Path) -> None:
    clone = _files(tmp_path / "clone", PYOPENVINO)
    with engines.open(f"pyopenvino[source={clone}]", Limits(120)) as engine:
        assert engine.name == "pyopenvino"
        x = b.parameter([2], name="x")
        (output,) = checks.run(engine, b.model({"y": b.Abs(x)}), tmp_path, X).outputs
        assert (output.type, output.array.tolist()) == ("f32", [1, 2])
        assert _lacks(engine.load(_written(b.model({"y": b.Negative(x)}), tmp_path))) == (
            "pyopenvino has no operation Negative"
        )
        whole = b.Abs(b.parameter([2], "i32", name="x"))
        assert _lacks(engine.load(_written(b.model({"y": whole}), tmp_path))) == "pyopenvino has no element type i32"
        refused = engine.load(_written(b.model({"y": b.Abs(b.parameter("?", name="x"))}), tmp_path))
        assert isinstance(refused, Refusal)
        assert refused.reason == ""


def test_pyopenvino_needs_a_clone() -> None:
    with pytest.raises(EngineError, match=r"pass source=FOLDER, the folder of a clone"), engines.open("pyopenvino"):
        pass
