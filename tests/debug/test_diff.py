"""irrun diff: empty for models that say the same, and exact on planted edits."""

from __future__ import annotations

import copy
import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from lxml import etree  # pyright: ignore[reportAttributeAccessIssue]

import irrun
from irrun import build as b
from irrun.debug.difference import Difference, diff
from nets import Net
from places import SAMPLES
from scrambles import scramble


def _base(folder: Path) -> Path:
    """Write a model with convolutions, two equal branches, an If, a loop, a variable, and constants of many types."""
    rng = np.random.default_rng(0)

    def floats(*shape: int) -> np.ndarray:
        return rng.standard_normal(shape).astype(np.float32)

    x, flag = b.parameter([1, 3, 8, 8], name="x"), b.parameter([], "boolean", name="flag")
    conv = b.Convolution(
        x, b.constant(floats(4, 3, 3, 3), name="kernel"), strides=(1, 1), pads_begin=(1, 1), pads_end=(1, 1),
        dilations=(1, 1), name="conv",
    )  # fmt: skip
    bias = b.Add(conv, b.constant(floats(1, 4, 1, 1), name="bias"), name="add")
    relu = b.ReLU(bias, name="relu")
    pool = b.MaxPool(
        relu, strides=(2, 2), dilations=(1, 1), pads_begin=(0, 0), pads_end=(0, 0), kernel=(2, 2), name="pool"
    )
    half = b.Convert(b.constant(floats(4, 1, 1).astype(np.float16), name="half"), destination_type="f32", name="wide")
    scaled = b.Multiply(pool[0], half, name="scaled")
    left, right = b.Sigmoid(scaled, name="left"), b.Sigmoid(scaled, name="right")
    both = b.Concat(left, right, axis=1, name="both")
    flat = b.Reshape(both, b.constant(np.array([8, 16]), name="target"), special_zero=False, name="flat")
    total = b.MatMul(flat, b.constant(floats(16, 5), name="matrix"), transpose_a=False, transpose_b=False, name="fc")
    parts = b.Split(total, b.constant(np.int64(0), name="axis"), num_splits=2, name="parts")
    choice = b.If(
        flag, parts[0], parts[1],
        then=lambda p, q: b.Add(p, q, name="then_add"), otherwise=lambda p, q: b.Subtract(p, q, name="else_sub"),
        name="choice",
    )  # fmt: skip

    def body(total: b.Output, row: b.Output) -> Any:
        return b.Add(b.Exp(row, name="exp"), total, name="sum")

    start = b.constant(np.zeros((1, 5), np.float32), name="start")
    loop = b.TensorIterator(start, b.sliced(choice, axis=0), body=body, name="loop")
    clamped = b.Clamp(loop, min=-1.0, max=6.0, name="clamp")
    names = b.constant(np.array(["a", "bc"]), name="words")
    model = b.model({"y": clamped, "z": b.TopK(flat, b.constant(np.int64(3), name="k"), axis=1, mode="max",
                                              sort="value", name="top")[1], "w": names})  # fmt: skip
    path = folder / "a.xml"
    irrun.save_model(model, path)
    root = etree.parse(str(path)).getroot()
    for layer in root.iter("layer"):  # OpenVINO writes such notes
        info = etree.SubElement(layer, "rt_info")
        etree.SubElement(info, "attribute", name="fused_names_0", value=layer.get("name"))
    etree.SubElement(etree.SubElement(root, "rt_info"), "Runtime_version", value="2026.4.1")
    etree.ElementTree(root).write(str(path))
    return path


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _base(tmp_path_factory.mktemp("base"))


def read(path: Path, *, other: Path, rt_info: bool = False) -> Difference:
    return diff(irrun.read_model(path), irrun.read_model(other), rt_info=rt_info)


# ---------------------------------------------------------------------------------------------
# models that say the same


@pytest.mark.parametrize("seed", range(15))
def test_other_ids_order_and_offsets_make_no_difference(base: Path, seed: int, tmp_path: Path) -> None:
    scramble(base, tmp_path / "b.xml", seed)
    assert (tmp_path / "b.xml").read_bytes() != base.read_bytes()
    assert read(base, other=tmp_path / "b.xml", rt_info=True).same


@pytest.mark.parametrize("sample", sorted(SAMPLES.glob("*.xml")), ids=lambda path: path.stem)
def test_scrambled_samples_are_the_same(sample: Path, tmp_path: Path) -> None:
    for seed in range(3):
        scramble(sample, tmp_path / "b.xml", seed)
        assert read(sample, other=tmp_path / "b.xml", rt_info=True).same


