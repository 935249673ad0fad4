"""``irrun conformance`` (judge): Judge engines by a suite of models with verdicts."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import asdict
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click
from rich.progress import Progress

from irrun.base.text import counted, printable
from irrun.cli import _terminal
from irrun.cli._options import Size, format_option, new_file
from irrun.conformance import (
    Case,
    Result,
    Run,
    Suite,
    harness,
    read_run,
    read_suite,
    run,
    starter,
    write_report,
)
from irrun.conformance.running import Start
from irrun.conformance.scoreboard import scoreboard, with_table
from irrun.conformance.smoke import smoke_cases
from irrun.conformance.suite import SUITE
from irrun.engines import Limits
from irrun.files import write_file
from irrun.running.live import default_max_memory

__all__ = ["command"]


@click.group("conformance")
def command() -> None:
    """Judge engines by a suite of models with verdicts.

    An engine is a side without a path, as in `irrun compare`: irrun, exact, openvino, openvino[python=PATH,device=GPU];
    or the command of a harness (--harness).
    """


_suite = click.option("--suite", metavar="FILE", help="Another suite. [default: that of irrun]")
_bounds = (
    click.option(
        "--timeout", type=click.FloatRange(min=0, min_open=True), default=60, show_default=True, metavar="SECONDS",
        help="The most seconds that an engine may take for a request.",
    ),
    click.option("--max-memory", type=Size(), help="The most memory of each engine. [default: 1/4 of the memory]"),
)  # fmt: skip
_engine = (
    click.argument("side", metavar="[ENGINE]", required=False),
    click.option("--harness", "program", metavar="COMMAND", help="The command of a harness, instead of ENGINE."),
    *_bounds,
)
_work = (
    click.option("--only", metavar="PATTERN", multiple=True, help="Cases whose name matches, such as 'Tile-1/*'."),
    click.option(
        "--every", type=click.IntRange(min=1), metavar="N", default=1, help="Every N-th of these cases: a sample."
    ),
    click.option("-j", "--jobs", type=click.IntRange(min=1), default=1, show_default=True, help="Engines at a time."),
)


def _all_of(*options: Any) -> Any:
    """Return a decorator that adds options to a command."""

    def add(function: Any) -> Any:
        for option in reversed(options):
            function = option(function)
        return function

    return add


@command.command("run")
@_all_of(*_engine)
@click.option("-o", "--output", metavar="FILE.jsonl", required=True, help="The file of results. A later run goes on.")
@_all_of(*_work)
@_suite
@format_option("text", "json")
def _run(
    side: str | None, program: str | None, timeout: float, max_memory: int | None, output: str, only: Sequence[str],
    every: int, jobs: int, suite: str | None, form: str,
) -> int:  # fmt: skip
    """Let an engine do the cases of the suite.

    Each result is written as soon as it is there. A crash, a hang, or too much memory is the result of one case.

    Exit status: 0 every case with a verdict passed, 1 others did not, 2 bad usage or an unreadable input.
    """
    start, limits = _start(side, program), _limits(timeout, max_memory)
    target = new_file(output, "-o")
    whole = read_suite(suite or SUITE)
    found = _judged(whole, _selected(whole, only)[::every], start, target, limits, jobs)
    _print_run(found, form)
    return 0 if found.count("failed") + found.count("skipped") == 0 else 1


def _judged(suite: Suite, cases: Sequence[Case], start: Start, target: Path, limits: Limits, jobs: int) -> Run:
    """Let an engine do cases, and show how far it is."""
    err = _terminal.console(stderr=True)
    with Progress(console=err, transient=True, disable=not err.is_interactive) as bar:
        task = bar.add_task("cases", total=len(cases))

        def show(result: Result, done: int, total: int) -> None:
            bar.update(task, description=printable(result.name)[:40].ljust(40), completed=done, total=total)

        return run(suite, cases, start, target, limits=limits, jobs=jobs, on_result=show)


@command.command("scoreboard")
@click.argument("sides", metavar="[ENGINE]...", nargs=-1)
@click.option(
    "--harness", "programs", metavar="COMMAND", multiple=True, help="The command of a harness: an engine too."
)
@_all_of(*_bounds)
@click.option("-o", "--output", metavar="FOLDER", required=True, help="The folder of the results. A later run goes on.")
@click.option("--page", "pages", metavar="FILE.md", multiple=True, help="A page into which the table is written.")
@_all_of(*_work)
@_suite
@format_option("text", "json")
def _scoreboard(
    sides: Sequence[str], programs: Sequence[str], timeout: float, max_memory: int | None, output: str,
    pages: Sequence[str], only: Sequence[str], every: int, jobs: int, suite: str | None, form: str,
) -> int:  # fmt: skip
    """Let several engines do the cases, one after the other, and print a table of what they passed.

    A page has the table between the lines <!-- scoreboard --> and <!-- end -->.
    """
    starts = {side: _start(side, None) for side in sides} | {text: _start(None, text) for text in programs}
    if not starts:
        raise click.UsageError("pass engines, such as irrun openvino")
    folder, limits = _folder(output), _limits(timeout, max_memory)
    for page in pages:
        with_table(Path(page), "")  # an error now, and not after hours
    whole = read_suite(suite or SUITE)
    cases = _selected(whole, only)[::every]
    folder.mkdir(parents=True, exist_ok=True)
    runs = [_judged(whole, cases, start, folder / _file_name(name), limits, jobs) for name, start in starts.items()]
    board = scoreboard(whole, cases, runs)
    text = board.markdown()
    for page in pages:
        write_file(page, with_table(Path(page), text))
    if form == "json":
        _terminal.print_json(asdict(board))
    else:
        click.echo(text, nl=False)
    return 0


@command.command("smoke")
@_all_of(*_engine)
@_suite
@format_option("text", "json")
def _smoke(
    side: str | None, program: str | None, timeout: float, max_memory: int | None, suite: str | None, form: str
) -> int:  # fmt: skip
    """Try a harness on a few cases, each of which needs another part of the protocol.

    Exit status: 0 every case passed, 1 others did not, 2 bad usage or an unreadable input.
    """
    start, limits = _start(side, program), _limits(timeout, max_memory)
    whole = read_suite(suite or SUITE)
    out, failed = _terminal.console(), 0
    purposes = smoke_cases(whole)
    with TemporaryDirectory() as folder:
        found = run(whole, [case for _, case in purposes], start, Path(folder, "results"), limits=limits)
    if form == "json":
        rows = [
            {"purpose": purpose, "case": case.name, "status": found.results[case.name].status,
             "detail": found.results[case.name].detail}
            for purpose, case in purposes
        ]  # fmt: skip
        _terminal.print_json({"engine": found.engine, "cases": rows})
        return int(any(row["status"] != "passed" for row in rows))
    out.print(f"{found.engine}")
    for purpose, case in purposes:
        result = found.results[case.name]
        failed += result.status != "passed"
        detail = f": {printable(result.detail)}" if result.status != "passed" else ""
        out.print(f"  {result.status}  {purpose} ({case.name}){detail}")
    return int(failed > 0)


@command.command("compare")
@click.argument("old", metavar="OLD.jsonl")
@click.argument("new", metavar="NEW.jsonl")
@format_option("text", "json")
def _compare(old: str, new: str, form: str) -> int:
    """Compare two runs: which cases passed and do not pass any more, and the reverse.

    Exit status: 0 no case was lost, 1 some were, 2 an unreadable input.
    """
    first, second = read_run(old), read_run(new)
    names = sorted(first.results.keys() & second.results.keys())
    passed = [{name for name in names if item.results[name].status == "passed"} for item in (first, second)]
    lost, gained = sorted(passed[0] - passed[1]), sorted(passed[1] - passed[0])
    if form == "json":
        _terminal.print_json(
            {
                "old": first.engine,
                "new": second.engine,
                "compared": len(names),
                "lost": lost,
                "gained": gained,
            }
        )
        return int(bool(lost))
    out = _terminal.console()
    out.print(f"old  {first.engine}: {_summary(first)}")
    out.print(f"new  {second.engine}: {_summary(second)}")
    for title, listed in (("lost", lost), ("gained", gained)):
        out.print(f"{title}: {counted(len(listed), 'case')}")
        for name in listed:
            detail = second.results[name].detail if title == "lost" else ""
            out.print(f"  {printable(name)}{f': {printable(detail)}' if detail else ''}")
    return int(bool(lost))


@command.command("report")
@click.argument("files", metavar="RESULTS.jsonl...", nargs=-1, required=True)
@click.option("-o", "--output", metavar="FOLDER", required=True, help="The folder of the pages. It is made if needed.")
@_suite
@format_option("text", "json")
def _report(files: Sequence[str], output: str, suite: str | None, form: str) -> int:
    """Write pages that show what engines passed, with each case that one of them did not pass.

    The folder gets index.html, a page for each operation, and badges for https://shields.io. They need no server.
    """
    folder = _folder(output)
    pages = write_report(read_suite(suite or SUITE), [read_run(file) for file in files], folder)
    if form == "json":
        _terminal.print_json({"wrote": output, "pages": pages})
        return 0
    _terminal.console(stderr=True).print(f"wrote {printable(output)}: {counted(pages, 'page')}")
    return 0


@command.command("show")
@click.argument("name", metavar="CASE")
@click.option("-o", "--output", metavar="FOLDER", help="Write the model to a folder, as model.xml and model.bin.")
@_suite
@format_option("text", "json")
def _show(name: str, output: str | None, suite: str | None, form: str) -> int:
    """Show a case of the suite: its verdict, its source, and the sentence of the specification."""
    whole = read_suite(suite or SUITE)
    cases = [case for case in whole.cases if case.name == name]
    if not cases:
        raise click.BadParameter(f"the suite has no case {name!r}; `irrun conformance run --only` takes patterns")
    case, out = cases[0], _terminal.console()
    rows = {
        "operation": case.operation, "verdict": case.verdict, "source": case.source, "clause": case.clause,
        "sentence": whole.sentence(case), "declared": case.declaration, "types": ", ".join(case.types),
        "tolerance": f"rtol {case.rtol:g}, atol {case.atol:g}" if case.verdict == "values" else "", "note": case.note,
        **{f"observed, {engine}": text for engine, text in case.observed.items()},
    }  # fmt: skip
    written = None
    if output is not None:
        Path(output).mkdir(parents=True, exist_ok=True)
        written = str(case.write(Path(output)))
    if form == "json":
        steps = [{"inputs": [*step.inputs], "outputs": [*step.outputs]} for step in case.steps]
        _terminal.print_json({"case": name, **{key: text for key, text in rows.items() if text}, "steps": steps,
                              "wrote": written})  # fmt: skip
        return 0
    for key, text in rows.items():
        if text:
            out.print(f"{key:<10} {printable(text)}")
    for number, step in enumerate(case.steps):
        for title, records in (("input", step.inputs), ("output", step.outputs)):
            for position, record in enumerate(records):
                out.print(f"{title} {position} of inference {number + 1}: {record['type']}{record['shape']}")
    if written is not None:
        out.print(f"wrote {printable(written)}")
    return 0


def _start(side: str | None, program: str | None) -> Start:
    """Return what starts the engine that a user names. Raises click.UsageError if none or two are named."""
    if (side is None) == (program is None):
        raise click.UsageError("pass an engine, such as openvino, or --harness with the command of a harness")
    if program is None:
        return starter(side or "")
    try:
        words = shlex.split(program)
    except ValueError as error:
        raise click.BadParameter(f"cannot read {program!r}: {error}", param_hint="--harness") from None
    if not words:
        raise click.BadParameter("the command is empty", param_hint="--harness")
    return partial(harness, words)


def _folder(path: str) -> Path:
    """Return the path of a folder. Raises click.BadParameter if it is a file."""
    folder = Path(path)
    if folder.exists() and not folder.is_dir():
        raise click.BadParameter(f"{path} is a file; pass a folder", param_hint="-o")
    return folder


def _file_name(engine: str) -> str:
    """Return the name of the file with the results of an engine, from how a user names the engine."""
    return re.sub(r"[^\w.]+", "-", engine).strip("-.") + ".jsonl"


def _limits(timeout: float, max_memory: int | None) -> Limits:
    return Limits(timeout, max_memory or default_max_memory() // 3)


def _selected(suite: Suite, patterns: Sequence[str]) -> list[Case]:
    """Return the cases whose names match a pattern; all without patterns. Raises click.BadParameter if none does."""
    cases = [case for case in suite.cases if not patterns or any(fnmatchcase(case.name, p) for p in patterns)]
    if not cases:
        raise click.BadParameter(f"no case has a name like {patterns[0]!r}; write 'Tile-1/*'", param_hint="--only")
    return cases


def _print_run(run: Run, form: str) -> None:
    """Print how many cases of a run have each status."""
    if form == "json":
        statuses = ("passed", "failed", "skipped", "recorded")
        _terminal.print_json({"engine": run.engine, "cases": run.cases, **{s: run.count(s) for s in statuses}})
    else:
        _terminal.console().print(f"{run.engine}: {_summary(run)}")


def _summary(run: Run) -> str:
    judged = run.cases - run.count("recorded")
    share = 100 * run.count("passed") / judged if judged else 0.0
    parts = [f"{run.count('passed'):,} of {judged:,} passed ({share:.2f} %)"]
    parts += [f"{run.count(status):,} {status}" for status in ("failed", "skipped", "recorded") if run.count(status)]
    return ", ".join(parts)
