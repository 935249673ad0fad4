"""Measure where the time of a run goes: a row for each step, JSON, and a trace for chrome://tracing and Perfetto."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from irrun.kernels.matmul import blas

if TYPE_CHECKING:
    from irrun.planning.steps import Step

__all__ = ["Profile", "Row"]


@dataclass
class Row:
    """The measurements of one step in all observed runs. ``layers`` are the names of the layers that it computes."""

    layers: tuple[str, ...]
    type: str
    """The types of the layers, separated by ``+``."""
    algorithm: str
    """The name of the chosen algorithm; empty if the operation has only one."""
    flops: int
    """Multiplications and additions per call; 0 if the time does not depend on them."""
    bytes: int = 0
    """Bytes of the inputs and outputs of the last call."""
    times: list[float] = field(default_factory=list)
    """Seconds of each call, without the steps of bodies."""

    @property
    def seconds(self) -> float:
        """The median time of a call, in seconds."""
        return statistics.median(self.times)

    @property
    def gflops(self) -> float | None:
        """Billions of multiplications and additions per second; None if ``flops`` is 0."""
        return self.flops / self.seconds / 1e9 if self.flops and self.seconds else None

    @property
    def bandwidth(self) -> float | None:
        """Billions of bytes read and written per second."""
        return self.bytes / self.seconds / 1e9 if self.seconds else None


class Profile:
    """A hook that measures the time of each step. Pass it to any number of runs: ``executable(…, hooks=[profile])``."""

    joined = True

    def __init__(self) -> None:
        self._rows: dict[int, Row] = {}
        self._steps: list[Step] = []  # kept alive, so that no other step gets the same id
        self._events: list[tuple[Row, float, float]] = []
        self._open: list[list[float]] = []

    def before(self, step: Step, inputs: Sequence[np.ndarray | None]) -> None:
        self._open.append([time.perf_counter(), 0.0])

    def after(self, step: Step, inputs: Sequence[np.ndarray | None], outputs: Sequence[np.ndarray]) -> None:
        now = time.perf_counter()
        start, inside = self._open.pop()
        if self._open:
            self._open[-1][1] += now - start
        row = self._rows.get(id(step))
        if row is None:
            names, types = tuple(l.name for l in step.layers), "+".join(l.type for l in step.layers)
            row = self._rows[id(step)] = Row(names, types, step.kernel.algorithm, step.kernel.flops)
            self._steps.append(step)
        row.bytes = sum(a.nbytes for a in (*inputs, *outputs) if isinstance(a, np.ndarray))
        row.times.append(now - start - inside)
        self._events.append((row, start, now))

    @property
    def rows(self) -> list[Row]:
        """A row for each step, in the order in which the steps first finished."""
        return list(self._rows.values())

    @property
    def seconds(self) -> float:
        """Seconds of one run: the sum over the steps of the median time times the calls in a run."""
        return sum(row.seconds * self._calls(row) for row in self.rows)

    def record(self) -> dict[str, Any]:
        """Return the profile for JSON. Times are in seconds; ``matrix_products`` names the library: numpy or mkl."""
        total = self.seconds or 1.0
        return {
            "seconds": self.seconds,
            "matrix_products": blas(),
            "steps": [
                {
                    "layers": list(row.layers), "type": row.type, "algorithm": row.algorithm or None,
                    "calls": self._calls(row), "seconds": row.seconds,
                    "share": row.seconds * self._calls(row) / total, "gflops": row.gflops,
                    "gigabytes_per_second": row.bandwidth, "bytes": row.bytes,
                }
                for row in self.rows
            ],
        }  # fmt: skip

    def trace(self) -> dict[str, Any]:
        """Return the profile in Chrome's trace event format: one complete event per call, times in microseconds."""
        first = min((start for _, start, _ in self._events), default=0.0)
        return {
            "displayTimeUnit": "ms",
            "traceEvents": [
                {
                    "name": row.layers[-1], "cat": row.type, "ph": "X", "pid": 0, "tid": 0,
                    "ts": (start - first) * 1e6, "dur": (end - start) * 1e6,
                    "args": {"layers": list(row.layers), "algorithm": row.algorithm, "bytes": row.bytes},
                }
                for row, start, end in self._events
            ],
        }  # fmt: skip

    def _calls(self, row: Row) -> float:
        """Return how often a step is called in one run. Steps of bodies may be called more than once."""
        runs = max(1, min((len(r.times) for r in self.rows), default=1))
        return len(row.times) / runs
