"""What ``import irrun`` offers: read, check, compile and run a model, and explain its dims."""

from __future__ import annotations

import os
from pathlib import Path

from irrun.checking.checker import check as check_parsed
from irrun.checking.origins import Explanation, at_line, by_name
from irrun.checking.reshaping import Shapes, reshaped
from irrun.diagnostics import Diagnostic, ModelError, ReadError, Report
from irrun.inference.propagate import weights_missing
from irrun.inference.trace import Trace
from irrun.ir.documents import has_fragments, is_document, is_prose, read_fragments
from irrun.ir.parse import Parsed, parse, read_bytes
from irrun.model import Model
from irrun.running.executor import Executable, Feeds, Outputs
from irrun.source import Source
from irrun.weights import Weights

__all__ = [
    "PathLike",
    "check",
    "compile",
    "default_max_memory",
    "load",
    "load_all",
    "no_examples",
    "read_model",
    "run",
    "why",
]

PathLike = str | os.PathLike[str]


def load(xml: PathLike, weights: PathLike | None = None) -> Parsed:
    """A model with all that is wrong in its file, as far as it can be read. Raises ReadError."""
    found = load_all(xml, weights)
    if not found:
        raise no_examples(str(xml))
    if isinstance(found[0], ReadError):
        raise found[0]
    return found[0]


def no_examples(path: str) -> ReadError:
    """That a page, which holds no model, was given where one is needed."""
    help = "give an IR file, or a page with <layer> examples in its code blocks"
    return ReadError(Diagnostic("IR003", "error", "the page has no <layer> example", file=path, help=help))


def load_all(path: PathLike, weights: PathLike | None = None, data: bytes | None = None) -> list[Parsed | ReadError]:
    """Every model of a document: the one of an IR file, or each ``<layer>`` example of a page.

    An example that cannot be read stands as its ReadError; a page may have none. Raises ReadError where the file
    cannot be opened or, being IR, holds no model. ``data`` is what the file holds, where that has been read.
    """
    data = read_bytes(Path(path)) if data is None else data
    name, text = str(path), data.decode("utf-8", "replace")
    if is_document(name) or is_prose(name, text) or has_fragments(name, text):
        return read_fragments(str(path), data)
    return [parse(Source(str(path), data), _weights(Path(path), weights))]


def _weights(path: Path, named: PathLike | None) -> Weights | None:
    """The ``.bin`` that was named, or else the one beside the ``.xml``; None where there is none."""
    file = Path(named) if named is not None else path.with_suffix(".bin")
    try:
        with file.open("rb"):
            return Weights(file)
    except FileNotFoundError as error:
        if named is None:
            return None
        why = error.strerror or "no such file"
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
    raise ReadError(
        Diagnostic("IR000", "error", f"cannot read {file}: {why.lower()}", file=str(file), help="check the path")
    )


def read_model(xml: PathLike, weights: PathLike | None = None) -> Model:
    """Read an IR file (version 10 or 11).

    ``weights`` is the ``.bin``; by default the one beside the ``.xml`` under the same name, if it exists.
    It is mapped, not read. Raises ReadError where there is no model in the file (missing, no XML, another
    version) and ModelError where it contradicts itself (duplicate ids, edges to nowhere).
    """
    parsed = load(xml, weights)
    errors = [p for p in parsed.problems if p.severity == "error"]
    if errors:
        raise ModelError(errors)
    return parsed.model


def compile(
    model: Model | PathLike,
    weights: PathLike | None = None,
    *,
    strict: bool = False,
    max_memory: int | None = None,
    exact: bool | None = None,
) -> Executable:
    """Plan a model once, to run it many times.

    ``strict`` stops a run at the first output that is not what its port declares. ``max_memory`` is the
    most bytes that one tensor may take; by default three quarters of the machine's memory. ``exact`` has
    every layer computed by itself and by the kernel that defines its operation, instead of the fastest way
    that gives the same within rounding; by default where the environment variable IRRUN_EXACT is 1.
    Raises ReadError, ModelError, or UnsupportedError where irrun does not know an operation.
    """
    if not isinstance(model, Model):
        model = read_model(model, weights)
    if model.weights is None and model.constants:
        raise ModelError(weights_missing(model))
    if exact is None:
        exact = os.environ.get("IRRUN_EXACT", "") not in ("", "0")
    return Executable(model, strict=strict, max_memory=max_memory or default_max_memory(), exact=exact)


def run(
    model: Model | PathLike, feeds: Feeds = None, *, weights: PathLike | None = None, strict: bool = False
) -> Outputs:
    """Compile and run a model once. ``feeds`` and the errors raised are those of ``compile`` and Executable."""
    return compile(model, weights, strict=strict)(feeds)


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


def default_max_memory() -> int:
    """Three quarters of the machine's memory, in bytes."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") * 3 // 4
    except (AttributeError, ValueError, OSError):  # Windows, the browser
        return 2 << 30
