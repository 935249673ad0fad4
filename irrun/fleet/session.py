"""A model that is loaded once in a process and runs many inputs, one by one or in batches."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from irrun.api import compile as compile_model
from irrun.api import load
from irrun.base.source import Source
from irrun.diagnostics import Diagnostic, ExecutionError, IrrunError, ModelError, ReadError, diagnostic
from irrun.ir.parse import Parsed, parse
from irrun.model import Model
from irrun.model.weights import Weights
from irrun.opdef import Precision
from irrun.running.executor import Executable
from irrun.running.generate import declared, draw

__all__ = ["Job", "Packed", "Result", "Session", "result_types", "rows_are_independent", "session"]

Feeds = Mapping[int, np.ndarray]
"""The arrays of one input, by the position of the Parameter."""
Result = tuple[np.ndarray, ...] | tuple[Diagnostic, ...]
"""The outputs of an input, or the diagnostics that say why there are none."""


@dataclass(frozen=True, slots=True)
class Packed:
    """A model whose files travel with it, for workers that cannot read them. ``path`` is only shown in messages."""

    path: str
    xml: bytes
    weights: bytes


@dataclass(frozen=True, slots=True)
class Job:
    """How to run a model: what ``irrun.compile`` takes, and the number of inputs in a batch. It is picklable."""

    model: str | Packed
    weights: str | None = None
    batch: int = 1
    strict: bool = False
    exact: bool | None = None
    max_memory: int | None = None
    timeout: float | None = None
    version: str = ""
    """A hash of the model's files, so that another version of them is loaded anew."""
    shapes: tuple[tuple[str | int, Any], ...] = ()
    """The inputs that have another shape than the file declares, with this shape."""
    precision: Precision = "f32"

    def parsed(self) -> Parsed:
        """Return the model. Raises ReadError if it cannot be read, and FeedError (IR601) for wrong shapes."""
        if isinstance(self.model, str):
            parsed = load(self.model, self.weights)
        else:
            parsed = parse(Source(self.model.path, self.model.xml), Weights(data=self.model.weights))
        return parsed.reshape(dict(self.shapes)) if self.shapes else parsed

    def compile(self, parsed: Parsed) -> Executable:
        """Return the executable of a model, whose runs do not depend on those before. Raises as ``irrun.compile``."""
        return compile_model(
            parsed.runnable(),
            strict=self.strict,
            exact=self.exact,
            max_memory=self.max_memory,
            timeout=self.timeout,
            repeatable=True,
            precision=self.precision,
        )


class Session:
    """A model in the memory of this process. ``lock`` is for processes whose threads share it: one runs at a time."""

    def __init__(self, job: Job) -> None:
        parsed = job.parsed()
        self.job, self.model, self.lock = job, parsed.model, threading.Lock()
        self.single = job.compile(parsed)
        self.rows = row_shapes(self.model) if job.batch > 1 else None
        self.batched = None if self.rows is None else job.compile(_batched(parsed, self.rows, job.batch))

    def run(self, inputs: Sequence[Feeds | tuple[Diagnostic, ...]]) -> list[Result]:
        """Return the outputs of each input of one batch, or why there are none.

        The place of an input without arrays is filled with another one, so that what a row gives depends only on its
        place in the batch. A batch that is not full is run input by input.
        """
        results: list[Result | None] = [None if isinstance(feeds, Mapping) else feeds for feeds in inputs]
        fitting = [n for n, feeds in enumerate(inputs) if isinstance(feeds, Mapping) and self._fits(feeds)]
        if self.batched is not None and fitting and len(inputs) == self.job.batch:
            chosen = [n if n in fitting else fitting[0] for n in range(len(inputs))]
            stacked = [
                np.concatenate([inputs[n][at] for n in chosen])  # type: ignore[index]
                for at in range(len(self.model.parameters))
            ]
            outputs = _run(self.batched, dict(enumerate(stacked)))
            if not any(isinstance(output, Diagnostic) for output in outputs):
                for n in fitting:
                    results[n] = tuple(output[n : n + 1] for output in outputs)  # type: ignore[index]
        return [
            _run(self.single, inputs[n]) if result is None else result  # type: ignore[arg-type]
            for n, result in enumerate(results)
        ]

    def _fits(self, feeds: Feeds) -> bool:
        """Return whether the arrays of an input can be a row of a batch."""
        if self.rows is None or len(feeds) != len(self.rows):
            return False
        types = [declared(self.model, p)[0].dtype for p in self.model.parameters]
        return all(feeds[n].shape == (1, *row) and feeds[n].dtype == types[n] for n, row in enumerate(self.rows))


