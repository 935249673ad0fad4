"""``irrun report`` (look): Describe a model on one page: graph, shapes, values, times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import click

from irrun.arrays.pictures import Pictures
from irrun.base.text import counted, printable
from irrun.cli import _completion, _errors, _models, _terminal
from irrun.cli._comparison_options import ToleranceOptions, tolerance_options
from irrun.cli._exclusions import Exclusion, formats, refuse
from irrun.cli._input_options import input_option, picture_options, seed_option, shape_option
from irrun.cli._inputs import gather, remember_chosen_shapes
from irrun.cli._options import (
    format_option,
    memory_option,
    new_file,
    plugin_option,
    require_ending,
    runs_option,
    timeout_option,
    weights_option,
)
from irrun.cli._settings import with_settings
from irrun.ir.parse import Parsed
from irrun.model import Shapes
from irrun.report import ModelReport, collect
from irrun.running.live import default_max_memory

__all__ = ["command"]


_EXCLUSIONS: Final = (
    Exclusion(
        ("--rtol", "--atol", "--tolerances"),
        "--rtol, --atol and --tolerances apply to a comparison; add --compare, or leave them out",
        unless=("--compare",),
    ),
    Exclusion(("--compare", "--runtime"), "{option} reads the .bin next to the .xml; leave -w out", others=("-w",)),
    Exclusion(
        ("--compare", "--runtime", "--expect"),
        "{option} takes the file as it is; write it at the shape first, with `irrun edit MODEL.xml --shape ...`",
        others=("--shape",),
    ),
    Exclusion(
        ("--output-file",),
        "the page is written with -o FILE.html; --output-file is for --format json",
        unless=formats("json"),
    ),
)


@dataclass(frozen=True)
class Settings:
    """The options of ``irrun report``."""

    model: str
    weights: str | None
    inputs: Sequence[str]
    pictures: Pictures
    shapes: Shapes
    output: str
    side: str | None
    engine: str | None
    expected: str | None
    run: bool
    runs: int
    seed: int
    tolerance: ToleranceOptions
    form: str
    timeout: float | None
    max_memory: int | None


@click.command("report")
@click.argument("model", metavar="MODEL.xml", shell_complete=_completion.files)
@weights_option
@input_option()
@picture_options
@shape_option()
@click.option(
    "-o", "--output", metavar="FILE.html", default="report.html", show_default=True, help="The page to write."
)
@click.option(
    "--compare",
    "side",
    metavar="SIDE",
    help="Also compare the model with SIDE, the reference, such as openvino, on the same inputs: see `irrun compare`.",
)
@click.option(
    "--runtime",
    "engine",
    metavar="SIDE",
    help="Also show the graph that an engine runs, such as 'openvino[precision=f32]', as in `irrun runtime`. [default: "
    "the engine of --compare]",
)
@click.option(
    "--expect",
    "expected",
    metavar="SIDE",
    help="Also show the errors to expect of an engine, such as 'openvino[precision=bf16]', which is not started. "
    "[default: the engine of --compare]",
)
@click.option("--run/--no-run", default=True, show_default=True, help="Run the model, for values and times.")
@runs_option(3)
@seed_option()
@tolerance_options
@plugin_option
@format_option("html", "json", is_long=True)
@timeout_option(None)
@memory_option()
@with_settings(Settings)
def command(settings: Settings) -> int:
    """Describe a model on one page: graph, shapes, values, times.

    The page shows the graph, and of each layer its attributes, its declared and inferred shapes with their formulas,
    the statistics and a histogram of its values, its time, its findings and, with --compare, its error, the error to
    expect in the precision of the engine, and the node that runs it there. It needs no other file and no network. A
    model with errors is reported as well.

    --format json prints the document that the page shows, and writes no page.

    Exit status: 0 success, 1 an error in the model, a failed run or a difference, 2 bad usage or an unreadable input,
    3 an operation that irrun does not support yet.
    """
    refuse(_EXCLUSIONS)
    target = None if settings.form == "json" else new_file(settings.output, "-o")
    if target is not None:
        require_ending(settings.output, "-o", (".html", ".htm"), "a page of HTML")
    parsed = _only(settings.model, settings.weights)
    if settings.shapes:
        parsed = parsed.reshape(settings.shapes)
    tolerances, memory = settings.tolerance.read(), settings.max_memory or default_max_memory()
    feeds, origins = {}, {}
    sides = (settings.side, settings.engine, settings.expected)
    if (settings.run or any(sides)) and not any(problem.blocks for problem in parsed.problems):
        given = gather(parsed.model, settings.inputs, settings.seed, memory, settings.pictures)
        remember_chosen_shapes(given)
        feeds = {position: item.array for position, item in enumerate(given)}
        origins = {position: item.origin for position, item in enumerate(given)}
    report = collect(
        parsed,
        feeds,
        run=settings.run,
        runs=settings.runs,
        seed=settings.seed,
        side=settings.side,
        engine=settings.engine,
        expected=settings.expected,
        tolerances=tolerances,
        timeout=settings.timeout,
        max_memory=memory,
        origins=origins,
    )
    if target is None:
        _terminal.print_json(report.record())
    else:
        report.write(target)
        _terminal.console(stderr=True).print(f"wrote {printable(settings.output)}: {_summary(report)}")
    if report.not_run:
        _errors.show(report.not_run)
    status = _errors.exit_status((*report.findings, *report.not_run))
    return status or int(report.comparison is not None and not report.comparison.agrees)


def _only(path: str, weights: str | None) -> Parsed:
    """Return the model of an IR file. Raises click.UsageError for a page with examples."""
    items = _models.load(path, weights)
    if isinstance(items[0], Parsed) and not _models.is_example(items[0]):
        return items[0]
    raise click.UsageError(f"{path} is a page with examples; pass an IR file")


def _summary(report: ModelReport) -> str:
    """Return in a line what the page shows."""
    errors = sum(finding.severity == "error" for finding in report.findings)
    warnings = len(report.findings) - errors
    parts = [counted(len(report.entries), "layer"), f"{counted(errors, 'error')}, {counted(warnings, 'warning')}"]
    if report.observations is not None:
        parts.append(f"{report.observations.seconds * 1e3:.3g} ms per run")
    elif report.not_run:
        parts.append("the model does not run")
    if report.comparison is not None:
        parts.append(f"comparison: {report.comparison.verdict}")
    if report.expected is not None and (outputs := report.expected.outputs.values()):
        worst = max(output.error for output in outputs)
        parts.append(f"expect an error of {worst:.2g} in {report.expected.precision}")
    return "; ".join(parts)