# ---------------------------------------------------------------------------------------------
# planted edits


class Edited:
    """An IR file to be edited: its elements, and the bytes of its .bin."""

    def __init__(self, xml: Path) -> None:
        self.root = etree.parse(str(xml)).getroot()
        self.bin = bytearray(xml.with_suffix(".bin").read_bytes())

    def layer(self, name: str) -> Any:
        (layer,) = [layer for layer in self.root.iter("layer") if layer.get("name") == name]
        return layer

    def port(self, name: str, number: int = 0, side: str = "output") -> Any:
        return self.layer(name).findall(f"{side}/port")[number]

    def value(self, name: str, index: int, raw: bytes) -> None:
        """Write bytes at an offset in the values of a constant."""
        at = int(self.layer(name).find("data").get("offset")) + index
        self.bin[at : at + len(raw)] = raw

    def edges(self, name: str, end: str) -> list[Any]:
        """Return the edges that end at (``to``) or begin at (``from``) a layer outside of bodies."""
        id = self.layer(name).get("id")
        return [edge for edge in self.root.find("edges") if edge.get(f"{end}-layer") == id]

    def save(self, path: Path) -> None:
        etree.ElementTree(self.root).write(str(path))
        path.with_suffix(".bin").write_bytes(self.bin)


Change = tuple[str, str, str, str | None, str | None]
"""A layer or ``model``, the kind of change, what it concerns, and both sides."""


def attribute(layer: str, name: str, old: str | None, new: str | None) -> Any:
    def edit(e: Edited) -> None:
        data = e.layer(layer).find("data")
        if data is None:
            e.layer(layer).insert(0, data := etree.Element("data"))
        assert data.get(name) == old
        if new is None:
            del data.attrib[name]
        else:
            data.set(name, new)

    return edit, [(layer, "attribute", name, old, new)]


def version(layer: str, old: str, new: str) -> Any:
    return lambda e: e.layer(layer).set("version", new), [(layer, "version", "", old, new)]


def renamed(layer: str, new: str) -> Any:
    return lambda e: e.layer(layer).set("name", new), [(layer, "name", "", layer, new)]


def retyped(layer: str, old: str, new: str) -> Any:
    return lambda e: e.layer(layer).set("type", new), [(layer, "type", "", old, new)]


def dim(layer: str, side: str, number: int, axis: int, new: str, old_shape: str, new_shape: str) -> Any:
    def edit(e: Edited) -> None:
        e.port(layer, number, side).findall("dim")[axis].text = new

    return edit, [(layer, "shape", f"{side} {number}", old_shape, new_shape)]


def precision(layer: str, side: str, number: int, new: str, old_name: str, new_name: str) -> Any:
    return (
        lambda e: e.port(layer, number, side).set("precision", new),
        [(layer, "precision", f"{side} {number}", old_name, new_name)],
    )


def weights(layer: str, index: int, raw: bytes) -> Any:
    return lambda e: e.value(layer, index, raw), [(layer, "weights", "", None, None)]


def _rewire(e: Edited, layer: str, input: int, producer: str, output: int = 0) -> None:
    port = e.port(layer, input, "input").get("id")
    (edge,) = [edge for edge in e.edges(layer, "to") if edge.get("to-port") == port]
    edge.set("from-layer", e.layer(producer).get("id"))
    edge.set("from-port", e.port(producer, output).get("id"))


def rewired(layer: str, input: int, old: str, new: str, output: int = 0, shown: str = "") -> Any:
    return (
        lambda e: _rewire(e, layer, input, new, output),
        [(layer, "edge", f"input {input}", old, shown or new)],
    )


def _insert(e: Edited, producer: str, consumer: str, input: int, type: str, name: str) -> None:
    """Insert a layer like ReLU between a producer and one of its consumers."""
    layer = copy.deepcopy(e.layer("relu"))
    for tag, of in (("input", e.port(producer)), ("output", e.port(producer))):
        side = layer.find(tag)
        number = side[0].get("id")
        side[:] = [copy.deepcopy(of)]
        side[0].set("id", number)
        side[0].attrib.pop("names", None)
    layer.set("id", "900")
    layer.set("name", name)
    layer.set("type", type)
    e.root.find("layers").append(layer)
    _rewire(e, consumer, input, name)
    etree.SubElement(
        e.root.find("edges"), "edge", {
            "from-layer": e.layer(producer).get("id"), "from-port": e.port(producer).get("id"),
            "to-layer": "900", "to-port": layer.find("input")[0].get("id"),
        },
    )  # fmt: skip


