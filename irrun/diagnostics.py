"""Diagnostics: the table of codes, the diagnostic of one fault, the report of a check, and the errors of irrun."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Final, Literal

from irrun.edits import Fix
from irrun.source import Source, Span
from irrun.types import Dim

__all__ = [
    "CODES",
    "Code",
    "Diagnostic",
    "ExecutionError",
    "FeedError",
    "IrrunError",
    "ModelError",
    "ReadError",
    "Refused",
    "Report",
    "UnsupportedError",
    "counted",
    "diagnostic",
]

Severity = Literal["error", "warning"]


@dataclass(frozen=True, slots=True)
class Code:
    """A kind of fault, such as IR402. ``doc`` says what the fault means and how to fix it."""

    id: str
    name: str
    severity: Severity
    doc: str


def _codes(*rows: tuple[str, str, str]) -> dict[str, Code]:
    table: dict[str, Code] = {}
    for name_id, name, doc in rows:
        severity: Severity = "warning" if name_id.endswith("w") else "error"
        code = Code(name_id.removesuffix("w"), name, severity, doc)
        table[code.id] = code
    return table


# One row per kind of fault: the id (with a trailing w for a warning), the name, and the text. `irrun explain` prints
# the text and the page with this name in explanations/: why the fault matters, a wrong example and a right one.
CODES: Final = _codes(
    # 0xx XML
    ("IR000", "unreadable", "The file is not there or cannot be opened. Check the path and its permissions."),
    ("IR001", "not-xml", "The file is not well-formed XML: cut short, not XML at all, or with a typing "
     "mistake such as an unclosed tag. The position is where the parser gave up; the mistake stands there "
     "or just before it. Write the file again with the tool that made it, or correct the tag named."),
    ("IR002", "doctype", "The file has a DOCTYPE. OpenVINO IR never needs one, and entities declared in it "
     "can make a small file fill the memory or read other files, so irrun refuses every DOCTYPE unread. "
     "Remove the declaration."),
    ("IR003", "not-ir", "The file is XML but not OpenVINO IR: the root element is not <net>, or <layers> is "
     "missing. Give the .xml file that OpenVINO's save_model or ovc wrote."),
    ("IR004", "ir-version", "The IR version is not one that irrun reads (10 and 11). Versions 2 to 9 were "
     "written by OpenVINO before 2020.4: convert the original model again with a current OpenVINO "
     "(openvino.convert_model, then openvino.save_model)."),
    ("IR005", "too-large", "The document goes past a limit that keeps hostile files harmless (nesting of "
     "256 elements, 10 MB in one attribute or comment). No tool writes such an IR."),
    ("IR006", "encoding", "The bytes of the file are not text in the encoding that it declares (UTF-8 where "
     "it declares none). Save it as UTF-8."),
    ("IR007", "malformed-element", "An element lacks an attribute that every reader needs (a layer's id or "
     "type, a port's id, an edge's ends), or has one that is no number; or a layer lacks its body. Write it."),
    ("IR008w", "irregular-fragment", "A <layer> example as printed in documentation is not quite XML or not "
     "quite IR: a literal ' ... ' in the tag, a port id used twice. irrun reads it as it was meant and says "
     "how."),
    # 1xx graph
    ("IR101", "duplicate-layer", "Two layers have one id, so an edge cannot tell which is meant. Give each "
     "layer its own id."),
    ("IR102", "duplicate-port", "Two ports of one layer have one id. Ids count on from the inputs to the "
     "outputs; give each port its own."),
    ("IR103", "dangling-edge", "An edge names a layer or a port that does not exist, or starts at an input "
     "or ends at an output. Correct its from-layer, from-port, to-layer or to-port."),
    ("IR104", "unconnected-input", "No edge leads to an input port, so that the layer has nothing to read, or "
     "no entry of a port map to a Parameter or from a Result of a body. Add the edge (or entry) or remove the "
     "port."),
    ("IR105", "input-fed-twice", "More than one edge leads to one input port. Remove all but one."),
    ("IR106", "cycle", "Layers feed each other in a circle, so that none can be computed first. One of the "
     "edges named is wrong. (Loops are written with Loop or TensorIterator, whose back edges stand in "
     "<back_edges>.)"),
    ("IR107w", "no-results", "The model has no Result layer, so that running it gives nothing."),
    ("IR108w", "unused-layer", "Nothing reads what a layer gives, and so nothing that leads to it alone counts: no "
     "Result and no variable depends on it. Mostly an edge or a Result was lost; otherwise remove the layers. "
     "Outputs of a layer that gives others as well, Parameters and constants may go unread."),
    # 2xx operation and attributes
    ("IR201", "unsupported-operation", "irrun does not know this operation, or not in this version. That is "
     "irrun's gap or a custom operation of yours, not a fault of the file. `irrun ops` lists what is known."),
    ("IR202", "missing-attribute", "An attribute that the specification requires is not given. OpenVINO may "
     "read zeros or a default of its own in its place. Write it in <data>."),
    ("IR203", "bad-attribute", "The value of an attribute is not one that the specification allows. The "
     "message says what is."),
    ("IR204w", "unknown-attribute", "The operation has no such attribute, so that it is ignored, by OpenVINO "
     "as well. Mostly a spelling mistake; the help names the nearest one."),
    ("IR205", "wrong-input-count", "The operation has more or fewer inputs than the specification allows."),
    ("IR206", "wrong-output-count", "The layer declares more outputs than its operation gives, or none."),
    ("IR207", "unknown-opset", "`version` names no operation set that irrun knows (opset1 to opset17, "
     "extension, experimental). If your OpenVINO is newer than this irrun, update irrun."),
    # 3xx element types
    ("IR301", "type-not-allowed", "An input has an element type that the specification does not allow there."),
    ("IR302", "types-differ", "Inputs that must have one element type (T in the specification) have "
     "different ones. Insert a Convert."),
    ("IR303", "precision-mismatch", "An output port declares another precision than the operation gives. "
     "OpenVINO ignores the declaration; tools that trust it allocate the wrong buffer. Declare the inferred "
     "one."),
    ("IR304", "edge-precision-mismatch", "An input port declares another precision than the output port that "
     "feeds it. Declare the same on both; the finding stands at the end that is wrong."),
    ("IR305", "unknown-precision", "`precision`, `element_type`, `destination_type` … names no element type of "
     "the IR."),
    # 4xx shapes
    ("IR401", "dims-mismatch", "An output port declares other dims than the operation gives. OpenVINO ignores "
     "the declaration and recomputes; tools that trust it allocate the wrong buffer. Declare the inferred "
     "dims, or, where the declared ones are meant, correct the attribute or input that leads elsewhere."),
    ("IR402", "edge-dims-mismatch", "An input port declares other dims than the output port that feeds it. "
     "Declare the same on both; the finding stands at the end that is wrong. At a Parameter: what reads it was made "
     "for other dims than it declares, and so was what follows; make the model again, or reshape it, to have others."),
    ("IR403", "constraint", "A rule of the operation's specification is broken: the label (C3) names the "
     "clause as `irrun op NAME` prints it. The layer cannot be computed."),
    ("IR404", "bad-dim", "A dim is no integer: ports take a number or -1, the attribute `shape` also ?, "
     "intervals such as 1..8, and ... for an unknown rank."),
    ("IR405w", "loose-dims", "Of an output port and what stands beside it (the input port at the other end of the "
     "edge, the shape of a Parameter), one declares a dim and the other leaves it unknown (-1, or no dims at all). "
     "Both may be true, but they are written from one shape. The finding stands where it follows that the "
     "declaration is wrong."),
    # 5xx weights
    ("IR501", "weights-missing", "The model has constants, but the .bin with their values is not there. It "
     "stands beside the .xml under the same name, or is named with -w / weights=."),
    ("IR502", "weights-range", "A constant's offset and size reach past the end of the .bin (or are "
     "negative): the .bin is cut short or belongs to another model."),
    ("IR503", "weights-size", "A constant's size is not what its shape and element type take."),
    ("IR504", "weights-content", "The bytes of a constant are no valid tensor of its type (a string tensor "
     "whose offsets do not ascend or whose bytes are not UTF-8)."),
    ("IR505w", "weights-overlap", "A constant takes some of the bytes of another, but not the same ones: an offset or "
     "a size is wrong, or the .bin belongs to another model. (Equal constants share their bytes, all of them.)"),
    ("IR506w", "weights-unused", "The .bin goes on where no constant reads it: it belongs to another model, or a "
     "constant has a wrong offset or was removed."),
    ("IR507w", "not-finite", "A constant holds NaN, or +inf among ordinary numbers, which spreads to most of what "
     "depends on it: training diverged, a conversion to f16 overflowed, or offset or element_type is wrong. Masks of "
     "-inf and 0 are not meant. Of a large constant the first 16384 elements are looked at."),
    # 6xx execution
    ("IR601", "bad-feed", "An input handed to the model has no such name, or the wrong element type or shape."),
    ("IR602", "not-as-declared", "While running strictly, a layer gave another element type or shape than its "
     "port declares. `irrun check` tells which of the two is wrong; --no-strict runs on regardless."),
    ("IR603", "kernel-failed", "A kernel failed on a model that checks clean. That is irrun's bug: please "
     "report it with the layer's XML."),
    ("IR604", "out-of-memory", "A tensor would take more memory than --max-memory allows, or the strings of a constant "
     "more than 1 GiB (each of them takes as much as the longest). irrun refuses it before allocating it. Probably a "
     "target shape is wrong; otherwise raise --max-memory, or shorten the longest string."),
    ("IR605", "invalid-value", "The values that reached a layer break a rule of its specification (an index "
     "out of range, a target shape that does not fit)."),
    ("IR606", "bad-selection", "A layer that was asked for (--tap, --from, --to) is not in the model, or no way "
     "leads between the layers that a part shall begin and end with. Names are those of the layers, or globs "
     "such as 'conv*'."),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One fault that irrun reports: its kind, its position in the file, and how to fix it.

    ``layer`` is the name of the layer and ``port`` the id of one of its ports. ``line`` and ``column`` count
    from 1 and are None if the fault has no position in the file (a missing .bin). ``notes`` are further lines of
    explanation and ``help`` says what to do.
    """

    code: str
    severity: Severity
    message: str
    layer: str | None = None
    port: int | None = None
    file: str | None = None
    span: Span | None = None
    notes: tuple[str, ...] = ()
    help: str | None = None
    label: str | None = None
    """The clause of the operation's specification that the layer breaks, such as ``C3``."""
    fix: Fix | None = None
    """The edits of the file that fix the fault, if they are known."""
    source: Source | None = field(default=None, repr=False, compare=False)

    @property
    def line(self) -> int | None:
        return self.span.line if self.span else None

    @property
    def column(self) -> int | None:
        return self.span.column if self.span else None

    @property
    def name(self) -> str:
        return CODES[self.code].name

    def __str__(self) -> str:
        place = self.file or ""
        if self.span:
            place += f":{self.span.line}:{self.span.column}"
        return f"{place}{': ' if place else ''}{self.severity}[{self.code} {self.name}] {self.message}" + (
            f"; {self.help}" if self.help else ""
        )


