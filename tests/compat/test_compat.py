"""Scripts written for openvino run unchanged over irrun, with the same results, where openvino is not."""

import importlib
import inspect
import json
import pickle
import runpy
import sys
import tempfile
import threading
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import irrun.compat.openvino
import warm
from irrun.compat.openvino._building.opsets import OPSETS, slots
from irrun.compat.openvino._building.signatures import PARAMETERS
from irrun.compat.openvino._install import modules
from irrun.opdef import resolve
from nets import Net
from places import ROOT

SAMPLES = ROOT / "samples"
SCRIPTS = ROOT / "tests" / "compat"

_ALONE = """
import runpy, sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "openvino":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Blocked())
try:
    import openvino
except ModuleNotFoundError:
    pass
else:
    sys.exit("openvino is there after all")

import irrun.compat.openvino
irrun.compat.openvino.install()
del sys.argv[0]
runpy.run_path(sys.argv[0], run_name="__main__")
assert "openvino._pyopenvino" not in sys.modules
"""


def _accumulator(folder: Path) -> Path:
    net = Net()
    x = net.parameter("f32", "1,2", name="x", names="x")
    zeros = net.const("f32", "1,2", np.zeros(2, np.float32).tobytes())
    state: Any = {"variable_id": "total", "variable_type": "f32", "variable_shape": "1,2"}
    total = net.add("ReadValue", [zeros], [("FP32", "1,2")], opset="opset6", **state)
    total = net.add("Add", [x, total], [("FP32", "1,2")], names="sum", auto_broadcast="numpy")
    net.add("Assign", [total], [("FP32", "1,2")], opset="opset6", **state)
    net.result(total)
    return net.save(folder, "accumulator")


def _legacy(folder: Path) -> Path:
    net = Net(version=10)
    halves, counts = net.parameter("f16", "2", name="halves"), net.parameter("i64", "2", name="counts")
    net.result(net.add("Add", [halves, halves], [("FP16", "2")], name="double", auto_broadcast="numpy"))
    net.result(net.add("Add", [counts, counts], [("I64", "2")], name="more", auto_broadcast="numpy"))
    return net.save(folder, "legacy")


_BESIDE = """
import runpy, sys
sys.modules["openvino_telemetry"] = None
del sys.argv[0]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def _python(*arguments: object) -> str:
    done = warm.run([sys.executable, *map(str, arguments)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def _two(folder: Path) -> Path:
    net = Net()
    a, b = net.parameter("f32", "2", name="a", names="a"), net.parameter("f32", "3", name="b", names="b")
    more = net.add("Add", [b, b], [("FP32", "3")], names="more", auto_broadcast="numpy")
    one = net.const("f32", "1", np.ones(1, np.float32).tobytes())
    less = net.add("Subtract", [a, one], [("FP32", "2")], names="less", auto_broadcast="numpy")
    net.result(more)
    net.result(less)
    return net.save(folder, "two")


def _pictures(folder: Path) -> Path:
    """A model of pictures of any size: [?,3,?,?] to [?,2,?,?]."""
    net = Net()
    x = net.parameter("f32", "?,3,?,?", name="picture", names="picture")
    kernel = np.random.default_rng(1).standard_normal((2, 3, 3, 3)).astype(np.float32) / 256
    weights = net.const("f32", "2,3,3,3", kernel.tobytes())
    same: Any = {"strides": "1,1", "dilations": "1,1", "pads_begin": "1,1", "pads_end": "1,1"}
    y = net.add("Convolution", [x, weights], [("FP32", "-1,2,-1,-1")], name="edges", names="edges", **same)
    net.result(y)
    return net.save(folder, "pictures")


SCRIPTED = {
    "hello_classification": lambda folder: [SAMPLES / "convnet.xml", SAMPLES / "image.npy"],
    "hello_reshape": lambda folder: [_pictures(folder)],
    "model_creation": lambda folder: [],
    "async_queue": lambda folder: [SAMPLES / "convnet.xml", SAMPLES / "image.npy"],
    "properties_and_files": lambda folder: [SAMPLES / "convnet.xml", SAMPLES / "image.npy"],
    "classify": lambda folder: [SAMPLES / "convnet.xml", SAMPLES / "image.npy"],
    "reshape": lambda folder: [SAMPLES / "pytest_project" / "models" / "classifier.xml"],
    "state": lambda folder: [_accumulator(folder)],
    "legacy": lambda folder: [_legacy(folder)],
    "values": lambda folder: [_two(folder)],
}


@pytest.mark.openvino
@pytest.mark.parametrize("script", SCRIPTED)
def test_script_gives_the_same(script: str, tmp_path: Path) -> None:
    arguments = SCRIPTED[script](tmp_path)
    path, theirs, ours = SCRIPTS / f"{script}.py", tmp_path / "theirs.npz", tmp_path / "ours.npz"
    said = _python("-c", _BESIDE, path, *arguments, theirs)
    assert _python("-c", _ALONE, path, *arguments, ours) == said
    if _stored()["version"] == version("openvino"):
        assert said.splitlines() == _stored()[script]["printed"], "store it anew: python -m tools record_compat"
    _same_arrays(ours, {name: array.tolist() for name, array in np.load(theirs).items()})


@pytest.mark.parametrize("script", SCRIPTED)
def test_script_gives_what_openvino_gave(
    script: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As the test before, over answers of OpenVINO that are stored, and in this process."""
    path, out = SCRIPTS / f"{script}.py", tmp_path / "ours.npz"
    for name, module in modules(irrun.compat.openvino).items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr(sys, "argv", [str(a) for a in (path, *SCRIPTED[script](tmp_path), out)])
    runpy.run_path(str(path), run_name="__main__")
    stored = _stored()[script]
    assert capsys.readouterr().out.splitlines() == stored["printed"]
    _same_arrays(out, stored["arrays"])


