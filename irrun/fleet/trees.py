"""Check or run many models, each in whatever process is free, and skip those that are known."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from irrun.api import compile as compile_model
from irrun.api import load_all
from irrun.base.identity import weights_of
from irrun.base.source import STDIN, Source
from irrun.checking.checker import examine
from irrun.checking.frozen import with_frozen_dims
from irrun.codes import Kind
from irrun.diagnostics import Diagnostic, IrrunError, ReadError, diagnostic
from irrun.fleet.cache import Cache, from_record, to_record
from irrun.fleet.workers import Lost, Workers, in_order
from irrun.ir.parse import Parsed
from irrun.model import Shapes
from irrun.opdef import Precision
from irrun.running.generate import draw
from irrun.targets import check_targets, parse_target

__all__ = ["Check", "Outcome", "RandomRun", "outcomes", "summary"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What was found in one model file.

    ``examples`` is their number if the file is a page. ``seconds`` is what it took, also if that was in an earlier
    call (``cached``). ``memory`` is the most bytes that the process held beyond those before; None if unknown.
    """

    diagnostics: tuple[Diagnostic, ...]
    examples: int = 0
    seconds: float = 0.0
    memory: int | None = None
    cached: bool = False

    @property
    def status(self) -> str:
        """``ok``, ``warnings``, ``failed``, ``unreadable``, or ``unsupported``: irrun lacks an operation."""
        kinds = {d.kind for d in self.diagnostics if d.severity == "error"}
        if not kinds:
            return "warnings" if self.diagnostics else "ok"
        if Kind.UNREADABLE in kinds:
            return "unreadable"
        return "unsupported" if kinds == {Kind.UNSUPPORTED} else "failed"


@dataclass(frozen=True)
class Check:
    """Check a file, or whether the files of a language model's folder belong together: a task for ``outcomes``."""

    weights: str | None = None
    shapes: Shapes | None = None
    targets: tuple[str, ...] = ()

    def __call__(self, file: str) -> Outcome:
        diagnostics: list[Diagnostic] = []
        examples = 0
        measure = _Measure()
        try:
            if Path(file).is_dir():
                return Outcome(() if self.shapes else tuple(_folder(file)), 0, *measure.taken())
            for item in _load(file, self.weights):
                examples += _is_example(item)
                if isinstance(item, ReadError):
                    diagnostics += item.diagnostics
                else:
                    parsed = item.reshape(self.shapes) if self.shapes else item
                    report, trace = examine(parsed)
                    targets = [parse_target(text) for text in self.targets]
                    report = check_targets(parsed, report, trace, targets) if targets else report
                    diagnostics += with_frozen_dims(report, item.model, self.shapes) if self.shapes else report
        except IrrunError as error:
            diagnostics += error.diagnostics
        return Outcome(tuple(diagnostics), examples, *measure.taken())


@dataclass(frozen=True)
class RandomRun:
    """Run a file with random inputs: a task for ``outcomes``. The options are those of ``irrun.compile``."""

    seed: int = 0
    strict: bool = False
    exact: bool | None = None
    max_memory: int | None = None
    timeout: float | None = None
    precision: Precision = "f32"

    weights = None

    def __call__(self, file: str) -> Outcome:
        diagnostics: list[Diagnostic] = []
        examples = 0
        measure = _Measure()
        try:
            for item in _load(file, None):
                examples += _is_example(item)
                try:
                    diagnostics += self._run(item)
                except IrrunError as error:
                    diagnostics += error.diagnostics
                except MemoryError as error:
                    message = f"the memory of the machine ran out: {error}"
                    diagnostics.append(diagnostic("IR604", message, file=file, help="use fewer --jobs"))
        except IrrunError as error:
            diagnostics += error.diagnostics
        return Outcome(tuple(diagnostics), examples, *measure.taken())

    def _run(self, item: Parsed | ReadError) -> list[Diagnostic]:
        """Run a model once, and return the problems of its file that do not keep it from running."""
        if isinstance(item, ReadError):
            raise item
        model = item.runnable()
        executable = compile_model(
            model, strict=self.strict, exact=self.exact, max_memory=self.max_memory, timeout=self.timeout,
            precision=self.precision,
        )  # fmt: skip
        executable(draw(model, self.seed, max_memory=self.max_memory))
        return item.problems


def _folder(path: str) -> list[Diagnostic]:
    from irrun.genai import check as check_folder  # imported late: most checks need none of it

    return list(check_folder(path))


