"""The conformance suite: irrun passes it, the tables of the tests give it, and it covers every version and clause."""

from __future__ import annotations

import json
import lzma
import subprocess
import sys
import traceback
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import irrun
import kit
import recorded
import tables
from conformance import export, internal, rows
from conformance.coverage import PAGE, holes, page
from conformance.in_process import InProcess
from irrun.base.source import Source
from irrun.checking.checker import check
from irrun.conformance import Case, Step, Suite, judge
from irrun.conformance.judging import difference, judged
from irrun.conformance.suite import SUITE, Operation, read_suite, tensor_record, to_record, write_suite
from irrun.diagnostics import Diagnostic, ReadError
from irrun.engines import Refusal
from irrun.ir.parse import Parsed, parse
from irrun.model.weights import Weights
from oracle import Oracle
from places import ROOT
from recorded import suite

PARTS = 32
"""Tests of equal length into which the suite is divided, so that several processes share it."""

EARLIER = {"c4-output-not-mapped": "IR104"}
"""Cases that irrun's reader refuses before the operation sees them, with the code that it names."""


@pytest.mark.parametrize("part", range(PARTS))
def test_irrun_passes_every_case(part: int) -> None:
    """With the default plan, and every fourth case with the defining kernels, too. A model is read once, from memory.

    A model that OpenVINO has built also gives no finding. A case that breaks a clause is refused because of it, when
    the model is read or when it runs.
    """
    cases = suite().cases[part::PARTS]
    _assert_passes((case, (False,) if number % 4 else (False, True)) for number, case in enumerate(cases))


def test_irrun_passes_the_internal_suite() -> None:
    """The file is what the tables give, and irrun passes each case, refusals for their clause."""
    found, given = read_suite("internal"), internal.suite()
    assert (found.operations, [case.name for case in found.cases]) == (
        given.operations,
        [case.name for case in given.cases],
    )
    for old, new in zip(found.cases, given.cases):
        assert (old.xml, old.bin, old.clause, old.steps[0].inputs) == (
            new.xml,
            new.bin,
            new.clause,
            new.steps[0].inputs,
        )
        for mine, other in zip(old.steps[0].expected(), new.steps[0].expected(), strict=True):
            assert not difference(mine, other, 1e-6, 1e-6)  # numpy rounds differently from machine to machine
    assert {case.verdict for case in found.cases} == {"values", "refuse"}
    assert {case.operation for case in found.cases} == {*found.operations}
    _assert_passes((case, (False, True)) for case in found.cases)


@pytest.mark.parametrize("type", ["GatedDeltaNet", "SelectiveSSM", "PagedGatedDeltaNet", "PagedSelectiveSSM"])
def test_openvino_gives_the_internal_values(ov: Any, type: str) -> None:
    """The types that OpenVINO 2026.4.1 reads from a file, after its CPU plugin is loaded, which declares them."""
    core = ov.Core()
    core.get_property("CPU", "FULL_DEVICE_NAME")
    cases = [case for case in read_suite("internal").cases if case.name.startswith(f"{type}-1/values/")]
    assert len(cases) == 4
    for case in cases:
        model = core.read_model(case.xml.encode(), case.bin)
        found = core.compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})(case.steps[0].feeds())
        for mine, expected in zip(found.values(), case.steps[0].expected(), strict=True):
            assert not difference(mine, expected, case.rtol, case.atol)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_the_defining_kernels_pass_the_other_cases(part: int) -> None:
    cases = suite().cases[part::PARTS]
    _assert_passes((case, (True,)) for number, case in enumerate(cases) if number % 4)


def _assert_passes(cases: Iterable[tuple[Case, Sequence[bool]]]) -> None:
    failed: list[str] = []
    for case, modes in cases:
        try:
            failed += [f"{case.name}{wrong}" for wrong in _wrong(case, modes)]
        except Exception:  # a bug, which keeps no other case from being judged
            failed.append(f"{case.name}: {traceback.format_exc()}")
    assert not failed, "\n".join(failed)


