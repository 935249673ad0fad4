"""Generate the pages of the site that follow from irrun itself: operations, diagnostic codes, commands, Python API.

Each function returns Markdown (MyST) by the path of its page below ``docs/generated``. Nothing here needs Sphinx:
``conf.py`` writes the pages before a build, and ``tests/repository/test_site.py`` reads them without one.
"""

from __future__ import annotations

import inspect
import itertools
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Final

import click

import irrun
from irrun.cli import COMMANDS, cli
from irrun.cli.op import default_of, multiplicity, place, port_types, spellings, summary
from irrun.codes import CODES, Code, Kind
from irrun.departures import departures
from irrun.inference.layer import infer
from irrun.opdef import SPECIFICATION, Input, Op, Site, Value, all_ops, is_custom, labels
from irrun.types import ELEMENT_TYPES, UNKNOWN_RANK, ElementType, type_set

__all__ = ["DOCS", "FOLDER", "pages", "relinked"]

DOCS: Final = Path(__file__).parent.parent
ROOT: Final = DOCS.parent
FOLDER: Final = "generated"
"""The folder below ``docs`` that holds the generated pages."""

REPOSITORY_PAGES: Final = {
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "CHANGELOG.md": "changelog.md",
    "samples/pytest_project/README.md": "pytest-project.md",
}
"""Pages outside ``docs`` that the site shows, by their path in the repository, and their names in ``FOLDER``."""


def pages() -> dict[str, str]:
    """Return every generated page: its Markdown by its path below ``docs/generated``."""
    return {
        **operation_pages(),
        **code_pages(),
        "command-line.md": command_page(),
        "python.md": python_page(),
        **{page: repository_page(file) for file, page in REPOSITORY_PAGES.items()},
    }


# ---------------------------------------------------------------------------------------------
# operations


def operation_pages() -> dict[str, str]:
    """Return the page of each operation type, with all versions of the type, and the index of all types."""
    types: dict[str, list[type[Op]]] = {}
    for cls in all_ops():
        if _is_own(cls):
            types.setdefault(cls.type, []).append(cls)
    found = {f"operations/{type}.md": _operation_page(type, versions) for type, versions in types.items()}
    found["operations/index.md"] = _operation_index(types)
    return found


def _is_own(cls: type[Op]) -> bool:
    """Return whether irrun declares an operation, as one of OpenVINO or of an extension."""
    return cls.__module__.startswith(("irrun.ops.", "irrun.extensions."))


def _operation_page(type: str, versions: Sequence[type[Op]]) -> str:
    """Return the page of one type; ``versions`` ascend, and the page shows the newest first, extensions last."""
    lines = [f"# {type}", ""]
    ordered = sorted(versions, key=lambda cls: (is_custom(cls), -cls.since))
    for cls, newer in zip(ordered, [None, *ordered]):
        lines += [*_version(cls, newer), ""]
    if rows := [row for row in departures() if type in (row.operation, *row.also)]:
        lines += ["## Departures of OpenVINO", "", "[All departures](../../departures.md).", ""]
        table = [
            (f"[model](../../../irrun/departures/{row.model.name})", row.case, row.openvino, row.irrun, row.issue_link)
            for row in rows
        ]
        lines += [*_table(("", "case", "OpenVINO", "irrun", "issue"), table), ""]
    return "\n".join(lines)


def _version(cls: type[Op], newer: type[Op] | None) -> Iterator[str]:
    if is_custom(cls):
        yield from _extension_version(cls)
        return
    last = "" if newer is None else f" to opset{newer.since - 1}" if newer.since - 1 > cls.since else " only"
    yield f"## {cls.type}-{cls.since}"
    yield ""
    yield _prose(summary(cls))
    yield ""
    file, line = place(cls)
    yield f"- Operation sets: opset{cls.since}{last or (' and later' if newer is None else '')}"
    yield f"- Specification: [{cls.spec}]({SPECIFICATION.format(spec=cls.spec)})"
    yield f"- Declared in: `{file}`, line {line}"
    yield ""
    yield from _declaration(cls)


