"""Fixing: the edits change what is wrong and not a byte besides."""

import codecs
import json
import os
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import irrun
import small_networks
from checking.test_checker import chain, changed
from irrun.api import load
from irrun.base.edits import apply, set_items
from irrun.base.source import Source
from irrun.checking.fix import fix, rewrite
from irrun.ir.parse import Parsed
from nets import Net


def net(first: str = "FP32", dims: str = "2,3") -> str:
    """Parameter, ReLU and Result; ``relu`` declares ``dims``, and ``first`` as its precision."""
    made = Net()
    x = made.parameter("f32", "2,3", name="x")
    relu = made.add("ReLU", [x], [("FP32", "2,3")], name="relu")
    made.result(relu, name="y")
    head, tail = made.layers[1].split("<output>")
    right = "\n".join(f"\t\t\t<dim>{dim}</dim>" for dim in (2, 3))
    said = "\n".join(f"\t\t\t<dim>{dim}</dim>" for dim in dims.split(",") if dim)
    assert right in tail
    tail = tail.replace(right + "\n", said + "\n" if said else "").replace("FP32", first)
    made.layers[1] = f"{head}<output>{tail}"
    return made.text


def fixed(folder: Path, data: bytes | str, *, unsafe: bool = False) -> bytes:
    """What becomes of a file; it checks clean, and fixing it again changes nothing."""
    path = folder / "net.xml"
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    found = fix(load(path), unsafe=unsafe)
    assert not found.left
    path.write_bytes(found.data)
    again = fix(load(path), unsafe=unsafe)
    assert (again.data, again.count) == (found.data, 0)
    assert not irrun.check(path).diagnostics
    return found.data


# ---------------------------------------------------------------------------------------------
# the bytes


@pytest.mark.parametrize(
    "broken",
    [
        net(dims="2,4"), net(dims="7,3"), net(dims="7,4"), net(dims="-1,3"), net(dims="?,3"), net(dims="x,3"),
        net(dims="3"), net(dims="2"), net(dims="5"), net(dims=""), net(dims="2,3,1"), net(dims="1,2,3"),
        net(dims="2,1,3"), net(dims="2,9,9,9,3"), net("FP16"), net("I64"), net("FP33"), net("BOOL", "3,2"),
    ],
    ids=lambda text: text.split('name="relu"')[1].split("<output>")[1].split("</output>")[0].replace("\t", "").replace("\n", ""),
)  # fmt: skip
def test_dims_and_precision_of_an_output(broken: str, tmp_path: Path) -> None:
    assert broken != net()
    assert fixed(tmp_path, broken).decode() == net()


def test_dims_and_precision_of_an_input(tmp_path: Path) -> None:
    for old, new in (
        ("<dim>3</dim>", "<dim>4</dim>"), ("\t\t\t\t\t<dim>3</dim>\n", ""), ("FP32", "FP64"), ("<dim>2</dim>", "<dim>-1</dim>"),
    ):  # fmt: skip
        at = net().index("<input>")
        broken = net()[:at] + net()[at:].replace(old, new, 1)
        assert broken != net()
        assert fixed(tmp_path, broken).decode() == net()


VARIANTS = {
    "crlf": lambda text: text.replace("\n", "\r\n"),
    "no-newline-at-the-end": lambda text: text.rstrip("\n"),
    "one-line": lambda text: text.replace("\n", "").replace("\t", ""),
    "spaces": lambda text: text.replace("\t", "  "),
    "apostrophes": lambda text: text.replace('"', "'"),
    "comments": lambda text: text.replace("</dim>", "</dim> <!-- <dim>9</dim> -->").replace(
        "<port ", "<!-- é --><port "
    ),
    "spaces-in-dims": lambda text: text.replace("<dim>", "<dim> ").replace("</dim>", "\t</dim>"),
    "capitals": lambda text: text.replace("<dim>", "<DIM>").replace("</dim>", "</DIM>"),
    "attributes-on-lines": lambda text: text.replace(' precision="', '\n  precision = "'),
    "names": lambda text: text.replace('name="relu"', 'name="précis &lt;ü&#x1F600;> 𝛼"'),
}


ENCODINGS = ("utf-8", "utf-8-sig", "utf-16", "utf-16-be", "utf-32", "latin-1", "shift_jis")