def _wrong(case: Case, modes: Sequence[bool]) -> Iterator[str]:
    """Yield what irrun does wrong in a case, with its default plan (False) or with the defining kernels (True)."""
    text = _Text(case)
    if case.verdict == "open" and any(step.seen for step in case.steps):  # irrun still gives what was seen
        case = replace(case, verdict="values", steps=[replace(step, outputs=step.seen) for step in case.steps])
    for exact in modes:
        mode = "exact" if exact else "default"
        engine = InProcess(exact=exact, read=text.read)
        status, _, detail = judged(case, engine, Path("model.xml"))
        if status not in ("passed", "recorded"):
            yield f", {mode}: {detail}"
        elif case.verdict == "refuse" and _reason(case) not in engine.message.lower():
            yield f", {mode}: refused, but not because of {_reason(case)}: {engine.message}"
    if "/model/" in case.name:
        yield from (f": {finding}" for finding in text.findings())


class _Text:
    """The text of a case, which is parsed once."""

    def __init__(self, case: Case) -> None:
        self.parsed: Parsed | ReadError
        try:
            self.parsed = parse(Source("model.xml", case.xml.encode()), Weights(data=case.bin))
        except ReadError as error:
            self.parsed = error

    def read(self, _: Any) -> irrun.Model:
        """Return the model, or raise the error of ``irrun.read_model``."""
        if isinstance(self.parsed, ReadError):
            raise self.parsed
        return self.parsed.runnable()

    def findings(self) -> Sequence[Diagnostic]:
        """Return what ``irrun.check`` reports of the model."""
        return self.parsed.diagnostics if isinstance(self.parsed, ReadError) else check(self.parsed).diagnostics


def _reason(case: Case) -> str:
    """Return what the message of a refusal names, in lower case: the clause or the code, empty if any reason will do."""
    named = f"{case.operation} {case.clause}" if case.clause.startswith("C") else case.clause
    return EARLIER.get(case.name.split("/")[-1], named).lower()


@pytest.mark.parametrize("exact", [False, True], ids=["default", "exact"])
def test_a_model_in_files_is_judged_alike(exact: bool, tmp_path: Path) -> None:
    """A sample is written to files, as other engines get it."""
    engine = InProcess(exact=exact)
    for case in suite().cases[::120]:
        assert judge(case, engine, tmp_path).status in ("passed", "recorded"), case.name


def test_the_tables_still_give_these_cases(ov: Any) -> None:
    """A sample of the tables, one file of twenty; `python -m tools export_suite` writes the suite anew."""
    made = {case.name: to_record(case) for case in export.cases(export.files()[::20])}
    assert made == {case.name: to_record(case) for case in suite().cases if case.name in made}


def test_other_tables_still_give_their_cases() -> None:
    made = {case.name: to_record(case) for case in export.others()}
    assert made == {case.name: to_record(case) for case in suite().cases if case.name in made}


@pytest.mark.slow
def test_the_suite_is_what_the_tables_give(ov: Any) -> None:
    made, names = export.suite()
    assert names == json.loads(recorded.FILE.read_text("utf-8"))
    assert [to_record(case) for case in made.cases] == [to_record(case) for case in suite().cases]
    assert (made.operations, made.rules) == (suite().operations, suite().rules)


def _still_answers(oracle: Oracle, rows: Sequence[kit.Case]) -> None:
    """Hold OpenVINO's answers against those in the suite."""
    for row in rows:
        stored = recorded.answer(row)
        assert stored is not None, row.id
        for got, want in zip(kit.ask(row, oracle), stored, strict=True):
            kit.compare(got, want, row)


def _rows() -> list[kit.Case]:
    return [row for row in tables.cases() if row.expected is None and recorded.is_recorded(row)]


def test_openvino_still_gives_these_answers(oracle: Oracle) -> None:
    """A sample of the rows; the lane ``slow`` asks for all of them."""
    _still_answers(oracle, _rows()[::60])


@pytest.mark.slow
def test_openvino_still_gives_all_answers(oracle: Oracle) -> None:
    _still_answers(oracle, _rows())


