"""Bisection of faults planted in a copy of a model, whose outputs alone are looked at."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import irrun
import warm
from irrun import build as b
from irrun import surgery
from irrun.cli import cli
from irrun.debug import Bisection, Tolerances, bisect, compare, write_reproduction
from irrun.debug.bisection import anonymized
from irrun.debug.tolerances import Limit
from irrun.engines import parse_side
from irrun.model import Model
from places import DEPARTURES

_RNG = np.random.default_rng(0)


def weights(*shape: int) -> np.ndarray:
    return _RNG.normal(0, 0.3, shape).astype(np.float32)


def chain() -> Model:
    """Two branches of several layers that meet again."""
    x = b.parameter([1, 8], "f32", name="x")
    left = b.Tanh(b.Add(b.MatMul(x, weights(8, 8), name="m1"), weights(1, 8), name="a1"), name="t1")
    right = b.Sigmoid(b.MatMul(x, weights(8, 8), name="m2"), name="s2")
    joined = b.Multiply(left, right, name="joined")
    return b.model(b.SoftMax(b.Add(joined, weights(1, 8), name="a3"), axis=1, name="y"))


def loop() -> Model:
    """A TensorIterator over 5 slices, whose body adds each slice to a state."""
    x = b.ReLU(b.parameter([1, 5, 8], "f32", name="x"), name="positive")

    def body(part: b.Node, state: b.Node) -> Any:
        mixed = b.MatMul(b.Squeeze(part, [1], name="slice"), weights(8, 8), name="mixed")
        total = b.Add(mixed, b.MatMul(state, weights(8, 8), name="carried"), name="total")
        after = b.Tanh(total, name="after")
        return after, b.concatenated(b.Unsqueeze(after, [1], name="seq"), axis=1)

    iterator = b.TensorIterator(b.sliced(x, axis=1), np.zeros((1, 8), np.float32), body=body, name="loop")
    return b.model(b.SoftMax(iterator[1], axis=2, name="y"))


def planted(model: Model, folder: Path, *changes: tuple[str, str]) -> tuple[str, str]:
    """Save a model, and a copy of its files in which patterns are replaced. Return both paths."""
    good, bad = folder / "good.xml", folder / "bad.xml"
    irrun.save_model(model, good)
    text = good.read_text()
    for old, new in changes:
        assert len(re.findall(old, text)) == 1, old
        text = re.sub(old, new, text)
    bad.write_text(text)
    bad.with_suffix(".bin").write_bytes(good.with_suffix(".bin").read_bytes())
    return str(good), str(bad)


def names(bisection: Bisection) -> list[str]:
    return [layer.name for layer in bisection.layers]


@pytest.mark.parametrize(
    ("old", "new", "layer"),
    [
        ('name="t1" type="Tanh"', 'name="t1" type="Sigmoid"', "t1"),
        ('name="joined" type="Multiply"', 'name="joined" type="Subtract"', "joined"),
        ('name="s2" type="Sigmoid"', 'name="s2" type="Tanh"', "s2"),
        (r'name="y" type="SoftMax" version="opset\d+"', 'name="y" type="LogSoftmax" version="opset5"', "y"),
    ],
)
def test_a_changed_layer(old: str, new: str, layer: str, tmp_path: Path) -> None:
    good, bad = planted(chain(), tmp_path, (old, new))
    bisection = bisect(good, bad)
    assert (bisection.verdict, names(bisection)) == ("differ", [layer])
    assert bisection.runs < 20
    lines = Path(bad).read_text().splitlines()
    assert f'name="{layer}"' in lines[bisection.layers[0].line - 1]


def test_sides_that_agree(tmp_path: Path) -> None:
    good, bad = planted(chain(), tmp_path)
    bisection = bisect(good, f"exact:{bad}")
    assert (bisection.verdict, bisection.layers, bisection.runs, bisection.part) == ("agree", (), 1, None)


def test_one_weight(tmp_path: Path) -> None:
    good, bad = planted(chain(), tmp_path)
    model = irrun.read_model(good)
    (matrix,) = [feeds[1][0] for id, feeds in model.feeds.items() if model.layers[id].name == "m2" and feeds[1]]
    data = bytearray(Path(good).with_suffix(".bin").read_bytes())
    start = int(model.layers[matrix].attributes["offset"])
    data[start : start + 4] = np.float32(9).tobytes()
    Path(bad).with_suffix(".bin").write_bytes(data)
    assert names(bisect(good, bad)) == ["m2"]


@pytest.mark.parametrize(
    ("old", "new", "layer"),
    [
        ('name="after" type="Tanh"', 'name="after" type="Sigmoid"', "loop/after"),
        ('name="total" type="Add"', 'name="total" type="Subtract"', "loop/total"),  # right in the first iteration
        ('name="positive" type="ReLU"', 'name="positive" type="Sigmoid"', "positive"),
    ],
)
def test_around_and_inside_a_body(old: str, new: str, layer: str, tmp_path: Path) -> None:
    good, bad = planted(loop(), tmp_path, (old, new))
    assert names(bisect(good, bad)) == [layer]


def test_a_fault_that_the_second_sample_shows(tmp_path: Path) -> None:
    """The variable is assigned a wrong value, so that the first output is right: tolerances need a second sample."""
    x = b.parameter([1, 4], "f32", name="x")
    state = b.ReadValue(np.zeros((1, 4), np.float32), variable_id="s", variable_type="f32", variable_shape=[1, 4])
    kept = b.Multiply(b.Add(state, x, name="sum"), weights(1, 4), name="kept")
    model = b.model(b.Add(b.Tanh(state), x, name="y"), sinks=[b.Assign(kept, variable_id="s")])
    good, bad = planted(model, tmp_path, ('name="kept" type="Multiply"', 'name="kept" type="Add"'))
    sample = {"x": np.ones((1, 4), np.float32)}
    tolerances = Tolerances().overridden(Limit(1e-4))
    assert bisect(good, bad, [sample], tolerances=tolerances).verdict == "agree"
    assert names(bisect(good, bad, [sample] * 3, tolerances=tolerances)) == ["kept"]
    assert names(bisect(good, bad, [sample])) == ["kept"]


def test_an_error_that_the_outputs_hide(tmp_path: Path) -> None:
    """The output is within its tolerance. The layer is named by its own error, and no part alone shows it."""
    x = b.parameter([4, 16], "f32", name="x")
    y = b.Add(b.MatMul(x, weights(16, 8), name="product"), np.full(8, 1e4, np.float32), name="y")
    good, bad = str(tmp_path / "good.xml"), str(tmp_path / "bad.xml")
    irrun.save_model(b.model(y), good)
    irrun.save_model(irrun.read_model(good), bad)
    model = irrun.read_model(good)
    (matrix,) = [feeds[1][0] for id, feeds in model.feeds.items() if model.layers[id].name == "product" and feeds[1]]
    data = bytearray(Path(good).with_suffix(".bin").read_bytes())
    start = int(model.layers[matrix].attributes["offset"])
    data[start : start + 4] = (np.frombuffer(data, np.float32, 1, start) * np.float32(1.002)).tobytes()
    Path(bad).with_suffix(".bin").write_bytes(data)
    assert bisect(good, bad, tolerances=Tolerances().overridden(Limit(1e-4))).verdict == "agree"
    found = bisect(good, bad)
    assert names(found) == ["product"]
    assert found.wrong is not None
    assert "what the precision explains" in found.wrong.message


def test_a_fault_behind_a_variable(tmp_path: Path) -> None:
    """The layers between a variable, which begins with a constant, and an output are no constants."""
    x = b.parameter([1, 4], "f32", name="x")
    state = b.ReadValue(np.zeros((1, 4), np.float32), variable_id="s", variable_type="f32", variable_shape=[1, 4])
    recalled = b.Multiply(b.Sigmoid(state, name="gate"), weights(1, 4), name="scaled")
    model = b.model(b.Add(recalled, x, name="y"), sinks=[b.Assign(b.Add(state, x, name="kept"), variable_id="s")])
    good, bad = planted(model, tmp_path, ('name="scaled" type="Multiply"', 'name="scaled" type="Add"'))
    sample = {"x": np.ones((1, 4), np.float32)}
    assert names(bisect(good, bad, [sample, sample])) == ["scaled"]


@pytest.mark.openvino
def test_a_fault_in_a_fused_region_and_its_reproduction(tmp_path: Path) -> None:
    """OpenVINO fuses a MatMul and an Add whose bias has one axis more, and loses that axis. Apart, both are right."""
    x = b.parameter(["?", 8], "f32", name="x")
    before = b.Tanh(b.MatMul(x, weights(8, 8), name="m1"), name="t1")
    fused = b.Add(b.MatMul(before, weights(8, 8), name="m2"), weights(1, 1, 8), name="bias")
    good, _ = planted(b.model(b.Sigmoid(fused, name="y")), tmp_path)
    side = parse_side(f"openvino[precision=f32]:{good}")
    bisection = bisect(good, side, {"x": weights(1, 8)})
    assert names(bisection) == ["m2", "bias"]
    assert bisection.wrong is not None
    assert bisection.wrong.message == "the shape is [1, 8], that of the reference [1, 1, 8]"
    anonymous, has_new_numbers = anonymized(bisection, side, Tolerances())
    assert has_new_numbers
    for number, published in enumerate((bisection, anonymous)):
        folder = tmp_path / str(number)
        write_reproduction(published, side, folder, 1e-4, 1e-5)
        script = warm.run([sys.executable, folder / "reproduce.py"], capture_output=True, text=True, check=False)
        assert (script.returncode, "has shape [1, 8], not [1, 1, 8]" in script.stdout) == (1, True), script
        text = (folder / "model.xml").read_text() + (folder / "issue.md").read_text()
        assert ("bias" in text) == (number == 0)


@pytest.mark.openvino
def test_a_candidate_that_crashes(tmp_path: Path) -> None:
    """Col2Im without its optional attributes ends OpenVINO's process, also among other layers."""
    departure = irrun.read_model(DEPARTURES / "col2im_defaults.xml")
    (crashing,) = (layer for layer in departure.layers.values() if layer.type == "Col2Im")
    edited = surgery.merge(departure, b.model({"z": b.Tanh(b.parameter("?,?,?", name="out"), name="after")}))
    irrun.save_model(edited, tmp_path / "model.xml")
    bisection = bisect(str(tmp_path / "model.xml"), f"openvino[precision=f32]:{tmp_path / 'model.xml'}")
    assert (bisection.verdict, names(bisection)) == ("crashed", [crashing.name])
    write_reproduction(bisection, parse_side("openvino[precision=f32]:model.xml"), tmp_path / "alone", 1e-4, 1e-5)
    script = warm.run([sys.executable, tmp_path / "alone" / "reproduce.py"], capture_output=True, check=False)
    assert script.returncode not in (0, 1)


