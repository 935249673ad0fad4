"""The processes of a Dask cluster as workers: see ``irrun.fleet.workers``."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, TypeVar

from irrun.base.extras import install
from irrun.diagnostics import EngineError, diagnostic
from irrun.fleet.workers import Lost, one_thread_each
from irrun.opdef.plugins import load_plugin, plugins

__all__ = ["Cluster", "connected"]

T = TypeVar("T")
R = TypeVar("R")

_AHEAD: Final = 3
"""Tasks that are handed out for each thread of the cluster, so that workers have work while the scheduler decides."""


class Cluster:
    """The workers of a Dask cluster. ``client`` is a ``distributed.Client``.

    Dask does the task of a lost worker again. One that has lost two workers gives ``Lost``.
    """

    def __init__(self, client: Any) -> None:
        self.client = client
        self.jobs = max(1, sum(client.nthreads().values()))

    def results(self, function: Callable[[T], R], tasks: Iterable[T], name: str) -> Iterator[tuple[T, R | Lost]]:
        """Yield each task and its result: see ``Workers``. The dashboard shows tasks under ``name``."""
        from distributed import KilledWorker, as_completed

        once = uuid.uuid4().hex[:8]  # a later run with the same tasks must not get the results of this one
        waiting = enumerate(tasks)
        pending: dict[Any, T] = {}
        call = _Call(tuple(plugins()), function)

        def submitted(count: int) -> list[Any]:
            """Hand out tasks and return their futures."""
            new = []
            for number, task in islice(waiting, count):
                future = self.client.submit(call, task, key=(f"{name}-{once}", number), retries=0, pure=False)
                pending[future] = task
                new.append(future)
            return new

        done = as_completed(submitted(_AHEAD * self.jobs))
        try:
            for future in done:
                task = pending.pop(future)
                try:
                    result: R | Lost = future.result()
                except KilledWorker:
                    result = Lost()
                future.release()
                yield task, result
                self.jobs = max(1, sum(self.client.nthreads().values()))  # workers come and go
                for new in submitted(max(0, _AHEAD * self.jobs - len(pending))):
                    done.add(new)
        finally:
            self.client.cancel(list(pending))


@dataclass(frozen=True, slots=True)
class _Call:
    """A function that is called after plugins are imported, since a worker may have started without them."""

    plugins: Sequence[str]
    function: Callable[[Any], Any]

    def __call__(self, task: Any) -> Any:
        for file in set(self.plugins) - set(plugins()):
            load_plugin(file)
        return self.function(task)


CONNECT_SECONDS = 10.0
"""How long a scheduler has to answer."""


def connected(address: str, jobs: int) -> tuple[Any, Any]:
    """Return a client of the cluster at ``address`` and None, or for ``local`` that of a new one, and the new one.

    The new one has ``jobs`` processes.

    Raises EngineError (IR702) if distributed is not installed or there is no scheduler at the address.
    """
    try:
        from dask.config import set as configure
        from distributed import Client, LocalCluster
    except ImportError:
        raise _unavailable("--dask needs the package distributed", install("dask")) from None
    configure({"distributed.scheduler.allowed-failures": 1, "distributed.comm.timeouts.connect": f"{CONNECT_SECONDS}s"})
    if address == "local":
        with one_thread_each():
            cluster = LocalCluster(
                n_workers=jobs,
                threads_per_worker=1,
                host="127.0.0.1",
                silence_logs=logging.CRITICAL,
                dashboard_address=None,  # type: ignore[arg-type]
            )
        return Client(cluster), cluster
    try:
        return Client(address, timeout=CONNECT_SECONDS), None
    except (OSError, TimeoutError, ValueError) as error:
        problem = f"no Dask scheduler answers at {address}: {error or type(error).__name__}"
        raise _unavailable(problem, "start one with `dask scheduler`, and pass its address, or --dask local") from None


def _unavailable(problem: str, help: str) -> EngineError:
    return EngineError(diagnostic("IR702", problem, help=help))
