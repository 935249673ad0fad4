"""``irrun batch`` (run): Run a model for many inputs, in several processes."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import click

from irrun.arrays.pictures import Pictures
from irrun.base.text import counted, printable
from irrun.checking.render import concise, record
from irrun.cli import _completion, _terminal
from irrun.cli._fleet import advancing, dask_option, placed, workers_of
from irrun.cli._input_options import picture_options, shape_option
from irrun.cli._options import (
    exact_option,
    folder_to_write,
    format_option,
    jobs_option,
    memory_option,
    plugin_option,
    precision_option,
    refuse_to_replace,
    timeout_option,
    weights_option,
)
from irrun.cli._settings import with_settings
from irrun.fleet.batch import Batch, Feeding, prepare
from irrun.model import Shapes
from irrun.opdef import Precision

__all__ = ["command"]


_MAX_SHOWN: Final = 20
"""The most inputs that cannot be read or run which are named on standard error."""


@dataclass(frozen=True)
class Settings:
    """The options of ``irrun batch``."""

    model: str
    inputs: Sequence[str]
    output: str
    weights: str | None
    form: str
    shapes: Shapes
    pictures: Pictures
    jobs: int | None
    address: str | None
    batch: int | None
    fail_fast: bool
    overwrite: bool
    exact: bool | None
    precision: Precision
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
@format_option("text", "json", is_long=True)
@shape_option()
@picture_options
@jobs_option("one for each CPU")
@dask_option
@click.option(
    "--batch",
    type=click.IntRange(min=1),
    metavar="N",
    help="Inputs to run at once, which the model must allow. [default: 8 if it does, otherwise 1]",
)
@click.option("--fail-fast", is_flag=True, help="Stop at the first input that cannot be read or run.")
@click.option("--overwrite", is_flag=True, help="Compute every result again, also those that OUT holds.")
@exact_option
@precision_option
@memory_option("3/4 of the memory, shared by all processes", "each process")
@timeout_option(None)
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
    if Path(settings.output).suffix.lower() not in (".npy", ".npz", ".zarr"):
        folder_to_write(settings.output)
    address = settings.address
    model, output, *inputs = placed([settings.model, settings.output, *settings.inputs], address)
    batch = prepare(
        model,
        None if settings.weights is None else placed([settings.weights], address)[0],
        inputs,
        output,
        batch=settings.batch,
        exact=settings.exact,
        precision=settings.precision,
        max_memory=settings.max_memory,
        timeout=settings.timeout,
        overwrite=settings.overwrite,
        feeding=Feeding(settings.shapes, settings.pictures),
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
                    if len(bad) <= _MAX_SHOWN:
                        err.print(f"{printable(name)}: {'; '.join(concise(d) for d in why)}")
                    elif len(bad) == _MAX_SHOWN + 1:
                        err.print("further bad inputs are only counted; --format json lists all of them")
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