def _stored() -> dict[str, Any]:
    return json.loads((SCRIPTS / "openvino.json").read_text())


def _same_arrays(path: Path, expected: dict[str, Any]) -> None:
    with np.load(path) as arrays:
        assert sorted(arrays) == sorted(expected)  # callbacks of a queue come in any order
        for name in arrays:
            np.testing.assert_allclose(arrays[name], expected[name], rtol=1e-4, atol=1e-6)


def _store() -> None:
    """Run the scripts with OpenVINO, and store what they print and compute."""
    stored: dict[str, Any] = {"version": version("openvino")}
    for script, arguments in SCRIPTED.items():
        with tempfile.TemporaryDirectory() as name:
            out = Path(name, "theirs.npz")
            printed = _python("-c", _BESIDE, SCRIPTS / f"{script}.py", *arguments(Path(name)), out).splitlines()
            with np.load(out) as arrays:
                stored[script] = {"printed": printed, "arrays": {key: arrays[key].tolist() for key in arrays}}
    (SCRIPTS / "openvino.json").write_text(json.dumps(stored, indent=0) + "\n")


def test_run_as_a_module(tmp_path: Path) -> None:
    script = tmp_path / "version.py"
    script.write_text("import sys\nimport openvino.runtime as ov\nprint(ov.get_version(), sys.argv[1:])")
    assert _python("-m", "irrun.compat.openvino", script, "a") == "irrun ['a']\n"


OUTSIDE = {
    "attribute": ("import openvino as ov; ov.convert_model('x')", "openvino.convert_model"),
    "module": ("import openvino.torch", "openvino.torch"),
    "from": ("from openvino import frontend", "openvino.frontend; the nearest thing that it has is Core.read_model"),
    "misspelt": ("import openvino as ov; ov.AsyncInferQueues", "openvino.AsyncInferQueue"),
    "misspelt module": ("import openvino.preproces", "the nearest thing that it has is openvino.preprocess"),
    "misspelt function": ("from openvino import opset8; opset8.convolutions", "opset8.convolution"),
    "misspelt property": ("import openvino.properties.hint as h; h.performance", "hint.performance_mode"),
    "misspelt method": ("import openvino as ov; ov.Core().read_modell", "nearest thing that it has is Core.read_model"),
    "later function": ("from openvino import opset1; opset1.gelu", "openvino.opset1.gelu"),
    "colour": (
        "from openvino.preprocess import *; InputTensorInfo().set_color_format(ColorFormat.NV12_SINGLE_PLANE)",
        "ColorFormat.RGB",
    ),
    "method": ("import openvino as ov; ov.Core().import_model(b'', 'CPU')", "Core.import_model"),
    "onnx": ("import openvino as ov; ov.Core().read_model('net.onnx')", "models other than IR"),
    "packed": ("import openvino as ov; ov.Tensor(ov.Type.i4, ov.Shape([2]))", "tensors of i4"),
    "node": ("import openvino as ov; ov.Node()", "call a function of openvino.opset1"),
    "property": ("import openvino as ov; ov.Core().get_property('CPU', 'NUM_STREAM')", "did you mean NUM_STREAMS?"),
}