def test_a_candidate_that_refuses(tmp_path: Path) -> None:
    good, bad = planted(chain(), tmp_path, ('name="a3" type="Add"', 'name="a3" type="Addition"'))
    bisection = bisect(good, bad)
    assert (bisection.verdict, names(bisection)) == ("refused", ["a3"])


def test_an_anonymous_refusal(tmp_path: Path) -> None:
    """The message of the engine names layers, too: it is that of the part with new names."""
    good, bad = planted(chain(), tmp_path, ('name="a3" type="Add"', 'name="a3" type="Addition"'))
    bisection = bisect(good, bad)
    anonymous, _ = anonymized(bisection, parse_side(bad), Tolerances())
    write_reproduction(anonymous, parse_side(bad), tmp_path / "published", 1e-4, 1e-5)
    assert anonymous.wrong is not None
    assert "Addition" in anonymous.wrong.message
    for file in ("issue.md", "model.xml"):
        text = (tmp_path / "published" / file).read_text()
        assert not re.search(r"\ba3\b|joined|bad\.xml", text), text


def call(*arguments: str) -> Any:
    return CliRunner().invoke(cli, ["bisect", *arguments])


def recorded(arguments: Sequence[str]) -> tuple[int, Any]:
    """Return the exit status of the command, and its JSON."""
    result = call(*arguments, "--format", "json")
    return result.exit_code, json.loads(result.stdout)


