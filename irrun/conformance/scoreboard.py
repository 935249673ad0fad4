"""The scoreboard: a table of what engines passed, for a terminal and for pages of Markdown."""

from __future__ import annotations

import platform
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

from irrun.base.text import printable
from irrun.conformance.running import Run
from irrun.conformance.suite import Case, Suite
from irrun.diagnostics import Diagnostic, ReadError

__all__ = ["Score", "markdown", "score", "with_table"]

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
    "passed": "passed", "static": "static", "dims": "unknown dims", "rank": "unknown rank", "refuse": "to refuse",
    "refused": "refused", "wrong": "wrong", "crashed": "crashed", "skipped": "skipped",
}  # fmt: skip
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


def markdown(suite: Suite, cases: Sequence[Case], runs: Sequence[Run]) -> str:
    """Return a sentence on when and where the runs were made, and a table of Markdown with a row for each."""
    return f"{_sentence(suite, cases, runs)}\n\n" + "".join(f"{line}\n" for line in _table(cases, runs))


def _sentence(suite: Suite, cases: Sequence[Case], runs: Sequence[Run]) -> str:
    last = max(datetime.fromisoformat(run.began) for run in runs)
    judged = sum(case.verdict != "open" for case in cases)
    part = "" if len(cases) == len(suite.cases) else f" of the {len(suite.cases):,} cases of the suite"
    where = f"{platform.system()}, {platform.machine()}"
    return f"{judged:,} cases with a verdict{part}, {last.day} {last:%B %Y}, {where}, suite `{suite.digest}`:"


def _table(cases: Sequence[Case], runs: Sequence[Run]) -> Iterator[str]:
    judged = [case for case in cases if case.verdict != "open"]
    totals = Counter("refuse" if case.verdict == "refuse" else case.declaration for case in judged)
    totals["passed"] = len(judged)
    titles = [f"{title} of {totals[name]:,}" if name in totals else title for name, title in _TITLES.items()]
    yield "| engine | share | " + " | ".join(titles) + " |"
    yield "| --- |" + " ---: |" * (1 + len(titles))
    for run in runs:
        found = score(judged, run)
        name, share = printable(run.engine).replace("|", "\\|"), 100 * found.passed / max(len(judged), 1)
        cells = [name, f"{share:.1f} %", *(f"{getattr(found, number):,}" for number in _TITLES)]
        yield "| " + " | ".join(cells) + " |"


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
    return ReadError(Diagnostic("IR000", "error", f"cannot use the page: {why}", file=str(page)))
