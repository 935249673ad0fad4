"""Identify the contents of files without reading large ones."""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path
from typing import Final

__all__ = ["identity", "weights_of"]

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
        status = os.stat(path)
        if not stat.S_ISREG(status.st_mode):
            return "not a file"
        if status.st_size <= _READ:
            return hashlib.sha256(Path(path).read_bytes()).hexdigest()
    except (OSError, ValueError) as error:
        return f"unreadable: {error}"
    return f"{status.st_dev}:{status.st_ino}:{status.st_size}:{status.st_mtime_ns}:{status.st_ctime_ns}"


def weights_of(model: str, weights: str | None) -> str:
    """Return the path of the ``.bin`` of a model: ``weights``, or the file beside it."""
    return weights if weights is not None else str(Path(model).with_suffix(".bin"))
