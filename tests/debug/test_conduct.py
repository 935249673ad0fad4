"""Sides that give other outputs for the same inputs: from run to run, after the first run, or unless they are watched."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import irrun
from irrun import build as b
from irrun import engines
from irrun.debug import Comparison, Tolerances, compare
from irrun.debug.measurements import apply_tolerances, read_measurements, write_measurements
from irrun.debug.results import record
from irrun.engines import ChildEngine

HARNESSES = Path(engines.__file__).parent / "harnesses"
ODD = """import importlib.util
import numpy as np
spec = importlib.util.spec_from_file_location("right", {path!r})
right = importlib.util.module_from_spec(spec)
spec.loader.exec_module(right)


class Harness(right.Harness):
    runs = 0

    def load(self, path, inner):
        self.runs = 0
        return {{**super().load(path, inner), "neutral": False}}

    def infer(self, feeds, taps, show):
        self.runs += 1
        odd = {{"random": self.runs, "first": self.runs == 1, "unwatched": not taps, "always": 1, "never": 0}}[{kind!r}]

        def moved(wire):
            type, shape, contents = wire
            return type, shape, (np.frombuffer(bytes(contents), np.float32) + np.float32(odd)).view(np.uint8)

        def changed(layer, port, wire, *more):
            show(layer, port, moved(wire) if layer == "tanh" and {kind!r} == "random" else wire, *more)

        return [moved(wire) for wire in super().infer(feeds, taps, changed)]
"""


@pytest.fixture
def model(tmp_path: Path) -> Path:
    x = b.parameter([2, 4], name="x")
    irrun.save_model(b.model({"y": b.Abs(b.Tanh(b.ReLU(x, name="relu"), name="tanh"), name="abs")}), tmp_path / "m.xml")
    return tmp_path / "m.xml"


@pytest.fixture
def odd(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ChildEngine]:
    harness = tmp_path / "odd.py"
    harness.write_text(ODD.format(path=str(HARNESSES / "irrun.py"), kind=request.param), "utf-8")
    engine = ChildEngine([sys.executable, str(HARNESSES / "serve.py"), str(harness)])
    yield engine
    engine.release()


def _compared(model: Path, odd: ChildEngine, role: str) -> Comparison:
    sides = ("onnx", "irrun") if role == "reference" else ("irrun", "onnx")  # the kind says who must be asked again
    with engines.open("irrun") as right:
        pair = (odd, right) if role == "reference" else (right, odd)
        return compare(f"{sides[0]}:{model}", f"{sides[1]}:{model}", running=pair)


@pytest.mark.parametrize("role", ["reference", "candidate"])
@pytest.mark.parametrize(
    ("odd", "kind", "layer"),
    [("random", "not deterministic", "tanh"), ("first", "changes with repetition", "")],
    indirect=["odd"],
)
def test_runs_that_change(odd: ChildEngine, kind: str, layer: str, role: str, model: Path, tmp_path: Path) -> None:
    comparison = _compared(model, odd, role)
    assert comparison.verdict == "differ"
    assert record(comparison)["conduct"] == {"side": role, "kind": kind, "layer": layer}
    write_measurements(comparison, tmp_path / "m.json")
    assert apply_tolerances(read_measurements(tmp_path / "m.json"), Tolerances()).conduct == comparison.conduct


@pytest.mark.parametrize("odd", ["unwatched"], indirect=True)
def test_a_fault_that_vanishes_when_it_is_watched(odd: ChildEngine, model: Path) -> None:
    comparison = _compared(model, odd, "candidate")
    assert (comparison.verdict, comparison.first) == ("differ", None)
    assert record(comparison)["conduct"] == {"side": "candidate", "kind": "vanishes when observed", "layer": ""}


@pytest.mark.parametrize(("odd", "verdict"), [("always", "differ"), ("never", "agree")], indirect=["odd"])
def test_nothing_is_odd(odd: ChildEngine, verdict: str, model: Path) -> None:
    comparison = _compared(model, odd, "reference")
    assert comparison.verdict == verdict
    assert comparison.conduct is None or comparison.conduct.kind == "vanishes when observed"
