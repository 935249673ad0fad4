"""The writer: what is read, written and read again is the same, for irrun as for OpenVINO."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from lxml import etree  # pyright: ignore[reportAttributeAccessIssue]

import irrun
from irrun.ir import write
from irrun.model import Model, Port
from irrun.model.weights import Weights, pack
from irrun.running.generate import draw
from irrun.types import ELEMENT_TYPES
from nets import Net
from oracle import Oracle
from places import INVALID, ROOT

VALID = sorted(p for p in (ROOT / "samples").rglob("*.xml"))


def _readable(path: Path) -> bool:
    try:
        model = irrun.read_model(path)
    except irrun.IrrunError:
        return False
    return not model.is_fragment and (model.weights is not None or not model.constants)


FILES = [*VALID, *filter(_readable, sorted(INVALID.glob("*.xml")))]


def told(model: Model) -> Any:
    """All that a model says, without the places where it stands in its file."""
    return (
        model.name,
        model.version,
        [
            (
                (l.id, l.name, l.type, l.version, dict(l.attributes), l.back_edges, l.output_names),
                ([_port(p) for p in l.inputs], [_port(p) for p in l.outputs]),
                (dict(l.maps), {tag: told(body) for tag, body in l.bodies.items()}),
            )
            for l in model.layers.values()
        ],
        [(e.from_layer, e.from_port, e.to_layer, e.to_port) for e in model.edges],
        dict(model.feeds),
    )


def _port(port: Port) -> tuple[Any, ...]:
    return (port.id, port.type, None if port.shape is None else str(port.shape), port.names)


def _kept(path: Path) -> list[bytes]:
    """What irrun gives no meaning."""
    root = etree.parse(path).getroot()
    return [etree.tostring(e, method="c14n", with_tail=False) for e in root.iter("rt_info", "meta_data", "statistics")]


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_round_trip(path: Path, tmp_path: Path) -> None:
    model = irrun.read_model(path)
    out = tmp_path / path.name
    irrun.save_model(model, out)
    again = irrun.read_model(out)
    assert told(again) == told(model)
    assert _kept(out) == _kept(path)
    if model.weights is not None:
        assert out.with_suffix(".bin").read_bytes() == path.with_suffix(".bin").read_bytes()
    mended = ("IR010", "IR407")  # a missing name or version, a dim "?": what is written has them right
    before, after = (sorted((d.code, d.message) for d in irrun.check(p) if d.code not in mended) for p in (path, out))
    assert after == before
    once = out.read_bytes()
    irrun.save_model(again, out)  # over itself
    assert out.read_bytes() == once


@pytest.mark.parametrize("path", VALID, ids=lambda p: p.stem)
def test_openvino_gives_the_same(path: Path, tmp_path: Path, oracle: Oracle) -> None:
    model = irrun.read_model(path)
    irrun.save_model(model, tmp_path / "out.xml")
    drawn = draw(model)
    feeds = [drawn[i] for i in range(len(model.parameters))]
    for before, after in zip(oracle(path, feeds), oracle(tmp_path / "out.xml", feeds), strict=True):
        np.testing.assert_array_equal(before, after)


# ---------------------------------------------------------------------------------------------
# what irrun gives no meaning

ODD = """<?xml version="1.0" encoding="utf-16"?>
<!-- made by hand -->
<net name="a &lt;&quot;b&quot;&gt; &amp; c" version="11" flavour="odd">
	<layers>
		<layer id="3" name="tab&#9;line&#10;é" type="Parameter" version="opset1" friendly="yes">
			<data shape="1,?,2..8" element_type="f32"/>
			<rt_info><attribute name="old" version="0" value="[ &lt;x&gt; ]"/></rt_info>
			<output>
				<port id="0" precision="f32" names="a\\,b,c" layout="NCH">
					<dim>1</dim><dim>-1</dim><dim>-1</dim>
					<rt_info><attribute name="layout" version="0" layout="[N,C,H]"/></rt_info>
				</port>
			</output>
		</layer>
		<layer id="7" name="r" type="Result" version="opset1" output_names="out,o\\,2">
			<input><port id="0" precision="FP32"><dim>1</dim><dim>-1</dim><dim>-1</dim></port></input>
		</layer>
	</layers>
	<edges><edge from-layer="3" from-port="0" to-layer="7" to-port="0"/></edges>
	<meta_data><MO_version value="2022"/><cli_parameters><input value="x"/></cli_parameters></meta_data>
	<rt_info><model_info><labels value="a b"/></model_info></rt_info>
