"""``irrun op`` (look): Show an operation: inputs, attributes, constraints."""

from __future__ import annotations

import inspect
import os
import re
import sys
from pathlib import Path
from typing import Any

import click
from rich.console import Console

import irrun
from irrun.cli import _completion, _terminal
from irrun.cli._options import format_option
from irrun.model.lookup import nearest
from irrun.opdef import SPECIFICATION, Attribute, Input, Op, all_ops, find, labels, named, released, resolve
from irrun.types import PartialShape

__all__ = ["command", "default_of", "multiplicity", "place", "port_types", "spellings", "summary"]


@click.command("op")
@click.argument("name", shell_complete=_completion.operations)
@format_option("text", "json")
def command(name: str, form: str) -> None:
    """Show an operation: inputs, attributes, constraints.

    NAME is a type in upper or lower case (broadcast), which shows all its versions, or a type with the number of
    an opset (Broadcast-8), which shows the version that this opset contains. The beginning of a word (conv) lists the
    operations with such a word in their names.
    """
    type, dash, version = name.rpartition("-")
    if not (dash and version.isascii() and version.isdigit()):
        type, version = name, ""
    versions = find(type)
    if not versions:
        if begun := {cls.type: cls for cls in all_ops() if re.search(_word(type), cls.type)} if not version else {}:
            if form == "json":
                _terminal.print_json({"operations": [_record(cls) for cls in begun.values()]})
                return
            rows = [(cls.type, summary(cls).splitlines()[0].replace("``", "")) for cls in begun.values()]
            _terminal.print_table(_terminal.console(), ("operation", ""), rows, is_prose=True)
            return
        near = nearest(type, [cls.type for cls in all_ops()], 3)
        help = f"did you mean {', '.join(near)}?" if near else "irrun ops lists what irrun knows"
        raise click.UsageError(f"irrun does not know the operation {type}; {help}")
    others = named(type)
    chosen = [*versions.values(), *others]
    if version:
        cls = next((cls for cls in others if cls.since == int(version)), None) or resolve(type, int(version))
        if cls is None:
            raise click.UsageError(f"opset{version} has no {chosen[0].type}; opset{min(versions)} added it")
        chosen = [cls]
    chosen = sorted(chosen, key=lambda c: -c.since)
    if form == "json":
        _terminal.print_json({"operations": [_record(cls) for cls in chosen]})
        return
    out = _terminal.console()
    for position, cls in enumerate(chosen):
        if position:
            out.print()
        _print(out, cls)


def _word(beginning: str) -> str:
    """Return the pattern of the types that have a word with this beginning: conv matches GroupConvolution."""
    first, rest = re.escape(beginning[:1].upper()), re.escape(beginning[1:])
    return rf"{first}(?i:{rest})" if beginning else r"(?!)"


def _record(cls: type[Op]) -> dict[str, Any]:
    """Return the declaration of an operation as a dict for JSON."""
    file, line = place(cls)
    return {
        "type": cls.type,
        "version": cls.since,
        "summary": summary(cls).replace("``", ""),
        "specification": cls.spec,
        "release": released(cls),
        "revisions": [{"release": r.release, "commit": r.commit, "change": r.change} for r in reversed(cls.revisions)],
        "file": file,
        "line": line,
        "inputs": [
            {"name": port.name, "types": port_types(cls, port), "multiplicity": multiplicity(port) or "once"}
            for port in cls.inputs
        ],
        "attributes": [
            {
                "name": a.name,
                "aliases": list(a.aliases),
                "values": a.expects,
                "required": a.required,
                "default": None if a.required else default_of(a),
            }
            for a in cls.attributes.values()
        ],
        "constraints": [{"label": label, "text": clause.replace("``", "")} for label, clause in labels(cls).items()],
    }


