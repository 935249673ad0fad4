"""One fault, one finding: wherever it stands, and whatever the layers behind it declare."""

import json
import re
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irrun
from nets import Net, Ref
from places import INVALID, SAMPLES

LENGTH = 12


def chain(bare: bool = False) -> Net:
    """Convolution, then ReLU and Add in turn, Reshape, MatMul, Result. ``bare``: input ports without precision."""
    net = Net()
    x = net.parameter("f32", "1,3,8,8", name="x")
    filters = net.const("f32", "4,3,3,3", bytes(432), name="filters")
    last = net.add(
        "Convolution", [x, filters], [("FP32", "1,4,6,6")], name="conv", bare=bare,
        strides="1,1", pads_begin="0,0", pads_end="0,0", dilations="1,1",
    )  # fmt: skip
    for i in range(LENGTH):
        relu = net.add("ReLU", [last], [("FP32", "1,4,6,6")], name=f"relu{i}", bare=bare)
        last = net.add("Add", [relu, last], [("FP32", "1,4,6,6")], name=f"add{i}", bare=bare)
    shape = net.const("i64", "2", struct.pack("<2q", 1, -1), name="shape")
    flat = net.add("Reshape", [last, shape], [("FP32", "1,144")], name="flat", bare=bare, special_zero="false")
    matrix = net.const("f32", "144,5", bytes(2880), name="matrix")
    dense = net.add("MatMul", [flat, matrix], [("FP32", "1,5")], name="dense", bare=bare)
    net.result(dense, name="y")
    return net


def changed(net: Net, layer: str, old: str, new: str, port: int | None = None) -> Net:
    """Replace a text in one layer, or in one of its ports, once."""
    number = next(i for i, text in enumerate(net.layers) if f'name="{layer}"' in text)
    text = net.layers[number]
    start = text.index(f'<port id="{port}"') if port is not None else 0
    assert old in text[start:], (layer, old)
    net.layers[number] = text[:start] + text[start:].replace(old, new, 1)
    return net


FAULTS = {
    "first-dims": ("x", "<dim>8</dim>", "<dim>9</dim>", 0, "IR401"),
    "constant-dims": ("filters", "<dim>4</dim>", "<dim>5</dim>", 0, "IR401"),
    "convolution-dims": ("conv", "<dim>6</dim>", "<dim>7</dim>", 2, "IR401"),
    "convolution-channels": ("conv", "<dim>4</dim>", "<dim>8</dim>", 2, "IR401"),
    "middle-dims": ("relu5", "<dim>6</dim>", "<dim>1</dim>", 1, "IR401"),
    "middle-dims-of-add": ("add5", "<dim>4</dim>", "<dim>7</dim>", 2, "IR401"),
    "middle-rank": ("add5", "<dim>4</dim>", "<dim>4</dim>\n\t\t\t<dim>1</dim>", 2, "IR401"),
    "reshaped-dims": ("flat", "<dim>144</dim>", "<dim>145</dim>", 2, "IR401"),
    "last-dims": ("dense", "<dim>5</dim>", "<dim>6</dim>", 2, "IR401"),
    "first-precision": ("x", "FP32", "FP16", 0, "IR303"),
    "constant-precision": ("matrix", "FP32", "FP16", 0, "IR303"),
    "middle-precision": ("relu5", "FP32", "FP16", 1, "IR303"),
    "middle-precision-of-add": ("add5", "FP32", "I64", 2, "IR303"),
    "last-precision": ("dense", "FP32", "FP64", 2, "IR303"),
    "middle-input-dims": ("relu5", "<dim>6</dim>", "<dim>5</dim>", 0, "IR402"),
    "input-dims-of-result": ("y", "<dim>5</dim>", "<dim>50</dim>", 0, "IR402"),
    "parameter-shape": ("x", 'shape="1,3,8,8"', 'shape="1,3,16,8"', None, "IR401"),
    "parameter-rank": ("x", 'shape="1,3,8,8"', 'shape="3,8,8"', None, "IR401"),
    "parameter-type": ("x", 'element_type="f32"', 'element_type="f16"', None, "IR303"),
    "parameter-malformed": ("x", 'shape="1,3,8,8"', 'shape="1,3,8,8g"', None, "IR404"),
    "attribute-that-leads-elsewhere": ("conv", 'strides="1,1"', 'strides="2,1"', None, "IR401"),
    "attribute-malformed": ("conv", 'strides="1,1"', 'strides="a,b"', None, "IR203"),
    "attribute-missing": ("conv", ' strides="1,1"', "", None, "IR202"),
    "attribute-refused": ("conv", 'strides="1,1"', 'strides="1,1,1"', None, "IR403"),
    "unknown-operation": ("relu5", 'type="ReLU"', 'type="Unheard"', None, "IR201"),
    "constant-shape": ("shape", 'shape="2"', 'shape="3"', None, "IR503"),
    "constant-out-of-range": ("matrix", 'size="2880"', 'size="28800"', None, "IR502"),
}


@pytest.mark.parametrize("bare", [False, True], ids=["inputs-say-precision", "inputs-bare"])
@pytest.mark.parametrize("fault", FAULTS)
def test_one_fault_in_a_long_chain_is_one_finding(fault: str, bare: bool, tmp_path: Path) -> None:
    layer, old, new, port, code = FAULTS[fault]
    path = changed(chain(bare), layer, old, new, port).save(tmp_path)
    found = list(irrun.check(path))
    assert [(d.code, d.layer) for d in found] == [(code, layer)], "\n".join(map(str, found))
    if port is not None and fault != "middle-rank":  # a wrong rank is reported at the first dim
        assert found[0].line is not None
        assert new in path.read_text().split("\n")[found[0].line - 1]


def test_input_precision_is_one_finding(tmp_path: Path) -> None:
    path = changed(chain(), "relu5", "FP32", "FP16", 0).save(tmp_path)
    assert [(d.code, d.layer, d.port) for d in irrun.check(path)] == [("IR304", "relu5", 0)]


def test_inputs_that_declare_nothing(tmp_path: Path) -> None:
    """Neither precision nor dims on any input port: then what the readers would give tells who is right."""
    for layer, old, new, port, code in FAULTS.values():
        if port == 0 and not layer.startswith(("x", "filters", "matrix")):
            continue
        net = changed(chain(bare=True), layer, old, new, port)
        net.layers = [re.sub(r"<input>.*?</input>", _empty_ports, text, flags=re.DOTALL) for text in net.layers]
        found = [(d.code, d.layer) for d in irrun.check(net.save(tmp_path))]
        assert found == [(code, layer)], (layer, old)


def _empty_ports(inputs: re.Match[str]) -> str:
    ids = re.findall(r'<port id="(\d+)"', inputs[0])
    return "<input>" + "".join(f'<port id="{id}"/>' for id in ids) + "</input>"


def test_two_faults_are_two_findings(tmp_path: Path) -> None:
    net = changed(chain(), "relu2", "<dim>6</dim>", "<dim>5</dim>", 1)
    net = changed(net, "relu8", "FP32", "FP16", 1)
    net = changed(net, "dense", "<dim>5</dim>", "<dim>7</dim>", 2)
    found = [(d.code, d.layer) for d in irrun.check(net.save(tmp_path))]
    assert found == [("IR401", "relu2"), ("IR303", "relu8"), ("IR401", "dense")]  # in file order


def test_all_wrong_dims_of_a_port_are_one_finding(tmp_path: Path) -> None:
    net = chain()
    for old, new in (("<dim>4</dim>", "<dim>3</dim>"), ("<dim>6</dim>", "<dim>8</dim>")):
        changed(net, "relu5", old, new, 1)
    (found,) = irrun.check(net.save(tmp_path))
    assert "dim 1 is 3, inferred 4, dim 2 is 8, inferred 6" in found.message


def test_notes_tell_where_the_inputs_come_from(tmp_path: Path) -> None:
    path = changed(chain(), "flat", "<dim>144</dim>", "<dim>145</dim>", 2).save(tmp_path)
    (found,) = irrun.check(path)
    assert found.notes[0] == "Reshape-1 gives [1,144]"
    lines = path.read_text().split("\n")
    for note, name in zip(found.notes[1:3], (f"add{LENGTH - 1}", "shape"), strict=True):
        line = re.search(r"line (\d+)", note)
        assert line is not None
        assert f'name="{name}"' in lines[int(line[1]) - 1]
    assert "= [1,-1]" in found.notes[2]
    assert found.notes[3].startswith("dim 1 = 4 * 6 * 6 = 144")


# ---------------------------------------------------------------------------------------------
# silence


