"""Machine code on disk, from which later processes load kernels instead of compiling them.

numba has a cache of its own, in which this one differs in two ways. An entry belongs to the source text of this whole
folder: a kernel contains code of other modules, also such as ``block.py`` emits, and numba would notice a change of
its own module alone. And each entry is a file of its own, which appears whole or not at all, so that any number of
processes may compile at the same time: numba keeps an index, in which two processes may give one file to two kernels.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import sys
import threading
import time
from contextlib import suppress
from functools import cache
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any, Final

import numba
from numba.core.caching import CompileResultCacheImpl, _Cache
from numba.core.serialize import dumps

__all__ = ["MachineCode"]


class MachineCode(_Cache):
    """The entries of one function: a file for each combination of argument types and each kind of processor.

    The folder is NUMBA_CACHE_DIR, or else ``__pycache__`` beside the source, or the user's cache. Raises RuntimeError
    if none of them can be written to.
    """

    def __init__(self, function: Any) -> None:
        self._kind = CompileResultCacheImpl(function)
        self._folder = Path(self._kind.locator.get_cache_path())
        self._enabled = True

    @property
    def cache_path(self) -> str:  # pyright: ignore[reportIncompatibleMethodOverride]
        return str(self._folder)

    def enable(self) -> None:
        self._enabled = True

    def disable(self) -> None:
        self._enabled = False

    def flush(self) -> None:
        """Remove all entries."""
        self._remove("")

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the compiled function for a signature, or None if it has to be compiled now."""
        target_context.refresh()
        if self._enabled:
            with suppress(OSError, EOFError, pickle.UnpicklingError):
                entry = pickle.loads(self._file(sig, target_context.codegen()).read_bytes())
                return self._kind.rebuild(target_context, entry)
        _notice.begin()
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep a compiled function for later processes, and remove what belongs to other source text."""
        _notice.end()
        if not self._enabled or not self._kind.check_cachable(data):
            return
        file = self._file(sig, data.codegen)
        with suppress(OSError):  # the folder is full, or no longer writable
            self._folder.mkdir(parents=True, exist_ok=True)
            with NamedTemporaryFile(dir=self._folder, prefix=f"{file.name}.", suffix=".tmp", delete=False) as written:
                written.write(dumps(self._kind.reduce(data)))
            os.replace(written.name, file)
            self._remove(_source())

    def _file(self, signature: Any, codegen: Any) -> Path:
        key = repr((signature, codegen.magic_tuple(), numba.__version__))
        digest = hashlib.sha256(key.encode()).hexdigest()[:16]
        return self._folder / f"{self._kind.filename_base}.{_source()}.{digest}.nbc"

    def _remove(self, kept: str) -> None:
        """Remove the entries of this function, but not those that belong to the source text ``kept``."""
        base = f"{self._kind.filename_base}."
        for file in self._folder.glob(f"{base}*.nbc"):
            if not kept or not file.name.startswith(f"{base}{kept}."):
                with suppress(OSError):
                    file.unlink()


@cache
def _source() -> str:
    """Return a digest of the source text of this folder and those in it."""
    digest = hashlib.sha256()
    for file in sorted(Path(__file__).parent.rglob("*.py")):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


class _Notice:
    """Tells the user of a terminal, once, what the program waits for."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.since = 0.0
        self.timer: threading.Timer | None = None

    def begin(self) -> None:
        """Note that a kernel is compiled from now on."""
        self.since = time.monotonic()
        if self.timer is None and sys.stderr is not None and sys.stderr.isatty():
            self.timer = threading.Timer(max(0, PATIENCE - self.seconds), self.tell)
            self.timer.daemon = True
            self.timer.start()

    def end(self) -> None:
        """Note that the kernel is compiled."""
        self.seconds += time.monotonic() - self.since
        if self.timer is not None and self.seconds < PATIENCE:
            self.timer.cancel()
            self.timer = None

    def tell(self) -> None:
        sys.stderr.write("irrun compiles kernels for this processor, which it does only once\n")


PATIENCE: Final = 1.0
"""Seconds that compiling may take, in all, before irrun tells the user."""
_notice: Final = _Notice()
