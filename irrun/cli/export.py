"""``irrun export`` (change): Write a model as ONNX, and verify it in onnxruntime."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click
import numpy as np

from irrun import api
from irrun.base.text import counted, printable
from irrun.cli import _completion, _terminal
from irrun.cli._input_options import input_option, shape_option
from irrun.cli._inputs import gather, remember_chosen_shapes
from irrun.cli._options import format_option, new_file, plugin_option, require_ending, weights_option
from irrun.cli._samples import samples
from irrun.cli._servers import missing
from irrun.diagnostics import ExecutionError
from irrun.model import Model, Shapes
from irrun.running.live import default_max_memory

if TYPE_CHECKING:
    from irrun.export import Written

__all__ = ["command"]


@click.command("export")
@click.argument("model", metavar="MODEL.xml", shell_complete=_completion.files)
@weights_option
@plugin_option
@click.option("--opset", type=int, metavar="N", help="The operation set of ONNX to write, from 17 on. [default: 21]")
@click.option(
    "--external",
    is_flag=True,
    help="Write constants to OUT.onnx.data. [default: if they take about 2 GiB or more]",
)
@click.option(
    "--functions",
    is_flag=True,
    help="Write a layer that ONNX cannot say as a function of org.openvino, which your runtime has to bring.",
)
@shape_option()
@input_option(" The exported model is compared on it.")
@click.option("--no-verify", is_flag=True, help="Do not run the exported model in onnxruntime.")
@click.option("-o", "--output", metavar="OUT.onnx", required=True, help="The file to write.")
@format_option("text", "json", is_long=True)
def command(
    model: str,
    weights: str | None,
    opset: int | None,
    external: bool,
    functions: bool,
    inputs: Sequence[str],
    output: str,
    form: str,
    shapes: Shapes,
    no_verify: bool,
) -> int:
    """Write a model as ONNX, and verify it in onnxruntime.

    Each layer becomes operations of ONNX that compute what its page says; a layer for which ONNX has none is refused,
    or becomes a function (--functions).
    ReadValue and Assign become inputs and outputs. Before the file is written, onnx.checker checks the model, and
    onnxruntime runs it on the same inputs as irrun. This needs the packages onnx and onnxruntime: the extra `onnx`.
    """
    require_ending(output, "-o", (".onnx",), "ONNX")
    target = new_file(output, "-o")
    try:
        from irrun.export import OPSET, to_onnx
    except ModuleNotFoundError as error:
        raise missing(error, "onnx") from None
    whole = api.read_model(model, weights)
    if shapes:
        whole = whole.reshape(shapes)
    try:
        written = to_onnx(
            whole, target, opset=OPSET if opset is None else opset, external=external or None, functions=functions,
            verify=not no_verify, feeds=_feeds(whole, inputs) if inputs else None,
        )  # fmt: skip
    except ExecutionError:
        if not inputs:  # the export has drawn them
            remember_chosen_shapes(gather(whole, (), 0, default_max_memory()))
        raise
    if form == "json":
        _terminal.print_json(_record(written))
        return 0
    proof = "not verified" if no_verify else f"equal in onnxruntime on {'the inputs' if inputs else '2 random inputs'}"
    files = " and ".join(str(file) for file in written.files)
    message = f"wrote {files}: {counted(written.nodes, 'node')} of operation set {written.opset}; "
    message += f"inputs {', '.join(written.inputs) or 'none'}; outputs {', '.join(written.outputs) or 'none'}; {proof}"
    message += f"; your runtime needs {', '.join(written.functions)}" if written.functions else ""
    _terminal.console(stderr=True).print(printable(message))
    return 0


def _feeds(model: Model, inputs: Sequence[str]) -> Iterator[dict[int, np.ndarray]]:
    """Yield the inputs of each run, by position."""
    for feeds in samples(model, inputs, None, 0, default_max_memory()):
        yield {model.known_input(key): array for key, array in feeds.items()}


def _record(written: Written) -> dict[str, object]:
    """Return what was written, for JSON."""
    return {
        "version": 1,
        "command": "export",
        "wrote": [str(file) for file in written.files],
        "opset": written.opset,
        "nodes": written.nodes,
        "inputs": list(written.inputs),
        "outputs": list(written.outputs),
        "states": dict(written.states),
        "verified": written.verified,
        "functions": list(written.functions),
    }
