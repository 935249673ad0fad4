"""Reading: what IR files hold, what hostile ones try, and that nothing but an IrrunError ever comes out."""

import random
import re
import time
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest

import irrun
from irrun import build as b
from irrun.api import load
from irrun.diagnostics import IrrunError, ReadError
from irrun.types import ELEMENT_TYPES
from nets import Net
from places import INVALID

HEAD = '<?xml version="1.0"?>\n'


def simple() -> Net:
    """relu(x * x) + c."""
    net = Net()
    x = net.parameter("f32", "2,3", name="x", names="image,in\\,put")
    c = net.const("f32", "2,3", np.ones((2, 3), np.float32).tobytes(), name="c")
    product = net.add("Multiply", [x, x], [("FP32", "2,3")], name="product", auto_broadcast="numpy")
    total = net.add("Add", [product, c], [("FP32", "2,3")], name="total", names="out")
    net.result(total, name="y")
    return net


def write(folder: Path, text: str | bytes, name: str = "x.xml") -> Path:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def only(folder: Path, text: str | bytes) -> irrun.Diagnostic:
    """The one thing wrong with a file: ``check`` reports it, ``read_model`` and ``compile`` raise it."""
    path = write(folder, text)
    (found,) = irrun.check(path)
    for function in (irrun.read_model, irrun.compile, irrun.run):
        with pytest.raises(IrrunError) as caught:
            function(path)
        assert [str(d) for d in caught.value.diagnostics] == [str(found)]
    assert found.file == str(path)
    assert re.match(r"[a-z<]", found.message), "messages begin in lower case"
    return found


# ---------------------------------------------------------------------------------------------
# what a file holds


def test_layers_ports_and_edges(tmp_path: Path) -> None:
    model = irrun.read_model(simple().save(tmp_path))
    assert (model.name, model.version) == ("net", 11)
    assert [layer.name for layer in model.layers.values()] == ["x", "c", "product", "total", "y"]
    x, product = model.layers[0], model.layers[2]
    assert x.attributes == {"element_type": "f32", "shape": "2,3"}
    assert x.outputs[0].type is ELEMENT_TYPES["f32"]
    assert str(x.outputs[0].shape) == "[2,3]"
    assert x.outputs[0].names == ("image", "in,put")
    assert [p.id for p in product.inputs + product.outputs] == [0, 1, 2]
    assert model.input_names(x) == ("x", "image", "in,put")
    assert [model.result_names(r) for r in model.results] == [("out", "y")]
    assert model.feeds[2] == ((0, 0), (0, 0))


def test_parallel_edges_are_kept(tmp_path: Path) -> None:
    graph = irrun.read_model(simple().save(tmp_path)).graph
    assert isinstance(graph, nx.MultiDiGraph)
    assert graph.number_of_edges(0, 2) == 2
    assert sorted(data["to_port"] for data in graph.get_edge_data(0, 2).values()) == [0, 1]
    assert graph.nodes[2]["layer"].type == "Multiply"
    assert list(nx.topological_sort(graph))[-1] == 4


def test_layers_in_any_order(tmp_path: Path) -> None:
    net = simple()
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    want = irrun.run(net.save(tmp_path), x)[0]
    net.layers.reverse()
    net.edges.reverse()
    path = net.save(tmp_path, "reversed")
    assert not irrun.check(path).diagnostics
    np.testing.assert_array_equal(irrun.run(path, x)[0], want)
    ids = {"0": "907", "1": "5", "2": "40", "3": "12", "4": "0"}
    text = re.sub(r'((?:layer|layer id)=)"(\d)"', lambda m: f'{m[1]}"{ids[m[2]]}"', net.text)
    write(tmp_path, text, "renumbered.xml")
    write(tmp_path, bytes(net.bin), "renumbered.bin")
    assert not irrun.check(tmp_path / "renumbered.xml").diagnostics
    np.testing.assert_array_equal(irrun.run(tmp_path / "renumbered.xml", x)[0], want)


