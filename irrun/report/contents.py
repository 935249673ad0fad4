"""The contents of a report, before they become a document and a page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from irrun.debug import Comparison
from irrun.debug.budget import Expected
from irrun.debug.runtime import Runtime
from irrun.diagnostics import Diagnostic
from irrun.model import Model
from irrun.report.entries import Entries
from irrun.report.inferred import Inferred
from irrun.report.observations import Observations
from irrun.report.tree import Tree

__all__ = ["Contents"]


@dataclass(frozen=True)
class Contents:
    """Everything that a report says of a model.

    ``observations`` is None if the model did not run, and ``comparison`` if it was not compared. ``not_run`` holds the
    reasons: the diagnostics of the run, or none if no run was asked for.
    """

    model: Model
    facts: Mapping[str, Any]
    entries: Entries
    tree: Tree
    inferred: Inferred
    findings: tuple[Diagnostic, ...]
    inputs: Mapping[int, tuple[np.ndarray, str]]
    """The inputs of the run by position, each with a text that says where the array comes from."""
    observations: Observations | None = None
    not_run: tuple[Diagnostic, ...] = ()
    comparison: Comparison | None = None
    graph: Runtime | None = None
    """The graph that an engine runs, or None if no engine was asked for one."""
    expected: Expected | None = None
    """The errors to expect of an engine, or None if its precision is not known."""
