"""Models built in Python: every operation, bodies, constants, and what is refused where."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import irrun
import tables
from ir.test_write import told
from irrun import build as b
from irrun.build._text import attribute_text
from irrun.opdef import Op, all_ops, resolve
from irrun.types import PartialShape
from kit import Case, Shapes, Values, build, compare, tensor
from oracle import Oracle

# ---------------------------------------------------------------------------------------------
# every operation

Row = Case | Values | Shapes


@cache
def _rows() -> dict[type[Op], Row]:
    """A row of the tables in tests/ops for each operation."""
    found: dict[type[Op], Row] = {}
    for path in sorted(tables.FOLDER.glob("test_*.py")):
        for kind in (Case, Values, Shapes):  # OpenVINO's first: their arrays have the element types that are meant
            for row in tables.rows(path):
                if isinstance(row, kind):
                    type, since = row.op.split("-")
                    cls = resolve(type, int(since))
                    if cls is not None:
                        found.setdefault(cls, row)
    return found


def _from_row(cls: type[Op], row: Row) -> tuple[irrun.Model, list[np.ndarray] | None]:
    if isinstance(row, Shapes):
        values = [None if text is None else tensor(text) for text in row.inputs]
        given = [
            None if v is None else b.parameter(v.shape, v.type) if v.exact is None else b.constant(v.exact, v.type)
            for v in values
        ]
        return b.model(list(_make(cls, given, row))), None
    constants = {*row.shapes, *row.constants} if isinstance(row, Case) else set(range(1, len(row.inputs)))
    inputs: list[Any] = []
    feeds: list[np.ndarray] = []
    for position, given in enumerate(row.inputs):
        array = None if given is None else np.asarray(given)
        if array is None or position in constants:
            inputs.append(array)
            continue
        inputs.append(b.parameter(array.shape, array.dtype))
        feeds.append(array)
    return b.model(list(_make(cls, inputs, row))), feeds


def _make(cls: type[Op], inputs: list[Any], row: Row) -> b.Node:
    return getattr(b, cls.type)(*inputs, opset=cls.since, **row.attributes)


def _variable() -> b.Node:
    return b.ReadValue(b.parameter([2], "f32"), variable_id="v", variable_type="f32", variable_shape=[2], opset=6)


def _by_hand() -> dict[str, Any]:
    x = b.parameter([2, 3], "f32", name="x")
    return {
        "Parameter-1": lambda: x,
        "Const-1": lambda: b.constant([1.0, 2.0]),
        "Result-1": lambda: x,
        "BinaryConvolution-1": lambda: b.BinaryConvolution(
            b.parameter([1, 1, 1, 4]),
            b.constant([[[[1, 0]]]], "u1"),
            strides=[1, 1],
            pads_begin=[0, 0],
            pads_end=[0, 0],
            dilations=[1, 1],
            mode="xnor-popcount",
            pad_value=0,
        ),
        "If-8": lambda: b.If(b.parameter([], bool), x, then=lambda a: a, otherwise=lambda a: b.Add(a, 1.0)),
        "Loop-5": lambda: b.Loop(3, True, x, body=lambda i, a: (True, b.Add(a, b.Convert(i, destination_type="f32")))),
        "TensorIterator-1": lambda: b.TensorIterator(
            b.sliced(x), body=lambda row: b.concatenated(b.Multiply(row, 2.0))
        ),
        "ReadValue-6": _variable,
        "ReadValue-3": lambda: b.ReadValue(b.parameter([2], "f32"), variable_id="v", opset=3),
        "Assign-6": lambda: b.Assign(_variable(), variable_id="v"),
        "Assign-3": lambda: b.Assign(
            b.ReadValue(b.parameter([2], "f32"), variable_id="v", opset=3), variable_id="v", opset=3
        ),
    }


def _built(cls: type[Op]) -> tuple[irrun.Model, list[np.ndarray] | None]:
    """A model of the operation, and feeds where a table has them."""
    made = _by_hand().get(f"{cls.type}-{cls.since}")
    if made is not None:
        return b.model(list(made())), None
    assert cls in _rows(), "no table in tests/ops has a row of it"
    return _from_row(cls, _rows()[cls])


@pytest.mark.parametrize(
    "cls", [c for c in all_ops() if c.__module__.startswith("irrun.ops.")], ids=lambda c: f"{c.type}-{c.since}"
)
def test_every_operation_can_be_built(cls: type[Op], tmp_path: Path) -> None:
    model, feeds = _built(cls)
    unpaired = ["IR111"] if cls.type == "ReadValue" else []
    assert [finding.code for finding in irrun.check(model)] == unpaired
    path = tmp_path / "model.xml"
    irrun.save_model(model, path)
    assert told(irrun.read_model(path)) == told(model)
    if feeds is not None:
        before, after = (irrun.run(made, feeds, strict=True).arrays for made in (model, path))
        for got, want in zip(after, before, strict=True):
            np.testing.assert_array_equal(got, want)


# with a row whose outputs OpenVINO gives: it is neither wrong there nor crashes
_ASKED = [cls for cls, row in _rows().items() if isinstance(row, Case) and row.expected is None]


@pytest.mark.parametrize("cls", [c for c in all_ops() if c in _ASKED], ids=lambda c: f"{c.type}-{c.since}")
def test_openvino_runs_what_was_built(cls: type[Op], tmp_path: Path, oracle: Oracle) -> None:
    model, feeds = _built(cls)
    path, row = tmp_path / "model.xml", _rows()[cls]
    assert feeds is not None
    assert isinstance(row, Case)
    irrun.save_model(model, path)
    for got, want in zip(irrun.run(path, feeds, strict=True).arrays, oracle(path, feeds, row.how), strict=True):
        compare(got, want, row)


@pytest.mark.parametrize(
    "cls", [c for c in all_ops() if isinstance(_rows().get(c), Case)], ids=lambda c: f"{c.type}-{c.since}"
)
def test_what_openvino_wrote_is_written_again(cls: type[Op], tmp_path: Path, ov: Any) -> None:
    row = _rows()[cls]
    assert isinstance(row, Case)
    path, again = tmp_path / "model.xml", tmp_path / "again.xml"
    build(row, path, "dims")
    irrun.save_model(irrun.read_model(path), again)
    assert told(irrun.read_model(again)) == told(irrun.read_model(path))
    assert again.with_suffix(".bin").read_bytes() == path.with_suffix(".bin").read_bytes()


# ---------------------------------------------------------------------------------------------
# what is handed in


def test_parameters() -> None:
    x = b.parameter([1, None, (2, 8), "3.."], np.float16, name="x")
    assert (str(x.shape), str(x.type)) == ("[1,?,2..8,3..]", "f16")
    assert str(b.parameter("...", "i64").shape) == "[...]"
    assert str(b.parameter().shape) == "[]"
    model = b.model({"y": b.ReLU(x)})
    assert model.parameters[0].attributes["shape"] == "1,?,2..8,3.."
    assert irrun.run(model, {"x": np.full((1, 1, 2, 3), -1, np.float16)})["y"].max() == 0


def test_values_of_python_take_the_type_that_the_others_leave_them() -> None:
    x = b.parameter([2], "bf16")
    assert str(b.Add(x, 1).inputs[1].type) == "bf16"
    assert str(b.Add(1.5, x).inputs[0].type) == "bf16"
    assert str(b.Broadcast(x, [3, 2]).inputs[1].type) == "i64"
    assert str(b.Broadcast(x, np.array([3, 2], np.int32)).inputs[1].type) == "i32"
    assert str(b.Add([1, 2], 3).type) == "i64"
    assert str(b.LogicalNot(True).type) == "boolean"
    assert str(b.constant(["a", "b"]).type) == "string"
    with pytest.raises(ValueError, match="128 does not fit i8; pass integers from -128 to 127"):
        b.Add(b.parameter([2], "i8"), 128)
    with pytest.raises(TypeError, match="cannot be of type"):
        b.Broadcast(x, [1.5])


@pytest.mark.parametrize("name", ["u1", "u2", "u3", "u4", "u6", "i4", "nf4", "f4e2m1", "f8e4m3", "string", "bf16"])
def test_constants_of_every_width(name: str) -> None:
    data = np.array([1, 0, 1, 1, 0], object if name == "string" else np.float32)
    model = b.model(b.constant(data, name))
    (out,) = irrun.run(model).arrays
    np.testing.assert_array_equal(out.astype(np.float32), data.astype(np.float32))


def test_inputs_and_attributes_by_name() -> None:
    x = b.parameter([1, 2, 4, 4])
    pool = b.AvgPool(x, strides=[2, 2], pads_begin=[0, 0], pads_end=[0, 0], kernel=[2, 2], exclude_pad=True, opset=1)
    assert pool.layer.attributes["exclude-pad"] == "true"
    assert str(b.Broadcast(target_shape=[3, 2], data=[1.0, 2.0]).shape) == "[3,2]"
    assert str(b.Concat([x, x], axis=1).shape) == "[1,4,4,4]"
    assert str(b.relu(x).layer.type) == "ReLU"
    with pytest.raises(TypeError, match="gets its input data twice: by position and by keyword"):
        b.Broadcast(x, [1], data=x)


def test_inputs_by_name_in_any_order() -> None:
    rois, levels = b.parameter([5, 4]), [b.parameter([1, 8, 64, 64]), b.parameter([1, 8, 32, 32])]
    pooling = {"output_size": 7, "sampling_ratio": 2, "pyramid_scales": [4, 8], "aligned": False}
    node = b.ExperimentalDetectronROIFeatureExtractor(pyramid=levels, rois=rois, **pooling)
    assert [output.node for output in node.inputs] == [rois, *levels]
    with pytest.raises(TypeError, match="gets its input pyramid twice"):
        b.ExperimentalDetectronROIFeatureExtractor(rois, levels[0], pyramid=levels, **pooling)


def test_several_outputs() -> None:
    x = b.parameter([6], name="x")
    first, second = b.Split(x, 0, num_splits=2)
    parts = b.VariadicSplit(x, 0, [1, -1])
    assert [str(o.shape) for o in (first, second, *parts)] == ["[3]", "[3]", "[1]", "[5]"]
    lengths = b.parameter([3], "i64", name="lengths")
    assert len(b.VariadicSplit(x, 0, lengths, outputs=3)) == 3
    with pytest.raises(TypeError, match="2 outputs; choose one"):
        b.ReLU(parts)
    outputs = irrun.run(b.model({"a": second, "b": parts[0]}), np.arange(6, dtype=np.float32))
    assert outputs["a"].tolist() == [3, 4, 5]
    assert outputs["b"].tolist() == [0]


def test_refusals_are_told_at_the_line_of_the_call() -> None:
    x = b.parameter([1, 16])
    with pytest.raises(irrun.ModelError) as caught:
        b.Broadcast(x, [4, 15], name="wide")
    (found,) = caught.value.diagnostics
    assert (found.code, found.label, found.layer) == ("IR403", "C3", "wide")
    assert found.file == __file__
    assert found.line is not None
    assert "[4, 15]" in Path(__file__).read_text("utf-8").splitlines()[found.line - 1]


def test_refusals_of_and_in_bodies_are_told_at_the_line_of_the_call() -> None:
    lines = Path(__file__).read_text("utf-8").splitlines()
    x = b.parameter([2])
    with pytest.raises(irrun.ModelError) as caught:
        b.If(b.parameter([2], bool), x, then=lambda a: a, otherwise=lambda a: a, name="vector")
    (found,) = caught.value.diagnostics
    assert (found.code, found.file, found.layer) == ("IR403", __file__, "vector")
    assert found.line is not None
    assert 'name="vector"' in lines[found.line - 1]

    def body(row: b.Node, total: b.Node) -> Any:
        return b.Add(total, [1.0, 2.0, 3.0], name="longer")

    with pytest.raises(irrun.ModelError) as caught:
        b.TensorIterator(b.sliced(x), x, body=body)
    (found,) = caught.value.diagnostics
    assert (found.file, found.layer) == (__file__, "longer")
    assert found.line is not None
    assert 'name="longer"' in lines[found.line - 1]


@pytest.mark.parametrize(
    ("told", "call"),
    [
        ("IR204", lambda x: b.Broadcast(x, [4], mod="numpy")),
        ("IR203", lambda x: b.Broadcast(x, [4], mode="nump")),
        ("IR202", lambda x: b.Concat(x, x)),
        (
            'IR205 Broadcast "broadcast": has 1 input; Broadcast-3 takes 2 to 3 (data, target_shape, axes_mapping?)',
            lambda x: b.Broadcast(x),
        ),
        ('IR205 Broadcast "broadcast": input 1 is missing', lambda x: b.Broadcast(x, axes_mapping=[0])),
        ("has 3 inputs; Add-1 takes 2 (a, b)", lambda x: b.Add(x, x, x)),
        ("has 0 inputs; Einsum-7 takes 1 or more (inputs…)", lambda x: b.Einsum(equation="a->a")),
        ("IR301", lambda x: b.Broadcast(x, np.ones(1))),
        ("IR302", lambda x: b.Add(x, np.arange(4))),
    ],
)
def test_refusals(told: str, call: Any) -> None:
    with pytest.raises(irrun.ModelError) as caught:
        call(b.parameter([4]))
    (found,) = caught.value.diagnostics
    assert told in f"{found.code} {found.message}"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "true"),
        (np.bool_(True), "true"),
        (np.bool_(False), "false"),
        (np.array(True), "true"),
        (np.array([True, False]), "true,false"),
        ([np.True_, None], "true,?"),
        (np.int8(-3), "-3"),
        (np.array(3, np.int64), "3"),
        (np.array([[1, 2], [3, 4]]), "1,2,3,4"),
        (np.float32(0.25), "0.25"),
        (ml_dtypes.bfloat16(0.25), "0.25"),
        (np.str_("a"), "a"),
        (np.float32, "f32"),
        (np.dtype("int64"), "i64"),
        (PartialShape.parse("1,?"), "1,?"),
    ],
    ids=repr,
)
def test_the_text_of_an_attribute(value: Any, text: str) -> None:
    """A scalar of numpy is written as the scalar of Python that it equals."""
    assert attribute_text(value) == text
    assert attribute_text([value]) == text


def test_the_name_of_a_model() -> None:
    assert b.model(b.ReLU(b.parameter([1]))).name == "model"
    assert b.model(b.ReLU(b.parameter([1])), name="net").name == "net"


def test_the_documentation_of_a_function() -> None:
    documentation = b.Broadcast.__doc__ or ""
    paragraphs = documentation.split("\n\n")
    assert paragraphs[0] == "Replicate ``data`` so that it fits ``target_shape``."
    assert paragraphs[2].startswith("C1  ``axes_mapping`` is connected")
    inputs, attributes, versions, specification = paragraphs[-4:]
    assert inputs.startswith("Inputs: data (any), target_shape (int), axes_mapping (int).")
    assert attributes == 'Attributes: mode: one of "numpy", "explicit", "bidirectional".'
    assert versions.startswith("Versions: opset 1, 3.")
    assert specification.endswith("/movement/broadcast-3.html")


def test_build_is_an_attribute_of_irrun() -> None:
    code = (
        "import irrun, sys; assert 'irrun.build' not in sys.modules; print(irrun.build.parameter([2], name='x').shape)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[2]\n"


def test_unknown_operations() -> None:
    with pytest.raises(AttributeError, match="did you mean Broadcast"):
        _ = b.Brodcast
    with pytest.raises(AttributeError, match=r"build\.parameter"):
        _ = b.Parameter
    with pytest.raises(irrun.UnsupportedError, match="came with opset5"):
        b.GatherND(b.parameter([2]), [0], opset=4)


# ---------------------------------------------------------------------------------------------
# models


def test_inputs_in_an_order_of_ones_own_and_names() -> None:
    x, y = b.parameter([2], name="x"), b.parameter([2], name="y")
    model = b.model(b.Subtract(x, y, name="minus"), inputs=[y, x], name="difference")
    assert model.name == "difference"
    assert [p.name for p in model.parameters] == ["y", "x"]
    assert irrun.run(model, [np.ones(2, np.float32), np.zeros(2, np.float32)])["minus"].tolist() == [-1, -1]
    with pytest.raises(ValueError, match='parameter "x", which is not among the inputs'):
        b.model(b.Subtract(x, y), inputs=[y])
    with pytest.raises(ValueError, match='two layers have the name "x"'):
        b.model(b.ReLU(x, name="x"))


def test_equal_constants_are_kept_once() -> None:
    big = np.arange(1000, dtype=np.float32)
    model = b.model([b.Add(b.parameter([1000]), big), b.Multiply(b.parameter([1000]), big.copy())])
    assert model.weights is not None
    assert len(model.weights) == 4000


def test_diagnostics_of_a_built_model_have_places() -> None:
    model = b.model(b.ReLU(b.parameter([None, 2], name="x")))
    with pytest.raises(irrun.FeedError) as caught:
        irrun.run(model, np.ones(3, np.float32))
    assert caught.value.diagnostics[0].line == 4


@pytest.mark.openvino
@pytest.mark.parametrize("make", [b.ShapeOf, lambda x: b.Bucketize(x, np.array([1, 2], np.float32))])
def test_the_type_of_indices_is_written(make: Any, tmp_path: Path, ov: Any) -> None:
    """OpenVINO refuses the default of the page: the type would be undefined."""
    path = tmp_path / "model.xml"
    irrun.save_model(b.model({"y": make(b.parameter([2, 3], "f32", name="x"))}), path)
    assert ov.Core().read_model(path).output(0).element_type == ov.Type.i64