</net>
"""


def test_all_that_stands_beside_the_model_is_kept(tmp_path: Path) -> None:
    path, out = tmp_path / "odd.xml", tmp_path / "out.xml"
    path.write_bytes(ODD.encode("utf-16"))
    model = irrun.read_model(path)
    irrun.save_model(model, out)
    assert told(irrun.read_model(out)) == told(model)
    assert irrun.read_model(out).parameters[0].outputs[0].names == ("a,b", "c")
    assert model.name == 'a <"b"> & c'
    assert len(_kept(out)) == 4
    assert _kept(out) == _kept(path)
    root = etree.parse(out).getroot()
    assert root.get("flavour") == "odd"
    assert root.find("layers/layer").get("friendly") == "yes"
    port = root.find("layers/layer/output/port")
    assert (port.get("layout"), port.get("precision")) == ("NCH", "f32")
    assert b'name="tab&#9;line&#10;\xc3\xa9"' in out.read_bytes()


def test_version_10_stays_version_10(tmp_path: Path) -> None:
    net = Net(version=10)
    net.result(net.add("ReLU", [net.parameter("f16", "2")], [("FP16", "2")]))
    irrun.save_model(irrun.read_model(net.save(tmp_path)), tmp_path / "out.xml")
    assert irrun.read_model(tmp_path / "out.xml").version == 10


def test_tags_in_capitals(tmp_path: Path) -> None:
    path = tmp_path / "net.xml"
    path.write_text(ODD.replace("utf-16", "utf-8").replace("<dim>", "<DIM>").replace("</dim>", "</DIM>"))
    irrun.save_model(irrun.read_model(path), tmp_path / "out.xml")
    assert told(irrun.read_model(tmp_path / "out.xml")) == told(irrun.read_model(path))


# ---------------------------------------------------------------------------------------------
# weights


@pytest.mark.parametrize("name", [n for n, t in ELEMENT_TYPES.items() if t.kind != "dynamic"])
@pytest.mark.parametrize("count", [0, 1, 3, 8, 13])
def test_what_is_packed_is_read_back(name: str, count: int) -> None:
    element_type = ELEMENT_TYPES[name]
    numbers = np.arange(count) % 2 if name in ("u1", "nf4") else np.arange(count) % 2 + 1
    array = numbers.astype(np.str_ if name == "string" else element_type.dtype)
    raw = pack(array, element_type)
    np.testing.assert_array_equal(Weights(data=raw).tensor(0, len(raw), element_type, (count,)), array)


def _shared(folder: Path) -> Path:
    """Two constants of one place, one that overlaps, gaps, and types below a byte."""
    net = Net()
    net.bin += b"gap!"
    data = np.arange(8, dtype=np.float32).tobytes()
    net.result(net.const("f32", "8", data))
    net.result(net.const("f32", "8", data, offset=4))
    net.result(net.const("f32", "2", data[:8], offset=12))
    net.bin += b"another gap"
    net.result(net.const("u4", "3", b"\x21\xf3"))  # with bits that no element has
    net.result(net.const("string", "2", pack(np.array(["é", ""]), ELEMENT_TYPES["string"])))
    net.bin += b"the end"
    return net.save(folder)


@pytest.mark.parametrize("compact", [False, True])
def test_offsets(compact: bool, tmp_path: Path) -> None:
    path, out = _shared(tmp_path), tmp_path / "out.xml"
    irrun.save_model(irrun.read_model(path), out, compact=compact)
    raw = out.with_suffix(".bin").read_bytes()
    offsets = [int(l.attributes["offset"]) for l in irrun.read_model(out).layers.values() if write.is_constant(l)]
    if compact:
        assert b"gap" not in raw + b"end"[3:]
        assert (offsets[0], offsets[1], offsets[2]) == (0, 0, 8)
        assert raw[offsets[3] : offsets[3] + 2] == b"\x21\xf3"
    else:
        assert raw == path.with_suffix(".bin").read_bytes()
    for before, after in zip(irrun.run(path).arrays, irrun.run(out).arrays, strict=True):
        np.testing.assert_array_equal(before, after)


def test_weights_elsewhere(tmp_path: Path) -> None:
    out = tmp_path / "out.xml"
    irrun.save_model(irrun.read_model(ROOT / "samples" / "convnet.xml"), out, tmp_path / "other.weights")
    assert not out.with_suffix(".bin").exists()
    assert irrun.read_model(out, tmp_path / "other.weights").weights is not None
    with pytest.raises(ValueError, match="cannot hold both"):
        irrun.save_model(irrun.read_model(out, tmp_path / "other.weights"), out, out)


def test_weights_that_are_not_there(tmp_path: Path) -> None:
    path = _shared(tmp_path)
    path.with_suffix(".bin").unlink()
    with pytest.raises(irrun.ModelError, match="IR501"):
        irrun.save_model(irrun.read_model(path), tmp_path / "out.xml")
    assert [p.name for p in tmp_path.iterdir()] == ["net.xml"]


def test_nothing_is_left_half_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "out.xml"
    model = irrun.read_model(ROOT / "samples" / "convnet.xml")
    irrun.save_model(model, out)
    before = {p.name: p.read_bytes() for p in tmp_path.iterdir()}

    def full(self: Path, target: Path) -> Path:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as m:
        m.setattr(Path, "replace", full)
        with pytest.raises(irrun.WriteError, match="no space left on device; free some space"):
            irrun.save_model(model, out)
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == before
    with pytest.raises(irrun.WriteError, match=r"IR011.*no such file or directory; create the folder"):
        irrun.save_model(model, tmp_path / "nowhere" / "out.xml")
