"""Measure where the time of a run goes: a row for each step, JSON, and a trace for chrome://tracing and Perfetto."""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any, Final

import numpy as np

from irrun.base.compiling import COMPILING
from irrun.base.text import printable, table
from irrun.kernels.matmul import blas
from irrun.model import Layer
from irrun.planning.steps import Part, Step

__all__ = ["Profile", "Row", "Share"]

_MAX_SHOWN: Final = 20
"""The most steps that a notebook shows."""


@dataclass
class Row:
    """The measurements of one step in all observed runs. ``members`` are the layers that it computes."""

    members: tuple[Layer, ...]
    type: str
    """The types of the layers, separated by ``+``."""
    algorithm: str
    """The name of the chosen algorithm; empty if the operation has only one."""
    flops: int
    """Multiplications and additions per call; 0 if the time does not depend on them."""
    bytes: int = 0
    """Bytes of the inputs and outputs of the last call; 0 if it returned views of its inputs, which moves none."""
    times: list[float] = field(default_factory=list)
    """Seconds of each call, without the steps of bodies, and without the compilation of kernels."""

    @property
    def layers(self) -> tuple[str, ...]:
        """The names of the layers that the step computes."""
        return tuple(layer.name for layer in self.members)

    @property
    def name(self) -> str:
        """The name of the layer; of several, that of the first, and that of the last without the parts that both have.

        ``encoder.0.key/MatMul … Add`` are the layers from ``encoder.0.key/MatMul`` to ``encoder.0.key/Add``.
        """
        first, last = self.layers[0], self.layers[-1]
        if first == last:
            return first
        common = "".join(a for a, _ in takewhile(lambda pair: pair[0] == pair[1], zip(first, last)))
        return f"{first} … {last[max(common.rfind(mark) for mark in '/.') + 1 :]}"

    @property
    def title(self) -> str:
        """What the step holds: the type of its layer, or ``12 layers, Convolution … ReLU``."""
        if len(self.members) == 1:
            return self.members[0].type
        return f"{len(self.members)} layers, {self.members[0].type} … {self.members[-1].type}"

    def fractions(self, costs: Mapping[int, float]) -> list[float] | None:
        """Return the fraction of the time that each layer of several takes, in proportion to ``costs``.

        ``costs`` is keyed by ``Layer.node``. The result is None for a step of one layer, and if a cost is not known.
        """
        parts = [costs.get(layer.node, -1.0) for layer in self.members]
        total = sum(parts)
        return [part / total for part in parts] if len(parts) > 1 and min(parts) >= 0 and total else None

    @property
    def seconds(self) -> float:
        """The median time of a call, in seconds."""
        return statistics.median(self.times)

    @property
    def calls(self) -> int:
        """The number of calls in all observed runs."""
        return len(self.times)

    @property
    def gflops(self) -> float | None:
        """Billions of multiplications and additions per second; None if ``flops`` is 0."""
        return self.flops / self.seconds / 1e9 if self.flops and self.seconds else None

    @property
    def bandwidth(self) -> float | None:
        """Billions of bytes read and written per second; None if ``bytes`` is 0."""
        return self.bytes / self.seconds / 1e9 if self.bytes and self.seconds else None


@dataclass(frozen=True, slots=True)
class Share:
    """The time of one layer in a run, in seconds. In a step of several layers, ``is_estimate`` is true."""

    layer: str
    type: str
    seconds: float
    is_estimate: bool


