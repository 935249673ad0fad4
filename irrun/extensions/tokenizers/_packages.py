"""Packages that only some operations need: they are imported when a layer first needs one."""

from __future__ import annotations

import importlib
from functools import cache
from typing import Any

from irrun.base.extras import install
from irrun.diagnostics import Refused

__all__ = ["PackageMissing", "package"]


class PackageMissing(Refused):
    """A package is not installed."""


@cache
def package(name: str) -> Any:
    """Import a package. Raises PackageMissing (IR201) if it is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError:
        message = f"this needs the Python package {name}, which is not installed"
        raise PackageMissing(message, help=install("tokenizers"), code="IR201") from None