def test_the_command(tmp_path: Path) -> None:
    good, bad = planted(chain(), tmp_path, ('name="t1" type="Tanh"', 'name="t1" type="Sigmoid"'))
    folder = str(tmp_path / "fault")
    status, record = recorded([good, bad, "-o", folder])
    assert (status, record["verdict"]) == (1, "differ")
    assert [(layer["name"], layer["type"]) for layer in record["layers"]] == [("t1", "Sigmoid")]
    script = warm.run([sys.executable, tmp_path / "fault/reproduce.py"], capture_output=True, check=False)
    assert script.returncode == 1
    assert recorded([good, good])[0] == 0
    for arguments, text in (
        ([good, bad, "-o", folder], "choose another"),
        ([good, bad, "--anonymize"], "with -o"),
        ([good, "ort:model.onnx"], "IR701"),
        ([good, str(tmp_path / "none.xml")], "IR000"),
    ):
        result = call(*arguments)
        assert (result.exit_code, text in result.stderr) == (2, True), result.stderr


def test_a_fault_of_the_file_is_no_issue_of_the_engine(tmp_path: Path) -> None:
    x = b.parameter([1, 8], "f32", name="x")
    branches = [b.Tanh(x, name="t"), b.Sigmoid(x, name="s")]
    good, bad, folder = (str(tmp_path / name) for name in ("good.xml", "bad.xml", "fault"))
    irrun.save_model(b.model({"y": b.Subtract(*branches, name="sub")}), good)
    irrun.save_model(b.model({"y": b.Subtract(*reversed(branches), name="sub")}), bad)
    result = call(good, bad, "-o", folder)
    assert result.stdout.splitlines()[-3:] == [
        'input 0 reads "s", in the reference "t"',
        'input 1 reads "t", in the reference "s"',
        "the layer differs between the files",
    ]
    assert "wrote no issue.md: the files of both sides differ" in result.stderr
    assert {path.name for path in Path(folder).iterdir()} >= {"model.xml", "reproduce.py"}
    assert not (Path(folder) / "issue.md").exists()


