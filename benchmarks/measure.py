"""Engines and how long they take: in turn, call by call; or, with more threads, each in a process of its own.

Run as a program, this measures one engine: `python -m benchmarks.measure TASK`, a Task as JSON.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

import irrun
from irrun import fast
from irrun.opdef import Precision

ROOT = Path(__file__).parent.parent

TURNS = 7
"""The fewest that a median is taken of."""

LIMIT = 10.0
"""Seconds after which fewer turns are enough: at least two."""

Contender = Callable[[], Iterable[Callable[[], object]]]
"""Its turn: the parts that are to be timed, each called when the next is asked for."""

Feeds = list[np.ndarray]
"""One array for each input."""


def once(work: Callable[[], object]) -> Contender:
    return lambda: [work]


def cpu_seconds() -> float:
    """What this process and those that it waited for took of the processor."""
    import resource  # not on Windows

    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def alternate(
    contenders: Mapping[str, Contender], seconds: float, clock: Callable[[], float] = time.perf_counter
) -> dict[str, list[float]]:
    """What each contender's parts took, turn by turn, until there are ``seconds`` for each; warmed up before."""
    for turn in contenders.values():
        if sum(_take(turn, clock)) < LIMIT / 20:
            _take(turn, clock)
    times: dict[str, list[float]] = {name: [] for name in contenders}
    turns, start = 0, time.perf_counter()
    while turns < 2 or (spent := time.perf_counter() - start) < seconds * len(contenders) or (
        turns < TURNS and spent < LIMIT
    ):  # fmt: skip
        for name, turn in contenders.items():
            times[name] += _take(turn, clock)
        turns += 1
    return times


def _take(turn: Contender, clock: Callable[[], float]) -> list[float]:
    seconds: list[float] = []
    for part in turn():
        start = clock()
        part()
        seconds.append(clock() - start)
    return seconds


# ---------------------------------------------------------------------------------------------
# engines


class Irrun:
    PRECISION: ClassVar[Precision] = "f32"

    def __init__(self, job: Job, threads: int, exact: bool) -> None:
        self.model = irrun.compile(job.path, exact=exact or None, precision=self.PRECISION)

    def reset(self) -> None:
        """Forget the variables."""
        self.model.reset_state()

    def infer(self, feeds: Feeds) -> Sequence[np.ndarray]:
        return self.model(feeds).arrays


class Auto(Irrun):
    """irrun in the precision for which the processor is made, as OpenVINO is shipped."""

    PRECISION: ClassVar[Precision] = "auto"


class NumpyAlone(Irrun):
    """irrun as it is without the extra `fast`."""

    def __init__(self, job: Job, threads: int, exact: bool) -> None:
        before = os.environ.get("IRRUN_FAST")
        os.environ["IRRUN_FAST"] = "0"
        fast.available.cache_clear()  # it is asked for once for each model, so that the others are not concerned
        try:
            super().__init__(job, threads, exact)
        finally:
            os.environ.pop("IRRUN_FAST")
            os.environ |= {} if before is None else {"IRRUN_FAST": before}
            fast.available.cache_clear()


@cache
def core() -> Any:
    """One for all: a process that makes many of them may crash."""
    import openvino

    return openvino.Core()


class OpenVINO:
    """The CPU plugin in f32, at its fastest: inputs are not copied, outputs are the same tensors at each call."""

    HINTS: ClassVar[Mapping[str, str]] = {
        "INFERENCE_PRECISION_HINT": "f32",
        "KV_CACHE_PRECISION": "f32",
        "DYNAMIC_QUANTIZATION_GROUP_SIZE": "0",
    }

    def __init__(self, job: Job, threads: int, exact: bool) -> None:
        compiled = core().compile_model(job.path, "CPU", {**self.HINTS, "INFERENCE_NUM_THREADS": threads})
        kinds = [node.get_rt_info()["layerType"].astype(str) for node in compiled.get_runtime_model().get_ops()]
        fused = kinds.count("ScaledDotProductAttention")
        assert fused >= job.attentions, f"OpenVINO fuses {fused} attentions of {job.attentions}"
        self.request = compiled.create_infer_request()

    def reset(self) -> None:
        self.request.reset_state()

    def infer(self, feeds: Feeds) -> Sequence[np.ndarray]:
        return list(self.request.infer(feeds, share_inputs=True, share_outputs=True).values())


class AsShipped(OpenVINO):
    """The CPU plugin with its defaults: on a processor with bf16 instructions, it computes in bf16."""

    HINTS: ClassVar[Mapping[str, str]] = {}


ENGINES: dict[str, type[Irrun] | type[OpenVINO]] = {
    "irrun": Irrun,
    "OpenVINO": OpenVINO,
    "OpenVINO as shipped": AsShipped,
    "irrun auto": Auto,
    "numpy alone": NumpyAlone,
}


@dataclass(frozen=True)
class Job:
    """The calls that an engine makes of an IR, from the initial state on; the ``lead`` first ones are not timed."""

    path: str
    lead: int = 0
    calls: int = 1
    attentions: int = 0
    """How many attentions OpenVINO has to fuse."""

    def feeds(self) -> list[Feeds]:
        """Those in the .npz beside the IR; without it one call, with random numbers."""
        parameters = irrun.read_model(self.path).parameters
        stored = Path(self.path).with_suffix(".npz")
        if stored.exists():
            with np.load(stored) as entries:
                last = self.lead + self.calls
                return [[entries[f"{i}.{k}"] for k in range(len(parameters))] for i in range(last)]
        random = np.random.default_rng(0)
        shapes = [[int(dim) for dim in p.attributes["shape"].split(",")] for p in parameters]
        return [[random.random(shape, np.float32) - np.float32(0.5) for shape in shapes]]