def models(ov: Any) -> dict[str, Any]:
    """Valid models as OpenVINO makes them."""
    o = ov.opset13
    f32, i64 = ov.Type.f32, ov.Type.i64
    found = {}

    def model(name: str, parameters: list[Any], *results: Any) -> None:
        found[name] = ov.Model([o.result(r) for r in results], parameters, name)

    for name, shape in (
        ("static", [1, 3, 16, 16]),
        ("dynamic", [-1, 3, -1, -1]),
        ("bounded", [ov.Dimension(1, 4), 3, ov.Dimension(8, 20), 16]),
    ):
        x = o.parameter(ov.PartialShape(shape), f32, name="x")
        conv = o.convolution(x, np.ones((4, 3, 3, 3), np.float32), [2, 2], [1, 1], [1, 1], [1, 1])
        relu = o.relu(o.add(conv, np.ones((1, 4, 1, 1), np.float32)))
        pool = o.max_pool(relu, [2, 2], [1, 1], [0, 0], [0, 0], [2, 2])
        mean = o.reduce_mean(pool.output(0), np.array([2, 3]), keep_dims=False)
        model(f"convnet-{name}", [x], o.softmax(mean, 1), pool.output(1))
    for name, shape in (("static", [2, 5]), ("dynamic", [-1, -1]), ("rank", None)):
        x = o.parameter(ov.PartialShape.dynamic() if shape is None else ov.PartialShape(shape), f32, name="x")
        size = o.gather(o.shape_of(x), np.array([0]), np.array(0))
        target = o.concat([size, np.array([1, -1])], 0)
        model(f"shapes-{name}", [x], o.reshape(x, target, False))
    a, b = o.parameter([-1, 7], f32, name="a"), o.parameter([7, -1], f32, name="b")
    model("matmul", [a, b], o.matmul(a, b, False, False))
    x = o.parameter([2, 3], f32, name="x")
    model("squares", [x], o.multiply(x, x), x)
    x = o.parameter([], i64, name="x")
    model("scalars", [x], o.add(x, np.array(1)), o.convert(x, "f16"))
    x = o.parameter([0, 3], f32, name="x")
    model("no-elements", [x], o.concat([x, np.ones((2, 3), np.float32)], 0))
    x = o.parameter([6, 2], f32, name="x")
    parts = o.split(x, np.array(0), 3)
    model("split", [x], *(parts.output(i) for i in range(3)))
    model("constants", [], ov.op.Constant(np.arange(6, dtype=np.int8).reshape(2, 3)))
    return found


@pytest.mark.parametrize("compressed", [False, True])
def test_silent_on_what_openvino_writes(compressed: bool, tmp_path: Path, ov: Any) -> None:
    for name, model in models(ov).items():
        path = tmp_path / f"{name}.xml"
        ov.save_model(model, path, compress_to_fp16=compressed)
        assert not irrun.check(path).diagnostics, name
        irrun.compile(path)


def test_silent_on_the_samples() -> None:
    samples = SAMPLES
    for path in sorted(samples.glob("*.xml")):
        report = irrun.check(path)
        # wrong_scale is a valid model, in which a weight differs from that of another
        is_wrong = "wrong" in path.stem and path.stem != "wrong_scale"
        assert bool(len(report)) == is_wrong, f"{path.stem}: {list(report)}"


def test_undeclared_ports_are_no_fault(tmp_path: Path) -> None:
    """A port without dims may be a scalar or of unknown rank; without precision it says nothing."""
    net = chain(bare=True)
    net.layers = [re.sub(r"\s*<dim>.*?</dim>", "", text) for text in net.layers]
    assert not irrun.check(net.save(tmp_path)).diagnostics


# ---------------------------------------------------------------------------------------------
# the .bin


def test_a_missing_bin_is_one_finding_and_the_rest_is_checked(tmp_path: Path) -> None:
    net = changed(chain(), "relu5", "<dim>6</dim>", "<dim>5</dim>", 1)
    path = net.save(tmp_path)
    path.with_suffix(".bin").unlink()
    missing, dims = irrun.check(path)
    assert (missing.code, missing.line) == ("IR501", None)
    assert "3 constants" in missing.message
    assert (dims.code, dims.layer) == ("IR401", "relu5")


def test_every_broken_constant_is_reported(tmp_path: Path) -> None:
    path = chain().save(tmp_path)
    path.with_suffix(".bin").write_bytes(bytes(100))
    assert [(d.code, d.layer) for d in irrun.check(path)] == [("IR502", n) for n in ("filters", "shape", "matrix")]


