"""``irrun check`` (check): Check every shape and precision that models declare."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, NoReturn

import click

from irrun.base.text import counted
from irrun.checking.render import concise, text
from irrun.checking.reports import FORMATS, records
from irrun.cli import _completion, _config, _errors, _fixing, _terminal
from irrun.cli._exclusions import Exclusion, formats, refuse
from irrun.cli._input_options import shape_option
from irrun.cli._options import format_option, plugin_option, target_option, weights_option
from irrun.cli._settings import with_settings
from irrun.cli._trees import SUMMARIZED, TreeOptions, may_be_ir, print_summary, tree_options
from irrun.cli._watch import changes
from irrun.codes import CODES, Kind
from irrun.diagnostics import Diagnostic
from irrun.fleet.trees import Check, Outcome, summary
from irrun.model import Shapes

__all__ = ["command"]

_EXCLUSIONS: Final = (
    Exclusion(
        ("--statistics",),
        "--statistics supports the formats full, concise and json, not {form}",
        unless=formats("full", "text", "concise", "json"),
    ),
    Exclusion(("--unsafe-fixes",), "--unsafe-fixes needs --fix or --diff", unless=("--fix", "--diff")),
    Exclusion(
        ("--fix", "--diff"),
        "--fix and --diff cannot be combined with {other}",
        others=("--watch", "--shape", "--target"),
    ),
    Exclusion(
        ("--fix of standard input",),
        "standard output holds the fixed model: choose --format full or concise for the findings",
        others=("--statistics", *formats(*FORMATS)),
    ),
    Exclusion(("--summary",), "--summary cannot be combined with --statistics", others=("--statistics",)),
    Exclusion(
        ("--summary",),
        f"--summary supports the formats {', '.join(SUMMARIZED)}, not {{form}}",
        unless=formats(*SUMMARIZED, "text"),
    ),
    Exclusion(("--watch",), "--watch cannot be combined with {other}", others=("standard input", "--output-file")),
    Exclusion(("--watch",), "--watch cannot be combined with the format {form}", others=formats(*FORMATS)),
)


@dataclass(frozen=True)
class Settings:
    """The options of ``irrun check``. ``select`` and ``ignore`` are codes, or prefixes of codes."""

    paths: Sequence[str]
    weights: str | None
    form: str
    select: Sequence[str]
    ignore: Sequence[str]
    shapes: Shapes
    targets: Sequence[str]
    fixes: bool
    diff: bool
    unsafe: bool
    statistics: bool
    skips: bool
    exit_zero: bool
    tree: TreeOptions
    summarized: bool
    watch: bool


@dataclass(frozen=True)
class _Selection:
    """The findings to report: codes that the user selects and ignores, and those that the project ignores in files."""

    select: Sequence[str]
    ignore: Sequence[str]
    project: _config.Config

    def of(self, file: str, diagnostics: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
        """Return the findings of a file that are to be reported."""
        return tuple(filter(self.test_of(file), diagnostics))

    def test_of(self, file: str) -> Callable[[Diagnostic], bool]:
        """Return a function that says of a finding of a file whether it is to be reported.

        That a file cannot be opened, and that --shape is wrong, is always reported.
        """
        select, ignore = tuple(self.select), (*self.ignore, *self.project.ignored_in(file))

        def is_wanted(diagnostic: Diagnostic) -> bool:
            code = diagnostic.code
            selected = not select or code.startswith(select) or diagnostic.kind is Kind.UNREADABLE
            return code in ("IR000", "IR601") or (selected and not code.startswith(ignore))

        return is_wanted


def _codes(ctx: click.Context, param: click.Parameter, values: Sequence[str]) -> tuple[str, ...]:
    """Return the codes that an option names. Raises BadParameter if one of them does not exist."""
    try:
        return _config.codes(values)
    except ValueError as error:
        raise click.BadParameter(str(error), ctx, param) from None


@click.command("check")
@click.argument("paths", metavar="PATH...", nargs=-1, required=True, shell_complete=_completion.files)
@weights_option
@plugin_option
@format_option("full", "concise", *FORMATS, "text")
@click.option(
    "--select",
    metavar="CODE",
    multiple=True,
    callback=_codes,
    shell_complete=_completion.codes,
    help="Report only these codes, such as IR401 or IR4.",
)
@click.option(
    "--ignore",
    metavar="CODE",
    multiple=True,
    callback=_codes,
    shell_complete=_completion.codes,
    help="Report all codes but these.",
)
@shape_option()
@target_option
@click.option("--fix", "fixes", is_flag=True, help="Apply the safe fixes and report the rest.")
@click.option("--diff", is_flag=True, help="Show what --fix would change, but change nothing.")
@click.option(
    "--unsafe-fixes",
    "unsafe",
    is_flag=True,
    help="With --fix or --diff: also apply fixes that change the meaning of the model.",
)
@click.option("--statistics", is_flag=True, help="Show only how often each code was found.")
@click.option(
    "--skip-other-xml",
    "skips",
    is_flag=True,
    help="Leave out .xml files whose root element is not <net>, as in folders.",
)
@click.option("--exit-zero", is_flag=True, help="Exit with 0 despite errors, but with 2 if a file cannot be read.")
@tree_options
@click.option("--summary", "summarized", is_flag=True, help="Also show status, time, memory and findings of each file.")
@click.option("--watch", is_flag=True, help="Check again whenever a file changes, until Ctrl-C.")
@with_settings(Settings)
def command(settings: Settings) -> int:
    """Check every shape and precision that models declare.

    PATH is an IR file, a folder (every IR file in it and in its sub-folders), a glob such as 'models/**/*.xml', a
    documentation page with <layer> examples, or - for standard input. The exit status is 1 if there is an error.
    In the folder of a language model, the model, its tokenizers and their configuration must also belong together.

    --select never hides that a file cannot be read. Under [tool.irrun], pyproject.toml can set select, ignore and
    per-file-ignores. In a model, the comment <!-- irrun: ignore IR401 --> suppresses findings on its own line or, if
    it is alone on its line, on the next line. The format `text` is another name for `full`.

    With --shape, the dims that the file declares are not compared. irrun reports the layer that cannot take those
    shapes, where openvino.Model.reshape would fail.

    With --target, irrun also reports what the named releases of OpenVINO do not have, and what their readers and CPU
    plugins are known to refuse. The list `targets` under [tool.irrun] names them for a project.

    --fix rewrites wrong dims, precisions and sizes in place and keeps every other byte. A model from standard input
    is written to standard output. --unsafe-fixes also renames misspelt attributes, adds missing ones if only one value
    is possible, corrects those that contradict the ports, and updates the layers that depend on such a change.
    """
    reads_stdin = "-" in settings.paths
    facts = {"standard input": reads_stdin, "--fix of standard input": settings.fixes and reads_stdin}
    refuse(_EXCLUSIONS, *(fact for fact, holds in facts.items() if holds))
    project = _config.read_config()
    selection = _Selection(settings.select or project.select, settings.ignore or project.ignore, project)
    select, ignore = tuple(selection.select) or ("IR",), tuple(selection.ignore)
    if not any(code.startswith(select) and not code.startswith(ignore) for code in CODES):
        raise click.UsageError("--select and --ignore leave no code: nothing would be checked")
    files = settings.tree.files(settings.paths, folders=True)
    if settings.skips:
        files = [file for file in files if not file.lower().endswith(".xml") or may_be_ir(Path(file))]
    if settings.weights is not None and len(files) > 1:
        raise click.UsageError(f"-w names one .bin, but there are {len(files)} models: check them one by one")
    if settings.fixes or settings.diff:
        status = _fix(files, settings, selection)
    elif settings.watch:
        _watch(settings, selection)
    else:
        status = _errors.exit_status(_show(files, _check(files, settings, selection), settings))
    return 0 if settings.exit_zero and status != 2 else status


def _check(files: Sequence[str], settings: Settings, selection: _Selection) -> Iterator[Outcome]:
    """Check files, and yield the findings of each that are to be reported, in the order of the files."""
    task = Check(settings.weights, settings.shapes or None, tuple(settings.targets or selection.project.targets))
    for file, one in zip(files, settings.tree.outcomes(task, files, "checking")):
        yield replace(one, diagnostics=selection.of(file, one.diagnostics))


def _fix(files: Sequence[str], settings: Settings, selection: _Selection) -> int:
    """Fix files, or show what would change, print the findings that are left, and return the exit status."""
    count, left = 0, []
    for file in files:
        if Path(file).is_dir():  # no finding about several files has a fix
            left.append(Outcome(selection.of(file, Check()(file).diagnostics)))
            continue
        outcome = _fixing.fixed(file, settings.weights, selection.test_of(file), unsafe=settings.unsafe)
        (_fixing.show_diff if settings.diff else _fixing.write)(file, outcome)
        count += outcome.count
        left.append(Outcome(tuple(outcome.left), outcome.examples))
    if settings.diff:
        return _fixing.summarize_diff(count, [d for one in left for d in one.diagnostics])
    return _errors.exit_status(_show(files, left, settings, fixed=count))


def _show(
    files: Sequence[str], checked: Iterable[Outcome], settings: Settings, fixed: int | None = None
) -> list[Diagnostic]:
    """Print the findings of each file as soon as they are known, then a summary, and return all findings.

    ``fixed`` is the number of fixed findings, None without --fix. With --fix, standard output may hold the fixed model;
    then the findings go to standard error.
    """
    form = "full" if settings.form == "text" else settings.form
    out, err = _terminal.console(stderr=fixed is not None and "-" in files), _terminal.console(stderr=True)
    if out.is_terminal and err.is_interactive and len(files) > 1:
        checked = list(checked)  # so that findings are not printed into the progress bar
    found: dict[str, Outcome] = {}
    examples = 0
    for file, one in zip(files, checked):
        found[file] = one
        examples += one.examples
        for diagnostic in one.diagnostics if not settings.statistics else ():
            if form == "full":
                out.print(text(diagnostic))
            elif form == "concise":
                out.print(concise(diagnostic))
    every = [d for one in found.values() for d in one.diagnostics]
    rows = summary(found) if settings.summarized else []
    if settings.statistics:
        _print_statistics(every, form)
    elif form == "json":
        _terminal.print_json(records({file: one.diagnostics for file, one in found.items()}, rows))
    elif form in FORMATS:
        sys.stdout.write(FORMATS[form]({file: one.diagnostics for file, one in found.items()}, rows))
    elif rows:
        print_summary(out, rows)
    if form not in FORMATS:
        out.file.flush()
        err.print(_summary(sum(not Path(file).is_dir() for file in files), examples, every, fixed))
    return every


def _watch(settings: Settings, selection: _Selection) -> NoReturn:
    """Print the findings of all files, and print them again whenever a file changes, until Ctrl-C."""
    known: dict[str, Outcome] = {}
    out, err = _terminal.console(), _terminal.console(stderr=True)
    for now, changed in changes(lambda: settings.tree.files(settings.paths, folders=True), settings.weights):
        known |= dict(zip(changed, _check(changed, settings, selection)))
        out.clear()  # has an effect only on a terminal
        _show(now, [known[file] for file in now], replace(settings, summarized=False))
        err.print("watching for changes; press Ctrl-C to stop")
    raise AssertionError("changes() ends only with an exception")


def _print_statistics(diagnostics: Iterable[Diagnostic], form: str) -> None:
    """Print how often each code was found, the most frequent first."""
    counts = sorted(Counter(d.code for d in diagnostics).items(), key=lambda row: (-row[1], row[0]))
    if form == "json":
        rows = [{"code": code, "name": CODES[code].name, "count": count} for code, count in counts]
        _terminal.print_json({"statistics": rows})
    elif counts:
        table = [(str(count), code, CODES[code].name) for code, count in counts]
        _terminal.print_table(_terminal.console(), ("count", "code", "name"), table, right=("count",))


def _summary(files: int, examples: int, diagnostics: Sequence[Diagnostic], fixed: int | None) -> str:
    """Return the last line: how many files were checked, and how many findings they have or had fixed."""
    severities = [d.severity for d in diagnostics]
    checked = counted(files, "file") + (f" ({counted(examples, 'example')})" if examples else "")
    errors, warnings = counted(severities.count("error"), "error"), counted(severities.count("warning"), "warning")
    if fixed is not None:
        return f"checked {checked}: {fixed} fixed; {errors}, {warnings} left"
    fixable = sum(d.fix is not None and d.fix.safe for d in diagnostics)
    return f"checked {checked}: {errors}, {warnings}" + (f" ({fixable} fixable with --fix)" if fixable else "")
