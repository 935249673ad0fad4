"""A call of machine code that threads share without the interpreter's lock.

While a large model runs, and for a moment after it, a thread without a task watches for such calls: to wake a thread
takes 0.1 ms on a virtual machine, and to hand it the lock as long again, which is more than most kernels take.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final, cast

import numpy as np

from irrun.base.compiling import NotCompiled
from irrun.fast.functions import contracted
from irrun.fast.machine.entries import FAILED, MAX_ARGUMENT_BYTES
from irrun.fast.machine.late import emitted, ir, types
from irrun.fast.machine.machine_code import MachineCode
from irrun.fast.machine.memory import add_to, address_of, data_address, exchange, look_at, lower, pause, ticks
from irrun.fast.machine.processor import ROWS, compiled
from irrun.kernels.threads import idle, posted, running, shared, threads, wake
from irrun.opdef import Call, Calls

__all__ = ["InTurn", "in_blocks", "share", "share_call", "side_by_side"]

_LOOKS_BEFORE_SLEEP: Final = 1 << 14
"""How often a thread looks for a call before it sleeps, if no large model runs: some 0.3 ms."""
_LOOKS_IN_RUN: Final = 1 << 17
"""How often a thread looks for the next call while a large model runs: some 3 ms, in which numpy may compute a step."""
_PAUSES_BEFORE_LOCK: Final = 1 << 10
"""How often a thread pauses, when there is a task, before it asks for the interpreter's lock: some 0.02 ms, in which
the thread with the task begins its own part. To ask for a lock that another one holds takes longer."""
_LOOKS_PER_YIELD: Final = 1 << 10
"""How often a thread looks whether the others have finished before it leaves the processor to them for once."""

_EACH: Final = 4
"""The column of a table of calls that holds ``Call.each``."""

# The call that is shared at the moment, in i64. Each number has a cache line of its own.
_CACHE_LINE_NUMBERS: Final = 8
(_OPEN, _CODE, _ARGUMENTS, _COUNT, _UNIT, _PARTS, _NEXT, _LEAST, _HELPERS, _CALLERS, _CALLS, _WATCHING) = (
    _CACHE_LINE_NUMBERS * n for n in range(12)
)
"""The number of the call as long as it has parts, else 0; its code, arguments, count, unit and number of parts; the
next part; the least result; the threads that compute parts; those that want to share a call; the calls up to now; and
the threads that watch."""
_call: Final = np.zeros(12 * _CACHE_LINE_NUMBERS, np.int64)
_ABOVE_ALL_RESULTS: Final = 1 << 62


def share(function: Callable[..., Any], count: int, work: int, *arguments: Any, unit: int = 1) -> int:
    """Call ``function(*arguments, first, last)`` for parts of ``range(count)``, on all threads if ``work`` is enough.

    ``function`` is compiled, and its last two parameters are integers. All parts but the last are multiples of
    ``unit``. Returns the least result, with False as 0 and True as 1. Raises MemoryError.
    """
    parts = min(threads(), -(-count // unit)) if shared(work, natively=True) else 1
    code = cast(MachineCode, function)
    if parts < 2:
        return code(*arguments, 0, count)
    prepared = np.empty(MAX_ARGUMENT_BYTES, np.uint8)
    place = code.prepare(data_address(prepared), *arguments, 0, count)
    wake(parts - 1 - int(_call[_WATCHING]), work)
    result = cast(int, _share(_call, place, data_address(prepared), count, unit, parts, _YIELD))
    if result == FAILED:
        raise MemoryError
    return result


def share_call(call: Call, work: int) -> None:
    """Do a call as ``share`` does. Raises MemoryError."""
    share(call.function, call.size, work, *call.arguments, unit=call.unit)


def in_blocks(calls: Calls, count: int, most: int) -> Call:
    """Return the call that does calls in turn for blocks of at most ``most`` of ``count`` rows.

    The threads share the rows. The blocks of a thread are of nearly the same size.
    """
    return Call(_do_calls, (*_prepared(calls), most), count, ROWS, 1)


def side_by_side(groups: Sequence[Calls]) -> Call:
    """Return the call that does groups of equally many calls. The threads share the groups."""
    return Call(
        _do_groups, (*_prepared([call for group in groups for call in group]), len(groups[0])), len(groups), 1, 1
    )


class InTurn:
    """Calls of machine code, which all threads do one after the other, as often as this object is called.

    The threads take pieces of a call and watch for its end. Between two calls, there is no Python. ``work`` is that of
    all calls. The arrays of the calls live as long as this object is called. Raises MemoryError.
    """

    def __init__(self, calls: Calls, work: int) -> None:
        self._work, self._each = work, max((call.each for call in calls), default=1)
        self._table, self._prepared = _prepared(calls)
        self.ticks = np.zeros(len(calls), np.int64)
        """How long each call has taken in the last run, in units of the processor (see ``memory.ticks``)."""

    def replace(self, first: int, calls: Calls) -> None:
        """Do other calls in place of those from number ``first`` on."""
        _prepare(calls, self._table[first:], self._prepared[first:])

    def __call__(self) -> None:
        taken = np.zeros((len(self._table), self._each * threads() + 1), np.int64)
        share(_do_in_turn, threads(), self._work, self._table, taken, self.ticks, threads(), _YIELD)


def _prepared(calls: Calls) -> tuple[np.ndarray, np.ndarray]:
    """Return a table of calls, and the arguments that the table points to."""
    prepared, table = np.empty((len(calls), MAX_ARGUMENT_BYTES), np.uint8), np.empty((len(calls), 5), np.int64)
    _prepare(calls, table, prepared)
    return table, prepared


def _prepare(calls: Calls, table: np.ndarray, prepared: np.ndarray) -> None:
    """Fill the first rows of a table of calls, and the arguments that these point to."""
    begin = data_address(prepared)
    for n, (function, arguments, count, unit, each) in enumerate(calls):
        place = begin + n * MAX_ARGUMENT_BYTES
        table[n] = cast(MachineCode, function).prepare(place, *arguments, 0, count), place, count, unit, each


@compiled
def _do_calls(table: np.ndarray, prepared: np.ndarray, most: int, first: int, last: int) -> int:
    """Do the calls for the rows from ``first`` to ``last``, a block at a time. The table points to ``prepared``."""
    blocks = (last - first + most - 1) // most
    size = ((last - first + blocks - 1) // blocks + ROWS - 1) // ROWS * ROWS
    least = 0
    for begin in range(first, last, size):
        for n in range(len(table)):
            least = min(least, _run_at(table[n, 0], table[n, 1], begin, min(begin + size, last)))
    return least


@compiled
def _do_groups(table: np.ndarray, prepared: np.ndarray, each: int, first: int, last: int) -> int:
    """Do the calls of the groups from ``first`` to ``last`` in turn. The table points to ``prepared``."""
    least = 0
    for n in range(first * each, last * each):
        least = min(least, _run_at(table[n, 0], table[n, 1], 0, table[n, 2]))
    return least


@compiled
def _do_in_turn(
    table: np.ndarray, taken: np.ndarray, spent: np.ndarray, workers: int, yields: int, worker: int, end: int
) -> int:
    """Do pieces of each call in turn, those of this worker first, until all of it is done.

    ``taken`` has a number for each piece, 0 until a worker takes it, and then the number of pieces that are done. A
    worker takes the same pieces of each call, because its caches hold what the calls before left there. The first one
    writes how long each call takes to ``spent``.
    """
    least, begin = _ABOVE_ALL_RESULTS, ticks()
    for n in range(len(table)):
        count, unit = table[n, 2], table[n, 3]
        units = (count + unit - 1) // unit
        pieces = min(table[n, _EACH] * workers if workers > 1 else 1, units)
        line = address_of(taken) + n * taken.strides[0]
        done = line + taken.strides[0] - 8
        for k in range(pieces):
            piece = (pieces * worker // workers + k) % pieces
            if add_to(line + 8 * piece, 1) == 0:
                first, last = units * piece // pieces * unit, min(units * (piece + 1) // pieces * unit, count)
                least = min(least, _run_at(table[n, 0], table[n, 1], first, last))
                add_to(done, 1)
        turns = 0
        while look_at(done) < pieces:
            turns += 1
            wait(turns, yields)
        if worker == 0:
            now = ticks()
            spent[n], begin = now - begin, now
    return least


def _run(context: Any, code: Any, arguments: Any, first: Any, last: Any) -> Any:
    """Call prepared machine code: see ``MachineCode.prepare``."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Sequence[ir.Value]) -> ir.Value:
        integer = ir.IntType(64)
        kind = ir.FunctionType(integer, [integer] * 3)
        return builder.call(builder.inttoptr(arguments[0], kind.as_pointer()), arguments[1:])

    return types.int64(*[types.int64] * 4), generate


