"""The main functions of ``import irrun``: read, check, compile and run a model, and explain its dims."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from irrun.base.source import Source
from irrun.checking.checker import check as check_parsed
from irrun.checking.checker import examine
from irrun.checking.frozen import with_frozen_dims
from irrun.checking.origins import Explanation
from irrun.checking.questions import at_line, only
from irrun.diagnostics import ModelError, ReadError, Report, diagnostic
from irrun.inference.propagate import weights_missing
from irrun.inference.trace import Trace
from irrun.ir.fragments import read_fragments
from irrun.ir.pages import has_examples, is_document, is_prose
from irrun.ir.parse import Parsed, parse, read_bytes, require_file, unreadable
from irrun.ir.recognition import foreign, foreign_weights
from irrun.model import Model, Shapes
from irrun.model.weights import Weights

if TYPE_CHECKING:
    from irrun.opdef import Precision
    from irrun.running.executor import Executable, Feeds, Outputs

__all__ = [
    "PathLike",
    "as_model",
    "check",
    "compile",
    "extract",
    "load",
    "load_all",
    "no_examples",
    "read_model",
    "run",
    "save_model",
    "why",
]

PathLike = str | os.PathLike[str]


def load(xml: PathLike, weights: PathLike | None = None) -> Parsed:
    """Return the model of an IR file, or of the first example of a page, with the problems of its file.

    Unlike ``read_model``, this accepts a file whose model contradicts itself. Raises ReadError if there is no model.
    """
    items = load_all(xml, weights)
    if not items:
        raise no_examples(str(xml))
    if isinstance(items[0], ReadError):
        raise items[0]
    return items[0]


def no_examples(path: str) -> ReadError:
    """Return the error for a documentation page without examples passed where a model is required."""
    help = "pass an IR file, or a page with <layer> examples in its code blocks"
    return ReadError(diagnostic("IR003", "the page has no <layer> example", file=path, help=help))


def load_all(path: PathLike, weights: PathLike | None = None, data: bytes | None = None) -> list[Parsed | ReadError]:
    """Return all models of a document: the model of an IR file, or each ``<layer>`` example of a page.

    An example that cannot be read is represented by its ReadError. The list is empty for a page without examples.
    ``data`` is the contents of the file, if the caller has read it already. Raises ReadError if the file cannot be
    opened, or if it is an IR file without a model.
    """
    if data is None:
        items: list[Parsed | ReadError] = []
        for _ in range(1 + _RETRIES):
            before = _identity(path)
            items = load_all(path, weights, read_bytes(Path(path)))
            if _identity(path) == before:
                break
        return items
    if (error := foreign(str(path), data)) is not None:
        raise error
    name, text = str(path), data.decode("utf-8", "replace")
    if is_document(name) or is_prose(name, text) or has_examples(name, text):
        return read_fragments(str(path), data)
    return [parse(Source(str(path), data), open_weights(Path(path), weights))]


_RETRIES: Final = 5
"""How often a model is read again if its .xml is replaced while it is read: the .bin may belong to the new .xml."""


def _identity(path: PathLike) -> tuple[int, int, int] | None:
    """Return what changes when a file is replaced or written, or None if there is none or it can be read only once."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return None
    if not stat.S_ISREG(status.st_mode):
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns


def open_weights(path: Path, named: PathLike | None) -> Weights | None:
    """Return the ``.bin`` file ``named`` or, by default, the one beside the ``.xml`` file; None if that does not exist.

    Without ``named``, a Git LFS pointer or a web page in place of the ``.bin`` counts as none, so that the rest of the
    model can be looked at. Raises ReadError (IR000) if the file cannot be opened, or if ``named`` holds no weights.
    """
    file = Path(named) if named is not None else path.with_suffix(".bin")
    try:
        require_file(file)  # opening a pipe would wait for a writer
        if known := foreign_weights(file, is_named=named is not None):
            if named is None:
                return None
            message = f"cannot read {file}: no weights: the file {known[0]}"
            raise ReadError(diagnostic("IR000", message, file=str(file), help=known[1]))
        with file.open("rb"):
            opened = Weights(file)
            len(opened)  # map the file now: it belongs to the .xml that was read just before
            return opened
    except (OSError, ValueError) as error:
        if named is None and isinstance(error, FileNotFoundError):
            return None
        raise unreadable(file, error) from None


def read_model(xml: PathLike, weights: PathLike | None = None) -> Model:
    """Read an IR file (version 10 or 11) and return its model.

    ``weights`` is the ``.bin`` file; by default the one with the same name beside the ``.xml`` file, if it exists. It
    is memory-mapped, not read. Raises ReadError if the file holds no model (it is missing, not XML, or has another
    version), and ModelError if the model contradicts itself (duplicate ids, edges that lead nowhere).
    """
    return load(xml, weights).runnable()