def test_nothing_is_written_and_why(tmp_path: Path) -> None:
    """The layer alone is right within the tolerances of a part: its own error decides."""
    x = b.parameter([4, 16], "f32", name="x")
    good, bad, folder = (str(tmp_path / name) for name in ("good.xml", "bad.xml", "fault"))
    matrix = weights(16, 8)
    for path, factor in ((good, 1), (bad, 1 + 2e-5)):
        irrun.save_model(b.model({"y": b.MatMul(x, matrix * np.float32(factor), name="product")}), path)
    result = call(good, bad, "-o", folder)
    assert (result.exit_code, Path(folder).exists()) == (1, False)
    assert "times what the precision explains" in result.stdout
    assert result.stdout.splitlines()[-1].startswith("run on its own, on the values of the reference")
    assert f"wrote nothing to {folder}: run on its own" in result.stderr.replace("\n", " ")
    assert "wrote nothing" in call(good, good, "-o", folder).stderr


def test_a_dump_as_the_reference(tmp_path: Path) -> None:
    """A dump has no outputs: they are compared with the values of the layers that compute them."""
    good, bad = planted(chain(), tmp_path, ('type="Sigmoid"', 'type="Tanh"'))
    x = np.linspace(-1, 1, 8, dtype=np.float32).reshape(1, 8)
    with irrun.Dump(tmp_path / "dump") as dump:
        irrun.compile(irrun.read_model(good))([x], hooks=[dump])
    side = str(tmp_path / "dump")
    assert bisect(side, good, {"x": x}).verdict == "agree"
    assert names(bisect(side, bad, {"x": x})) == ["s2"]


def test_a_dump_of_another_model(tmp_path: Path) -> None:
    """No verdict rests on nothing: no output of this model has a value in the dump."""
    planted(chain(), tmp_path)
    with irrun.Dump(tmp_path / "dump") as dump:
        irrun.compile(irrun.read_model(tmp_path / "good.xml"))([np.zeros((1, 8), np.float32)], hooks=[dump])
    x = b.parameter([2], "f32", name="x")
    other = b.model(b.Exp(b.Log(x, name="a"), name="other"))
    irrun.save_model(other, tmp_path / "other.xml")
    with pytest.raises(irrun.EngineError, match="nothing can be compared"):
        bisect(str(tmp_path / "dump"), str(tmp_path / "other.xml"))


def test_no_samples(tmp_path: Path) -> None:
    good, _ = planted(chain(), tmp_path)
    for judge in (bisect, compare):
        with pytest.raises(irrun.EngineError, match="nothing"):
            judge(good, good, [])


def test_names_that_a_converter_has_changed(tmp_path: Path) -> None:
    """The layers have other names in the copy, and are paired by structure."""
    renames = [
        (rf'name="{name}"', f'name="{number}"') for number, name in enumerate(("m1", "a1", "m2", "s2", "a3"), 100)
    ]
    changes = [*renames, ('name="t1" type="Tanh"', 'name="110" type="Tanh"')]
    changes.append(('name="joined" type="Multiply"', 'name="111" type="Subtract"'))
    good, bad = planted(chain(), tmp_path, *changes)
    first = compare(good, bad).first
    assert first is not None
    assert first.layer.type == "Multiply" or first.layer.type == "Subtract"
    assert names(bisect(good, bad)) == ["111"]
