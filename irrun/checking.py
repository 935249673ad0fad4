"""What ``import irrun`` offers: check a model, and tell where its dims come from."""

from __future__ import annotations

from irrun.api import PathLike, load_all, no_examples
from irrun.checker import check as check_parsed
from irrun.diagnostics import ReadError, Report
from irrun.model import Model
from irrun.origins import Explanation, at_line, by_name
from irrun.parse import Parsed
from irrun.reshaping import Shapes, reshaped
from irrun.trace import Trace

__all__ = ["check", "why"]


def check(model: Model | PathLike, weights: PathLike | None = None, *, shapes: Shapes | None = None) -> Report:
    """Compare every shape and precision that a model declares with what follows from its layers.

    With ``shapes``, by the name or position of an input, tell instead whether the model reshapes to them, as
    ``openvino.Model.reshape`` would: ``{"data": [1, 3, 224, 224], "ids": "?,1..512"}``. The dims that the file
    declares are then not compared; what breaks is a rule of a layer.
    Returns a Report: iterable of Diagnostic, in file order; ``report.ok`` tells whether there is no error.
    What makes the file unreadable is in the report, too; only a file that cannot be opened raises ReadError.
    Raises FeedError where the model has no such input.
    """
    if isinstance(model, Model):
        return check_parsed(_at(Parsed(model, []), shapes))
    try:
        models = load_all(model, weights)
    except ReadError as error:
        if any(d.code == "IR000" for d in error.diagnostics):
            raise
        return Report(error.diagnostics)
    found = [m.diagnostics if isinstance(m, ReadError) else check_parsed(_at(m, shapes)).diagnostics for m in models]
    return Report(tuple(d for diagnostics in found for d in diagnostics))


def _at(parsed: Parsed, shapes: Shapes | None) -> Parsed:
    return reshaped(parsed, shapes) if shapes else parsed


def why(model: Model | PathLike, layer: str | int, *, everything: bool = False) -> Explanation:
    """Where the dims of a layer come from: ``str()`` of it is text, ``record()`` is for JSON.

    ``layer`` is the name of a layer or tensor, ``name:port``, or a line of the file. What layers only pass on is told
    in one line, unless ``everything`` is asked for. Raises ReadError, and ModelError where there is no such layer.
    """
    parsed = [Parsed(model, [])] if isinstance(model, Model) else load_all(model)
    traces = [Trace(found.model) for found in parsed if isinstance(found, Parsed)]
    if not traces:
        raise next((found for found in parsed if isinstance(found, ReadError)), no_examples(str(model)))
    asked = at_line(traces, layer) if isinstance(layer, int) else by_name(traces, layer)
    return Explanation(asked, everything=everything)
