"""Scripts written for openvino run unchanged over irrun, with the same results, where openvino is not."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nets import Net

ROOT = Path(__file__).parent.parent
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


def _python(*arguments: object) -> str:
    done = subprocess.run([sys.executable, *map(str, arguments)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.openvino
@pytest.mark.parametrize("script", ["classify", "reshape", "state", "legacy"])
def test_script_gives_the_same(script: str, tmp_path: Path) -> None:
    arguments = {
        "classify": [SAMPLES / "convnet.xml", SAMPLES / "image.npy"],
        "reshape": [SAMPLES / "pytest_project" / "models" / "classifier.xml"],
        "state": [_accumulator(tmp_path)],
        "legacy": [_legacy(tmp_path)],
    }[script]
    path, theirs, ours = SCRIPTS / f"{script}.py", tmp_path / "theirs.npz", tmp_path / "ours.npz"
    said = _python(path, *arguments, theirs)
    assert _python("-c", _ALONE, path, *arguments, ours) == said
    with np.load(theirs) as a, np.load(ours) as b:
        assert list(a) == list(b)
        for name in a:
            np.testing.assert_allclose(b[name], a[name], rtol=1e-4, atol=1e-6, strict=True)


def test_run_as_a_module(tmp_path: Path) -> None:
    script = tmp_path / "version.py"
    script.write_text("import sys\nimport openvino.runtime as ov\nprint(ov.get_version(), sys.argv[1:])")
    assert _python("-m", "irrun.compat.openvino", script, "a") == "irrun ['a']\n"


OUTSIDE = {
    "attribute": ("import openvino as ov; ov.convert_model('x')", "openvino.convert_model"),
    "module": ("import openvino.preprocess", "openvino.preprocess"),
    "from": ("from openvino import preprocess", "openvino.preprocess"),
    "method": ("import openvino as ov; ov.Core().import_model(b'', 'CPU')", "Core.import_model"),
    "onnx": ("import openvino as ov; ov.Core().read_model('net.onnx')", "models other than IR"),
    "packed": ("import openvino as ov; ov.Tensor(ov.Type.i4, ov.Shape([2]))", "tensors of i4"),
    "building": ("import openvino as ov; ov.Model([], [], 'm')", "building a Model"),
}


@pytest.mark.parametrize("case", OUTSIDE)
def test_outside_raises_and_says_what(case: str, tmp_path: Path) -> None:
    code, what = OUTSIDE[case]
    script = tmp_path / "script.py"
    script.write_text(
        f"from irrun import IrrunError\ntry:\n    exec({code!r})\nexcept IrrunError as error:\n    print(error)"
    )
    assert what in _python("-m", "irrun.compat.openvino", script)
