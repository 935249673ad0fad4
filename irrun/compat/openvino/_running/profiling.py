"""The time of each layer in a run."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum
from typing import Any

from irrun.model import Layer

__all__ = ["ProfilingInfo", "Stopwatch"]


class Status(Enum):
    """Whether a layer was run. Layers that the planner folded or fused away were not."""

    NOT_RUN = 0
    OPTIMIZED_OUT = 1
    EXECUTED = 2


@dataclass(frozen=True)
class ProfilingInfo:
    """The time of a layer in the last run."""

    node_name: str
    node_type: str
    exec_type: str
    real_time: timedelta
    cpu_time: timedelta
    status: Status

    Status = Status

    def __repr__(self) -> str:
        return "<ProfilingInfo>"


class Stopwatch:
    """A hook that measures each layer."""

    def __init__(self) -> None:
        self.times: dict[int, tuple[float, float]] = {}
        self._start = (0.0, 0.0)

    def before(self, step: Any, inputs: Any) -> None:
        self._start = (time.perf_counter(), time.thread_time())

    def after(self, step: Any, inputs: Any, outputs: Any) -> None:
        now = (time.perf_counter(), time.thread_time())
        self.times[id(step.layer)] = (now[0] - self._start[0], now[1] - self._start[1])

    def infos(self, layers: list[tuple[Layer, str]]) -> list[ProfilingInfo]:
        """Return the times of ``layers``, each with the name of its type."""
        infos: list[ProfilingInfo] = []
        for layer, type in layers:
            real, cpu = self.times.get(id(layer), (0.0, 0.0))
            status = Status.EXECUTED if id(layer) in self.times else Status.NOT_RUN
            infos.append(
                ProfilingInfo(layer.name, type, "irrun", timedelta(seconds=real), timedelta(seconds=cpu), status)
            )
        return infos
