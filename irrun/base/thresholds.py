"""Sizes from which compiled kernels pay off. Tests remove them with IRRUN_FAST=always, to compile at every size."""

from __future__ import annotations

import os

__all__ = ["always", "least"]


def always() -> bool:
    """Return whether every model, and every layer that has a compiled kernel, is compiled, however small it is."""
    return os.environ.get("IRRUN_FAST", "") == "always"


def least(size: int) -> int:
    """Return the least size for which a compiled kernel is chosen: ``size``, or 1 if every size is compiled."""
    return 1 if always() else size
