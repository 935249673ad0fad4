"""``irrun why`` (check): Trace where the dims of a layer come from."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from irrun.api import no_examples
from irrun.checking.origins import Explanation
from irrun.checking.questions import Asked, at_line, by_glob, by_name, outputs
from irrun.cli import _completion, _models, _terminal
from irrun.cli._input_options import shape_option
from irrun.cli._options import all_option, format_option, plugin_option, weights_option
from irrun.diagnostics import ModelError, ReadError
from irrun.inference.trace import Trace
from irrun.model import Shapes

__all__ = ["command"]


@click.command("why")
@click.argument("path", metavar="MODEL.xml[:LINE]", shell_complete=_completion.files)
@click.argument("what", metavar="[LAYER[:PORT]]", required=False, shell_complete=_completion.layers)
@weights_option
@plugin_option
@format_option("text", "json")
@shape_option()
@all_option
def command(path: str, what: str | None, weights: str | None, form: str, shapes: Shapes, everything: bool) -> int:
    """Trace where the dims of a layer come from.

    Each dim is traced back to Parameters, constants and attributes.

    LAYER is the name of a layer (also of a layer in a body), a glob such as 'conv*', or the name of a tensor. PORT is
    the id of one of the layer's ports, as a finding of `irrun check` shows it. A position in the file can replace them,
    as in MODEL.xml:39 or MODEL.xml:39:6: the line of a layer, a port, a <dim> or an <edge>. Without a layer or a
    position, the outputs of the model are explained.

    Each line shows a formula with its numbers, and beside it the attributes of the layer. If a number does not come
    from an attribute, a line below that begins with this number explains it. Unknown dims are named after their
    Parameter (ids[1]), otherwise n1, n2, …

    --all also shows the layers that only pass a dim on.

    MODEL.xml may be a documentation page with <layer> examples, or - for standard input.
    """
    file, position = _position(path)
    if what is not None and position:
        raise click.UsageError(f"{path} already names a line: name either a line or a layer")
    models = _models.load(file, weights)
    traces = [Trace(m.model.reshape(shapes) if shapes else m.model) for m in models if not isinstance(m, ReadError)]
    if not traces:
        raise next((m for m in models if isinstance(m, ReadError)), no_examples(file))
    if any(t.model.weights is None and t.model.constants for t in traces):
        message = "there is no .bin, so dims that depend on the values of constants are unknown; name it with -w"
        _terminal.console(stderr=True).print(f"irrun: {message}")
    explained = [Explanation(asked, everything=everything) for asked in _asked(traces, what, position)]
    if form == "json":
        _terminal.print_json({"explanations": [e.record() for e in explained]})
    else:
        sys.stdout.write("\n".join(str(e) for e in explained))
    return 0


def _position(path: str) -> tuple[str, Sequence[int]]:
    """Split ``FILE:LINE:COLUMN`` into the file and the numbers. The column and the line may be missing."""
    match = re.fullmatch(r"(.+?)((?::\d{1,9}){1,2}):?", path)
    if match is None or Path(path).exists():
        return path, ()
    return match[1], [int(n) for n in match[2].split(":")[1:]]


def _asked(traces: Sequence[Trace], what: str | None, position: Sequence[int]) -> list[Asked]:
    """Return the outputs or dims to explain. A number that names no layer is a line. Raises ModelError (IR606)."""
    if position:
        return [at_line(traces, *position)]
    if what is None:
        return outputs(traces)
    try:
        return [by_name(traces, what)]
    except ModelError:
        if found := by_glob(traces, what):
            return found
        if re.fullmatch(r"\d{1,9}(:\d{1,9})?", what) is None:
            raise
    return [at_line(traces, *map(int, what.split(":")))]
