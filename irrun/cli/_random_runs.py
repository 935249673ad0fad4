"""``irrun run --random``: run every model of files and folders with random inputs."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence

from irrun.base.text import counted
from irrun.checking.render import concise
from irrun.checking.reports import FORMATS, records
from irrun.cli import _errors, _terminal
from irrun.cli._trees import TreeOptions, print_summary
from irrun.fleet.trees import RandomRun, summary

__all__ = ["run_all"]


def run_all(paths: Sequence[str], task: RandomRun, tree: TreeOptions, form: str) -> int:
    """Run all models of files and folders with random inputs, print a row for each, and return the exit status."""
    out, err = _terminal.console(), _terminal.console(stderr=True)
    files = tree.files(paths)
    found = dict(zip(files, tree.outcomes(task, files, "running")))
    rows = summary(found)
    problems = [d for one in found.values() for d in one.diagnostics]
    if form == "text":
        print_summary(out, rows)
        out.file.flush()
        for diagnostic in problems:
            err.print(f"{diagnostic.severity}: {concise(diagnostic)}")
        statuses = Counter(row["status"] for row in rows)
        counts = ", ".join(f"{count} {status}" for status, count in sorted(statuses.items()))
        err.print(f"ran {counted(len(files), 'file')}: {counts}")
    elif form == "json":
        _terminal.print_json(records({file: one.diagnostics for file, one in found.items()}, rows))
    else:
        sys.stdout.write(FORMATS[form]({file: one.diagnostics for file, one in found.items()}, rows))
    return _errors.exit_status(problems)
