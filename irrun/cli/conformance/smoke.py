"""``irrun conformance smoke``: try a harness on a few cases."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from irrun.base.text import printable
from irrun.cli import _terminal
from irrun.cli._options import format_option
from irrun.cli._settings import with_settings
from irrun.cli.conformance._shared import EngineOptions, engine_options, suite_option
from irrun.conformance import read_suite, run
from irrun.conformance.smoke import smoke_cases
from irrun.conformance.suite import SUITE

__all__ = ["command"]


@dataclass(frozen=True)
class Settings:
    """The options of ``irrun conformance smoke``."""

    engine: EngineOptions
    suite: str | None
    form: str


@click.command("smoke")
@engine_options
@suite_option
@format_option("text", "json")
@with_settings(Settings)
def command(settings: Settings) -> int:
    """Try a harness on a few cases, each of which needs another part of the protocol.

    Exit status: 0 every case passed, 1 others did not, 2 bad usage or an unreadable input.
    """
    start, suite = settings.engine.start, read_suite(settings.suite or SUITE)
    purposes = smoke_cases(suite)
    if not purposes:
        raise click.UsageError(f"the suite {settings.suite} has none of the cases of a smoke test")
    with TemporaryDirectory() as folder:
        target = Path(folder, "results")
        found = run(suite, [case for _, case in purposes], start, target, limits=settings.engine.limit.limits)
    results = [(purpose, case.name, found.results[case.name]) for purpose, case in purposes]
    if settings.form == "json":
        rows = [
            {"purpose": purpose, "case": name, "status": result.status, "detail": result.detail}
            for purpose, name, result in results
        ]
        _terminal.print_json({"engine": found.engine, "cases": rows})
    else:
        out = _terminal.console()
        out.print(f"{found.engine}")
        for purpose, name, result in results:
            detail = f": {printable(result.detail)}" if result.status != "passed" else ""
            out.print(f"  {result.status}  {purpose} ({name}){detail}")
    return int(any(result.status != "passed" for _, _, result in results))
