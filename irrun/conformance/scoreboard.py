"""The scoreboard: what engines did with the rows of the suite, and the root causes of what went wrong."""

from __future__ import annotations

import platform
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import date, datetime
from pathlib import Path
from typing import Any, Final

from irrun.base.text import printable
from irrun.conformance.claims import claims_of
from irrun.conformance.judging import Result
from irrun.conformance.reasons import reason
from irrun.conformance.running import Run
from irrun.conformance.suite import BASES, Case, Suite
from irrun.diagnostics import ReadError, diagnostic

__all__ = [
    "FINDINGS",
    "Cause",
    "Score",
    "Scoreboard",
    "finding",
    "findings",
    "markdown",
    "score",
    "scoreboard",
    "size",
    "with_table",
]

_BEGIN: Final = "<!-- scoreboard -->"
_END: Final = "<!-- end -->"
"""The comments between which a page has the tables."""

FINDINGS: Final = {
    "crash": "crash",
    "wrong": "wrong value",
    "accepts": "accepts what must be refused",
    "refuses": "refuses what it claims",
    "right": "right",
    "unclaimed": "not claimed",
}
"""What an engine did with a case or a row, the worst first, with the title of its column. A row has the worst finding
of its cases; ``unclaimed`` counts if there is no other."""
_MAX_CAUSES: Final = 20
"""The most causes that a table lists for an engine."""


@dataclass(frozen=True, slots=True)
class Cause:
    """A root cause of findings of an engine: how many rows and cases show it, and the case with the smallest model."""

    finding: str
    words: str
    rows: int
    cases: int
    smallest: str


@dataclass(frozen=True, slots=True)
class Score:
    """What an engine did with the rows of the suite.

    ``rows`` counts the rows by basis of their expected values (``page`` or ``engine``) and finding. ``unknown_rank``
    is the number of cases with tensors of unknown rank that it did right: these count in no row. ``properties`` are
    those in effect.
    """

    engine: str
    vendor: str
    properties: Mapping[str, str]
    rows: Mapping[str, Mapping[str, int]]
    unknown_rank: int
    causes: Sequence[Cause]

    @property
    def is_own(self) -> bool:
        """Whether this is irrun, whose tests made the suite."""
        return self.engine.startswith("irrun ")


