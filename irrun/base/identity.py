"""Identify the contents of files without reading large ones."""

from __future__ import annotations

import hashlib
import os
import stat
import time
from pathlib import Path
from typing import Final

__all__ = ["identity", "status", "weights_of"]

_READ: Final = 4 << 20
"""The most bytes of a file that are hashed. It takes a few milliseconds."""


def identity(path: str | os.PathLike[str]) -> str:
    """Return a text that changes when the contents of a file change.

    It is a hash of the contents for a file of up to ``_READ`` bytes. Of a larger one, it is the size, the inode and the
    times of the last change of contents and of the inode: the system sets the latter, and no program can set it back,
    so that a changed file never looks unchanged, but a copy of a large file looks changed. A missing file has an
    identity too.
    """
    try:
        found = os.stat(path)
        if not stat.S_ISREG(found.st_mode):
            return "not a file"
        if found.st_size <= _READ:
            return hashlib.sha256(Path(path).read_bytes()).hexdigest()
    except (OSError, ValueError) as error:
        return f"unreadable: {error}"
    return _status(found)


_TICK: Final = 2.0
"""Seconds within which a file system may give two changes the same time."""


def status(path: str | os.PathLike[str]) -> str | None:
    """Return a text that changes when the contents of a file change, without reading it: see ``identity``.

    Return None if it might stay the same at the next change, because the last one is so recent.
    """
    try:
        found = os.stat(path)
    except (OSError, ValueError) as error:
        return f"unreadable: {error}"
    settled = time.time() - max(found.st_mtime, found.st_ctime) > _TICK
    return _status(found) if settled and stat.S_ISREG(found.st_mode) else None


def _status(found: os.stat_result) -> str:
    return f"{found.st_dev}:{found.st_ino}:{found.st_size}:{found.st_mtime_ns}:{found.st_ctime_ns}"


def weights_of(model: str, weights: str | None) -> str:
    """Return the path of the ``.bin`` of a model: ``weights``, or the file beside it."""
    return weights if weights is not None else str(Path(model).with_suffix(".bin"))
