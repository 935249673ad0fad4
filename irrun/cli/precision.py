"""``irrun precision`` (compare): Find the layers that lose most in a lower precision."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

import click

from irrun.base.text import counted
from irrun.cli import _completion, _model_explorer, _precision, _terminal
from irrun.cli._comparison_options import SampleOptions, ToleranceOptions, sample_options, tolerance_options
from irrun.cli._exclusions import Exclusion, refuse
from irrun.cli._options import format_option, memory_option, new_file, plugin_option, top_option, weights_option
from irrun.cli._settings import with_settings
from irrun.debug import precision
from irrun.debug.low_precision.formats import FORMATS
from irrun.debug.low_precision.simulate import ACCUMULATORS
from irrun.files import write_file
from irrun.running.live import default_max_memory

__all__ = ["command"]


_EXCLUSIONS: Final = (
    Exclusion(
        ("--accumulator",),
        "integers accumulate exactly; leave out --accumulator, or pass --to f16 or --to bf16",
        others=tuple(f"--to {name}" for name, known in FORMATS.items() if known.is_quantized),
    ),
    Exclusion(
        ("--group-size",),
        "--group-size is for --to int4 and --to int4-asymmetric",
        unless=tuple(f"--to {name}" for name, known in FORMATS.items() if known.is_int4),
    ),
    Exclusion(
        ("--to", "--accumulator"),
        "--twin takes the precision from the compressed model; leave out {option}",
        others=("--twin",),
    ),
    Exclusion(
        ("--no-search",),
        "--no-search finds no layers to keep; leave out --kept and --ignored-scope",
        others=("--kept", "--ignored-scope"),
    ),
)


@dataclass(frozen=True)
class Settings:
    """The options of ``irrun precision``."""

    model: str
    weights: str | None
    twin: str | None
    sample: SampleOptions
    to: str
    group_size: int
    accumulator: Literal["f32", "same"]
    tolerance: ToleranceOptions
    text: bool
    runs: int
    top: int | None
    no_search: bool
    keep: str | None
    scope: str | None
    form: str
    max_memory: int | None


@click.command("precision")
@click.argument("model", metavar="MODEL.xml", shell_complete=_completion.files)
@weights_option
@click.option(
    "--twin",
    metavar="FLOAT.xml",
    shell_complete=_completion.files,
    help="The model that was compressed into MODEL.xml: compare the two, and simulate nothing else.",
)
@sample_options
@click.option("--to", type=click.Choice([*FORMATS]), default="f16", show_default=True, help="The precision.")
@click.option(
    "--group-size",
    type=click.IntRange(min=0),
    default=128,
    show_default=True,
    metavar="N",
    help="The int4 weights of a row that share a scale; 0 for all of them.",
)
@click.option(
    "--accumulator",
    type=click.Choice(ACCUMULATORS),
    default="f32",
    show_default=True,
    help="Keep sums in f32, or round them to the same precision after every 32 terms (f16 and bf16).",
)
@tolerance_options
@click.option(
    "--text",
    is_flag=True,
    help="Judge outputs [batch, positions, vocabulary] by the greedy token at each position; tolerances say which "
    "tokens are as good.",
)
@click.option(
    "--measure",
    "runs",
    type=click.IntRange(min=1),
    default=64,
    show_default=True,
    metavar="N",
    help="The most layers whose effect is measured, by a run for each; the effects of the others are estimated.",
)
@top_option("20")
@click.option("--no-search", is_flag=True, help="Do not search for the layers to keep in full precision.")
@click.option("--kept", "keep", metavar="FILE.json", help="Write the names of the layers to keep, as a list.")
@click.option("--ignored-scope", "scope", metavar="FILE.json", help="Write them as the arguments of nncf.IgnoredScope.")
@plugin_option
@format_option("text", "json", "model-explorer")
@memory_option()
@with_settings(Settings)
def command(settings: Settings) -> int:
    """Find the layers that lose most in a lower precision.

    The layers are ranked by what each one alone does to the outputs. If the outputs of the whole model are outside
    their tolerances, a short list of layers is searched for that restores them when it is kept in full precision.

    Precisions: f16, bf16, and int8 for the inputs of matrix products and convolutions, whose weights have one scale
    (int8) or one for each output channel (int8-per-channel). int4 and int4-asymmetric are for the weights of matrix
    products alone, in groups that share a scale.

    A compressed model, with weights in int4 or int8 or with FakeQuantize, is examined beside its --twin in floating
    point: how it stores each weight, the signal-to-noise ratio of each weight and layer, and the share of the values
    that each FakeQuantize saturates.

    Exit status: 0 the outputs are within their tolerances, 1 they are not, or the model or a run fails, 2 bad usage or
    an unreadable input, 3 an operation that irrun does not support.
    """
    refuse(_EXCLUSIONS)
    keep = None if settings.keep is None else new_file(settings.keep, "--kept")
    scope = None if settings.scope is None else new_file(settings.scope, "--ignored-scope")
    tolerances, memory = settings.tolerance.read(), settings.max_memory or default_max_memory()
    with _terminal.console(stderr=True).status("") as status:
        result = precision(
            settings.model,
            settings.sample.drawn(memory),
            to=settings.to,
            group_size=settings.group_size,
            twin=settings.twin,
            accumulator=settings.accumulator,
            tolerances=tolerances,
            text=settings.text,
            runs=settings.runs,
            search=not settings.no_search,
            weights=settings.weights,
            max_memory=memory,
            on_run=lambda number: status.update(counted(number, "run")),
        )
    if settings.form == "json":
        _terminal.print_json(result.record())
    elif settings.form == "model-explorer":
        _model_explorer.print_precision(settings.model, result)
    else:
        _precision.show(_terminal.console(), result, settings.top or 20)
    if keep is not None:
        _write(keep, [layer.name for layer in result.kept.layers] if result.kept is not None else [])
    if scope is not None:
        _write(scope, result.ignored_scope())
    return 0 if result.agrees else 1


def _write(path: Path, data: Any) -> None:
    """Write JSON to a file."""
    write_file(path, json.dumps(data, indent=2).encode("ascii") + b"\n")