def test_the_bin_may_be_named(tmp_path: Path) -> None:
    path = chain().save(tmp_path)
    other = path.with_suffix(".bin").rename(tmp_path / "other.weights")
    assert [d.code for d in irrun.check(path)] == ["IR501"]
    assert not irrun.check(path, other).diagnostics
    with pytest.raises(irrun.ReadError) as caught:
        irrun.check(path, tmp_path / "none.bin")
    assert [d.code for d in caught.value.diagnostics] == ["IR000"]
    with pytest.raises(irrun.ReadError):
        irrun.check(path, tmp_path)


# ---------------------------------------------------------------------------------------------
# shapes, contents and names


def test_contents_are_followed_through_shape_arithmetic(tmp_path: Path, ov: Any) -> None:
    """[?,3,224] -> ShapeOf -> Gather -> Concat -> Reshape: the unknown dim keeps its identity."""
    o = ov.opset13
    x = o.parameter([-1, 3, 224], ov.Type.f32, name="x")
    batch = o.gather(o.shape_of(x), np.array([0]), np.array(0))
    flat = o.reshape(x, o.concat([batch, np.array([672])], 0), False)
    ov.serialize(ov.Model([o.result(flat)], [x], "m"), tmp_path / "m.xml")
    text = (tmp_path / "m.xml").read_text()
    assert not irrun.check(tmp_path / "m.xml").diagnostics
    (tmp_path / "m.xml").write_text(text.replace("<dim>672</dim>", "<dim>673</dim>"))
    codes = [d.code for d in irrun.check(tmp_path / "m.xml")]
    assert "IR401" in codes


def test_parameters_of_one_name_are_not_one_dim(tmp_path: Path) -> None:
    """Names need not be unique, nor be given at all."""
    for name in ("same", ""):
        net = Net()
        refs = [net.parameter("f32", "?", name=name or "-"), net.parameter("f32", "?", name=name or "-")]
        shapes = [net.add("ShapeOf", [r], [("I64", "1")]) for r in refs]
        difference = net.add("Subtract", shapes, [("I64", "1")], name="difference")
        zero = net.add("Broadcast", [refs[0], difference], [("FP32", "7")], opset="opset3", mode="bidirectional")
        net.result(zero)
        net.layers = [text.replace('name="-"', 'name=""') for text in net.layers]
        assert not irrun.check(net.save(tmp_path)).diagnostics  # the difference is not known to be 0


def test_a_fault_in_a_body_is_one_finding(tmp_path: Path) -> None:
    text = (INVALID / "body_dims.xml").read_text()
    path = tmp_path / "x.xml"
    path.write_text(text.replace("<dim>4</dim>", "<dim>3</dim>"))
    assert not irrun.check(path).diagnostics
    for old, new, code in (
        ('shape="3"', 'shape="3,3"', "IR401"),
        ('type="ReLU" version="opset1"', 'type="BitwiseNot" version="opset13"', "IR301"),
        ('type="ReLU" version="opset1"', 'type="ReLU" version="opset99"', "IR207"),
    ):
        broken = path.read_text()
        at = broken.index("<then_body>")
        (tmp_path / "y.xml").write_text(broken[:at] + broken[at:].replace(old, new, 1))
        assert [d.code for d in irrun.check(tmp_path / "y.xml")] == [code]


def test_unused_outputs_and_layers_are_checked(tmp_path: Path) -> None:
    net = chain()
    net.add("ReLU", [Ref(0, 0, ("FP32", "1,3,8,8"))], [("FP32", "1,3,8,9")], name="unread")
    found = {(d.code, d.layer) for d in irrun.check(net.save(tmp_path))}
    assert found == {("IR108", "unread"), ("IR401", "unread")}


def test_a_model_that_was_read_is_checked_as_well(tmp_path: Path) -> None:
    path = changed(chain(), "relu5", "<dim>6</dim>", "<dim>5</dim>", 1).save(tmp_path)
    assert list(irrun.check(irrun.read_model(path))) == list(irrun.check(path))


def test_a_report_is_data(tmp_path: Path) -> None:
    report = irrun.check(changed(chain(), "relu5", "<dim>6</dim>", "<dim>5</dim>", 1).save(tmp_path))
    assert not report.ok
    assert report.errors == report.diagnostics
    (found,) = report
    json.dumps(
        [found.code, found.severity, found.message, found.layer, found.port, found.file, found.line, found.column]
    )
    assert str(found).startswith(f"{found.file}:{found.line}:{found.column}: error[IR401 dims-mismatch] ")
