"""Runs of the suite: a crash, a hang or too much memory is the result of one case, and the run goes on."""

from __future__ import annotations

import json
import re
import sys
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path

import pytest

from irrun.conformance import Case, Run, harness, read_run, run, starter
from irrun.diagnostics import EngineError, ReadError
from irrun.engines import Engine, Limits
from recorded import suite

pytestmark = pytest.mark.processes

FAULTY = """
import os, sys, time
from irrun.engines.harnesses import irrun as own, serve

class Harness(own.Harness):
    def load(self, path, inner):
        self.text = open(path, encoding="utf-8").read()
        if "SoftSign" in self.text:
            os.abort()
        if '"Erf"' in self.text:
            raise RuntimeError("Erf is not supported")
        if '"Mish"' in self.text:
            return {"inputs": [], "outputs": []}
        return super().load(path, inner)

    def infer(self, feeds, taps, show):
        outputs = super().infer(feeds, taps, show)
        if '"Sinh"' in self.text:
            time.sleep(600)
        if '"Cosh"' in self.text:
            hoard = [bytearray(b"x" * (1 << 24)) for _ in range(200)]
            time.sleep(600)
        if '"Tan"' in self.text:
            sys.exit(3)
        if '"Acosh"' in self.text:
            os.write(replies, b"what is this\\n")
        if '"Asinh"' in self.text:
            return [(type, (*shape, 1), data) for type, shape, data in outputs]
        if '"Atanh"' in self.text:
            return [("i8", (len(data),), data) for type, shape, data in outputs]
        if '"Selu"' in self.text:
            return outputs * 2
        if '"Abs"' in self.text:
            return [(type, shape, b"\\1" * len(data)) for type, shape, data in outputs]
        return outputs

pipe, replies = os.fdopen(os.dup(0), "rb"), os.dup(1)
os.dup2(2, 1)
serve.Server(serve.Requests(pipe, lambda: os._exit(1)), os.fdopen(os.dup(replies), "wb"), Harness).serve()
os._exit(0)
"""
"""A harness of irrun with ten planted faults, each in another operation, and one that refuses."""

TOUCHED = {
    "SoftSign-9": "crash", "Erf-1": "refusal", "Mish-4": "refusal", "Sinh-1": "timeout", "Cosh-1": "crash",
    "Tan-1": "crash", "Acosh-4": "crash", "Asinh-4": "values", "Atanh-4": "values", "Selu-1": "crash",
    "Abs-1": "values",
}  # fmt: skip
"""The operations that the faults touch, each with the outcome of its cases."""


def _first(operation: str, count: int = 1) -> list[Case]:
    cases = [case for case in suite().cases if case.operation == operation and case.verdict == "values"]
    return [case for case in cases if any(step.outputs[0]["shape"] and case.rtol for step in case.steps)][:count]


@pytest.fixture
def faulty(tmp_path: Path) -> list[str]:
    """Return the command of the harness with faults."""
    file = tmp_path / "faulty.py"
    file.write_text(FAULTY)
    return [sys.executable, str(file)]


def test_a_faulty_harness_loses_exactly_the_cases_that_its_faults_touch(faulty: list[str], tmp_path: Path) -> None:
    """Around each touched case is one that is not."""
    well = [case for operation in ("Add-1", "Tile-1", "Sigmoid-1", "ReLU-1") for case in _first(operation, 3)]
    cases = []
    for number, operation in enumerate(TOUCHED):
        cases += [well[number % len(well)]] if number < len(well) else []
        cases += _first(operation)
    limits = Limits(seconds=12, memory=1 << 29)
    started: list[Limits] = []

    def start(limits: Limits) -> AbstractContextManager[Engine]:
        started.append(limits)
        return harness(faulty, limits)

    found = run(suite(), cases, start, tmp_path / "results", limits=limits, jobs=2)
    assert started == [limits, limits]
    assert len(found.results) == len(cases)
    lost = {result.name.split("/")[0]: result.outcome for result in found.results.values() if result.status == "failed"}
    assert lost == TOUCHED
    assert found.count("passed") == len(cases) - len(TOUCHED)
    details = {result.name.split("/")[0]: result.detail for result in found.results.values()}
    assert details["Sinh-1"] == "no answer within 12 s"
    # in bytes, if the case is ended less than a tenth of a MiB above the limit
    assert re.search(r"more than the (512\.0 MiB|536,870,912 bytes) that --max-memory allows", details["Cosh-1"])
    assert details["SoftSign-9"].startswith("it was ended by SIGABRT")
    assert details["Tan-1"] == "it ended with status 3"
    assert details["Acosh-4"].startswith("it broke the protocol")


