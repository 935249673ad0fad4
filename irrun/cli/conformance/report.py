"""``irrun conformance report``: write pages that show what engines passed."""

from __future__ import annotations

from collections.abc import Sequence

import click

from irrun.base.text import counted, printable
from irrun.cli import _terminal
from irrun.cli._options import folder_to_write, format_option
from irrun.cli.conformance._shared import suite_option
from irrun.conformance import read_run, read_suite, write_report
from irrun.conformance.suite import SUITE

__all__ = ["command"]


@click.command("report")
@click.argument("files", metavar="RESULTS.jsonl...", nargs=-1, required=True)
@click.option("-o", "--output", metavar="FOLDER", required=True, help="The folder of the pages. It is made if needed.")
@suite_option
@format_option("text", "json", is_long=True)
def command(files: Sequence[str], output: str, suite: str | None, form: str) -> int:
    """Write pages that show what engines passed, with each case that one of them did not pass.

    The folder gets index.html, a page for each operation, and badges for https://shields.io. They need no server.
    """
    folder = folder_to_write(output)
    cases, runs = read_suite(suite or SUITE), [read_run(file) for file in files]
    for file, run in zip(files, runs):
        if not run.results.keys() & {case.name for case in cases.cases}:
            raise click.UsageError(f"{file} has the result of no case of the suite")
    pages = write_report(cases, runs, folder)
    if form == "json":
        _terminal.print_json({"wrote": output, "pages": pages})
        return 0
    _terminal.console(stderr=True).print(f"wrote {printable(output)}: {counted(pages, 'page')}")
    return 0
