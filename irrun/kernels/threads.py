"""A small thread pool for numpy's single-threaded work and for matrix products.

IRRUN_THREADS sets the number of threads. Without it, the number is the one that the environment sets for BLAS, or the
number of processors. irrun limits BLAS to one thread and shares matrix products itself, because the threads of BLAS
busy-wait: where other programs use the machine, too, that takes many times as long.
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
    from threadpoolctl import LibController, ThreadpoolController

_T = TypeVar("_T")

WORTH: Final = 1 << 24
"""The least work for which waking the threads pays off. A unit is one multiplication or addition of a matrix product,
of which one thread does some 80 in a nanosecond, or one byte that any other kernel fills. A byte counts for less than
the time that it takes, because waking a thread takes 0.1 ms on a virtual machine, and because threads that make short
calls of numpy wait for each other between the calls."""
WORTH_WAKING: Final = 1 << 21
"""The same for machine code that threads share without the interpreter's lock (see ``fast.machine.sharing``)."""
WORTH_NATIVELY: Final = 1 << 19
"""The same for that machine code and threads that are awake, because they watch for it."""
_MAX_DEFAULT_THREADS: Final = 8
"""The most threads by default. More threads would all wait for memory."""


@cache
def threads() -> int:
    """Return how many threads compute, including the one that calls."""
    for name in ("IRRUN_THREADS", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
        wanted = os.environ.get(name, "")
        if wanted.isdecimal() and int(wanted):
            return int(wanted)
    affinity = getattr(os, "sched_getaffinity", None)
    return min(len(affinity(0)) if affinity else os.cpu_count() or 1, _quota(), _MAX_DEFAULT_THREADS)


def _quota() -> int:
    """Return how many processors the quota of a container allows, or ``sys.maxsize`` without a quota.

    A container may see many more processors than it may use.
    """
    try:
        time, period = map(int, _CGROUP.read_text().split())
        return max(1, -(-time // period))
    except (OSError, ValueError):  # not Linux, or "max"
        return sys.maxsize


_CGROUP: Final = Path("/sys/fs/cgroup/cpu.max")


def shared(work: int, *, natively: bool = False) -> bool:
    """Return whether ``work`` (see ``WORTH``) is enough to be shared by the threads.

    It never is within a job that they share already. ``natively`` says that they need no lock of the interpreter.
    """
    return work >= (WORTH_NATIVELY if natively else WORTH) and threads() > 1 and not _busy.get()


def shares(count: int, work: int, least: int = 1) -> list[slice]:
    """Return slices that divide an axis of ``count`` elements into parts for ``each``.

    There is a single slice if the total ``work`` is too little to be shared. The length of each slice but the last is a
    multiple of ``least``.
    """
    units = -(-count // least)
    parts = min(threads(), units) if shared(work) else 1
    return [slice(units * n // parts * least, min(units * (n + 1) // parts * least, count)) for n in range(parts)]


def each(function: Callable[[_T], object], parts: Sequence[_T], work: int) -> None:
    """Call ``function`` with each of ``parts``, on all threads unless the total ``work`` is too little.

    Raises the first exception that a call raises. Parts that have not begun by then are skipped.
    """
    tasks = _tasks() if len(parts) > 1 and shared(work) else None
    if tasks is None:
        for part in parts:
            function(part)
        return
    job = _Job(function, parts)
    for _ in range(min(threads(), len(parts)) - 1):
        post(job.help)
    job.finish()


posted: Final = np.zeros(1, np.int64)
"""How many tasks there have been. A thread that is busy in ``idle`` sees here that there is a new one."""
running: Final = np.zeros(1, np.int64)
"""How many runs of large models there are at the moment."""
idle: Final[list[Callable[[int], object]]] = []
"""What a worker thread does, with the number of tasks up to then, when there is none, before it sleeps."""


def post(task: Callable[[], object]) -> None:
    """Give a task to one of the worker threads, if there are any."""
    if (tasks := _tasks()) is not None:
        tasks.put(task)
        posted[0] += 1


class _Job(Generic[_T]):
    """A job shared by several threads.

    Each thread takes the next part until none is left. A thread that wakes up too late is not waited for, and keeps no
    array.
    """

    def __init__(self, function: Callable[[_T], object], parts: Sequence[_T]) -> None:
        self.function, self.rest = function, deque(parts)
        self.context = contextvars.copy_context()  # also holds np.errstate
        self.change = threading.Condition()
        self.helpers = 0
        self.failed: list[BaseException] = []

    def finish(self) -> None:
        """Take parts until none is left, and wait for the helping threads. Raises the first exception of a part."""
        self.context.copy().run(self.take_parts)
        while True:
            try:
                with self.change:
                    self.change.wait_for(lambda: not self.helpers)
                break
            except KeyboardInterrupt as error:  # go on: threads still write to memory that is used again
                self.failed.append(error)
                self.rest.clear()
        del self.function  # a late thread still holds this job, but not the arrays of the function
        if self.failed:
            raise self.failed[0]

    def help(self) -> None:
        """Take parts on a worker thread, if any are left."""
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


def wake(count: int, work: int) -> None:
    """Wake ``count`` workers that sleep, so that they do what is in ``idle``, if there is enough ``work`` for it.

    Others are not disturbed.
    """
    if count > 0 and work >= WORTH_WAKING and (tasks := _tasks()) is not None:
        for _ in range(count - tasks.qsize()):
            tasks.put(_nothing)


def _nothing() -> None:
    pass


def fill(target: np.ndarray, source: np.ndarray) -> None:
    """Copy ``source`` to ``target``, which has the same shape, shared among threads along the longest axis."""
    axis = int(np.argmax(target.shape)) if target.ndim else 0
    cuts = shares(target.shape[axis], target.nbytes) if target.ndim else []
    if len(cuts) < 2:
        np.copyto(target, source)
        return
    before = (slice(None),) * axis
    each(lambda cut: np.copyto(target[(*before, cut)], source[(*before, cut)]), cuts, target.nbytes)


_busy: Final = contextvars.ContextVar("busy", default=False)
"""Whether this thread already works on a shared job, or must not share one."""
_plain: Final = contextvars.ContextVar("plain", default=False)


@cache
def _tasks() -> SimpleQueue[Callable[[], object]] | None:
    """Return the queue that the worker threads read from, and start them.

    Return None if there is one thread only, or where threads cannot be started (in a browser).
    """
    tasks: SimpleQueue[Callable[[], object]] = SimpleQueue()

    def serve() -> None:
        while True:
            seen = int(posted[0])
            if tasks.empty():
                for wait in idle:
                    wait(seen)
            tasks.get()()

    for _ in range(threads() - 1):
        try:
            threading.Thread(target=serve, name="irrun", daemon=True).start()
        except RuntimeError:
            return None
    return tasks if threads() > 1 else None


@contextmanager
def products_are_shared_here() -> Iterator[None]:
    """Limit BLAS to one thread in the whole process while the context is open.

    Where runs overlap, the first one sets the limit and the last one lifts it: to change the number of threads while a
    product is computed makes the product wrong.
    """
    blas = _blas.limit  # that of this process: a process that is forked meanwhile has another
    blas.enter()
    try:
        yield
    finally:
        blas.leave()


def products_are_shared() -> bool:
    """Return whether ``each`` shares matrix products among threads, instead of BLAS."""
    return _blas.limit.holds and threads() > 1


@contextmanager
def one_thread() -> Iterator[None]:
    """Start no thread, and use no BLAS but numpy's, while the context is open."""
    busy, plain = _busy.set(True), _plain.set(True)
    try:
        yield
    finally:
        _plain.reset(plain)
        _busy.reset(busy)


def only_numpy() -> bool:
    """Return whether matrix products must use numpy's BLAS: see ``one_thread``."""
    return _plain.get()


class _Limit:
    """The limit of BLAS to one thread, and the number of runs that need it."""

    def __init__(self) -> None:
        self.holds = False
        self._lock = threading.Lock()
        self._runs = 0
        self._before: list[tuple[LibController, int]] = []  # the libraries and their numbers of threads

    def enter(self) -> None:
        """Set the limit, unless another run has set it."""
        with self._lock:
            self._runs += 1
            running[0] = self._runs
            if self._runs == 1:
                # ``ThreadpoolController.limit`` does the same in 0.2 ms, in which it also describes the libraries
                for library in _controller().lib_controllers:
                    if (number := library.num_threads) != 1:
                        self._before.append((library, number))
                        library.set_num_threads(1)
                self.holds = all(library.num_threads == 1 for library, _ in self._before)

    def leave(self) -> None:
        """Lift the limit, unless another run needs it."""
        with self._lock:
            self._runs -= 1
            running[0] = self._runs
            if self._runs == 0:
                self.lift()

    def lift(self) -> None:
        """Give BLAS its previous number of threads, if the limit is set."""
        self.holds = False
        for library, number in self._before:
            library.set_num_threads(number)
        self._before.clear()


@cache
def _controller() -> ThreadpoolController:
    from threadpoolctl import ThreadpoolController  # imported late: not needed where all products are small

    return ThreadpoolController().select(user_api="blas")


class _Blas:
    """The limit of this process. A forked process lifts the limit that it inherits, and then has its own."""

    def __init__(self) -> None:
        self.limit = _Limit()

    def reset(self) -> None:
        self.limit.lift()
        self.limit = _Limit()
        running[0] = 0


_blas: Final = _Blas()

if hasattr(os, "register_at_fork"):  # a forked process has none of the worker threads
    os.register_at_fork(after_in_child=lambda: (_tasks.cache_clear(), _blas.reset()))
