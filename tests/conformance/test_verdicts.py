"""Verdicts rest on sentences: planted faults are refused, and what a page leaves open has no expected values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from conformance.verdicts import faults, settled
from irrun.conformance.suite import Case, Step, Suite, tensor_record
from recorded import suite


def _case(start: str, verdict: str = "values", holds: Callable[[Case], bool] = lambda case: True) -> Case:
    return next(
        case for case in suite().cases if case.name.startswith(start) and case.verdict == verdict and holds(case)
    )


def _faults(case: Case) -> list[str]:
    return list(faults(replace(suite(), cases=[case])))


def _by_zero(case: Case) -> Case:
    """Return a case of Divide whose divisors are 0, and whose expected values are made up."""
    steps = [
        replace(step, inputs=[step.inputs[0], tensor_record(np.zeros_like(step.feeds()[1]))]) for step in case.steps
    ]
    return replace(case, steps=steps)


def _f32(case: Case) -> bool:
    return case.types == ["f32"] and len(case.steps[0].inputs) == 2


PLANTED: list[tuple[str, Callable[[], Case], str]] = [
    ("an invented clause", lambda: replace(_case("Tile-1/refusal/c1", "refuse"), clause="C9"), "no sentence of the page says C9"),
    ("a clause without a sentence", lambda: replace(_case("Tile-1/refusal/c1", "refuse"), sentence=""), "no sentence of the page says what is to refuse"),
    ("a sentence of no page", lambda: replace(_case("Tile-1/refusal/c1", "refuse"), sentence="repeats must be 1D"), "has no sentence 'repeats must be 1D'"),
    ("a sentence of another page", lambda: replace(_case("Tile-1/"), sentence=_case("Divide-1/").sentence), "has no sentence"),
    ("a row about which the page is silent", lambda: replace(_case("Convolution-1/refusal/c3-negative-pad", "refuse"), name="Convolution-1/refusal/c3-stride-0"), "the page is silent about the row"),
    ("values of a row about which the page is silent", lambda: replace(_case("AvgPool-1/call/"), name="AvgPool-1/call/no-channels"), "the page is silent about the row no-channels"),
    ("a type that the page allows", lambda: replace(_case("Convolution-1/refusal/c1", "refuse"), clause="IR301", sentence="*T*: any numeric type."), "allows the types of all inputs"),
    ("values in a type outside the page", lambda: replace(_case("Tile-1/model/", holds=lambda c: c.types == ["f32", "i64"]), xml=_case("Tile-1/refusal/ir301", "refuse").xml), "the page does not allow f32"),
    ("values where the page says undefined", lambda: _by_zero(_case("Divide-1/call/", holds=_f32)), "leaves open: zero-divisor"),
    ("values without a sentence", lambda: replace(_case("Divide-1/"), sentence=""), "no sentence of the page says what is to come out"),
    ("less error than sums have", lambda: replace(_case("Convolution-1/model/", holds=lambda c: "f32" in c.types), rtol=1e-6, atol=0.0), "its absolute tolerance is 0"),
    ("expected values of an open case", lambda: replace(_case("Divide-1/"), verdict="open"), "an open case has expected values"),
    ("an operation whose page nobody has quoted", lambda: replace(_case("Divide-1/"), operation="Divide-99"), "no file quotes the page of Divide-99"),
]  # fmt: skip


@pytest.mark.parametrize(("case", "fault"), [row[1:] for row in PLANTED], ids=[row[0] for row in PLANTED])
def test_a_planted_fault_is_refused(case: Callable[[], Case], fault: str) -> None:
    found = _faults(case())
    assert any(fault in text for text in found), found


@pytest.mark.parametrize("start", ["Tile-1/", "Divide-1/", "Convolution-1/"])
def test_the_suite_has_no_fault(start: str) -> None:
    cases = [case for case in suite().cases if case.name.startswith(start)]
    assert list(faults(replace(suite(), cases=cases[::3]))) == []


def test_what_the_page_leaves_open_becomes_open() -> None:
    case = settled(_by_zero(_case("Divide-1/call/", holds=_f32)))
    assert (case.verdict, case.note) == ("open", "zero-divisor")
    assert case.sentence == "The result of division by zero is undefined."
    assert not any(step.outputs for step in case.steps)


@pytest.mark.parametrize("source", ["by hand", "by hand, carried over from no-channels"])
def test_values_about_which_the_page_is_silent_become_open(source: str) -> None:
    row = "no-channels" if source == "by hand" else "T-f16"
    case = settled(replace(_case("AvgPool-1/call/"), name=f"AvgPool-1/call/{row}", source=source))
    assert (case.verdict, case.note) == ("open", "The page does not say that a dim may be 0.")


def test_a_row_without_a_sentence_becomes_open() -> None:
    case = _case("Convolution-1/refusal/c3-stride-0", "open")
    assert case.clause == ""
    assert "divides by the stride" in case.note


def test_departures_rest_on_their_own_sentence() -> None:
    case = _case("Divide-1/departure/divide_by_zero", "open")
    assert case.steps != []
    assert all(isinstance(step, Step) for step in case.steps)


def test_only_engines_are_counted_apart() -> None:
    assert {case.basis for case in suite().cases if case.source.startswith("OpenVINO")} == {"engine"}
    assert {case.basis for case in suite().cases if not case.source.startswith("OpenVINO")} == {"page"}
    assert isinstance(suite(), Suite)
