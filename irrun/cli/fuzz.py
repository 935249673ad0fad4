"""``irrun fuzz`` (judge): Grow random models, and let engines disagree about them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any, Final

import click
from rich.progress import Progress

from irrun.base.text import printable
from irrun.cli import _terminal
from irrun.cli._exclusions import Exclusion, refuse
from irrun.cli._input_options import seed_option
from irrun.cli._judging import LimitOptions, limit_options
from irrun.cli._options import folder_to_write, format_option, jobs_option
from irrun.cli._settings import with_settings
from irrun.engines.opening import open
from irrun.fuzz import Campaign, Figures, Finding, Job, compiled, forms, run_jobs, summary, unreached

__all__ = ["command"]

_MODELS_OF_TIMED_CAMPAIGN: Final = 10_000_000
"""The number of models of a campaign that ends with its time."""


_EXCLUSIONS: Final = tuple(
    Exclusion((one,), "pass --minutes, --count or --model, not two of them", others=(other,))
    for one, other in combinations(("--minutes", "--count", "--model"), 2)
)


@dataclass(frozen=True)
class Settings:
    """The options of ``irrun fuzz``."""

    side: str | None
    minutes: float | None
    count: int | None
    seed: int
    model: int | None
    jobs: int
    output: str | None
    compiled: str | None
    limit: LimitOptions
    quota: bool
    form: str


@click.command("fuzz")
@click.option("--against", "side", metavar="SIDE", help="The engine, such as openvino. [default: irrun against itself]")
@click.option(
    "--minutes", type=click.FloatRange(min=0, min_open=True), metavar="MINUTES", help="How long. [default: 1]"
)
@click.option("--count", type=click.IntRange(min=1), metavar="N", help="How many models, instead of how long.")
@seed_option("models", 1)
@click.option("--model", type=click.IntRange(min=0), metavar="N", help="Only the model with this number.")
@jobs_option(1)
@click.option("-o", "--output", metavar="FOLDER", help="Write findings.jsonl.xz there, a suite of the findings.")
@click.option(
    "--compiled",
    type=click.Choice(["native", "sse", "avx", "avx2", "avx512"]),
    help="Compile the kernels of every model, for no more than this instruction set.",
)
@limit_options
@click.option("--quota", is_flag=True, help="Fail if an algorithm of the kernels is reached too seldom.")
@format_option("text", "json", is_long=True)
@with_settings(Settings)
def command(settings: Settings) -> int:
    """Grow random models, and let engines disagree about them.

    The models are grown layer by layer from the declarations of all operations.
    irrun's default plan must give what its defining kernels give, also for the static twins of a dynamic model, and
    `irrun check` must find no error. With --against, the engine must give the same. A disagreement is reduced to a
    small model. It is shown once, unless a departure of OpenVINO explains it: those are counted.

    Exit status: 0 no finding, 1 findings, 2 bad usage or no model compared, 130 interrupted by Ctrl-C, after the
    figures so far.
    """
    refuse(_EXCLUSIONS)
    form = settings.compiled
    if form is not None and form not in forms():
        known = ", ".join(forms()) or "none, because numba is not installed or not allowed"
        raise click.UsageError(f"no kernels can be compiled for {form} here: choose one of these: {known}")
    folder = None if settings.output is None else folder_to_write(settings.output)
    out, err = _terminal.console(), _terminal.console(stderr=True)
    figures = Figures()
    with Progress(console=err, transient=True, disable=not err.is_interactive) as bar:
        task = bar.add_task("models", total=settings.count)

        try:
            with nullcontext() if form is None else compiled(form):
                for findings in _judge_models(settings, folder, figures):
                    bar.update(task, completed=figures.graphs)
                    for finding in findings if settings.form == "text" else ():
                        out.print(f"{printable(finding.signature)} (model {finding.number})")
                        out.print(f"  {printable(finding.line)}")
        except KeyboardInterrupt:
            figures.interrupted = True
    absent = unreached(figures.algorithms, figures.graphs) if settings.quota else []
    if figures.interrupted:
        err.print("interrupted: the figures so far")
    if settings.form == "json":
        _terminal.print_json(_record(figures))
    else:
        for line in summary(figures):
            out.print(line)
        for line in absent:
            out.print(f"not reached often enough: {line}")
    if figures.interrupted:
        return 130
    if figures.findings or absent:
        return 1
    judged = figures.graphs - figures.invalid
    if not judged or (settings.side is not None and figures.refused == judged):
        whom = settings.side if judged else "irrun"
        err.print(f"no model was compared: {figures.graphs} were grown, and {whom} refused them")
        return 2
    return 0


def _judge_models(settings: Settings, folder: Path | None, figures: Figures) -> Iterator[list[Finding]]:
    """Judge the models that the options ask for, in one process or in several. Add to the figures, and yield the
    findings that are new."""
    model, count, side, limits = settings.model, settings.count, settings.side, settings.limit.limits
    seconds = 60 * (settings.minutes or 1) if count is model is None else None
    if settings.jobs > 1 and model is None:
        deadline = None if seconds is None else time.time() + seconds
        job = Job(settings.seed, side, limits, 0, count or _MODELS_OF_TIMED_CAMPAIGN, deadline)
        yield from run_jobs(job, settings.jobs, figures, folder)
        return
    with nullcontext() if side is None else open(side, limits) as engine:
        campaign = Campaign(settings.seed, engine, folder, figures)
        for finding in campaign.run(seconds=seconds, first=model or 0, count=count if model is None else 1):
            yield [] if finding is None else [finding]


def _record(figures: Figures) -> dict[str, Any]:
    """Return the figures and findings of a campaign for JSON."""
    return {
        "models": figures.graphs,
        "seconds": figures.seconds,
        "invalid": figures.invalid,
        "refused": figures.refused,
        "outcomes": dict(figures.outcomes),
        "algorithms": dict(figures.algorithms),
        "explained": dict(figures.explained),
        "reached": dict(figures.reached),
        "missing": figures.missing,
        "findings": [
            {
                "model": finding.number,
                "signature": finding.signature,
                "judge": finding.disagreement.judge,
                "kind": finding.disagreement.kind,
                "detail": finding.disagreement.detail,
                "described": finding.line,
                "repeated": figures.repeated[finding.signature],
            }
            for finding in figures.findings
        ],
    }
