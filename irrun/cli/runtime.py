"""``irrun runtime`` (compare): Show what an engine runs: fused layers, precisions, times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import click

from irrun import api
from irrun.cli import _completion, _runtime, _terminal
from irrun.cli._comparison_options import LimitOptions, limit_options
from irrun.cli._input_options import input_option, seed_option
from irrun.cli._inputs import gather, remember_chosen_shapes
from irrun.cli._options import all_option, format_option, runs_option, top_option, weights_option
from irrun.cli._settings import with_settings
from irrun.debug.runtime import runtime

__all__ = ["command"]


@dataclass(frozen=True)
class Settings:
    """The options of ``irrun runtime``."""

    model: str
    weights: str | None
    side: str
    inputs: Sequence[str]
    seed: int
    runs: int
    top: int | None
    everything: bool
    form: str
    limit: LimitOptions


@click.command("runtime")
@click.argument("model", metavar="MODEL.xml", shell_complete=_completion.files)
@weights_option
@click.option(
    "--against",
    "side",
    metavar="SIDE",
    default="openvino",
    show_default=True,
    help="The engine, as in `irrun compare`, such as 'openvino[precision=f32]'.",
)
@input_option()
@seed_option()
@runs_option(5)
@top_option("10")
@all_option
@format_option("text", "json")
@limit_options
@with_settings(Settings)
def command(settings: Settings) -> int:
    """Show what an engine runs: fused layers, precisions, times.

    OpenVINO compiles a model into a graph of its own: it folds constants, fuses layers into nodes, inserts conversions
    (Reorder), and chooses a precision for each node. This command shows this graph beside the file: for each layer the
    node that runs it, its precision, its kernel (primitive) and its share of the time. For patterns that plugins fuse
    (LayerNorm, RMSNorm, Gelu, rotary embeddings, attention, compressed weights, quantized products) it names the first
    condition that the file does not meet.

    Each node has the median of its times in several runs. OpenVINO measures whole microseconds.

    Exit status: 0 success, 2 bad usage, an unreadable file, or an engine that does not run the model or shows no graph.
    """
    model = api.read_model(settings.model, settings.weights)
    given = gather(model, settings.inputs, settings.seed, settings.limit.memory)
    remember_chosen_shapes(given)
    result = runtime(
        settings.model,
        settings.side,
        {position: item.array for position, item in enumerate(given)},
        runs=settings.runs,
        weights=settings.weights,
        limits=settings.limit.limits,
    )
    if settings.form == "json":
        _terminal.print_json(result.record())
    else:
        _runtime.show(_terminal.console(), result, settings.top or 10, everything=settings.everything)
    return 0