@dataclass(frozen=True, slots=True)
class Scoreboard:
    """What several engines did with the same cases.

    ``suite`` is the digest of the suite, ``suite_cases`` the number of its cases, and ``cases`` the number chosen.
    ``rows`` counts the rows by basis, and ``unknown_rank`` the cases of unknown rank. ``date`` (ISO 8601) is the day of
    the last run, and ``system`` the operating system and the processor.
    """

    suite: str
    suite_cases: int
    cases: int
    date: str
    system: str
    rows: Mapping[str, int]
    unknown_rank: int
    engines: Sequence[Score]

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Scoreboard:
        """Return the scoreboard that ``dataclasses.asdict`` has made a record of."""
        engines = [
            Score(**{**engine, "causes": [Cause(**cause) for cause in engine["causes"]]})
            for engine in record["engines"]
        ]
        return cls(**{**{field.name: record[field.name] for field in fields(cls)}, "engines": engines})

    def markdown(self) -> str:
        """Return a sentence on when and where the runs were made, and the tables."""
        return "".join(f"{line}\n" for line in self._lines())

    def _lines(self) -> Iterator[str]:
        day = date.fromisoformat(self.date)
        part = "" if self.cases == self.suite_cases else f", a sample of {self.suite_cases:,}"
        yield f"{self.cases:,} cases{part}, {day.day} {day:%B %Y}, {self.system}, suite `{self.suite}`."
        judged = [engine for engine in self.engines if not engine.is_own]
        for engine in judged:
            if engine.properties:
                shown = ", ".join(f"{name}={_cell(value)}" for name, value in engine.properties.items())
                yield from ("", f"{_cell(engine.engine)} ran with {shown}.")
        titles = {
            "page": f"{self.rows['page']:,} rows whose verdict rests on the page alone:",
            "engine": f"{self.rows['engine']:,} rows whose values OpenVINO and irrun both give:",
        }
        for basis in BASES:
            yield from ("", titles[basis], "", *self._table(judged, basis))
        yield from self._own()
        yield from ("", f"Tensors of unknown rank, {self.unknown_rank:,} cases, which count in no row:", "")
        yield from ("| engine | right |", "| --- | ---: |")
        yield from (f"| {_cell(engine.engine)} | {engine.unknown_rank:,} |" for engine in judged)
        for engine in judged:
            yield from self._causes(engine)

    def _table(self, engines: Sequence[Score], basis: str) -> Iterator[str]:
        yield "| engine | " + " | ".join(FINDINGS.values()) + " |"
        yield "| --- |" + " ---: |" * len(FINDINGS)
        for engine in engines:
            yield f"| {_cell(engine.engine)} | {' | '.join(f'{engine.rows[basis][key]:,}' for key in FINDINGS)} |"

    def _own(self) -> Iterator[str]:
        """Yield a sentence on irrun itself, whose tests the suite was made from."""
        for engine in self.engines:
            if engine.is_own:
                wrong = sum(engine.rows[basis][key] for basis in BASES for key in FINDINGS if key != "right")
                yield from (
                    "",
                    f"{_cell(engine.engine)}, from whose tests the suite is made: {wrong:,} rows not right.",
                )

    def _causes(self, engine: Score) -> Iterator[str]:
        if not engine.causes:
            return
        shown = engine.causes[:_MAX_CAUSES]
        title = f"{_cell(engine.engine)}: {len(engine.causes):,} causes"
        yield from ("", title + (f", the {len(shown)} largest" if len(shown) < len(engine.causes) else "") + ":", "")
        yield "| what | cause | rows | cases | smallest model (`irrun conformance show`) |"
        yield "| --- | --- | ---: | ---: | --- |"
        for cause in shown:
            what = FINDINGS[cause.finding]
            yield f"| {what} | {_cell(cause.words)} | {cause.rows:,} | {cause.cases:,} | `{cause.smallest}` |"


def _cell(text: str) -> str:
    return printable(text).replace("|", "\\|")


# ---------------------------------------------------------------------------------------------
# counting


def finding(case: Case, result: Result, *, is_claimed: bool) -> str:
    """Return what an engine did with a case with a verdict, as a key of ``FINDINGS``."""
    if not is_claimed:
        return "unclaimed"
    if result.status == "passed":
        return "right"
    if result.outcome in ("crash", "timeout"):
        return "crash"
    if result.outcome == "refusal":
        return "refuses"
    return "accepts" if case.verdict == "refuse" else "wrong"


def findings(cases: Sequence[Case], run: Run) -> dict[str, str]:
    """Return what an engine did with cases, by name. Open cases, and cases that were not run, are left out.

    An engine of whose vendor irrun knows no claims claims what it does not answer with ``unavailable``.
    """
    claims = claims_of(run.engine)
    found: dict[str, str] = {}
    for case in cases:
        result = run.results.get(case.name)
        if case.verdict != "open" and result is not None:
            is_claimed = result.status != "skipped" if claims is None else claims.covers(case, run.engine)
            found[case.name] = finding(case, result, is_claimed=is_claimed)
    return found


def score(cases: Sequence[Case], run: Run) -> Score:
    """Return what an engine did with cases, as ``findings`` does."""
    claims = claims_of(run.engine)
    found = findings(cases, run)
    return Score(
        run.engine,
        "" if claims is None else claims.vendor,
        run.properties,
        _rows(cases, found),
        sum(_is_right(case, run) for case in cases if case.declaration == "rank"),
        _causes([case for case in cases if found.get(case.name, "right") not in ("right", "unclaimed")], found, run),
    )


