"""``irrun check`` (check): Check every shape and precision that models declare."""

from __future__ import annotations

import functools
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import click

from irrun.base.text import counted
from irrun.checking.render import concise, text
from irrun.checking.reports import FORMATS, records
from irrun.cli import _completion, _config, _errors, _fixing, _terminal
from irrun.cli._fleet import (
    SUMMARIZED,
    advancing,
    cache_of,
    cache_option,
    dask_option,
    model_files,
    placed,
    print_summary,
    tree_jobs_option,
    tree_workers,
)
from irrun.cli._options import format_option, plugin_option, shape_option, weights_option
from irrun.cli._watch import changes
from irrun.codes import CODES, Kind
from irrun.diagnostics import Diagnostic
from irrun.fleet.trees import Check, Outcome, outcomes, summary
from irrun.model import Shapes

__all__ = ["command"]


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
@shape_option("Check the model with this input at another shape, such as [1,3,224,224], [?,1..512] or [...].")
@click.option("--fix", "fixes", is_flag=True, help="Apply the safe fixes and report the rest.")
@click.option("--diff", is_flag=True, help="Show what --fix would change, but change nothing.")
@click.option(
    "--unsafe-fixes", "unsafe", is_flag=True,
    help="With --fix or --diff: also apply fixes that change the meaning of the model.",
)  # fmt: skip
@click.option("--statistics", is_flag=True, help="Show only how often each code was found.")
@click.option("--exit-zero", is_flag=True, help="Exit with 0 despite errors, but with 2 if a file cannot be read.")
@tree_jobs_option
@dask_option
@cache_option
@click.option("--summary", "summarized", is_flag=True, help="Also show status, time, memory and findings of each file.")
@click.option("--watch", is_flag=True, help="Check again whenever a file changes, until Ctrl-C.")
def command(
    paths: Sequence[str], weights: str | None, form: str, select: Sequence[str], ignore: Sequence[str],
    shapes: Shapes, fixes: bool, diff: bool, unsafe: bool, statistics: bool, exit_zero: bool, jobs: int | None,
    address: str | None, cached: bool, summarized: bool, watch: bool,
) -> int:  # fmt: skip
    """Check every shape and precision that models declare.

    PATH is an IR file, a folder (every IR file in it and in its sub-folders), a glob such as 'models/**/*.xml', a
    documentation page with <layer> examples, or - for standard input. The exit status is 1 if there is an error.
    In the folder of a language model, the model, its tokenizers and their configuration must also belong together.

    --select never hides that a file cannot be read. Under [tool.irrun], pyproject.toml can set select, ignore and
    per-file-ignores. In a model, the comment <!-- irrun: ignore IR401 --> suppresses findings on its own line or, if
    it is alone on its line, on the next line. The format `text` is another name for `full`.

    With --shape, the dims that the file declares are not compared. irrun reports the layer that cannot take those
    shapes, where openvino.Model.reshape would fail.

    --fix rewrites wrong dims, precisions and sizes in place and keeps every other byte. A model from standard input
    is written to standard output. --unsafe-fixes also renames misspelt attributes, adds missing ones if only one value
    is possible, corrects those that contradict the ports, and updates the layers that depend on such a change.
    """
    form = "full" if form == "text" else form
    if statistics and form not in ("full", "concise", "json"):
        raise click.UsageError(f"--statistics supports the formats full, concise and json, not {form}")
    config = _config.read_config()
    select, ignore = select or config.select, ignore or config.ignore
    files = placed(model_files(paths, folders=True), address)
    if weights is not None and len(files) > 1:
        raise click.UsageError(f"-w names one .bin, but there are {len(files)} models: check them one by one")
    if unsafe and not (fixes or diff):
        raise click.UsageError("--unsafe-fixes needs --fix or --diff")
    if (fixes or diff) and (watch or shapes):
        raise click.UsageError(f"--fix and --diff cannot be combined with {'--watch' if watch else '--shape'}")
    if fixes and "-" in files and (statistics or form in FORMATS):
        raise click.UsageError(
            "standard output holds the fixed model: choose --format full or concise for the findings"
        )
    if summarized and (statistics or form not in SUMMARIZED):
        raise click.UsageError(f"--summary supports the formats {', '.join(SUMMARIZED)}, not {form}")

    def checked(files: Sequence[str]) -> Iterator[Outcome]:
        """Yield the selected findings of each file, in the order of the files."""
        cache = cache_of(cached, files)
        with ExitStack() as stack:
            workers = functools.partial(tree_workers, stack, 1 if "-" in files else jobs, address)
            for file, one in zip(files, outcomes(Check(weights, shapes or None), files, cache, workers)):
                ignored = (*ignore, *config.ignored_in(file))
                yield replace(one, diagnostics=tuple(d for d in one.diagnostics if _wanted(d, select, ignored)))

    if fixes or diff:
        count, left = 0, []
        for file in files:
            wanted = functools.partial(_wanted, select=select, ignore=(*ignore, *config.ignored_in(file)))
            if Path(file).is_dir():  # no finding about several files has a fix
                left.append(Outcome(tuple(d for d in Check()(file).diagnostics if wanted(d))))
                continue
            outcome = _fixing.fixed(file, weights, wanted, unsafe=unsafe)
            (_fixing.show_diff if diff else _fixing.write)(file, outcome)
            count += outcome.count
            left.append(Outcome(tuple(outcome.left), outcome.examples))
        if diff:
            status = _fixing.summarize_diff(count, [d for one in left for d in one.diagnostics])
        else:
            status = _errors.exit_status(_show(files, left, form, statistics, fixed=count, aside="-" in files))
        return 0 if exit_zero and status != 2 else status
    if watch:
        if form in FORMATS or "-" in files:
            other = "standard input" if "-" in files else f"the format {form}"
            raise click.UsageError(f"--watch cannot be combined with {other}")
        _watch(lambda: placed(model_files(paths, folders=True), address), weights, checked, form, statistics)
    every = _show(files, checked(files), form, statistics, summarized=summarized)
    status = _errors.exit_status(every)
    return 0 if exit_zero and status != 2 else status