def _run(target: Path, cases: list[Case], seen: list[str], *, stop_after: int | None = None) -> Run:
    def on_result(result: object, done: int, total: int) -> None:
        seen.append(result.name)  # type: ignore[attr-defined]
        if len(seen) == stop_after:
            raise KeyboardInterrupt

    return run(suite(), cases, starter("exact"), target, limits=Limits(120), on_result=on_result)


def test_an_interrupted_run_goes_on(tmp_path: Path) -> None:
    target, cases, seen = tmp_path / "results", _first("Add-1", 6), list[str]()
    with pytest.raises(KeyboardInterrupt):
        _run(target, cases, seen, stop_after=2)
    with target.open("ab") as file:
        file.write(b'{"name": "Add-1/mod')  # what a killed process leaves
    assert _run(target, cases, seen).count("passed") == 6
    assert seen == [case.name for case in cases]
    assert _run(target, cases, seen).count("passed") == 6
    assert len(seen) == 6
    with pytest.raises(ReadError, match="has the results of irrun"):
        _run(target, cases[:3], seen)
    head, *lines = target.read_text().splitlines()
    assert json.loads(head)["version"] == 1
    assert len(lines) == 6


def test_results_of_unchanged_cases_outlast_a_change_of_the_suite(tmp_path: Path) -> None:
    """Another note changes no judgement; another tolerance does."""
    target, cases, seen = tmp_path / "results", _first("Add-1", 4), list[str]()
    _run(target, cases, seen)
    new = [*cases[:1], replace(cases[1], note="new"), replace(cases[2], rtol=0.5), *_first("Tile-1")]
    changed = replace(suite(), cases=new)
    found = run(changed, new, starter("exact"), target, limits=Limits(120), on_result=lambda r, *_: seen.append(r.name))
    assert seen == [case.name for case in (*cases, *new[2:])]
    assert (found.suite, found.cases, found.count("passed")) == (changed.digest, 4, 4)
    assert set(read_run(target).results) == {case.name for case in new}
    few = replace(suite(), cases=new[:1])
    with pytest.raises(ReadError, match="for other cases"):
        run(few, new[:1], starter("exact"), target, limits=Limits(120))
    assert len(read_run(target).results) == 4


def test_as_many_other_cases_are_another_run(tmp_path: Path) -> None:
    """Their results would be counted with those in the file: 4 of 2 cases passed."""
    target, seen = tmp_path / "results", list[str]()
    _run(target, _first("Add-1", 2), seen)
    before = target.read_bytes()
    with pytest.raises(ReadError, match="for other cases; pass another file"):
        _run(target, _first("Tile-1", 2), seen)
    assert target.read_bytes() == before
    assert _run(target, _first("Add-1", 2), seen).count("passed") == 2


@pytest.mark.parametrize("text", ["", "no json", '{"format": "OpenVINO IR conformance results", "version": 7}\n'])
def test_another_file_is_not_written_to(text: str, tmp_path: Path) -> None:
    target = tmp_path / "results"
    target.write_text(text + "x")
    with pytest.raises(ReadError, match="cannot use the results"):
        _run(target, _first("Add-1"), [])
    assert target.read_text() == text + "x"


def test_a_harness_that_does_not_start_is_one_error(tmp_path: Path) -> None:
    commands = [["/no/such/program"], [sys.executable, "-c", "raise SystemExit(4)"]]
    for command in commands:
        with pytest.raises(EngineError, match="the harness does not start"):
            run(
                suite(), _first("Add-1"), lambda limits, c=command: harness(c, limits), tmp_path / "r",
                limits=Limits(20),
            )  # fmt: skip
        assert not (tmp_path / "r").exists()
