"""Private folders for the values of engines. None is left behind, whatever ends the processes that use it."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Final

from irrun.files import lock

__all__ = ["private_folder"]

_PREFIX: Final = "irrun-"
_LOCK: Final = "lock"
"""The file in a private folder that its process holds a lock on. A folder whose file nobody has locked is litter."""


@contextmanager
def private_folder() -> Iterator[Path]:
    """Create a folder in the system's temporary folder, and remove it at the end of the ``with`` block.

    If this process is killed, the harnesses that it has started remove the folder. If they are killed as well, the next
    call does. Raises OSError if the folder cannot be created.
    """
    _sweep(Path(tempfile.gettempdir()))
    folder, file = _locked()
    try:
        yield folder
    finally:
        file.close()  # Windows removes no open file
        shutil.rmtree(folder, ignore_errors=True)


def _locked() -> tuple[Path, BinaryIO]:
    """Return a new folder, and its file, which is locked until it is closed."""
    while True:
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
        try:
            file = (folder / _LOCK).open("xb")
        except FileNotFoundError:
            continue
        if lock(file) and os.fstat(file.fileno()).st_nlink:
            return folder, file
        file.close()  # another process has swept the folder away before it was locked


def _sweep(folder: Path) -> None:
    """Remove the private folders of processes of this user that were killed."""
    if os.name != "posix":
        return  # no locks
    with suppress(OSError):
        for path in list(folder.glob(f"{_PREFIX}*/{_LOCK}")):
            with suppress(OSError), path.open("rb") as file:
                if os.fstat(file.fileno()).st_uid == os.getuid() and lock(file):
                    shutil.rmtree(path.parent, ignore_errors=True)
