"""Packages that only some operations need: they are imported when a layer first needs one."""

from __future__ import annotations

import importlib
from functools import cache
from typing import Any

from irrun.diagnostics import Refused

__all__ = ["package"]


@cache
def package(name: str) -> Any:
    """Import a package. Raises Refused (IR609) if it is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError:
        message = f"this needs the Python package {name}, which is not installed"
        raise Refused(message, help="pip install 'irrun[tokenizers]'", code="IR609") from None