@dataclass(frozen=True)
class Work:
    """An engine with what it is given."""

    engine: Irrun | OpenVINO
    feeds: list[Feeds]
    lead: int

    def __call__(self) -> Iterator[Callable[[], object]]:
        self.engine.reset()
        for feeds in self.feeds[: self.lead]:
            self.engine.infer(feeds)
        for feeds in self.feeds[self.lead :]:
            yield partial(self.engine.infer, feeds)

    def outputs(self) -> list[np.ndarray]:
        self.engine.reset()
        return [np.array(output) for feeds in self.feeds for output in self.engine.infer(feeds)]


def relative_error(ours: Sequence[np.ndarray], theirs: Sequence[np.ndarray]) -> float:
    """The largest difference of two outputs, relative to the largest value there."""
    worst = 0.0
    for a, b in zip(ours, theirs, strict=True):
        if a.shape != b.shape:
            return float("inf")
        different = a != b  # an infinity differs from itself by NaN
        if different.any():
            largest = np.abs(b[np.isfinite(b)]).max(initial=1e-30)
            worst = float(np.maximum(worst, np.abs(a[different] - b[different]).max() / largest))  # keeps NaN
    return worst


# ---------------------------------------------------------------------------------------------
# an engine in a process of its own


@dataclass(frozen=True)
class Task:
    job: Job
    engine: str
    threads: int
    exact: bool
    outputs: str = ""
    """The .npz that takes them, or nothing."""
    cpu: bool = False
    """Time the processor, not the clock on the wall."""


@dataclass(frozen=True)
class Alone:
    """What an engine did in a process of its own."""

    times: list[float]
    memory: int | None
    """Bytes at the peak, beyond those of the process before it read the model. Known on Linux only."""


ROUND = 0.1
"""Seconds of the turns of an engine before it is the turn of the next."""


def apart(tasks: Sequence[Task], seconds: float) -> list[Alone]:
    """Run each task in a process of its own, in turn for ``ROUND``, until there are ``seconds`` for each.

    What disturbs the machine for some seconds disturbs all of them. Raises RuntimeError with what a process complained
    of.
    """
    with ExitStack() as stack:
        processes = [stack.enter_context(_process(task)) for task in tasks]
        for process in processes:
            _ask(process, 0)  # it has read its model now
        times: list[list[float]] = [[] for _ in tasks]
        start = time.perf_counter()
        while (spent := time.perf_counter() - start) < seconds * len(tasks) or (
            min(map(len, times)) < TURNS and spent < LIMIT
        ):
            for process, taken in zip(processes, times):
                taken += _ask(process, ROUND)
        return [Alone(taken, _ask(process, -1)) for process, taken in zip(processes, times)]


def alone(task: Task) -> Alone:
    """Run a task in a process of its own, as often as shows its memory.

    Raises RuntimeError with what the process complained of.
    """
    with _process(task) as process:
        return Alone(_ask(process, 0), _ask(process, -1))


def _process(task: Task) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "benchmarks.measure", json.dumps(asdict(task))]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, stderr=pipe, text=True)


def _ask(process: subprocess.Popen[str], seconds: float) -> Any:
    """Return the answer of ``_answer``. Raises RuntimeError with what the process complained of."""
    assert process.stdin is not None
    assert process.stdout is not None
    with suppress(BrokenPipeError):
        process.stdin.write(f"{seconds}\n")
        process.stdin.flush()
    answer = process.stdout.readline()
    if answer:
        return json.loads(answer)
    _, complaints = process.communicate()
    status = process.returncode
    ended = f"ended by {signal.Signals(-status).name}" if status < 0 else f"ended with status {status}"
    raise RuntimeError((complaints.strip().splitlines() or [ended])[-1])


def _answer(task: Task, questions: Iterable[str]) -> Iterator[Any]:
    """Yield the times of turns that take at least as many seconds as a question says.

    For 0, do two turns that do not count, or one that takes long. For a negative number, yield the memory in bytes.
    """
    feeds, clock = task.job.feeds(), cpu_seconds if task.cpu else time.perf_counter
    before = _memory("VmRSS")
    work = Work(ENGINES[task.engine](task.job, task.threads, task.exact), feeds, task.job.lead)
    for seconds in map(float, questions):
        if seconds < 0:
            peak = _memory("VmHWM")
            if task.outputs:
                np.savez(task.outputs, *work.outputs())
            yield None if before is None or peak is None else peak - before
        elif seconds == 0:
            if sum(_take(work, clock)) < LIMIT / 20:
                _take(work, clock)
            yield []
        else:
            times = []
            while sum(times) < seconds:
                times += _take(work, clock)
            yield times


def _memory(entry: str) -> int | None:
    # not ru_maxrss, which a process inherits from the one that started it
    status = Path("/proc/self/status")
    if not status.exists():
        return None
    (line,) = (line for line in status.read_text().splitlines() if line.startswith(entry))
    return int(line.split()[1]) * 1024


if __name__ == "__main__":
    given = json.loads(sys.argv[1])
    for answer in _answer(Task(**given | {"job": Job(**given["job"])}), sys.stdin):
        print(json.dumps(answer), flush=True)
