"""``irrun check``: compare what models declare with what follows from their layers."""

from __future__ import annotations

import glob
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final
from xml.parsers import expat

import click

from irrun.checker import check
from irrun.cli import _config, _errors, _models, _terminal
from irrun.cli._options import format_option, plugin_option, weights_option
from irrun.diagnostics import CODES, Diagnostic, ReadError
from irrun.render import concise, text
from irrun.reports import FORMATS

__all__ = ["command"]


def _codes(ctx: click.Context, param: click.Parameter, values: Sequence[str]) -> tuple[str, ...]:
    try:
        return _config.codes(values)
    except ValueError as error:
        raise click.BadParameter(str(error), ctx, param) from None


@click.command("check")
@click.argument("paths", metavar="PATH...", nargs=-1, required=True)
@weights_option
@plugin_option
@format_option("full", "concise", *FORMATS, "text")
@click.option("--select", metavar="CODE", multiple=True, callback=_codes, help="Only these, such as IR401 or IR4.")
@click.option("--ignore", metavar="CODE", multiple=True, callback=_codes, help="All but these.")
@click.option("--statistics", is_flag=True, help="Only how often each code was found.")
@click.option("--exit-zero", is_flag=True, help="Exit with 0 whatever is found; 2 still where a file cannot be read.")
def command(
    paths: Sequence[str], weights: str | None, form: str, select: Sequence[str], ignore: Sequence[str],
    statistics: bool, exit_zero: bool,
) -> int:  # fmt: skip
    """Check models: every shape and precision that they declare.

    PATH is an IR file, a folder (every IR in it and in those below), a glob such as 'models/**/*.xml', a page
    with <layer> examples, or - for standard input. Exit status 1 where there is an error.

    --select never hides that a file cannot be read. --select and --ignore stand in pyproject.toml as well, under
    [tool.irrun], with per-file-ignores. In a model, <!-- irrun: ignore IR401 --> ignores a finding on its line or,
    alone on a line, on the next. The format `text` is another name of `full`.
    """
    form = "full" if form == "text" else form
    if statistics and form not in ("full", "concise", "json"):
        raise click.UsageError(f"--statistics has no format {form}; it has full, concise and json")
    config = _config.read_config()
    select, ignore = select or config.select, ignore or config.ignore
    files = [file for path in paths for file in _files(path)]
    files = list(dict.fromkeys(files))
    if weights is not None and len(files) > 1:
        raise click.UsageError(f"-w names one .bin, but there are {len(files)} models")
    found: dict[str, list[Diagnostic]] = {}
    out = _terminal.console()
    for file in files:
        ignored = (*ignore, *config.ignored_in(file))
        found[file] = [d for d in _check(file, weights) if _wanted(d, select, ignored)]
        for diagnostic in found[file] if not statistics else ():
            if form == "full":
                out.print(text(diagnostic))
            elif form == "concise":
                out.print(concise(diagnostic))
    every = [d for diagnostics in found.values() for d in diagnostics]
    if statistics:
        _print_statistics(every, form)
    elif form in FORMATS:
        sys.stdout.write(FORMATS[form](found))
    if form not in FORMATS:
        out.file.flush()
        _terminal.console(stderr=True).print(_summary(len(files), every))
    status = _errors.exit_status(every)
    return 0 if exit_zero and status != 2 else status


def _check(file: str, weights: str | None) -> list[Diagnostic]:
    found: list[Diagnostic] = []
    try:
        for item in _models.load(file, weights):
            found += item.diagnostics if isinstance(item, ReadError) else check(item)
    except ReadError as error:
        found += error.diagnostics
    return found


def _wanted(found: Diagnostic, select: Sequence[str], ignore: Sequence[str]) -> bool:
    if found.code == "IR000":
        return True
    selected = not select or found.code.startswith(tuple(select)) or found.code in _errors.UNREADABLE
    return selected and not found.code.startswith(tuple(ignore))


def _print_statistics(found: Iterable[Diagnostic], form: str) -> None:
    """How often each code was found, the most frequent first."""
    counts = sorted(Counter(d.code for d in found).items(), key=lambda row: (-row[1], row[0]))
    if form == "json":
        rows = [{"code": code, "name": CODES[code].name, "count": count} for code, count in counts]
        _terminal.print_json({"statistics": rows})
    elif counts:
        table = [(str(count), code, CODES[code].name) for code, count in counts]
        _terminal.print_table(_terminal.console(), ("count", "code", "name"), table, right=("count",))


def _summary(files: int, found: Iterable[Diagnostic]) -> str:
    severities = [d.severity for d in found]
    counts = (files, "file"), (severities.count("error"), "error"), (severities.count("warning"), "warning")
    checked, errors, warnings = (f"{count} {what}{'' if count == 1 else 's'}" for count, what in counts)
    return f"checked {checked}: {errors}, {warnings}"


# ---------------------------------------------------------------------------------------------
# which files


def _files(path: str) -> list[str]:
    """The models that a path means. A file that is not there is left to be reported as one."""
    if Path(path).is_dir():
        found = sorted(str(p) for p in Path(path).rglob("*.xml") if p.is_file() and _may_be_ir(p))
        if not found:
            raise click.UsageError(f"no IR in {path}: no .xml file with <net> as its root element")
        return found
    if glob.has_magic(path) and not Path(path).exists():
        matches = sorted(glob.glob(path, recursive=True))
        if not matches:
            raise click.UsageError(f"no file matches {path}")
        return [file for match in matches for file in (_files(match) if Path(match).is_dir() else [match])]
    return [path]


_BLOCK: Final = 1 << 14


def _may_be_ir(path: Path) -> bool:
    """Whether the root element is <net>, or cannot be told."""
    root: list[str] = []
    parser = expat.ParserCreate()
    parser.StartElementHandler = lambda tag, _: root.append(tag)
    try:
        with path.open("rb") as file:
            while not root and (block := file.read(_BLOCK)):
                parser.Parse(block, False)
    except (OSError, expat.ExpatError, ValueError, LookupError):
        pass  # what cannot be read is reported
    return not root or root[0].lower() == "net"