def test_order_follows_the_file_where_edges_leave_it_free(tmp_path: Path) -> None:
    net = Net()
    refs = [net.parameter("f32", "1", name=f"p{i}") for i in range(5)]
    for ref in reversed(refs):
        net.result(ref)
    assert irrun.read_model(net.save(tmp_path)).order == tuple(irrun.read_model(net.save(tmp_path)).order)
    assert [layer.name for layer in irrun.read_model(net.save(tmp_path)).parameters] == [f"p{i}" for i in range(5)]


@pytest.mark.parametrize(
    ("change", "to"),
    [
        ('precision="FP32"', 'precision="f32"'),
        ('precision="FP32"', ""),
        ('element_type="f32"', 'element_type="FP32"'),
        ('type="Const"', 'type="Constant"'),
        ('type="Multiply"', 'type="multiply"'),
        ("<dim>2</dim>", "<dim> 2 </dim>"),
        ("<dim>2</dim>", "<DIM>2</DIM>"),
        ("<dim>2</dim>", "<dim><!-- two -->2</dim>"),
        ("<dim>2</dim>", "<dim>-1</dim>"),
        ('shape="2,3"', 'shape=" 2, 3 "'),
        ("<layers>", "<!-- <layers> --><Layers>"),
        ("<rt_info/>", "<rt_info><x><layer/><edge/></x></rt_info><meta_data><layers/></meta_data>"),
        ("<output>", '<rt_info><attribute name="output" version="0"/></rt_info><output>'),
        ("<edges>", "<statistics/><quantization_parameters/><edges>"),
        ('name="x"', 'name="a/b [c] (d): é 😀 &amp; &lt;&#65;"'),
        ('version="opset1"', 'version="opset17"'),
        ('version="opset1"', 'version="experimental"'),
    ],
)
def test_spellings_met_in_files(change: str, to: str, tmp_path: Path) -> None:
    net = simple()
    text = net.text.replace(change, to)
    if to == "<!-- <layers> --><Layers>":
        text = text.replace("</layers>", "</Layers>")
    assert text != net.text
    write(tmp_path, bytes(net.bin), "x.bin")
    path = write(tmp_path, text)
    assert not irrun.check(path).diagnostics
    assert irrun.run(path, np.full((2, 3), 3, np.float32), strict=True)[0].tolist() == [[10] * 3] * 2


@pytest.mark.parametrize(
    ("change", "to", "code", "count"),
    [
        ("<dim>2</dim>", "<dim>?</dim>", "IR407", 9),
        (' version="opset1"', "", "IR010", 5),
        (' name="total"', "", "IR010", 1),
    ],
)
def test_spellings_that_openvino_refuses(change: str, to: str, code: str, count: int, tmp_path: Path) -> None:
    net = simple()
    write(tmp_path, bytes(net.bin), "x.bin")
    path = write(tmp_path, net.text.replace(change, to))
    assert [(finding.code, finding.blocks) for finding in irrun.check(path)] == [(code, False)] * count
    assert irrun.run(path, np.full((2, 3), 3, np.float32), strict=True)[0].tolist() == [[10] * 3] * 2


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "latin-1", "utf-8"])
def test_encodings(encoding: str, tmp_path: Path) -> None:
    net = simple()
    declared = {"latin-1": "ISO-8859-1", "utf-16": "UTF-16"}.get(encoding, "UTF-8")
    text = net.text.replace('"1.0"?', f'"1.0" encoding="{declared}"?', 1).replace('name="x"', 'name="é"')
    write(tmp_path, bytes(net.bin), "x.bin")
    model = irrun.read_model(write(tmp_path, text.encode(encoding)))
    assert model.parameters[0].name == "é"


@pytest.mark.parametrize("version", ["10", "11"])
def test_versions_that_are_read(version: str, tmp_path: Path) -> None:
    net = simple()
    path = net.save(tmp_path)
    path.write_text(net.text.replace('version="11"', f'version="{version}"'))
    assert irrun.read_model(path).version == int(version)