def test_the_page_of_coverage_is_that_of_the_suite() -> None:
    assert PAGE.read_text("utf-8") == page(suite())


def test_every_version_has_values_and_every_clause_a_case() -> None:
    """Unless the page is silent about the clause, or leaves all values open."""
    found = [row for row in holes(suite()) if row[1].startswith(("clauses", "values"))]
    assert not [row for row in found if row[2] not in ("silent", "undefined")]


def test_every_value_names_a_source() -> None:
    """None of them is irrun alone."""
    for case in suite().cases:
        assert case.source.startswith(("computed in numpy", "by hand", "the specification", "OpenVINO")), case.source


def test_python_alone_reads_the_file() -> None:
    """Neither irrun nor numpy is needed: JSON lines behind xz."""
    with lzma.open(SUITE, "rt", encoding="ascii") as file:
        head, first = json.loads(next(file)), json.loads(next(file))
    assert head["cases"] == len(suite().cases)
    assert first["name"] == suite().cases[0].name
    assert first["xml"].startswith("<?xml")


# ---------------------------------------------------------------------------------------------
# the file


def _small() -> Suite:
    step = Step([tensor_record(np.array([1.5], np.float32))], [tensor_record(np.array(["a"], object))], reset=True)
    case = Case("A-1/x", "A-1", "static", "values", "by hand", "<net/>", b"\0\1", "C1", ["f32"], [step], 0.5, 0.25)
    return Suite({"A-1": Operation("a/a-1", ["f32"], {"C1": "A sentence."})}, {}, [case])


def test_what_is_written_is_read(tmp_path: Path) -> None:
    write_suite(_small(), tmp_path / "suite")
    small = read_suite(tmp_path / "suite")
    assert small == _small()
    assert small.demand(small.cases[0]) == "A sentence."
    assert small.cases[0].steps[0].feeds()[0].tolist() == [1.5]
    assert small.cases[0].steps[0].expected()[0].tolist() == ["a"]


def test_the_same_cases_give_the_same_bytes(tmp_path: Path) -> None:
    """Also in another process, where sets and dicts may have another order."""
    write_suite(_small(), tmp_path / "here")
    code = (
        "import sys; sys.path[:0] = ['tests', 'tests/help']; from conformance.test_suite import _small, write_suite; "
    )
    subprocess.run(
        [sys.executable, "-c", f"{code}write_suite(_small(), sys.argv[1])", str(tmp_path / "there")],
        check=True, cwd=ROOT,
    )  # fmt: skip
    assert (tmp_path / "here").read_bytes() == (tmp_path / "there").read_bytes()


@pytest.mark.parametrize("damage", ["cut", "text", "version", "verdict", "missing", "count"])
def test_a_damaged_file_is_one_error(damage: str, tmp_path: Path) -> None:
    path = tmp_path / "suite"
    write_suite(_small(), path)
    lines = lzma.decompress(path.read_bytes())
    changed = {
        "cut": path.read_bytes()[:-20],
        "text": b"no suite",
        "version": lzma.compress(lines.replace(b'"version":2', b'"version":9')),
        "verdict": lzma.compress(lines.replace(b'"values"', b'"perhaps"')),
        "count": lzma.compress(lines.splitlines(keepends=True)[0]),
    }
    if damage == "missing":
        path.unlink()
    else:
        path.write_bytes(changed[damage])
    with pytest.raises(ReadError, match="cannot read the suite") as caught:
        read_suite(path)
    assert caught.value.diagnostics[0].file == str(path)


# ---------------------------------------------------------------------------------------------
# judging


def _values(want: Any, **fields: Any) -> Case:
    """Return a case whose model gives its input back, and whose output must be ``want``."""
    case = next(case for case in suite().cases if case.name == "Parameter-1/composed/f32-dims")
    inputs = [tensor_record(np.array([[1, np.nan], [np.inf, 4]], np.float32))]
    return replace(case, steps=[Step(inputs, [tensor_record(np.asarray(want))])], **fields)


_SAME = np.array([[1, np.nan], [np.inf, 4]], np.float32)


