"""Compiled kernels of one instruction set, for a whole campaign."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from irrun.fast import forms

__all__ = ["compiled", "forms"]


@contextmanager
def compiled(form: str) -> Iterator[None]:
    """Compile every kernel for no more than an instruction set of ``forms``, here and in processes started meanwhile.

    It has no effect in a process that has compiled kernels before.
    """
    variables = forms()[form]
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
