"""Diagnostics: the table of codes, the diagnostic of one fault, the report of a check, and the errors of irrun."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from errno import EDQUOT, ENOENT, ENOSPC
from typing import Final, Literal

from irrun.base.edits import Fix
from irrun.base.source import Source, Span
from irrun.base.text import counted, printable, table
from irrun.types import Dim

__all__ = [
    "CODES",
    "BuildError",
    "Code",
    "Diagnostic",
    "EngineError",
    "ExecutionError",
    "FeedError",
    "IrrunError",
    "ModelError",
    "ReadError",
    "Refused",
    "Report",
    "UnsupportedError",
    "WriteError",
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
    blocks: bool
    """Whether the fault leaves the meaning of the model open, so that irrun does not run it. False for a warning.

    An error that does not block is a wrong statement of the file that irrun does not need: a declared shape, or an edge
    between layers that do not exist."""


def _codes(*rows: tuple[str, str, str]) -> dict[str, Code]:
    table: dict[str, Code] = {}
    for marked_id, name, doc in rows:
        id, mark = marked_id[:5], marked_id[5:]
        severity: Severity = "warning" if mark == "w" else "error"
        table[id] = Code(id, name, severity, doc, blocks=not mark)
    return table


# One row per kind of fault: the id (with a trailing w for a warning, or h for a harmless error: one that does not keep
# the model from running), the name, and the text. `irrun explain` prints
# the text and the page with this name in explanations/: why the fault matters, a wrong example and a right one.
CODES: Final = _codes(
    # 0xx XML
    ("IR000", "unreadable", "irrun cannot open the file, or the file does not exist. Check the path and its "
     "permissions."),
    ("IR001", "not-xml", "The file is not well-formed XML: it is cut short, it is not XML at all, or it contains a "
     "mistake such as an unclosed tag. The finding marks the place where the parser gave up; the mistake is there or "
     "just before it. Correct the tag that the message names, or write the file again with the tool that produced "
     "it."),
    ("IR002", "doctype", "The file has a DOCTYPE. OpenVINO IR never needs one, and the entities that a DOCTYPE "
     "declares can fill the memory or read other files. irrun therefore refuses every DOCTYPE without reading it. "
     "Remove the declaration."),
    ("IR003", "not-ir", "The file is not OpenVINO IR. It has another format, such as ONNX or a Git LFS pointer, which "
     "irrun recognises by its contents; or it is XML, but its root element is not <net>, or <layers> is missing. Pass "
     "the .xml file that OpenVINO's save_model or ovc wrote."),
    ("IR004", "ir-version", "irrun does not read this version of the IR; it reads versions 10 and 11. OpenVINO wrote "
     "versions 2 to 9 before its release 2020.4. Convert the original model again with a current OpenVINO "
     "(openvino.convert_model, then openvino.save_model)."),
    ("IR005", "too-large", "The document exceeds a limit that protects irrun from hostile files: 256 nested elements, "
     "or 10 MB in one attribute or comment. No tool writes such an IR. Check where the file comes from."),
    ("IR006", "encoding", "The bytes of the file are not valid text in the encoding that the file declares (UTF-8 if "
     "it declares none). Save the file as UTF-8."),
    ("IR007", "malformed-element", "An element lacks a required attribute (the id or type of a layer, the id of a "
     "port, an end of an edge), the attribute is not a number, or a layer lacks its body. Add the attribute or the "
     "body, or correct the number."),
    ("IR008w", "irregular-fragment", "A <layer> example in a page is not quite XML or not quite IR: for example, its "
     "tag contains a literal ' ... ', or two ports have the same id. irrun reads what the example most likely means, "
     "and the message says how. Correct the example."),
    ("IR009", "duplicate-element", "A layer or model has an element twice of which it can have only one, such as "
     "<data>. OpenVINO reads only the first, other tools read the last. Remove the wrong one."),
    ("IR010h", "incomplete-layer", "A layer has no version or no name. OpenVINO refuses such a file. irrun takes "
     "opset1 for the version, as files of 2020 leave it out, and an empty name. Add the attribute to <layer>."),
    ("IR011", "unwritable", "irrun cannot write a file: its folder does not exist, permissions forbid it, or the disk "
     "is full. Nothing is written, and an existing file stays as it is. Check the path, its permissions and the space "
     "on the disk."),
    # 1xx graph
    ("IR101", "duplicate-layer", "Two layers have the same id, so that an edge cannot identify one of them. Give each "
     "layer its own id."),
    ("IR102", "duplicate-port", "Two inputs or two outputs of a layer have the same id; or an input and an output do, "
     "and an edge refers to another port that the layer does not have. Give each port its own id: those of the outputs "
     "continue those of the inputs."),
    ("IR103", "dangling-edge", "An edge refers to a layer or port that does not exist, begins at an input port, or "
     "ends at an output port. Correct its from-layer, from-port, to-layer or to-port."),
    ("IR104", "unconnected-input", "No edge leads to an input port, so that the layer has no value to read; or no "
     "entry of a port map connects a Parameter of a body, or an output port, with a value. Add the edge or the entry, "
     "or remove the port."),
    ("IR105", "input-fed-twice", "More than one edge leads to an input port. Remove all edges but one."),
    ("IR106", "cycle", "The layers form a cycle: each of them waits for the output of another one, so that none can "
     "run first. Correct or remove one of the edges that the message names. To repeat a computation, use a Loop or "
     "TensorIterator, whose <back_edges> lead from one iteration to the next."),
    ("IR107w", "no-results", "The model has no Result layer, so that a run returns no outputs. Add a Result for each "
     "output."),
    ("IR108w", "unused-layer", "No Result and no variable depends on the outputs of a layer, so that the layer and "
     "the layers that lead only to it have no effect. Usually an edge or a Result is missing. Add it, or remove the "
     "layers. irrun does not report Parameters, constants, and unused outputs of a layer that has a used one."),
    ("IR110h", "stray-edge", "An edge leads from a layer that does not exist to a layer that does not exist either. "
     "OpenVINO and irrun ignore it. Usually somebody has removed the layers and not the edge. Remove the edge, or "
     "correct its ends."),
    ("IR111h", "unpaired-variable", "A variable is not read by exactly one ReadValue and set by exactly one Assign. "
     "OpenVINO refuses the model; in irrun, a variable that no Assign sets keeps its initial value. Usually the "
     "variable_id of one of the two is misspelt: write the same at both."),
    ("IR112h", "no-loop-condition", "The port map of a Loop has no output with the purpose execution_condition, which "
     "the specification requires: the condition under which the next iteration runs. irrun takes it as true. Add the "
     "entry, with the Result of the body that holds the condition."),
    # 2xx operation and attributes
    ("IR201", "unsupported-operation", "irrun does not support this operation, or not in this version. This is a gap "
     "in irrun or a custom operation of yours, not a fault of the file; or a Python package is missing, which the help "
     "says how to install. Run `irrun ops` to list the supported "
     "operations."),
    ("IR202", "missing-attribute", "An attribute that the specification requires is missing. OpenVINO may use zeros "
     "or a default of its own instead. Add the attribute to <data>."),
    ("IR203", "bad-attribute", "The specification does not allow this value of an attribute. Write a value as the "
     "message describes it."),
    ("IR204w", "unknown-attribute", "The operation has no attribute of this name. OpenVINO and irrun ignore the "
     "attribute. Usually its name is misspelt: use the name in the help, or remove the attribute."),
    ("IR205", "wrong-input-count", "The layer has more or fewer inputs than the specification allows. Add the missing "
     "inputs, or remove the extra ones."),
    ("IR206", "wrong-output-count", "The layer declares more outputs than its operation produces, or none at all. "
     "Declare one port for each output."),
    ("IR207", "unknown-opset", "The attribute `version` names an operation set that irrun does not know; it knows "
     "opset1 to opset17, extension and experimental. If your OpenVINO is newer than this irrun, update irrun."),
    ("IR208w", "assumed-attribute", "An attribute that the specification requires is missing, but irrun and OpenVINO "
     "can do without it: the message says what it describes. Add the attribute to <data>."),
    # 3xx element types
    ("IR301", "type-not-allowed", "The specification does not allow the element type of an input. Insert a Convert "
     "before the layer, or correct the layer that produces the input."),
    ("IR302", "types-differ", "Two inputs that must have the same element type (T in the specification) have "
     "different ones. Insert a Convert before one of them."),
    ("IR303h", "precision-mismatch", "An output port declares another precision than the operation produces. OpenVINO "
     "ignores the declaration, but a tool that trusts it allocates a buffer of the wrong size. Declare the inferred "
     "precision."),
    ("IR304h", "edge-precision-mismatch", "An input port declares another precision than the output port that feeds "
     "it. The finding marks the port that is wrong. Declare the same precision at both ports."),
    ("IR305", "unknown-precision", "An attribute such as `precision`, `element_type` or `destination_type` does not "
     "name an element type of the IR. Write a name such as FP32 at a port, or f32 in <data>."),
    # 4xx shapes
    ("IR401h", "dims-mismatch", "An output port declares other dims than the operation produces. OpenVINO ignores the "
     "declaration and infers the dims again, but a tool that trusts it allocates a buffer of the wrong size. Declare "
     "the inferred dims. If the declared dims are the intended ones, correct the attribute or input that leads to "
     "other dims."),
    ("IR402h", "edge-dims-mismatch", "An input port declares other dims than the output port that feeds it. The "
     "finding marks the port that is wrong. Declare the same dims at both ports. If the finding marks a Parameter, "
     "the layers that read it were made for other dims than the Parameter declares: restore its dims, or reshape the "
     "model with a tool that updates all ports."),
    ("IR403", "constraint", "The layer breaks a rule of its operation, so that it cannot be computed. The label (C3) "
     "names the clause of the specification that `irrun op NAME` prints. Change an input or an attribute of the "
     "layer."),
    ("IR404", "bad-dim", "A dim is not valid. Write a number or -1 in a port. The attribute `shape` also accepts ?, "
     "intervals such as 1..8, and ... for an unknown rank."),
    ("IR405w", "loose-dims", "An output port leaves a dim unknown (-1, or no dims at all) that its neighbour "
     "declares, or declares a dim that its neighbour leaves unknown. The neighbour is the input port at the other end "
     "of the edge, or the shape of a Parameter. Both declarations may be true, but tools write both from the same "
     "shape. The finding marks the declaration that inference contradicts. Declare the same dims at both places."),
    ("IR406w", "doubtful-layer", "The layer can be computed, but it breaks a rule of the specification that OpenVINO "
     "does not enforce, or it loses data. Change the input or attribute that the message names."),
    ("IR407h", "unknown-dim-spelling", "A port writes an unknown dim as ?. Its meaning is clear, but OpenVINO refuses "
     "the file: only the attribute `shape` accepts ?. Write -1."),
    # 5xx weights
    ("IR501", "weights-missing", "The model has constants, but the .bin that holds their values is missing. Put the "
     ".bin beside the .xml under the same name, or name it with -w (weights= in Python)."),
    ("IR502", "weights-range", "The offset and size of a constant are negative or reach beyond the end of the .bin. "
     "The .bin is cut short or belongs to another model. Copy the .bin of this model again. A run also gives this "
     "finding if the .bin was written to after the model was read: compile the model again."),
    ("IR503", "weights-size", "The size of a constant is less than the number of bytes that its shape and element "
     "type need. Correct the size, the shape or the element type."),
    ("IR504", "weights-content", "The bytes of a constant are not a valid tensor of its type: the offsets of a string "
     "tensor do not ascend from 0 to the end of its text. Correct the offset of the constant or write the .bin again."),
    ("IR505w", "weights-overlap", "Two constants share some of their bytes, but not all. (Constants with equal values "
     "may share all their bytes.) Correct the offset or size of one of them, or pass the .bin of this model."),
    ("IR506w", "weights-unused", "The .bin is longer than the constants of the model need. The .bin belongs to "
     "another model, a constant has a wrong offset, or somebody removed a constant. Check which of these applies, and "
     "write the .bin again."),
    ("IR507w", "not-finite", "A constant holds NaN, or +inf among finite numbers, which makes most values that depend "
     "on it NaN or infinite. Training diverged, a conversion to f16 overflowed, or the offset or element_type is "
     "wrong. irrun does not report masks of -inf and 0. It checks the first 16,384 elements of a constant."),
    ("IR508w", "weights-excess", "The size of a constant is more than the number of bytes that its shape and element "
     "type need. irrun and OpenVINO read the first bytes and ignore the others. Correct the size, the shape or the "
     "element type."),
    # 6xx execution
    ("IR601", "bad-feed", "A value that is passed to the model has the name of no input, or another element type or "
     "shape than the input. Run `irrun show` to list the inputs."),
    ("IR602", "not-as-declared", "In a strict run, a layer produced another element type or shape than its port "
     "declares. Run `irrun check` to find out which of the two is wrong, or run without --strict to ignore the "
     "difference."),
    ("IR603", "kernel-failed", "A kernel or shape rule failed on a model that has no errors. This is a bug in irrun, "
     "unless the operation is your own. Report it together with the XML of the layer."),
    ("IR604", "out-of-memory", "A tensor, or all tensors that are live at a layer, would take more memory than "
     "--max-memory allows. irrun refuses them before it allocates them. If one tensor is too large, its target shape "
     "is usually wrong: correct it. Otherwise run smaller inputs, or raise --max-memory. `irrun batch` also gives this "
     "finding for an input whose process the system ends twice: run fewer --jobs."),
    ("IR605", "invalid-value", "The values that a layer received break a rule of its operation: for example, an index "
     "is out of range, or a target shape does not fit. Correct the input that the message names."),
    ("IR606", "bad-selection", "The model has no layer of the given name (--tap, --from, --to), or no path connects "
     "the layers at which a part shall begin and end. Pass names of layers, or globs such as 'conv*'."),
    ("IR607", "timeout", "A run took longer than --timeout allows. irrun looks at the time before each step, each "
     "iteration of a loop and each element of a recurrent sequence. Usually a Loop has no trip count and its condition "
     "never becomes false: correct the loop. Otherwise raise --timeout."),
    ("IR608", "edit-refused", "An edit of a model cannot be made, or its result differs from the original: a name is "
     "taken, an output does not fit the input that it shall become, or an older operation set cannot say what a layer "
     "does. Change the edit or the layer as the help says."),
    ("IR609", "bad-call", "A call of irrun.build, or another function of irrun, has an argument that it cannot use: a "
     "value that fits no element type, an input that is passed twice, or outputs that depend on a foreign parameter. "
     "Change the call as the message says."),
    # 7xx engines and comparisons
    ("IR701", "bad-side", "A side of a comparison is neither a path nor KIND[OPTIONS]:PATH, or its kind or an option "
     "is unknown. The kinds are irrun, exact, openvino, evaluate, onnx, ort, openvino2onnx, pyopenvino, dump and npz. "
     "Write the side as the help says."),
    ("IR702", "engine-unavailable", "The engine of a side is not installed, or its process does not start. Install it, "
     "or name an interpreter that has it, as in openvino[python=PATH]:model.xml."),
    ("IR703", "bad-tolerance", "A file of tolerances (--tolerances) cannot be read or has an unknown entry. The tables "
     "are types, layers and outputs, and the numbers rtol and atol."),
    ("IR704", "nothing-in-common", "The two sides of a comparison have no output and no layer in common, so that there "
     "is nothing to compare. Pass two forms of the same model."),
    ("IR705", "bad-comparator", "The function that --comparator names cannot be imported, raises an exception, or "
     "returns neither True, False nor a text. Correct the function."),
    ("IR706", "bad-measurements", "A file of measurements (--from) cannot be read, or was written by another version. "
     "Pass a file that `irrun compare --save` wrote, or compare again."),
    # 8xx folders of language models
    ("IR801", "bad-folder", "A folder is not that of a language model: openvino_model.xml or the files of its "
     "tokenizer are missing, or it is another kind of model. `irrun generate` needs what optimum-intel writes for the "
     "task text-generation-with-past. Export the model again, or pass the folder that the help names."),
    ("IR802", "bad-setting", "A configuration file of a language model is not JSON or has an entry of the wrong kind, "
     "or a setting of a generation makes no sense, such as a temperature of 0. Correct the entry or the setting."),
    ("IR803", "vocabulary-mismatch", "The tokenizer, the detokenizer and the model of a folder do not have the same "
     "tokens: the model has fewer rows or logits than the tokenizer has tokens, or the detokenizer has other tokens. "
     "The files belong to different exports. Put those of one export together. A model may have more tokens than its "
     "tokenizer, because the number is often rounded up."),
    ("IR804", "unknown-special-token", "A configuration file names the id of a special token (eos_token_id, "
     "bos_token_id, pad_token_id) that the tokenizer does not have. A generation does not end at such an id. Write the "
     "id that the tokenizer gives the token, or put the files of one export together."),
    ("IR805", "unfed-input", "A language model has an input that no generation can feed, or lacks input_ids or logits. "
     "irrun feeds input_ids, attention_mask, position_ids, beam_idx and token_type_ids; the model must keep the past "
     "in variables. Export the model again with optimum-intel, without --disable-stateful."),
    ("IR806", "bad-template", "A chat template cannot be compiled, fails on the messages, refuses them, or takes too "
     "much time or memory. Correct the template at the line that the message names, pass other messages, or pass the "
     "prompt as a text."),
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

    @property
    def blocks(self) -> bool:
        """Whether irrun does not run a model with this fault."""
        return CODES[self.code].blocks

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


@dataclass(frozen=True, slots=True)
class Report:
    """The result of a check: its diagnostics, in the order of the file. Iterate over the report to get them."""

    diagnostics: tuple[Diagnostic, ...]

    def __iter__(self) -> Iterator[Diagnostic]:
        return iter(self.diagnostics)

    def __len__(self) -> int:
        return len(self.diagnostics)

    def __str__(self) -> str:
        """Return a line for each diagnostic, and one that counts them."""
        return "\n".join((*(printable(str(d)) for d in self.diagnostics), self.summary))

    def _repr_html_(self) -> str:
        rows = [
            (d.code, d.severity, f"{d.file or ''}{f':{d.line}' if d.line else ''}", d.message, d.help or "")
            for d in self
        ]
        return table(self.summary, ("code", "severity", "place", "message", "help"), rows)

    @property
    def summary(self) -> str:
        """How many errors and warnings there are."""
        errors = len(self.errors)
        return f"{counted(errors, 'error')}, {counted(len(self.diagnostics) - errors, 'warning')}"

    @property
    def errors(self) -> tuple[Diagnostic, ...]:
        return tuple(d for d in self.diagnostics if d.severity == "error")

    @property
    def ok(self) -> bool:
        """Whether the report contains no error. It may contain warnings."""
        return not self.errors


class Refused(Exception):  # noqa: N818  (what it is, not a fault of the program)
    """The exception that a rule raises if it does not accept its input. It does not know the layer or the file.

    ``Op.doubts`` returns it, without raising it, for an input that is only doubtful. The caller that knows the layer
    converts it to a Diagnostic with the same ``message``, ``help`` and ``code``. ``label`` is the clause of the
    operation's specification that is broken (``C3``), ``notes`` are lines that show how, and ``dims`` are the dims that
    contradict each other.
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


