"""irrun: read, check and run OpenVINO IR in pure Python.

Most programs use ``irrun.read_model``, ``irrun.check``, ``irrun.compile``, ``irrun.run`` and ``irrun.save_model``.
``irrun.build`` builds models in Python, ``irrun.surgery`` edits them, ``irrun.extract`` cuts a part out of a model,
``irrun.debug`` finds where two models differ, ``irrun.export`` writes ONNX, ``irrun.genai`` generates text,
``irrun.report`` describes a model on a page, ``irrun.testing`` has assertions, ``irrun.op`` registers your own
operations, and hooks observe a run (``irrun.Hook``, ``irrun.Dump``). Every error that a user can cause is an
``irrun.IrrunError``. A module is imported when one of its names is first used: ``import irrun`` makes all of these
reachable.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from irrun import build as build
    from irrun import debug as debug
    from irrun import export as export
    from irrun import genai as genai
    from irrun import report as report
    from irrun import surgery as surgery
    from irrun import testing as testing
    from irrun.api import check, compile, extract, read_model, run, save_model, why
    from irrun.diagnostics import (
        BuildError,
        Diagnostic,
        EngineError,
        ExecutionError,
        FeedError,
        IrrunError,
        ModelError,
        ReadError,
        Report,
        UnsupportedError,
        WriteError,
    )
    from irrun.model import Model
    from irrun.opdef import Op, Site, Value, attr, op, opt, ports, variadic
    from irrun.planning.steps import Step
    from irrun.running.dump import Dump
    from irrun.running.executor import Executable, Outputs
    from irrun.running.hooks import Hook
    from irrun.running.profile import Profile

__version__ = "0.1.0"

_HOMES = {
    "irrun.api": ("check", "compile", "extract", "read_model", "run", "save_model", "why"),
    "irrun.diagnostics": (
        "BuildError", "Diagnostic", "EngineError", "ExecutionError", "FeedError", "IrrunError", "ModelError",
        "ReadError", "Report", "UnsupportedError", "WriteError",
    ),
    "irrun.model": ("Model",),
    "irrun.running.executor": ("Executable", "Outputs"),
    "irrun.running.dump": ("Dump",),
    "irrun.running.hooks": ("Hook",),
    "irrun.opdef": ("Op", "Site", "Value", "attr", "op", "opt", "ports", "variadic"),
    "irrun.planning.steps": ("Step",),
    "irrun.running.profile": ("Profile",),
}  # fmt: skip

_PACKAGES = ("build", "debug", "export", "genai", "report", "surgery", "testing")
"""The sub-packages with functions of their own."""

__all__ = [
    "BuildError", "Diagnostic", "Dump", "EngineError", "Executable", "ExecutionError", "FeedError", "Hook",
    "IrrunError", "Model", "ModelError", "Op", "Outputs", "Profile", "ReadError", "Report", "Site", "Step",
    "UnsupportedError", "Value", "WriteError", "attr", "check", "compile", "extract", "op", "opt", "ports",
    "read_model", "run", "save_model", "variadic", "why",
]  # fmt: skip


def __dir__() -> list[str]:
    return sorted({*__all__, *_PACKAGES, "__version__"})


def __getattr__(name: str) -> Any:
    if name in _PACKAGES:
        return importlib.import_module(f"irrun.{name}")
    for module, names in _HOMES.items():
        if name in names:
            return getattr(importlib.import_module(module), name)
    raise AttributeError(f"module 'irrun' has no attribute {name!r}")
