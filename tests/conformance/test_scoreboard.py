"""The scoreboard counts what engines passed, and is written into a page."""

from __future__ import annotations

from pathlib import Path

import pytest

from irrun.conformance import Case, Result, Run, Score, Suite, markdown, score
from irrun.conformance.scoreboard import with_table
from irrun.diagnostics import ReadError

DID = {
    "right": ("static", "values", "passed", "values"),
    "right-too": ("static", "values", "passed", "values"),
    "right-dims": ("dims", "values", "passed", "values"),
    "refused": ("dims", "values", "failed", "refusal"),
    "hung": ("rank", "values", "failed", "timeout"),
    "crashed": ("rank", "refuse", "failed", "crash"),
    "accepted": ("static", "refuse", "failed", "values"),
    "detected": ("rank", "refuse", "passed", "refusal"),
    "lacking": ("static", "refuse", "skipped", "refusal"),
    "not-run": ("static", "values", "", ""),
    "seen": ("static", "open", "recorded", "values"),
}
"""Cases by name: declaration and verdict, and what an engine did: status and outcome."""

CASES = [Case(name, "A-1", declared, verdict, "by hand", "<net/>") for name, (declared, verdict, *_) in DID.items()]
RUN = Run(
    "engine | 1.0", "", "2026-01-02T23:00:00+00:00", len(CASES),
    {name: Result(name, status, outcome) for name, (*_, status, outcome) in DID.items() if status},
)  # fmt: skip
SUITE = Suite({}, {}, CASES)


def test_every_case_with_a_verdict_is_counted_once() -> None:
    found = score(CASES, RUN)
    assert found == Score(
        "engine | 1.0", passed=4, static=2, dims=1, rank=0, refuse=1, refused=1, wrong=1, crashed=2, skipped=2
    )
    assert found.passed + found.refused + found.wrong + found.crashed + found.skipped == len(CASES) - 1


def test_the_table() -> None:
    later = Run("later", "", "2026-02-03T01:00:00+00:00", len(CASES), {})
    sentence, _, head, _, first, second = markdown(SUITE, CASES, [RUN, later]).splitlines()
    assert sentence.startswith("10 cases with a verdict, 3 February 2026, ")
    assert sentence.endswith(f", suite `{SUITE.digest}`:")
    assert head == (
        "| engine | share | passed of 10 | static of 3 | unknown dims of 2 | unknown rank of 1 | to refuse of 4 | refused "
        "| wrong | crashed | skipped |"
    )
    assert first == r"| engine \| 1.0 | 40.0 % | 4 | 2 | 1 | 0 | 1 | 1 | 1 | 2 | 2 |"
    assert second == "| later | 0.0 % | 0 | 0 | 0 | 0 | 0 | 0 | 0 | 0 | 10 |"


def test_a_sample_says_so() -> None:
    assert markdown(SUITE, CASES[:3], [RUN]).startswith(
        "3 cases with a verdict of the 11 cases of the suite, 2 January"
    )


def test_the_table_replaces_that_of_a_page(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("between `<!-- scoreboard -->` and\n<!-- scoreboard -->\nold\n<!-- end -->\nafter\n<!-- end -->\n")
    assert (
        with_table(page, "new\n")
        == b"between `<!-- scoreboard -->` and\n<!-- scoreboard -->\nnew\n<!-- end -->\nafter\n<!-- end -->\n"
    )


@pytest.mark.parametrize("text", ["", "<!-- scoreboard -->", "<!-- end -->\n<!-- scoreboard -->", None])
def test_a_page_without_a_place(text: str | None, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    if text is not None:
        page.write_text(text)
    with pytest.raises(ReadError, match=r"cannot use the page: (it has no line <!-- scoreboard -->|no such file)"):
        with_table(page, "")
