"""A lock for what a fork must not interrupt: compiling and linking machine code, and importing the modules that do.

A child has only the thread that forked it. If another thread holds a lock at that moment, of numba, LLVM or Python's
imports, nobody releases it in the child, which waits for ever.
"""

from __future__ import annotations

# these modules hold locks of their own while a process forks: whoever holds ours may take theirs, not the other way
import concurrent.futures.thread  # noqa: F401
import logging  # noqa: F401
import os
import threading
from typing import Final

__all__ = ["UNFORKED"]

UNFORKED: Final = threading.RLock()
"""A fork waits until no other thread holds it."""
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=UNFORKED.acquire, after_in_parent=UNFORKED.release, after_in_child=UNFORKED.release)
