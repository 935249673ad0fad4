"""``irrun extract``: stand-alone parts of a model."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import irrun
from irrun import build as b
from irrun.cli import cli
from nets import Net
from oracle import Oracle
from places import SAMPLES

CONVNET = SAMPLES / "convnet.xml"


@pytest.fixture
def image() -> np.ndarray:
    return np.load(CONVNET.parent / "image.npy")


def test_a_part_gives_what_it_gave_in_the_whole(tmp_path: Path, image: np.ndarray, oracle: Oracle) -> None:
    whole = irrun.read_model(CONVNET)
    taps = irrun.compile(whole)(image, taps=["block1/pool", "block2/relu"]).taps
    out = tmp_path / "part.xml"
    irrun.save_model(irrun.extract(whole, "block2/conv", "block2/relu"), out, compact=True)
    assert not irrun.check(out).diagnostics
    part = irrun.read_model(out)
    assert [p.name for p in part.parameters] == ["block1/pool"]
    assert [l.name for l in part.layers.values() if l.type == "Const"] == ["block2/weights", "block2/bias"]
    feed = {"block1/pool": taps["block1/pool"]}
    outputs = irrun.run(part, feed, strict=True)
    np.testing.assert_array_equal(outputs["block2/relu"], taps["block2/relu"])
    (want,) = oracle(out, list(feed.values()))
    np.testing.assert_allclose(outputs[0], want, rtol=1e-5, atol=1e-5)
    constants = [int(l.attributes["size"]) for l in part.layers.values() if l.type == "Const"]
    assert out.with_suffix(".bin").stat().st_size <= sum(constants) + 64 * len(constants)


@pytest.mark.parametrize(
    ("begin", "end", "inputs", "outputs"),
    [
        ((), "block1/relu", ["image"], ["block1/relu"]),
        ("logits", (), ["flatten"], ["out"]),
        ("block2/*", "block2/pool", ["block1/pool"], ["block2/pool"]),
        ((), ["block1/relu", "block2/relu"], ["image"], ["block1/relu", "block2/relu"]),
        ("image", "out", ["image"], ["out"]),
        ((), (), ["image"], ["out"]),
    ],
    ids=str,
)
def test_where_it_begins_and_ends(begin: str, end: str | list[str], inputs: list[str], outputs: list[str]) -> None:
    part = irrun.extract(irrun.read_model(CONVNET), begin, end)
    assert [p.name for p in part.parameters] == inputs
    assert [part.result_name(r) for r in part.results] == outputs
    assert not irrun.check(part).diagnostics


def _branches() -> irrun.Model:
    x, y = b.parameter([2, None], name="x"), b.parameter([2, 1], name="y")
    left, right = b.Split(b.Concat(x, y, axis=1), 0, num_splits=2, name="split")
    total = b.Add(b.ReLU(left, name="relu"), right, name="sum")
    shape = b.Concat(b.ShapeOf(b.constant(np.zeros((3, 4)), name="zeros"), name="shape"), [1], axis=0, name="dims")
    product = b.ReduceProd(b.Convert(shape, destination_type="f32"), [0], name="product")
    return b.model({"total": b.Multiply(total, product)})


def test_what_comes_from_the_side_becomes_an_input() -> None:
    part = irrun.extract(_branches(), "relu", "sum")
    assert [p.name for p in part.parameters] == ["split", "split:3"]
    assert [p.attributes["shape"] for p in part.parameters] == ["1,1..", "1,1.."]
    ones = np.ones((1, 3), np.float32)
    assert irrun.run(part, {"split": -ones, "split:3": ones})["sum"].tolist() == [[1, 1, 1]]


def test_what_follows_from_constants_comes_along() -> None:
    part = irrun.extract(_branches(), "sum")
    assert [p.name for p in part.parameters] == ["relu", "split:3"]
    assert {"zeros", "shape", "dims", "product"} <= {l.name for l in part.layers.values()}
    ones = np.ones((1, 2), np.float32)
    assert irrun.run(part, [ones, ones])["total"].tolist() == [[24, 24]]


def test_bodies_and_state_come_along() -> None:
    x = b.parameter([1, 2], name="x")
    held = b.ReadValue([[0.0, 0.0]], variable_id="v", variable_type="f32", variable_shape=[1, 2], name="held")
    total = b.Add(held, x, name="total")
    loop = b.Loop(2, True, b.ReLU(total, name="relu"), body=lambda i, a: (True, b.Add(a, [[1.0, 2.0]])), name="loop")
    whole = b.model({"y": b.Negative(loop)}, sinks=[b.Assign(total, variable_id="v", name="assign")])
    executable = irrun.compile(irrun.extract(whole, (), "loop"))
    ones = np.ones((1, 2), np.float32)
    assert [executable(ones)["loop"].tolist() for _ in range(2)] == [[[3, 5]], [[4, 6]]]


def test_what_is_declared_stands_in_where_nothing_is_inferred(tmp_path: Path) -> None:
    out = tmp_path / "unknown.xml"
    irrun.save_model(b.model(b.ReLU(b.ReLU(b.parameter([2, 3], name="x"), name="first"), name="second")), out)
    out.write_text(out.read_text().replace('name="first" type="ReLU"', 'name="first" type="Mystery"'))
    part = irrun.extract(irrun.read_model(out), "second")
    assert irrun.run(part, -np.ones((2, 3), np.float32))["second"].shape == (2, 3)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--from", "block2/rel"], 'no layer is called "block2/rel"'),
        (["--to", "nothing*"], 'no layer is called "nothing*"'),
        (["--from", "block2/relu", "--to", "block1/relu"], 'from ReLU "block2/relu" to a layer where the part ends'),
        (
            ["--from", "block2/relu", "--to", "out", "--to", "flat_shape"],
            'to Const "flat_shape" from a layer where the part begins',
        ),
    ],
)
def test_errors(arguments: list[str], message: str, tmp_path: Path) -> None:
    result = CliRunner().invoke(cli, ["extract", str(CONVNET), *arguments, "-o", str(tmp_path / "out.xml")])
    assert result.exit_code == 2
    assert message in result.output
    assert "IR606" in result.output
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("attributes", "code"),
    [
        (f'offset="0" size="{(1 << 63) - 1}"', "IR502"),
        ('offset="-5" size="4"', "IR502"),
        ('offset="4294967296" size="4"', "IR502"),
        ('size="4"', "IR202"),
        ('offset="x" size="4"', "IR203"),
    ],
)
def test_a_constant_outside_the_weights_is_refused_before_anything_is_written(
    attributes: str, code: str, tmp_path: Path
) -> None:
    path, out = tmp_path / "whole.xml", tmp_path / "part.xml"
    irrun.save_model(b.model(b.Add(b.parameter([1], name="x"), [1.0], name="sum")), path)
    path.write_text(re.sub(r'offset="\d+" size="\d+"', attributes, path.read_text()))
    files = sorted(tmp_path.iterdir())
    result = CliRunner().invoke(cli, ["extract", str(path), "-o", str(out)])
    assert (result.exit_code, code in result.output) == (1, True), result.output
    assert sorted(tmp_path.iterdir()) == files


def test_command(tmp_path: Path) -> None:
    out = tmp_path / "out.xml"
    arguments = ["extract", str(CONVNET), "--from", "block2/conv", "--to", "block2/*", "-o", str(out)]
    result = CliRunner().invoke(cli, arguments)
    assert result.exit_code == 0
    assert result.output.endswith("inputs block1/pool; outputs block2/conv, block2/add, block2/relu, block2/pool\n")
    result = CliRunner().invoke(cli, [*arguments[:5], "block2/add", "-o", str(out)])
    assert result.exit_code == 0
    assert result.output == f"wrote {out}: 6 layers; inputs block1/pool; outputs block2/add\n"
    assert not irrun.check(out).diagnostics
    assert CliRunner().invoke(cli, [*arguments[:-1], "out.bin"]).exit_code == 2


# ---------------------------------------------------------------------------------------------
# files that contradict themselves


def _with(text: str, old: str, new: str) -> str:
    assert old in text
    return text.replace(old, new, 1)


@pytest.mark.parametrize(
    ("data", "code"),
    [
        ('element_type="f32" shape="2" size="8"', "IR"),
        ('element_type="f32" shape="2" offset="0"', "IR"),
        ('element_type="f32" shape="2" offset="0x" size="8"', "IR"),
        (f'element_type="f32" shape="2" offset="{"9" * 5000}" size="8"', "IR"),
        ('element_type="f32" shape="2" offset="-5" size="8"', "IR502"),
        ('element_type="f32" shape="2" offset="0" size="-8"', "IR502"),
        (f'element_type="f32" shape="2" offset="0" size="{2**63 - 1}"', "IR502"),
    ],
    ids=["no-offset", "no-size", "no-number", "long-number", "negative-offset", "negative-size", "endless"],
)
def test_a_constant_that_cannot_be_copied(data: str, code: str, tmp_path: Path) -> None:
    net = Net()
    net.result(net.add("ReLU", [net.const("f32", "2", bytes(8))], [("FP32", "2")]))
    path = net.save(tmp_path)
    text = path.read_text()
    old = text[text.index("<data") + 6 : text.index("/>")]
    path.write_text(_with(text, old, data))
    result = CliRunner().invoke(cli, ["extract", str(path), "-o", str(tmp_path / "part.xml")])
    assert (result.exit_code, f"error[{code}" in result.stderr) == (1, True)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["net.bin", "net.xml"]


@pytest.mark.parametrize("place", ["</net>", "</layer>"])
@pytest.mark.parametrize("content", ['<a:b x="1"/>', '<b a:x="1"/>', '<b xmlns:a="" a:x="1"/>'])
def test_a_prefix_that_is_not_bound(content: str, place: str, tmp_path: Path) -> None:
    net = Net()
    net.result(net.add("ReLU", [net.parameter("f32", "2", name="x")], [("FP32", "2")]))
    path = net.save(tmp_path)
    path.write_text(_with(path.read_text(), place, f"<rt_info>{content}</rt_info>{place}"))
    irrun.save_model(irrun.extract(irrun.read_model(path)), tmp_path / "part.xml")
    assert not irrun.check(tmp_path / "part.xml").diagnostics
    assert "<rt_info><" in (tmp_path / "part.xml").read_text()


@pytest.mark.parametrize("begin", [(), "second"])
def test_an_unknown_rank(begin: str, tmp_path: Path) -> None:
    net = Net()
    first = net.add("ReLU", [net.parameter("f32", "...", name="x")], [("FP32", "")], name="first")
    net.result(net.add("ReLU", [first], [("FP32", "")], name="second"))
    part = irrun.extract(irrun.read_model(net.save(tmp_path)), begin)
    assert part.parameters[0].attributes["shape"] == "..."
