"""``irrun conformance run``: let an engine do the cases of the suite."""

from __future__ import annotations

from dataclasses import dataclass

import click

from irrun.cli import _terminal
from irrun.cli._options import format_option, new_file
from irrun.cli._settings import with_settings
from irrun.cli.conformance._shared import EngineOptions, WorkOptions, engine_options, judge, summary, work_options

__all__ = ["command"]


@dataclass(frozen=True)
class Settings:
    """The options of ``irrun conformance run``."""

    engine: EngineOptions
    output: str
    work: WorkOptions
    form: str


@click.command("run")
@engine_options
@click.option("-o", "--output", metavar="FILE.jsonl", required=True, help="The file of results. A later run goes on.")
@work_options
@format_option("text", "json", is_long=True)
@with_settings(Settings)
def command(settings: Settings) -> int:
    """Let an engine do the cases of the suite.

    Each result is written as soon as it is there. A crash, a hang, or too much memory is the result of one case.

    Exit status: 0 every case with a verdict passed, 1 others did not, or no case has a verdict, 2 bad usage or an
    unreadable input.
    """
    start, target = settings.engine.start, new_file(settings.output, "-o")
    suite, cases = settings.work.cases()
    found = judge(suite, cases, start, target, settings.engine.limit.limits, settings.work.jobs)
    if settings.form == "json":
        statuses = ("passed", "failed", "skipped", "recorded")
        counts = {status: found.count(status) for status in statuses}
        _terminal.print_json({"engine": found.engine, "cases": found.cases, **counts})
    else:
        _terminal.console().print(f"{found.engine}: {summary(found)}")
    if found.count("recorded") == found.cases:
        _terminal.console(stderr=True).print("no case has a verdict: nothing was judged; choose others with --only")
    return 0 if found.count("passed") == found.cases - found.count("recorded") > 0 else 1