def _print(out: Console, cls: type[Op]) -> None:
    _terminal.title(out, f"{cls.type}-{cls.since}")
    for line in summary(cls).replace("``", "").splitlines():
        out.print(f"  {line}" if line else "")
    file, line = place(cls)
    out.print()
    if cls.spec:
        out.print(f"  specification  {cls.spec}")
        out.print(f"                 {SPECIFICATION.format(spec=cls.spec)}")
    if release := released(cls):
        out.print(f"  since          OpenVINO {release}")
    out.print(f"  declared in    {_shortest(file)}:{line}")
    if cls.inputs:
        _terminal.title(out, "\ninputs")
        rows = [(port.name, port_types(cls, port), multiplicity(port)) for port in cls.inputs]
        _terminal.print_table(out, ("name", "types", ""), rows, is_prose=True)
    if cls.attributes:
        _terminal.title(out, "\nattributes")
        rows = [(spellings(a), a.expects, default_of(a)) for a in cls.attributes.values()]
        _terminal.print_table(out, ("name", "values", "default"), rows, is_prose=True)
    if cls.revisions:
        _terminal.title(out, "\nrevisions of the page")
        revisions = [(r.release or "none", r.commit[:7] or "none", r.change) for r in reversed(cls.revisions)]
        _terminal.print_table(out, ("release", "commit", "change"), revisions, is_prose=True)
    if clauses := labels(cls):
        _terminal.title(out, "\nconstraints")
        for label, clause in clauses.items():
            out.print(f"  {label}  {clause.replace('``', '')}")


def summary(cls: type[Op]) -> str:
    """Return the docstring of an operation without its clauses."""
    return re.split(r"\n\nC\d+  ", inspect.cleandoc(cls.__doc__ or ""))[0]


def port_types(cls: type[Op], port: Input) -> str:
    """Return the element types of an input: ``T: f32, f16`` for a type variable, else ``f32, f16``."""
    words = cls.types.get(port.type, port.type).replace(" ", ", ")
    return f"{port.type}: {words}" if port.type in cls.types else words


def multiplicity(port: Input) -> str:
    """Return ``repeated``, ``optional``, or an empty text for an input that occurs exactly once."""
    return "repeated" if port.variadic else "optional" if port.optional else ""


def spellings(attribute: Attribute) -> str:
    """Return the names that a file may use for an attribute."""
    return ", or ".join((attribute.name, *attribute.aliases))


def default_of(attribute: Attribute) -> str:
    """Return the default of an attribute as a file would spell it, or ``required``, ``none`` or ``empty``."""
    if attribute.required:
        return "required"
    value: Any = attribute.default
    if value is None:
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return ",".join(map(str, value)) or "empty"
    if isinstance(value, PartialShape):
        return str(value)
    return str(value) if value != "" else "empty"


def place(cls: type[Op]) -> tuple[str, int]:
    """Return the file and line that declare an operation. The files of irrun begin with ``irrun/``."""
    module = sys.modules[cls.__module__]
    path = Path(module.__file__ or "")
    home = Path(irrun.__file__).parent.parent
    file = path.relative_to(home).as_posix() if path.is_relative_to(home) else str(path)
    return file, _line(inspect.getsource(module).splitlines(), cls)


def _line(lines: list[str], cls: type[Op]) -> int:
    """Return the line of the operation's class, or of the table row that defines it; 1 if neither is found."""
    ours = re.compile(rf"class {cls.__name__}\b")
    row = re.compile(rf"[\"']{cls.type}[\"'].*\b{cls.since}\b|[\"']{cls.type}[\"']")
    for pattern in (ours, row):
        for number, line in enumerate(lines, 1):
            if pattern.search(line):
                return number
    return 1


def _shortest(file: str) -> str:
    """Return the path relative to the current folder or the absolute one, whichever is shorter. Editors open both."""
    path = Path(irrun.__file__).parent.parent / file
    near = os.path.relpath(path) if path.drive == Path.cwd().drive else str(path)
    return min(near, str(path), key=len)
