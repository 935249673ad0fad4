"""What users see of irrun in Python: paths for models, IrrunErrors, texts of objects, signatures."""

from __future__ import annotations

import inspect
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irrun
from irrun import build as b
from irrun.opdef import all_ops
from places import SAMPLES

CONVNET = SAMPLES / "convnet.xml"
ELEMENTWISE = SAMPLES / "elementwise.xml"


# ---------------------------------------------------------------------------------------------
# one import, one default


@pytest.mark.parametrize("name", ["build", "debug", "genai", "report", "surgery", "testing"])
def test_one_import_reaches_the_packages_when_they_are_used(name: str) -> None:
    program = (
        f"import sys, irrun; before = 'irrun.{name}' in sys.modules; irrun.{name}; "
        f"print(before, 'irrun.{name}' in sys.modules, {name!r} in dir(irrun))"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert result.stdout == "False True True\n", result.stderr


def test_one_default_of_strict() -> None:
    from irrun.cli.run import command
    from irrun.fleet.trees import RandomRun

    (option,) = [param for param in command.params if param.name == "strict"]
    assert option.default is False
    for function in (irrun.compile, irrun.run):
        assert inspect.signature(function).parameters["strict"].default is False
    assert RandomRun.__dataclass_fields__["strict"].default is False


# ---------------------------------------------------------------------------------------------
# every function that takes a model takes a path


TAKES: dict[str, Callable[[Any], Any]] = {
    "check": irrun.check,
    "compile": irrun.compile,
    "run": lambda model: irrun.run(model, np.zeros((1, 1, 28, 28), np.float32)),
    "why": lambda model: irrun.why(model, "logits"),
    "extract": lambda model: irrun.extract(model, end="logits"),
    "rename_layer": lambda model: irrun.surgery.rename_layer(model, "flatten", "flat"),
    "rename_input": lambda model: irrun.surgery.rename_input(model, "image", "picture"),
    "rename_output": lambda model: irrun.surgery.rename_output(model, "out", "scores"),
    "expose": lambda model: irrun.surgery.expose(model, "logits"),
    "fold_constants": lambda model: irrun.surgery.fold_constants(model),
    "drop_unused": lambda model: irrun.surgery.drop_unused(model),
    "downgrade": lambda model: irrun.surgery.downgrade(model, 8),
    "original": lambda model: irrun.surgery.original(model),
    "require_equal": lambda model: irrun.surgery.require_equal(irrun.surgery.original(CONVNET), model),
    "picture": lambda model: irrun.report.picture(model),
    "check_clean": lambda model: irrun.testing.check_clean(model),
}


@pytest.mark.parametrize("name", TAKES)
@pytest.mark.parametrize("form", [str, Path, irrun.read_model], ids=["str", "path", "model"])
def test_a_model_may_be_a_path(name: str, form: Callable[[Any], Any]) -> None:
    TAKES[name](form(CONVNET))


def test_save_model_takes_a_path(tmp_path: Path) -> None:
    irrun.save_model(CONVNET, tmp_path / "copy.xml")
    image = np.load(SAMPLES / "image.npy")
    assert np.array_equal(irrun.run(tmp_path / "copy.xml", image)[0], irrun.run(CONVNET, image)[0])


def test_merge_takes_paths() -> None:
    model = irrun.read_model(CONVNET)
    renamed = irrun.surgery.rename_output(model, "out", "image")
    del renamed  # the shapes do not fit: only the reading is tested
    with pytest.raises(irrun.ModelError):
        irrun.surgery.merge(str(CONVNET), CONVNET, {"out": "image"})


# ---------------------------------------------------------------------------------------------
# every user error is an IrrunError


def x() -> Any:
    return b.parameter([1, 3, 8, 8], "f32")


NO_SHAPE: Any = {"image": 3}

ERRORS: dict[str, tuple[Callable[[], Any], str, str]] = {
    "element-type": (lambda: b.parameter([1], "float32"), "IR305", "'float32' is not an element type; did you mean f32?"),
    "no-element-type": (lambda: b.parameter([1], "real"), "IR305", "pass a name such as f32 or i64"),
    "not-even-a-name": (lambda: b.parameter([1], object()), "IR305", "is not an element type"),
    "shape": (lambda: b.parameter(["a"]), "IR404", "['a'] is not a shape; pass one such as [1, 3, None]"),
    "constant": (lambda: b.constant([1, 300], "u8"), "IR609", "does not fit u8; pass integers from 0 to 255"),
    "object": (lambda: b.constant(object()), "IR609", "pass values that fit one of these types"),
    "twice": (lambda: b.MatMul(x(), x(), a=x()), "IR609", "gets its input a twice: by position and by keyword; pass it once"),
    "none": (lambda: b.model(None), "IR609", "None is not a tensor; pass an output, an array or a number"),
    "several-outputs": (lambda: b.Relu(b.Split(x(), 1, num_splits=3)), "IR609", "3 outputs; choose one by its index"),
    "same-name": (lambda: b.model([b.Relu(x(), name="y"), b.Relu(x(), name="y")]), "IR609", "rename one of them"),
    "missing": (lambda: b.Concat(x(), x()), "IR202", "the argument axis is missing; pass axis=…, an integer"),
    "misspelt": (lambda: b.Concat(x(), x(), axs=1), "IR202", "axs is not one of its arguments; did you mean axis?"),
    "unknown": (lambda: b.Concat(x(), x(), axis=1, colour=1), "IR204", "Concat-1 has no argument colour"),
    "integer": (lambda: b.Concat(x(), x(), axis="a"), "IR203", "axis should be an integer, not a"),
    "choice": (
        lambda: b.TopK(x(), 3, axis=1, mode="maximum", sort="value"), "IR203", 'mode should be one of "max", "min", not'),
    "list": (
        lambda: b.MaxPool(x(), kernel="a", strides=[1, 1], pads_begin=[0, 0], pads_end=[0, 0]), "IR203",
        "kernel should be a list of integers"),
    "boolean": (lambda: b.MatMul(x(), x(), transpose_a="no"), "IR203", "transpose_a should be True or False, not no"),
    "clause": (lambda: b.SoftMax(x(), axis=9), "IR403", "axis 9 is out of range for rank 4 (SoftMax-8 C1)"),
    "save-nowhere": (
        lambda: irrun.save_model(CONVNET, "no/such/folder/x.xml"), "IR011",
        "no such file or directory; create the folder, or choose another path"),
    "save-onto-itself": (
        lambda: irrun.save_model(CONVNET, "x.xml", "x.xml"), "IR609", "cannot hold both the model and its weights"),
    "read-nothing": (lambda: irrun.read_model("nothing.xml"), "IR000", "no such file or directory"),
    "shapes-of-no-input": (lambda: irrun.check(CONVNET, shapes={"x": [1]}), "IR601", "the model has no input 'x'"),
    "shapes-of-no-kind": (lambda: irrun.check(CONVNET, shapes=NO_SHAPE), "IR601", 'cannot have the shape "3"'),
}  # fmt: skip


@pytest.mark.parametrize("case", ERRORS)
def test_an_error_is_an_irrun_error(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    call, code, said = ERRORS[case]
    with pytest.raises(irrun.IrrunError) as caught:
        call()
    assert caught.value.diagnostics[0].code == code
    assert said in str(caught.value)
    assert "<data>" not in str(caught.value)


def test_an_error_of_a_call_names_its_line() -> None:
    with pytest.raises(irrun.BuildError) as caught:
        b.parameter([1], "float32")
    (found,) = caught.value.diagnostics
    assert found.file == __file__
    assert found.line == inspect.currentframe().f_lineno - 3  # type: ignore[union-attr]
    assert isinstance(caught.value, ValueError)  # as Python's own functions


def test_a_write_error_is_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="IR011") as caught:
        irrun.save_model(CONVNET, tmp_path / "none" / "x.xml")
    assert isinstance(caught.value, irrun.WriteError)
    import errno

    assert caught.value.errno == errno.ENOENT


# ---------------------------------------------------------------------------------------------
# texts


def test_model() -> None:
    model = irrun.read_model(CONVNET)
    assert str(model).splitlines() == [
        f"convnet  IR v11, {CONVNET}",
        "  input   image: f32[1,1,28,28]",
        "  output  out: f32[1,10]",
        "  19 layers: 6 Const, 2 Convolution, 2 Add, 2 ReLU, 2 MaxPool, 1 Parameter, 1 Reshape, 1 MatMul, 1 SoftMax, "
        "1 Result",
    ]
    assert repr(model) == "<Model convnet: 19 layers, image: f32[1,1,28,28] -> out: f32[1,10]>"
    assert "<td>image</td><td>f32</td><td>[1,1,28,28]</td>" in model._repr_html_()
    (tensor,) = model.inputs
    assert (tensor.name, str(tensor.type), str(tensor.shape)) == ("image", "f32", "[1,1,28,28]")


def test_executable() -> None:
    executable = irrun.compile(ELEMENTWISE)
    assert [(t.name, str(t.type)) for t in executable.inputs] == [("a", "f32"), ("b", "f32")]
    assert [(t.name, str(t.type)) for t in executable.outputs] == [("out", "f32")]
    assert "  output  out: f32" in str(executable)
    assert repr(executable).startswith("<Executable elementwise: a: f32")
    assert "<td>output</td><td>out</td>" in executable._repr_html_()


def test_profile() -> None:
    executable, profile = irrun.compile(CONVNET), irrun.Profile()
    executable(np.zeros((1, 1, 28, 28), np.float32), hooks=[profile])
    *rows, total = str(profile).splitlines()
    times = [float(row.split(" ms")[0].split()[-1]) for row in rows]
    assert times == sorted(times, reverse=True)
    assert len(rows) == len(profile.rows)
    assert total.endswith(" ms in all")
    assert profile._repr_html_().count("<tr>") == len(rows) + 1
    assert str(irrun.Profile()) == "0.000 ms in all"


def test_a_long_profile_is_short_in_a_notebook() -> None:
    value: Any = b.parameter([2], "f32", name="x")
    for number in range(30):
        value = b.CumSum(value, 0, name=f"sum{number}")
    executable, profile = irrun.compile(b.model(value)), irrun.Profile()
    executable(np.zeros(2, np.float32), hooks=[profile])
    shown = profile._repr_html_()
    assert shown.count("<tr>") == 20 + 1
    assert " ms, the slowest 20 of 30 steps</caption>" in shown


def test_comparison() -> None:
    """The scale of wrong_scale.xml makes the layer multiply, which is the output as well, 0.5 too large at [0,0,3]."""
    from irrun.debug import compare

    inputs = {"a": np.ones((1, 3, 4), np.float32), "b": np.array([[0], [1], [2]], np.float32)}
    right, wrong = (irrun.engines.Side("irrun", SAMPLES / f"{name}.xml") for name in ("elementwise", "wrong_scale"))
    shown = compare(right, wrong, inputs)._repr_html_()
    assert "<caption>differ: the first divergence is multiply</caption>" in shown
    assert "<td>layer</td><td>multiply</td><td>Multiply</td><td>0.5</td><td>0.125</td>" in shown
    assert shown.count("<td>output</td>") == 1


def test_report() -> None:
    report = irrun.check(SAMPLES / "wrong_dim.xml")
    first, last = str(report).splitlines()
    assert "wrong_dim.xml:39:6: error[IR401 dims-mismatch]" in first
    assert last == "1 error, 0 warnings"
    assert "<td>IR401</td>" in report._repr_html_()
    assert str(irrun.check(CONVNET)) == "0 errors, 0 warnings"


def test_html_is_escaped() -> None:
    model = b.model({"<script>": b.Relu(b.parameter([1], "f32", name="<b>"))})
    for shown in (model._repr_html_(), irrun.compile(model)._repr_html_()):
        assert "<script>" not in shown
        assert "&lt;script&gt;" in shown


# ---------------------------------------------------------------------------------------------
# reshape


def test_reshape(tmp_path: Path) -> None:
    model = irrun.read_model(ELEMENTWISE)
    wide = model.reshape({"a": [2, 3, 4], 1: "3,1"})
    assert [str(t.shape) for t in wide.inputs] == ["[2,3,4]", "[3,1]"]
    assert str(irrun.compile(wide).outputs[0].shape) == "[2,3,4]"
    assert [str(t.shape) for t in model.inputs] != ["[2,3,4]", "[3,1]"]  # the model itself is as it was
    irrun.save_model(wide, tmp_path / "wide.xml")
    assert str(irrun.read_model(tmp_path / "wide.xml").inputs[0].shape) == "[2,3,4]"
    image = irrun.read_model(CONVNET).reshape([None, 1, 28, 28])
    assert str(image.inputs[0].shape) == "[?,1,28,28]"
    refused = irrun.check(irrun.read_model(CONVNET).reshape([1, 1, 32, 32]))
    assert [d.layer for d in refused.errors] == ["logits"]
    with pytest.raises(irrun.FeedError, match="the model has 2 inputs, and one shape is passed"):
        model.reshape([1])


# ---------------------------------------------------------------------------------------------
# the functions of irrun.build


def test_the_signature_of_an_operation() -> None:
    signature = str(inspect.signature(b.Convolution))
    assert signature.startswith("(data: Tensor, filters: Tensor, *, strides: Sequence[int], pads_begin: Sequence[int],")
    assert 'auto_pad: Literal["explicit", "same_upper", "same_lower", "valid"] = \'explicit\'' in signature
    assert signature.endswith("opset: int | None = None, name: str | None = None, outputs: int | None = None) -> Node")
    assert str(inspect.signature(b.Concat)).startswith("(*data: Tensor, axis: int,")
    page = "operation-specs/convolution/convolution-1.html"
    assert page in inspect.getdoc(b.Convolution)  # type: ignore[operator]
    assert "C5  ``data`` has as many channels as each filter takes." in inspect.getdoc(b.Convolution)  # type: ignore[operator]
    assert b.Convolution.__name__ == "Convolution"


def test_every_operation_has_a_signature_with_its_inputs_and_attributes() -> None:
    newest = {cls.type: cls for cls in all_ops()}
    for name in b.__dir__():
        if name not in newest or name in b.__all__:
            continue
        parameters = inspect.signature(getattr(b, name)).parameters
        cls = newest[name]
        assert {port.name for port in cls.inputs} <= {key.rstrip("_") for key in parameters} | set(parameters)
        assert set(cls.attributes) <= {key.rstrip("_") for key in parameters} | set(parameters)
        assert {"opset", "name", "outputs"} <= set(parameters)


def test_help() -> None:
    program = "from irrun import build; help(build.Convolution)"
    text = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60).stdout
    assert "Convolution(data: Tensor, filters: Tensor, *, strides: Sequence[int]" in text
    assert "convolution-1.html" in text


def test_a_keyword_of_python_gets_an_underscore() -> None:
    mask, yes, no = b.parameter([2], "boolean"), b.parameter([2], "f32"), b.parameter([2], "f32")
    node = b.Select(mask, then=yes, else_=no)
    assert [output.node for output in node.inputs] == [mask, yes, no]
