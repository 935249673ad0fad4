"""``python -m tests.growth`` times every command on 10^4 and on 10^5 of everything that a file can have many of.

It prints the seconds of the processor and fails where ten times as many things take more than 30 times as long, or
where the memory grows faster than that. Each measurement is a process of its own.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from growth_cases import CASES

FACTOR = 3.0
"""How much faster than the number of things the time may grow."""
LEAST = 0.1
"""Seconds below which a measurement is noise."""
LIMIT = 600
"""The most seconds of the clock that one measurement may take."""


@dataclass(frozen=True)
class Measured:
    """Seconds of the processor and MiB of memory that a command takes on a file; None if it failed or took too long."""

    seconds: float
    mebibytes: float
    status: str


def arguments(command: str, path: Path) -> list[str]:
    """Return the arguments of irrun for a command of the catalogue."""
    return {
        "check": ["check", str(path), "--exit-zero"],
        "fix": ["check", str(path), "--fix", "--exit-zero"],
        "diff": ["check", str(path), "--diff", "--exit-zero"],
        "run": ["run", str(path)],
        "extract": ["extract", str(path), "-o", str(path.with_name("extracted.xml"))],
        "why": ["why", str(path)],
        "show": ["show", str(path)],
    }[command]


def timed(command: str, path: Path) -> tuple[float, int]:
    """Run a command in this process; return its seconds of the processor and its exit status."""
    from irrun.cli import cli

    began = time.process_time()
    with _quiet():
        try:
            cli(arguments(command, path), prog_name="irrun")
            status = 0
        except SystemExit as exit:
            status = exit.code if isinstance(exit.code, int) else 1
    return time.process_time() - began, status


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Send what the command prints to nowhere, as a program that reads it through a pipe would."""
    with open(os.devnull, "w", encoding="utf-8") as nowhere:  # a real file: --diff writes to its buffer
        with contextlib.redirect_stdout(nowhere), contextlib.redirect_stderr(io.StringIO()):
            yield


def one(name: str, command: str, count: int) -> None:
    """Print what one measurement gives; run in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        for warm in (3, count):  # the first imports what the command needs
            path = CASES[name].write(Path(folder), warm)
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            seconds, status = timed(command, path)
        after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        print(seconds, (after - before) / 1024, status)


def measure(name: str, command: str, count: int) -> Measured:
    call = [sys.executable, "-m", "tests.growth", "--one", name, command, str(count)]
    try:
        done = subprocess.run(call, capture_output=True, text=True, timeout=LIMIT, cwd=Path(__file__).parent.parent)
    except subprocess.TimeoutExpired:
        return Measured(float("inf"), 0, "timeout")
    if done.returncode:
        return Measured(float("inf"), 0, (done.stderr.strip().splitlines() or [str(done.returncode)])[-1])
    seconds, mebibytes, status = done.stdout.split()[-3:]
    return Measured(float(seconds), float(mebibytes), status)


def main(options: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.growth", description=__doc__)
    parser.add_argument("cases", nargs="*", metavar="CASE[:COMMAND]")
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args(options)
    if given.one:
        one(given.one[0], given.one[1], int(given.one[2]))
        return 0
    wanted = [c.partition(":") for c in given.cases] or [(name, "", "") for name in CASES]
    bad = 0
    for name, _, only in wanted:
        for command in CASES[name].commands:
            if only and command != only:
                continue
            few = measure(name, command, given.count)
            many = measure(name, command, 10 * given.count)
            ratio = many.seconds / max(few.seconds, LEAST) / 10
            memory = many.mebibytes / max(few.mebibytes, 8) / 10
            failed = not (ratio <= FACTOR and memory <= FACTOR) or few.status != many.status
            bad += failed
            print(
                f"{name:36} {command:8} {few.seconds:8.2f} {many.seconds:8.2f} {ratio:6.2f}"
                f" {few.mebibytes:7.0f} {many.mebibytes:7.0f} {memory:6.2f}  {few.status} {many.status}"
                f"{'  TOO MUCH' if failed else ''}", flush=True,
            )
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
