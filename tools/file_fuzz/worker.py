"""A process that runs a range of cases, within limits, and reports each on its standard output."""

from __future__ import annotations

import faulthandler
import json
import os
import resource
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

from file_fuzz.cases import SECONDS, Cases, cases_of, emptied, signature

__all__ = ["MEMORY", "main"]

MEMORY = 1 << 30
"""The most bytes of memory that a mutant may take beside what the process has at its start."""
_KILL = 20
"""Seconds of CPU time after which the process is ended, with a traceback."""


def main(arguments: dict[str, Any]) -> None:
    """Run the cases from ``first`` to ``last`` (excluded). Write a line before and a line after each."""
    kind, seed, keep = arguments["kind"], arguments["seed"], arguments["keep"]
    warnings.simplefilter("error")
    with tempfile.TemporaryDirectory(prefix="irrun-fuzz-") as name:
        cases = cases_of(kind, seed, Path(name), Path(arguments["corpus"]))
        cases.warm_up()
        _limit(cases.bounded)
        for number in range(arguments["first"], arguments["last"]):
            _say(begin=number)
            signal.setitimer(signal.ITIMER_PROF, _KILL)
            _say(end=number, **_case(cases, number, kind, None if keep is None else Path(keep)))
        signal.setitimer(signal.ITIMER_PROF, 0)
    _say(finished=True)


def _say(**line: object) -> None:
    os.write(sys.stdout.fileno(), (json.dumps(line) + "\n").encode())


def _limit(bounded: bool) -> None:
    """End the process if a case takes ``_KILL`` seconds and, if it is bounded, limit its memory."""
    faulthandler.enable()
    faulthandler.register(signal.SIGPROF, chain=True)
    if bounded:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        most = pages * resource.getpagesize() + MEMORY
        resource.setrlimit(resource.RLIMIT_AS, (most, resource.getrlimit(resource.RLIMIT_AS)[1]))


def _case(cases: Cases, number: int, kind: str, keep: Path | None) -> dict[str, Any]:
    """Run a case and return its report: outcomes, seconds, and what failed."""
    begin = time.process_time()
    failed: BaseException | None = None
    outcomes: Counter[str] = Counter()
    try:
        outcomes = cases.run(number)
    except (Exception, RecursionError) as error:
        failed = error
    seconds = time.process_time() - begin
    report: dict[str, Any] = {"outcomes": outcomes, "seconds": seconds}
    if failed is None and seconds > SECONDS and seconds > cases.seconds(number):
        report["failure"] = f"took {seconds:.1f} s of CPU time"
        report["signature"] = "slow"
    elif failed is not None:
        report["failure"] = "".join(traceback.format_exception(failed, limit=-8))
        report["signature"] = signature(failed)
    if "failure" in report and keep is not None:
        signal.setitimer(signal.ITIMER_PROF, 0)
        folder = emptied(keep / f"{kind}-{number}")
        try:
            cases.keep(number, folder, failed)
        except Exception as error:  # what fails may be to make the case
            report["failure"] += f"\nThe case cannot be stored: {error!r}\n"
        (folder / "failure.txt").write_text(report["failure"], "utf-8", "replace")
    return report


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
