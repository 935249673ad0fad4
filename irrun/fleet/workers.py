"""Call a function for many tasks in several processes, and survive the loss of a process.

Two kinds of workers have the same interface: the processes of this machine (``Processes``), and those of a Dask
cluster (``irrun.fleet.cluster``).
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from irrun.base.children import child_environment, drop_safe_path
from irrun.opdef.plugins import load_plugin, plugins

if TYPE_CHECKING:
    from concurrent.futures import Future, ProcessPoolExecutor
    from multiprocessing.process import BaseProcess

__all__ = ["Lost", "Processes", "Workers", "cpus", "in_order", "one_thread_each"]

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Lost:
    """The result of a task that has ended its process twice."""


class Workers(Protocol):
    """Processes that call functions."""

    jobs: int
    """The number of processes."""

    def results(self, function: Callable[[T], R], tasks: Iterable[T], name: str) -> Iterator[tuple[T, R | Lost]]:
        """Yield each task and its result, in the order in which results arrive.

        ``function``, tasks and results must be picklable. Tasks are taken from the iterable when a process has room for
        them, and a few results wait at a time, so that any number of tasks takes little memory. A task whose process
        is lost is done again; one that ends its process twice gives ``Lost``. ``name`` is shown where workers list
        their tasks. Raises the exception of a task, and then does no others.
        """
        ...


def cpus() -> int:
    """Return the number of processors that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # exists only on Linux
        return os.cpu_count() or 1


_AHEAD: Final = 2
"""Tasks that are handed out for each process: one that runs and one that waits, so that no process is idle."""


class Processes:
    """``jobs`` processes of this machine with one thread each. They end when this process ends, however it does.

    A process starts with the first task that finds no idle one.
    """

    def __init__(self, jobs: int) -> None:
        self.jobs = jobs

    def results(self, function: Callable[[T], R], tasks: Iterable[T], name: str) -> Iterator[tuple[T, R | Lost]]:
        """Yield each task and its result: see ``Workers``."""
        if sys.platform in ("emscripten", "wasi"):  # no processes in the browser
            yield from ((task, function(task)) for task in tasks)
            return
        from concurrent.futures import FIRST_COMPLETED, wait
        from concurrent.futures.process import BrokenProcessPool
        from multiprocessing import active_children

        waiting = iter(tasks)
        others = set(active_children())
        with one_thread_each():
            pool = self._pool()
            pending: dict[Future[R], T] = {}
            try:
                while True:
                    broken: list[T] = []
                    for task in islice(waiting, _AHEAD * self.jobs - len(pending)):
                        try:
                            pending[pool.submit(function, task)] = task
                        except BrokenProcessPool:  # a process was lost since the last result
                            broken.append(task)
                            break
                    if not pending and not broken:
                        return
                    for future in wait(pending, return_when=FIRST_COMPLETED).done if pending else ():
                        task = pending.pop(future)
                        try:
                            result = future.result()
                        except BrokenProcessPool:
                            broken.append(task)
                            continue
                        yield task, result
                    if broken:  # any of the tasks that were handed out may have ended its process: do each alone
                        pool.shutdown()
                        suspects = [*broken, *pending.values()]
                        pending.clear()
                        yield from self._alone(function, suspects)
                        pool = self._pool()
            finally:
                if pending:  # interrupted, an exception, or the caller has stopped iterating
                    _terminate(others)
                pool.shutdown(cancel_futures=True)

    def _alone(self, function: Callable[[T], R], suspects: Sequence[T]) -> Iterator[tuple[T, R | Lost]]:
        """Do one task at a time, so that the task that ends its process is known."""
        from concurrent.futures.process import BrokenProcessPool
        from multiprocessing import active_children

        others = set(active_children())
        pool = self._pool(1)
        try:
            for task in suspects:
                try:
                    result: R | Lost = pool.submit(function, task).result()
                except BrokenProcessPool:
                    pool.shutdown()
                    pool, result = self._pool(1), Lost()
                yield task, result
        finally:
            _terminate(others)
            pool.shutdown(cancel_futures=True)

    def _pool(self, jobs: int | None = None) -> ProcessPoolExecutor:
        from concurrent.futures import ProcessPoolExecutor
        from multiprocessing import get_context

        return ProcessPoolExecutor(
            jobs or self.jobs, mp_context=get_context("spawn"), initializer=_begin, initargs=(plugins(),)
        )


def _terminate(others: Collection[BaseProcess]) -> None:
    """Terminate the processes that this process has started, except ``others``."""
    from multiprocessing import active_children

    for process in active_children():
        if process not in others:
            process.terminate()


_THREADS: Final[Mapping[str, str]] = {
    "IRRUN_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
}
"""The environment of a process that computes with one thread. The libraries read it when they are loaded."""


@contextmanager
def one_thread_each() -> Iterator[None]:
    """Let processes that start meanwhile compute with one thread each: see ``child_environment``."""
    with child_environment(_THREADS):
        yield


def _begin(files: Sequence[str]) -> None:
    """Prepare a new process: import plugins, leave Ctrl-C to the parent, and end with the parent."""
    drop_safe_path()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    for file in set(files) - set(plugins()):
        load_plugin(file)


def _end_with_parent() -> None:
    """Wait until the parent has ended, also by ``kill -9``, and then end this process."""
    from multiprocessing import parent_process
    from multiprocessing.connection import wait

    parent: Any = parent_process()
    wait([parent.sentinel])
    os._exit(1)


def in_order(workers: Workers, function: Callable[[T], R], tasks: Sequence[T], name: str) -> Iterator[R | Lost]:
    """Yield the result of ``function`` for each task, in the order of the tasks."""
    early: dict[int, R | Lost] = {}
    following = 0
    for (number, _), result in workers.results(_Numbered(function), enumerate(tasks), name):
        early[number] = result
        while following in early:
            yield early.pop(following)
            following += 1


@dataclass(frozen=True, slots=True)
class _Numbered:
    """A function of the second item of a pair."""

    function: Callable[[Any], Any]

    def __call__(self, task: tuple[int, Any]) -> Any:
        return self.function(task[1])
