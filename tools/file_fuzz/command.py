"""The command line of the fuzzer of files."""

from __future__ import annotations

import argparse
import json
import shlex
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final, TextIO

from file_fuzz.campaign import Campaign, Failure, Figures

__all__ = ["main", "parser"]

KIND: Final = "mutants"
"""The cases of the command, which folders and lines are named after."""
_MAX_SHOWN: Final = 3
"""The failures of one cause that are printed in full."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a campaign. Return 1 if a case failed, else 0."""
    options = parser().parse_args(arguments)
    command = f"python -m tools file_fuzz --count 1 --seed {shlex.quote(options.seed)} --first {{}}"
    log: TextIO | None = options.log.open("a", encoding="utf-8") if options.log else None
    shown: dict[str, int] = {}

    def write(**line: object) -> None:
        if log is not None:
            log.write(json.dumps(line) + "\n")
            log.flush()

    def report(failure: Failure) -> None:
        again = command.format(failure.number)
        write(number=failure.number, signature=failure.signature, failure=failure.text, command=again)
        if options.keep is not None:
            folder = options.keep / f"{KIND}-{failure.number}"
            (folder / "command.txt").write_text(again + "\n")
        shown[failure.signature] = shown.get(failure.signature, 0) + 1
        if shown[failure.signature] <= _MAX_SHOWN:
            print(f"case {failure.number} failed; run it again with\n  {again}\n{failure.text}", flush=True)

    def progress(figures: Figures) -> None:
        write(**_record(figures, options, begin))
        print(f"{figures.cases:,} of {options.count:,} {KIND}, {len(figures.failures)} failures", flush=True)

    begin = time.monotonic()
    campaign = Campaign(
        KIND, options.count, options.seed, options.first, options.jobs, keep=options.keep, report=report,
        progress=progress,
    )  # fmt: skip
    figures = campaign.run()
    _summarise(figures, time.monotonic() - begin)
    if log is not None:
        log.close()
    return 1 if figures.failures else 0


def _record(figures: Figures, options: argparse.Namespace, begin: float) -> dict[str, object]:
    return {
        "kind": KIND, "seed": options.seed, "first": options.first, "cases": figures.cases,
        "seconds": round(time.monotonic() - begin), "cpu": round(figures.seconds),
        "slowest": round(figures.slowest, 2), "failures": len(figures.failures), "outcomes": dict(figures.outcomes),
    }  # fmt: skip


def _summarise(figures: Figures, seconds: float) -> None:
    print(f"{figures.cases:,} {KIND} in {seconds:.0f} s, the slowest {figures.slowest:.2f} s of CPU time")
    for name, times in sorted(figures.outcomes.items(), key=lambda row: (-row[1], row[0])):
        print(f"{times:9,}  {name}")
    for name, times in figures.signatures.most_common():
        print(f"{times:9,}  FAILED: {name}")


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    made = argparse.ArgumentParser(
        prog="python -m tools file_fuzz",
        description="Mutate the bytes and the structure of IR files, of their .bin and of pages with examples. Read, "
        "check, fix, explain, cut, write, compile and run each mutant. Each outcome must be a result or an "
        "IrrunError, within 2 seconds of CPU time for each 100 KB, and 1 GiB of memory. The exit status is 1 if a case "
        "failed.",
    )
    made.add_argument("--count", type=int, default=1000, help="the number of cases (default: 1000)")
    made.add_argument("--seed", default="0", help="any text; another one makes other cases (default: 0)")
    made.add_argument("--first", type=int, default=0, help="the number of the first case (default: 0)")
    made.add_argument("--jobs", type=int, default=1, help="processes that run cases at once (default: 1)")
    made.add_argument("--keep", type=Path, metavar="DIR", help="store failing cases in this folder, reduced")
    made.add_argument("--log", type=Path, metavar="FILE", help="append figures and failures as lines of JSON")
    return made