def _is_right(case: Case, run: Run) -> bool:
    result = run.results.get(case.name)
    return result is not None and result.status == "passed"


def _rows(cases: Sequence[Case], found: Mapping[str, str]) -> dict[str, dict[str, int]]:
    """Return the number of rows by basis and finding."""
    order = list(FINDINGS)
    worst: dict[tuple[str, str], str] = {}
    for case in cases:
        if case.declaration != "rank" and case.name in found:
            key = case.basis, case.row
            worst[key] = min(worst.get(key, order[-1]), found[case.name], key=order.index)
    counts = Counter((basis, what) for (basis, _), what in worst.items())
    return {basis: {what: counts[basis, what] for what in order} for basis in BASES}


def _causes(cases: Sequence[Case], found: Mapping[str, str], run: Run) -> list[Cause]:
    """Return the root causes of what went wrong, those of most rows first."""
    groups: dict[tuple[str, str], list[Case]] = defaultdict(list)
    for case in cases:
        if case.declaration != "rank":
            groups[found[case.name], _cause(case, found[case.name], run.results[case.name])].append(case)
    causes = [
        Cause(what, words, len({case.row for case in own}), len(own), min(own, key=size).name)
        for (what, words), own in groups.items()
    ]
    return sorted(causes, key=lambda cause: (-cause.rows, cause.finding, cause.words))


def size(case: Case) -> tuple[int, str]:
    """Return what orders cases by the size of their model, and then by name."""
    return len(case.xml) + len(case.bin), case.name


def _cause(case: Case, what: str, result: Result) -> str:
    """Return the root cause of a finding in words.

    Refusals have the engine's message in common, without names and numbers. Wrong values, crashes and what is accepted
    have the operation and, if there is one, the clause.
    """
    type = case.operation.rpartition("-")[0]
    if what == "refuses":
        return reason(type, result.detail)
    detail = {"wrong": " gives other values", "accepts": " is accepted", "crash": ""}[what]
    unstable = ", which change from run to run" if result.outcome == "unstable" else ""
    return f"{type} {case.clause}".rstrip() + detail + unstable


def scoreboard(suite: Suite, cases: Sequence[Case], runs: Sequence[Run]) -> Scoreboard:
    """Return what engines did with the chosen cases of a suite."""
    judged = [case for case in cases if case.verdict != "open"]
    counts = Counter(basis for basis, _ in {(case.basis, case.row) for case in judged if case.declaration != "rank"})
    last = max(datetime.fromisoformat(run.began) for run in runs)
    return Scoreboard(
        suite=suite.digest,
        suite_cases=len(suite.cases),
        cases=len(cases),
        date=last.date().isoformat(),
        system=f"{platform.system()}, {platform.machine()}",
        rows={basis: counts[basis] for basis in BASES},
        unknown_rank=sum(case.declaration == "rank" for case in judged),
        engines=[score(judged, run) for run in runs],
    )


def markdown(suite: Suite, cases: Sequence[Case], runs: Sequence[Run]) -> str:
    """Return the tables of ``scoreboard`` as Markdown."""
    return scoreboard(suite, cases, runs).markdown()


def with_table(page: Path, text: str) -> bytes:
    """Return the contents of a page with the tables between the lines ``<!-- scoreboard -->`` and ``<!-- end -->``.

    Raises ReadError (IR000) if the page cannot be read or has no such lines.
    """
    try:
        contents = page.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise _unusable(page, str(getattr(error, "strerror", None) or error).lower()) from None
    found = re.search(f"^{_BEGIN}\n(.*?)^{_END}$", contents, re.MULTILINE | re.DOTALL)
    if found is None:
        raise _unusable(page, f"it has no line {_BEGIN} with a line {_END} behind it")
    return f"{contents[: found.start(1)]}{text}{contents[found.end(1) :]}".encode()


def _unusable(page: Path, why: str) -> ReadError:
    return ReadError(diagnostic("IR000", f"cannot use the page: {why}", file=str(page)))
