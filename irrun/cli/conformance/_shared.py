"""What the commands of ``irrun conformance`` share: engines, limits, cases, and how a run is printed."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Final

import click
from rich.progress import Progress

from irrun.base.text import printable
from irrun.cli import _terminal
from irrun.cli._judging import LimitOptions, limit_options
from irrun.cli._options import jobs_option, together
from irrun.conformance import Case, Result, Run, Suite, harness, read_suite, run, starter
from irrun.conformance.running import Start
from irrun.conformance.suite import SUITE
from irrun.engines import Limits

__all__ = [
    "EngineOptions",
    "WorkOptions",
    "engine_options",
    "judge",
    "start_of",
    "suite_option",
    "summary",
    "work_options",
]

_SHOWN_NAME_CHARS: Final = 40
"""The characters of the name of a case that a progress bar shows."""

suite_option: Final = click.option(
    "--suite", metavar="FILE", help="Another suite; `internal` has the internal operations. [default: that of irrun]"
)


@dataclass(frozen=True)
class EngineOptions:
    """One engine, as a side or as the command of a harness, with its limits."""

    side: str | None
    program: str | None
    limit: LimitOptions

    @property
    def start(self) -> Start:
        """What starts the engine. Raises click.UsageError if none or two are named."""
        if (self.side is None) == (self.program is None):
            raise click.UsageError("pass an engine, such as openvino, or --harness with the command of a harness")
        return start_of(self.side, self.program)


engine_options: Final = together(
    click.argument("side", metavar="[ENGINE]", required=False),
    click.option("--harness", "program", metavar="COMMAND", help="The command of a harness, instead of ENGINE."),
    limit_options,
)
"""The options that fill ``EngineOptions``."""


def start_of(side: str | None, program: str | None) -> Start:
    """Return what starts the engine of a side or, without a side, the harness of a command.

    Raises click.BadParameter if the command cannot be read.
    """
    if program is None:
        return starter(side or "")
    try:
        words = shlex.split(program)
    except ValueError as error:
        raise click.BadParameter(f"cannot read {program!r}: {error}", param_hint="--harness") from None
    if not words:
        raise click.BadParameter("the command is empty", param_hint="--harness")
    return partial(harness, words)


@dataclass(frozen=True)
class WorkOptions:
    """Which cases engines do, and how many engines at a time."""

    suite: str | None
    only: Sequence[str]
    every: int
    jobs: int

    def cases(self) -> tuple[Suite, list[Case]]:
        """Return the suite, and the cases whose names match a pattern. Raises click.BadParameter if none does."""
        whole = read_suite(self.suite or SUITE)
        cases = [case for case in whole.cases if not self.only or any(fnmatchcase(case.name, p) for p in self.only)]
        if not cases:
            message = "the suite has no case"
            if self.only:
                message = f"no case has a name like {self.only[0]!r}; write 'Tile-1/*'"
            raise click.BadParameter(message, param_hint="--only")
        return whole, cases[:: self.every]


work_options: Final = together(
    click.option("--only", metavar="PATTERN", multiple=True, help="Cases whose name matches, such as 'Tile-1/*'."),
    click.option(
        "--every", type=click.IntRange(min=1), metavar="N", default=1, help="Every N-th of these cases: a sample."
    ),
    jobs_option(1),
    suite_option,
)
"""The options that fill ``WorkOptions``."""


def judge(suite: Suite, cases: Sequence[Case], start: Start, target: Path, limits: Limits, jobs: int) -> Run:
    """Let an engine do cases, and show how far it is."""
    err = _terminal.console(stderr=True)
    with Progress(console=err, transient=True, disable=not err.is_interactive) as bar:
        task = bar.add_task("cases", total=len(cases))

        def show(result: Result, done: int, total: int) -> None:
            name = printable(result.name)[:_SHOWN_NAME_CHARS].ljust(_SHOWN_NAME_CHARS)
            bar.update(task, description=name, completed=done, total=total)

        return run(suite, cases, start, target, limits=limits, jobs=jobs, on_result=show)


def summary(run: Run) -> str:
    """Return in a line how many cases of a run have each status."""
    judged = run.cases - run.count("recorded")
    parts = [f"{run.count('passed'):,} of {judged:,} passed"]
    parts += [f"{run.count(status):,} {status}" for status in ("failed", "skipped", "recorded") if run.count(status)]
    return ", ".join(parts)
