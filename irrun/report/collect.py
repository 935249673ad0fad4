"""Collect what a report says of a model: what its file declares, what is inferred, checked, run and compared."""

from __future__ import annotations

import html
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from irrun.api import PathLike, load
from irrun.checking.checker import check
from irrun.checking.facts import facts_of
from irrun.debug import Comparison, Tolerances, compare
from irrun.debug.budget import Expected, InEffect, expect_in
from irrun.debug.inputs import Feeds, samples_of
from irrun.debug.runtime import Runtime, runtime
from irrun.diagnostics import Diagnostic, EngineError, FeedError, IrrunError, ReadError
from irrun.engines import KINDS, Limits, Side, parse_side
from irrun.engines.kinds import RUNTIME_GRAPH, properties
from irrun.files import write_file
from irrun.inference.trace import Trace
from irrun.ir.parse import Parsed, no_garbage
from irrun.model import Model
from irrun.report.contents import Contents
from irrun.report.document import document
from irrun.report.entries import Entries
from irrun.report.inferred import inferred
from irrun.report.observations import Observations, observe
from irrun.report.page import page
from irrun.report.tree import Tree
from irrun.running.live import default_max_memory

__all__ = ["ModelReport", "collect"]


class ModelReport(Contents):
    """A report: its contents, and what they are written as."""

    def record(self) -> dict[str, Any]:
        """Return the report as a dict for JSON, with its version under ``version``."""
        return document(self)

    def html(self) -> str:
        """Return the report as one HTML page that needs no other file and no network."""
        return page(self.record())

    def _repr_html_(self) -> str:
        """Return the page in a frame, for notebooks. Its script reaches nothing outside the frame."""
        title, page = html.escape(self.model.name), html.escape(self.html())
        style = "width: 100%; height: 720px; border: 0"
        return f'<iframe title="{title}" sandbox="allow-scripts" style="{style}" srcdoc="{page}"></iframe>'

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the page to a file, as a whole or not at all. Raises OSError."""
        write_file(path, self.html().encode("utf-8"))


def collect(
    model: Model | Parsed | PathLike,
    feeds: Feeds | None = None,
    *,
    weights: PathLike | None = None,
    run: bool = True,
    runs: int = 3,
    seed: int = 0,
    side: str | Side | None = None,
    engine: str | Side | None = None,
    expected: str | Side | None = None,
    tolerances: Tolerances | None = None,
    timeout: float | None = None,
    max_memory: int | None = None,
    origins: Mapping[int, str] | None = None,
) -> ModelReport:
    """Return the report of a model.

    - ``feeds`` are the inputs of the run, by name or position. An input that is not passed is random, drawn with
      ``seed``.
    - Without ``run``, nothing is run, and the report has no statistics and no times. ``runs`` is how often the model is
      timed.
    - ``side`` is what the model is compared with, such as ``openvino`` or ``openvino[device=GPU]:other.xml``. Without
      a path, it runs the model of the report.
    - ``engine`` is the one whose graph is shown, such as ``openvino[precision=f32]``. The default is that of ``side``,
      if it shows a graph and runs the model of the report.
    - ``expected`` is the engine whose errors are expected, such as ``openvino[precision=bf16]``. It is not started. The
      default is that of ``side``, with the precision that it has reported.
    - ``timeout``, in seconds, and ``max_memory``, in bytes, limit each run.
    - ``origins`` says for inputs, by position, where they come from.

    A model with errors is reported as well, and so is one that does not run: ``not_run`` says why. Raises ReadError if
    the model cannot be read, FeedError if ``feeds`` do not fit it, and EngineError if ``side`` cannot be used.
    """
    parsed = model if isinstance(model, Parsed) else _read(model, weights)
    own, limit = parsed.model, max_memory or default_max_memory()
    side, engine, expected = (_side(item) for item in (side, engine, expected))
    findings = check(parsed).diagnostics
    entries = Entries(own)
    with no_garbage():
        values = inferred(Trace(own), entries)
    inputs: Mapping[int, tuple[np.ndarray, str]] = {}
    observations: Observations | None = None
    comparison: Comparison | None = None
    graph: Runtime | None = None
    errors: Expected | None = None
    not_run: tuple[Diagnostic, ...] = ()
    if run or (side, engine, expected) != (None, None, None):
        try:
            parsed.runnable()  # raises ModelError
            inputs = _inputs(own, feeds or {}, seed, origins or {})
            arrays = {position: array for position, (array, _) in inputs.items()}
            if side is not None:
                comparison = _compared(own, side, arrays, tolerances, timeout, limit)
                engine = engine or _shown(own, side, comparison)
            if engine is not None:
                limits = Limits(timeout or Limits().seconds, limit)
                graph = runtime(own.source.path, engine.without_model(), arrays, runs=runs, limits=limits)
            effect = _effect(expected, comparison)
            if effect is not None:
                errors = expect_in(own, effect, [arrays], limit)
            if run:
                observations = observe(own, arrays, entries, runs=runs, max_memory=limit, timeout=timeout)
        except (FeedError, EngineError, ReadError):
            raise
        except IrrunError as error:
            not_run = error.diagnostics
    return ModelReport(
        own,
        facts_of(own),
        entries,
        Tree(entries),
        values,
        findings,
        inputs,
        observations,
        not_run,
        comparison,
        graph,
        errors,
    )


def _read(model: Model | PathLike, weights: PathLike | None) -> Parsed:
    return Parsed(model, []) if isinstance(model, Model) else load(model, weights)


def _side(side: str | Side | None) -> Side | None:
    return parse_side(side, needs_path=False) if isinstance(side, str) else side


def _shown(model: Model, side: Side, comparison: Comparison) -> Side | None:
    """Return the side of a comparison if its engine shows the graph that it runs of the model of the report."""
    is_same = side.path is None or side.path.resolve() == Path(model.source.path).resolve()
    return side if is_same and comparison.failure is None and RUNTIME_GRAPH in KINDS[side.kind].shows else None


def _effect(expected: Side | None, comparison: Comparison | None) -> InEffect | None:
    """Return the precision in effect: of the options of a side, or as the engine of a comparison has reported it."""
    if expected is not None:
        return InEffect.of(properties(expected.options))
    reported = comparison.properties[0] if comparison is not None and comparison.properties else None
    return InEffect.of(reported) if reported else None


def _inputs(model: Model, feeds: Feeds, seed: int, origins: Mapping[int, str]) -> dict[int, tuple[np.ndarray, str]]:
    """Return the inputs of the run by position, each with a text that says where the array comes from."""
    (arrays,) = samples_of(model, feeds, 1, seed)
    passed = {model.known_input(key) for key in feeds}
    texts = {position: "as passed" if position in passed else f"random, seed {seed}" for position in arrays}
    for position, parameter in enumerate(model.parameters):
        if parameter.id in model.contents and position not in arrays:
            arrays[position], line = model.contents[parameter.id]
            texts[position] = f"from the comment at line {line}"
    return {position: (arrays[position], {**texts, **origins}[position]) for position in sorted(arrays)}


def _compared(
    model: Model, side: Side, arrays: Feeds, tolerances: Tolerances | None, timeout: float | None, max_memory: int
) -> Comparison:
    """Compare a model, as irrun runs it, with another side on the same inputs."""
    path = Path(model.source.path)
    limits = Limits(timeout or Limits().seconds, max_memory)
    return compare(side, Side("irrun", path), arrays, tolerances=tolerances, limits=limits)
