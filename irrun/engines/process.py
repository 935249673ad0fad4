"""The process of a harness: start it, exchange messages with it, watch its time and memory, and end it."""

from __future__ import annotations

import json
import os
import queue
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

from irrun.base.text import human
from irrun.engines.outcomes import Crash, Refusal, Timeout

__all__ = ["Failed", "Limits", "Process"]

_MAX_MESSAGE_BYTES: Final = 1 << 26
"""The most bytes of a message. The longest are lists of the values of models with 100,000 layers."""
_MAX_LOG_BYTES: Final = 1 << 12
"""The most bytes of a crash report that are taken from what the process printed last."""
_MEMORY_CHECK_SECONDS: Final = 0.02
"""Seconds between two looks at the memory of a process."""
_STOP_SECONDS: Final = 1.0
"""Seconds that a process may take to end after ``stop``."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How long an engine may take for a request, in seconds, and how much memory, in bytes.

    Only Linux tells the memory of another process; elsewhere it is not limited. None means no limit.
    """

    seconds: float | None = 600
    memory: int | None = None


class Failed(Exception):  # noqa: N818  (an outcome, not a fault of the program)
    """The outcome of a request that gave no answer."""

    def __init__(self, outcome: Refusal | Crash | Timeout) -> None:
        super().__init__(outcome)
        self.outcome = outcome


class Process:
    """A running harness. ``folder``, in ``session``, is that in which tensors are passed. It is removed at the end.

    Raises OSError if the command cannot be started.
    """

    def __init__(
        self, command: Sequence[str], limits: Limits, session: Path, environment: Mapping[str, str] | None = None
    ) -> None:
        self.limits = limits
        self.folder = Path(tempfile.mkdtemp(dir=session))
        self._log: IO[bytes] = (self.folder / "log").open("w+b")
        try:
            self._process = subprocess.Popen(
                list(command),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._log,
                env=environment,
                start_new_session=os.name == "posix",
            )
        except OSError:
            self._remove_files()
            raise
        self._lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        threading.Thread(target=self._read, daemon=True).start()

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    def ask(self, command: str, **arguments: Any) -> Iterator[tuple[str, dict[str, Any]]]:
        """Send a request, and yield each reply: ``value`` any number of times, and ``ok`` at the end.

        Raises Failed with a Refusal, with a Timeout, or with a Crash; after the last two, the process has ended.
        """
        deadline = None if self.limits.seconds is None else time.monotonic() + self.limits.seconds
        pipe = self._process.stdin
        assert pipe is not None
        try:
            pipe.write(json.dumps({"cmd": command, **arguments}).encode() + b"\n")
            pipe.flush()
        except OSError:  # it has ended: read why
            pass
        while True:
            kind, content = self._reply(deadline)
            if kind == "refused":
                raise Failed(Refusal(str(content.get("message", "")), str(content.get("reason", ""))))
            yield kind, content
            if kind == "ok":
                return

    def stop(self) -> None:
        """Ask the process to end, end it if it does not, and remove its files."""
        pipe = self._process.stdin
        assert pipe is not None
        with suppress(OSError, ValueError, subprocess.TimeoutExpired):
            if self.is_running:
                pipe.write(b'{"cmd": "stop"}\n')
                pipe.flush()
                self._process.wait(_STOP_SECONDS)
        self.kill()

    def kill(self) -> None:
        """End the process, and those that it started, at once, and remove its files."""
        if os.name == "posix":
            with suppress(OSError):
                os.killpg(self._process.pid, signal.SIGKILL)
        self._process.kill()
        self._process.wait()
        with suppress(OSError):
            if self._process.stdin is not None:
                self._process.stdin.close()
        self._remove_files()

    def _remove_files(self) -> None:
        self._log.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _read(self) -> None:
        """Pass the lines that the process writes to the queue, and an empty one at the end."""
        pipe = self._process.stdout
        assert pipe is not None
        with pipe:
            while line := pipe.readline(_MAX_MESSAGE_BYTES):
                self._lines.put(line)
        self._lines.put(b"")

    def _reply(self, deadline: float | None) -> tuple[str, dict[str, Any]]:
        """Return the kind and content of the next reply. Raises Failed."""
        while True:
            try:
                line = self._lines.get(timeout=_MEMORY_CHECK_SECONDS)
                break
            except queue.Empty:
                self._require_limits(deadline)
        if not line:
            raise Failed(self._crash())
        try:
            ((kind, content),) = json.loads(line).items()
            if kind not in ("ok", "refused", "value") or not isinstance(content, dict):
                raise ValueError
        except (ValueError, AttributeError, RecursionError):
            shown = line[:60].decode("utf-8", "replace").rstrip()
            raise Failed(self._ended(f"it broke the protocol: it wrote {shown!r}")) from None
        return kind, content

    def _require_limits(self, deadline: float | None) -> None:
        """End the process and raise Failed if it has exceeded a limit."""
        if deadline is not None and time.monotonic() > deadline:
            self.kill()
            raise Failed(Timeout(self.limits.seconds or 0))
        taken = 0 if self.limits.memory is None else _memory(self._process.pid)
        if self.limits.memory is not None and taken > self.limits.memory:
            sizes = [human(size) for size in (taken, self.limits.memory)]
            if sizes[0] == sizes[1]:
                sizes = [f"{size:,} bytes" for size in (taken, self.limits.memory)]
            cause = f"out of memory: it took {sizes[0]}, more than the {sizes[1]} that --max-memory allows"
            raise Failed(self._ended(cause))

    def _crash(self) -> Crash:
        """Return why a process has ended by itself."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_STOP_SECONDS)
        status = self._process.poll()
        if status is None:
            return self._ended("it closed its output")
        if status >= 0:
            return self._ended(f"it ended with status {status}")
        try:
            name = signal.Signals(-status).name
        except ValueError:
            name = f"signal {-status}"
        killed = "; the system may have run out of memory" if name == "SIGKILL" else ""
        return self._ended(f"it was ended by {name}{killed}")

    def _ended(self, cause: str) -> Crash:
        """End the process, and return its crash with the end of its log."""
        log = ""
        with suppress(OSError, ValueError):
            size = self._log.seek(0, os.SEEK_END)
            self._log.seek(max(0, size - _MAX_LOG_BYTES))
            log = self._log.read().decode("utf-8", "replace").strip()
        self.kill()
        return Crash(cause, log)


def _memory(pid: int) -> int:
    """Return the bytes of memory that belong to a process alone, or 0 where the system does not tell."""
    try:
        with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as file:
            for line in file:
                if line.startswith("RssAnon:"):
                    return int(line.split()[1]) << 10
    except (OSError, ValueError, IndexError):
        pass
    return 0