@pytest.mark.parametrize(
    ("variant", "encoding"),
    # those that latin-1 and Shift JIS have the characters for
    [(v, e) for v in VARIANTS for e in ENCODINGS if e.startswith("utf") or v not in ("names", "comments")],
)
def test_every_other_byte_stays(variant: str, encoding: str, tmp_path: Path) -> None:
    def encoded(text: str) -> bytes:
        text = VARIANTS[variant](text)
        declared = {"latin-1": "ISO-8859-1", "shift_jis": "Shift_JIS"}.get(encoding, encoding[:6].upper())
        quote = "'" if variant == "apostrophes" else '"'
        text = text.replace("?>", f" encoding={quote}{declared}{quote}?>", 1)
        mark = codecs.BOM_UTF16_BE if encoding == "utf-16-be" else b""
        return mark + text.encode(encoding)

    for broken in (net(dims="2,47"), net("FP16")):
        assert fixed(tmp_path, encoded(broken)) == encoded(net())


def test_a_dim_that_is_missing_gets_the_line_of_its_neighbours(tmp_path: Path) -> None:
    for change in (VARIANTS["crlf"], VARIANTS["spaces"], VARIANTS["one-line"]):
        for dims in ("3", "2", ""):
            assert fixed(tmp_path, change(net(dims=dims))).decode() == change(net())


def test_dims_for_a_port_that_is_closed_at_once(tmp_path: Path) -> None:
    right = '<port id="1" precision="FP32">\n\t\t\t\t\t<dim>2</dim>\n\t\t\t\t\t<dim>3</dim>\n\t\t\t\t</port>'
    assert right in net()
    for port in (
        '<port id="1" precision="FP32"/>',
        '<port id="1" precision="FP32"></port>',
        '<port id="1" precision="FP32" />',
    ):
        assert fixed(tmp_path, net().replace(right, port)).decode() == net()


def test_what_is_written_in_pieces_is_left(tmp_path: Path) -> None:
    path = tmp_path / "net.xml"
    path.write_text(net(dims="2,4").replace("<dim>4</dim>", "<dim><!-- four -->4</dim>"))
    found = fix(load(path))
    assert (found.count, found.data) == (0, path.read_bytes())
    assert [d.code for d in found.left] == ["IR401"]


# ---------------------------------------------------------------------------------------------
# which end, which attribute


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("2,3", "5,3"),
        (" 2 , 3 ", " 5 , 3 "),
        ("  ,3", "  5,3"),
        (" 2, ", " 5, 3"),
        ("\t,\n", "\t5,\n3"),
        (",", "5,3"),
        ("22,33", "5,3"),
        ("2", "5,3"),
        ("  ", "5,3"),
    ],
)
def test_items_of_an_attribute(text: str, after: str) -> None:
    """White space around an item stays, also where the item is nothing else."""
    document = '<data shape="{}"/>'
    source = Source("net.xml", document.format(text).encode())
    edits = set_items(source, 0, "shape", ["5", "3"])
    assert edits is not None
    assert apply(source, edits).decode() == document.format(after)


def test_many_faults(tmp_path: Path) -> None:
    right = chain().text
    made = changed(chain(), "relu2", "<dim>6</dim>", "<dim>5</dim>", 1)
    made = changed(made, "relu8", "FP32", "FP16", 1)
    made = changed(made, "add9", "<dim>4</dim>", "<dim>44</dim>", 1)
    made = changed(made, "dense", "<dim>5</dim>", "<dim>7</dim>", 2)
    made = changed(made, "filters", 'size="432"', 'size="431"')
    path = made.save(tmp_path)
    found = fix(load(path))
    assert (found.count, found.left) == (5, ())
    assert found.data.decode() == right


CONST = {
    "size": ("matrix", 'size="2880"', 'size="2881"'),
    "size-past-the-end": ("matrix", 'size="2880"', 'size="28800"'),
    "shape": ("matrix", 'shape="144,5"', 'shape="144,6"'),
    "rank": ("matrix", 'shape="144,5"', 'shape="144"'),
    "element-type": ("matrix", 'element_type="f32"', 'element_type="f16"'),
}


@pytest.mark.parametrize("fault", CONST)
def test_of_a_constant_what_the_others_contradict(fault: str, tmp_path: Path) -> None:
    path = changed(chain(), *CONST[fault]).save(tmp_path)
    unsafe = fault in ("rank", "element-type")  # the size is large enough, so that OpenVINO reads other values
    assert fix(load(path), unsafe=unsafe).data.decode() == chain().text