def _yield(context: Any, code: Any) -> Any:
    """Leave the processor to another thread, by the function of the system at an address."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Sequence[ir.Value]) -> ir.Value:
        kind = ir.FunctionType(ir.IntType(32), [])
        builder.call(builder.inttoptr(arguments[0], kind.as_pointer()), [])
        return context.get_dummy_value()

    return types.none(types.int64), generate


_run_at: Final = cast(Callable[[int, int, int, int], int], emitted(_run))
_yield_by: Final = cast(Callable[[int], None], emitted(_yield))


@contracted
def wait(turns: int, yields: int) -> None:
    """Wait a moment for other threads, and leave the processor to them now and then: they may have none."""
    if turns % _LOOKS_PER_YIELD or not yields:
        pause()
    else:
        _yield_by(yields)


@compiled
def _share(call: np.ndarray, code: int, arguments: int, count: int, unit: int, parts: int, yields: int) -> int:
    """Share a call with the threads that watch, and return its least result."""
    at = address_of(call)
    if add_to(at + 8 * _CALLERS, 1) > 0:  # another thread shares a call at the moment
        add_to(at + 8 * _CALLERS, -1)
        return _run_at(code, arguments, 0, count)
    call[_CODE], call[_ARGUMENTS], call[_COUNT], call[_UNIT], call[_PARTS] = code, arguments, count, unit, parts
    call[_NEXT], call[_LEAST] = 0, _ABOVE_ALL_RESULTS
    call[_CALLS] += 1
    exchange(at + 8 * _OPEN, call[_CALLS])
    _take_parts(call, at)
    exchange(at + 8 * _OPEN, 0)
    turns = 0
    while look_at(at + 8 * _HELPERS) > 0:
        turns += 1
        wait(turns, yields)
    least = call[_LEAST]
    add_to(at + 8 * _CALLERS, -1)
    return least


@compiled
def _take_parts(call: np.ndarray, at: int) -> None:
    """Compute parts of the call until none is left."""
    count, unit, parts = call[_COUNT], call[_UNIT], call[_PARTS]
    units = (count + unit - 1) // unit
    while True:
        part = add_to(at + 8 * _NEXT, 1)
        if part >= parts:
            return
        first, last = units * part // parts * unit, min(units * (part + 1) // parts * unit, count)
        lower(at + 8 * _LEAST, _run_at(call[_CODE], call[_ARGUMENTS], first, last))


@compiled
def _watch(
    call: np.ndarray, posted: np.ndarray, running: np.ndarray, seen: int, patience: int, in_run: int, handover: int,
    yields: int,
) -> None:  # fmt: skip
    """Help with the calls that are shared, until none comes for a while, or until ``posted[0]`` is not ``seen``.

    ``patience`` is the number of looks for a call, and ``in_run`` that number while ``running[0]`` is not 0. Now and
    then, the thread leaves the processor to other programs.
    """
    at, tasks, runs = address_of(call), address_of(posted), address_of(running)
    add_to(at + 8 * _WATCHING, 1)
    last = turns = 0
    while (turns < patience or (turns < in_run and look_at(runs) > 0)) and look_at(tasks) == seen:
        turns += 1
        number = look_at(at + 8 * _OPEN)
        if number == 0 or number == last:
            wait(turns, yields)
            continue
        add_to(at + 8 * _HELPERS, 1)
        if look_at(at + 8 * _OPEN) == number:  # or the caller may have gone on without this thread
            _take_parts(call, at)
            last, turns = number, 0
        add_to(at + 8 * _HELPERS, -1)
    add_to(at + 8 * _WATCHING, -1)
    if look_at(tasks) != seen:
        for _ in range(handover):
            pause()


def _watch_before_sleep(seen: int) -> None:
    with suppress(NotCompiled):  # the thread sleeps at once
        _watch(_call, posted, running, seen, _LOOKS_BEFORE_SLEEP, _LOOKS_IN_RUN, _PAUSES_BEFORE_LOCK, _YIELD)


def _yielding() -> int:
    try:
        function = ctypes.WinDLL("kernel32").SwitchToThread if os.name == "nt" else ctypes.CDLL(None).sched_yield
        return ctypes.cast(function, ctypes.c_void_p).value or 0
    except (AttributeError, OSError):
        return 0


_YIELD: Final = _yielding()
"""The address of the function by which a thread leaves the processor to another one, or 0."""


def _end() -> None:
    """Wait until no thread runs machine code, which is unloaded when the process ends."""
    idle.clear()
    posted[0] += 1
    end = time.monotonic() + 1
    while _call[_WATCHING] and time.monotonic() < end:
        time.sleep(0)


idle.append(_watch_before_sleep)
atexit.register(_end)
if hasattr(os, "register_at_fork"):  # a forked process has none of the threads
    os.register_at_fork(after_in_child=lambda: _call.fill(0))
