"""Watch files for changes."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

__all__ = ["changes"]

_PAUSE_SECONDS: Final = 0.3
"""Seconds between two checks whether files have changed."""

_Stamp = tuple[tuple[int, int, int] | None, ...]


def changes(files: Callable[[], Sequence[str]], weights: str | None) -> Iterator[tuple[list[str], list[str]]]:
    """Yield all files and those that are new or changed: once at the start, then after every change, without end.

    A model also counts as changed if its ``.bin`` changes. ``files`` is called again for each check.
    """
    seen: dict[str, _Stamp] = {}
    while True:
        now = {file: _stamp(file, weights) for file in files()}
        changed = [file for file, stamp in now.items() if seen.get(file) != stamp]
        if changed or now.keys() != seen.keys():
            yield list(now), changed
        seen = now
        time.sleep(_PAUSE_SECONDS)


def _stamp(file: str, weights: str | None) -> _Stamp:
    """Return a value that changes when the model or its ``.bin`` changes, or a file in a folder."""
    if os.path.isdir(file):
        return tuple(_state(path) for path in sorted(Path(file).iterdir()))
    return tuple(_state(path) for path in (file, weights or Path(file).with_suffix(".bin")))


def _state(path: str | Path) -> tuple[int, int, int] | None:
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino
