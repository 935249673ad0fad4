"""Run a model for ``irrun run``."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TextColumn, TimeElapsedColumn
from rich.text import Text

from irrun import api
from irrun.arrays.pictures import Pictures
from irrun.base.compiling import COMPILING
from irrun.checking import listing
from irrun.checking.render import concise
from irrun.cli import _terminal
from irrun.cli._inputs import Input, gather, print_chosen_shapes
from irrun.cli._last_resort import LastResort
from irrun.cli._outputs import Output, describe, describe_taps
from irrun.diagnostics import ExecutionError, ReadError
from irrun.ir.parse import Parsed
from irrun.model import Model, Shapes
from irrun.opdef import Precision
from irrun.planning.steps import Step
from irrun.running.dump import Dump
from irrun.running.executor import Executable, Outputs
from irrun.running.hooks import Hook
from irrun.running.live import default_max_memory
from irrun.running.profile import Profile

if TYPE_CHECKING:
    from irrun.debug.nonfinite import NonFinite, Report

__all__ = ["PATIENCE", "Run", "Settings", "execute"]

PATIENCE: Final = 1.0
"""Seconds that a run takes before a progress bar appears."""


@dataclass(frozen=True)
class Settings:
    """How to run a model: options of ``irrun run``. ``inputs`` are texts NAME=SPEC.

    ``profiled`` shows the times of the steps, ``layered`` makes each layer a step, and ``trace`` is the file that gets
    the timeline of the steps.
    """

    inputs: Sequence[str]
    pictures: Pictures
    shapes: Shapes
    taps: Sequence[str]
    dump: str | None
    runs: int
    seed: int
    strict: bool
    exact: bool | None
    precision: Precision
    max_memory: int | None
    max_weights_memory: int | None
    timeout: float | None
    copy_weights: bool
    profiled: bool
    layered: bool
    trace: str | None
    nonfinite: bool


@dataclass(frozen=True)
class Run:
    """A finished run: the inputs, the outputs, the tapped values, and the profile and the NaN report if asked for.

    ``seconds`` are the times of the measured runs, not of the one before them, which prepares memory, nor of one after
    them that is observed (a dump, taps, or a search for NaN). There are none if there is only one run.
    """

    inputs: Sequence[Input]
    outputs: Sequence[Output]
    taps: Sequence[Output]
    profile: Profile | None
    nonfinite: Report | None
    seconds: Sequence[float]
    costs: Mapping[int, float] = field(default_factory=dict[int, float])
    """With a profile: the FLOPs and bytes of each layer at the shapes of this run (see ``listing.costs``)."""


def execute(item: Parsed | ReadError, settings: Settings) -> Run:
    """Run a model, and print the problems of its file that do not keep it from running.

    Raises IrrunError if the model cannot be read or run.
    """
    if isinstance(item, ReadError):
        raise item
    err = _terminal.console(stderr=True)
    model = item.runnable()
    if settings.shapes:
        model = model.reshape(settings.shapes)
    for problem in item.problems:
        err.print(f"{problem.severity}: {concise(problem)}")
    memory = settings.max_memory or default_max_memory()
    executable = api.compile(
        model,
        strict=settings.strict,
        max_memory=memory,
        exact=settings.exact,
        precision=settings.precision,
        timeout=settings.timeout,
        copy_weights=settings.copy_weights,
        max_weights_memory=settings.max_weights_memory,
        layered=settings.layered,
    )
    inputs = gather(model, settings.inputs, settings.seed, memory, settings.pictures)
    profile = Profile() if settings.profiled or settings.trace is not None else None
    nonfinite = None
    if settings.nonfinite:
        from irrun.debug.nonfinite import NonFinite  # which imports all comparisons

        nonfinite = NonFinite(executable.model)
    try:
        outputs, seconds = _outputs(executable, [i.array for i in inputs], settings, profile, nonfinite, err)
    except ExecutionError:
        print_chosen_shapes(inputs)
        raise
    report = nonfinite.report() if nonfinite else None
    costs = _costs(model, inputs) if settings.profiled else {}
    described, taps = describe(executable, outputs), describe_taps(executable, outputs)
    return Run(inputs, described, taps, profile, report, seconds, costs)


def _costs(model: Model, inputs: Sequence[Input]) -> Mapping[int, float]:
    """Return the costs of the layers at the shapes of a run; none for a page, whose examples are no whole models."""
    if model.is_fragment:
        return {}
    shapes = {number: item.array.shape for number, item in enumerate(inputs)}
    return listing.costs(model.reshape(shapes))


def _outputs(
    executable: Executable,
    arrays: Sequence[np.ndarray],
    settings: Settings,
    profile: Profile | None,
    nonfinite: NonFinite | None,
    err: Console,
) -> tuple[Outputs, Sequence[float]]:
    """Return the outputs of the last run, and the times of the measured runs, of which there are none or several.

    Before several, the model runs once without being measured. A run that is observed follows them.
    """
    measuring: list[Hook] = [profile] if profile is not None else []
    seconds: list[float] = []
    is_observed = bool(settings.dump or settings.taps or nonfinite)
    for number in range(settings.runs + is_observed if settings.runs > 1 else 0):
        if number:
            with _watch(executable, settings) as watch:
                since = time.perf_counter()
                executable(arrays, hooks=[*watch, *measuring])
                seconds.append(time.perf_counter() - since)
        else:
            with _bar(executable, err) as bar, _watch(executable, settings) as watch:
                executable(arrays, hooks=[*watch, *bar])
        executable.restart()
    hooks: list[Hook] = [*measuring, *([nonfinite] if nonfinite else [])]
    values = None
    with ExitStack() as stack:
        if settings.dump is not None:
            values = stack.enter_context(Dump(settings.dump))
            for parameter, array in zip(executable.model.parameters, arrays):
                values.add(parameter, parameter.outputs[0], array)
            hooks.append(values)
        if settings.runs == 1:  # the bar would slow down a run that is measured
            hooks += stack.enter_context(_bar(executable, err))
        watch = stack.enter_context(_watch(executable, settings, values))
        since = time.perf_counter()
        outputs = executable(arrays, hooks=[*watch, *hooks], taps=settings.taps)
        if settings.runs > 1 and not is_observed:
            seconds.append(time.perf_counter() - since)
        return outputs, seconds


@contextmanager
def _watch(executable: Executable, settings: Settings, values: Dump | None = None) -> Iterator[Sequence[Hook]]:
    """Provide the hook of a run that ends the process if the time of the run is over; none without a limit.

    ``values`` then writes its index.
    """
    if settings.timeout is None:
        yield []
        return
    with LastResort(executable.model, settings.timeout, values.write_index if values else lambda: None) as watch:
        yield [watch]


@contextmanager
def _bar(executable: Executable, err: Console) -> Iterator[Sequence[Hook]]:
    """Provide the hooks of a run with a progress bar; none if standard error is no terminal."""
    if not err.is_interactive:
        yield ()
        return
    with _Bar(len(executable.plan.steps), err) as bar:
        yield (bar,)


class _Doing(ProgressColumn):
    """Says whether kernels are being compiled at this moment: a step then takes seconds, but only in the first run."""

    max_refresh = None

    def render(self, task: Task) -> Text:
        return Text("compiling kernels" if COMPILING.is_on else task.description)


class _Bar:
    """A hook that shows a progress bar in a run that takes longer than ``PATIENCE``.

    It counts steps and the time that has passed. The time that is left is not known: the first run compiles kernels.
    """

    joined = True

    def __init__(self, total: int, err: Console) -> None:
        columns = (_Doing(), BarColumn(), MofNCompleteColumn(), TextColumn("steps"), TimeElapsedColumn())
        self.progress = Progress(*columns, console=err, transient=True)
        self.task = self.progress.add_task("running", total=total)
        self.since = time.monotonic()

    def __enter__(self) -> _Bar:
        return self

    def __exit__(self, *_: object) -> None:
        self.progress.stop()

    def before(self, step: Step, inputs: Sequence[np.ndarray | None]) -> None:
        if time.monotonic() - self.since > PATIENCE:
            self.progress.start()

    def after(self, step: Step, inputs: Sequence[np.ndarray | None], outputs: Sequence[np.ndarray]) -> None:
        self.progress.advance(self.task)
