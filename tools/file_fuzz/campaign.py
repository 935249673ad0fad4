"""Run the cases of a fuzzer in processes of their own. A process that crashes is a result, too."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from places import IMPORTED

__all__ = ["Campaign", "Failure", "Figures"]

_POLL: Final = 0.05
"""Seconds between two looks at the threads of a campaign."""
_START: Final = 600.0
"""Seconds that a worker may take until its first case begins."""
_CHUNK: Final = {"mutants": 5000, "faults": 100}
"""The cases that one process runs, so that nothing that it piles up matters."""
_PROGRESS: Final = {"mutants": 1000, "faults": 1}
"""The cases after which the progress is reported."""


@dataclass(frozen=True)
class Failure:
    """A case that failed: its number, what happened, and what failures of one cause have in common."""

    number: int
    text: str
    signature: str


@dataclass
class Figures:
    """What a campaign counted."""

    cases: int = 0
    seconds: float = 0.0
    """CPU time of the cases."""
    slowest: float = 0.0
    outcomes: Counter[str] = field(default_factory=Counter)
    failures: list[Failure] = field(default_factory=list)

    @property
    def signatures(self) -> Counter[str]:
        return Counter(failure.signature for failure in self.failures)


@dataclass
class Campaign:
    """A campaign: ``count`` cases of a kind from the number ``first`` on, in ``jobs`` processes.

    Failing cases are stored in the folder ``keep``. ``report`` is called with each failure, and ``progress`` now and
    then.
    """

    kind: str
    count: int
    seed: str
    first: int = 0
    jobs: int = 1
    silence: float = 120.0
    """Seconds without a line of a worker, after which it counts as hung."""
    keep: Path | None = None
    report: Callable[[Failure], object] = lambda _: None
    progress: Callable[[Figures], object] = lambda _: None

    def run(self) -> Figures:
        """Run all cases and return the figures; those of the cases so far, if the keyboard interrupts."""
        self._stopped = False
        self._processes: list[subprocess.Popen[bytes]] = []
        self._figures = Figures()
        self._lock = threading.Lock()
        self._chunks = self._all_chunks()
        with tempfile.TemporaryDirectory(prefix="irrun-fuzz-") as folder:
            self._corpus = Path(folder) / "corpus.pickle"
            workers = [threading.Thread(target=self._work) for _ in range(self.jobs)]
            for worker in workers:
                worker.start()
            try:
                while any(worker.is_alive() for worker in workers):
                    time.sleep(_POLL)  # an interrupted join takes the thread for ended
            except KeyboardInterrupt:
                self._stopped = True
                for process in self._processes:
                    process.kill()
            for worker in workers:
                worker.join()
        return self._figures

    def _all_chunks(self) -> Iterator[tuple[int, int]]:
        end, size = self.first + self.count, _CHUNK[self.kind]
        yield from ((start, min(start + size, end)) for start in range(self.first, end, size))

    def _work(self) -> None:
        while True:
            with self._lock:
                chunk = next(self._chunks, None)
            if chunk is None or self._stopped:
                return
            first, last = chunk
            while first < last and not self._stopped:
                first = self._process(first, last)

    def _process(self, first: int, last: int) -> int:
        """Run cases in one process. Return the number with which the next process has to go on."""
        arguments = {
            "kind": self.kind, "seed": self.seed, "first": first, "last": last, "corpus": str(self._corpus),
            "keep": None if self.keep is None else str(self.keep),
        }  # fmt: skip
        environment = os.environ | {
            "PYTHONPATH": os.pathsep.join(map(str, IMPORTED)), "IRRUN_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1", "PYTHONHASHSEED": "0",
        }  # fmt: skip
        command = [sys.executable, "-m", "file_fuzz.worker", json.dumps(arguments)]
        with (
            tempfile.TemporaryFile() as errors,
            subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=errors, env=environment, start_new_session=True
            ) as process,
        ):
            self._processes.append(process)
            running: int | None = None
            silent = finished = False
            try:
                for line in _lines(process, self.silence):
                    if line is None:
                        silent = True
                        process.kill()
                    elif "begin" in line:
                        running = line["begin"]
                    elif "end" in line:
                        running = None
                        self._count(line)
                    else:
                        finished = True
            finally:
                process.kill()
                status = process.wait()
                self._processes.remove(process)
            if finished or self._stopped:
                return last
            errors.seek(0)
            text = errors.read()[-4000:].decode("utf-8", "replace")
        if running is None:
            raise RuntimeError(f"a worker ended with status {status} outside of a case:\n{text}")
        self._crashed(running, status, silent, text)
        return running + 1

    def _count(self, line: dict[str, Any]) -> None:
        with self._lock:
            figures = self._figures
            figures.cases += 1
            figures.seconds += line["seconds"]
            figures.slowest = max(figures.slowest, line["seconds"])
            figures.outcomes.update(line["outcomes"])
            if "failure" in line:
                self._fail(Failure(line["end"], line["failure"], line["signature"]))
            if figures.cases % _PROGRESS[self.kind] == 0:
                self.progress(figures)

    def _crashed(self, number: int, status: int, silent: bool, text: str) -> None:
        """Record the crash of a worker, and store its case."""
        if silent:
            what = "hangs"
        elif status < 0:
            what = f"ended by {signal.Signals(-status).name}"
        else:
            what = f"ended with status {status}"
        if self.keep is not None:
            arguments = {"kind": self.kind, "seed": self.seed, "number": number, "corpus": str(self._corpus)}
            folder = self.keep / f"{self.kind}-{number}"
            folder.mkdir(parents=True, exist_ok=True)
            environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, IMPORTED))}
            command = [sys.executable, "-m", "file_fuzz.store", json.dumps(arguments | {"folder": str(folder)})]
            subprocess.run(command, env=environment, check=True)
            (folder / "failure.txt").write_text(f"{what}\n{text}", "utf-8")
        with self._lock:
            self._figures.cases += 1
            self._fail(Failure(number, f"{what}\n{text}", what))

    def _fail(self, failure: Failure) -> None:
        self._figures.failures.append(failure)
        self.report(failure)


def _lines(process: subprocess.Popen[bytes], silence: float) -> Iterator[dict[str, Any] | None]:
    """Yield the lines of a worker as they come, and None if it is silent for too long."""
    assert process.stdout is not None
    descriptor, rest, patience = process.stdout.fileno(), b"", _START
    while True:
        if not select.select([descriptor], [], [], patience)[0]:
            yield None
            return
        patience = silence
        data = os.read(descriptor, 1 << 16)
        if not data:
            return
        *lines, rest = (rest + data).split(b"\n")
        yield from map(json.loads, lines)