@pytest.mark.parametrize("case", OUTSIDE)
def test_outside_raises_and_says_what(case: str, tmp_path: Path) -> None:
    code, what = OUTSIDE[case]
    script = tmp_path / "script.py"
    script.write_text(
        f"from irrun import IrrunError\ntry:\n    exec({code!r})\nexcept IrrunError as error:\n    print(error)"
    )
    assert what in _python("-m", "irrun.compat.openvino", script)


REFUSED = {
    "ov.Dimension(2.5)": TypeError,
    "ov.Dimension(None)": TypeError,
    "ov.Dimension(ov.Dimension(1))": TypeError,
    "ov.Dimension('1', '2')": TypeError,
    "ov.Dimension(2).compatible(2)": TypeError,
    "ov.Shape([1.5])": TypeError,
    "ov.Shape([-1])": TypeError,
    "ov.PartialShape([1.5])": TypeError,
    "ov.PartialShape(range(2))": TypeError,
    "ov.PartialShape([1, 2]).compatible([1, 2])": TypeError,
    "ov.PartialShape([1, 2]) == ['1', 2]": RuntimeError,
    "ov.PartialShape([1, 2]) == [1.0, 2.0]": RuntimeError,
    "ov.PartialShape([1, -1]) == [1, -1]": TypeError,
    "ov.Tensor()": TypeError,
    "ov.Tensor(None)": TypeError,
    "ov.Tensor(ov.Type.f32)": TypeError,
    "ov.Tensor(ov.Type.f32, [1.0])": TypeError,
    "ov.Tensor(ov.Type.f32, [-1])": TypeError,
    "ov.Tensor(ov.Tensor([1]))": TypeError,
    "model.input(1.0)": TypeError,
    "model.input(-1)": TypeError,
    "model.reshape({1.5: [1, 1, 28, 28]})": TypeError,
    "model.reshape({'image': [1.5, 1, 28, 28]})": TypeError,
    "model.reshape({compiled.input(0): [1, 1, 28, 28]})": TypeError,
    "model.set_friendly_name(3)": TypeError,
    "compiled({-1: image})": TypeError,
    "request.get_input_tensor(-1)": TypeError,
    "request.set_input_tensor(-1, ov.Tensor(image))": TypeError,
    "request.get_tensor(0)": TypeError,
    "request.set_input_tensors([])": RuntimeError,
    "request.set_callback(3)": TypeError,
    "ov.AsyncInferQueue(model, 2)": TypeError,
    "ov.AsyncInferQueue(compiled, -1)": TypeError,
    "ov.AsyncInferQueue(compiled, 2)[-1]": TypeError,
}
"""What openvino refuses, and with which error."""


def _refuses(ov: Any, expression: str) -> None:
    model = ov.Core().read_model(SAMPLES / "convnet.xml")
    compiled = ov.Core().compile_model(model, "CPU")
    names = {"ov": ov, "model": model, "compiled": compiled, "request": compiled.create_infer_request()}
    with pytest.raises(REFUSED[expression]):
        eval(expression, names | {"image": np.load(SAMPLES / "image.npy")})


@pytest.mark.parametrize("expression", REFUSED)
def test_arguments_that_openvino_refuses(expression: str) -> None:
    _refuses(irrun.compat.openvino, expression)


@pytest.mark.parametrize("expression", REFUSED)
def test_openvino_refuses_these_arguments(expression: str, ov: Any) -> None:
    _refuses(ov, expression)


def test_numbers_that_openvino_accepts() -> None:
    ov: Any = irrun.compat.openvino
    assert str(ov.Dimension(-2)) == "0"
    assert ov.PartialShape.dynamic(-1) == ov.PartialShape("...")
    request = ov.Core().compile_model(SAMPLES / "convnet.xml").create_infer_request()
    tensor = ov.Tensor(np.load(SAMPLES / "image.npy"))
    request.set_input_tensors({0: tensor})
    assert request.get_input_tensor(index=0) is tensor


def test_what_users_import_names_the_package() -> None:
    ov: Any = irrun.compat.openvino
    public = [getattr(ov, name) for name in ov.__all__]
    classes = [item for item in public if not isinstance(item, ModuleType)]
    assert {item.__module__ for item in classes} == {"irrun.compat.openvino"}
    assert pickle.loads(pickle.dumps(ov.Type.f32)) is ov.Type.f32


