"""Tell the user that kernels are being compiled, which takes seconds in which a run shows nothing else."""

from __future__ import annotations

import sys
import threading
import time
from typing import Final

__all__ = ["COMPILING", "Compiling", "NotCompiled"]

_PATIENCE_SECONDS: Final = 1.0
"""How long compiling may take, in all, before irrun tells the user."""


class NotCompiled(BaseException):
    """A compiled kernel is called that was not made ahead of time, and numba, which would compile it, is not installed.

    No error of the user, and none of the kernel: whoever runs a plan takes one without compiled kernels instead.
    """


class Compiling:
    """The time in which kernels are compiled: ``with COMPILING: compile(…)``. One line on standard error says so.

    ``is_on`` is whether a kernel is being compiled, and ``seconds`` is how long this has taken so far in this process.
    """

    def __init__(self, patience: float = _PATIENCE_SECONDS) -> None:
        self.seconds = 0.0
        self.is_on = False
        self._patience = patience
        self._since = 0.0
        self._timer: threading.Timer | None = None

    def __enter__(self) -> None:
        self._since, self.is_on = time.monotonic(), True
        if self._timer is None and sys.stderr is not None:
            self._timer = threading.Timer(max(0, self._patience - self.seconds), self._tell)
            self._timer.daemon = True
            self._timer.start()

    def __exit__(self, *_: object) -> None:
        self.seconds += time.monotonic() - self._since
        self.is_on = False
        if self._timer is not None and self.seconds < self._patience:
            self._timer.cancel()
            self._timer = None

    def join(self) -> None:
        """Wait until the line is written, if it will be."""
        if self._timer is not None:
            self._timer.join()

    def _tell(self) -> None:
        sys.stderr.write(
            "irrun compiles kernels for this processor and keeps them (irrun cache); "
            "other kinds of network may need further ones\n"
        )
        sys.stderr.flush()


COMPILING: Final = Compiling()
"""The one of this process."""
