"""The processes and the progress bar of commands that do many things."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

import click
from rich.console import Console

from irrun.fleet.cluster import Cluster, connected
from irrun.fleet.workers import Processes, Workers, cpus

__all__ = ["advancing", "dask_option", "placed", "workers_of"]

T = TypeVar("T")


def placed(files: Sequence[str], address: str | None) -> list[str]:
    """Return paths as the workers need them: absolute for those of a cluster elsewhere."""
    return [os.path.abspath(f) for f in files] if address not in (None, "local") else list(files)


dask_option = click.option(
    "--dask",
    "address",
    metavar="ADDRESS",
    help="Use the Dask cluster whose scheduler has this address, or `local` for one on this machine. Its workers must "
    "see the same files.",
)


@contextmanager
def workers_of(jobs: int | None, address: str | None) -> Iterator[Workers]:
    """Open the workers that the options name. Raises EngineError (IR702) if a Dask cluster cannot be reached."""
    if address is None:
        yield Processes(jobs or cpus())
        return
    client, cluster = connected(address, jobs or cpus())
    try:
        yield Cluster(client)
    finally:
        client.close()
        if cluster is not None:
            cluster.close()


def advancing(items: Iterable[tuple[int, T]], total: int, what: str, err: Console) -> Iterator[T]:
    """Yield the second of each pair, and show how many of ``total`` are done, at which rate, and the time left.

    The first of a pair is how many were done. The bar appears on a terminal, after a second.
    """
    if not err.is_interactive or total < 2:
        yield from (item for _, item in items)
        return
    from rich import progress as bars

    since = time.monotonic()
    columns = (
        bars.TextColumn("{task.description}"),
        bars.BarColumn(),
        bars.TaskProgressColumn(),
        bars.MofNCompleteColumn(),
        bars.TextColumn("{task.fields[rate]}"),
        bars.TimeRemainingColumn(),
    )
    progress = bars.Progress(*columns, console=err, transient=True)
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
