"""What a task costs beside its work: `python -m benchmarks.fleet` prints it, and what follows for many workers.

A task that does nothing is done many times by one process of this machine and, if distributed is installed, by one Dask
worker. The parent's and the scheduler's processor time for each task is what limits how many workers they can feed.
`python -m tools fleets` measures throughput, memory and kills.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from benchmarks.report import processor, store
from benchmarks.tables import TASK_MS
from irrun.fleet.workers import Processes, Workers


def nothing(number: int) -> int:
    return number


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--tasks", type=click.IntRange(1), default=2000, show_default=True, help="Tasks for each kind of worker.")
@click.option("--save", type=click.Path(dir_okay=False, path_type=Path), help="Write the figures as JSON.")
def main(tasks: int, save: Path | None) -> None:
    """Measure the parent's processor time for a task that does nothing."""
    found = []
    for name, workers in (("processes", one_process()), ("dask", one_dask_worker())):
        with workers as opened:
            if opened is not None:
                list(opened.results(nothing, range(4), "start"))
                began, spent = time.perf_counter(), time.process_time()
                assert sum(1 for _ in opened.results(nothing, range(tasks), "nothing")) == tasks
                took, spent = time.perf_counter() - began, time.process_time() - spent
                cost = spent / tasks * 1e3
                found.append({"workers": name, "ms": float(f"{cost:.2g}")})
                feeds = f"feeds {TASK_MS / cost:.0f} workers with tasks of {TASK_MS} ms"
                click.echo(
                    f"{name}: {cost:.3f} ms of the parent's processor, {took / tasks * 1e3:.3f} ms elapsed; {feeds}"
                )
    if save:
        store(save, "benchmarks.fleet", processor(), found)


@contextmanager
def one_process() -> Iterator[Workers]:
    yield Processes(1)


@contextmanager
def one_dask_worker() -> Iterator[Workers | None]:
    """Open a Dask cluster whose scheduler runs in this process, and whose only worker in another one."""
    try:
        from irrun.fleet.cluster import Cluster, connected

        client, cluster = connected("local", 1)
    except Exception as error:
        print(f"dask: {error}", file=sys.stderr)
        yield None
        return
    try:
        yield Cluster(client)
    finally:
        client.close()
        if cluster is not None:
            cluster.close()


if __name__ == "__main__":
    main()
