"""A few threads that share what numpy computes on one core: all but matrix products, which BLAS shares itself.

IRRUN_THREADS says how many; without it, as many as BLAS is told to take, or as there are processors.
"""

from __future__ import annotations

import contextvars
import os
import threading
from collections import deque
from collections.abc import Callable, Sequence
from functools import cache
from queue import SimpleQueue
from typing import Final, TypeVar

import numpy as np

_T = TypeVar("_T")

WORTH: Final = 1 << 22
"""Bytes from which on the threads make up for what waking them takes: on a virtual machine 0.2 ms."""
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
    return min(len(affinity(0)) if affinity else os.cpu_count() or 1, _MOST)


def shares(count: int, size: int) -> list[slice]:
    """Slices that divide an axis of ``count``, of ``size`` bytes in all, among the threads; one if that is little."""
    parts = min(threads(), count) if size >= WORTH else 1
    return [slice(count * n // parts, count * (n + 1) // parts) for n in range(parts)]


def each(function: Callable[[_T], object], parts: Sequence[_T], size: int) -> None:
    """Call ``function`` with each of the parts, of ``size`` bytes in all: on all threads, unless that is little.

    What it raises first is raised here.
    """
    tasks = _tasks() if len(parts) > 1 and size >= WORTH and not _busy.get() else None
    if tasks is None:
        for part in parts:
            function(part)
        return
    rest = deque(parts)
    done: SimpleQueue[BaseException | None] = SimpleQueue()

    def work() -> None:
        _busy.set(True)
        while True:
            try:
                part = rest.popleft()
            except IndexError:
                return
            function(part)

    def take_part() -> None:
        try:
            context.copy().run(work)  # which tells numpy's warnings apart, too
        except BaseException as error:
            rest.clear()
            done.put(error)
        else:
            done.put(None)

    context = contextvars.copy_context()
    others = min(threads(), len(parts)) - 1
    for _ in range(others):
        tasks.put(take_part)
    take_part()
    failed = [error for _ in range(others + 1) if (error := done.get()) is not None]
    if failed:
        raise failed[0]


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


if hasattr(os, "register_at_fork"):  # a process that was forked has none of the threads
    os.register_at_fork(after_in_child=_tasks.cache_clear)
