"""Run a graph in the default mode and in the exact one, and compare."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from unittest import mock

import numpy as np

import irrun
from file_fuzz.builder import EPSILON
from file_fuzz.graphs import RandomGraph
from irrun.diagnostics import IrrunError
from irrun.kernels import threads
from irrun.planning.steps import Plan, Step
from irrun.running.executor import Executable
from irrun.types import ElementType

__all__ = ["Difference", "differences"]

_SLACK = 4.0
"""By how much two results may differ, in units of the estimated error. Both have an error, and the estimate is one."""


class Difference(Exception):  # noqa: N818
    """Two ways to compute the same give different results."""


def differences(graph: RandomGraph) -> Counter[str]:
    """Raise Difference if the modes, or the calls, of a graph differ. Return what its plans consist of, each once."""
    plain = irrun.compile(graph.model, exact=False)
    exact = irrun.compile(graph.model, exact=True)
    wanted: list[list[np.ndarray]] = []
    reached: Counter[str] = Counter()
    with _jobs() as jobs:
        for number, feeds in enumerate(graph.feeds):
            expected = _outputs(exact, feeds)
            _compare(_outputs(plain, feeds), expected, graph.tolerances, f"call {number + 1}")
            wanted.append(expected)
        if graph.is_stateful:
            _compare_states(plain, exact)
        else:
            _concurrently(plain, graph, wanted)
    if jobs:
        reached["threads"] += 1
    pool = plain._interpreter.pool
    if pool._lent or any(pool._free._blocks.values()):
        reached["pooled memory"] += 1
    for plan in (plain.plan, *plain._plans._narrow.values()):
        reached.update(_parts(plan))
    if plain._plans._narrow:
        reached["plans for recurring dims"] += 1
    return Counter(dict.fromkeys(reached, 1))


def _outputs(executable: Executable, feeds: Sequence[np.ndarray]) -> list[np.ndarray]:
    try:
        return [np.array(array) for array in executable(list(feeds)).arrays]
    except IrrunError as error:
        raise Difference(f"a valid graph is refused: {error}") from error


def _compare(
    arrays: Sequence[np.ndarray], expected: Sequence[np.ndarray], tolerances: Sequence[float], where: str
) -> None:
    for position, (array, want, tolerance) in enumerate(zip(arrays, expected, tolerances, strict=True)):
        if array.dtype != want.dtype and array.dtype.kind not in "TUO":
            raise Difference(f"{where}, output {position}: {array.dtype}, exact {want.dtype}")
        if array.shape != want.shape:
            raise Difference(f"{where}, output {position}: {array.shape}, exact {want.shape}")
        element_type = ElementType.of(array.dtype)
        name = "" if element_type is None else element_type.name
        if name not in EPSILON or tolerance == 0:
            # the bits are equal, but there are two zeros
            if not np.array_equal(array, want, equal_nan=name in EPSILON):
                raise Difference(f"{where}, output {position}: other elements of {name}\n{array}\n{want}")
            continue
        with np.errstate(invalid="ignore"):  # the largest element of none is an infinity
            off = np.abs(array.astype(np.float64) - want.astype(np.float64))
        same = (array == want) | (np.isnan(array) & np.isnan(want))
        allowed = _SLACK * tolerance
        if not ((off <= allowed) | same).all():
            raise Difference(f"{where}, output {position} of {name}: off by {off.max():.3g}, allowed {allowed:.3g}")


def _compare_states(plain: Executable, exact: Executable) -> None:
    for name, state in exact.state.items():
        if not np.allclose(plain.state[name], state, rtol=1e-3, atol=1e-3, equal_nan=True):
            raise Difference(f"variable {name}:\n{plain.state[name]}\n{state}")


def _concurrently(executable: Executable, graph: RandomGraph, wanted: Sequence[Sequence[np.ndarray]]) -> None:
    """Run two threads at once, one from the first call on and one from the last call back."""
    failed: list[BaseException] = []

    def work(order: Sequence[int]) -> None:
        try:
            for number in order:
                outputs = _outputs(executable, graph.feeds[number])
                _compare(outputs, wanted[number], graph.tolerances, f"call {number + 1}, concurrently")
        except BaseException as error:
            failed.append(error)

    orders = range(0, len(wanted), 2), range(len(wanted) - 1, -1, -2)
    workers = [threading.Thread(target=work, args=(order,)) for order in orders]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    if failed:
        raise failed[0]


@contextmanager
def _jobs() -> Iterator[list[object]]:
    """Yield a list of the jobs that several threads share while the context is open."""
    jobs: list[object] = []
    finish = threads._Job.finish

    def noted(job: threads._Job[object]) -> None:
        jobs.append(job)
        finish(job)

    with mock.patch.object(threads._Job, "finish", noted):
        yield jobs


def _parts(plan: Plan) -> Iterator[str]:
    """Yield the algorithm of each step, and of the steps of bodies, and what is computed for several layers."""
    for step in plan.steps:
        yield from _part(step)
        for body in step.bodies.values():
            yield from _parts(body)


def _part(step: Step) -> Iterator[str]:
    if step.kernel.algorithm:
        yield f"{step.layers[0].type}: {step.kernel.algorithm}"
    if len(step.layers) > 1:
        yield f"fused: {getattr(step.op, 'type', 'change of layout')}"
