"""``irrun conformance scoreboard``: let several engines do the cases, and print a table."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import click

from irrun.cli import _terminal
from irrun.cli._judging import LimitOptions, limit_options
from irrun.cli._options import folder_to_write, format_option
from irrun.cli._settings import with_settings
from irrun.cli.conformance._shared import WorkOptions, judge, start_of, work_options
from irrun.conformance.scoreboard import scoreboard, with_table
from irrun.files import write_file

__all__ = ["command"]


@dataclass(frozen=True)
class Settings:
    """The options of ``irrun conformance scoreboard``."""

    sides: Sequence[str]
    programs: Sequence[str]
    limit: LimitOptions
    output: str
    pages: Sequence[str]
    work: WorkOptions
    form: str


@click.command("scoreboard")
@click.argument("sides", metavar="[ENGINE]...", nargs=-1)
@click.option(
    "--harness", "programs", metavar="COMMAND", multiple=True, help="The command of a harness: an engine too."
)
@limit_options
@click.option("-o", "--output", metavar="FOLDER", required=True, help="The folder of the results. A later run goes on.")
@click.option("--page", "pages", metavar="FILE.md", multiple=True, help="A page into which the table is written.")
@work_options
@format_option("text", "json", is_long=True)
@with_settings(Settings)
def command(settings: Settings) -> int:
    """Let several engines do the cases, one after the other, and print a table of what they passed.

    A page has the table between the lines <!-- scoreboard --> and <!-- end -->.
    """
    starts = {side: start_of(side, None) for side in settings.sides}
    starts |= {text: start_of(None, text) for text in settings.programs}
    if not starts:
        raise click.UsageError("pass engines, such as irrun openvino")
    folder, limits, jobs = folder_to_write(settings.output), settings.limit.limits, settings.work.jobs
    for page in settings.pages:
        with_table(Path(page), "")  # an error now, and not after hours
    suite, cases = settings.work.cases()
    folder.mkdir(parents=True, exist_ok=True)
    runs = [judge(suite, cases, start, folder / _file_name(name), limits, jobs) for name, start in starts.items()]
    board = scoreboard(suite, cases, runs)
    text = board.markdown()
    for page in settings.pages:
        write_file(page, with_table(Path(page), text))
    if settings.form == "json":
        _terminal.print_json(asdict(board))
    else:
        click.echo(text, nl=False)
    return 0


def _file_name(engine: str) -> str:
    """Return the name of the file with the results of an engine, from how a user names the engine."""
    return re.sub(r"[^\w.]+", "-", engine).strip("-.") + ".jsonl"