@pytest.mark.parametrize("version", ["1", "2", "5", "7", "9"])
def test_old_versions(version: str, tmp_path: Path) -> None:
    text = (
        HEAD + f'<net batch="1" name="LeNet" version="{version}">\n<layers><layer id="0" type="Input"/></layers></net>'
    )
    found = only(tmp_path, text)
    assert (found.code, found.line) == ("IR004", 2)
    assert f"IR version {version}; irrun reads versions 10 and 11" in found.message
    assert found.help is not None
    assert "openvino.convert_model" in found.help


@pytest.mark.parametrize(
    ("version", "says"),
    [
        ('version="99"', "IR version 99"), ('version="12"', "IR version 12"), ('version="0"', "IR version 0"),
        ('version="x"', '"x"'), ('version=""', '""'), ("", "no version"), ('version="-11"', '"-11"'),
        ('version="1²"', '"1²"'), (f'version="{"9" * 5000}"', "999"),
    ],
    ids=lambda t: t[:12],
)  # fmt: skip
def test_other_versions(version: str, says: str, tmp_path: Path) -> None:
    found = only(tmp_path, HEAD + f"<net {version}><layers/></net>")
    assert (found.code, found.line) == ("IR004", 2)
    assert says in found.message
    assert "10 and 11" in found.message
    assert len(found.message) < 700


def test_bodies_and_their_maps(tmp_path: Path) -> None:
    body = (
        '<layers><layer id="0" name="i" type="Parameter" version="opset1"><data element_type="f32" shape="1"/><output><port id="0"/></output></layer>'
        '<layer id="1" name="o" type="Result" version="opset1"><input><port id="0"/></input></layer></layers>'
        '<edges><edge from-layer="0" from-port="0" to-layer="1" to-port="0"/></edges>'
    )
    text = (
        HEAD + '<net name="n" version="11"><layers>'
        '<layer id="0" name="p" type="Parameter" version="opset1"><data element_type="f32" shape="4"/><output><port id="0"/></output></layer>'
        '<layer id="1" name="loop" type="TensorIterator" version="opset1"><input><port id="0"/></input><output><port id="1"/></output>'
        '<port_map><input external_port_id="0" internal_layer_id="0" axis="0" start="-1" end="0" stride="-1" part_size="1"/>'
        '<output external_port_id="1" internal_layer_id="1"/><input external_port_id="-1" internal_layer_id="0" purpose="current_iteration"/></port_map>'
        f'<back_edges><edge from-layer="1" to-layer="0"/></back_edges><body>{body}</body></layer>'
        '<layer id="2" name="if" type="If" version="opset8"><input><port id="0"/></input><output><port id="1"/></output>'
        '<then_port_map><input external_port_id="0" internal_layer_id="0"/><output external_port_id="1" internal_layer_id="1"/></then_port_map>'
        '<else_port_map><output external_port_id="0" internal_layer_id="1"/><input external_port_id="0" internal_layer_id="0"/></else_port_map>'
        f'<then_body>{body}</then_body><else_body>{body}</else_body></layer>'
        '<layer id="3" name="r" type="Result" version="opset1"><input><port id="0"/></input></layer></layers>'
        '<edges><edge from-layer="0" from-port="0" to-layer="1" to-port="0"/><edge from-layer="1" from-port="1" to-layer="2" to-port="0"/>'
        '<edge from-layer="2" from-port="1" to-layer="3" to-port="0"/></edges></net>'
    )  # fmt: skip
    model = irrun.read_model(write(tmp_path, text))
    loop, branch = model.layers[1], model.layers[2]
    assert list(loop.bodies) == ["body"]
    assert [layer.name for layer in loop.bodies["body"].layers.values()] == ["i", "o"]
    assert loop.bodies["body"].feeds[1] == ((0, 0),)
    assert loop.back_edges == ((1, 0),)
    entries = loop.maps["port_map"]
    assert [(e.kind, e.external, e.internal, e.purpose) for e in entries] == [
        ("input", 0, 0, ""), ("output", 0, 1, ""), ("input", None, 0, "current_iteration"),
    ]  # fmt: skip
    assert (entries[0].axis, entries[0].start, entries[0].end, entries[0].stride, entries[0].part_size) == (
        0,
        -1,
        0,
        -1,
        1,
    )
    assert sorted(branch.bodies) == ["else_body", "then_body"]
    assert sorted(branch.maps) == ["else_port_map", "then_port_map"]
    assert len(model.layers) == 4  # a body's layers are its own
    assert model.layers[3].node > branch.bodies["else_body"].layers[1].node


