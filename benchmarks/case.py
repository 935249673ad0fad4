"""A row of the benchmark: what is run, and what came of it."""

from __future__ import annotations

import dataclasses
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measure import (
    ENGINES,
    Contender,
    Irrun,
    Job,
    Task,
    Work,
    alone,
    alternate,
    apart,
    cpu_seconds,
    once,
    relative_error,
)  # fmt: skip


@dataclass(frozen=True)
class Setup:
    """What all rows of a run share."""

    cache: Path
    """The folder of the converted networks."""
    threads: int = 1
    seconds: float = 0.5
    """The least for each contender of a row."""
    exact: bool = False
    cpu: bool = False
    """Time the processor, not the clock on the wall."""

    @property
    def clock(self) -> Callable[[], float]:
        return cpu_seconds if self.cpu else time.perf_counter


@dataclass(frozen=True)
class Case:
    """A row to be: an IR that both engines run, contenders beside them, or both."""

    name: str
    ir: Callable[[Path], Path] | None = None
    """Gives the IR; files that it makes on the way belong into the folder that it is given."""
    beside: Callable[[Path], Mapping[str, Contender]] | None = None
    """Further contenders; they may use the folder, too."""
    lead: int = 0
    calls: int = 1
    memory: bool = False
    """Whether the peak of the memory is of interest."""
    lanes: bool = False
    """Whether irrun also runs without its compiled kernels and with ``precision="auto"``, and OpenVINO with its
    defaults."""
    attentions: int = 0
    """How many attentions OpenVINO has to fuse: see ``Job``."""
    moves: bool = False
    """Whether this moves data, so that a memcpy of as many bytes as it gives is the measure of it."""
    at: tuple[str, float] | None = None
    """What grows in the rows that have this in common, and how large it is here."""

    @property
    def engines(self) -> list[str]:
        return [*ENGINES] if self.lanes else ["irrun", "OpenVINO"]


@dataclass(frozen=True)
class Times:
    """Seconds."""

    median: float
    least: float
    quartiles: tuple[float, float]
    turns: int

    @staticmethod
    def of(seconds: list[float]) -> Times:
        lower, median, upper = statistics.quantiles(seconds, n=4, method="inclusive")
        return Times(median, min(seconds), (lower, upper), len(seconds))

    @property
    def spread(self) -> float:
        """Between the quartiles, relative to the median."""
        return (self.quartiles[1] - self.quartiles[0]) / self.median


@dataclass(frozen=True)
class Row:
    """What came of a case. ``ratio`` is OpenVINO's time over that of irrun: higher is better."""

    group: str
    name: str
    times: Mapping[str, Times] = field(default_factory=dict)
    """By contender."""
    errors: Mapping[str, float] = field(default_factory=dict)
    """By engine, the largest difference to the outputs of irrun with ``exact``, relative to their largest value."""
    memory: Mapping[str, int] = field(default_factory=dict)
    """Bytes at the peak, by engine."""
    at: tuple[str, float] | None = None
    failed: str = ""
    """Which engines are missing, and why; or why all are."""

    @property
    def ratio(self) -> float | None:
        return self._over("OpenVINO", lambda t: t.median)

    @property
    def shipped_ratio(self) -> float | None:
        """The ratio of OpenVINO with its defaults and irrun with ``precision="auto"``."""
        return self._over("OpenVINO as shipped", lambda t: t.median, "irrun auto")

    @property
    def numpy_ratio(self) -> float | None:
        """The ratio of irrun without its compiled kernels."""
        return self._over("OpenVINO", lambda t: t.median, "numpy alone")

    @property
    def least_ratio(self) -> float | None:
        """The ratio of the fastest turns, which other work on the machine disturbs less."""
        return self._over("OpenVINO", lambda t: t.least)

    @property
    def of_memcpy(self) -> float | None:
        """The bandwidth as a part of that of memcpy."""
        return self._over("memcpy", lambda t: t.median)

    def _over(self, other: str, which: Callable[[Times], float], own: str = "irrun") -> float | None:
        if other not in self.times or own not in self.times:
            return None
        return which(self.times[other]) / which(self.times[own])

    def record(self) -> dict[str, Any]:
        """The row as it stands in JSON."""
        more = {
            "ratio": self.ratio,
            "least_ratio": self.least_ratio,
            "of_memcpy": self.of_memcpy,
            "shipped_ratio": self.shipped_ratio,
            "numpy_ratio": self.numpy_ratio,
        }
        return dataclasses.asdict(self) | more