_LONGEST: Final = 600
"""The most characters of a message that are kept, because a name or value in the file may have megabytes."""


def diagnostic(
    code: str,
    message: str,
    *,
    source: Source | None = None,
    node: int | None = None,
    attribute: str | None = None,
    **more: object,
) -> Diagnostic:
    """Return a diagnostic at element ``node`` of ``source``, or at one attribute of the element.

    The severity follows from ``code``. ``more`` holds further fields of Diagnostic. The middle of a very long
    ``message`` is left out.
    """
    span = source.span(node, attribute) if source is not None and node is not None else None
    file = source.path if source is not None else None
    if len(message) > _LONGEST:
        message = f"{message[: _LONGEST * 2 // 3]} … {message[-_LONGEST // 3 :]}"
    made = Diagnostic(code, CODES[code].severity, message, file=file, span=span, source=source)
    return replace(made, **more) if more else made  # type: ignore[arg-type]


def counted(number: int, what: str) -> str:
    """Return a number with its noun in the singular or plural: ``1 input``, ``2 inputs``."""
    return f"{number} {what}{'' if number == 1 else 's'}"


@dataclass(frozen=True, slots=True)
class Report:
    """The result of a check: its diagnostics, in the order of the file. Iterate over the report to get them."""

    diagnostics: tuple[Diagnostic, ...]

    def __iter__(self) -> Iterator[Diagnostic]:
        return iter(self.diagnostics)

    def __len__(self) -> int:
        return len(self.diagnostics)

    @property
    def errors(self) -> tuple[Diagnostic, ...]:
        return tuple(d for d in self.diagnostics if d.severity == "error")

    @property
    def ok(self) -> bool:
        """Whether the report contains no error. It may contain warnings."""
        return not self.errors