def inserted(producer: str, consumer: str, input: int, type: str) -> Any:
    return (
        lambda e: _insert(e, producer, consumer, input, type, "new"),
        [("new", "added", "", None, None), (consumer, "edge", f"input {input}", producer, "new")],
    )


def _remove(e: Edited, layer: str, producer: str) -> None:
    """Remove a layer with one input, and connect its consumers with its producer."""
    for edge in e.edges(layer, "to"):
        e.root.find("edges").remove(edge)
    for edge in e.edges(layer, "from"):
        edge.set("from-layer", e.layer(producer).get("id"))
        edge.set("from-port", e.port(producer).get("id"))
    e.root.find("layers").remove(e.layer(layer))


def removed(layer: str, producer: str, consumer: str, input: int) -> Any:
    return (
        lambda e: _remove(e, layer, producer),
        [(layer, "removed", "", None, None), (consumer, "edge", f"input {input}", layer, producer)],
    )


def tensor_name(layer: str, old: str | None, new: str) -> Any:
    def edit(e: Edited) -> None:
        assert e.port(layer).get("names") == old
        e.port(layer).set("names", new.replace(", ", ","))

    return edit, [(layer, "tensor_names", "output 0", old, new)]


def info(layer: str, new: str) -> Any:
    def edit(e: Edited) -> None:
        e.layer(layer).find("rt_info/attribute").set("value", new)

    return edit, [(layer, "rt_info", "rt_info/attribute[fused_names_0]", layer, new)]


def slicing(name: str, new: str) -> Any:
    def edit(e: Edited) -> None:
        (entry,) = [e for e in e.layer("loop").findall("port_map/input") if e.get("axis")]
        entry.set(name, new)

    before = "axis=0 start=0 end=-1 stride=1 part_size=1"
    old = f'input 1 -> "{ROW}" {before}'
    after = " ".join(f"{name}={new}" if word.startswith(f"{name}=") else word for word in before.split())
    return edit, [("loop", "port_map", "port_map", old, f'input 1 -> "{ROW}" {after}')]


ROW = "parameter_1"
"""The name that the builder gives the Parameter of the loop's body that takes the rows."""


def _whole(change: Callable[[Edited], None], *expected: Change) -> Any:
    return change, list(expected)


def _both_shapes(e: Edited) -> None:
    """Give a Parameter another shape, in its attribute and its port."""
    e.layer("x").find("data").set("shape", "2,3,8,8")
    e.port("x").findall("dim")[0].text = "2"