def test_names_of_layers_that_share_one(tmp_path: Path) -> None:
    """``name#id``; an id more where another layer has that name already."""
    net = Net()
    x = net.parameter("f32", "2", name="x")
    for name in ("x", "x#1", "x#0", "x#0", "x#0#0", "empty", "#6", "y#1"):
        net.result(x, name=name)
    names = irrun.read_model(write(tmp_path, net.text.replace('name="empty"', 'name=""'))).unique_names
    assert list(names.values()) == ["x#0#0#0", "x#1#1", "x#1", "x#0#3", "x#0#4", "x#0#0", "#6#6", "#6", "y#1"]


def test_names_of_tensors(tmp_path: Path, ov: Any) -> None:
    parameter = ov.opset1.parameter([2], ov.Type.f32, name="p, q")
    parameter.output(0).get_tensor().set_names({"a,b", "c", "ü", "x\\y"})
    made = ov.Model([ov.opset1.result(parameter)], [parameter], "m")
    ov.serialize(made, tmp_path / "n.xml")
    read = irrun.read_model(tmp_path / "n.xml")
    assert set(read.parameters[0].outputs[0].names) == {"a,b", "c", "ü", "x\\y"}
    assert set(read.result_names(read.results[0])) >= {"a,b", "c"}


# ---------------------------------------------------------------------------------------------
# hostile and broken files

LAUGHS = '<!DOCTYPE net [<!ENTITY a "ha">' + "".join(
    f'<!ENTITY {b} "{f"&{a};" * 10}">' for a, b in zip("abcdefghi", "bcdefghij")
) + "]>"  # fmt: skip
EXTERNAL = '<!DOCTYPE net [<!ENTITY x SYSTEM "file:///etc/passwd">]>'
NET = '<net name="&j;" version="11"><layers/></net>'