class Refused(Exception):  # noqa: N818  (what it is, not a fault of the program)
    """The exception that a rule raises if it does not accept its input. It does not know the layer or the file.

    The caller that knows the layer converts it to a Diagnostic with the same ``message``, ``help`` and ``code``.
    ``label`` is the clause of the operation's specification that is broken (``C3``), ``notes`` are lines that show
    how, and ``dims`` are the dims that contradict each other.
    """

    def __init__(
        self, message: str, label: str | None = None, help: str | None = None, code: str = "IR403", *,
        notes: tuple[str, ...] = (), dims: tuple[Dim, ...] = (),
    ) -> None:  # fmt: skip
        super().__init__(message)
        self.message, self.label, self.help, self.code = message, label, help, code
        self.notes, self.dims = notes, dims


class IrrunError(Exception):
    """The base of all errors that a user can cause. ``diagnostics`` say what is wrong, where, and what to do."""

    def __init__(self, diagnostics: Diagnostic | Iterable[Diagnostic]) -> None:
        self.diagnostics = (diagnostics,) if isinstance(diagnostics, Diagnostic) else tuple(diagnostics)
        super().__init__("\n".join(map(str, self.diagnostics)))

    def __reduce__(self) -> tuple[type[IrrunError], tuple[tuple[Diagnostic, ...]]]:
        return type(self), (tuple(replace(d, source=None) for d in self.diagnostics),)


class ReadError(IrrunError):
    """The file cannot be read: it is missing, is not XML or not IR, or has a version that irrun does not support."""


class ModelError(IrrunError):
    """The file was read, but the model in it is invalid."""


class UnsupportedError(IrrunError):
    """The model may be valid, but irrun does not know an operation in it."""


class FeedError(IrrunError):
    """The inputs passed to a model do not fit it: wrong name, element type or shape."""


class ExecutionError(IrrunError):
    """The model failed while running."""
