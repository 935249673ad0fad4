"""``irrun fuzz``: grow random models, and let engines disagree about them."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click
from rich.progress import Progress

from irrun.cli import _terminal
from irrun.cli._options import Size, format_option
from irrun.diagnostics import printable
from irrun.engines import Limits
from irrun.engines.opening import open
from irrun.fuzz import Campaign, Figures, Finding, summary
from irrun.running.live import default_max_memory

__all__ = ["command"]


@click.command("fuzz")
@click.option("--against", "side", metavar="SIDE", help="An engine, such as openvino. [default: irrun against itself]")
@click.option("--minutes", type=click.FloatRange(min=0, min_open=True), metavar="N", help="How long. [default: 1]")
@click.option("--count", type=click.IntRange(min=1), metavar="N", help="How many models, instead of how long.")
@click.option(
    "--seed", type=click.IntRange(min=0), default=1, show_default=True, metavar="N", help="Another seed, other models."
)
@click.option("-o", "--output", metavar="FOLDER", help="Write findings.jsonl.xz there, a suite of the findings.")
@click.option(
    "--timeout", type=click.FloatRange(min=0, min_open=True), default=60, show_default=True, metavar="SECONDS",
    help="The most seconds that the engine may take for a request.",
)  # fmt: skip
@click.option("--max-memory", type=Size(), help="The most memory of the engine. [default: 1/4 of the memory]")
@format_option("text", "json")
def command(
    side: str | None, minutes: float | None, count: int | None, seed: int, output: str | None, timeout: float,
    max_memory: int | None, form: str,
) -> int:  # fmt: skip
    """Grow random models, and let engines disagree about them.

    The models are grown layer by layer from the declarations of all operations.
    irrun's default plan must give what its defining kernels give, also for the static twins of a dynamic model, and
    `irrun check` must find no error. With --against, the engine must give the same. A disagreement is reduced to a
    small model. It is shown once, with the departure of the conformance suite that it resembles.

    Exit status: 0 no finding, 1 findings, 2 bad usage, 130 interrupted by Ctrl-C, after the figures so far.
    """
    if minutes is not None and count is not None:
        raise click.UsageError("pass --minutes or --count, not both")
    folder = None if output is None else Path(output)
    if folder is not None and folder.exists() and not folder.is_dir():
        raise click.BadParameter(f"{output} is a file; pass a folder", param_hint="-o")
    out, err = _terminal.console(), _terminal.console(stderr=True)
    with ExitStack() as stack:
        limits = Limits(timeout, max_memory or default_max_memory() // 3)
        engine = None if side is None else stack.enter_context(open(side, limits))
        bar = stack.enter_context(Progress(console=err, transient=True, disable=not err.is_interactive))
        task = bar.add_task("models", total=count)

        def show(finding: Finding) -> None:
            if form == "json":
                return
            out.print(f"{printable(finding.signature)} (model {finding.number})")
            out.print(f"  {printable(finding.disagreement.detail)}")
            if finding.known:
                out.print(f"  resembles {finding.known}")

        def progress(figures: Figures) -> None:
            bar.update(task, completed=figures.graphs)

        campaign = Campaign(seed, engine, folder, progress, show)
        seconds = None if count is not None else 60 * (minutes or 1)
        interrupted = False
        try:
            campaign.run(seconds=seconds, count=count)
        except KeyboardInterrupt:
            interrupted = True
            err.print("interrupted: the figures so far")
    figures = campaign.figures
    if form == "json":
        _terminal.print_json(_record(figures))
    else:
        for line in summary(figures):
            out.print(line)
    return 130 if interrupted else int(bool(figures.findings))


def _record(figures: Figures) -> dict[str, Any]:
    """Return the figures and findings of a campaign for JSON."""
    return {
        "models": figures.graphs, "seconds": figures.seconds, "invalid": figures.invalid, "refused": figures.refused,
        "repeated": figures.repeated, "outcomes": dict(figures.outcomes), "reasons": dict(figures.reasons),
        "reached": dict(figures.reached), "missing": figures.missing,
        "findings": [
            {
                "model": finding.number, "signature": finding.signature, "judge": finding.disagreement.judge,
                "kind": finding.disagreement.kind, "detail": finding.disagreement.detail,
                "known": finding.known or None,
            }
            for finding in figures.findings
        ],
    }  # fmt: skip
