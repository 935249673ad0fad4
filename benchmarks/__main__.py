"""The command: `python -m benchmarks --help`."""

from __future__ import annotations

import importlib
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

GROUPS = {
    "operations": "operations",
    "convolutions": "operations",
    "networks": "networks",
    "scale": "scale",
    "starts": "starts",
    "reading": "starts",
    "growth": "growth",
}
"""The cases of a group are what the function of its name in this module gives."""


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("wanted", nargs=-1, metavar="[GROUP|NAME]...")
@click.option("--threads", type=click.IntRange(1), default=1, show_default=True, help="For each engine.")
@click.option("--seconds", type=click.FloatRange(0), default=0.5, show_default=True, help="The least for each engine.")
@click.option("--cpu", is_flag=True, help="Time the processor, not the clock: where others load the machine.")
@click.option("--exact", is_flag=True, help="irrun without its faster algorithms.")
@click.option("--save", type=click.Path(dir_okay=False, path_type=Path), help="Write the figures as JSON.")
@click.option("--against", type=click.Path(dir_okay=False, path_type=Path), help="Compare with a run that was saved.")
@click.option("--cache", type=click.Path(file_okay=False, path_type=Path), help="The folder of converted networks.")
def main(
    wanted: Sequence[str], threads: int, seconds: float, cpu: bool, exact: bool, save: Path | None,
    against: Path | None, cache: Path | None,
) -> None:  # fmt: skip
    """Time irrun next to OpenVINO's CPU plugin in f32, and networks also next to OpenVINO with its defaults.

    GROUP is operations, convolutions, networks, scale, starts, reading or growth; NAME is a part of the name of a
    row. Without any, everything runs, which takes a quarter of an hour.

    One thread: the engines in turn, call by call, in this process. With more threads, and for the tokens of a
    language model, each engine has a process of its own, and whole sequences. The ratio is OpenVINO's median over
    that of irrun: higher is better. ± is half the distance between the quartiles, "of least" the ratio of the
    fastest calls, which other work on the machine disturbs less. Errors are relative to irrun with exact. MB are the
    peak of memory in a process of its own, beyond what was there before the model.
    """
    if cpu and threads > 1:
        raise click.UsageError("--cpu adds up what all threads take; it is for one thread")
    for library in ("OPENBLAS", "OMP", "MKL"):  # read when numpy is imported, so everything that imports it comes later
        os.environ[f"{library}_NUM_THREADS"] = str(threads)
    from rich.console import Console

    from benchmarks import report
    from benchmarks.case import Row, Setup, measure

    setup = Setup(cache or Path(tempfile.gettempdir(), "irrun-benchmarks"), threads, seconds, exact, cpu)
    chosen = _chosen(wanted, setup)
    try:
        earlier = report.load(against) if against else {}
    except (OSError, ValueError) as error:
        raise click.UsageError(str(error)) from None
    out = Console()
    if not out.is_terminal:
        out.width = 320
    facts = report.machine(setup)
    out.print(", ".join(f"{name} {value}" for name, value in facts.items()), highlight=False, soft_wrap=True)
    rows: list[Row] = []
    try:
        for group, cases in chosen.items():
            found: list[Row] = []
            for number, case in enumerate(cases, 1):
                _progress(f"{group}, {number} of {len(cases)}: {case.name}")
                found.append(measure(group, case, setup))
                rows.append(found[-1])
            _progress("")
            out.print()
            out.print(report.table(group, found, earlier))
            for line in report.summary(found):
                out.print(line, highlight=False, markup=False, soft_wrap=True)
    finally:  # an interrupt, too, leaves what there is
        if save:
            report.save(save, facts, rows)
    if any(row.failed for row in rows):
        sys.exit(1)


def _progress(text: str) -> None:
    """A line that the next one overwrites; nothing of it runs in a thread while something is measured."""
    if sys.stderr.isatty():
        click.echo(f"\r\x1b[K{text}", nl=False, err=True)


def _chosen(wanted: Sequence[str], setup: Any) -> dict[str, list[Any]]:
    """The cases to run, by group. Raises UsageError where there are none of a name."""
    cases: dict[str, list[Any]] = {
        group: list(getattr(importlib.import_module(f"benchmarks.{module}"), group)(setup))
        for group, module in GROUPS.items()
    }
    for word in wanted:
        if not any(_means(word, group, case) for group, own in cases.items() for case in own):
            raise click.UsageError(f"no row is called {word!r}; the groups are {', '.join(cases)}")
    if wanted:
        cases = {g: [c for c in own if any(_means(word, g, c) for word in wanted)] for g, own in cases.items()}
    return {group: own for group, own in cases.items() if own}


def _means(word: str, group: str, case: Any) -> bool:
    return word == group if word in GROUPS else word.lower() in case.name.lower()


if __name__ == "__main__":
    main()