EDITS: dict[str, Any] = {
    "attribute of a convolution": attribute("conv", "strides", "1,1", "2,2"),
    "another attribute": attribute("conv", "pads_begin", "1,1", "0,1"),
    "dilations": attribute("conv", "dilations", "1,1", "2,1"),
    "attribute that is a word": attribute("conv", "auto_pad", None, "valid"),
    "kernel of a pool": attribute("pool", "kernel", "2,2", "3,3"),
    "rounding": attribute("pool", "rounding_type", None, "ceil"),
    "number": attribute("clamp", "max", "6.0", "6.5"),
    "negative number": attribute("clamp", "min", "-1.0", "-1.25"),
    "boolean": attribute("fc", "transpose_b", "false", "true"),
    "axis": attribute("both", "axis", "1", "2"),
    "type in an attribute": attribute("top", "index_element_type", None, "i64"),
    "mode": attribute("top", "mode", "max", "min"),
    "special zero": attribute("flat", "special_zero", "false", "true"),
    "attribute inside a body": attribute("then_add", "auto_broadcast", None, "none"),
    "unknown attribute": attribute("clamp", "slope", None, "0.1"),
    "version": version("relu", "opset1", "opset8"),
    "version of a constant": version("bias", "opset1", "opset13"),
    "version inside a body": version("exp", "opset1", "opset4"),
    "name": renamed("relu", "activation"),
    "name of an input": renamed("x", "image"),
    "name of a constant": renamed("kernel", "weights.0"),
    "name of one of two equal layers": renamed("left", "first"),
    "name of a loop": renamed("loop", "cell"),
    "name inside a body": renamed("then_add", "sum_up"),
    "name of a result": renamed("y/result", "y_out"),
    "type": retyped("relu", "ReLU", "Sigmoid"),
    "type of one of two equal layers": retyped("right", "Sigmoid", "Tanh"),
    "type of a binary operation": retyped("scaled", "Multiply", "Divide"),
    "type inside a body": retyped("else_sub", "Subtract", "Add"),
    "dim of an output": dim("pool", "output", 0, 2, "5", "[1,4,4,4]", "[1,4,5,4]"),
    "dim of an input": dim("pool", "input", 0, 1, "7", "[1,4,8,8]", "[1,7,8,8]"),
    "unknown dim": dim("fc", "output", 0, 0, "-1", "[8,5]", "[?,5]"),
    "dim inside a body": dim("exp", "output", 0, 1, "6", "[1,5]", "[1,6]"),
    "precision of an output": precision("add", "output", 0, "FP16", "f32", "f16"),
    "precision of an input": precision("add", "input", 1, "FP16", "f32", "f16"),
    "shape of a Parameter": _whole(_both_shapes, ("x", "shape", "output 0", "[1,3,8,8]", "[2,3,8,8]")),
    "f32 weight": weights("kernel", 40, struct.pack("<f", 9.0)),
    "f16 weight": weights("half", 2, struct.pack("<e", 4.0)),
    "i64 value": weights("target", 0, struct.pack("<q", 9)),
    "scalar": weights("axis", 0, struct.pack("<q", 1)),
    "string": weights("words", 16, b"q"),
    "NaN": weights("matrix", 12, struct.pack("<f", float("nan"))),
    "edge": rewired("both", 1, "right", "left"),
    "edge to another output": rewired("choice", 2, "parts:3", "parts", 0, "parts"),
    "edge to another layer": rewired("scaled", 0, "pool", "relu"),
    "added layer": inserted("relu", "pool", 0, "Sigmoid"),
    "added layer of the type before it": inserted("relu", "pool", 0, "ReLU"),
    "removed layer": removed("relu", "add", "pool", 0),
    "removed one of two equal layers": removed("right", "scaled", "both", 1),
    "tensor name": tensor_name("conv", "conv", "conv, other"),
    "rt_info": info("conv", "something"),
    "slices of a loop": slicing("part_size", "2"),
    "direction of a loop": slicing("stride", "-1"),
    "model name": _whole(lambda e: e.root.set("name", "net2"), ("model", "name", "", "model", "net2")),
}


def _found(difference: Difference) -> list[Change]:
    """Return the changes of a difference in the form of the table."""
    rows: list[Change] = [("model", c.kind, c.what, c.a, c.b) for c in difference.model]
    for layer in difference.layers:
        place = layer.a or layer.b
        assert place is not None
        if layer.status != "changed":
            rows.append((place.name, layer.status, "", None, None))
        rows += [(place.name, c.kind, c.what, c.a, c.b) for c in layer.changes]
    return rows


@pytest.mark.parametrize("name", EDITS)
def test_a_planted_edit_is_all_that_is_reported(base: Path, name: str, tmp_path: Path) -> None:
    edit, expected = EDITS[name]
    edited = Edited(base)
    edit(edited)
    edited.save(tmp_path / "edited.xml")
    scramble(tmp_path / "edited.xml", tmp_path / "b.xml", 7)
    for other in ("edited.xml", "b.xml"):
        assert sorted(_found(read(base, other=tmp_path / other, rt_info=True)), key=str) == sorted(expected, key=str)


def test_there_are_fifty_planted_edits() -> None:
    assert len(EDITS) >= 50


def test_a_default_makes_no_difference(base: Path, tmp_path: Path) -> None:
    edited = Edited(base)
    edited.layer("pool").find("data").set("rounding_type", "floor")  # the default of the specification
    edited.layer("conv").find("data").set("strides", "1, 1")
    edited.save(tmp_path / "b.xml")
    assert read(base, other=tmp_path / "b.xml").same


# ---------------------------------------------------------------------------------------------
# weights


def _constant(folder: Path, name: str, element_type: str, shape: str, data: bytes) -> Path:
    net = Net()
    net.result(net.const(element_type, shape, data, name="c"), name="r")
    return net.save(folder, name)


