"""The processes and the progress bar of commands that do many things."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeVar

import click
from rich.console import Console

from irrun.checking.reports import FORMATS
from irrun.cli import _terminal
from irrun.diagnostics import human
from irrun.fleet.cache import Cache, default_folder
from irrun.fleet.workers import Processes, Workers, cpus

__all__ = [
    "SUMMARIZED", "advancing", "cache_of", "cache_option", "jobs_option", "print_summary", "tree_jobs_option",
    "tree_workers", "workers_of",
]  # fmt: skip

T = TypeVar("T")

jobs_option = click.option(
    "-j", "--jobs", type=click.IntRange(1), help="Number of processes, of one thread each. [default: one for each CPU]"
)


_FEW: Final = 32
"""Up to this many models, starting processes takes longer than the work itself."""

tree_jobs_option = click.option(
    "-j", "--jobs", type=click.IntRange(1),
    help=f"Number of processes. [default: 1, or one for each CPU if there are more than {_FEW} files to do]",
)  # fmt: skip

cache_option = click.option(
    "--cache/--no-cache", "cached", default=True, show_default=True,
    help="Skip models that are known, if there are several. IRRUN_CACHE_DIR is the folder of what is known.",
)  # fmt: skip


def cache_of(wanted: bool, files: Sequence[str]) -> Cache | None:
    """Return the cache for several files, if there is one."""
    folder = default_folder() if wanted and len(files) > 1 and "-" not in files else None
    return None if folder is None else Cache(folder)


def tree_workers(jobs: int | None, count: int) -> Workers | None:
    """Return the processes for ``count`` models; None if this one does them."""
    wanted = min(jobs or (cpus() if count > _FEW else 1), count)
    return Processes(wanted) if wanted > 1 else None


SUMMARIZED: Final = ("full", "concise", *(form for form in FORMATS if form in ("json", "sarif", "junit")))
"""The formats of reports that can hold a summary."""


def print_summary(out: Console, rows: Sequence[Mapping[str, Any]]) -> None:
    """Print a row for each model, and one for all."""
    columns = ("model", "status", "s", "peak memory", "errors", "warnings", "from")
    cells = [
        (
            row["file"], row["status"], f"{row['seconds']:.3f}",
            "" if row["peak_memory"] is None else human(row["peak_memory"]),
            str(row["errors"]), str(row["warnings"]), "cache" if row["cached"] else "",
        )
        for row in rows
    ]  # fmt: skip
    _terminal.print_table(out, columns, cells, right=columns[2:6])


def workers_of(jobs: int | None) -> Workers:
    """Return the workers that the options name."""
    return Processes(jobs or cpus())


def advancing(items: Iterable[tuple[int, T]], total: int, what: str, err: Console) -> Iterator[T]:
    """Yield the second of each pair, and show how many of ``total`` are done, at which rate, and the time left.

    The first of a pair is how many were done. The bar appears on a terminal, after a second.
    """
    if not err.is_interactive or total < 2:
        yield from (item for _, item in items)
        return
    from rich.progress import (
        BarColumn, MofNCompleteColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn,
    )  # fmt: skip

    since = time.monotonic()
    columns = (
        TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), MofNCompleteColumn(), TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
    )  # fmt: skip
    progress = Progress(*columns, console=err, transient=True)
    bar = progress.add_task(what, total=total, rate="")
    count = 0
    try:
        for advance, item in items:
            count += advance
            took = time.monotonic() - since
            progress.update(bar, advance=advance, rate=f"{count / took:.1f}/s" if took else "")
            if took > 1:
                progress.start()
            yield item
    finally:
        progress.stop()
