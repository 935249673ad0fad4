"""``irrun diff`` (compare): Show where two models, or the graphs of engines, differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import click

from irrun import api
from irrun.cli import _completion, _difference, _errors, _markdown, _runtime_difference, _terminal
from irrun.cli._comparison_options import LimitOptions, limit_options
from irrun.cli._exclusions import Exclusion, formats, refuse
from irrun.cli._input_options import input_option, seed_option
from irrun.cli._inputs import gather, remember_chosen_shapes
from irrun.cli._options import all_option, format_option, plugin_option, runs_option
from irrun.cli._settings import with_settings
from irrun.debug.difference import Difference, diff
from irrun.debug.runtime import Runtime, RuntimeDifference, difference, runtime
from irrun.diagnostics import IrrunError
from irrun.engines import names_engine, parse_sides

__all__ = ["command"]


_EXCLUSIONS: Final = (
    Exclusion(
        ("-i", "--runs", "--seed", "--timeout", "--max-memory"),
        "{option} is for engines, and nothing runs; write openvino:MODEL.xml for a side, or leave {option} out",
        others=("files",),
    ),
    Exclusion(formats("markdown"), "--format {form} is for files; choose text or json", others=("engines",)),
    Exclusion(("--rt-info",), "--rt-info compares files; pass two files, or leave it out", others=("engines",)),
)


@dataclass(frozen=True)
class Settings:
    """The options of ``irrun diff``."""

    a: str
    b: str
    weights_a: str | None
    weights_b: str | None
    rt_info: bool
    everything: bool
    inputs: Sequence[str]
    seed: int
    runs: int
    limit: LimitOptions
    form: str


@click.command("diff")
@click.argument("a", metavar="A", shell_complete=_completion.files)
@click.argument("b", metavar="B", shell_complete=_completion.files)
@click.option("--weights-a", metavar="BIN", help="The .bin file of A. [default: next to the .xml, with the same name]")
@click.option("--weights-b", metavar="BIN", help="The .bin file of B. [default: next to the .xml, with the same name]")
@click.option("--rt-info", is_flag=True, help="Also compare rt_info and other elements that irrun does not use.")
@all_option
@input_option(" For engines.")
@seed_option()
@runs_option(11)
@limit_options
@plugin_option
@format_option("text", "json", "markdown")
@with_settings(Settings)
def command(settings: Settings) -> int:
    """Show where two models, or the graphs of engines, differ.

    A and B are two IR files, or engines as in `irrun compare`: openvino:model.xml 'openvino[precision=f32]'.

    Layers are matched by name, then by type, attributes, shapes, weights and neighbours. Ids, the order of layers, and
    the places of weights in the .bin make no difference. Weights are compared by value, in blocks. If a model has no
    .bin, the rest is compared. A constant with the layers that decompress or quantize it is one weight, of which the
    values after these layers are compared.

    A summary by kind comes first. Layers of which only the declared shapes or precisions differ, because those of their
    inputs do, and layers that decompress a weight are counted and not listed. Of many layers that differ alike, three
    are listed: of weights, the three with the largest errors.

    --format markdown is a comment for a pull request, with a picture that GitHub and GitLab draw.

    With engines, the runtime graphs are compared: which layers other nodes compute, in which precision, by which
    kernel and in which layout, which conversions are inserted, which patterns are fused, and how the times differ.

    Exit status: 0 the models or graphs are the same, 1 they differ, 2 bad usage, an unreadable file, an error in a
    model, or an engine that shows no graph.
    """
    are_engines = names_engine(settings.a) or names_engine(settings.b)
    refuse(_EXCLUSIONS, "engines" if are_engines else "files")
    try:
        found = _graphs(settings) if are_engines else _models(settings)
    except IrrunError as error:
        status = max(2, _errors.exit_status(error.diagnostics))
        _errors.show(error.diagnostics)
        if settings.form == "json":
            _errors.print_json("diff", status, str(error), error)
        return status
    if settings.form == "json":
        _terminal.print_json(found.record())
    elif isinstance(found, RuntimeDifference):
        _runtime_difference.show(_terminal.console(), found, everything=settings.everything)
    elif settings.form == "markdown":
        _terminal.console().print(_markdown.comment(found, everything=settings.everything))
    else:
        _difference.show(_terminal.console(), found, everything=settings.everything)
    return 0 if found.same else 1


def _models(settings: Settings) -> Difference:
    models = (api.read_model(settings.a, settings.weights_a), api.read_model(settings.b, settings.weights_b))
    return diff(*models, rt_info=settings.rt_info)


def _graphs(settings: Settings) -> RuntimeDifference:
    """Run the model of each side, and compare the graphs of both engines."""
    results: list[Runtime] = []
    sides, limit = parse_sides(settings.a, settings.b), settings.limit
    for side, path in zip(sides, (settings.weights_a, settings.weights_b)):
        side = side.with_weights(path)
        given = gather(api.read_model(str(side.path), side.weights), settings.inputs, settings.seed, limit.memory)
        remember_chosen_shapes(given)
        arrays = {position: item.array for position, item in enumerate(given)}
        results.append(runtime(str(side.path), side, arrays, runs=settings.runs, limits=limit.limits))
    return difference(*results)