HOSTILE: dict[str, tuple[str | bytes, str, int | None]] = {
    "doctype": (HEAD + "<!DOCTYPE net>\n<net/>", "IR002", 2),
    "doctype-first": ("<!DOCTYPE net><net/>", "IR002", 1),
    "doctype-after-comment": (HEAD + "<!-- c -->\n<!-- <net> -->\n<!DOCTYPE net>\n<net/>", "IR002", 4),
    "doctype-after-long-comment": (HEAD + "<!--" + "x" * 200_000 + "-->\n<!DOCTYPE net>\n<net/>", "IR002", 3),
    "doctype-after-bom": (b"\xef\xbb\xbf<!DOCTYPE net>\n<net/>", "IR002", 1),
    "doctype-utf-16": ("<!DOCTYPE net [<!ENTITY a 'x'>]><net name='&a;'/>".encode("utf-16"), "IR002", 1),
    "doctype-utf-16-be": (b"\xfe\xff" + "<!DOCTYPE net>\n<net/>".encode("utf-16-be"), "IR002", 1),
    "doctype-utf-32": ("<!DOCTYPE net>\n<net/>".encode("utf-32"), "IR002", 1),
    "doctype-gbk": ('<?xml version="1.0" encoding="GBK"?>\n' + LAUGHS + NET, "IR002", 2),
    "doctype-utf-7": (HEAD.replace("?>", ' encoding="UTF-7"?>') + LAUGHS + NET, "IR006", 1),
    "doctype-lower-case": ("<!doctype net><net/>", "IR001", 1),
    "billion-laughs": (HEAD + LAUGHS + NET, "IR002", 2),
    "external-entity": (HEAD + EXTERNAL + "<net>&x;</net>", "IR002", 2),
    "external-dtd": (HEAD + '<!DOCTYPE net SYSTEM "http://localhost:9/x.dtd"><net/>', "IR002", 2),
    "parameter-entity": (HEAD + '<!DOCTYPE net [<!ENTITY % p SYSTEM "file:///etc/passwd">%p;]><net/>', "IR002", 2),
    "undefined-entity": (HEAD + '<net version="11"><layers>&who;</layers></net>', "IR001", 2),
    "undefined-entity-in-attribute": (HEAD + '<net name="&who;" version="11"><layers/></net>', "IR001", 2),
    "deep": (HEAD + "<net version='11'>\n" + "<a>\n" * 10_000 + "</a>" * 10_000 + "</net>", "IR005", 258),
    "deep-bodies": (HEAD + "<net version='11'>" + "<layers><layer><body>" * 5_000 + "</body></layer></layers>" * 5_000 + "</net>", "IR005", 2),
    "long-attribute": (HEAD + f'<net name="{"x" * 10_000_100}" version="11"><layers/></net>', "IR005", 2),
    "long-tag": (HEAD + f"<net version='11'><{'x' * 10_000_100}/></net>", "IR005", None),
    "long-comment": (HEAD + f"<!--{'x' * 10_000_100}--><net version='11'/>", "IR005", None),
    "utf-8-mark-utf-16-text": (b"\xef\xbb\xbf" + (HEAD + NET).encode("utf-16-le"), "IR006", 1),
    "utf-8-mark-utf-16-be-text": (b"\xef\xbb\xbf" + (HEAD + NET).encode("utf-16-be"), "IR006", 1),
    "junk": (bytes(random.Random(7).randbytes(4096)), "IR003", None),
    "zip": (b"PK\3\4" + bytes(100), "IR003", None),
    "nothing": ("", "IR001", 1),
    "blanks": (" \n\t\n", "IR001", 1),
    "only-a-bom": (b"\xef\xbb\xbf", "IR001", 1),
    "nul-bytes": (HEAD + '<net version="11">\n<layers>\0</layers></net>', "IR001", 3),
    "nul-in-attribute": (HEAD + '<net version="1\0001"><layers/></net>', "IR001", 2),
    "nul-reference": (HEAD + '<net version="1&#0;1"><layers/></net>', "IR001", 2),
    "latin-1-bytes": (HEAD.encode() + b'<net name="caf\xe9"\nversion="11"><layers/></net>', "IR006", 2),
    "half-a-character": (HEAD.encode() + b'<net version="11">\n<layers name="\xe4\xb8"/></net>', "IR006", 3),
    "surrogate": (HEAD.encode() + b'<net name="\xed\xa0\x80" version="11"><layers/></net>', "IR006", 2),
    "odd-utf-16": (b"\xff\xfe" + "<net/>".encode("utf-16-le") + b"x", "IR006", 1),
    "unknown-encoding": ('<?xml version="1.0" encoding="klingon"?><net/>', "IR006", 1),
    "codec-that-is-no-encoding": ('<?xml version="1.0" encoding="punycode"?><net/>', "IR006", 1),
    "ebcdic": ('<?xml version="1.0" encoding="IBM037"?><net/>'.encode("cp037"), "IR006", 1),
    "json": ('{"net": 1}', "IR003", None),
    "html": ("<!DOCTYPE html><html><body>404</body></html>", "IR003", None),
    "text": ("404: not found", "IR003", None),
    "tag-mismatch": (HEAD + '<net version="11">\n<layers>\n</edges>\n</net>', "IR001", 4),
    "attribute-twice": (HEAD + '<net version="11"\nversion="11"><layers/></net>', "IR001", 3),
    "two-roots": (HEAD + '<net version="11"><layers/></net>\n<net/>', "IR001", 3),
    "text-after": (HEAD + '<net version="11"><layers/></net>\nend', "IR001", 3),
    "strange-tag": (HEAD + '<net version="11"><layers/>\n<\u2c00/></net>', "IR001", 3),
    "namespace": (HEAD + '<net xmlns="urn:x" version="11"><layers/></net>', "IR003", 2),
    "other-root": (HEAD + '<onnx version="11"><layers/></onnx>', "IR003", 2),
    "misspelt-root": (HEAD + '<nett version="11">\n<layers>\n<layer id="0" name="p" type="Parameter"/></layers></nett>', "IR003", 2),
    "no-layers": (HEAD + '<net version="11"><layer/></net>', "IR003", 2),
    "xml-2": ('<?xml version="2.0"?><net version="11"><layers/></net>', "IR001", 1),
}  # fmt: skip


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_files(case: str, tmp_path: Path) -> None:
    text, code, line = HOSTILE[case]
    began = time.process_time()
    found = only(tmp_path, text)
    assert time.process_time() - began < 60
    assert found.code == code, str(found)
    assert line is None or found.line == line, str(found)
    assert len(str(found)) < 1000