def compile(
    model: Model | PathLike,
    weights: PathLike | None = None,
    *,
    strict: bool = False,
    max_memory: int | None = None,
    max_weights_memory: int | None = None,
    exact: bool | None = None,
    timeout: float | None = None,
    copy_weights: bool = False,
    layered: bool = False,
    repeatable: bool = False,
    precision: Precision = "f32",
) -> Executable:
    """Plan a model once, and return an Executable that runs it any number of times.

    - ``model`` is a model or the path of an IR file; ``weights`` is the ``.bin`` file, as in ``read_model``.
    - ``strict`` stops a run at the first output whose type or shape differs from the declaration of its port.
    - ``max_memory`` is the most bytes that a run may hold at once; by default three quarters of the machine's memory,
      or 2 GiB where its size is unknown. Counted are the outputs of all layers as long as they are needed (those inside
      loops, the pieces that a loop collects, and copies of results, too), constants that are unpacked, folded or
      packed, variables, converted inputs, the copy of the .bin, and memory that is retained for reuse. Not counted are
      inputs that the caller holds, outputs of less than 4 KiB in a model with open dims, the memory-mapped .bin, the
      code and its libraries, the working memory of a kernel (such as a sorted copy), and the copies that taps and hooks
      make. If all shapes are known, ``compile`` raises
      ExecutionError (IR604) at the layer where the run would hold too much. Otherwise the run raises it when it gets
      there. No single tensor may take more than ``max_memory`` either, in the .bin or as an input.
    - ``max_weights_memory`` is the most bytes that matrices of the file in f16 or in integers of 8 or 4 bits may take
      where irrun holds them as f32, by default half of ``max_memory``. Without the extra ``fast``, numpy multiplies
      with f32: each further matrix is unpacked in parts in every run, which takes no memory, but much time. Compiled
      kernels multiply with what the file has, so that the limit does not concern them.
    - ``exact`` computes each layer on its own, with the kernel that defines its operation, on one thread and with
      numpy's BLAS. Otherwise irrun uses the fastest kernels and fuses layers; the results are equal within rounding.
      The default is true if the environment variable IRRUN_EXACT is set to anything but 0.
    - ``timeout`` is the most seconds that a run may take, by default any number. It is checked before each step,
      each iteration of a loop and each element of a recurrent sequence, so that a run ends with the first of these that
      begins when the time is over.
    - ``layered`` computes each layer in a step of its own, as a run with hooks does: whoever observes every run saves
      the other plan and its memory. ``exact`` implies it.
    - ``repeatable`` computes each run alike, whatever ran before. Otherwise a model with dynamic shapes is planned
      again for shapes that recur, which is faster, but may round differently.
    - ``precision`` is that of the operands of attention, and of matrix products, convolutions and recurrent layers
      whose weights are constant. ``f32`` is the default. ``bf16`` rounds both operands to bf16, and sums in f32: see
      docs/performance.md for times and errors. ``int8-activations`` rounds what matrices of integer codes are
      multiplied by to i8, with a unit for each 32 numbers of a row. A processor without instructions for either
      computes the same, within rounding of the sums. Everything else stays in f32, as depthwise convolutions and MatMul
      of two values. ``auto`` does what the processor has instructions for: ``bf16`` with AVX512-BF16,
      ``int8-activations`` with VNNI or the dot product of ARM.
    - ``copy_weights`` reads the .bin into memory, so that the file may be changed while the model is in use.

    Raises ReadError or ModelError if the model cannot be read or planned, UnsupportedError if irrun does not know one
    of its operations, and ExecutionError (IR604) if it certainly needs more than ``max_memory``.
    """
    if not isinstance(model, Model):
        model = read_model(model, weights)
    if model.weights is None and model.constants:
        raise ModelError(weights_missing(model))
    if exact is None:
        exact = os.environ.get("IRRUN_EXACT", "") not in ("", "0")
    if copy_weights and model.weights is not None:
        model.weights.copy_into_memory()
    # imported late: `irrun check` runs no model
    from irrun.running.executor import Executable
    from irrun.running.live import default_max_memory

    if max_memory is None:
        max_memory = default_max_memory()
    return Executable(
        model, strict=strict, max_memory=max_memory, exact=exact, timeout=timeout, layered=layered,
        repeatable=repeatable, max_weights_memory=max_weights_memory, precision=precision,
    )  # fmt: skip


def as_model(model: Model | PathLike) -> Model:
    """Return a model, or read the one at a path. Raises the errors of ``read_model``."""
    return model if isinstance(model, Model) else read_model(model)