class Profile:
    """A hook that measures the time of each step. Pass it to any number of runs: ``executable(…, hooks=[profile])``."""

    joined = True

    def __init__(self) -> None:
        self._rows: dict[tuple[int, int], Row] = {}
        self._steps: list[Step] = []  # kept alive, so that no other step gets the same id
        self._events: list[tuple[Row, float, float]] = []
        self._open: list[list[float]] = []

    def before(self, step: Step, inputs: Sequence[np.ndarray | None]) -> None:
        self._open.append([time.perf_counter(), 0.0, COMPILING.seconds])

    def after(self, step: Step, inputs: Sequence[np.ndarray | None], outputs: Sequence[np.ndarray]) -> None:
        now = time.perf_counter()
        start, inside, compiled = self._open.pop()
        if self._open:
            self._open[-1][1] += now - start
            self._open[-1][2] += COMPILING.seconds - compiled
        moved = () if _returned_views(step, inputs, outputs) else (*inputs, *outputs)
        bytes = sum(a.nbytes for a in moved if isinstance(a, np.ndarray))
        seconds = now - start - inside - (COMPILING.seconds - compiled)
        parts = () if step.parts is None else step.parts()
        total = sum(part.time for part in parts)
        if not total:
            self._add(step, 0, Part(step.layers, step.kernel, bytes, seconds), start, now)
        for number, part in enumerate(parts if total else ()):
            end = start + (now - start) * part.time / total
            self._add(step, number, part._replace(time=seconds * part.time / total), start, end)
            start = end

    def _add(self, step: Step, number: int, part: Part, start: float, end: float) -> None:
        """Add what a part of a step, or all of it, has taken."""
        row = self._rows.get((id(step), number))
        if row is None:
            types = "+".join(layer.type for layer in part.layers)
            row = Row(part.layers, types, part.kernel.algorithm, part.kernel.flops)
            self._rows[id(step), number] = row
            self._steps.append(step)
        row.bytes = part.bytes
        row.times.append(part.time)
        self._events.append((row, start, end))

    @property
    def rows(self) -> list[Row]:
        """A row for each step, or each part of a step of several kernels, in the order in which they first finished."""
        return list(self._rows.values())

    @property
    def runs(self) -> int:
        """The number of observed runs: that of the calls of the step that was called least often, and at least 1.

        A run calls each step once, except for the steps of bodies, which it may call more often.
        """
        return max(1, min((row.calls for row in self.rows), default=1))

    @property
    def seconds(self) -> float:
        """Seconds of one run: the sum over the steps of the median time times the calls in a run."""
        runs = self.runs
        return sum(row.seconds * row.calls / runs for row in self.rows)

    def __str__(self) -> str:
        """Return a line for each step, the slowest first, and the total."""
        rows = self._table()
        widths = [max(map(len, column)) for column in zip(*rows)] if rows else []
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows]
        return "\n".join(printable(line) for line in (*lines, f"{self.seconds * 1e3:.3f} ms in all"))

    def _repr_html_(self) -> str:
        rows = self._table()
        more = f", the slowest {_MAX_SHOWN} of {len(rows)} steps" if len(rows) > _MAX_SHOWN else ""
        columns = ("layer", "type", "algorithm", "time", "share")
        return table(f"{self.seconds * 1e3:.3f} ms{more}", columns, rows[:_MAX_SHOWN])

    def _table(self) -> list[tuple[str, ...]]:
        """Return the layer, the type, the algorithm, the time and the share of each step, the slowest first."""
        runs, total = self.runs, self.seconds or 1.0
        took = [(row.seconds * row.calls / runs, row) for row in self.rows]
        return [
            (row.name, row.title, row.algorithm, f"{seconds * 1e3:.3f} ms", f"{seconds / total:.1%}")
            for seconds, row in sorted(took, key=lambda pair: -pair[0])
        ]

    def shares(self, costs: Mapping[int, float]) -> list[Share]:
        """Return the time of each layer in a run, the slowest first.

        The time of a step of several layers is divided in proportion to ``costs``, which is keyed by ``Layer.node``. A
        step with a layer of unknown cost is one entry, named and titled as the step.
        """
        runs, found = self.runs, dict[tuple[str, str], Share]()

        def add(name: str, type: str, seconds: float, *, is_estimate: bool) -> None:
            known = found.get((name, type), Share(name, type, 0.0, False))
            found[name, type] = Share(name, type, known.seconds + seconds, known.is_estimate or is_estimate)

        for row in self.rows:
            seconds = row.seconds * row.calls / runs
            fractions = row.fractions(costs)
            if fractions is None:
                add(row.name, row.title, seconds, is_estimate=False)
                continue
            for layer, fraction in zip(row.members, fractions):
                add(layer.name, layer.type, seconds * fraction, is_estimate=True)
        return sorted(found.values(), key=lambda share: -share.seconds)

    def record(self, costs: Mapping[int, float] | None = None) -> dict[str, Any]:
        """Return the profile for JSON. Times are in seconds; ``matrix_products`` names the library: numpy or mkl.

        With ``costs``, it has the time of each layer (see ``shares``).
        """
        total, runs = self.seconds or 1.0, self.runs
        return {
            "seconds": self.seconds,
            "matrix_products": blas(),
            "steps": [
                {
                    "layers": list(row.layers), "type": row.type, "algorithm": row.algorithm or None,
                    "calls": row.calls / runs, "seconds": row.seconds,
                    "share": row.seconds * row.calls / runs / total, "gflops": row.gflops,
                    "gigabytes_per_second": row.bandwidth, "bytes": row.bytes,
                }
                for row in self.rows
            ],
            "types": self.types(),
            "layers": [
                {
                    "layer": share.layer, "type": share.type, "seconds": share.seconds,
                    "share": share.seconds / total, "estimate": share.is_estimate,
                }
                for share in self.shares(costs or {})
            ],
        }  # fmt: skip

    def types(self) -> list[dict[str, Any]]:
        """Return the number of steps and the seconds of each type in one run, for JSON, the most seconds first."""
        runs, total = self.runs, self.seconds or 1.0
        seconds: dict[str, list[float]] = {}
        for row in self.rows:
            seconds.setdefault(row.type, []).append(row.seconds * row.calls / runs)
        rows = [
            {"type": type, "steps": len(times), "seconds": sum(times), "share": sum(times) / total}
            for type, times in seconds.items()
        ]
        return sorted(rows, key=lambda row: -row["seconds"])

    def trace(self) -> dict[str, Any]:
        """Return the profile in Chrome's trace event format: one complete event per call, times in microseconds."""
        first = min((start for _, start, _ in self._events), default=0.0)
        return {
            "displayTimeUnit": "ms",
            "traceEvents": [
                {
                    "name": row.name if len(row.members) == 1 else row.title,
                    "cat": row.type, "ph": "X", "pid": 0, "tid": 0,
                    "ts": (start - first) * 1e6, "dur": (end - start) * 1e6,
                    "args": {"layers": list(row.layers), "algorithm": row.algorithm, "bytes": row.bytes},
                }
                for row, start, end in self._events
            ],
        }  # fmt: skip


def _returned_views(step: Step, inputs: Sequence[np.ndarray | None], outputs: Sequence[np.ndarray]) -> bool:
    """Return whether the outputs of a step are views of its inputs: only a kernel that fills no memory returns any."""
    if step.kernel.out != "new" or not outputs:
        return False
    return all(any(i is not None and np.may_share_memory(o, i) for i in inputs) for o in outputs)