def test_the_bytes_of_a_constant_outvote_all_ports(tmp_path: Path) -> None:
    """A careless replacement changed a dim in every port: the size of the constant says which shape is right."""
    net = Net()
    x = net.parameter("f32", "1,64", name="x")
    w = net.const("f32", "10,64", bytes(2560), name="w")
    net.result(net.add("MatMul", [x, w], [("FP32", "1,10")], transpose_a=False, transpose_b=True))
    assert net.text.count("<dim>10</dim>") == 4
    path = net.save(tmp_path)
    path.write_text(net.text.replace("<dim>10</dim>", "<dim>11</dim>"))
    found = fix(load(path), unsafe=True)
    assert found.data.decode() == net.text
    assert not found.left


UNSAFE = {
    "misspelt": ("conv", 'strides="1,1"', 'stridse="1,1"'),
    "optional-misspelt": ("flat", "special_zero", "special_zer0"),
    "parameter-shape": ("x", 'shape="1,3,8,8"', 'shape="1,3,16,8"'),
    "parameter-rank": ("x", 'shape="1,3,8,8"', 'shape="3,8,8"'),
    "parameter-type": ("x", 'element_type="f32"', 'element_type="f16"'),
    "parameter-type-missing": ("x", 'element_type="f32" shape="1,3,8,8"', 'shape="1,3,8,8"'),
    "constant-type": ("matrix", 'element_type="f32"', 'element_type="i32"'),
}


@pytest.mark.parametrize("fault", UNSAFE)
def test_what_changes_the_meaning_is_asked_for(fault: str, tmp_path: Path) -> None:
    path = changed(chain(), *UNSAFE[fault]).save(tmp_path)
    safe = fix(load(path))
    assert (safe.count, safe.data) == (0, path.read_bytes())
    assert all(d.fix and not d.fix.safe for d in safe.left)
    found = fix(load(path), unsafe=True)
    assert not found.left
    assert irrun.read_model(path.parent / "net.xml")
    if fault != "parameter-type-missing":
        assert found.data.decode() == chain().text


def test_a_fix_that_changes_the_model_is_not_kept(tmp_path: Path) -> None:
    """The ports outvote the shape of the Parameter, but the model runs as the attribute says: the ports are fixed."""
    path = tmp_path / "net.xml"
    path.write_text(net().replace("<dim>3</dim>", "<dim>4</dim>"))
    assert 'shape="2,4"' in fix(load(path), unsafe=True).data.decode()
    asked: list[str] = []

    def is_unchanged(parsed: Parsed) -> bool:
        asked.append(parsed.model.parameters[0].attributes["shape"])
        return asked[-1] == "2,3"

    found = fix(load(path), unsafe=True, is_unchanged=is_unchanged)
    assert (found.data.decode(), found.left) == (net(), ())
    assert asked == ["2,4", "2,3"]
    found = fix(load(path), unsafe=True, is_unchanged=lambda _: False)
    assert found.data == path.read_bytes()
    assert found.left[0].notes[-1] == "not fixed: the model runs, and would not give the same after this fix"


def test_an_edge_that_stands_there_twice(tmp_path: Path) -> None:
    edge = '\n\t\t<edge from-layer="0" from-port="0" to-layer="1" to-port="0"/>'
    assert edge in net()
    assert fixed(tmp_path, net().replace(edge, edge * 2), unsafe=True).decode() == net()


def test_shapes_that_were_inferred_wrong_all_along(tmp_path: Path) -> None:
    """Both ends of each edge say the same, and it does not follow from the inputs: what follows is declared."""
    made = Net()
    x = made.parameter("f32", "2,5", name="x")
    last = made.add("Add", [x, x], [("FP32", "2,6")], name="sum")
    for i in range(4):
        last = made.add("ReLU", [last], [("FP32", "2,6")], name=f"relu{i}")
    made.result(last, name="y")
    path = made.save(tmp_path)
    (found,) = irrun.check(path)
    assert (found.code, found.layer) == ("IR401", "sum")
    assert found.notes[-1] == "also affects 5 layers after it"
    assert fixed(tmp_path, made.text).decode() == made.text.replace("<dim>6</dim>", "<dim>5</dim>")