def _load(file: str, weights: str | None) -> list[Parsed | ReadError]:
    data = sys.stdin.buffer.read() if file == "-" else None
    return load_all(STDIN if file == "-" else file, weights, data)


def _is_example(item: Parsed | ReadError) -> bool:
    return isinstance(item, ReadError) or item.model.is_fragment


class _Measure:
    """The time and the peak memory from its creation on."""

    def __init__(self) -> None:
        with suppress(OSError):
            Path("/proc/self/clear_refs").write_text("5")  # forget the peak so far
        self.memory = _peak()
        self.since = time.perf_counter()

    def taken(self) -> tuple[float, int | None]:
        """Return the seconds since then, and the bytes by which the peak has grown if the system tells them."""
        peak = _peak()
        return time.perf_counter() - self.since, None if peak is None or self.memory is None else peak - self.memory


def _peak() -> int | None:
    """Return the most bytes of memory that this process has held, or None where the system does not tell."""
    try:
        with open("/proc/self/status", encoding="ascii", errors="replace") as file:
            return next(int(line.split()[1]) << 10 for line in file if line.startswith("VmHWM:"))
    except (OSError, ValueError, StopIteration):
        return None


# ---------------------------------------------------------------------------------------------
# many

Task = Check | RandomRun


def outcomes(
    task: Task, files: Sequence[str], cache: Cache | None, workers: Callable[[int], Workers | None]
) -> Iterator[Outcome]:
    """Yield the outcome of a task for each file, in the order of the files.

    What ``cache`` holds is not done again. ``workers`` gets the number of files to do, and returns the processes that
    do them; None does them here.
    """
    known = [None if cache is None else _recall(cache, task, file) for file in files]
    left = [file for file, outcome in zip(files, known) if outcome is None]
    processes = workers(len(left)) if left else None
    one = _Cached(task, cache)
    done = map(one, left) if processes is None else in_order(processes, one, left, f"irrun-{type(task).__name__}")
    for file, outcome in zip(files, known):
        if outcome is None:
            found = next(done)
            yield _lost(file) if isinstance(found, Lost) else found
        else:
            yield outcome


def _lost(file: str) -> Outcome:
    message = f"{file}: the process that read it was ended twice, perhaps because the memory ran out"
    return Outcome((diagnostic("IR604", message, file=file, help="use fewer --jobs"),))


def _key(cache: Cache, task: Task, file: str) -> str:
    return cache.key(file, weights_of(file, task.weights), task)


def _recall(cache: Cache, task: Task, file: str) -> Outcome | None:
    """Return the outcome that a cache holds. The diagnostics get the source, whose lines they show."""
    entry = cache.get(_key(cache, task, file))
    try:
        if entry is None:
            return None
        source = Source(file, Path(file).read_bytes()) if entry["diagnostics"] else None
        diagnostics = tuple(from_record(record, source) for record in entry["diagnostics"])
        return Outcome(diagnostics, entry["examples"], entry["seconds"], entry["memory"], cached=True)
    except (OSError, KeyError, TypeError, ValueError):  # the entry of another program
        return None


@dataclass(frozen=True, slots=True)
class _Cached:
    """A task that stores its outcome, if the model did not change meanwhile."""

    task: Task
    cache: Cache | None

    def __call__(self, file: str) -> Outcome:
        if self.cache is None:
            return self.task(file)
        before = _key(self.cache, self.task, file)
        outcome = self.task(file)
        storable = Path(file).is_file() and not any(map(_is_of_the_moment, outcome.diagnostics))
        if storable and _key(self.cache, self.task, file) == before:
            records = [to_record(d) for d in outcome.diagnostics]
            entry = {"diagnostics": records, "examples": outcome.examples, "seconds": outcome.seconds}
            self.cache.put(before, {**entry, "memory": outcome.memory})
        return outcome


def _is_of_the_moment(diagnostic: Diagnostic) -> bool:
    """Return whether the next run may not give a finding again: a file is not there yet, or memory or time ran out."""
    return diagnostic.code == "IR000" or diagnostic.kind is Kind.LIMIT


def summary(found: Mapping[str, Outcome]) -> list[dict[str, Any]]:
    """Return a row for each file as a dict for JSON: status, seconds, peak memory in bytes, and findings."""
    rows = []
    for file, outcome in found.items():
        severities = [d.severity for d in outcome.diagnostics]
        row = {"file": file, "status": outcome.status, "seconds": outcome.seconds, "peak_memory": outcome.memory}
        row |= {"errors": severities.count("error"), "warnings": severities.count("warning")}
        rows.append({**row, "cached": outcome.cached})
    return rows
