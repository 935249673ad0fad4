"""``irrun fuzz`` (judge): Grow random models, and let engines disagree about them."""

from __future__ import annotations

import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Final

import click
from rich.progress import Progress

from irrun.base.text import printable
from irrun.cli import _terminal
from irrun.cli._options import Size, format_option
from irrun.engines import Limits
from irrun.engines.opening import open
from irrun.fuzz import Campaign, Figures, Finding, Job, run_jobs, summary
from irrun.running.live import default_max_memory

__all__ = ["command"]

_ENDLESS: Final = 10_000_000
"""The number of models of a campaign that ends with its time."""


@click.command("fuzz")
@click.option("--against", "side", metavar="SIDE", help="An engine, such as openvino. [default: irrun against itself]")
@click.option("--minutes", type=click.FloatRange(min=0, min_open=True), metavar="N", help="How long. [default: 1]")
@click.option("--count", type=click.IntRange(min=1), metavar="N", help="How many models, instead of how long.")
@click.option(
    "--seed", type=click.IntRange(min=0), default=1, show_default=True, metavar="N", help="Another seed, other models."
)
@click.option("--model", type=click.IntRange(min=0), metavar="N", help="Only the model with this number.")
@click.option(
    "-j", "--jobs", type=click.IntRange(min=1), default=1, show_default=True, metavar="N",
    help="Processes, each with an engine of its own. They share the models in blocks.",
)  # fmt: skip
@click.option("-o", "--output", metavar="FOLDER", help="Write findings.jsonl.xz there, a suite of the findings.")
@click.option(
    "--timeout", type=click.FloatRange(min=0, min_open=True), default=60, show_default=True, metavar="SECONDS",
    help="The most seconds that the engine may take for a request.",
)  # fmt: skip
@click.option("--max-memory", type=Size(), help="The most memory of the engine. [default: 1/4 of the memory]")
@format_option("text", "json")
def command(
    side: str | None, minutes: float | None, count: int | None, seed: int, model: int | None, jobs: int,
    output: str | None, timeout: float, max_memory: int | None, form: str,
) -> int:  # fmt: skip
    """Grow random models, and let engines disagree about them.

    The models are grown layer by layer from the declarations of all operations.
    irrun's default plan must give what its defining kernels give, also for the static twins of a dynamic model, and
    `irrun check` must find no error. With --against, the engine must give the same. A disagreement is reduced to a
    small model. It is shown once, unless a departure of OpenVINO explains it: those are counted.

    Exit status: 0 no finding, 1 findings, 2 bad usage, 130 interrupted by Ctrl-C, after the figures so far.
    """
    if sum(option is not None for option in (minutes, count, model)) > 1:
        raise click.UsageError("pass --minutes, --count or --model, not two of them")
    folder = None if output is None else Path(output)
    if folder is not None and folder.exists() and not folder.is_dir():
        raise click.BadParameter(f"{output} is a file; pass a folder", param_hint="-o")
    out, err = _terminal.console(), _terminal.console(stderr=True)
    limits = Limits(timeout, max_memory or default_max_memory() // 3)
    seconds = 60 * (minutes or 1) if count is model is None else None
    with Progress(console=err, transient=True, disable=not err.is_interactive) as bar:
        task = bar.add_task("models", total=count)

        def show(finding: Finding) -> None:
            if form == "json":
                return
            out.print(f"{printable(finding.signature)} (model {finding.number})")
            out.print(f"  {printable(finding.line)}")

        def progress(figures: Figures) -> None:
            bar.update(task, completed=figures.graphs)

        if jobs > 1 and model is None:
            deadline = None if seconds is None else time.time() + seconds
            job = Job(seed, side, limits, 0, count or _ENDLESS, deadline)
            figures = run_jobs(job, jobs, folder, progress, show)
        else:
            with nullcontext() if side is None else open(side, limits) as engine:
                campaign = Campaign(seed, engine, folder, progress, show)
                figures = campaign.figures
                try:
                    campaign.run(seconds=seconds, first=model or 0, count=count if model is None else 1)
                except KeyboardInterrupt:
                    figures.interrupted = True
    if figures.interrupted:
        err.print("interrupted: the figures so far")
    if form == "json":
        _terminal.print_json(_record(figures))
    else:
        for line in summary(figures):
            out.print(line)
    return 130 if figures.interrupted else int(bool(figures.findings))


def _record(figures: Figures) -> dict[str, Any]:
    """Return the figures and findings of a campaign for JSON."""
    return {
        "models": figures.graphs, "seconds": figures.seconds, "invalid": figures.invalid, "refused": figures.refused,
        "outcomes": dict(figures.outcomes), "explained": dict(figures.explained),
        "reached": dict(figures.reached), "missing": figures.missing,
        "findings": [
            {
                "model": finding.number, "signature": finding.signature, "judge": finding.disagreement.judge,
                "kind": finding.disagreement.kind, "detail": finding.disagreement.detail,
                "described": finding.line, "repeated": figures.repeated[finding.signature],
            }
            for finding in figures.findings
        ],
    }  # fmt: skip