def test_a_parameter_edited_by_hand(tmp_path: Path, ov: Any) -> None:
    """One finding, and what follows is counted; --unsafe-fixes declares it."""
    model = small_networks.resnet(ov)
    path = tmp_path / "net.xml"
    irrun.save_model(irrun.read_model(_serialized(ov, model, tmp_path)), path)
    text = path.read_text()
    edited = text.replace('shape="1,3,64,64"', 'shape="1,3,128,64"').replace("<dim>64</dim>", "<dim>128</dim>", 1)
    assert edited.count("128") == text.count("128") + 2
    path.write_text(edited)
    (found,) = irrun.check(path)
    assert (found.code, found.layer) == ("IR402", "image")
    after = int(found.notes[-1].split()[2])
    assert after > 30
    assert fix(load(path)).count == 0
    path.write_bytes(fix(load(path), unsafe=True).data)
    assert not irrun.check(path).diagnostics
    model.reshape([1, 3, 128, 64])
    assert _declared(path) == _declared(_serialized(ov, model, tmp_path))


@pytest.mark.parametrize(("old", "new", "dims"), [("1,12", "1,13", ("12", "13")), ("1,12", "2,12", ("1", "2"))])
def test_a_parameter_that_several_layers_read(
    old: str, new: str, dims: tuple[str, str], tmp_path: Path, ov: Any
) -> None:
    path = _serialized(ov, small_networks.bert(ov), tmp_path)
    text = path.read_text().replace(f'shape="{old}"', f'shape="{new}"', 1)
    path.write_text(text.replace(f"<dim>{dims[0]}</dim>", f"<dim>{dims[1]}</dim>", 1))
    (found,) = irrun.check(path)
    assert (found.code, found.layer) == ("IR402", "input_ids")
    assert int(found.notes[-1].split()[2]) > 50


def _declared(path: Path) -> dict[tuple[str, int], str]:
    layers = irrun.read_model(path).layers.values()
    return {(layer.name, port.id): str(port.shape) for layer in layers for port in (*layer.inputs, *layer.outputs)}


def _serialized(ov: Any, model: Any, folder: Path) -> Path:
    ov.serialize(model, folder / "made.xml")
    return folder / "made.xml"


@pytest.mark.parametrize("make", small_networks.NETWORKS)
def test_a_wrong_attribute_in_a_network_is_one_finding(make: Callable[[Any], Any], tmp_path: Path, ov: Any) -> None:
    path = _serialized(ov, make(ov), tmp_path)
    text = path.read_text()
    assert not irrun.check(path).diagnostics
    old, new = ("f32", "f16") if "resnet" in make.__name__ else ("i64", "i32")
    path.write_text(text.replace(f'element_type="{old}"', f'element_type="{new}"', 1))
    found = irrun.check(path)
    assert len(found) == 1, [str(d) for d in found]


# ---------------------------------------------------------------------------------------------
# the file


def test_rewrite_keeps_permissions_and_links(tmp_path: Path) -> None:
    target, link = tmp_path / "net.xml", tmp_path / "link.xml"
    target.write_text("old")
    target.chmod(0o640)
    link.symlink_to(target.name)
    rewrite(link, b"new")
    assert target.read_bytes() == b"new"
    assert link.is_symlink()
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    assert sorted(p.name for p in tmp_path.iterdir()) == ["link.xml", "net.xml"]


def test_rewrite_fails_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "net.xml"
    target.write_text("old")

    def refuse(*_: object) -> None:
        raise OSError("no")

    monkeypatch.setattr(Path, "replace", refuse)
    with pytest.raises(OSError, match="no"):
        rewrite(target, b"new")
    assert [p.name for p in tmp_path.iterdir()] == ["net.xml"]
    assert target.read_text() == "old"


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() == 0, reason="nothing is forbidden to root")
def test_rewrite_refuses_what_is_read_only(tmp_path: Path) -> None:
    target = tmp_path / "net.xml"
    target.write_text("old")
    target.chmod(0o444)
    with pytest.raises(PermissionError):
        rewrite(target, b"new")


# ---------------------------------------------------------------------------------------------
# what machines read


def test_edits_are_where_they_say(tmp_path: Path) -> None:
    for encoding in ("utf-8", "utf-8-sig", "utf-16"):
        data = net(dims="2,47").replace('name="relu"', 'name="rélu𝛼"').encode(encoding)
        path = tmp_path / "net.xml"
        path.write_bytes(data)
        (found,) = irrun.check(path)
        assert found.fix is not None
        (edit,) = found.fix.edits
        line = data.decode(encoding).split("\n")[edit.line - 1]
        assert line[edit.column - 1 : edit.end_column - 1] == "47"
        assert data[edit.start : edit.end].decode("utf-16-le" if encoding == "utf-16" else "utf-8") == "47"
        assert (edit.text, edit.end_line) == ("3", edit.line)
        json.dumps(found.fix.title)
