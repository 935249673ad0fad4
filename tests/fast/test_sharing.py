"""Machine code that threads share: every part is computed once, whoever else shares, forks, ends or fails."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from queue import SimpleQueue

import numpy as np
import pytest

pytest.importorskip("numba", reason="the extra `fast` is not installed")

from irrun.fast.machine import sharing
from irrun.fast.machine.memory import add_to, address_of, look_at, pause
from irrun.fast.machine.processor import compiled
from irrun.fast.machine.sharing import share
from irrun.kernels import threads
from places import IMPORTED, ROOT

GUARD = 300
"""Seconds after which something counts as hung: far more than any machine needs."""
MANY = 1 << 62
_MOST_PAUSES = 1 << 20
"""How often a thread looks for the others, about 0.1 s: they may have been late, so that it is better to try again."""


@pytest.fixture
def use(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[int], None]]:
    """Sets the number of threads."""

    def set_to(count: int) -> None:
        monkeypatch.setenv("IRRUN_THREADS", str(count))
        threads.threads.cache_clear()
        threads._tasks.cache_clear()

    yield set_to
    threads.threads.cache_clear()
    threads._tasks.cache_clear()


@compiled
def mark(marks: np.ndarray, cuts: np.ndarray, first: int, last: int) -> None:
    """Count each number from ``first`` to ``last``, and where parts begin."""
    cuts[first] += 1
    for n in range(first, last):
        marks[n] += 1


@compiled
def meet(here: np.ndarray, parties: int, first: int, last: int) -> bool:
    """Wait until so many threads are here, and return whether they came."""
    add_to(address_of(here), 1)
    for _ in range(_MOST_PAUSES):
        if look_at(address_of(here)) >= parties:
            return True
        pause()
    return False


@compiled
def remainder(of: int, first: int, last: int) -> int:
    return first % of


@pytest.mark.parametrize("count", [0, 1, 2, 7, 100, 1001])
@pytest.mark.parametrize("unit", [1, 10])
def test_every_part_once(use: Callable[[int], None], count: int, unit: int) -> None:
    use(3)
    marks, cuts = np.zeros(count, np.int64), np.zeros(count + 1, np.int64)
    for _ in range(50):
        share(mark, count, MANY, marks, cuts, unit=unit)
    assert (marks == 50).all()
    begins = np.flatnonzero(cuts)
    assert (begins % unit == 0).all()
    assert len(begins) == max(1, min(3, -(-count // unit)))


def test_on_all_threads(use: Callable[[int], None]) -> None:
    """A part ends only when all threads, as many as there are cores but at most three, compute at the same time."""
    parties = 3 if (os.cpu_count() or 1) >= 3 else 2
    use(parties)
    end = time.monotonic() + GUARD
    while time.monotonic() < end:  # until no thread was late
        if share(meet, parties, MANY, np.zeros(1, np.int64), parties):
            return
    pytest.fail(f"{parties} threads never met")


def test_the_least_result(use: Callable[[int], None]) -> None:
    use(3)
    assert share(remainder, 30, MANY, 7) == min(0 % 7, 10 % 7, 20 % 7)
    assert share(remainder, 30, 1, 7) == 0


def test_little_stays_here(use: Callable[[int], None]) -> None:
    use(3)
    cuts = np.zeros(31, np.int64)
    share(mark, 30, threads.WORTH_NATIVELY - 1, np.zeros(30, np.int64), cuts)
    assert np.flatnonzero(cuts).tolist() == [0]


def test_parts_of_parts_stay_where_they_are(use: Callable[[int], None]) -> None:
    use(2)
    cuts = np.zeros(31, np.int64)
    threads.each(lambda _: share(mark, 30, MANY, np.zeros(30, np.int64), cuts), range(4), threads.WORTH)
    assert cuts.tolist() == [4] + [0] * 30


def test_callers_at_the_same_time(use: Callable[[int], None]) -> None:
    """One of them shares, the others compute alone."""
    use(3)
    wrong: list[int] = []

    def call() -> None:
        for _ in range(2000):
            marks = np.zeros(64, np.int64)
            share(mark, 64, MANY, marks, np.zeros(65, np.int64))
            if not (marks == 1).all():
                wrong.append(1)

    callers = [threading.Thread(target=call) for _ in range(4)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join(GUARD)
        assert not caller.is_alive()
    assert not wrong
    assert sharing._call[sharing._CALLERS] == sharing._call[sharing._HELPERS] == sharing._call[sharing._OPEN] == 0


def test_memory_that_cannot_be_allocated(use: Callable[[int], None]) -> None:
    use(2)
    with pytest.raises(MemoryError):
        share(allocate, 2, MANY, 1 << 55)
    assert share(remainder, 30, MANY, 7) == 0  # and all goes on


@compiled
def allocate(size: int, first: int, last: int) -> float:
    return np.empty(size, np.float32)[0]


def test_a_task_ends_the_watch(use: Callable[[int], None], monkeypatch: pytest.MonkeyPatch) -> None:
    use(2)
    monkeypatch.setattr(sharing, "_LOOKS_BEFORE_SLEEP", MANY)
    share(mark, 30, MANY, np.zeros(30, np.int64), np.zeros(31, np.int64))
    end = time.monotonic() + GUARD
    while not sharing._call[sharing._WATCHING]:
        assert time.monotonic() < end
    done = threading.Event()
    monkeypatch.undo()
    threads.post(done.set)
    assert done.wait(GUARD)


def test_the_watch_lasts_as_long_as_a_run(use: Callable[[int], None], monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a run, the thread sleeps after one look. It watches again when the next call wakes it."""
    use(2)
    monkeypatch.setattr(sharing, "_LOOKS_BEFORE_SLEEP", 1)
    monkeypatch.setattr(sharing, "_LOOKS_IN_RUN", MANY)
    with threads.products_are_shared_here(), threads.products_are_shared_here():
        for _ in range(20):  # a thread of another test may still watch at first, but not for long
            share(mark, 30, MANY, np.zeros(30, np.int64), np.zeros(31, np.int64))
            time.sleep(0.01)
            if sharing._call[sharing._WATCHING]:
                break
        else:
            pytest.fail("the thread sleeps while a run lasts")
    end = time.monotonic() + GUARD
    while sharing._call[sharing._WATCHING]:
        assert time.monotonic() < end


