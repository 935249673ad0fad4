"""Diagnostics: the diagnostic of one fault, the report of a check, and the errors of irrun."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from errno import EDQUOT, ENOENT, ENOSPC
from typing import Final

from irrun.base.edits import Fix
from irrun.base.source import Source, Span
from irrun.base.text import counted, printable, table
from irrun.codes import CODES, Kind, Severity
from irrun.types import Dim

__all__ = [
    "BuildError",
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
    def kind(self) -> Kind:
        return CODES[self.code].kind

    @property
    def blocks(self) -> bool:
        """Whether irrun does not run a model with this fault."""
        return self.kind.blocks

    def __str__(self) -> str:
        place = self.file or ""
        if self.span:
            place += f":{self.span.line}:{self.span.column}"
        return f"{place}{': ' if place else ''}{self.severity}[{self.code} {self.name}] {self.message}" + (
            f"; {self.help}" if self.help else ""
        )


_MAX_MESSAGE_CHARS: Final = 600
"""The most characters of a message that are kept: a name or value in the file may have megabytes."""


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
    if len(message) > _MAX_MESSAGE_CHARS:
        message = f"{message[: _MAX_MESSAGE_CHARS * 2 // 3]} … {message[-_MAX_MESSAGE_CHARS // 3 :]}"
    made = Diagnostic(code, CODES[code].kind.severity, message, file=file, span=span, source=source)
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
    contradict each other. If a layer in a body breaks a rule, ``inside`` are the positions of this layer and of those
    around it in the order of inference of their bodies, the outermost first.
    """

    def __init__(
        self,
        message: str,
        label: str | None = None,
        help: str | None = None,
        code: str = "IR403",
        *,
        notes: tuple[str, ...] = (),
        dims: tuple[Dim, ...] = (),
        inside: tuple[int, ...] = (),
    ) -> None:
        super().__init__(message)
        self.message, self.label, self.help, self.code = message, label, help, code
        self.notes, self.dims, self.inside = notes, dims, inside


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
        return WriteError(diagnostic("IR011", message, file=str(path), help=help), error.errno)
