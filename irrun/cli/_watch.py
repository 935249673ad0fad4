"""Wait until files change."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

__all__ = ["changes"]

_PAUSE: Final = 0.3
"""Seconds between two looks."""

_Stamp = tuple[tuple[int, int, int] | None, ...]


def changes(files: Callable[[], Sequence[str]], weights: str | None) -> Iterator[tuple[list[str], list[str]]]:
    """The files, and those of them that are new or changed: at once, and whenever something changes.

    A model counts as changed with its ``.bin``, too. ``files`` is asked again each time.
    """
    seen: dict[str, _Stamp] = {}
    while True:
        now = {file: _stamp(file, weights) for file in files()}
        changed = [file for file, stamp in now.items() if seen.get(file) != stamp]
        if changed or now.keys() != seen.keys():
            yield list(now), changed
        seen = now
        time.sleep(_PAUSE)


def _stamp(file: str, weights: str | None) -> _Stamp:
    return tuple(_state(path) for path in (file, weights or Path(file).with_suffix(".bin")))


def _state(path: str | Path) -> tuple[int, int, int] | None:
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