def extract(model: Model | PathLike, begin: str | Sequence[str] = (), end: str | Sequence[str] = ()) -> Model:
    """Return a part of a model: all layers on the paths from the layers ``begin`` to the layers ``end``, both included.

    ``begin`` and ``end`` are names of layers or globs. By default, the part begins at the inputs and ends at the
    outputs of the model. A constant value that enters the part is included with the layers that compute it. Any other
    value that enters it becomes an input, named after the layer that produced it. Each output of ``end`` that has a
    consumer becomes an output, or all its outputs if none has.

    The part shares the weights of ``model``; ``save_model(…, compact=True)`` writes only the bytes that it uses. Raises
    ModelError (IR606) if a layer does not exist or no path leads from ``begin`` to ``end``.
    """
    from irrun.ir import extract as cutting  # imported late: most programs neither cut nor write a model

    return cutting.extract(as_model(model), begin, end)


def save_model(
    model: Model | PathLike, xml: PathLike, weights: PathLike | None = None, *, compact: bool = False
) -> None:
    """Write a model to the file ``xml``, and its weights to ``weights``, by default the ``.bin`` file beside it.

    Each file is written completely or not at all, and nobody opens the new ``.bin`` with an old ``.xml``: between the
    two renames, there is no ``.xml``. Elements that irrun does not use (``rt_info``, ``meta_data`` …) are
    kept from the file that the model was read from. The weights are copied unchanged; ``compact`` leaves out the bytes
    to which no constant of the model refers. Raises ModelError if the weights are missing (IR501) or, with ``compact``,
    a constant lies outside of them (IR502), BuildError (IR609) if both files are the same, and WriteError (IR011) if a
    file cannot be written.
    """
    from irrun.ir import write

    write.save_model(as_model(model), xml, weights, compact=compact)


def run(
    model: Model | PathLike,
    feeds: Feeds = None,
    *,
    weights: PathLike | None = None,
    strict: bool = False,
    max_memory: int | None = None,
) -> Outputs:
    """Compile a model, run it once, and return its outputs.

    ``feeds`` are the inputs: by parameter name, tensor name or position; as a sequence in the order of the Parameters;
    or the only array. ``max_memory`` is that of ``compile``. To run a model several times, use ``compile``. Raises the
    errors of ``compile`` and Executable.
    """
    return compile(model, weights, strict=strict, max_memory=max_memory)(feeds)


def check(
    model: Model | PathLike,
    weights: PathLike | None = None,
    *,
    shapes: Shapes | None = None,
    targets: Sequence[str] = (),
) -> Report:
    """Compare every shape and precision that a model declares with the inferred ones, and return a Report.

    With ``shapes``, check instead whether the model can take other input shapes, as ``openvino.Model.reshape`` would:
    ``{"data": [1, 3, 224, 224], "ids": "?,1..512"}``, by the name or position of an input. The dims that the file
    declares are then ignored, and the report names the layers that refuse the new shapes.

    ``targets`` are releases of OpenVINO, such as ``openvino==2024.6`` or ``openvino>=2022.1,<2025``, or the devices
    ``npu`` and ``gpu``: the report also names what these do not have or are known to refuse.

    The Report is an iterable of Diagnostic, in file order; ``report.ok`` is true if it holds no error. A file that is
    not a readable IR is reported as well. Raises ReadError only if the file cannot be opened, and FeedError if
    ``shapes`` names an input that the model does not have, or is not a valid shape. Raises ValueError for a target that
    is none.
    """
    if isinstance(model, Model):
        return _checked(Parsed(model, []), shapes, targets)
    try:
        models = load_all(model, weights)
    except ReadError as error:
        if any(d.code == "IR000" for d in error.diagnostics):
            raise
        return Report(error.diagnostics)
    by_model = [m.diagnostics if isinstance(m, ReadError) else _checked(m, shapes, targets).diagnostics for m in models]
    return Report(tuple(d for diagnostics in by_model for d in diagnostics))


def _checked(given: Parsed, shapes: Shapes | None, targets: Sequence[str]) -> Report:
    parsed = given.reshape(shapes) if shapes else given
    if targets:
        from irrun.targets import check_targets, parse_target  # imported late: most checks have no target

        report = check_targets(parsed, *examine(parsed), [parse_target(text) for text in targets])
    else:
        report = check_parsed(parsed)
    return with_frozen_dims(report, given.model, shapes) if shapes else report


def why(model: Model | PathLike, layer: str | int, *, everything: bool = False) -> Explanation:
    """Explain where the dims of a layer come from. ``str()`` of the result is text, ``record()`` is a dict for JSON.

    ``layer`` is the name of a layer or tensor, a glob that matches one layer, ``name:port``, or a line number of the
    file. Layers that only pass a
    number on are counted in one line, unless ``everything`` is true. Raises ReadError if the model cannot be read, and
    ModelError (IR606) if it has no such layer or several.
    """
    parsed = [Parsed(model, [])] if isinstance(model, Model) else load_all(model)
    traces = [Trace(item.model) for item in parsed if isinstance(item, Parsed)]
    if not traces:
        raise next((item for item in parsed if isinstance(item, ReadError)), no_examples(str(model)))
    selected = at_line(traces, layer) if isinstance(layer, int) else only(traces, layer)
    return Explanation(selected, everything=everything)
