"""A few threads that share what numpy computes on one core, and matrix products, for which BLAS takes one thread.

IRRUN_THREADS says how many; without it, as many as BLAS is told to take, or as there are processors. BLAS could share
products itself, but its threads wait by spinning: where others use the machine, too, that takes many times as long.
"""

from __future__ import annotations

import contextvars
import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Final, Generic, TypeVar

import numpy as np

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController

_T = TypeVar("_T")

WORTH: Final = 1 << 25
"""Work from which on the threads make up for what they cost: multiplications and additions of matrix products, some 80
of which one thread does in a nanosecond, or bytes that anything else fills. These count for less than they take: waking
a thread takes 0.1 ms on a virtual machine, and where calls of numpy are short, one waits for the other between them."""
PIECES: Final = 2
"""Parts for each thread: one that wakes late takes fewer."""
_MOST: Final = 8
"""Threads beyond which all would wait for memory."""


@cache
def threads() -> int:
    """How many threads compute."""
    for name in ("IRRUN_THREADS", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
        wanted = os.environ.get(name, "")
        if wanted.isdecimal() and int(wanted):
            return int(wanted)
    affinity = getattr(os, "sched_getaffinity", None)
    return min(len(affinity(0)) if affinity else os.cpu_count() or 1, _quota(), _MOST)


def _quota() -> int:
    """The processors whose time a container may take, which it may see many more of; without a limit, very many."""
    try:
        time, period = map(int, _CGROUP.read_text().split())
        return max(1, -(-time // period))
    except (OSError, ValueError):  # not Linux, or "max"
        return sys.maxsize


_CGROUP: Final = Path("/sys/fs/cgroup/cpu.max")


def shared(work: int) -> bool:
    """Whether so much is shared by the threads."""
    return work >= WORTH and threads() > 1 and not _busy.get()


def shares(count: int, work: int, least: int = 1) -> list[slice]:
    """Slices that divide an axis of ``count`` for ``each``; one if that is little ``work`` in all.

    Each has a multiple of ``least``, but for the last.
    """
    units = -(-count // least)
    parts = min(threads() * PIECES, units) if shared(work) else 1
    return [slice(units * n // parts * least, min(units * (n + 1) // parts * least, count)) for n in range(parts)]


def each(function: Callable[[_T], object], parts: Sequence[_T], work: int) -> None:
    """Call ``function`` with each of the parts: on all threads, unless they are little ``work`` in all.

    What it raises first is raised here.
    """
    tasks = _tasks() if len(parts) > 1 and shared(work) else None
    if tasks is None:
        for part in parts:
            function(part)
        return
    job = _Job(function, parts)
    for _ in range(min(threads(), len(parts)) - 1):
        tasks.put(job.help)
    job.finish()


class _Job(Generic[_T]):
    """What several threads do: each takes one part after the other. Who comes too late is not waited for."""

    def __init__(self, function: Callable[[_T], object], parts: Sequence[_T]) -> None:
        self.function, self.rest = function, deque(parts)
        self.context = contextvars.copy_context()  # which tells numpy's warnings apart, too
        self.change = threading.Condition()
        self.helpers = 0
        self.failed: list[BaseException] = []

    def finish(self) -> None:
        self.context.copy().run(self.take_parts)
        while True:
            try:
                with self.change:
                    self.change.wait_for(lambda: not self.helpers)
                break
            except KeyboardInterrupt as error:  # others still write to what would be lent to the next run
                self.failed.append(error)
                self.rest.clear()
        if self.failed:
            raise self.failed[0]

    def help(self) -> None:
        with self.change:
            if not self.rest:
                return
            self.helpers += 1
        self.context.copy().run(self.take_parts)
        with self.change:
            self.helpers -= 1
            self.change.notify()

    def take_parts(self) -> None:
        _busy.set(True)
        while True:
            try:
                part = self.rest.popleft()
            except IndexError:
                return
            try:
                self.function(part)
            except BaseException as error:
                self.failed.append(error)
                self.rest.clear()


def fill(target: np.ndarray, source: np.ndarray) -> None:
    """``target[...] = source``, of the same shape, shared by the longest of the axes."""
    axis = int(np.argmax(target.shape)) if target.ndim else 0
    cuts = shares(target.shape[axis], target.nbytes) if target.ndim else []
    if len(cuts) < 2:
        np.copyto(target, source)
        return
    before = (slice(None),) * axis
    each(lambda cut: np.copyto(target[(*before, cut)], source[(*before, cut)]), cuts, target.nbytes)


_busy: Final = contextvars.ContextVar("busy", default=False)
"""Whether this is one of several threads that compute already."""


@cache
def _tasks() -> SimpleQueue[Callable[[], None]] | None:
    """What is put here, another thread calls; None where there is no other, as in a browser."""
    tasks: SimpleQueue[Callable[[], None]] = SimpleQueue()

    def serve() -> None:
        while True:
            tasks.get()()

    for _ in range(threads() - 1):
        try:
            threading.Thread(target=serve, name="irrun", daemon=True).start()
        except RuntimeError:
            return None
    return tasks if threads() > 1 else None


@contextmanager
def products_are_shared_here() -> Iterator[None]:
    """Meanwhile BLAS takes one thread, in all of the process: of runs side by side the first sees to it."""
    taken = _blas.taken  # of this process: one that is forked meanwhile has another
    if not taken.acquire(blocking=False):
        yield
        return
    try:
        controller = _blas.controller()
        with controller.limit(limits=1, user_api="blas"):
            _blas.limited = all(library.num_threads == 1 for library in controller.lib_controllers)
            try:
                yield
            finally:
                _blas.limited = False
    finally:
        taken.release()


def products_are_shared() -> bool:
    """Whether products are for ``each`` to share, not for BLAS."""
    return _blas.limited and threads() > 1


class _Blas:
    """The libraries of matrix products in this process."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self.taken = threading.Lock()
        self.limited = False

    @staticmethod
    @cache
    def controller() -> ThreadpoolController:
        from threadpoolctl import ThreadpoolController  # not where all products are small

        return ThreadpoolController().select(user_api="blas")


_blas: Final = _Blas()

if hasattr(os, "register_at_fork"):  # a process that was forked has none of the threads
    os.register_at_fork(after_in_child=lambda: (_tasks.cache_clear(), _blas.reset()))