def _show(
    files: Sequence[str], checked: Iterable[Outcome], form: str, statistics: bool, fixed: int | None = None,
    aside: bool = False, summarized: bool = False,
) -> list[Diagnostic]:  # fmt: skip
    """Print the findings of each file as soon as they are known, then a summary, and return all findings.

    With ``summarized``, there is also a row for each file. If ``aside`` is true, the findings go to standard error,
    because standard output holds the fixed model. ``fixed`` is the number of fixed findings, None without --fix.
    """
    out, err = _terminal.console(stderr=aside), _terminal.console(stderr=True)
    checked = advancing(((1, one) for one in checked), len(files), "checking", err)
    if out.is_terminal and err.is_interactive and len(files) > 1:
        checked = list(checked)  # so that findings are not printed into the progress bar
    found: dict[str, Outcome] = {}
    examples = 0
    for file, one in zip(files, checked):
        found[file] = one
        examples += one.examples
        for diagnostic in one.diagnostics if not statistics else ():
            if form == "full":
                out.print(text(diagnostic))
            elif form == "concise":
                out.print(concise(diagnostic))
    every = [d for one in found.values() for d in one.diagnostics]
    rows = summary(found) if summarized else []
    if statistics:
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


def _watch(
    files: Callable[[], Sequence[str]], weights: str | None, checked: Callable[[Sequence[str]], Iterator[Outcome]],
    form: str, statistics: bool,
) -> NoReturn:  # fmt: skip
    """Print the findings of all files, and print them again whenever a file changes, until Ctrl-C."""
    known: dict[str, Outcome] = {}
    out, err = _terminal.console(), _terminal.console(stderr=True)
    for now, changed in changes(files, weights):
        known |= dict(zip(changed, checked(changed)))
        out.clear()  # has an effect only on a terminal
        _show(now, [known[file] for file in now], form, statistics)
        err.print("watching for changes; press Ctrl-C to stop")
    raise AssertionError("changes() ends only with an exception")


def _wanted(diagnostic: Diagnostic, select: Sequence[str], ignore: Sequence[str]) -> bool:
    """Return whether to report a finding. A file that cannot be opened and a wrong --shape are always reported."""
    if diagnostic.code in ("IR000", "IR601"):
        return True
    selected = not select or diagnostic.code.startswith(tuple(select)) or diagnostic.kind is Kind.UNREADABLE
    return selected and not diagnostic.code.startswith(tuple(ignore))


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
