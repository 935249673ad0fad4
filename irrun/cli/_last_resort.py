"""End the process where a single step of a run goes on after the time of the run."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Final

import click
import numpy as np

from irrun.cli import _errors, _terminal
from irrun.model import Model
from irrun.planning.failures import out_of_time
from irrun.planning.steps import Step

__all__ = ["LastResort"]

_GRACE_SECONDS: Final = 0.5
"""Seconds after the deadline in which a run may stop by itself."""
_LOOK_SECONDS: Final = 0.02


class LastResort:
    """A hook that ends the process with IR607 if a step still runs ``_GRACE_SECONDS`` after ``timeout``.

    Use it as ``with LastResort(model, timeout, clean) as watch: executable(feeds, hooks=[watch, …])``, as the first
    hook: the others write files, and the process ends within a step only, never while they do. ``clean`` is called
    before the process ends.
    """

    joined = True

    def __init__(self, model: Model, timeout: float, clean: Callable[[], object]) -> None:
        self._model, self._timeout, self._clean = model, timeout, clean
        self._steps: list[Step] = []
        self._change = threading.Lock()
        self._ended = threading.Event()
        self._context = click.get_current_context(silent=True)

    def __enter__(self) -> LastResort:
        threading.Thread(target=self._watch, name="irrun-timeout", daemon=True).start()
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        with self._change:
            self._ended.set()

    def before(self, step: Step, inputs: Sequence[np.ndarray | None]) -> None:
        with self._change:
            self._steps.append(step)

    def after(self, step: Step, inputs: Sequence[np.ndarray | None], outputs: Sequence[np.ndarray]) -> None:
        with self._change:
            self._steps.pop()

    def _watch(self) -> None:
        if self._ended.wait(self._timeout + _GRACE_SECONDS):
            return
        while not self._ended.wait(_LOOK_SECONDS):
            with self._change:
                if self._steps and not self._ended.is_set():
                    self._end()

    def _end(self) -> None:
        """Report the step that runs, and end the process."""
        status = 1
        try:
            self._clean()
            error = out_of_time(self._model, self._steps[-1].layer, "in", self._timeout)
            _terminal.console(stderr=True).show_cursor()
            status = _errors.failed(error)
            arguments = [] if self._context is None else self._context.find_root().meta.get("irrun.arguments", [])
            _report(arguments, status, error)
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            os._exit(status)


def _report(arguments: list[str], status: int, error: Exception) -> None:
    from irrun import cli

    cli.report_error(arguments, status, str(error), error)