def test_no_file_and_a_folder(tmp_path: Path) -> None:
    for path in (tmp_path / "none.xml", tmp_path, tmp_path / "a\0b.xml", Path("")):
        for function in (irrun.check, irrun.read_model, irrun.compile, irrun.run):
            with pytest.raises(ReadError) as caught:
                function(path)
            assert [d.code for d in caught.value.diagnostics] == ["IR000"]


def test_comments_may_hold_anything(tmp_path: Path) -> None:
    net = simple()
    path = net.save(tmp_path)
    path.write_text("<!-- written by <someone> for <layer type='X'></layer> -->\n" + net.text.split("\n", 1)[1])
    assert not irrun.check(path).diagnostics


def test_a_file_cut_short(tmp_path: Path) -> None:
    """At every hundredth of a real file: one clear error that says so."""
    net = simple()
    for i in range(30):
        net.parameter("f32", "1,2", name=f"q{i}")
    data = net.text.encode()
    write(tmp_path, bytes(net.bin), "x.bin")
    for percent in range(100):
        found = only(tmp_path, data[: len(data) * percent // 100])
        assert found.code in ("IR001", "IR003"), str(found)


def test_the_mistake_in_a_dim_is_named(tmp_path: Path) -> None:
    found = only(tmp_path, simple().text.replace("<dim>2</dim>", "<dim>2/dim>", 1))
    assert found.code == "IR001"
    assert found.help == "write <dim>2</dim>"
    assert (found.line, found.column) == (8, 6)


@pytest.mark.parametrize("before", ["<rt_info/>", "<rt_info><dim>7</dim></rt_info>", "<rt_info>\n</rt_info>\n"])
@pytest.mark.parametrize("axis", [0, 1])
def test_a_bad_dim_is_marked_behind_elements_that_irrun_does_not_read(axis: int, before: str, tmp_path: Path) -> None:
    """Other elements stand before the dims, between them and within them: the marked element is still the dim."""
    dims = ["2", "3"]
    dims[axis] = "2x"
    port = "".join(f"{before}<dim><rt_info/>{dim}</dim>" for dim in dims)
    text, count = re.subn(r"<dim>2</dim>\s*<dim>3</dim>", port, simple().text, count=1)
    assert count
    found = next(d for d in irrun.check(write(tmp_path, text)) if d.code == "IR404")
    assert found.message == f'dim {axis} of port 0 of "x" is "2x", which is not a dim'
    assert found.line is not None
    assert found.column is not None
    line = (tmp_path / "x.xml").read_text().split("\n")[found.line - 1]
    assert line[found.column - 1 :].startswith("<dim><rt_info/>2x</dim>")


def test_errors_stand_where_they_are_past_line_65535(tmp_path: Path) -> None:
    text = simple().text.replace("\t<layers>", "\n" * 70_000 + "\t<layers>")
    for broken, code in (
        (text.replace('id="4"', 'id="3"'), "IR101"),
        (text.replace("</net>", "</nett>"), "IR001"),
        (text.replace("<dim>2</dim>", "<dim>2x</dim>", 1), "IR404"),
    ):
        found = next(d for d in irrun.check(write(tmp_path, broken)) if d.code == code)
        assert found.line is not None
        assert found.line > 70_000
        marked = broken.split("\n")[found.line - 1]
        assert any(part in marked for part in ('id="3"', "</nett>", "2x")), marked


# ---------------------------------------------------------------------------------------------
# whatever is in the file, nothing but an IrrunError comes out


_PARTS = re.compile(r'<[^<>]+>|[\w.-]+="[^"]*"|\d+|[^<>\s]+')
_ODD = [
    "", "-1", "0", "1", "2", "3", "7", "99999999999999999999999", "1.5", "nan", "?", "..", "...", "1..", "x", '"', "&", "&amp;", "<", ">", "\0", "é",
    "FP32", "I64", "STRING", "U1", "NF4", "dynamic", "opset8", "opset99", "extension", "Parameter", "Const", "Result", "Broadcast", "Add", "If", "Loop",
    "Concat", "Reshape", "MatMul", "Convolution", "ReLU", "version", "<dim>3</dim>", "<data/>", "<output/>", "<body/>", "<input><port id='9'/></input>", "<layers/>",
    "1" * 5000,
]  # fmt: skip


def _mutated(text: str, chance: random.Random) -> str:
    parts = [m.span() for m in _PARTS.finditer(text)]
    start, end = chance.choice(parts)
    match chance.randrange(7):
        case 0:
            return text[:start] + text[end:]
        case 1:
            return text[:end] + " " + text[start:end] + text[end:]
        case 2:
            return text[:start] + chance.choice(_ODD) + text[end:]
        case 3:
            other = chance.choice(parts)
            return text[:start] + text[other[0] : other[1]] + text[end:]
        case 4:
            value = re.compile(r'"[^"]*"')
            spans = [m.span() for m in value.finditer(text)]
            start, end = chance.choice(spans)
            return text[:start] + '"' + chance.choice(_ODD).replace('"', "") + '"' + text[end:]
        case 5:
            at = chance.randrange(len(text))
            return text[:at] + chr(chance.randrange(1, 300)) + text[at + 1 :]
        case _:
            at, to = sorted(chance.randrange(len(text)) for _ in range(2))
            to = min(to, at + 300)
            return text[:at] + (text[at:to] * 2 if chance.random() < 0.5 else "") + text[to:]


def _seeds(folder: Path) -> list[tuple[str, bytes]]:
    """Small valid models, some as OpenVINO writes them, with bodies too."""
    net = simple()
    x = net.parameter("f32", "?,3,1..8", name="dynamic")
    shape = net.const("i64", "4", np.array([1, 2, 3, 8]).tobytes(), name="target")
    grown = net.add("Broadcast", [x, shape], [("FP32", "1,2,3,8")], opset="opset3", mode="bidirectional")
    net.result(grown)
    found = [(net.text, bytes(net.bin))]
    x, condition = b.parameter([2, None], "f32", name="x"), b.parameter([], "boolean", name="c")
    either = b.If(condition, x, then=lambda a: b.Multiply(a, [2.0]), otherwise=lambda a: b.Multiply(a, [3.0]))
    irrun.save_model(b.model(b.Concat(b.ReLU(either), x, axis=1)), folder / "if.xml")
    found.append(((folder / "if.xml").read_text(), (folder / "if.bin").read_bytes()))
    return found


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 20))])
def test_mutated_files_raise_nothing_but_irrun_errors(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    seeds = _seeds(tmp_path)
    began = time.process_time()
    for number in range(400):
        text, weights = chance.choice(seeds)
        for _ in range(chance.choice((1, 1, 1, 2, 4))):
            text = _mutated(text, chance)
        data = text.encode("utf-8", "replace")
        if chance.random() < 0.1:
            data = data[: chance.randrange(len(data))]
        path = write(tmp_path, data)
        write(tmp_path, weights if chance.random() < 0.9 else weights[: chance.randrange(len(weights))], "x.bin")
        try:
            report = irrun.check(path)
            bugs = [d for d in report if d.code == "IR603"]
            assert not bugs, bugs
            executable = irrun.compile(path, max_memory=1 << 24)
            if report.ok:
                arrays = [
                    np.zeros([d.lo if d.lo else 1 for d in p.outputs[0].shape or ()], t.dtype)
                    for p in executable.model.parameters
                    if (t := p.outputs[0].type)
                ]
                executable(arrays)
        except IrrunError as error:
            assert error.diagnostics  # noqa: PT017
            assert not [d for d in error.diagnostics if d.code == "IR603"], str(error)  # noqa: PT017
        except BaseException:
            print(f"seed {seed}, file {number}:\n{text[:5000]}")
            raise
        if time.process_time() - began > 5:
            break


def test_of_two_data_elements_the_first_counts_and_the_second_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "net.xml"
    path.write_text((INVALID / "data_twice.xml").read_text())
    with pytest.raises(irrun.ModelError) as caught:
        irrun.run(path)
    assert [finding.code for finding in caught.value.diagnostics] == ["IR009"]
    assert load(path).model.layers[0].attributes["shape"] == "2"


@pytest.mark.parametrize("tag", ["body", "port_map", "back_edges", "input", "output", "data"])
def test_each_element_of_a_layer_may_stand_once(tag: str, tmp_path: Path) -> None:
    path = tmp_path / "net.xml"
    path.write_text(
        f'<net name="n" version="11"><layers><layer id="0" name="t" type="TensorIterator" version="opset1"><{tag}>'
        f"{'<layers/>' if tag == 'body' else ''}</{tag}><{tag}>{'<layers/>' if tag == 'body' else ''}</{tag}>"
        "</layer></layers></net>"
    )
    assert [finding.message for finding in load(path).problems if finding.code == "IR009"] == [
        f'layer "t" has a second <{tag}>'
    ]


def test_an_input_and_an_output_may_share_an_id(tmp_path: Path) -> None:
    net = simple()
    text = net.text.replace('<port id="2"', '<port id="0"').replace('from-port="2"', 'from-port="0"')
    path = write(tmp_path, text)
    path.with_suffix(".bin").write_bytes(bytes(net.bin))
    assert not irrun.check(path).diagnostics
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.testing.assert_array_equal(irrun.run(path, x)[0], x * x + 1)


def test_a_stray_edge_is_an_error_but_the_model_runs(tmp_path: Path) -> None:
    net = simple()
    net.edges.append('<edge from-layer="70" from-port="0" to-layer="80" to-port="0"/>')
    path = net.save(tmp_path)
    (finding,) = irrun.check(path)
    assert (finding.code, finding.severity, finding.blocks) == ("IR110", "error", False)
    assert irrun.run(path, np.zeros((2, 3), np.float32))[0].tolist() == [[1, 1, 1], [1, 1, 1]]


def test_an_edge_that_may_be_the_missing_one_is_not_stray(tmp_path: Path) -> None:
    net = simple()
    net.edges[-1] = '<edge from-layer="70" from-port="0" to-layer="80" to-port="0"/>'
    path = net.save(tmp_path)
    assert [finding.code for finding in irrun.check(path)] == ["IR103"]
    with pytest.raises(irrun.ModelError):
        irrun.run(path)