def measure(group: str, case: Case, setup: Setup) -> Row:
    """Run a case. Whatever it raises becomes part of the row, so that the others can follow."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            return _measure(group, case, setup, Path(folder))
        except Exception as error:
            return Row(group, case.name, failed=f"{type(error).__name__}: {error}")


def _measure(group: str, case: Case, setup: Setup, folder: Path) -> Row:
    if case.ir is None:
        assert case.beside is not None
        return Row(group, case.name, _summary(alternate(case.beside(folder), setup.seconds, setup.clock)), at=case.at)
    job = Job(str(case.ir(folder)), case.lead, case.calls, case.attentions)
    alternates = setup.threads == 1 and case.calls == 1
    engines, memory, failures = case.engines, dict[str, int](), dict[str, str]()
    if case.memory:  # first: an engine that ends its process must not end this one
        for engine in engines:
            try:
                peak = alone(Task(job, engine, setup.threads, setup.exact)).memory
            except RuntimeError as error:
                failures[engine] = str(error)
            else:
                memory |= {} if peak is None else {engine: peak}
    working = [engine for engine in engines if engine not in failures]
    times, errors = (_in_turn if alternates else _apart)(case, job, folder, setup, working)
    failed = "; ".join(f"{engine}: {why}" for engine, why in failures.items())
    return Row(group, case.name, _summary(times), errors, memory, case.at, failed)


def _in_turn(
    case: Case, job: Job, folder: Path, setup: Setup, engines: Sequence[str]
) -> tuple[dict[str, list[float]], dict[str, float]]:
    feeds, defined = job.feeds(), _defined(job)
    works = {name: Work(ENGINES[name](job, setup.threads, setup.exact), feeds, job.lead) for name in engines}
    errors = {name: relative_error(work.outputs(), defined) for name, work in works.items()}
    contenders = {**works, **_beside(case, folder, sum(o.nbytes for o in defined))}
    del defined
    return alternate(contenders, setup.seconds, setup.clock), errors


def _apart(
    case: Case, job: Job, folder: Path, setup: Setup, engines: Sequence[str]
) -> tuple[dict[str, list[float]], dict[str, float]]:
    files = {name: folder / f"{name}.npz" for name in engines}
    tasks = [Task(job, name, setup.threads, setup.exact, str(file), setup.cpu) for name, file in files.items()]
    done = dict(zip(files, apart(tasks, setup.seconds)))
    defined = _defined(job)
    errors: dict[str, float] = {}
    for name, file in files.items():
        with np.load(file) as entries:
            errors[name] = relative_error([entries[entry] for entry in entries.files], defined)
        file.unlink()
    beside = _beside(case, folder, sum(o.nbytes for o in defined))
    times = alternate(beside, setup.seconds) if beside else {}
    return {**{name: found.times for name, found in done.items()}, **times}, errors


def _defined(job: Job) -> list[np.ndarray]:
    """Return the outputs of irrun with ``exact``."""
    return Work(Irrun(job, 1, exact=True), job.feeds(), job.lead).outputs()


def _beside(case: Case, folder: Path, size: int) -> dict[str, Contender]:
    more = dict(case.beside(folder)) if case.beside else {}
    if case.moves:
        source, target = np.ones(size, np.uint8), np.zeros(size, np.uint8)
        more["memcpy"] = once(lambda: np.copyto(target, source))
    return more


def _summary(times: Mapping[str, list[float]]) -> dict[str, Times]:
    return {name: Times.of(seconds) for name, seconds in times.items()}
