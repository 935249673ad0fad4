"""What a task costs beside its work: `python -m benchmarks.fleet [TASKS]` prints it, and what follows for many workers.

A task that does nothing is done many times by one process of this machine and, if distributed is installed, by one Dask
worker. The parent's and the scheduler's processor time for each task is what limits how many workers they can feed.
`python -m tools fleets` measures throughput, memory and kills.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from irrun.fleet.workers import Processes, Workers

SECONDS = 0.1
"""What a task of `irrun batch` takes on a worker: tasks grow up to 64 inputs."""


def nothing(number: int) -> int:
    return number


def main() -> None:
    tasks = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    print("workers        ms of the parent's processor for a task   elapsed ms   workers it feeds at "
          f"{SECONDS * 1e3:.0f} ms a task")  # fmt: skip
    for name, workers in (("processes", one_process()), ("dask", one_dask_worker())):
        with workers as opened:
            if opened is not None:
                list(opened.results(nothing, range(4), "start"))
                began, spent = time.perf_counter(), time.process_time()
                assert sum(1 for _ in opened.results(nothing, range(tasks), "nothing")) == tasks
                took, spent = time.perf_counter() - began, time.process_time() - spent
                cost = spent / tasks
                print(f"{name:<14} {cost * 1e3:40.3f} {took / tasks * 1e3:12.3f} {SECONDS / cost:21.0f}")


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
