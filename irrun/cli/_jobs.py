"""The same function over many files, in processes where there are enough of them."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, TypeVar

import click
from rich.console import Console

from irrun.cli import _options

__all__ = ["default_jobs", "in_order", "with_bar"]

T = TypeVar("T")

_FEW: Final = 8
"""So many files are done sooner than processes are started."""


def default_jobs(files: int) -> int:
    """How many processes so many files are worth."""
    if files <= _FEW:
        return 1
    try:
        cpus = len(os.sched_getaffinity(0))
    except AttributeError:  # only Linux has it
        cpus = os.cpu_count() or 1
    return min(cpus, files)


def in_order(function: Callable[[str], T], files: Sequence[str], jobs: int) -> Iterator[T]:
    """``function`` of each file, in the order of the files. It and what it gives must be picklable."""
    if min(jobs, len(files)) < 2 or sys.platform in ("emscripten", "wasi"):  # no processes in the browser
        yield from map(function, files)
        return
    import multiprocessing
    from concurrent.futures.process import BrokenProcessPool, ProcessPoolExecutor

    chunk = max(1, min(16, len(files) // (jobs * 4)))
    pool = ProcessPoolExecutor(jobs, initializer=_begin, initargs=(_options.plugins(),))
    try:
        yield from pool.map(function, files, chunksize=chunk)
    except BrokenProcessPool:
        raise click.ClickException("a process was ended from outside, perhaps for want of memory; try -j 1") from None
    except BaseException:  # interrupted, or nobody wants the rest
        for process in multiprocessing.active_children():
            process.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _begin(plugins: Sequence[str]) -> None:
    """Make a new process ready: with the plugins where it does not inherit them, and silent when interrupted."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    for file in set(plugins) - set(_options.plugins()):
        _options.load_plugin(file)


def with_bar(found: Iterable[T], total: int, err: Console) -> Iterator[T]:
    """Hand on what comes, and show how far it is once several files take a second."""
    if total < 2 or not err.is_interactive:
        yield from found
        return
    from rich.progress import Progress

    since = time.monotonic()
    progress = Progress(console=err, transient=True)
    task = progress.add_task("checking", total=total)
    try:
        for item in found:
            progress.advance(task)
            if time.monotonic() - since > 1:
                progress.start()
            yield item
    finally:
        progress.stop()
