"""The processes and the progress bar of commands that do many things."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

import click
from rich.console import Console

from irrun.fleet.workers import Processes, Workers, cpus

__all__ = ["advancing", "jobs_option", "workers_of"]

T = TypeVar("T")

jobs_option = click.option(
    "-j", "--jobs", type=click.IntRange(1), help="Number of processes, of one thread each. [default: one for each CPU]"
)


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
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    since = time.monotonic()
    columns = (
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[rate]}"),
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
