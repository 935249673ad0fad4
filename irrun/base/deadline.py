"""The time at which a run must have ended, for kernels and operations that repeat a step many times."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

__all__ = ["OutOfTime", "ends_at", "in_time", "require_time", "seconds_left"]

T = TypeVar("T")
_DEADLINE: ContextVar[float] = ContextVar("irrun_deadline", default=math.inf)


class OutOfTime(Exception):  # noqa: N818 -- it is no fault of the kernel
    """The deadline is over. The interpreter reports it as IR607."""


@contextmanager
def ends_at(deadline: float) -> Iterator[None]:
    """Set the deadline, a time of ``time.monotonic``, while the context is open. Infinity is no deadline."""
    before = _DEADLINE.set(deadline)
    try:
        yield
    finally:
        _DEADLINE.reset(before)


def seconds_left() -> float:
    """Return the seconds up to the deadline: infinity if there is none, negative if it is over."""
    deadline = _DEADLINE.get()
    return deadline if deadline == math.inf else deadline - time.monotonic()


def require_time() -> None:
    """Raise OutOfTime if the deadline is over."""
    if time.monotonic() >= _DEADLINE.get():
        raise OutOfTime


def in_time(items: Iterable[T]) -> Iterable[T]:
    """Return ``items``, and raise OutOfTime before the first item for which the deadline is over."""
    deadline = _DEADLINE.get()
    return items if deadline == math.inf else _limited(items, deadline)


def _limited(items: Iterable[T], deadline: float) -> Iterator[T]:
    for item in items:
        if time.monotonic() >= deadline:
            raise OutOfTime
        yield item
