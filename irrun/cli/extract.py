"""``irrun extract`` (change): Cut a sub-model out of a model."""

from __future__ import annotations

from collections.abc import Sequence

import click

from irrun import api
from irrun.base.text import printable
from irrun.checking.facts import written
from irrun.cli import _completion, _terminal
from irrun.cli._options import force_option, format_option, model_to_write, plugin_option, weights_option
from irrun.ir.extract import extract
from irrun.ir.write import save_model

__all__ = ["command"]


@click.command("extract")
@click.argument("model", metavar="MODEL.xml", shell_complete=_completion.files)
@weights_option
@plugin_option
@click.option(
    "--from",
    "begin",
    metavar="LAYER",
    multiple=True,
    shell_complete=_completion.layers,
    help="First layer of the sub-model, by name or glob. May be repeated. [default: the inputs]",
)
@click.option(
    "--to",
    "end",
    metavar="LAYER",
    multiple=True,
    shell_complete=_completion.layers,
    help="Last layer of the sub-model, by name or glob. May be repeated. [default: the outputs]",
)
@click.option("-o", "--output", metavar="OUT.xml", required=True, help="The .xml to write, with its .bin next to it.")
@force_option
@format_option("text", "json", is_long=True)
def command(
    model: str, weights: str | None, begin: Sequence[str], end: Sequence[str], output: str, force: bool, form: str
) -> int:
    """Cut a sub-model out of a model.

    The sub-model holds the layers on all paths from the first layers to the last layers, both included. A
    non-constant value that enters the sub-model becomes an input, named after the layer that produced it. The new
    .bin holds only the constants of the sub-model.
    """
    model_to_write(output, "-o", force=force)
    part = extract(api.read_model(model, weights), begin, end)
    save_model(part, output, compact=True)
    if form == "json":
        _terminal.print_json(written(part, output))
        return 0
    inputs = ", ".join(p.name for p in part.parameters) or "none"
    outputs = ", ".join(part.result_name(r) for r in part.results) or "none"
    message = printable(f"wrote {output}: {len(part.layers)} layers; inputs {inputs}; outputs {outputs}")
    _terminal.console(stderr=True).print(message)
    return 0