def _run(executable: Executable, feeds: Feeds) -> Result:
    """Run one input as the first one of a process. Return why it failed if it did."""
    executable.restart()
    try:
        return executable(dict(feeds)).arrays
    except IrrunError as error:
        return error.diagnostics
    except MemoryError as error:
        return (diagnostic("IR604", f"the memory of the machine ran out: {error}", help="use fewer jobs"),)


def row_shapes(model: Model) -> list[tuple[int, ...]] | None:
    """Return the dims of each input without the first; None unless the first is dynamic and the others are not."""
    rows: list[tuple[int, ...]] = []
    for parameter in model.parameters:
        dims = declared(model, parameter)[1].dims
        if not dims or dims[0].is_static or not all(dim.is_static for dim in dims[1:]):
            return None
        rows.append(tuple(dim.lo for dim in dims[1:]))
    return rows or None


def _batched(parsed: Parsed, rows: Sequence[Sequence[int]], batch: int) -> Parsed:
    """Return the model with ``batch`` as the first dim of each input."""
    shapes: dict[str | int, Sequence[int]] = {number: (batch, *row) for number, row in enumerate(rows)}
    return parsed.reshape(shapes)


_TOLERANCE: Final = 1e-3
"""How far a row in a batch may be from the row alone, relative to the largest value: more is no rounding."""


def rows_are_independent(job: Job) -> bool:
    """Return whether inputs can be run in batches: whether a row gives the same in a batch as alone.

    The first dim of each input must be dynamic and the others static. Two random rows are then run together and
    alone. Raises ReadError, ModelError or UnsupportedError if the model cannot be compiled at all.
    """
    parsed = job.parsed()
    rows = row_shapes(parsed.model)
    single = job.compile(parsed)
    if rows is None or not parsed.model.results:
        return False
    try:
        feeds = draw(parsed.model, shapes={number: (2, *row) for number, row in enumerate(rows)})
        both = job.compile(_batched(parsed, rows, 2))
        together = both(feeds).arrays
        alone = [single({at: array[n : n + 1] for at, array in feeds.items()}).arrays for n in (0, 1)]
    except (ExecutionError, ModelError, ReadError):  # a dim of 2 is refused, or random values are
        return False
    return all(_equal(output, [one[at] for one in alone]) for at, output in enumerate(together))


def _equal(together: np.ndarray, alone: Sequence[np.ndarray]) -> bool:
    """Return whether an output for two rows consists of the outputs for each."""
    if any(one.ndim == 0 or one.shape[0] != 1 for one in alone) or together.shape[:1] != (2,):
        return False
    both = np.concatenate(alone)
    if both.shape != together.shape or both.dtype != together.dtype:
        return False
    if both.dtype == object or both.dtype.kind in "biu":
        return bool((both == together).all())
    one, other = both.astype(np.float64), together.astype(np.float64)
    largest = np.abs(one[np.isfinite(one)]).max(initial=0)
    return np.allclose(one, other, _TOLERANCE, _TOLERANCE * largest, equal_nan=True)


def result_types(running: Session, row: Sequence[int]) -> list[tuple[tuple[int, ...] | None, np.dtype]]:
    """Return the shape and type of each output for an input of one shape. A shape is None if only a run can tell it.

    Raises ModelError if the model does not take the shape.
    """
    parsed = running.job.parsed().reshape({0: list(row)})
    plan, model = running.job.compile(parsed).plan, running.model
    values = [plan.values[feed] for result in model.results if (feed := model.feeds[result.id][0])]
    return [(value.shape.static, value.type.dtype) for value in values]


_loaded: dict[str, Session] = {}
"""The session of the last job of this process."""
_loading = threading.Lock()


def session(job: Job) -> Session:
    """Return the session of a job. A process loads a model once, and forgets the one before."""
    key = repr(replace(job, model=job.model if isinstance(job.model, str) else job.model.path))
    with _loading:
        if key not in _loaded:
            _loaded.clear()
            _loaded[key] = Session(job)
        return _loaded[key]
