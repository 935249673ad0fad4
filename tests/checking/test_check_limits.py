"""The limits of checks (docs/limits.md): results are exact up to a limit, and less exact beyond it; the defaults."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irrun
from checking.test_fix_errors import _misspelt
from checking.test_votes import found, parameter
from irrun import build as b
from irrun import diagnostics
from irrun.api import load
from irrun.checking import fix
from irrun.checking.faults import consequences, constants, votes
from irrun.cli import _inputs
from irrun.inference import propagate
from irrun.inference.layer import infer
from irrun.ir import parse, safe_xml
from irrun.model.weights import Weights
from irrun.opdef import Site, Value, values
from irrun.ops import _iteration, _rois, const
from irrun.planning import constants as planned
from irrun.types import PartialShape, shapes
from kit import operation
from nets import Net
from places import ROOT

PAGE = (ROOT / "docs/limits.md").read_text("utf-8")
DEFAULTS: list[tuple[str, Any, str]] = [
    ("elements nested in each other", safe_xml.MOST_DEEP, "256"),
    ("bytes of one tag, text or comment", safe_xml._MOST_LONG, "10,000,000"),
    ("axes of a tensor", shapes._MOST_AXES, "64"),
    ("characters of a message", diagnostics._MAX_MESSAGE_CHARS, "600"),
    ("seconds that a model from a pipe may wait", parse._PATIENCE, "5"),
    ("samples in a bin", _rois.MOST_SAMPLES, "2²⁰"),
    ("digits of a dim", _inputs._MAX_DIM_DIGITS, "18"),
    ("bytes that folding may add", planned._MAX_GROWTH, "8 times"),
    ("bytes that folding may add", planned._SMALL_BYTES, "1 MiB"),
    ("elements whose contents inference computes", values.CONTENTS_LIMIT, "4,096"),
    ("bytes of a packed constant", const._UNPACKED, "4 KiB"),
    ("elements of a constant that are searched", constants._MAX_SEARCHED_ELEMENTS, "16,384"),
    ("layers inferred again", consequences._MAX_INFERRED_LAYERS, "20,000"),
    ("inputs that consumers infer", votes._MAX_INFERRED_INPUTS, "100,000"),
    ("inferences of a body", _iteration._MOST_PASSES, "8"),
    ("different inputs for which a nested body", propagate._MOST_CALLS, "64"),
    ("rounds of `--fix`", fix._MAX_ROUNDS, "20"),
    ("rounds of `--fix`", fix._MAX_CHECKS, "200"),
    ("bytes that `--fix` checks", fix._MAX_CHECKED_BYTES, "16 MiB"),
    ("bytes that `--fix` checks", fix._MIN_CHECKS, "4 checks"),
]


@pytest.mark.parametrize(("row", "limit", "text"), DEFAULTS, ids=[f"{row}: {text}" for row, _, text in DEFAULTS])
def test_the_page_gives_the_limit_of_the_code(row: str, limit: float, text: str) -> None:
    (line,) = (line for line in PAGE.splitlines() if line.startswith(f"| {row}"))
    assert re.search(rf"(^|\W){re.escape(text)}(\W|$)", line)
    number = int(re.sub(r"\D", "", text.translate(str.maketrans("⁸", " "))) or 0)
    units = {"KiB": 1 << 10, "MiB": 1 << 20}
    assert limit == (2**20 if "²" in text else number * units.get(text[-3:], 1))


def _dims(node: b.Node) -> str:
    """Return the inferred dims of a node."""
    return str(b.model(node).results[0].inputs[0].shape)


@pytest.mark.parametrize(("count", "dims"), [(4096, "[7]"), (4097, "[?]")])
def test_contents(count: int, dims: str) -> None:
    numbers = b.Add(np.full(count, 6), np.ones(count, np.int64))
    assert _dims(b.Broadcast(np.float32(1), b.Gather(numbers, [0], 0))) == dims


@pytest.mark.parametrize(("size", "unpacked"), [(4096, True), (4097, False)])
def test_contents_of_a_packed_constant(size: int, unpacked: bool) -> None:
    weights = Weights(data=b"\xff" * size)
    op = operation("Const-1", {"element_type": "u1", "shape": f"{size * 8}", "offset": "0", "size": f"{size}"})
    (value,) = infer(op, Site(), [], {"weights": weights})
    assert (value.data is not None) == unpacked


@pytest.mark.parametrize(("place", "codes"), [(16_383, 1), (16_384, 0)])
def test_the_search_for_nan(place: int, codes: int, tmp_path: Path) -> None:
    elements = np.zeros(20_000, np.float32)
    elements[place] = np.nan
    irrun.save_model(b.model(b.Add(b.parameter([20_000]), elements)), tmp_path / "net.xml")
    assert len([d for d in irrun.check(tmp_path / "net.xml") if "NaN" in d.message]) == codes


@pytest.mark.parametrize(("most", "notes"), [(9, ["also affects 5 layers after it"]), (5, [])])
def test_consequences(most: int, notes: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consequences, "_MAX_INFERRED_LAYERS", most)
    net = Net()
    value = net.add("ReLU", [net.parameter("f32", "2")], [("FP32", "3")])
    for _ in range(4):
        value = net.add("ReLU", [value], [("FP32", "3")])
    net.result(value)
    (finding,) = irrun.check(net.save(tmp_path))
    assert [note for note in finding.notes if "affects" in note] == notes


@pytest.mark.parametrize(("most", "layer"), [(10, "x"), (0, "for")])
def test_votes(most: int, layer: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The consumer shows that the Parameter is wrong, unless it may not vote."""
    monkeypatch.setattr(votes, "_MAX_INFERRED_INPUTS", most)
    assert found(parameter("for"), tmp_path)[0][1] == layer