def test_figures_of_weights(tmp_path: Path) -> None:
    one = _constant(tmp_path, "a", "f32", "2,3", struct.pack("<6f", 1, 2, 4, -8, 0, float("nan")))
    other = _constant(tmp_path, "b", "f32", "2,3", struct.pack("<6f", 1, 2.5, 4, -10, -0.0, float("nan")))
    (change,) = read(one, other=other).layers[0].changes
    error = change.error
    assert error is not None
    assert (error.elements, error.different, error.share) == (6, 2, 2 / 6)
    assert (error.max_abs, error.max_rel, error.worst) == (2.0, 0.25, (1, 0))


def test_figures_of_integers_are_exact(tmp_path: Path) -> None:
    """The two values are the same as f64."""
    one = _constant(tmp_path, "a", "i64", "1", struct.pack("<q", 2**62))
    other = _constant(tmp_path, "b", "i64", "1", struct.pack("<q", 2**62 + 1))
    error = read(one, other=other).layers[0].changes[0].error
    assert error is not None
    assert (error.different, error.max_abs) == (1, 1.0)


def test_a_number_in_place_of_zero(tmp_path: Path) -> None:
    one = _constant(tmp_path, "a", "f32", "2", struct.pack("<2f", 0, 1))
    other = _constant(tmp_path, "b", "f32", "2", struct.pack("<2f", 0.5, float("inf")))
    difference = read(one, other=other)
    error = difference.layers[0].changes[0].error
    assert error is not None
    assert (error.max_abs, error.max_rel, error.worst) == (float("inf"), float("inf"), (1,))
    assert difference.record()["layers"][0]["changes"][0]["error"]["max_abs"] == "inf"
    json.dumps(difference.record(), allow_nan=False)


def test_weights_of_another_precision(tmp_path: Path) -> None:
    """A model compressed to f16 is compared with the original by value."""
    one = _constant(tmp_path, "a", "f32", "2", struct.pack("<2f", 1.0, 2049.0))
    other = _constant(tmp_path, "b", "f16", "2", struct.pack("<2e", 1.0, 2049.0))  # f16 has 2048 and 2050
    changes = {c.kind: c for c in read(one, other=other).layers[0].changes}
    assert set(changes) == {"precision", "weights"}
    assert changes["weights"].error is not None
    assert (changes["weights"].error.max_abs, changes["weights"].error.worst) == (1.0, (1,))


def test_text_in_place_of_numbers(tmp_path: Path) -> None:
    words = struct.pack("<4i", 2, 0, 1, 2) + b"ab"
    one = _constant(tmp_path, "a", "string", "2", words)
    other = _constant(tmp_path, "b", "f32", "2", bytes(8))
    assert [c.kind for c in read(one, other=other).layers[0].changes] == ["precision"]


def test_packed_types(tmp_path: Path) -> None:
    one = _constant(tmp_path, "a", "i4", "4", bytes([0x21, 0x43]))
    other = _constant(tmp_path, "b", "i4", "4", bytes([0x21, 0xF3]))
    error = read(one, other=other).layers[0].changes[0].error
    assert error is not None
    assert (error.different, error.max_abs, error.worst) == (1, 5.0, (3,))  # 4 and -1


def test_blocks(tmp_path: Path) -> None:
    """A constant of several blocks: differences in the first, in the last, and none between."""
    array = np.zeros(3 << 20, np.float32)
    one = _constant(tmp_path, "a", "f32", str(array.size), array.tobytes())
    array[[5, -1]] = 1, 3
    other = _constant(tmp_path, "b", "f32", str(array.size), array.tobytes())
    error = read(one, other=other).layers[0].changes[0].error
    assert error is not None
    assert (error.different, error.max_abs, error.worst) == (2, 3.0, (array.size - 1,))


def test_a_missing_bin(base: Path, tmp_path: Path) -> None:
    scramble(base, tmp_path / "b.xml", 1)
    (tmp_path / "b.bin").unlink()
    difference = read(base, other=tmp_path / "b.xml")
    assert difference.same
    assert difference.without_weights == (str(tmp_path / "b.xml"),)
    assert difference.uncompared == irrun.read_model(base).constants


def test_places(base: Path, tmp_path: Path) -> None:
    edited = Edited(base)
    edited.layer("then_add").set("name", "sum_up")
    edited.save(tmp_path / "b.xml")
    (layer,) = read(base, other=tmp_path / "b.xml").layers
    for place, path, name in ((layer.a, base, "then_add"), (layer.b, tmp_path / "b.xml", "sum_up")):
        assert place is not None
        assert place.inside == "choice/then_body"
        assert place.line is not None
        assert f'name="{name}"' in path.read_text().splitlines()[place.line - 1]
