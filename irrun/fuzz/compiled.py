"""Compiled kernels of one instruction set, for a whole campaign."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from irrun.base.children import environment
from irrun.fast import forms

__all__ = ["compiled", "forms"]


@contextmanager
def compiled(form: str) -> Iterator[None]:
    """Compile every kernel for no more than an instruction set of ``forms``, here and in processes started meanwhile.

    It has no effect in a process that has compiled kernels before.
    """
    with environment(forms()[form]):
        yield
