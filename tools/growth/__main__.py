"""Time the commands of irrun on 10,000 and on 100,000 of everything that a file or page can have many of.

The exit status is 1 if the time or the memory of a command grows more than three times as fast as the number of things,
or if a command fails on the larger file alone. Each measurement is a process of its own.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from growth.cases import CASES
from growth.measure import timed
from places import ROOT

FACTOR: Final = 3.0
"""How many times as fast as the number of things the time and the memory may grow."""
LEAST_SECONDS: Final = 0.1
"""Seconds below which a measurement is noise."""
LEAST_MEBIBYTES: Final = 8.0
"""Memory below which a measurement is noise."""


@dataclass(frozen=True)
class Measurement:
    """What a command took on a file, and how it ended: its exit status, or why there is none."""

    seconds: float
    mebibytes: float
    status: str


def measured_here(name: str, command: str, count: int) -> Measurement:
    """Measure a command in this process. ``mebibytes`` is the growth of the peak memory since a run on three things."""
    with tempfile.TemporaryDirectory() as folder:
        timed(command, CASES[name].write(Path(folder), 3))  # imports
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        seconds, status = timed(command, CASES[name].write(Path(folder), count))
        after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return Measurement(seconds, (after - before) / 1024, str(status))


def measured(name: str, command: str, count: int, limit: float) -> Measurement:
    """Measure a command in a process of its own, for at most ``limit`` seconds."""
    call = [sys.executable, "-m", "tools", "growth", "--here", name, command, str(count)]
    try:
        done = subprocess.run(call, capture_output=True, text=True, timeout=limit, cwd=ROOT)
    except subprocess.TimeoutExpired:
        return Measurement(limit, 0, "stopped")
    if done.returncode:
        return Measurement(0, 0, f"crash ({done.returncode})")
    seconds, mebibytes, status = done.stdout.split()[-3:]
    return Measurement(float(seconds), float(mebibytes), status)


def row(name: str, command: str, few: Measurement, many: Measurement) -> tuple[str, bool]:
    """Return a row of the table, and whether the growth is linear."""
    time = many.seconds / max(few.seconds, LEAST_SECONDS) / 10
    memory = many.mebibytes / max(few.mebibytes, LEAST_MEBIBYTES) / 10
    ended = few.status == many.status and many.status.isdigit()
    is_linear = ended and time <= FACTOR and memory <= FACTOR
    columns = (
        f"{name:<36} {command:<8}{few.seconds:>8.2f}{many.seconds:>9.2f}{time:>7.2f}"
        f"{few.mebibytes:>8.0f}{many.mebibytes:>8.0f}{memory:>7.2f}"
    )
    why = "" if is_linear else "  too much" if ended else f"  {few.status}, then {many.status}"
    return columns + why, is_linear


def main(options: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools growth", description=__doc__)
    parser.add_argument("wanted", nargs="*", metavar="CASE[:COMMAND]", help="Which to measure. [default: all]")
    parser.add_argument("--count", type=int, default=10_000, help="How many things the smaller file has.")
    parser.add_argument("--limit", type=float, default=1800, help="The most seconds that one measurement may take.")
    parser.add_argument("--here", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args(options)
    if given.here:
        name, command, count = given.here
        one = measured_here(name, command, int(count))
        print(one.seconds, one.mebibytes, one.status)
        return 0
    print(f"{'':<45}{'s':>7}{'s (10x)':>9}{'/ 10':>7}{'MiB':>8}{'10x':>8}{'/ 10':>7}")
    linear = True
    for name, _, only in [text.partition(":") for text in given.wanted or CASES]:
        for command in (only,) if only else CASES[name].commands:
            few, many = (measured(name, command, count, given.limit) for count in (given.count, 10 * given.count))
            line, is_linear = row(name, command, few, many)
            print(line, flush=True)
            linear &= is_linear
    return 0 if linear else 1


if __name__ == "__main__":
    sys.exit(main())
