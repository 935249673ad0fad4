"""``irrun precision`` (compare): Simulate f16, bf16 or int8, and name the layers that lose most."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import click
import numpy as np

from irrun.base.text import counted
from irrun.cli import _completion, _precision, _terminal
from irrun.cli._comparison_options import sample_options, tolerance_options
from irrun.cli._options import Size, format_option, new_file, plugin_option, weights_option
from irrun.cli._samples import samples
from irrun.debug import Limit, Tolerances, precision, read_tolerances
from irrun.debug.low_precision import ACCUMULATORS, FORMATS
from irrun.files import write_file
from irrun.model import Model
from irrun.running.live import default_max_memory

__all__ = ["command"]


@click.command("precision")
@click.argument("model", metavar="MODEL.xml", shell_complete=_completion.files)
@weights_option
@sample_options
@click.option("--to", type=click.Choice([*FORMATS]), default="f16", show_default=True, help="The precision.")
@click.option(
    "--accumulator", type=click.Choice(ACCUMULATORS), default="f32", show_default=True,
    help="Keep sums in f32, or round them to the same precision after every 32 terms (f16 and bf16).",
)  # fmt: skip
@tolerance_options
@click.option(
    "--runs", type=click.IntRange(min=1), default=64, show_default=True, metavar="N",
    help="The most layers whose effect is measured, by a run for each; the effects of the others are estimated.",
)  # fmt: skip
@click.option("--top", type=click.IntRange(min=1), default=20, show_default=True, help="The most layers to show.")
@click.option("--no-search", is_flag=True, help="Do not search for the layers to keep in full precision.")
@click.option("--keep", metavar="FILE.json", help="Write the names of the layers to keep, as a list.")
@click.option("--ignored-scope", "scope", metavar="FILE.json", help="Write them as the arguments of nncf.IgnoredScope.")
@plugin_option
@format_option("text", "json")
@click.option("--max-memory", type=Size(), help="The most memory, such as 2GiB. [default: 3/4 of the memory]")
def command(
    model: str,
    weights: str | None,
    inputs: Sequence[str],
    count: int | None,
    seed: int,
    to: str,
    accumulator: Literal["f32", "same"],
    rtol: float | None,
    atol: float | None,
    tolerances: str | None,
    runs: int,
    top: int,
    no_search: bool,
    keep: str | None,
    scope: str | None,
    form: str,
    max_memory: int | None,
) -> int:
    """Simulate f16, bf16 or int8, and name the layers that lose most.

    The layers are ranked by what each one alone does to the outputs. If the outputs of the whole model are outside
    their tolerances, a short list of layers is searched for that restores them when it is kept in full precision.

    Precisions: f16, bf16, and int8 for the inputs of matrix products and convolutions, whose weights have one scale
    (int8) or one for each output channel (int8-per-channel).

    Exit status: 0 the outputs are within their tolerances, 1 they are not, or the model or a run fails, 2 bad usage or
    an unreadable input, 3 an operation that irrun does not support.
    """
    if accumulator == "same" and FORMATS[to].is_quantized:
        raise click.UsageError("int8 accumulates exactly; leave out --accumulator, or pass --to f16 or --to bf16")
    if no_search and (keep is not None or scope is not None):
        raise click.UsageError("--no-search finds no layers to keep; leave out --keep and --ignored-scope")
    files = [
        None if path is None else new_file(path, option)
        for path, option in ((keep, "--keep"), (scope, "--ignored-scope"))
    ]
    limits = read_tolerances(tolerances) if tolerances is not None else Tolerances()
    memory = max_memory or default_max_memory()

    def draw(model: Model) -> Iterator[dict[str | int, np.ndarray]]:
        return samples(model, inputs, count, seed, memory)

    with _terminal.console(stderr=True).status("") as status:
        result = precision(
            model, draw, to=to, accumulator=accumulator, tolerances=limits.overridden(Limit(rtol, atol)), runs=runs,
            search=not no_search, weights=weights, max_memory=memory,
            on_run=lambda number: status.update(counted(number, "run")),
        )  # fmt: skip
    if form == "json":
        _terminal.print_json(result.record())
    else:
        _precision.show(_terminal.console(), result, top)
    if files[0] is not None:
        _write(files[0], [layer.name for layer in result.kept.layers] if result.kept is not None else [])
    if files[1] is not None:
        _write(files[1], result.ignored_scope())
    return 0 if result.agrees else 1


def _write(path: Path, data: Any) -> None:
    """Write JSON to a file."""
    write_file(path, json.dumps(data, indent=2).encode("ascii") + b"\n")
