"""Campaigns in several processes, each with an engine of its own."""

from __future__ import annotations

import multiprocessing
import signal
import time
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from irrun.base.children import child_environment, drop_safe_path
from irrun.engines import Limits
from irrun.engines.opening import open
from irrun.fuzz.campaigns import BLOCK, Campaign, Figures, Finding, write_findings

__all__ = ["Job", "run_jobs"]

_stop: Any = None
"""The event, in a process of the pool, that ends its campaign."""


@dataclass(frozen=True)
class Job:
    """A part of a campaign: ``count`` graphs from ``first`` on, until ``deadline`` (of ``time.time()``)."""

    seed: int
    side: str | None
    limits: Limits
    first: int
    count: int
    deadline: float | None = None


def run_jobs(job: Job, processes: int, figures: Figures, folder: Path | None = None) -> Iterator[list[Finding]]:
    """Do the graphs of a job in several processes, block by block. After each block, add to the figures, and yield
    the findings that are new.

    Ctrl-C ends all processes; then the figures so far are ``interrupted``.
    """
    begin = time.monotonic()
    context = multiprocessing.get_context("spawn")
    with child_environment():  # the first event starts a process that cleans up
        stop = context.Event()
    with ProcessPoolExecutor(processes, context, _start, (stop,)) as pool:
        end = job.first + job.count
        parts = [replace(job, first=first, count=min(BLOCK, end - first)) for first in range(job.first, end, BLOCK)]
        with child_environment():
            waiting = {pool.submit(_run, part) for part in parts}
        try:
            while waiting:
                try:
                    done: Future[tuple[Figures, str]] = next(as_completed(waiting))
                except KeyboardInterrupt:
                    stop.set()
                    figures.interrupted = True
                    continue
                waiting.remove(done)
                part, observer = done.result()
                new = figures.add(part)
                figures.seconds = time.monotonic() - begin
                if folder is not None and figures.findings:
                    write_findings(figures.findings, folder, job.seed, observer)
                yield new
        finally:
            stop.set()


def _start(stop: Any) -> None:
    global _stop
    _stop = stop
    drop_safe_path()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the first process decides


def _run(job: Job) -> tuple[Figures, str]:
    """Return the figures of a part of a campaign, and the name of the engine."""
    left = None if job.deadline is None else job.deadline - time.time()
    if (left is not None and left <= 0) or _stop.is_set():
        return Figures(), ""
    with nullcontext() if job.side is None else open(job.side, job.limits) as engine:
        campaign = Campaign(job.seed, engine)
        for _ in campaign.run(seconds=left, first=job.first, count=job.count):
            if _stop.is_set():
                break
        return campaign.figures, "irrun" if engine is None else engine.name