def test_little_work_wakes_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    tasks: SimpleQueue[Callable[[], object]] = SimpleQueue()
    monkeypatch.setattr(threads, "_tasks", lambda: tasks)
    threads.wake(2, threads.WORTH_WAKING - 1)
    assert tasks.empty()
    threads.wake(2, threads.WORTH_WAKING)
    assert tasks.qsize() == 2


PROGRAM = """
import os, sys, warnings
import numpy as np
from irrun.fast.machine import sharing
from test_sharing import MANY, mark
warnings.simplefilter("ignore")  # Python warns of forks beside threads

def work():
    for _ in range(200):
        marks = np.zeros(64, np.int64)
        sharing.share(mark, 64, MANY, marks, np.zeros(65, np.int64))
        assert (marks == 1).all()

work()
"""


def run(program: str) -> subprocess.CompletedProcess[bytes]:
    folders = (*IMPORTED, ROOT / "tests" / "fast")
    environment = {"IRRUN_THREADS": "3", "PYTHONPATH": os.pathsep.join(map(str, folders))}
    return subprocess.run(
        [sys.executable, "-c", program], env=os.environ | environment, timeout=GUARD, check=False, capture_output=True
    )


def test_a_process_ends_while_threads_watch() -> None:
    """Machine code is unloaded at the end, under the threads that would run it."""
    for _ in range(5):
        done = run(PROGRAM + "sharing._LOOKS_BEFORE_SLEEP = 1 << 62\nwork()\n")
        assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not forked here")
def test_a_forked_process_shares_with_its_own_threads() -> None:
    more = """
sharing._LOOKS_BEFORE_SLEEP = 1 << 62
work()
child = os.fork()
if child == 0:
    work()
    os._exit(0)
_, status = os.waitpid(child, 0)
work()
sys.exit(status)
"""
    done = run(PROGRAM + more)
    assert (done.returncode, done.stderr) == (0, b"")
