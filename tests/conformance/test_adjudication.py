"""Failures are drawn by a seed, need a verdict each, and stand in a table with the sentence of the page."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

import adjudication
from adjudication import charged, drawn, page, unjudged
from grouped import each
from irrun.conformance import Case, Result, Run, Suite

ENGINE = "some engine 1.0"


def _case(name: str, verdict: str = "values", basis: str = "page") -> Case:
    declaration = name.rpartition("/")[2] if name.endswith(("dims", "rank")) else "static"
    sentence = "a ``b`` | c"
    return Case(name, name.split("/")[0], declaration, verdict, "by hand", "<net/>", sentence=sentence, basis=basis)


DID = [
    (_case("Abs-1/call/a"), Result("", "passed", "values")),
    (_case("Abs-1/call/b/static"), Result("", "passed", "values")),
    (_case("Abs-1/call/b/dims"), Result("", "failed", "crash", "SIGSEGV")),
    (_case("Abs-1/call/b/rank"), Result("", "failed", "crash", "SIGSEGV")),
    (_case("Abs-1/call/c"), Result("", "failed", "values", "1 of 2 | differ")),
    (_case("Abs-1/call/d"), Result("", "skipped", "refusal")),
    (_case("Abs-1/call/e", basis="engine"), Result("", "failed", "values", "1 of 2 differ")),
    (_case("Abs-1/refusal/f", "refuse"), Result("", "failed", "values", "accepted")),
    (_case("Abs-1/refusal/g", "open"), Result("", "recorded", "values")),
    (_case("Abs-1/call/h"), Result("", "failed", "refusal", "no kernel")),
]
"""What the engine did with cases."""
RUN = Run(ENGINE, "", "2026-01-02", len(DID), {case.name: replace(did, name=case.name) for case, did in DID})
SUITE = Suite({}, {}, [case for case, _ in DID])
FAILURES = charged(SUITE, RUN)
RULINGS = {case.name: {"verdict": "stands", "reason": "it says so"} for case, _, _ in FAILURES}


def test_a_row_is_charged_once() -> None:
    assert [(case.name, what) for case, what, _ in FAILURES] == [
        ("Abs-1/call/b/dims", "crash"),
        ("Abs-1/call/c", "wrong"),
        ("Abs-1/call/h", "refuses"),
        ("Abs-1/refusal/f", "accepts"),
    ]


def test_a_seed_draws_the_same_failures() -> None:
    assert drawn(FAILURES, 9, "x") == FAILURES
    seeds = [drawn(FAILURES, 2, seed) for seed in "abcdefgh"]
    assert seeds == [drawn(FAILURES, 2, seed) for seed in "abcdefgh"]
    assert all(len(some) == 2 and [failure for failure in FAILURES if failure in some] == some for some in seeds)
    assert {case.name for some in seeds for case, _, _ in some} == RULINGS.keys()


@each(
    "ruling, said",
    [
        ({"verdict": "stands", "reason": "why"}, ""),
        (None, "Abs-1/call/c: no verdict"),
        ({"verdict": "falls", "reason": "why"}, "page silent or irrun's misreading"),
        ({"verdict": "stands"}, "with a reason"),
    ],
)
def test_each_failure_needs_a_verdict(ruling: dict[str, str] | None, said: str) -> None:
    rulings = {name: ruling if name == "Abs-1/call/c" else own for name, own in RULINGS.items()}
    wrong = list(unjudged(FAILURES, {name: own for name, own in rulings.items() if own is not None}))
    assert len(wrong) == bool(said)
    assert all(said in line for line in wrong)


def test_the_page() -> None:
    text = page(FAILURES, RULINGS, ENGINE, "7", 1234)
    assert "charges some engine 1.0 with 1,234 rows" in text
    assert "The seed `7` draws 4 of them." in text
    assert "4 stand, the page is silent on 0, and irrun misreads the page in\n0." in text
    assert text.endswith(
        "| ` Abs-1/refusal/f ` | accepts what must be refused | ` accepted ` | ``` a ``b`` \\| c ``` | **stands**: it says so |\n"
    )


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A verdict that is missing is listed, with exit status 1; with all of them, the page is written."""
    monkeypatch.setattr(adjudication, "ROOT", tmp_path)
    monkeypatch.setattr(adjudication, "PAGE", tmp_path / "page.md")
    monkeypatch.setattr(adjudication, "RULINGS", tmp_path / "rulings.toml")
    monkeypatch.setattr(adjudication, "read_suite", lambda: SUITE)
    monkeypatch.setattr(adjudication, "read_run", lambda path: RUN)
    (tmp_path / "r.jsonl").touch()
    monkeypatch.setattr(sys, "argv", ["adjudication", str(tmp_path), "--engine", ENGINE, "--count", "1", "--seed", "s"])
    ((case, _, _),) = drawn(FAILURES, 1, "s")
    with pytest.raises(SystemExit, match=f"^{case.name}: no verdict\nnot written: 1 of 1 "):
        adjudication.main()
    assert not adjudication.PAGE.exists()
    (tmp_path / "rulings.toml").write_text(f'["{case.name}"]\nverdict = "page silent"\nreason = "why"\n', "utf-8")
    adjudication.main()
    assert "0 stand, the page is silent on 1, and" in adjudication.PAGE.read_text("utf-8")
    assert capsys.readouterr().out == "wrote page.md: 1 of 4 failures\n"
    monkeypatch.setattr(sys, "argv", ["adjudication", str(tmp_path), "--engine", "other", "--seed", "s"])
    with pytest.raises(SystemExit, match=f"has results of: {ENGINE}$"):
        adjudication.main()