def _extension_version(cls: type[Op]) -> Iterator[str]:
    """Yield the section of an operation of an extension."""
    file, line = place(cls)
    yield f"## {cls.type}-{cls.since} of the extension {_extension(cls)}"
    yield ""
    yield _prose(summary(cls))
    yield ""
    page = "internal-operations" if cls.revisions else "extensions"
    yield f'- Operation set: [{_extension(cls)}](../../{page}.md), mostly as `version="extension"`'
    if cls.spec:
        yield f"- Specification: [{cls.spec}]({SPECIFICATION.format(spec=cls.spec)})"
    if cls.revisions:
        yield f"- Revisions of the page: {', '.join(map(str, reversed(cls.revisions)))}"
    yield f"- Declared in: `{file}`, line {line}"
    yield ""
    yield from _declaration(cls)


def _extension(cls: type[Op]) -> str:
    """Return the name of the package in ``irrun.extensions`` that declares an operation."""
    return cls.__module__.split(".")[2]


def _declaration(cls: type[Op]) -> Iterator[str]:
    """Yield the ports, attributes and constraints of an operation."""
    if cls.inputs:
        yield "### Inputs"
        yield ""
        yield from _table(
            ("name", "element types", ""),
            [(f"`{port.name}`", port_types(cls, port), multiplicity(port)) for port in cls.inputs],
        )
        yield ""
    yield "### Outputs"
    yield ""
    yield from _outputs(cls)
    yield ""
    if cls.attributes:
        yield "### Attributes"
        yield ""
        rows = [(f"`{spellings(a)}`", a.expects, default_of(a)) for a in cls.attributes.values()]
        yield from _table(("name", "values", "default"), rows)
        yield ""
    if clauses := labels(cls):
        yield "### Constraints"
        yield ""
        yield from _table(("clause", "condition"), [(label, _prose(text)) for label, text in clauses.items()])
        yield ""


def _outputs(cls: type[Op]) -> Iterator[str]:
    """Yield the number of outputs, and their element types where the shape rule shows from what they follow."""
    if cls.outputs is None:
        yield "As many outputs as the layer declares."
    elif not cls.outputs:
        yield "None."
    elif types := _output_types(cls):
        rows = [(str(position), text) for position, text in enumerate(types)]
        yield from _table(("output", "element type"), rows)
    else:
        yield "One output." if cls.outputs == 1 else f"{cls.outputs} outputs."


_ANY_TEXT: Final = {
    "an integer": "1",
    "integers separated by commas": "1,1",
    "a number": "1",
    "numbers separated by commas": "1",
    "true or false": "true",
    "text": "",
    "dims separated by commas, such as 1,3,?,8..16": "?",
}
"""For each kind of attribute (``Attribute.expects``), a text that it accepts."""


def _output_types(cls: type[Op]) -> list[str]:
    """Return what each output's element type follows from: a type variable, an input or an attribute; else ``[]``.

    The shape rule is asked several times, each time with other element types, for inputs of unknown rank: an output
    follows the source whose type it has each time.
    """
    choices: dict[str, list[ElementType]] = {}
    for port in cls.inputs:
        allowed = type_set(cls.types.get(port.type, port.type))
        known = [t for t in _PROBES if t in allowed] or sorted(allowed, key=str)
        choices[_source(cls, port)] = known[:3]
    texts: dict[str, str] = {}
    for name, attribute in cls.attributes.items():
        if attribute.expects == _ELEMENT_TYPE:
            choices[name] = _PROBES[:3]
        elif attribute.required:
            texts[name] = _ANY_TEXT.get(attribute.expects, attribute.expects.removeprefix("one of ").split(",")[0])
    names: list[set[str]] | None = None
    for types in itertools.product(*choices.values()):
        chosen = dict(zip(choices, types))
        attributes = {name: cls.attributes[name].parse(text) for name, text in texts.items()}
        attributes |= {name: chosen[name] for name in cls.attributes if name in chosen}
        inputs = [Value(chosen[_source(cls, port)], UNKNOWN_RANK) for port in cls.inputs]
        try:
            outputs = infer(cls(**attributes), Site(cls.outputs or 1), inputs, {}, contents=False)
        except Exception:  # not these types together, or nothing at all without shapes, bodies or weights
            continue
        found = [{name for name, type in chosen.items() if type is v.type} | {v.type.name} for v in outputs]
        names = found if names is None else [a & b for a, b in zip(names, found)]
    if not names or not all(names):
        return []
    order = [*cls.attributes, *cls.types, *(port.name for port in cls.inputs)]
    best = [next((name for name in order if name in own), min(own)) for own in names]
    attributes_or_inputs = {*cls.attributes, *(port.name for port in cls.inputs)} - cls.types.keys()
    return [f"that of `{name}`" if name in attributes_or_inputs else name for name in best]


