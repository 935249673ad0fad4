"""Draw failures that an engine is charged with, and write their adjudication: `python -m tools adjudication FOLDER`.

FOLDER holds results of engines, as `irrun conformance scoreboard -o FOLDER` writes them. A seed draws rows of the suite
whose verdict rests on the page alone. docs/adjudication.toml has a person's verdict on each of them, by case:

    ["Tile-1/call/both"]
    verdict = "stands"
    reason = "The page multiplies each dim by its number of repeats."

The command writes docs/adjudication.md. Cases without a verdict are listed; the exit status is then 1.
"""

from __future__ import annotations

import argparse
import random
import sys
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from irrun.base.text import printable
from irrun.conformance import Case, Result, Run, Suite, read_run, read_suite
from irrun.conformance.scoreboard import FINDINGS, findings, size
from places import ROOT

__all__ = ["PAGE", "VERDICTS", "Failure", "charged", "drawn", "page", "unjudged"]

PAGE: Final = ROOT / "docs" / "adjudication.md"
RULINGS: Final = ROOT / "docs" / "adjudication.toml"
VERDICTS: Final = ("stands", "page silent", "irrun's misreading")

Failure = tuple[Case, str, Result]
"""The case that stands for a row, its finding (a key of ``FINDINGS``), and what the engine gave."""
Rulings = Mapping[str, Mapping[str, str]]


def charged(suite: Suite, run: Run) -> list[Failure]:
    """Return the rows that an engine is charged with, each as the smallest case that shows its worst finding."""
    order = list(FINDINGS)
    found = findings([case for case in suite.cases if case.basis == "page" and case.declaration != "rank"], run)
    rows: dict[str, list[Case]] = defaultdict(list)
    for case in suite.cases:
        if case.name in found:
            rows[case.row].append(case)
    worst = (min(cases, key=lambda case: (order.index(found[case.name]), size(case))) for cases in rows.values())
    charged = [case for case in worst if found[case.name] not in ("right", "unclaimed")]
    return [(case, found[case.name], run.results[case.name]) for case in sorted(charged, key=lambda case: case.name)]


def drawn(failures: Sequence[Failure], count: int, seed: str) -> list[Failure]:
    """Return some of the failures, in the order of their names; all if there are not more."""
    chosen = random.Random(seed).sample(range(len(failures)), min(count, len(failures)))
    return [failures[i] for i in sorted(chosen)]


def unjudged(failures: Sequence[Failure], rulings: Rulings) -> Iterator[str]:
    """Yield what is wrong with the verdicts on some failures: a missing one, an unknown one, one without a reason."""
    for case, _, _ in failures:
        ruling = rulings.get(case.name)
        if ruling is None:
            yield f"{case.name}: no verdict"
        elif ruling.get("verdict") not in VERDICTS or not ruling.get("reason"):
            yield f"{case.name}: the verdict is {', '.join(VERDICTS[:-1])} or {VERDICTS[-1]}, with a reason"


def page(failures: Sequence[Failure], rulings: Rulings, engine: str, seed: str, total: int) -> str:
    """Return the page about drawn failures, all of which have a verdict."""
    counts = Counter(rulings[case.name]["verdict"] for case, _, _ in failures)
    stands, silent, misread = (counts[verdict] for verdict in VERDICTS)
    rows = "".join(_row(failure, rulings[failure[0].name]) for failure in failures)
    return (
        f"# Failures adjudicated\n\n"
        f"The [conformance suite](conformance.md) charges {engine} with {total:,} rows whose verdict\n"
        f"rests on the page alone. The seed `{seed}` draws {len(failures)} of them. A reader who had not written the\n"
        f"suite held each against its page: {stands} stand, the page is silent on {silent}, and irrun misreads the page in\n"
        f"{misread}. `irrun conformance show CASE` shows a case, and `python -m tools adjudication` writes this page.\n\n"
        f"| case | finding | what the engine gave | the page | verdict |\n| --- | --- | --- | --- | --- |\n{rows}"
    )


def _row(failure: Failure, ruling: Mapping[str, str]) -> str:
    case, what, result = failure
    gave = result.detail or result.outcome
    verdict = f"**{ruling['verdict']}**: {ruling['reason']}"
    return f"| {_code(case.name)} | {FINDINGS[what]} | {_code(gave)} | {_code(case.sentence)} | {_cell(verdict)} |\n"


def _code(text: str) -> str:
    """Return a text as inline code in a cell of a table, whatever backticks it has."""
    fence = "`" * (1 + max(map(len, "".join(c if c == "`" else " " for c in text).split()), default=0))
    return _cell(f"{fence} {text} {fence}")


def _cell(text: str) -> str:
    return printable(text).replace("|", "\\|")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--engine", required=True, help="the name that the results have")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", required=True)
    chosen = parser.parse_args()
    runs = [read_run(path) for path in sorted(chosen.folder.glob("*.jsonl"))]
    run = next((run for run in runs if run.engine == chosen.engine), None)
    if run is None:
        sys.exit(f"{chosen.folder} has results of: {', '.join(run.engine for run in runs) or 'no engine'}")
    failures = charged(read_suite(), run)
    some = drawn(failures, chosen.count, chosen.seed)
    rulings = tomllib.loads(RULINGS.read_text("utf-8")) if RULINGS.exists() else {}
    if wrong := list(unjudged(some, rulings)):
        sys.exit("\n".join([*wrong, f"not written: {len(wrong)} of {len(some)} cases have no verdict"]))
    PAGE.write_text(page(some, rulings, run.engine, chosen.seed, len(failures)), "utf-8", newline="\n")
    print(f"wrote {PAGE.relative_to(ROOT)}: {len(some)} of {len(failures):,} failures")


if __name__ == "__main__":
    main()
