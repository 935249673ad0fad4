"""The scoreboard: a table of what engines passed, for a terminal and for pages of Markdown."""

from __future__ import annotations

import platform
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Final

from irrun.base.text import printable
from irrun.conformance.running import Run
from irrun.conformance.suite import Case, Suite
from irrun.diagnostics import ReadError, diagnostic

__all__ = ["Score", "Scoreboard", "markdown", "score", "scoreboard", "with_table"]

_BEGIN: Final = "<!-- scoreboard -->"
_END: Final = "<!-- end -->"
"""The comments between which a page has the table."""


@dataclass(frozen=True, slots=True)
class Score:
    """What an engine did with the cases that have a verdict, in numbers.

    ``passed`` cases have expected values, by declaration (``static``, ``dims``, ``rank``), or are to refuse
    (``refuse``). Of the other cases, ``wrong`` gave wrong values or accepted what an engine must refuse, and with
    ``crashed`` the engine crashed, hung, or took too much memory.
    """

    engine: str
    passed: int
    static: int
    dims: int
    rank: int
    refuse: int
    refused: int
    wrong: int
    crashed: int
    skipped: int


_TITLES: Final = {
    "passed": "passed",
    "static": "static",
    "dims": "unknown dims",
    "rank": "unknown rank",
    "refuse": "to refuse",
    "refused": "refused",
    "wrong": "wrong",
    "crashed": "crashed",
    "skipped": "skipped",
}
"""The title of the column of each number."""
_OUTCOMES: Final = {"refusal": "refused", "values": "wrong", "crash": "crashed", "timeout": "crashed"}


def score(cases: Sequence[Case], run: Run) -> Score:
    """Return what an engine did with cases. A case that it has no result of is skipped."""
    numbers = dict.fromkeys(_TITLES, 0)
    for case in cases:
        if case.verdict == "open":
            continue
        result = run.results.get(case.name)
        if result is None or result.status == "skipped":
            numbers["skipped"] += 1
        elif result.status == "passed":
            numbers["passed"] += 1
            numbers["refuse" if case.verdict == "refuse" else case.declaration] += 1
        else:
            numbers[_OUTCOMES[result.outcome]] += 1
    return Score(run.engine, **numbers)


@dataclass(frozen=True, slots=True)
class Scoreboard:
    """What several engines did with the same cases. ``totals`` counts the cases with a verdict, as ``Score`` does.

    ``suite`` is the digest of the suite, ``suite_cases`` the number of its cases, and ``cases`` that of those chosen.
    ``date`` (ISO 8601) is the day of the last run, and ``system`` the operating system and the processor.
    """

    suite: str
    suite_cases: int
    cases: int
    date: str
    system: str
    totals: Mapping[str, int]
    engines: Sequence[Score]

    def markdown(self) -> str:
        """Return a sentence on when and where the runs were made, and a table with a row for each engine."""
        return f"{self._sentence()}\n\n" + "".join(f"{line}\n" for line in self._table())

    def _sentence(self) -> str:
        day = date.fromisoformat(self.date)
        part = "" if self.cases == self.suite_cases else f" of the {self.suite_cases:,} cases of the suite"
        when, where = f"{day.day} {day:%B %Y}", self.system
        return f"{self.totals['passed']:,} cases with a verdict{part}, {when}, {where}, suite `{self.suite}`:"

    def _table(self) -> Iterator[str]:
        titles = [f"{title} of {self.totals[key]:,}" if key in self.totals else title for key, title in _TITLES.items()]
        yield "| engine | share | " + " | ".join(titles) + " |"
        yield "| --- |" + " ---: |" * (1 + len(titles))
        for found in self.engines:
            name, share = (
                printable(found.engine).replace("|", "\\|"),
                100 * found.passed / max(self.totals["passed"], 1),
            )
            cells = [name, f"{share:.1f} %", *(f"{getattr(found, number):,}" for number in _TITLES)]
            yield "| " + " | ".join(cells) + " |"


def scoreboard(suite: Suite, cases: Sequence[Case], runs: Sequence[Run]) -> Scoreboard:
    """Return what engines did with the chosen cases of a suite."""
    judged = [case for case in cases if case.verdict != "open"]
    counts = Counter("refuse" if case.verdict == "refuse" else case.declaration for case in judged)
    totals = {"passed": len(judged), **{kind: counts[kind] for kind in ("static", "dims", "rank", "refuse")}}
    last = max(datetime.fromisoformat(run.began) for run in runs)
    return Scoreboard(
        suite=suite.digest,
        suite_cases=len(suite.cases),
        cases=len(cases),
        date=last.date().isoformat(),
        system=f"{platform.system()}, {platform.machine()}",
        totals=totals,
        engines=[score(judged, run) for run in runs],
    )


def markdown(suite: Suite, cases: Sequence[Case], runs: Sequence[Run]) -> str:
    """Return the table of ``scoreboard`` as Markdown."""
    return scoreboard(suite, cases, runs).markdown()


def with_table(page: Path, text: str) -> bytes:
    """Return the contents of a page with the table between the lines ``<!-- scoreboard -->`` and ``<!-- end -->``.

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
