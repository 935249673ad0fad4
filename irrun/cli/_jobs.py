"""Call a function for many files, in several processes if there are enough files."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, TypeVar

import click
from rich.console import Console

from irrun.opdef.plugins import load_plugin, plugins

__all__ = ["default_jobs", "in_order", "with_bar"]

T = TypeVar("T")

_FEW: Final = 8
"""Up to this many files, starting processes takes longer than the work itself."""


def default_jobs(files: int) -> int:
    """Return how many processes to use for a number of files."""
    if files <= _FEW:
        return 1
    try:
        cpus = len(os.sched_getaffinity(0))
    except AttributeError:  # exists only on Linux
        cpus = os.cpu_count() or 1
    return min(cpus, files)


def in_order(function: Callable[[str], T], files: Sequence[str], jobs: int) -> Iterator[T]:
    """Yield the result of ``function`` for each file, in the order of the files, computed by ``jobs`` processes.

    The function and its results must be picklable. Raises click.ClickException if a process is killed.
    """
    if min(jobs, len(files)) < 2 or sys.platform in ("emscripten", "wasi"):  # no processes in the browser
        yield from map(function, files)
        return
    import multiprocessing
    from concurrent.futures.process import BrokenProcessPool, ProcessPoolExecutor

    chunk = max(1, min(16, len(files) // (jobs * 4)))
    pool = ProcessPoolExecutor(jobs, initializer=_begin, initargs=(plugins(),))
    try:
        yield from pool.map(function, files, chunksize=chunk)
    except BrokenProcessPool:
        raise click.ClickException(
            "a worker process was killed, perhaps because the memory ran out; try -j 1"
        ) from None
    except BaseException:  # interrupted, or the caller has stopped iterating
        for process in multiprocessing.active_children():
            process.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _begin(files: Sequence[str]) -> None:
    """Prepare a new process: import plugins that it has not inherited, and let Ctrl-C end it without a traceback."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    for file in set(files) - set(plugins()):
        load_plugin(file)


def with_bar(items: Iterable[T], total: int, err: Console) -> Iterator[T]:
    """Yield the items, and show a progress bar if there are several and they take over a second."""
    if total < 2 or not err.is_interactive:
        yield from items
        return
    from rich.progress import Progress

    since = time.monotonic()
    progress = Progress(console=err, transient=True)
    task = progress.add_task("checking", total=total)
    try:
        for item in items:
            progress.advance(task)
            if time.monotonic() - since > 1:
                progress.start()
            yield item
    finally:
        progress.stop()
