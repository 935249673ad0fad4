"""``irrun batch`` (run): Run a model for many inputs, in several processes."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from irrun.base.text import counted, printable
from irrun.checking.render import concise, record
from irrun.cli import _completion, _terminal
from irrun.cli._fleet import advancing, dask_option, jobs_option, placed, workers_of
from irrun.cli._options import Size, format_option, plugin_option, refuse_to_replace, weights_option
from irrun.cli._settings import with_settings
from irrun.fleet.batch import Batch, prepare

__all__ = ["command"]


@dataclass(frozen=True)
class Settings:
    """The options of ``irrun batch``."""

    model: str
    inputs: Sequence[str]
    output: str
    weights: str | None
    form: str
    jobs: int | None
    address: str | None
    batch: int | None
    fail_fast: bool
    overwrite: bool
    exact: bool | None
    max_memory: int | None
    timeout: float | None


@click.command("batch")
@click.argument("model", metavar="MODEL.xml", shell_complete=_completion.files)
@click.argument("inputs", metavar="INPUT...", nargs=-1, required=True)
@click.option(
    "-o",
    "--output",
    metavar="OUT",
    required=True,
    help="A folder, which gets a file for each input; or a .npy, .npz or .zarr, which gets a row for each.",
)
@weights_option
@plugin_option
@format_option("text", "json")
@jobs_option
@dask_option
@click.option(
    "--batch",
    type=click.IntRange(1),
    metavar="N",
    help="Inputs to run at once, which the model must allow. [default: 8 if it does, otherwise 1]",
)
@click.option("--fail-fast", is_flag=True, help="Stop at the first input that cannot be read or run.")
@click.option("--overwrite", is_flag=True, help="Compute every result again, also those that OUT holds.")
@click.option(
    "--exact", is_flag=True, default=None, help="Compute each layer on its own, by the kernel that defines it."
)
@click.option(
    "--max-memory",
    type=Size(),
    metavar="SIZE",
    help="The most memory that a run may hold at once in each process. [default: 3/4 of the memory, shared by all]",
)
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="The most seconds that one run may take. [default: no limit]",
)
@with_settings(Settings)
def command(settings: Settings) -> int:
    """Run a model for many inputs, in several processes.

    An INPUT is an array file (.npy, .npz with inputs by name), a picture, or a folder of such files. A single .npy,
    .npz or .zarr is a stack: each row along its first axis is an input.

    Results are written as soon as they are known. If a run is interrupted or killed, the same command does what is
    missing, and the output is the same as without the interruption. An input that cannot be read or run is named and
    skipped; the exit status is then 1.
    """
    refuse_to_replace(Path(settings.output), "-o")
    if Path(settings.output).suffix.lower() in (".txt", ".csv", ".json", ".xml"):
        message = f"{settings.output} would be a folder of .npz files; name a folder, or a .zarr"
        raise click.BadParameter(message, param_hint="-o")
    address = settings.address
    model, output, *inputs = placed([settings.model, settings.output, *settings.inputs], address)
    batch = prepare(
        model,
        None if settings.weights is None else placed([settings.weights], address)[0],
        inputs,
        output,
        batch=settings.batch,
        exact=settings.exact,
        max_memory=settings.max_memory,
        timeout=settings.timeout,
        overwrite=settings.overwrite,
    )
    with closing(batch):
        summary = _run(batch, settings)
    if settings.form == "json":
        _terminal.print_json(summary)
    else:
        sys.stdout.flush()
        _terminal.console(stderr=True).print(_sentence(summary))
    return 1 if summary["bad"] else 0


def _run(batch: Batch, settings: Settings) -> dict[str, Any]:
    """Run the inputs that have no result yet, print those that fail, and return what was done, for JSON."""
    err = _terminal.console(stderr=True)
    done, jobs, bad = 0, 0, []
    since = time.monotonic()
    with ExitStack() as stack:
        if batch.left:
            workers = stack.enter_context(workers_of(settings.jobs, settings.address))
            jobs = workers.jobs
            steps = stack.enter_context(closing(batch.run(workers)))
            for step in advancing(((s.done + len(s.bad), s) for s in steps), batch.left, "running", err):
                done += step.done
                for number, why in step.bad:
                    name = batch.inputs.name(number)
                    bad.append({"input": name, "diagnostics": [record(d) for d in why]})
                    err.print(f"{printable(name)}: {'; '.join(concise(d) for d in why)}")
                if step.bad and settings.fail_fast:
                    break
        took = time.monotonic() - since
    return {
        "inputs": len(batch.inputs),
        "done": done,
        "kept": len(batch.inputs) - batch.left,
        "bad": bad,
        "seconds": took,
        "rate": done / took if took and done else 0.0,
        "jobs": jobs,
        "batch": batch.job.batch,
        "other_files": batch.others,
    }


def _sentence(summary: dict[str, Any]) -> str:
    """Return the last line: how many results were written and kept, and how many inputs have none."""
    parts = [f"{summary['done']:,} done"]
    if summary["kept"]:
        parts.append(f"{summary['kept']:,} kept from before")
    if summary["bad"]:
        parts.append(f"{len(summary['bad']):,} bad")
    left = summary["inputs"] - summary["done"] - summary["kept"] - len(summary["bad"])
    if left:
        parts.append(f"{left:,} left")
    if summary["other_files"]:
        parts.append(f"{counted(summary['other_files'], 'file')} of another kind left out")
    rate = f"; {summary['rate']:.1f}/s" if summary["rate"] else ""
    return f"{counted(summary['inputs'], 'input')}: {', '.join(parts)}{rate}"
