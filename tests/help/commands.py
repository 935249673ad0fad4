"""Commands that tests run: a forked `irrun`, and what a process in the background needs."""

from __future__ import annotations

import signal
import subprocess
import sys
from typing import Any

import warm

__all__ = ["hear_interrupts", "irrun"]


def irrun(*arguments: object, **settings: Any) -> subprocess.CompletedProcess[Any]:
    """Run `irrun` in a process; the settings are those of ``subprocess.run``."""
    return warm.run([sys.executable, "-m", "irrun", *map(str, arguments)], **settings)


def hear_interrupts() -> None:
    """Let a process that is about to start end at SIGINT: a job in the background ignores it, with all it starts."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
