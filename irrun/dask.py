"""Run a model on a Dask cluster: for programs that have a ``distributed.Client`` or a Dask array.

A worker loads a model once. Its files are read from the path where the workers see it, or travel to each worker once
with ``scatter=True``. Every input is run alone, in the same way as in one process, so that results are equal bit for
bit on machines of one kind. Needs the extra ``dask``: ``pip install ".[dask]"``.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from irrun.arrays.writing import output_names
from irrun.base.identity import identity, weights_of
from irrun.diagnostics import Diagnostic, ExecutionError, FeedError, diagnostic
from irrun.fleet.cluster import Cluster
from irrun.fleet.session import Job, Packed, Session, result_types, session
from irrun.fleet.workers import Lost
from irrun.ir.parse import read_bytes
from irrun.running.executor import Feeds
from irrun.running.inputs import read_feeds

__all__ = ["map_blocks", "run_many"]

PathLike = str | os.PathLike[str]


def run_many(
    client: Any,
    model: PathLike,
    feeds: Iterable[Feeds],
    *,
    weights: PathLike | None = None,
    scatter: bool = False,
    exact: bool | None = None,
    max_memory: int | None = None,
    timeout: float | None = None,
) -> Iterator[dict[str, np.ndarray]]:
    """Run a model for each of ``feeds`` on a Dask cluster, and yield the outputs of each, by name, in their order.

    - ``client`` is a ``distributed.Client``; ``model`` the path of an IR file and ``weights`` that of its ``.bin``, as
      in ``irrun.read_model``. Without ``scatter``, both must lead to the files on every worker.
    - ``feeds`` are the inputs of each run, as ``irrun.run`` takes them. They are taken from the iterable while results
      are read, a few for each thread of the cluster, so that neither inputs nor outputs are ever all in memory.
    - ``scatter`` sends the files to each worker once.
    - ``exact``, ``max_memory`` and ``timeout`` are those of ``irrun.compile``.

    A task whose worker is lost is done again. The dashboard shows the tasks under the name of the model. Raises the
    errors of ``irrun.compile`` and of a run, and ExecutionError (IR604) for a task that has ended two workers.
    """
    job = _job(model, weights, scatter, exact, max_memory, timeout)
    shared = client.scatter(job, broadcast=True) if scatter else job
    cluster = Cluster(client)
    early: dict[int, Any] = {}
    following = 0
    waiting = enumerate(feeds)
    done = cluster.results(_run_one, ((number, shared, feed) for number, feed in waiting), _name(model))
    for (number, _, _), result in done:
        early[number] = result
        while following in early:
            yield _outputs(model, early.pop(following))
            following += 1


def _outputs(model: PathLike, result: Any) -> dict[str, np.ndarray]:
    if isinstance(result, Lost):
        message = "the worker that ran an input was ended twice, perhaps because the memory ran out"
        raise ExecutionError(diagnostic("IR604", message, file=str(model), help="run it alone"))
    return result


def _run_one(task: tuple[int, Job, Feeds]) -> dict[str, np.ndarray]:
    """Run one input in a worker."""
    _, job, feeds = task
    running = session(job)
    executable = running.single
    with running.lock:
        executable.restart()
        return dict(zip(output_names(running.model), executable(feeds).arrays))


def map_blocks(
    model: PathLike,
    array: Any,
    *,
    output: str | int = 0,
    weights: PathLike | None = None,
    scatter: bool = False,
    batch: int = 1,
    exact: bool | None = None,
    max_memory: int | None = None,
    timeout: float | None = None,
) -> Any:
    """Return the Dask array that a model makes of a Dask array, one row after the other. Nothing is computed yet.

    - ``array`` has an input in each row along its first axis: the shape ``[n, ...]`` for an input ``[1, ...]`` or
      ``[?, ...]``. The model has one input.
    - ``output`` is the name or position of the output. Its rows have the shape and type that the model declares for one
      input, and the result has the chunks of ``array`` along the first axis.
    - ``batch`` rows of a block are run at once, if the model allows it. Results do not depend on the chunks with 1.
    - ``scatter`` puts the files of the model into the graph, for workers that do not see its path.
    - The others are those of ``run_many``.

    Raises the errors of ``irrun.compile``, and FeedError (IR601) if the array or ``output`` does not fit the model.
    """
    from dask.delayed import delayed

    job = _job(model, weights, scatter, exact, max_memory, timeout, batch)
    running = Session(job)
    names = output_names(running.model)
    at = names.index(output) if output in names else output
    if not isinstance(at, int) or not 0 <= at < len(names):
        raise _unfit(model, f"the model has no output {output!r}", f"its outputs are {', '.join(names)}")
    if len(running.model.parameters) != 1:
        count = len(running.model.parameters)
        raise _unfit(model, f"map_blocks needs a model with one input, this one has {count}", "use run_many")
    row = np.zeros((1, *array.shape[1:]), array.dtype)
    read_feeds(running.model, row, running.single.plan.values)
    shape, dtype = result_types(running, row.shape)[at]
    if shape is None or shape[:1] != (1,):
        raise _unfit(model, f'the shape of "{names[at]}" is not known before a run, or has no row', "use run_many")
    whole = array.rechunk(dict.fromkeys(range(1, array.ndim), -1))
    shared = delayed(job, pure=True) if scatter else job  # one object of the graph, which all blocks share
    return whole.map_blocks(
        _run_block, job=shared, at=at, shape=shape, result=dtype, dtype=dtype, token=f"irrun-{Path(model).stem}",
        chunks=(whole.chunks[0], *((n,) for n in shape[1:])), drop_axis=list(range(1, array.ndim)),
        new_axis=list(range(1, len(shape))), meta=np.empty((0,) * len(shape), dtype),
    )  # fmt: skip


def _run_block(block: np.ndarray, job: Job, at: int, shape: tuple[int, ...], result: np.dtype) -> np.ndarray:
    """Return an output for the rows of a block."""
    running = session(job)
    rows: list[np.ndarray] = []
    with running.lock:
        places = iter(range(len(block)))
        while numbers := list(islice(places, job.batch)):
            for outputs in running.run([{0: block[n : n + 1]} for n in numbers]):
                if outputs and isinstance(outputs[0], Diagnostic):
                    raise ExecutionError([d for d in outputs if isinstance(d, Diagnostic)])
                rows.append(np.asarray(outputs[at]))
    return np.concatenate(rows) if rows else np.empty((0, *shape[1:]), result)


def _job(
    model: PathLike,
    weights: PathLike | None,
    scatter: bool,
    exact: bool | None,
    max_memory: int | None,
    timeout: float | None,
    batch: int = 1,
) -> Job:
    path, file = os.path.abspath(model), weights_of(os.path.abspath(model), None if weights is None else str(weights))
    version = f"{identity(path)} {identity(file)}"
    if not scatter:
        own = None if weights is None else os.path.abspath(weights)
        return Job(path, own, batch, False, exact, max_memory, timeout, version)
    data = read_bytes(Path(file)) if weights is not None or Path(file).exists() else b""
    packed = Packed(path, read_bytes(Path(path)), data)
    return Job(packed, None, batch, False, exact, max_memory, timeout, version)


def _name(model: PathLike) -> str:
    return f"irrun-{Path(model).stem}"


def _unfit(model: PathLike, message: str, help: str) -> FeedError:
    return FeedError(diagnostic("IR601", message, file=str(model), help=help))