@pytest.mark.parametrize(
    ("want", "detail"),
    [
        (_SAME, ""),
        (_SAME.astype(np.float64), "f32 instead of f64"),
        (_SAME[:1], "shape [2, 2] instead of [1, 2]"),
        (np.array([[1, 1], [np.inf, 4]], np.float32), "1 of 4 elements differ, first [0, 1]: nan instead of 1.0"),
        (
            np.array([[1, np.nan], [-np.inf, 4]], np.float32),
            "1 of 4 elements differ, first [1, 0]: inf instead of -inf",
        ),
        (np.array([[1, np.nan], [9, 4]], np.float32), "1 of 4 elements differ, first [1, 0]: inf instead of 9.0"),
        (np.array([[1.1, np.nan], [np.inf, 4]], np.float32), ""),
        (
            np.array([[1.25, np.nan], [np.inf, 4]], np.float32),
            "1 of 4 elements differ, first [0, 0]: 1.0 instead of 1.25",
        ),
    ],
)
def test_values_are_judged(want: np.ndarray, detail: str, tmp_path: Path) -> None:
    result = judge(_values(want, rtol=0.1), InProcess(exact=True), tmp_path)
    assert (result.status, result.detail) == ("failed" if detail else "passed", detail)


@pytest.mark.parametrize(
    ("got", "want", "rtol", "is_equal"),
    [
        (np.float64(1 + 1e-9), np.float64(1), 1e-12, False),
        (np.float64(1 + 1e-9), np.float64(1), 1e-8, True),
        (np.int64(2**53 + 1), np.int64(2**53), 0, False),
        (np.uint8(255), np.uint8(0), 0.1, False),
        (ml_dtypes.bfloat16(1.5), ml_dtypes.bfloat16(1.25), 0.1, False),
        (ml_dtypes.bfloat16(1.5), ml_dtypes.bfloat16(1.25), 0.25, True),
    ],
)
def test_numbers_are_compared_as_precisely_as_their_type(got: Any, want: Any, rtol: float, is_equal: bool) -> None:
    assert (difference(np.array(got), np.array(want), rtol, 0) == "") == is_equal


def test_a_model_to_refuse_that_is_accepted_has_failed(tmp_path: Path) -> None:
    case = _values(_SAME, verdict="refuse", clause="C1")
    result = judge(case, InProcess(exact=True), tmp_path)
    assert (result.status, result.outcome) == ("failed", "values")


def test_a_refusal_where_values_are_due_has_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case = replace(_values(_SAME), xml=_values(_SAME).xml.replace('type="Result"', 'type="Unheard"'))
    result = judge(case, InProcess(exact=True), tmp_path)
    assert (result.status, result.outcome) == ("failed", "refusal")
    assert "Unheard" in result.detail
    monkeypatch.setattr(InProcess, "load", lambda engine, path: Refusal("a long\n" * 500))
    result = judge(case, InProcess(exact=True), tmp_path)
    assert (len(result.detail), result.detail[-1]) == (1000, "…")


def test_an_open_case_is_recorded(tmp_path: Path) -> None:
    result = judge(_values(_SAME, verdict="open"), InProcess(exact=True), tmp_path)
    assert (result.status, result.detail) == ("recorded", "f32 [[1.0, nan], [inf, 4.0]]")


@pytest.mark.parametrize(("fed", "declared"), [(False, "static"), (True, "rank")])
def test_a_tensor_of_unknown_rank_is_declared_so(fed: bool, declared: str, ov: Any) -> None:
    """OpenVINO infers no rank for the output of ReduceSum along several axes that it does not know."""
    row = kit.Case(
        "x",
        "ReduceSum-1",
        [np.ones((2, 3, 4), np.float32), np.array([0, 1])],
        shapes=[1],
        expected=np.full(4, 6.0, np.float32),
    )
    every = [
        case for _, case in rows.models([row], "a file") if case.name.endswith("/static-fed" if fed else "/static")
    ]
    assert [case.declaration for case in every] == [declared]
