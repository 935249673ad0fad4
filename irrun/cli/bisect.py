"""``irrun bisect`` (compare): Find the smallest part of a model that an engine gets wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click
from rich.console import Console

from irrun.base.text import apart, counted, printable
from irrun.cli import _terminal
from irrun.cli._comparison import show_content, show_inputs
from irrun.cli._comparison_options import (
    LimitOptions,
    SampleOptions,
    ToleranceOptions,
    limit_options,
    map_option,
    model_options,
    sample_options,
    sides,
    tolerance_options,
)
from irrun.cli._exclusions import Exclusion, refuse
from irrun.cli._options import folder_to_write, format_option
from irrun.cli._settings import with_settings
from irrun.debug import Bisection, bisect, write_reproduction
from irrun.debug.bisection import anonymized
from irrun.engines import Side

__all__ = ["command"]


_EXCLUSIONS: Final = (
    Exclusion(("--anonymize",), "--anonymize changes the reproduction; pass its folder with -o", unless=("-o",)),
)


_MAX_SHOWN: Final = 12
"""The most layers of a part, and the most differences of files, that are printed."""


@dataclass(frozen=True)
class Settings:
    """The options of ``irrun bisect``."""

    reference: str
    candidate: str
    weights: str | None
    sample: SampleOptions
    renames: Mapping[str, str]
    tolerance: ToleranceOptions
    folder: str | None
    anonymize: bool
    form: str
    limit: LimitOptions


@click.command("bisect")
@click.argument("reference", metavar="REFERENCE")
@click.argument("candidate", metavar="CANDIDATE")
@model_options
@sample_options
@map_option
@tolerance_options
@click.option(
    "-o",
    "--output",
    "folder",
    metavar="FOLDER",
    help="Write a reproduction to this folder: the part, its inputs and outputs, a script, and the text of an issue.",
)
@click.option(
    "--anonymize",
    is_flag=True,
    help="Replace the names in the reproduction, and its numbers where the fault survives that.",
)
@format_option("text", "json", is_long=True)
@limit_options
@with_settings(Settings)
def command(settings: Settings) -> int:
    """Find the smallest part of a model that an engine gets wrong.

    REFERENCE and CANDIDATE are written as for `irrun compare`. The reference has to show inner values. The candidate
    is an IR file that irrun or OpenVINO runs. Each layer is judged by what its precision explains, and the first layer
    whose own error is larger is the part. With tolerances, or if a fault vanishes when layers are watched, parts of
    the model are run on true inputs, until the smallest part remains that is as wrong as the whole.

    Exit status: 0 both agree, 1 they differ, or the candidate refuses, crashes or takes too long, 2 bad usage or an
    unreadable input.
    """
    refuse(_EXCLUSIONS)
    tolerances = settings.tolerance.read()
    target = None if settings.folder is None else _target(settings.folder)
    err, limits = _terminal.console(stderr=True), settings.limit.limits
    reference, candidate = sides(settings.reference, settings.candidate, settings.weights)
    with err.status("") as status:
        bisection = bisect(
            reference,
            candidate,
            settings.sample.drawn(settings.limit.memory),
            tolerances=tolerances,
            renames=settings.renames,
            limits=limits,
            on_run=lambda runs, layers: status.update(f"run {runs}: {counted(layers, 'layer')}"),
        )
    _print(bisection, settings.form, (reference, candidate))
    if target is not None and bisection.part is not None:
        if settings.anonymize:
            bisection, replaced = anonymized(bisection, candidate, tolerances, limits)
            words = "names, weights and inputs are replaced" if replaced else "names are replaced, numbers are kept"
            err.print(f"anonymized: {words}")
        rtol, atol = tolerances.of_layer("", "f32")
        write_reproduction(bisection, candidate, target, rtol, atol)
        err.print(f"wrote {printable(settings.folder or '')}: run `python reproduce.py` there")
        if bisection.blames_file:
            err.print("wrote no issue.md: the files of both sides differ, so nothing shows a fault of the engine")
    elif target is not None:
        err.print(f"wrote nothing to {printable(settings.folder or '')}: {_why_no_part(bisection)}")
    return 0 if bisection.verdict == "agree" else 1


def _target(folder: str) -> Path:
    """Return the folder to write. Raises click.BadParameter, before the run, if it cannot be written."""
    target = folder_to_write(folder)
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise click.BadParameter(f"{folder} exists and is not an empty folder; choose another", param_hint="-o")
    if not target.resolve().parent.is_dir():
        raise click.BadParameter(f"there is no folder {target.resolve().parent}; create it first", param_hint="-o")
    return target


def _print(bisection: Bisection, form: str, sides: Sequence[Side]) -> None:
    if form == "json":
        _terminal.print_json(bisection.record())
        return
    out = _terminal.console()
    out.print(f"candidate  {bisection.candidate}")
    out.print(f"runs       {bisection.runs}")
    show_inputs(out, bisection.pairs)
    out.print()
    if bisection.verdict == "agree":
        explained = "no error is larger than the precision explains"
        out.print(f"agree: {explained if bisection.by_budgets else 'the outputs are within the tolerances'}")
        show_content(out, bisection.content, sides)
        return
    _print_layers(out, bisection)


def _print_layers(out: Console, bisection: Bisection) -> None:
    wrong = bisection.wrong
    assert wrong is not None
    headline = f"{bisection.verdict}: the smallest part has {counted(len(bisection.layers), 'layer')}, constants aside"
    out.print(headline)
    shown = bisection.layers[:_MAX_SHOWN]
    rows = [(layer.type, layer.name, f"{layer.file}:{layer.line}") for layer in shown]
    _terminal.print_table(out, ("type", "name", "place"), rows)
    if len(bisection.layers) > _MAX_SHOWN:
        out.print(f"  and {len(bisection.layers) - _MAX_SHOWN} more")
    if wrong.message:
        for line in filter(None, wrong.message.splitlines()):
            out.print(printable(line))
    elif wrong.verdict == "differ":
        out.print(f"the largest error of its outputs is {apart(wrong.excess, 1, 3)[0]} times the tolerance")
    for text in bisection.differences[:_MAX_SHOWN]:
        out.print(printable(text))
    if bisection.differences:
        out.print(f"the {'layer differs' if len(bisection.layers) == 1 else 'layers differ'} between the files")
    if bisection.part is None:
        out.print(_why_no_part(bisection))


def _why_no_part(bisection: Bisection) -> str:
    """Return why there is no part that shows a fault."""
    if bisection.verdict == "agree":
        return "the sides agree"
    if bisection.by_budgets:
        return "run on its own, on the values of the reference, the layer stays within the tolerances of a part"
    return "no smaller part shows the fault: the reference shows too few values, or the whole model is needed"
