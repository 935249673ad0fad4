"""Run the chat templates of strangers in a process of their own, with limits of time and memory.

No budget within a process holds: one call of a filter may take minutes, and lists of lists take gigabytes in steps that
are small.
"""

from __future__ import annotations

import base64
import marshal
import sys
import weakref
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import numpy as np

from irrun.base.text import human
from irrun.engines.folder import private_folder
from irrun.engines.outcomes import Timeout
from irrun.engines.process import Failed, Limits, Process

__all__ = ["Failure", "Renderer"]

_SECONDS: Final = 10.0
"""The most seconds that a template may run. Those in use take milliseconds."""
_MEMORY: Final = 1 << 30
"""The most bytes that the process of a template may take."""
_NO_PROCESSES: Final = ("emscripten", "wasi")


class Failure(Exception):  # noqa: N818  (of the template)
    """A template gives no text. ``line`` is a line of the template, if it is known."""

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.line = line


class Renderer:
    """The process that runs a template. It starts with the first text, and again after a text that has ended it.

    ``sandbox`` is the module of this name.
    """

    def __init__(self, template: str, sandbox: Any) -> None:
        self._template, self._sandbox = template, sandbox
        self._process: Process | None = None
        self._end: weakref.finalize[..., Any] | None = None

    def __call__(self, names: Mapping[str, Any]) -> str:
        """Return the text for variables. Raises Failure."""
        values = base64.b64encode(marshal.dumps({name: _plain(value, name) for name, value in names.items()})).decode()
        if sys.platform in _NO_PROCESSES:
            return self._here(names)
        process = self._started()
        try:
            ((_, answer),) = process.ask(
                "render", template=self._template, names=values, seconds=_SECONDS, memory=_MEMORY
            )
        except Failed as failed:
            self._stop()
            raise Failure(f"the template was stopped: {_reason(failed.outcome)}") from None
        if "text" not in answer:
            raise Failure(str(answer.get("message")), answer.get("line"))
        return str(answer["text"])

    def _started(self) -> Process:
        if self._process is None or not self._process.is_running:
            self._stop()
            command = [sys.executable, "-P", str(Path(__file__).with_name("sandbox.py"))]
            with ExitStack() as opened:
                try:
                    process = Process(command, Limits(_SECONDS, _MEMORY), opened.enter_context(private_folder()))
                except OSError as error:
                    raise Failure(f"no process can be started for the template: {error.strerror or error}") from None
                opened.callback(process.stop)
                self._process, self._end = process, weakref.finalize(self, opened.pop_all().close)
        return self._process

    def _stop(self) -> None:
        if self._end is not None:
            self._end()

    def _here(self, names: Mapping[str, Any]) -> str:
        """Return the text without a process, as in a browser, whose page has limits of its own."""
        try:
            return self._sandbox.rendered(self._sandbox.compiled(self._template), names)
        except Exception as error:
            raise Failure(*self._sandbox.failure(error)) from None


def _reason(outcome: Any) -> str:
    if isinstance(outcome, Timeout):
        return f"it ran for over {_SECONDS:g} s"
    cause = getattr(outcome, "cause", "")
    return f"it took more than {human(_MEMORY)} of memory" if "memory" in cause else f"its process failed: {cause}"


def _plain(value: Any, name: str, depth: int = 0) -> Any:
    """Return a variable as a value of Python's own types. Raises Failure for an object of another type."""
    if depth > _DEEPEST:
        raise Failure(f"the variable {name} is nested more than {_DEEPEST} deep")
    if value is None or type(value) in (bool, int, float, str, bytes):
        return value
    if isinstance(value, Mapping):
        return {_plain(key, name, depth + 1): _plain(item, name, depth + 1) for key, item in value.items()}
    if isinstance(value, (str, int, float)):
        return next(kind(value) for kind in (str, int, float) if isinstance(value, kind))
    if isinstance(value, (tuple, set, frozenset)):
        kind = next(kind for kind in (tuple, set, frozenset) if isinstance(value, kind))
        return kind(_plain(item, name, depth + 1) for item in value)
    if isinstance(value, Sequence):
        return [_plain(item, name, depth + 1) for item in value]
    if isinstance(value, (np.generic, np.ndarray)):
        return value.tolist()
    raise Failure(f"the variable {name} holds a {type(value).__name__}: templates take texts, numbers, lists and dicts")


_DEEPEST: Final = 100
