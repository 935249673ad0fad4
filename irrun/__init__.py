"""irrun: read, check and run OpenVINO IR in pure Python.

``irrun.read_model``, ``irrun.check``, ``irrun.compile`` and ``irrun.run`` are the whole surface; every error
that a user can cause is an ``irrun.IrrunError``. Nothing heavy is imported before it is asked for.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from irrun.api import check, compile, read_model, run
    from irrun.diagnostics import (
        Diagnostic,
        ExecutionError,
        FeedError,
        IrrunError,
        ModelError,
        ReadError,
        Report,
        UnsupportedError,
    )
    from irrun.executor import Executable, Outputs
    from irrun.model import Model

__version__ = "0.1.0"

_HOMES = {
    "irrun.api": ("check", "compile", "read_model", "run"),
    "irrun.diagnostics": (
        "Diagnostic", "ExecutionError", "FeedError", "IrrunError", "ModelError", "ReadError", "Report",
        "UnsupportedError",
    ),
    "irrun.model": ("Model",),
    "irrun.executor": ("Executable", "Outputs"),
}  # fmt: skip

__all__ = [
    "Diagnostic", "Executable", "ExecutionError", "FeedError", "IrrunError", "Model", "ModelError", "Outputs",
    "ReadError", "Report", "UnsupportedError", "check", "compile", "read_model", "run",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    for module, names in _HOMES.items():
        if name in names:
            return getattr(importlib.import_module(module), name)
    raise AttributeError(f"module 'irrun' has no attribute {name!r}")
