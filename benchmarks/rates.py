"""Where the time of the networks goes: `python -m benchmarks.rates [NAME ...]` prints it as Markdown.

For each network the kinds of its steps, with their share, and their rates against the machine's: a matrix product of
1024 x 1024 in the same BLAS, and a copy of 64 MB. Each step counts with its fastest call.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

for library in ("OPENBLAS", "OMP", "MKL"):  # read when numpy is imported
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")

import numpy as np

import irrun
from benchmarks.measure import Job
from benchmarks.networks import NETWORKS, network

WARM, RUNS = 4, 12  # a dynamic model is planned again for dims that it gets three times in a row


def main() -> None:
    wanted = [word.lower() for word in sys.argv[1:]]
    peak, copy = _peak(), _copy()
    print(f"One thread. Peak of BLAS: {peak:.0f} GFLOP/s; copy: {copy:.1f} GB/s read and written.")
    for name, file, lead, calls, _ in NETWORKS:
        if not wanted or any(word in f"{name} {file}".lower() for word in wanted):
            path = network(Path(tempfile.gettempdir(), "irrun-benchmarks"), file)
            print("\n".join(_table(name, Job(str(path), lead, calls), peak, copy)))


def _table(name: str, job: Job, peak: float, copy: float) -> Iterator[str]:
    """The table of one network; a row for each kind of step that takes one percent of the time or more."""
    profile = irrun.Profile()
    executable = irrun.compile(job.path)
    for number in range(WARM + RUNS):
        executable.reset_state()
        for position, feeds in enumerate(job.feeds()):
            executable(feeds, hooks=[profile] if number >= WARM and position >= job.lead else ())
    kinds: dict[str, list[float]] = {}
    for row in profile.rows:
        first, _, rest = row.type.partition("+")
        kind = f"{first}{' + …' if rest else ''}{f', {row.algorithm}' if row.algorithm else ''}"
        took = min(row.times)
        sums = kinds.setdefault(kind, [0.0, 0.0, 0.0, 0.0])
        kinds[kind] = [a + b for a, b in zip(sums, (1, took, row.flops, row.bytes))]
    total = sum(took for _, took, _, _ in kinds.values())
    yield f"\n### {name}: {total * 1e3:.1f} ms\n"
    yield "| steps | kind | ms | share | GFLOP/s | of BLAS | GB/s | of a copy |"
    yield "| ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: |"
    for kind, (count, took, flops, size) in sorted(kinds.items(), key=lambda item: -item[1][1]):
        if took < 0.01 * total:
            continue
        rate, moved = flops / took / 1e9, size / took / 1e9
        computed = f"{rate:.0f} | {rate / peak:.0%}" if flops else " | "
        yield (
            f"| {count:.0f} | {kind} | {took * 1e3:.2f} | {took / total:.0%} | {computed} "
            f"| {moved:.1f} | {moved / copy:.0%} |"
        )


def _peak() -> float:
    a, b = (np.random.default_rng(i).random((1024, 1024), np.float32) for i in range(2))
    return 2 * 1024**3 / _least(lambda: a @ b) / 1e9


def _copy() -> float:
    a, b = np.ones(1 << 26, np.uint8), np.zeros(1 << 26, np.uint8)
    return 2 * a.nbytes / _least(lambda: np.copyto(b, a)) / 1e9


def _least(work: Callable[[], object]) -> float:
    times: list[float] = []
    for _ in range(15):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


if __name__ == "__main__":
    main()
