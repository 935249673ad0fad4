"""Start processes of Python that import nothing from the current folder.

Python puts the current folder before its own modules in a process that it starts with ``-c``, as ``multiprocessing``
does: a ``select.py`` beside the models would be executed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

__all__ = ["child_environment", "drop_safe_path", "environment"]

_NAME: Final = "PYTHONSAFEPATH"
_OURS: Final = "irrun"
"""The value by which a process knows that irrun has set the variable. Any text has the same effect."""


@contextmanager
def child_environment(variables: Mapping[str, str] | None = None) -> Iterator[None]:
    """Let processes that start meanwhile have these variables, and leave out the current folder when they import."""
    with environment({_NAME: os.environ.get(_NAME) or _OURS, **(variables or {})}):
        yield


@contextmanager
def environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Set variables of the environment meanwhile, here and for processes that start then."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def drop_safe_path() -> None:
    """Remove what ``child_environment`` has set: an engine that this process starts imports what its author says."""
    if os.environ.get(_NAME) == _OURS:
        del os.environ[_NAME]
