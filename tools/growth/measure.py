"""Time commands of irrun on files of the catalogue, in this process."""

from __future__ import annotations

import contextlib
import io
import os
import time
from collections.abc import Iterator
from pathlib import Path

from irrun.cli import cli

__all__ = ["arguments", "timed"]


def arguments(command: str, path: Path) -> list[str]:
    """Return the arguments of irrun for a command of the catalogue."""
    return {
        "check": ["check", str(path), "--exit-zero"],
        "fix": ["check", str(path), "--fix", "--exit-zero"],
        "diff": ["check", str(path), "--diff", "--exit-zero"],
        "run": ["run", str(path)],
        "extract": ["extract", str(path), "-o", str(path.with_name("extracted.xml"))],
        "why": ["why", str(path)],
        "show": ["show", str(path)],
    }[command]


def timed(command: str, path: Path) -> tuple[float, int]:
    """Run a command, and return the seconds of the processor that it took and its exit status."""
    began = time.process_time()
    with _quiet():
        try:
            cli(arguments(command, path), prog_name="irrun")
            status = 0
        except SystemExit as exit:
            status = exit.code if isinstance(exit.code, int) else 1
    return time.process_time() - began, status


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Discard what a command prints."""
    # a real file, because --diff writes to its buffer
    with (
        open(os.devnull, "w", encoding="utf-8") as nowhere,
        contextlib.redirect_stdout(nowhere),
        contextlib.redirect_stderr(io.StringIO()),
    ):
        yield