@pytest.mark.parametrize(("carried", "dims"), [(8, "[5]"), (9, "[?]")])
def test_passes_over_the_body_of_a_loop(carried: int, dims: str) -> None:
    """Each pass hands the changed shape on to one more value; another value keeps its shape."""
    first = [b.constant(np.zeros(1, np.float32)) for _ in range(carried)]
    kept, new = b.parameter([5]), b.constant(np.zeros(2, np.float32))

    def body(_: Any, kept: b.Node, *shifted: b.Node) -> tuple[Any, ...]:
        return (True, b.ReLU(kept), b.ReLU(new), *map(b.ReLU, shifted[:-1]))

    assert _dims(b.Loop(3, True, kept, *first, body=body)[0]) == dims


def test_calls_of_a_nested_body() -> None:
    model = b.model(b.ReLU(b.parameter([-1])))
    (parameter_,), (result,) = model.parameters, model.results
    body = propagate.InferredBody(model, propagate.Bodies())
    element_type = b.model(b.parameter([1])).parameters[0].outputs[0].type
    assert element_type is not None
    shapes_ = [body({parameter_.id: Value(element_type, PartialShape.of([n]))})[result.id].shape for n in range(65)]
    assert [str(shape) for shape in shapes_[:64]] == [f"[{n}]" for n in range(64)]
    assert shapes_[64].dims is None


def _checks(text: str, monkeypatch: pytest.MonkeyPatch, folder: Path) -> int:
    """Return how many checks ``fix`` makes of a model after the first."""
    made: list[int] = []
    check: Callable[..., Any] = fix.check
    monkeypatch.setattr(fix, "check", lambda parsed: made.append(1) or check(parsed))
    (folder / "net.xml").write_text(text)
    fix.fix(load(folder / "net.xml"), unsafe=True)
    return len(made) - 1


def _many_misspelt(count: int) -> str:
    """Return a model with attributes whose fixes all reveal an error, so that each is tried alone."""
    net = Net()
    x = net.parameter("f32", "2,3")
    for _ in range(count):
        net.result(net.add("SoftMax", [x], [("FP32", "2,3")], axiss="x"))
    return net.text


@pytest.mark.parametrize(
    ("name", "most", "checks"),
    [("_MAX_CHECKS", 200, 19), ("_MAX_CHECKS", 7, 7), ("_MAX_CHECKED_BYTES", 0, 4), ("_MAX_CHECKED_BYTES", None, 6)],
)
def test_checks_of_fixes(
    name: str, most: int | None, checks: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = _many_misspelt(10)
    monkeypatch.setattr(fix, name, 6 * len(text) if most is None else most)
    assert _checks(text, monkeypatch, tmp_path) == checks


def test_rounds_of_fixes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fix, "_MAX_ROUNDS", 0)
    assert _checks(_misspelt(), monkeypatch, tmp_path) == 0


def test_a_long_message_is_cut(tmp_path: Path) -> None:
    net = Net()
    net.result(net.parameter("f32", "2", name="n" * 10_000))
    net.layers[0] = net.layers[0].replace('element_type="f32"', 'element_type="f31"')
    (finding,) = irrun.check(net.save(tmp_path))
    assert 600 <= len(finding.message) <= 603
