"""What a process needs that a test starts and interrupts."""

from __future__ import annotations

import signal

__all__ = ["hear_interrupts"]


def hear_interrupts() -> None:
    """Let a process that is about to start end at SIGINT: a job in the background ignores it, with all it starts."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
