"""irrun compare: sides, samples, tolerances, saved measurements, and the exit status."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from io import StringIO
from pathlib import Path
from shutil import copy
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from click.testing import Result
from rich.console import Console

import irrun
import warm
from irrun import build as b
from irrun import engines
from irrun.base.text import apart
from irrun.cli import _comparison
from irrun.debug import comparison
from irrun.engines import Engine, Limits, Side
from places import SAMPLES

RIGHT, WRONG = SAMPLES / "elementwise.xml", SAMPLES / "wrong_scale.xml"
INPUTS = ("-i", "a=ones:[1,3,4]", "-i", "b=[[0],[1],[2]]")


@pytest.fixture(scope="module")
def two() -> Iterator[list[Engine]]:
    """Return two processes of irrun: each takes about a second to start."""
    with engines.open("irrun", Limits(120)) as first, engines.open("irrun", Limits(120)) as second:
        yield [first, second]


@pytest.fixture(autouse=True)
def _running(two: list[Engine], monkeypatch: pytest.MonkeyPatch) -> None:
    """Let comparisons of two IR files that irrun runs use the processes that are running already."""
    start = comparison.open_all

    @contextmanager
    def opened(sides: Sequence[Side], limits: Limits, session: Path) -> Iterator[list[Engine]]:
        if {side.kind for side in sides} == {"irrun"}:
            yield two
            return
        with start(sides, limits, session) as engines:
            yield engines

    monkeypatch.setattr(comparison, "open_all", opened)


def _error(result: Result) -> str:
    assert result.exit_code == 2, result.output
    return result.stderr


def _shown(errors: Sequence[float]) -> list[str]:
    """The rows of the curve for layers named 0, 1, 2 … with these errors."""
    layers: Any = [
        SimpleNamespace(label=f"{number}", agrees=True, measurement=SimpleNamespace(error=error))
        for number, error in enumerate(errors)
    ]
    return [" ".join(map(str, row)) for row in _comparison._curve(layers)]


@pytest.mark.parametrize("count", [1, 23, 24, 25, 47, 48, 50, 100, 1000])
def test_the_rows_of_the_curve_share_the_layers(count: int) -> None:
    """At most 24 rows. Each shows the worst of as many layers as the others, or one more; together they are all."""
    last = [int(line.split()[0]) for line in _shown([1 + number for number in range(count)])]
    first = [int(line.split()[0]) for line in _shown([1 + count - number for number in range(count)])]
    assert len(first) == len(last) == min(count, 24)
    assert first == [0, *(end + 1 for end in last[:-1])]
    assert last[-1] == count - 1
    sizes = {end - start + 1 for start, end in zip(first, last)}
    assert max(sizes) - min(sizes) <= 1


def test_the_bars_of_the_curve_are_logarithmic() -> None:
    """A third of a bar for three powers of ten, none for 1e-9 and less, and a whole one for 1 and more."""
    errors = [0, 1e-12, 1e-9, 1e-6, 1e-3, 1, 5, float("inf")]
    assert [line.count("█") for line in _shown(errors)] == [0, 0, 0, 10, 20, 30, 30, 30]
    assert _shown([1e-3])[0].split()[:2] == ["0", "0.001"]


def test_sides_that_differ(call):
    result = call("compare", RIGHT, WRONG, *INPUTS)
    assert result.exit_code == 1
    assert 'differ: the first divergence is Multiply "multiply"' in result.stdout
    assert f"--> {WRONG}:31\n" in result.stdout
    assert 'input 1: Const "scale", line 23: error 0.11' in result.stdout
    assert "1 of 3 layer outputs differ" in result.stdout


def test_sides_that_agree(call):
    result = call("compare", RIGHT, f"exact:{RIGHT}", "--samples", "3", "--seed", "7")
    assert result.exit_code == 0
    assert result.stdout.endswith("agree: 1 output and 3 layer outputs, 3 samples\n")


def test_json(call):
    result = call("compare", RIGHT, WRONG, *INPUTS, "--format", "json")
    assert result.exit_code == 1
    fields = json.loads(result.stdout)
    assert list(fields) == [
        "version", "command", "verdict", "first", "outputs", "layers", "inputs", "properties", "processor", "unseen", "conduct",
        "content", "storage", "steps",
    ]  # fmt: skip
    assert (fields["verdict"], fields["first"]["layer"], fields["first"]["line"]) == ("differ", "multiply", 31)


def _scaled(folder: Path, name: str, scale: float, alpha: float = 1.0) -> Path:
    """Write ``clamp(elu(x) * weight)``, whose weight is the given one times ``scale``."""
    product = b.Multiply(
        b.Elu(b.parameter([4], name="x"), alpha=alpha, name="elu"),
        np.array([1, 2, 3, scale * 4], np.float32),
        name="product",
    )
    path = folder / f"{name}.xml"
    irrun.save_model(b.model({"y": b.Clamp(product, min=-1.0, max=1e9, name="clamp")}), path)
    return path


def test_files_that_differ_although_the_sides_agree(call, tmp_path):
    """The input hides both faults: the product with 0, and the parameter of Elu, which serves negative numbers."""
    good, bad = _scaled(tmp_path, "good", 1), _scaled(tmp_path, "bad", 2, alpha=3.0)
    for command in ("compare", "bisect"):
        result = call(command, good, bad, "-i", "x=[3,2,1,0]")
        assert result.exit_code == 0
        note = " ".join(result.stdout.split("note: ")[1].split())
        assert (
            note
            == f'the files differ in 1 constant and 1 other layer (first "elu"); `irrun diff {good} {bad}` shows them'
        )
        fields = json.loads(call(command, good, bad, "-i", "x=[3,2,1,0]", "--format", "json").stdout)
        assert fields["content"] == {"constants": 1, "layers": 1, "first": "elu", "reader": ""}


def test_files_that_do_not_differ_in_what_they_compute(call, tmp_path):
    """The same file, a file with other names, and a weight in f16 that holds the same numbers."""
    good = _scaled(tmp_path, "good", 1)
    named = tmp_path / "named.xml"
    named.write_text(good.read_text().replace('name="elu"', 'name="first"'))
    copy(good.with_suffix(".bin"), named.with_suffix(".bin"))
    half = tmp_path / "half.xml"
    weight = b.Convert(np.array([1, 2, 3, 4], np.float16), destination_type="f32")
    product = b.Multiply(b.Elu(b.parameter([4], name="x"), alpha=1.0, name="elu"), weight, name="product")
    irrun.save_model(b.model({"y": b.Clamp(product, min=-1.0, max=1e9, name="clamp")}), half)
    for other in (good, named, half):
        result = call("compare", good, other, "-i", "x=[3,2,1,0]")
        assert result.exit_code == 0
        assert "note" not in result.stdout


def test_what_is_said_of_a_wrong_layer(call, tmp_path):
    """No sentence contradicts another: tolerances that do not decide, and equal numbers, are not printed."""
    good, bad = _scaled(tmp_path, "good", 1), _scaled(tmp_path, "bad", 1 + 8e-6)
    lines = call("compare", good, bad, "-i", "x=[3,2,1,1]").stdout.splitlines()
    assert not [line for line in lines if "rtol" in line or "on equal inputs" in line]
    (own,) = [line for line in lines if "own error" in line]
    sentence = re.search(
        r"own error (\S+) of the root mean square on the inputs that the layer has read: (\S+) times what f32", own
    )
    assert sentence is not None
    error, times = sentence.groups()
    assert float(times) > 1
    assert float(error) == pytest.approx(32e-6 / np.sqrt((9 + 16 + 9 + 16) / 4), rel=0.1)
    lines = call("compare", good, bad, "-i", "x=[3,2,1,1]", "--rtol", "0", "--atol", "0").stdout.splitlines()
    assert any("(rtol 0, atol 0), worst at [3]" in line for line in lines)


def test_a_layer_with_another_attribute_passes_nothing_on(call, tmp_path):
    good, bad = _scaled(tmp_path, "good", 1), _scaled(tmp_path, "bad", 1, alpha=1.01)
    for options in ((), ("--rtol", "1e-6")):
        lines = call("compare", good, bad, "-i", "x=[-1,2,3,4]", *options).stdout.splitlines()
        assert any(line.endswith('the attribute alpha is "1.01", in the reference "1.0"') for line in lines)
        assert lines[-1].endswith("the layer differs between the files")


@pytest.mark.parametrize(
    ("pair", "texts"),
    [
        ((0.104, 0.101), ("0.104", "0.101")),
        ((0.2, 0.1), ("0.2", "0.1")),
        ((1.00004, 1), ("1.00004", "1")),
        ((1, 1), ("1", "1")),
    ],
)
def test_numbers_that_differ_read_differently(pair, texts):
    assert apart(*pair) == texts


def test_tolerances(call, tmp_path):
    (tmp_path / "limits.toml").write_text("rtol = 0.2\n")
    assert call("compare", RIGHT, WRONG, *INPUTS, "--tolerances", "limits.toml").exit_code == 0
    assert call("compare", RIGHT, WRONG, *INPUTS, "--rtol", "0.2").exit_code == 0
    assert call("compare", RIGHT, WRONG, *INPUTS, "--tolerances", "limits.toml", "--rtol", "0").exit_code == 1


def test_saved_measurements(call):
    assert call("compare", RIGHT, WRONG, *INPUTS, "--save", "saved.json").exit_code == 1
    assert call("compare", "--load", "saved.json").exit_code == 1
    assert call("compare", "--load", "saved.json", "--rtol", "0.2").exit_code == 0
    assert "there is no folder" in _error(call("compare", RIGHT, WRONG, "--save", "none/saved.json"))
    assert "leave out REFERENCE" in _error(call("compare", RIGHT, WRONG, "--load", "saved.json"))


def test_samples(call, tmp_path):
    """The second sample alone differs, however the samples are passed."""
    x = b.parameter([2], name="x")
    for name, most in (("right", 9.0), ("wrong", 1.0)):
        irrun.save_model(b.model({"y": b.Clamp(x, min=-5.0, max=most, name="clamp")}), tmp_path / f"{name}.xml")
    for folder in ("arrays", "archives"):
        (tmp_path / folder).mkdir()
    for number, value in enumerate((0.5, 3)):
        array = np.full(2, value, np.float32)
        np.save(tmp_path / "arrays" / f"{number}.npy", array)
        np.savez(tmp_path / "archives" / f"{number}.npz", x=array)
    sides = "right.xml", "wrong.xml"
    assert call("compare", *sides, "-i", "x=[0.5,0.5]").exit_code == 0
    ways = [
        ("-i", "x=[0.5,0.5]", "-i", "x=[3,3]"),
        ("-i", "x=arrays"),
        ("-i", "archives"),
        ("-i", "archives/0.npz", "-i", "archives/1.npz"),
    ]
    for way in ways:
        result = call("compare", *sides, *way)
        assert result.exit_code == 1
        assert "= sample 2 of 2" in result.stdout
    assert "has 2 values, but there are 3 samples" in _error(call("compare", *sides, "-i", "x=arrays", "--samples", 3))
    (tmp_path / "empty").mkdir()
    assert "holds no samples" in _error(call("compare", *sides, "-i", "empty"))


def test_a_comparator(call, tmp_path):
    (tmp_path / "compare.py").write_text("def signs(r, c, name): return bool(((r > 0) == (c > 0)).all())\n")
    assert call("compare", RIGHT, WRONG, *INPUTS, "--comparator", "compare.py:signs").exit_code == 0
    for text, said in (
        ("compare.py:none", "has no attribute 'none'"),
        ("none.py:signs", "no such file"),
        ("limits.toml:signs", "must end in .py"),
    ):
        error = _error(call("compare", RIGHT, WRONG, "--comparator", text))
        assert "IR705" in error
        assert said in error
    assert "is not FILE.py:FUNCTION" in _error(call("compare", RIGHT, WRONG, "--comparator", "signs"))


def test_only_outputs(call):
    result = call("compare", RIGHT, WRONG, *INPUTS, "--outputs-only")
    assert result.exit_code == 1
    assert 'differ: the outputs "out"' in result.stdout
    assert "no inner values were compared" in result.stdout


def test_a_difference_that_no_layer_shows(call, tmp_path):
    (tmp_path / "limits.toml").write_text('[layers]\n"*" = { rtol = 1 }\n')
    result = call("compare", RIGHT, WRONG, *INPUTS, "--tolerances", "limits.toml")
    assert result.exit_code == 1
    assert "the fault may vanish when inner values are observed" in result.stdout


def test_a_side_that_refuses(call, tmp_path):
    (tmp_path / "bad.xml").write_text(RIGHT.read_text().replace('type="Add"', 'type="Mystery"'))
    copy(RIGHT.with_suffix(".bin"), tmp_path / "bad.bin")
    result = call("compare", RIGHT, "bad.xml", *INPUTS)
    assert result.exit_code == 1
    assert "refused: the candidate refused while it loaded the model\n" in result.stdout
    assert "Mystery" in result.stdout


@pytest.mark.parametrize(
    ("sides", "code"),
    [
        (("none.xml", RIGHT), "IR000"),
        ((RIGHT, "none.npz"), "IR000"),
        ((RIGHT, f"openvno:{RIGHT}"), "IR701"),
        ((RIGHT, f"openvino[python=/no/such]:{RIGHT}"), "IR702"),
    ],
)
def test_sides_that_cannot_be_used(sides, code, call):
    error = _error(call("compare", *sides)).replace("cannot read", "error[IR000 unreadable]")
    assert f"error[{code}" in error


def test_usage(call):
    assert "pass REFERENCE and CANDIDATE" in _error(call("compare", RIGHT))
    assert 'the model has no input "z"' in _error(call("compare", RIGHT, WRONG, "-i", "z=1"))


def test_names_are_printable(call, tmp_path):
    x = b.parameter([2], name="x")
    for name, most in (("right", 9.0), ("wrong", 0.0)):
        model = b.model({"y": b.Clamp(x, min=-5.0, max=most, name="clamp\x9b31m\nforged")})
        irrun.save_model(model, tmp_path / f"{name}.xml")
    result = call("compare", "right.xml", "wrong.xml", "-i", "x=ones")
    assert result.exit_code == 1
    assert "\x9b" not in result.output
    assert "\nforged" not in result.output
    assert "clamp\\x9b31m\\nforged" in result.output


def test_nan_and_inf_are_counted(call, tmp_path):
    x = b.parameter([2], name="x")
    for name, low in (("right", 1.0), ("wrong", -1.0)):
        irrun.save_model(b.model({"y": b.Log(b.Add(x, low, name="shift"), name="log")}), tmp_path / f"{name}.xml")
    result = call("compare", "right.xml", "wrong.xml", "-i", "x=[0,2]")
    assert "0 and 1 nan" in result.stdout
    result = call("compare", "right.xml", "wrong.xml", "-i", "x=[0,2]", "--format", "json")
    assert json.loads(result.stdout)["outputs"][0]["nan"] == [0, 1]


@pytest.mark.parametrize("target", ["reference.xml", "reference.bin", "candidate.xml"])
def test_measurements_do_not_replace_a_model(target: str, call: Any, tmp_path: Path) -> None:
    for name in ("reference", "candidate"):
        irrun.save_model(b.model(b.Add(b.parameter([2], name="x"), [1.0, 2.0])), tmp_path / f"{name}.xml")
    before = (tmp_path / target).read_bytes()
    result = call("compare", "reference.xml", "exact:candidate.xml", "--save", target)
    assert result.exit_code == 2
    assert "choose another file" in result.stderr
    assert (tmp_path / target).read_bytes() == before


def test_weights_elsewhere(tmp_path: Path) -> None:
    """-w names the .bin of both sides, and the option ``weights`` that of one."""
    for name, scale in (("one", 1.0), ("two", 2.0)):
        irrun.save_model(
            b.model(b.Multiply(b.parameter([2], name="x"), np.full(2, scale, np.float32))), tmp_path / f"{name}.xml"
        )
    xml = tmp_path / "model.xml"
    copy(tmp_path / "one.xml", xml)
    one, two = tmp_path / "one.bin", tmp_path / "two.bin"
    assert _compare(xml, f"exact:{xml}", "-w", one) == "agree"
    assert _compare(f"irrun[weights={one}]:{xml}", f"exact[weights={two}]:{xml}") == "differ"
    assert _compare(xml, f"exact:{xml}") == "refused"


def test_operations_of_a_plugin(tmp_path: Path) -> None:
    """--plugin registers them in the processes of irrun, too."""
    plugin, xml = tmp_path / "double.py", tmp_path / "model.xml"
    plugin.write_text(
        'import irrun\n\n\n@irrun.op("Double", since=1)\nclass Double(irrun.Op):\n    """Double ``data``."""\n\n'
        '    inputs = irrun.ports(data="T")\n    types = {"T": "numeric"}\n\n    def infer(self, at, data):\n'
        "        return data.reshaped(data.shape)\n\n    def run(self, data):\n        return data + data\n"
    )
    irrun.save_model(b.model(b.ReLU(b.parameter([2], name="x"))), xml)
    xml.write_text(xml.read_text().replace('type="ReLU" version="opset1"', 'type="Double" version="extension"'))
    assert _compare(xml, f"exact:{xml}", "--plugin", plugin) == "agree"
    assert _compare(xml, f"exact:{xml}") == "refused"


def _compare(*arguments: object) -> str:
    """Return the verdict of a comparison whose engines are processes of its own."""
    command = [sys.executable, "-m", "irrun", "compare", *map(str, arguments), "--format", "json"]
    done = warm.run(command, capture_output=True, timeout=120, check=False)
    return json.loads(done.stdout)["verdict"]


def test_elements_outside_their_budgets_are_counted(call, tmp_path):
    """Nearly all elements in bf16 are outside a tolerance. One column of four is wrong."""
    x, weight = (np.random.default_rng(seed).standard_normal((8, 4)).astype(np.float32) for seed in (1, 2))
    files = []
    for name, factors in (("good", [1, 1, 1, 1]), ("bad", [1, 1, 3, 1])):
        product = b.MatMul(b.parameter([8, 4], name="x"), weight[:4] * np.array(factors, np.float32), name="product")
        files.append(tmp_path / f"{name}.xml")
        irrun.save_model(b.model({"y": b.Relu(product, name="relu")}), files[-1])
    np.save(tmp_path / "x.npy", x)
    result = call("compare", files[0], f"irrun[precision=bf16]:{files[1]}", "-i", f"x={tmp_path / 'x.npy'}")
    (row,) = [line for line in result.stdout.splitlines() if line.startswith("  product  MatMul")]
    assert row.endswith("25.00%")


def test_a_layer_that_moves_elements_rounds_nothing(call, tmp_path):
    files = []
    for number in (0, 1):
        picked = b.Gather(b.parameter([4], name="x"), np.array([2, number]), 0, name="picked")
        files.append(tmp_path / f"{number}.xml")
        irrun.save_model(b.model({"y": b.Relu(picked, name="relu")}), files[-1])
    output = call("compare", *files, "-i", "x=[3,2,1,0]").stdout
    assert "at [1]: this layer computes nothing that rounds" in output
    assert "times what" not in output


def test_accuracy_is_f32():
    """OpenVINO shows the precision "dynamic" if it keeps that of the model."""
    properties = {"INFERENCE_PRECISION_HINT": "dynamic", "EXECUTION_MODE_HINT": "ACCURACY"}
    printed = StringIO()
    found = replace(comparison.compare(str(RIGHT), str(WRONG)), properties=({}, properties))
    _comparison.show(Console(file=printed, width=200), found)
    text = printed.getvalue()
    assert "irrun computes in f32, as ACCURACY asks" in text
    assert "is the default" not in text
    assert "times what f32 explains" in text