_ELEMENT_TYPE: Final = "an element type such as f32 or i64"
_PROBES: Final = [ELEMENT_TYPES[name] for name in ("i32", "i64", "f32", "f16", "u8", "boolean")]


def _source(cls: type[Op], port: Input) -> str:
    """Return what binds the type of an input: its type variable, or the input itself."""
    return port.type if port.type in cls.types else port.name


def _operation_index(types: dict[str, list[type[Op]]]) -> str:
    groups: dict[str, list[tuple[str, str, str]]] = {}
    for type, versions in types.items():
        newest = max(versions, key=lambda cls: (not is_custom(cls), cls.since))
        sentence = _prose(_first_sentence(summary(newest)))
        numbers = ", ".join(str(cls.since) for cls in versions)
        group = _extension(newest) if is_custom(newest) else newest.spec.partition("/")[0]
        groups.setdefault(group, []).append((f"[{type}]({type}.md)", numbers, sentence))
    count = sum(map(len, types.values()))
    lines = [
        "# Operations",
        "",
        f"irrun checks and runs {len(types)} operation types in {count} versions. `irrun op NAME` prints the same in a",
        "terminal. The groups are those of the specification; each [extension](../../extensions.md) is one more.",
        "",
    ]
    for group in sorted(groups):
        lines += [f"## {group.capitalize()}", "", *_table(("type", "versions", ""), groups[group]), ""]
    return "\n".join([*lines, *_toctree(types)])


# ---------------------------------------------------------------------------------------------
# diagnostic codes


def code_pages() -> dict[str, str]:
    """Return the page of each diagnostic code, with the contents of ``irrun explain``, and the index of all codes."""
    found = {f"codes/{code.id}.md": _code_page(code) for code in CODES.values()}
    rows = [
        (
            f"[{code.id}]({code.id}.md)",
            code.name,
            code.kind.severity,
            code.kind.name.lower(),
            _prose(_first_sentence(code.doc)),
        )
        for code in CODES.values()
    ]
    lines = [
        "# Diagnostic codes",
        "",
        "`irrun explain CODE` prints the same in a terminal.",
        "[Checking models](../../checking.md) says how to select and to ignore codes.",
        "",
        *_table(("kind", "severity", "runs", "exit status", "meaning"), map(_kind_row, Kind)),
        "",
        *_table(("code", "name", "severity", "kind", ""), rows),
        "",
        *_toctree(CODES),
    ]
    return found | {"codes/index.md": "\n".join(lines)}


def _kind_row(kind: Kind) -> tuple[str, ...]:
    return kind.name.lower(), kind.severity, "no" if kind.blocks else "yes", str(kind.exit_status), kind.meaning


def _code_page(code: Code) -> str:
    """Return the meaning of a code and its explanation; ``xml NAME`` fences become captioned code blocks."""
    text = re.sub(r"^```(\w+) (\S+)$", r"```{code-block} \1\n:caption: \2", code.page, flags=re.MULTILINE)
    return f"# {code.id} {code.name}\n\nSeverity: {code.kind.severity}.\n\n{_prose(code.doc)}\n\n{text}"


# ---------------------------------------------------------------------------------------------
# command line


def command_page() -> str:
    """Return the help of ``irrun`` and of each of its commands."""
    lines = ["# Command line", "", "The help of each command, as `irrun COMMAND --help` prints it.", ""]
    for name in ("", *COMMANDS):
        command = import_module(f"irrun.cli.{name}").command if name else cli
        context = click.Context(command, info_name=f"irrun {name}".strip(), terminal_width=100, max_content_width=100)
        context.help_option_names = ["-h", "--help"]
        lines += [f"## {context.info_name}", "", "```text", command.get_help(context), "```", ""]
        for subname, subcommand in command.commands.items() if name and isinstance(command, click.Group) else ():
            below = click.Context(subcommand, context, subname, terminal_width=100, max_content_width=100)
            lines += [f"### {context.info_name} {subname}", "", "```text", subcommand.get_help(below), "```", ""]
    return "\n".join(lines)


