"""Run a model for many inputs, and write each result as soon as it is known.

What a result is depends on the input, its number and the size of a batch alone: batches begin at multiples of their
size, a batch of which a result is missing is computed as a whole, and a process runs each input as if it were its
first. A run that is killed and taken up again therefore writes the same bytes as one that is not.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from irrun import __version__
from irrun.arrays.pictures import AS_THEY_ARE, Pictures
from irrun.arrays.writing import output_names
from irrun.base.extras import install
from irrun.base.identity import identity, weights_of
from irrun.diagnostics import FeedError, diagnostic
from irrun.files import lock, sweep, write_file
from irrun.fleet.inputs import Files, Inputs, Stack, files_of, stack_of
from irrun.fleet.session import Job, rows_are_independent, session
from irrun.fleet.targets import Bad, Folder, Stacked, Target, target_of
from irrun.fleet.workers import Lost, Workers
from irrun.model import Model, Shapes
from irrun.opdef import Precision
from irrun.running.live import default_max_memory

__all__ = ["Batch", "Feeding", "Progress", "prepare"]

BATCH: Final = 8
"""The inputs that are run together where a model allows it. More make a small model little faster."""


@dataclass(frozen=True, slots=True)
class Progress:
    """What a task has done: the number of results that it has written, and the inputs that have none."""

    done: int
    bad: list[Bad]


@dataclass(frozen=True, slots=True)
class _Task:
    """A range of inputs for one process."""

    job: Job
    inputs: Inputs
    target: Target
    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class _Done:
    """What a process returns for a task. ``size`` is the bytes of the largest input and its outputs."""

    progress: Progress
    size: int


class Batch:
    """A run over many inputs that is ready to start. Iterate over ``run``, and close it at the end."""

    def __init__(self, job: Job, inputs: Inputs, target: Target, missing: np.ndarray, locked: Any, others: int) -> None:
        self.job, self.inputs, self.target, self.missing = job, inputs, target, missing
        self.others = others
        """The files of folders that are no inputs."""
        self._locked = locked
        self._length = 1
        """Batches in a task."""

    @property
    def left(self) -> int:
        """The number of inputs whose results were missing at the start."""
        return int(self.missing.sum())

    def close(self) -> None:
        """Let other runs write to the output."""
        self._locked.close()

    def run(self, workers: Workers) -> Generator[Progress]:
        """Compute and write what is missing, and yield how far it is. Raises OSError if results cannot be written."""
        if not self.left:
            return
        name = f"irrun-{Path(self.job.model).stem if isinstance(self.job.model, str) else self.job.model.path}"
        again: list[_Task] = []
        try:
            for task, done in workers.results(_compute, self._tasks(), name):
                if isinstance(done, Lost) and task.stop - task.start > 1:
                    alone = replace(task.job, batch=1)
                    again += [replace(task, job=alone, start=n, stop=n + 1) for n in _numbers(task)]
                    continue
                yield self._progress(task, done)
            if again:  # one of several inputs has ended its process: which one?
                for task, done in workers.results(_compute, again, name):
                    yield self._progress(task, done)
        finally:
            _sweep(self.target)  # what a process has left that was lost, or was ended because another one failed
        if misfits := self.target.finish(len(self.inputs)):
            yield Progress(-len(misfits), misfits)

    def _progress(self, task: _Task, done: _Done | Lost) -> Progress:
        if isinstance(done, Lost):
            why = diagnostic(
                "IR604",
                "the process that ran it was ended twice, perhaps because the memory ran out",
                help="run it alone with `irrun run`, or use fewer --jobs",
            )
            if isinstance(self.target, Stacked):
                self.target.write(task.inputs, task.start, [(why,)])
            return Progress(0, [(task.start, (why,))])
        if done.size:
            most = max(1, min(_MAX_TASK_INPUTS, _MAX_TASK_BYTES // done.size) // self.job.batch)
            self._length = min(most, self._length * 2)
        return done.progress

    def _tasks(self) -> Iterator[_Task]:
        """Yield tasks of a few batches each. The first ones are small, so that the processes start evenly."""
        size, count = self.job.batch, len(self.inputs)
        batches = np.unique(np.flatnonzero(self.missing) // size)
        at = 0
        while at < len(batches):
            first = int(batches[at])
            length = 1
            while length < self._length and at + length < len(batches) and batches[at + length] == first + length:
                length += 1
            at += length
            start, stop = first * size, min((first + length) * size, count)
            yield _Task(self.job, self.inputs.part(start, stop), self.target, start, stop)


_MAX_TASK_INPUTS: Final = 64
"""The most inputs of a task, unless a batch has more: so many cost far more than to hand them out."""
_MAX_TASK_BYTES: Final = 32 << 20
"""The most bytes of the inputs and outputs of a task, unless a batch has more."""


def _numbers(task: _Task) -> range:
    return range(task.start, task.stop)


def _compute(task: _Task) -> _Done:
    """Run the inputs of a task batch by batch, in a worker, and write the results. Raises OSError."""
    running = session(task.job)
    size = 0
    done = Progress(0, [])
    every: list[Any] = []
    limit = task.job.max_memory or default_max_memory()
    for start in range(task.start, task.stop, task.job.batch):
        numbers = range(start, min(start + task.job.batch, task.stop))
        wanted = [task.target.lacks(task.inputs, number) for number in numbers]
        feeds: list[Any] = []
        for number in numbers:
            try:
                feeds.append(task.inputs.feeds(running.model, number, limit))
            except FeedError as error:
                feeds.append(error.diagnostics)
        results = running.run(feeds) if any(wanted) else [None] * len(numbers)
        for given, result in zip(feeds, results):
            arrays = [*(given.values() if isinstance(given, dict) else ()), *(result or ())]
            size = max(size, sum(a.nbytes for a in arrays if isinstance(a, np.ndarray)))
        kept = [result if lacks else None for result, lacks in zip(results, wanted)]
        if isinstance(task.target, Folder):
            done = _added(done, kept, task.target.write(task.inputs, start, kept))
        else:
            every += kept
    if isinstance(task.target, Stacked):
        done = _added(done, every, task.target.write(task.inputs, task.start, every))
    return _Done(done, size)


def _added(done: Progress, results: list[Any], bad: list[Bad]) -> Progress:
    count = sum(result is not None for result in results) - len(bad)
    return Progress(done.done + count, [*done.bad, *bad])


# ---------------------------------------------------------------------------------------------
# prepare


@dataclass(frozen=True, slots=True)
class Feeding:
    """How inputs reach the model: with ``shapes`` as ``Model.reshape`` takes them, and how pictures are read."""

    shapes: Shapes
    pictures: Pictures = AS_THEY_ARE


_DECLARED: Final = Feeding({})


def prepare(
    model: str,
    weights: str | None,
    arguments: Sequence[str],
    out: str,
    *,
    batch: int | None = None,
    exact: bool | None = None,
    precision: Precision = "f32",
    max_memory: int | None = None,
    timeout: float | None = None,
    overwrite: bool = False,
    feeding: Feeding = _DECLARED,
) -> Batch:
    """Return a run over the inputs that ``arguments`` name, with results in ``out``.

    Without ``batch``, inputs are run ``BATCH`` at a time if the model allows it. Results that an earlier run has
    written to ``out`` are kept, unless ``overwrite``. Raises FeedError
    (IR601) for unusable inputs, a ``batch`` that the model does not allow, and an output that belongs to something
    else; ReadError, ModelError or UnsupportedError for the model, and OSError if ``out`` cannot be written.
    """
    file = weights_of(model, weights)
    version = f"{identity(model)} {identity(file)}"
    job = Job(model, weights, 1, False, exact, max_memory, timeout, version, tuple(feeding.shapes.items()), precision)
    parsed = job.parsed()
    independent = batch != 1 and rows_are_independent(job)
    if batch is not None and batch > 1 and not independent:
        message = f"{model} cannot run {batch} inputs at once: no first dim is dynamic, or inputs affect each other"
        raise FeedError(diagnostic("IR601", message, help="leave --batch out"))
    job = replace(job, batch=(batch or BATCH) if independent else 1)
    target = target_of(out, output_names(parsed.model))
    if isinstance(target, Stacked) and target.path.suffix.lower() == ".npy" and len(target.names) != 1:
        message = f"a .npy holds one array, but the model has {len(target.names)} outputs"
        raise FeedError(diagnostic("IR601", message, help="write to a .npz, a .zarr or a folder"))
    locked = _begin(target, out)
    try:
        inputs, others = _inputs(arguments, parsed.model, target)
        if isinstance(inputs, Files):
            inputs = replace(inputs, pictures=feeding.pictures)
        _claim(target, out, _manifest(job, inputs, target), inputs, overwrite=overwrite)
        return Batch(job, inputs, target, target.missing(inputs), locked, others)
    except BaseException:
        locked.close()
        raise


_STACKS: Final = (".npy", ".npz", ".zarr")


def _inputs(arguments: Sequence[str], model: Model, target: Folder | Stacked) -> tuple[Inputs, int]:
    """Return the inputs, and how many files are none. A single array file is a stack. Raises FeedError (IR601)."""
    if len(arguments) == 1 and Path(arguments[0]).suffix.lower() in _STACKS:
        try:
            return stack_of(arguments[0], model, target.work), 0
        except ModuleNotFoundError:
            raise _no_zarr() from None
    files, others = files_of(arguments, target.path)
    if not files.paths:
        message = f"there is no input in {', '.join(arguments)}: no .npy, .npz or picture"
        raise FeedError(diagnostic("IR601", message, help="check the path"))
    if len(arguments) == 1 and not os.path.exists(arguments[0]):
        message = f"cannot read {arguments[0]}: no such file or directory"
        raise FeedError(diagnostic("IR601", message, help="check the path"))
    return files, others


def _no_zarr() -> FeedError:
    return FeedError(diagnostic("IR601", "Zarr arrays need the package zarr", help=install("zarr")))


def _begin(target: Folder | Stacked, out: str) -> Any:
    """Make the working folder of a target, and lock it. Return the lock file. Raises FeedError and OSError."""
    if isinstance(target, Folder) and target.path.exists() and not target.path.is_dir():
        raise _occupied(out, "is a file; choose a folder, or a name that ends in .npy, .npz or .zarr")
    if isinstance(target, Stacked):
        if target.path.suffix.lower() == ".zarr":
            _require_zarr()
        if not target.path.parent.is_dir():
            raise _occupied(out, f"cannot be written: there is no folder {target.path.parent}; create it first")
        if target.path.is_dir() and target.path.suffix.lower() != ".zarr":
            raise _occupied(out, "is a folder; choose the path of a file")
    elif target.path.is_dir() and not target.work.is_dir() and any(target.path.iterdir()):
        raise _occupied(out, "holds files that no `irrun batch` has written; choose a new folder")
    target.work.mkdir(parents=True, exist_ok=True)
    file = (target.work / "lock").open("ab")
    if not lock(file):
        file.close()
        raise _occupied(out, "is being written by another irrun batch; wait for it to end")
    _sweep(target)
    return file


def _sweep(target: Target) -> None:
    """Remove the temporary files of processes that have been killed."""
    sweep(target.work)
    if isinstance(target, Folder):
        for place, _, _ in os.walk(target.path):
            sweep(Path(place))


def _require_zarr() -> None:
    from importlib.util import find_spec

    if find_spec("zarr") is None:
        raise _no_zarr()


def _occupied(out: str, problem: str) -> FeedError:
    message, _, help = problem.partition("; ")
    return FeedError(diagnostic("IR601", f"the output {out} {message}", help=help))


def _manifest(job: Job, inputs: Inputs, target: Target) -> dict[str, Any]:
    """Return what the results depend on. The list of inputs counts where the output has a row for each of them."""
    listed = ""
    if isinstance(inputs, Stack):
        files = sorted({rows.path for rows in inputs.arrays.values() if Path(rows.path).is_file()})
        names = [str(len(inputs)), *(identity(file) for file in files if target.work not in Path(file).parents)]
    elif isinstance(target, Stacked) and isinstance(inputs, Files):
        names = list(inputs.names)
    else:
        names = []
    if names:
        listed = hashlib.sha256("\n".join(map(repr, names)).encode("utf-8", "backslashreplace")).hexdigest()
    exact = job.exact if job.exact is not None else os.environ.get("IRRUN_EXACT", "") not in ("", "0")
    return {
        "irrun": __version__,
        "model": job.version,
        "batch": job.batch,
        "exact": exact,
        "precision": job.precision,
        "shapes": [[str(name), str(shape)] for name, shape in job.shapes],
        "pictures": repr(inputs.pictures) if isinstance(inputs, Files) else "",
        "inputs": listed,
    }


_WORDS: Final = {
    "irrun": "another version of irrun",
    "model": "another model, or another version of it",
    "batch": "another --batch",
    "exact": "another --exact",
    "precision": "another --precision",
    "shapes": "another --shape",
    "pictures": "other options for pictures",
    "inputs": "other inputs",
}


def _claim(target: Folder | Stacked, out: str, manifest: dict[str, Any], inputs: Inputs, *, overwrite: bool) -> None:
    """Record what the results in a target depend on. Raises FeedError if those that are there depend on other things.

    With ``overwrite``, earlier results are removed.
    """
    path = target.work / "manifest.json"
    try:
        earlier = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        earlier = None
    if overwrite:
        target.discard(inputs)
    elif earlier is None and isinstance(target, Stacked) and target.path.exists():
        raise _occupied(out, "exists, and no `irrun batch` has written it; choose another name, or pass --overwrite")
    elif earlier is not None and earlier != manifest:
        differing = [words for key, words in _WORDS.items() if earlier.get(key) != manifest[key]]
        message = f"holds results of {' and '.join(differing) or 'another command'}"
        raise _occupied(out, f"{message}; choose another output, or pass --overwrite")
    write_file(path, json.dumps(manifest, indent=1).encode(), swept=True)