def test_functions_have_the_parameters_of_openvino(ov: Any) -> None:
    """``ov`` is openvino itself. A function with ``*args`` says nothing of its parameters."""
    for number, opset in OPSETS.items():
        theirs = importlib.import_module(f"openvino.opset{number}")
        for name, rows in PARAMETERS.items():
            function = getattr(theirs, name, None)
            if function is None:
                continue
            known = [since for since in rows if since <= number]
            assert known, (number, name)
            parameters = [p.name for p in inspect.signature(function).parameters.values() if p.name != "name"]
            if "args" not in parameters:
                assert parameters == rows[max(known)].split(), (number, name)
            assert name in dir(opset)


@pytest.mark.parametrize("number", OPSETS)
def test_each_parameter_is_an_input_or_an_attribute(number: int) -> None:
    for name, rows in PARAMETERS.items():
        known = [since for since in rows if since <= number]
        if not known:
            continue
        cls = resolve({"absolute": "abs", "ceil": "ceiling"}.get(name, name).replace("_", ""), number)
        assert cls is not None, name
        places = slots(cls, rows[max(known)].split())
        inputs = [place for place in places.values() if isinstance(place, int)]
        assert inputs == sorted(set(inputs)), name
        assert all(place < len(cls.inputs) for place in inputs), name
        assert {p for p in places.values() if isinstance(p, str)} <= cls.attributes.keys()


def test_requests_run_at_the_same_time() -> None:
    """Two callbacks wait for each other, which only two threads can."""
    ov: Any = irrun.compat.openvino
    queue = ov.AsyncInferQueue(ov.Core().compile_model(SAMPLES / "convnet.xml"), 2)
    both = threading.Barrier(2, timeout=30)
    queue.set_callback(lambda request, data: both.wait())
    image = np.load(SAMPLES / "image.npy")
    for _ in range(4):
        queue.start_async({0: image})
    queue.wait_all()
    assert both.broken is False


def test_a_busy_request_refuses(caplog: pytest.LogCaptureFixture) -> None:
    ov: Any = irrun.compat.openvino
    request = ov.Core().compile_model(SAMPLES / "convnet.xml").create_infer_request()
    go, image = threading.Event(), np.load(SAMPLES / "image.npy")
    request.set_callback(lambda data: go.wait(30))
    request.start_async({0: image})
    assert request.wait_for(1) is False
    for call in (lambda: request.infer({0: image}), lambda: request.start_async({0: image})):
        with pytest.raises(RuntimeError, match="busy"):
            call()
    go.set()
    request.wait()


def test_errors_in_callbacks_arrive() -> None:
    ov: Any = irrun.compat.openvino
    queue = ov.AsyncInferQueue(ov.Core().compile_model(SAMPLES / "convnet.xml"), 2)
    queue.set_callback(lambda request, data: 1 // data)
    queue.start_async({0: np.load(SAMPLES / "image.npy")}, 0)
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        queue.wait_all()
    queue.start_async({0: np.load(SAMPLES / "image.npy")}, 1)
    queue.wait_all()


def test_properties_without_effect_say_so_once(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import openvino as ov\ncore = ov.Core()\n"
        f"for _ in range(3):\n    core.compile_model({str(SAMPLES / 'convnet.xml')!r}, 'CPU', "
        "{'NUM_STREAMS': 4, 'INFERENCE_PRECISION_HINT': 'bf16', 'PERF_COUNT': True})\n"
    )
    done = warm.run([sys.executable, "-m", "irrun.compat.openvino", script], capture_output=True, text=True, check=True)
    assert done.stderr.splitlines() == [
        "NUM_STREAMS has no effect: irrun has one device and one stream",
        "INFERENCE_PRECISION_HINT=bf16 has no effect: models run in the precision that they declare",
    ]


def test_a_function_without_such_a_parameter() -> None:
    ov: Any = irrun.compat.openvino
    with pytest.raises(TypeError, match="did you mean data"):
        ov.opset1.softmax(dat=1, axis=2)
    with pytest.raises(TypeError, match="takes 3 arguments"):
        ov.opset1.softmax(1, 2, "name", 4)
    with pytest.raises(TypeError, match="lacks its argument data"):
        ov.opset1.softmax(axis=2)


if __name__ == "__main__":
    _store()