# ---------------------------------------------------------------------------------------------
# Python


def python_page() -> str:
    """Return directives of ``sphinx.ext.autodoc`` for every name in ``irrun.__all__`` and ``irrun.testing.__all__``."""
    names: dict[str, list[str]] = {"Functions": [], "Classes": [], "Errors": []}
    for name in irrun.__all__:
        value = getattr(irrun, name)
        is_error = inspect.isclass(value) and issubclass(value, Exception)
        kind = "Errors" if is_error else "Classes" if inspect.isclass(value) else "Functions"
        names[kind].append(f"irrun.{name}")
    testing = import_module("irrun.testing")
    names["Testing"] = [f"irrun.testing.{name}" for name in testing.__all__]
    lines = [
        "# Python API",
        "",
        "[Embedding](../embedding.md) and [testing](../testing.md) introduce these names.",
        "",
    ]
    for title, members in names.items():
        lines += [f"## {title}", "", "```{eval-rst}"]
        for name in members:
            value = getattr(testing if title == "Testing" else irrun, name.rpartition(".")[2])
            if inspect.isclass(value):
                is_error = issubclass(value, Exception)
                lines += [f".. auto{'exception' if is_error else 'class'}:: {name}", *["   :members:"] * (not is_error)]
            else:
                lines.append(f".. auto{'function' if inspect.isfunction(value) else 'data'}:: {name}")
            lines.append("")
        lines += ["```", ""]
    return "\n".join(lines)


# ---------------------------------------------------------------------------------------------
# pages of the repository


def repository_page(file: str) -> str:
    """Return a page that lies outside ``docs``, with its links made relative to ``docs/generated``."""
    return relinked((ROOT / file).read_text("utf-8"), (ROOT / file).parent, DOCS / FOLDER)


def relinked(text: str, folder: Path, to: Path) -> str:
    """Rewrite the relative links of a page in ``folder`` for the site, where the page lies in ``to``.

    A link to a page of the repository leads to its copy in ``docs/generated``; any other leads to the same file.
    Code blocks stay as they are.
    """

    def link(match: re.Match[str]) -> str:
        target, hash, anchor = match[1].partition("#")
        if not target or re.match(r"[a-z]+:", target):
            return match[0]
        file = (folder / target).resolve()
        place = file.relative_to(ROOT.resolve()).as_posix()
        if place in REPOSITORY_PAGES:
            file = DOCS.resolve() / FOLDER / REPOSITORY_PAGES[place]
        elif code := re.fullmatch(r"irrun/explanations/(IR\d+\.md)", place):
            file = DOCS.resolve() / FOLDER / "codes" / code[1]
        return f"]({Path(os.path.relpath(file, to.resolve())).as_posix()}{hash}{anchor})"

    parts = re.split(r"(^ *```.*?^ *```$)", text, flags=re.MULTILINE | re.DOTALL)
    return "".join(part if number % 2 else re.sub(r"\]\(([^)\s]+)\)", link, part) for number, part in enumerate(parts))


# ---------------------------------------------------------------------------------------------
# Markdown


def _prose(text: str) -> str:
    """Turn the text of a docstring into Markdown: ``code`` stays code, every other character stands for itself."""
    parts = text.split("``")
    return "".join(f"`{part}`" if number % 2 else _escaped(part) for number, part in enumerate(parts))


def _escaped(text: str) -> str:
    parts = re.split(r"(`[^`]+`)", text)  # single backticks are code as well
    return "".join(part if number % 2 else re.sub(r"([\\*_<\[\]])", r"\\\1", part) for number, part in enumerate(parts))


def _first_sentence(text: str) -> str:
    return re.split(r"(?<=\.)\s", " ".join(text.split("\n\n")[0].split()), maxsplit=1)[0]


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a table. Cells are Markdown; a ``|`` in them is escaped."""
    yield f"| {' | '.join(columns)} |"
    yield f"| {' | '.join('---' for _ in columns)} |"
    for row in rows:
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |"


def _toctree(names: Iterable[str]) -> list[str]:
    return ["```{toctree}", ":hidden:", "", *names, "```", ""]