class EngineError(IrrunError):
    """Two engines cannot be compared: a side, an engine, a tolerance or a comparator cannot be used."""


class FeedError(IrrunError):
    """The inputs passed to a model do not fit it: wrong name, element type or shape."""


class ExecutionError(IrrunError):
    """The model failed while running."""


class BuildError(ModelError, ValueError, TypeError):
    """A call of ``irrun.build`` has an argument that it cannot use. Python's own functions raise the last two bases."""


class WriteError(IrrunError, OSError):
    """A file cannot be written (IR011). ``errno`` is that of the operating system."""

    def __init__(self, diagnostics: Diagnostic | Iterable[Diagnostic], errno: int | None = None) -> None:
        super().__init__(diagnostics)
        self.errno = errno

    def __str__(self) -> str:
        return "\n".join(map(str, self.diagnostics))

    @staticmethod
    def of(path: object, error: OSError) -> WriteError:
        """Return the error for a file that cannot be written because of ``error``."""
        reason = (error.strerror or str(error)).lower()
        help = "create the folder, or choose another path" if error.errno == ENOENT else "choose another path"
        help = "free some space" if error.errno in (ENOSPC, EDQUOT) else help
        message = f"cannot write {path}: {reason}"
        return WriteError(Diagnostic("IR011", "error", message, file=str(path), help=help), error.errno)
