"""Write files completely or not at all, and remove what earlier runs left behind when they were killed.

A file is written under a temporary name beside its target and renamed when it is complete. The writer holds a lock on
the temporary file. The system releases the lock when the process ends, so that a temporary file without a lock is
litter of a process that was killed.
"""

from __future__ import annotations

import os
import re
import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from errno import EDQUOT, EFBIG, EIO, ENOSPC
from pathlib import Path
from typing import BinaryIO, Final

from irrun.diagnostics import WriteError

try:
    import fcntl
except ImportError:  # Windows, where nobody can remove a file that is open, so that no lock is needed
    fcntl = None

__all__ = [
    "NewFile",
    "cache_folder",
    "kernels_folder",
    "lock",
    "replace_pair",
    "require_own",
    "sweep",
    "write_file",
    "write_pair",
    "writing",
]

_LONGEST: Final = 200
"""The most bytes of the target's name in a temporary name: file systems allow names of 255 bytes."""


_OF_THE_DISK: Final = (EDQUOT, EFBIG, EIO, ENOSPC)
"""The errors of writing, in contrast to those of what else happens while a file is open."""


class NewFile:
    """A file that replaces ``path`` as a whole when it is complete.

    Use it as ``with NewFile(path) as new: new.file.write(data); new.finish()``. Without ``finish``, nothing changes. A
    symbolic link stays, and its target is replaced. A writer of many files calls ``sweep`` once for their folder, and
    passes ``swept=True``. Raises WriteError (IR011) if the file cannot be written.
    """

    file: BinaryIO

    def __init__(self, path: str | os.PathLike[str], *, swept: bool = False) -> None:
        self.path = Path(path).resolve()
        self.swept = swept

    def __enter__(self) -> NewFile:
        if not self.swept:
            sweep(self.path.parent, self.path.name)
        while True:
            self.partial = self.path.with_name(f"{_prefix(self.path.name)}{secrets.token_hex(4)}.part")
            try:
                self.file = self.partial.open(
                    "x+b"
                )  # numpy drops the errno of the errors of a file opened for writing alone
            except OSError as error:
                raise WriteError.of(self.path, error) from None
            if lock(self.file) and os.fstat(self.file.fileno()).st_nlink:
                return self
            self.file.close()  # another process swept the file away before it was locked

    def finish(self) -> None:
        """Replace the target. Raises WriteError (IR011) if this is impossible."""
        try:
            self.file.flush()
            if fcntl is None:
                self.file.close()  # Windows renames no open file
            self.partial.replace(self.path)
        except OSError as error:
            raise WriteError.of(self.path, error) from None

    def __exit__(self, _: object, error: BaseException | None, *__: object) -> None:
        self.partial.unlink(missing_ok=True)
        with suppress(OSError):  # what is still in the buffer does not fit on the disk either
            self.file.close()
        with writing(self.path):
            if isinstance(error, OSError):
                raise error


@contextmanager
def writing(path: str | os.PathLike[str]) -> Iterator[None]:
    """Raise WriteError (IR011) for ``path`` if the disk is full or broken within the ``with`` block."""
    try:
        yield
    except WriteError:
        raise
    except OSError as error:
        if error.errno in _OF_THE_DISK:
            raise WriteError.of(path, error) from None
        raise


def write_file(path: str | os.PathLike[str], data: bytes, *, swept: bool = False) -> None:
    """Write a file that replaces ``path`` as a whole, as ``NewFile`` does."""
    with NewFile(path, swept=swept) as new:
        new.file.write(data)
        new.finish()


def write_pair(path: Path, xml: bytes, weights: bytes) -> None:
    """Write an ``.xml`` and the ``.bin`` beside it, as ``replace_pair`` does."""
    with NewFile(path.with_suffix(".bin")) as new_weights, NewFile(path) as new_model:
        new_weights.file.write(weights)
        new_model.file.write(xml)
        replace_pair(new_weights, new_model)


def replace_pair(weights: NewFile, model: NewFile) -> None:
    """Replace a ``.bin`` and the ``.xml`` that refers to it, so that no ``.xml`` is seen with the ``.bin`` of another.

    The old ``.xml`` is moved aside first, and moved back if the ``.bin`` cannot be replaced. Between the renames, there
    is no ``.xml``. A process that is killed there leaves a ``.bin`` without an ``.xml``, never a mixture.
    """
    aside = model.partial.with_suffix(".old.part")
    with suppress(FileNotFoundError):
        model.path.rename(aside)
    try:
        weights.finish()
    except BaseException:
        with suppress(FileNotFoundError):
            aside.rename(model.path)
        raise
    try:
        model.finish()
    finally:
        aside.unlink(missing_ok=True)


def sweep(folder: Path, name: str | None = None) -> None:
    """Remove temporary files in a folder that a killed process left: those for the target ``name``, or all."""
    pattern = re.compile(rf"{'[.].+[.]' if name is None else re.escape(_prefix(name))}[0-9a-f]{{8}}(\.old)?\.part")
    with suppress(OSError):
        for path in [path for path in folder.iterdir() if pattern.fullmatch(path.name)]:
            with suppress(OSError):
                _remove_unlocked(path)


def _remove_unlocked(path: Path) -> None:
    """Remove a file that no process holds a lock on."""
    if fcntl is None:
        path.unlink()
        return
    with path.open("rb") as file:
        if lock(file):
            path.unlink()


def lock(file: BinaryIO) -> bool:
    """Lock a file until it is closed. Return False if another process, or another file object, holds the lock."""
    if fcntl is None:
        return True
    try:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # the file system has no locks: leave the files of others alone, but write one's own
        return "x" in file.mode
    return True


def _prefix(name: str) -> str:
    return f".{os.fsdecode(os.fsencode(name)[:_LONGEST])}."


def cache_folder() -> Path | None:
    """Return the folder of the cache: IRRUN_CACHE_DIR, or ``irrun`` in the user's folder for caches.

    A relative XDG_CACHE_HOME is ignored, as its specification wants: it would name a part of the current folder.
    Return None if IRRUN_CACHE_DIR is empty: then there is no cache.
    """
    named = os.environ.get("IRRUN_CACHE_DIR")
    if named is not None:
        return Path(named) if named else None
    bases = [
        os.environ.get("XDG_CACHE_HOME", ""),
        os.environ.get("LOCALAPPDATA", "") if sys.platform == "win32" else "",
    ]
    for base in filter(os.path.isabs, bases):
        return Path(base) / "irrun"
    with suppress(RuntimeError):  # no home
        return Path.home() / ".cache" / "irrun"
    return None


def kernels_folder() -> Path | None:
    """Return the folder for machine code: NUMBA_CACHE_DIR, or ``kernels`` in the folder of the cache, or None."""
    if named := os.environ.get("NUMBA_CACHE_DIR"):
        return Path(named)
    folder = cache_folder()
    return None if folder is None else folder / "kernels"


def require_own(status: os.stat_result, name: str) -> None:
    """Raise PermissionError if users other than this one and root own or may write a file or folder with this status.

    The contents of a folder are not looked at. Does nothing where the system has no owners (Windows).
    """
    if os.name == "posix":
        if status.st_uid not in (0, os.geteuid()):
            raise PermissionError(f"{name} belongs to another user")
        if status.st_mode & 0o022:
            raise PermissionError(f"other users can write to {name}")
