"""irrun: read, check and run OpenVINO IR in pure Python.

``irrun.read_model``, ``irrun.check``, ``irrun.compile``, ``irrun.run`` and ``irrun.save_model`` are what most need;
``irrun.build`` makes models, ``irrun.extract`` cuts them, ``irrun.op`` registers operations of one's own, and hooks
look inside a run (``irrun.Hook``, ``irrun.Dump``). Every error that a user can cause is an ``irrun.IrrunError``.
Nothing heavy is imported before it is asked for.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from irrun.api import compile, read_model, run
    from irrun.checking import check, why
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
    from irrun.dump import Dump
    from irrun.executor import Executable, Outputs
    from irrun.hooks import Hook
    from irrun.model import Model
    from irrun.opdef import Op, Site, Value, attr, op, opt, ports, variadic
    from irrun.profile import Profile
    from irrun.steps import Step
    from irrun.submodel import extract
    from irrun.write import save_model

__version__ = "0.1.0"

_HOMES = {
    "irrun.api": ("compile", "read_model", "run"),
    "irrun.checking": ("check", "why"),
    "irrun.diagnostics": (
        "Diagnostic", "ExecutionError", "FeedError", "IrrunError", "ModelError", "ReadError", "Report",
        "UnsupportedError",
    ),
    "irrun.model": ("Model",),
    "irrun.executor": ("Executable", "Outputs"),
    "irrun.write": ("save_model",),
    "irrun.submodel": ("extract",),
    "irrun.dump": ("Dump",),
    "irrun.hooks": ("Hook",),
    "irrun.opdef": ("Op", "Site", "Value", "attr", "op", "opt", "ports", "variadic"),
    "irrun.steps": ("Step",),
    "irrun.profile": ("Profile",),
}  # fmt: skip

__all__ = [
    "Diagnostic", "Dump", "Executable", "ExecutionError", "FeedError", "Hook", "IrrunError", "Model", "ModelError",
    "Op", "Outputs", "Profile", "ReadError", "Report", "Site", "Step", "UnsupportedError", "Value", "attr", "check",
    "compile", "extract", "op", "opt", "ports", "read_model", "run", "save_model", "variadic", "why",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    for module, names in _HOMES.items():
        if name in names:
            return getattr(importlib.import_module(module), name)
    raise AttributeError(f"module 'irrun' has no attribute {name!r}")
